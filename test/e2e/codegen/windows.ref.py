# check: N=2, C=10, H=63, W=53
# check: N=1, C=4, H=260, W=260
# check: N=1, C=3, H=18, W=20
def pooled(x):
    return (torch.max_pool2d(x, [4, 4], [1, 1], [1, 1]), torch.avg_pool2d(x, [4, 4], [1, 1], [1, 1]))

# check: N=2, C=9, H=61, W=66
# check: N=2, C=9, H=61, W=65
# check: N=1, C=16, H=132, W=132
def depthwise(x, w):
    return torch.conv2d(x, w, None, [1, 1], [0, 0], [1, 1], int(x.size(1)))

# check: N=2, C=10, H=73, W=96
# check: N=2, C=10, H=74, W=95
def apart(x):
    y = torch.max_pool2d(x, [3, 5], [2, 1], [0, 2])
    z = torch.avg_pool2d(x, [3, 1], [2, 1]) * 3 + torch.max_pool2d(-x, [3, 1], [2, 1])
    return (y, z)
