# check: N=1, C=1, L=3
# check: N=2, C=3, L=9
# check: N=2, C=3, L=9, k=2, s=1, pad=0, dil=2
# check: N=1, C=2, L=9, T=f64
# check: N=1, C=2, L=9, T=bf16
# bench: N=8, C=64, L=8192
def t_max_pool1d(x, k: int, s: int, pad: int, dil: int):
    return torch.max_pool1d(x, [k], [s], [pad], [dil])

# check: N=1, C=1, L=3
# check: N=2, C=3, L=9
# bench: N=8, C=64, L=8191
def t_max_pool1d_ceil(x):
    return torch.max_pool1d(x, [2], [2], [0], [1], True)

# check: N=1, C=1, L=3
# check: N=2, C=3, L=9
# check: N=2, C=3, L=9, whole=false
# check: N=2, C=3, L=9, k=2, s=1, pad=0
# bench: N=8, C=64, L=8192
def t_avg_pool1d(x, k: int, s: int, pad: int, whole: bool):
    return torch.avg_pool1d(x, [k], [s], [pad], False, whole)

# check: N=1, C=1, L=3
# check: N=2, C=3, L=9
# check: N=2, C=3, L=9, whole=false
# bench: N=8, C=64, L=8191
def t_avg_pool1d_ceil(x, whole: bool):
    return torch.avg_pool1d(x, [3], [2], [1], True, whole)

# check: N=1, C=1, L=3
# check: N=2, C=3, L=9
# check: N=2, C=3, L=9, size=1
# check: N=2, C=3, L=9, size=12
# bench: N=8, C=64, L=8192, size=64
def t_adaptive_avg_pool1d(x, size: int):
    return torch.adaptive_avg_pool1d(x, [size])

# check: N=1, C=1, L=3
# check: N=2, C=3, L=9
# check: N=2, C=3, L=9, size=1
# check: N=2, C=3, L=9, size=12
# bench: N=8, C=64, L=8192, size=64
def t_adaptive_max_pool1d(x, size: int):
    return torch.adaptive_max_pool1d(x, [size])[0]

# check: N=1, C=1, H=3, W=3
# check: N=2, C=3, H=7, W=10
# check: N=2, C=3, H=7, W=10, k=2, s=1, pad=0, dil=2
# check: N=1, C=2, H=7, W=10, T=f64
# check: N=1, C=2, H=7, W=10, T=bf16
# bench: N=8, C=64, H=112, W=112
# bench: N=8, C=64, H=112, W=112, k=2, s=2, pad=0
def t_max_pool2d(x, k: int, s: int, pad: int, dil: int):
    return torch.max_pool2d(x, [k, k], [s, s], [pad, pad], [dil, dil])

# check: N=1, C=1, H=3, W=3
# check: N=2, C=3, H=7, W=10
# bench: N=8, C=64, H=111, W=111
def t_max_pool2d_ceil(x):
    return torch.max_pool2d(x, [2, 2], [2, 2], [0, 0], [1, 1], True)

# check: N=1, C=1, H=3, W=3
# check: N=2, C=3, H=7, W=10
# check: N=2, C=3, H=7, W=10, whole=false
# check: N=2, C=3, H=7, W=10, k=2, s=1, pad=0
# bench: N=8, C=64, H=112, W=112
def t_avg_pool2d(x, k: int, s: int, pad: int, whole: bool):
    return torch.avg_pool2d(x, [k, k], [s, s], [pad, pad], False, whole)

# check: N=1, C=1, H=3, W=3
# check: N=2, C=3, H=7, W=10
# check: N=2, C=3, H=7, W=10, whole=false
# bench: N=8, C=64, H=111, W=111
def t_avg_pool2d_ceil(x, whole: bool):
    return torch.avg_pool2d(x, [3, 3], [2, 2], [1, 1], True, whole)

