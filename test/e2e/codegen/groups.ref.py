# check: N=2, C=8, P=256
# check: N=3, C=12, P=300
# check: N=2, C=4, P=1031
# check: N=2, C=64, P=5
def means(x, weight, bias):
    return torch.mean(torch.group_norm(x, 4, weight, bias, 1e-5, False), [2], False)

# check: N=2, C=6, H=5, W=7
# check: N=2, C=4, H=24, W=16
def gated(x, weight, bias):
    g = torch.group_norm(torch.tanh(x), 2, weight, bias, 1e-5, False)
    y = g * torch.sigmoid(g)
    return (y, torch.amax(y, [2, 3], False))

# check: N=2, H=9, W=12
# check: N=1, H=20, W=18
def convolved(x, w, b):
    c = torch.conv2d(x, w, b, [1, 1], [0, 0], [1, 1], 2)
    return torch.maximum(c, 0.1 * c)

# check: N=2, C=6, H=22, W=23
# check: N=1, C=4, H=36, W=32
# check: N=3, C=2, H=8, W=9
def pooled(x, weight, bias):
    g = torch.group_norm(x, 2, weight, bias, 1e-5, False)
    return torch.clamp(torch.max_pool2d(g, [4, 4]), -0.5, 1.0)

# check: N=2, C=6, H=22, W=23
# check: N=1, C=4, H=36, W=32
def pooled_over(x, weight, bias):
    return torch.clamp(torch.max_pool2d(torch.group_norm(x, 2, weight, bias, 1e-5, False), [4, 4], [2, 2]), -0.5, 1.0)

# check: N=2, C=6, H=34, W=34
# check: N=1, C=8, H=10, W=66
def pooled_first(x, weight, bias):
    h = x * torch.tanh(torch.log1p(torch.exp(x)))
    return torch.group_norm(torch.max_pool2d(h, [2, 2]), 2, weight, bias, 1e-5, False)
