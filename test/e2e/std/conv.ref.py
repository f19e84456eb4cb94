# check: N=1, C=1, L=1, O=1, KL=1
# check: N=2, C=3, L=9, O=4, KL=3
# check: N=2, C=2, L=9, O=4, KL=3, stride=2, padding=1, groups=2
# check: N=1, C=2, L=9, O=3, KL=3, padding=2, dilation=2
# check: N=1, C=1, L=9, O=6, KL=3, groups=3, stride=3, padding=1
# check: N=0, C=1, L=9, O=2, KL=3
# check: N=1, C=2, L=9, O=3, KL=3, T=bf16
# bench: N=8, C=64, L=4096, O=64, KL=3, padding=1
# bench: N=8, C=1, L=4096, O=64, KL=5, padding=2, groups=64
def t_conv1d(x, w, b, stride: int, padding: int, dilation: int, groups: int):
    return torch.conv1d(x, w, b, [stride], [padding], [dilation], groups)

# check: N=1, C=1, L=1, O=1, KL=1
# check: N=2, C=4, L=9, O=3, KL=3
# check: N=2, C=4, L=9, O=3, KL=3, stride=2, padding=1, extra=1, groups=2
# check: N=1, C=2, L=9, O=3, KL=3, padding=2, dilation=2
# check: N=1, C=2, L=9, O=1, KL=3, stride=3
# bench: N=8, C=64, L=1024, O=32, KL=4, stride=2, padding=1
def t_conv_transpose1d(x, w, b, stride: int, padding: int, extra: int, groups: int, dilation: int):
    return torch.conv_transpose1d(x, w, b, [stride], [padding], [extra], groups, [dilation])

# check: N=2, C=3, L=9, O=4, KL=3
# bench: N=8, C=64, L=4096, O=64, KL=3
def t_conv1d_plain(x, w):
    return torch.conv1d(x, w)

# check: N=1, C=1, H=1, W=1, O=1, KH=1, KW=1
# check: N=2, C=3, H=7, W=9, O=4, KH=3, KW=3
# check: N=2, C=2, H=7, W=9, O=4, KH=3, KW=3, stride=2, padding=1, groups=2
# check: N=1, C=2, H=7, W=9, O=3, KH=3, KW=3, padding=2, dilation=2
# check: N=1, C=1, H=7, W=9, O=6, KH=3, KW=3, groups=3, stride=3, padding=1
# check: N=0, C=1, H=7, W=9, O=2, KH=3, KW=3
# check: N=1, C=2, H=7, W=9, O=3, KH=3, KW=3, T=bf16
# bench: N=4, C=64, H=56, W=56, O=64, KH=3, KW=3, padding=1
# bench: N=4, C=64, H=56, W=56, O=128, KH=3, KW=3, padding=1, stride=2
# bench: N=4, C=3, H=112, W=112, O=64, KH=7, KW=7, padding=3, stride=2
# bench: N=4, C=64, H=56, W=56, O=256, KH=1, KW=1
# bench: N=4, C=1, H=56, W=56, O=128, KH=3, KW=3, padding=1, groups=128
# bench: N=4, C=16, H=56, W=56, O=128, KH=3, KW=3, padding=1, groups=8
# bench: N=4, C=64, H=56, W=56, O=64, KH=3, KW=3, padding=2, dilation=2
# bench: N=4, C=64, H=56, W=56, O=64, KH=3, KW=3, padding=1, T=bf16
def t_conv2d(x, w, b, stride: int, padding: int, dilation: int, groups: int):
    return torch.conv2d(x, w, b, [stride, stride], [padding, padding], [dilation, dilation], groups)