# check: N=1, C=1, H=3, W=3
# check: N=2, C=3, H=7, W=10
# check: N=2, C=3, H=7, W=10, size=1
# check: N=2, C=3, H=7, W=10, size=12
# bench: N=16, C=256, H=14, W=14, size=1
# bench: N=16, C=256, H=14, W=14, size=7
def t_adaptive_avg_pool2d(x, size: int):
    return torch.adaptive_avg_pool2d(x, [size, size])

# check: N=1, C=1, H=3, W=3
# check: N=2, C=3, H=7, W=10
# check: N=2, C=3, H=7, W=10, size=1
# check: N=2, C=3, H=7, W=10, size=12
# bench: N=16, C=256, H=14, W=14, size=7
def t_adaptive_max_pool2d(x, size: int):
    return torch.adaptive_max_pool2d(x, [size, size])[0]

# check: N=1, C=1, D=3, H=3, W=3
# check: N=2, C=3, D=5, H=7, W=6
# check: N=2, C=3, D=5, H=7, W=6, k=2, s=1, pad=0, dil=2
# check: N=1, C=2, D=5, H=7, W=6, T=f64
# check: N=1, C=2, D=5, H=7, W=6, T=bf16
# bench: N=2, C=32, D=16, H=56, W=56
def t_max_pool3d(x, k: int, s: int, pad: int, dil: int):
    return torch.max_pool3d(x, [k, k, k], [s, s, s], [pad, pad, pad], [dil, dil, dil])

# check: N=1, C=1, D=3, H=3, W=3
# check: N=2, C=3, D=5, H=7, W=6
# bench: N=2, C=32, D=15, H=55, W=55
def t_max_pool3d_ceil(x):
    return torch.max_pool3d(x, [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], True)

# check: N=1, C=1, D=3, H=3, W=3
# check: N=2, C=3, D=5, H=7, W=6
# check: N=2, C=3, D=5, H=7, W=6, whole=false
# check: N=2, C=3, D=5, H=7, W=6, k=2, s=1, pad=0
# bench: N=2, C=32, D=16, H=56, W=56
def t_avg_pool3d(x, k: int, s: int, pad: int, whole: bool):
    return torch.avg_pool3d(x, [k, k, k], [s, s, s], [pad, pad, pad], False, whole)

# check: N=1, C=1, D=3, H=3, W=3
# check: N=2, C=3, D=5, H=7, W=6
# check: N=2, C=3, D=5, H=7, W=6, whole=false
# bench: N=2, C=32, D=15, H=55, W=55
def t_avg_pool3d_ceil(x, whole: bool):
    return torch.avg_pool3d(x, [3, 3, 3], [2, 2, 2], [1, 1, 1], True, whole)

# check: N=1, C=1, D=3, H=3, W=3
# check: N=2, C=3, D=5, H=7, W=6
# check: N=2, C=3, D=5, H=7, W=6, size=1
# check: N=2, C=3, D=5, H=7, W=6, size=12
# bench: N=2, C=32, D=16, H=28, W=28, size=4
def t_adaptive_avg_pool3d(x, size: int):
    return torch.adaptive_avg_pool3d(x, [size, size, size])

# check: N=1, C=1, D=3, H=3, W=3
# check: N=2, C=3, D=5, H=7, W=6
# check: N=2, C=3, D=5, H=7, W=6, size=1
# check: N=2, C=3, D=5, H=7, W=6, size=12
# bench: N=2, C=32, D=16, H=28, W=28, size=4
def t_adaptive_max_pool3d(x, size: int):
    return torch.adaptive_max_pool3d(x, [size, size, size])[0]

# check: N=2, C=3, H=7, W=10
def t_avg_pool2d_override(x):
    return torch.avg_pool2d(x, [2, 2], [2, 2], [0, 0], False, True, 3)

# check: N=2, C=3, D=5, H=7, W=6
def t_avg_pool3d_override(x):
    return torch.avg_pool3d(x, [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, 3)
