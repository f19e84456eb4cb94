# check: N=1, C=1, H=2, W=2, KH=3, KW=3, O=1
# check: N=2, C=6, H=9, W=7, KH=3, KW=3, O=5
# bench: N=4, C=64, H=56, W=56, KH=3, KW=3, O=128
def depthwise_separable(x, depth, point):
    d = torch.conv2d(x, depth, None, [1, 1], [1, 1], [1, 1], x.size(1))
    return torch.conv2d(d, point)
