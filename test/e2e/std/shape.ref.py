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

# check: A=1, B=1, C=1
# check: A=3, B=5, C=2
def t_glu_dim(x):
    return torch.glu(x, 1), 2*x, torch.glu(torch.stack([x, x]), 0)

# check: A=2, B=2, C=2
# check: A=3, B=5, C=17
# check: A=1, B=5, C=3
def t_diff_dims(x):
    return torch.diff(x, 1, 0), torch.diff(x, 1, 1), torch.diff(x, 1, 2)

# check:
def t_cross_dims(x, y):
    return torch.linalg_cross(x, y, dim=0), torch.linalg_cross(x, y, dim=1), torch.linalg_cross(x, y, dim=2)

# check: A=1, B=1, C=1
# check: A=3, B=5, C=17
def t_normalize_dims(x):
    p = x / torch.clamp_min(torch.linalg_vector_norm(x, 2.0, [0], True), 1e-12)
    q = x / torch.clamp_min(torch.linalg_vector_norm(x, 2.0, [2], True), 1e-12)
    r = x / torch.clamp_min(torch.linalg_vector_norm(x, 1.0, [1], True), 1e-12)
    return p, q, r

# check: N=1, C=1, L=1
# check: N=3, C=5, L=7
def t_prelu_one(x, w, v):
    return torch.prelu(x, w), torch.prelu(v, w)

# check: ...=(), N=1
# check: ...=(3, 5), N=16
# check: ...=(3,), N=17
# check: ...=(3,), N=17, T=i64
def t_median(x):
    v = torch.median(x, -1)[0]
    return v, v

# check: ...=(2,), N=1
# check: ...=(3, 5), N=16
# check: ...=(3,), N=17, q=0.25
# check: ...=(3,), N=10, q=1
# check: ...=(3,), N=10, q=0
# check: ...=(3,), N=101, q=0.123
def t_quantile(x, q: float):
    return torch.quantile(x, q, -1)

# check: B=1, N=1, M=1
# check: B=3, N=17, M=5
# check: B=3, N=17, M=5, right=true
def t_searchsorted(x, z, y, right: bool):
    s = torch.sort(x, 1)[0]
    r = torch.sort(z, 0)[0]
    return torch.searchsorted(s, y, right=right), torch.searchsorted(r, y, right=right), torch.bucketize(y, r, right=right)
