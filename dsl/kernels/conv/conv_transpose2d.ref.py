# check: N=1, C=1, H=1, W=1, O=1
# check: N=2, C=3, H=5, W=7, O=4
# bench: N=4, C=32, H=28, W=28, O=16
def upsample(x, w, b):
    return torch.conv_transpose2d(x, w, b, [2, 2], [1, 1])