# check: N=1, C=1, H=1, W=1, O=1, KH=1, KW=1
# check: N=2, C=4, H=7, W=9, O=3, KH=3, KW=3
# check: N=2, C=4, H=7, W=9, O=3, KH=3, KW=3, stride=2, padding=1, extra=1, groups=2
# check: N=1, C=2, H=7, W=9, O=3, KH=3, KW=3, padding=2, dilation=2
# check: N=1, C=2, H=7, W=9, O=1, KH=3, KW=3, stride=3
# bench: N=4, C=64, H=28, W=28, O=32, KH=4, KW=4, stride=2, padding=1
# bench: N=4, C=64, H=28, W=28, O=32, KH=3, KW=3, padding=1
# bench: N=4, C=64, H=28, W=28, O=16, KH=4, KW=4, stride=2, padding=1, groups=4
def t_conv_transpose2d(x, w, b, stride: int, padding: int, extra: int, groups: int, dilation: int):
    return torch.conv_transpose2d(x, w, b, [stride, stride], [padding, padding], [extra, extra], groups, [dilation, dilation])

# check: N=2, C=3, H=7, W=9, O=4, KH=3, KW=3
# bench: N=4, C=64, H=56, W=56, O=64, KH=3, KW=3
def t_conv2d_plain(x, w):
    return torch.conv2d(x, w)

# check: N=1, C=1, D=1, H=1, W=1, O=1, KD=1, KH=1, KW=1
# check: N=2, C=3, D=5, H=7, W=6, O=4, KD=3, KH=3, KW=3
# check: N=2, C=2, D=5, H=7, W=6, O=4, KD=3, KH=3, KW=3, stride=2, padding=1, groups=2
# check: N=1, C=2, D=5, H=7, W=6, O=3, KD=3, KH=3, KW=3, padding=2, dilation=2
# check: N=1, C=1, D=5, H=7, W=6, O=6, KD=3, KH=3, KW=3, groups=3, stride=3, padding=1
# check: N=0, C=1, D=5, H=7, W=6, O=2, KD=3, KH=3, KW=3
# check: N=1, C=2, D=5, H=7, W=6, O=3, KD=3, KH=3, KW=3, T=bf16
# bench: N=1, C=16, D=16, H=32, W=32, O=32, KD=3, KH=3, KW=3, padding=1
def t_conv3d(x, w, b, stride: int, padding: int, dilation: int, groups: int):
    return torch.conv3d(x, w, b, [stride, stride, stride], [padding, padding, padding], [dilation, dilation, dilation], groups)

# check: N=1, C=1, D=1, H=1, W=1, O=1, KD=1, KH=1, KW=1
# check: N=2, C=4, D=5, H=7, W=6, O=3, KD=3, KH=3, KW=3
# check: N=2, C=4, D=5, H=7, W=6, O=3, KD=3, KH=3, KW=3, stride=2, padding=1, extra=1, groups=2
# check: N=1, C=2, D=5, H=7, W=6, O=3, KD=3, KH=3, KW=3, padding=2, dilation=2
# check: N=1, C=2, D=5, H=7, W=6, O=1, KD=3, KH=3, KW=3, stride=3
# bench: N=1, C=32, D=8, H=14, W=14, O=16, KD=4, KH=4, KW=4, stride=2, padding=1
def t_conv_transpose3d(x, w, b, stride: int, padding: int, extra: int, groups: int, dilation: int):
    return torch.conv_transpose3d(x, w, b, [stride, stride, stride], [padding, padding, padding], [extra, extra, extra], groups, [dilation, dilation, dilation])

# check: N=2, C=3, D=5, H=7, W=6, O=4, KD=3, KH=3, KW=3
# bench: N=1, C=16, D=16, H=32, W=32, O=32, KD=3, KH=3, KW=3
def t_conv3d_plain(x, w):
    return torch.conv3d(x, w)

# check: N=2, C=3, H=9, W=11, O=4, KH=3, KW=2
# bench: N=4, C=32, H=56, W=56, O=64, KH=3, KW=3
def t_conv2d_tuples(x, w):
    return torch.conv2d(x, w, None, [2, 3], [1, 2], [1, 3])
