# check: ...=(2,), M=1, K=1, N=1
# check: ...=(3,), M=5, K=7, N=4
# check: ...=(2, 3), M=4, K=9, N=2
# check: ...=(2,), M=3, K=17, N=5, T=bf16
# bench: ...=(8), M=256, K=256, N=256
# bench: ...=(), M=1024, K=1024, N=1024
# bench: ...=(), M=512, K=512, N=512, T=bf16
# bench: ...=(), M=512, K=512, N=512, T=f16
def t_matmul(x, y):
    return torch.matmul(x, y)

# check: M=1, K=1, N=1
# check: M=0, K=2, N=3
# check: M=7, K=11, N=5
# bench: M=1024, K=1024, N=1024
# bench: M=1024, K=16, N=1024
# bench: M=64, K=8192, N=64
def t_mm(x, y):
    return torch.mm(x, y)

# check: B=1, M=1, K=1, N=1
# check: B=3, M=7, K=11, N=5
# bench: B=64, M=128, K=64, N=128
def t_bmm(x, y):
    return torch.bmm(x, y)

# check: M=1, K=1
# check: M=7, K=131
# bench: M=2048, K=2048
def t_mv(x, y):
    return torch.mv(x, y)

# check: K=1
# check: K=1009
# bench: K=1000000
def t_dot(x, y):
    return torch.dot(x, y)

# check: M=1, N=1
# check: M=7, N=13
# bench: M=1024, N=2048
def t_outer(x, y):
    return torch.outer(x, y)

# check: M=1, K=1, N=1
# check: M=7, K=13, N=5
# check: M=3, K=4, N=2, beta=0
# bench: M=512, K=512, N=512
def t_addmm(c, x, y, beta: float):
    return torch.addmm(c, x, y, beta=beta, alpha=2.0)

# check: B=1, M=1, K=1, N=1
# check: B=2, M=7, K=13, N=5
# bench: B=16, M=128, K=128, N=128
def t_baddbmm(c, x, y):
    return torch.baddbmm(c, x, y, beta=0.5, alpha=2.0)

# check: ...=(1,), K=1, N=1
# check: ...=(7,), K=13, N=5
# check: ...=(2, 3), K=17, N=5
# check: ...=(5,), K=19, N=3, T=f16
# check: ...=(5,), K=19, N=3, T=f64
# check: ...=(0,), K=3, N=2
# bench: ...=(16, 32), K=512, N=512
def t_linear(x, w, b):
    return torch.linear(x, w, b)

# check: M=1, K=1, N=1
# check: M=7, K=13, N=5
# bench: M=512, K=1024, N=1024
# bench: M=1, K=2048, N=2048
# bench: M=8, K=2048, N=2048
def t_linear_plain(x, w):
    return torch.linear(x, w)

# check: M=3, K=31, N=5
# bench: M=512, K=512, N=512
def t_linear_mixed(x, w, b):
    return torch.linear(x, w.to(x.dtype), b.to(x.dtype))

# check: M=1, I=1, J=1, O=1
# check: M=3, I=5, J=7, O=2
# bench: M=64, I=64, J=64, O=64
def t_bilinear(x, y, w, b):
    return torch.bilinear(x, y, w, b)

# check: ...=(), K=1, N=1, M=1
# check: ...=(2, 3), K=13, N=5, M=7
# check: ...=(2,), K=13, N=5, M=7, T=i64
def t_matmul_vectors(x, w, z, v):
    return torch.matmul(x, x), torch.matmul(x, w), torch.matmul(z, x), torch.matmul(x, v)

# check: M=1, K=1, N=1
# check: M=7, K=13, N=5
def t_addmm_small(x, y, a, b, c):
    return torch.addmm(a, x, y), torch.addmm(b, x, y, beta=0.5), torch.addmm(c, x, y, alpha=2.0)

# check: B=1, M=1, K=1, N=1
# check: B=2, M=7, K=13, N=5
def t_baddbmm_small(x, y, a, b, c, d):
    p = torch.baddbmm(a, x, y)
    q = torch.baddbmm(b, x, y, beta=0.5)
    r = torch.baddbmm(c, x, y, alpha=2.0)
    s = torch.baddbmm(d, x, y)
    return p, q, r, s
