# check: ...=(1,), C=2
# check: ...=(3, 5), C=14
# check: ...=(3, 5), C=14, T=f16
def t_glu(x):
    return torch.glu(x, -1)

# check: ...=(1,), N=2
# check: ...=(3, 5), N=17
# check: ...=(3,), N=17, T=i64
def t_diff(x):
    return torch.diff(x)

# check: M=1
# check: M=37
def t_cross(x, y):
    return torch.linalg_cross(x, y)

# check: A=1, B=1, C=1, D=1
# check: A=3, B=5, C=2, D=7
# check: A=3, B=5, C=2, D=7, T=i64
def t_kron(x, y):
    return torch.kron(x, y)

# check: ...=(1,)
# check: ...=(3, 7)
def t_one_hot(x):
    return torch.one_hot(x, 5)

# check: N=1, C=1, ...=(1,)
# check: N=3, C=5, ...=(7, 2)
def t_prelu(x, w):
    return torch.prelu(x, w)

# check: N=1, C=1, ...=(1,)
# check: N=3, C=5, ...=(7, 2)
# check: N=3, C=50, ...=(), p=1
# check: N=3, C=50, ...=(4,), p=3
def t_normalize(x, p: float):
    return x / torch.clamp_min(torch.linalg_vector_norm(x, p, [1], True), 1e-12)

# check: ...=(1,), M=1, N=1, D=1
# check: ...=(2, 3), M=5, N=7, D=11
# check: ...=(2,), M=5, N=7, D=11, p=1
def t_cdist(x, y, p: float):
    return torch.cdist(x, y, p)

# check: N=1, C=1, L=1, p=1
# check: N=2, C=3, L=7, p=13
# check: N=2, C=3, L=13, p=5
def t_nearest1(x, p: int):
    return torch.upsample_nearest1d(x, [p])

# check: N=2, C=3, H=7, W=5, p=14, q=3
def t_nearest2(x, p: int, q: int):
    return torch.upsample_nearest2d(x, [p, q])

# check: N=2, C=3, D=2, H=7, W=5, a=4, p=14, q=3
def t_nearest3(x, a: int, p: int, q: int):
    return torch.upsample_nearest3d(x, [a, p, q])

# check: N=1, C=1, L=1, p=1
# check: N=2, C=3, L=7, p=13
# check: N=2, C=3, L=13, p=5
# check: N=2, C=3, L=7, p=13, corners=true
# check: N=2, C=3, L=7, p=1, corners=true
def t_linear1(x, p: int, corners: bool):
    return torch.upsample_linear1d(x, [p], corners)

# check: N=2, C=3, H=7, W=5, p=14, q=3
# check: N=2, C=3, H=7, W=5, p=9, q=11, corners=true
def t_bilinear2(x, p: int, q: int, corners: bool):
    return torch.upsample_bilinear2d(x, [p, q], corners)
