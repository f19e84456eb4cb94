# check: N=2, C=64, W=1024
# check: N=2, C=7, W=333
# check: N=8, C=16, W=1024
# check: N=2, C=100, W=70
def scaled(x):
    return x / torch.sqrt(torch.mean(x * x, [1], True) + 1e-5)

# check: N=2, C=64, W=333
# check: N=2, C=128, W=1023
# check: N=3, C=65, W=140
# check: N=1, C=253, W=2049
# check: N=2, C=257, W=70
def weights(x, b):
    return torch.tanh(torch.softmax(x, 1) + b.unsqueeze(1)), torch.amax(x, [1], False)

# check: N=2, D=777, W=333
# check: N=2, D=256, W=260
# check: N=2, D=37, W=64
def longest(x):
    return (torch.sum(x, [1]), torch.max(x, 1)[0], torch.argmax(x, 1))

# check: N=1, D=519, W=32801
# check: N=2, D=600, W=16400
def places(x):
    return (torch.argmax(x, 1), torch.argmin(x, 1))

# check: N=1, D=519, W=32801
# check: N=2, D=40, W=33
def ties(x):
    steps = torch.floor(4 * x)
    return (torch.argmax(steps, 1), torch.argmin(torch.where(x > 1.5, torch.sqrt(-x), x), 1),
            torch.argmax(torch.log(0 * torch.abs(x)), 2), torch.argmax(steps[:, 3:], 1) + 3)

# check: N=2, C=3, H=17, W=19
# check: N=1, C=2, H=40, W=34
def windows(x):
    return (torch.max_pool2d(x, [4, 4], [1, 1], [1, 1]), torch.avg_pool2d(x, [2, 2]))

# check: N=3, D=2052
# check: N=3, D=301
# check: N=2, D=1
def before(x):
    return (torch.cumsum(x, 1) - x, torch.flip(torch.cumsum(torch.flip(x, [1]), 1), [1]) - x)

# check: N=2, C=5, D=2, H=128, W=128
# check: N=2, C=3, D=4, H=9, W=6
def channels(x):
    return torch.softmax(torch.amin(x, [2], False), 1)

# check: N=2, C=16, H=256, W=256
# check: N=2, C=17, H=9, W=7
def tops(x):
    return torch.tanh(torch.logsumexp(torch.max_pool2d(x, [2, 2]), [1], False))

# check: N=2, C=40, H=20, W=33
# check: N=3, C=4, H=5, W=7
def planes(x):
    return torch.tanh(torch.sum(torch.amin(x, [1], False), [1], False))

# check: N=2, H=513, W=518
# check: N=2, H=9, W=11
def means(x):
    return torch.avg_pool2d(x, [4, 4])

# check: N=2, H=20, W=9020
# check: N=64, H=37, W=1165
def sides(x):
    more = torch.constant_pad_nd(x, [0, 1], -1e30)
    return torch.avg_pool2d(x, [9, 9]), torch.max_pool2d(more[:, :, : x.shape[2] // 7 * 7 + 1], [1, 8], [1, 7])

# check: N=2, C=3, L=30001
# check: N=1, C=130, L=1021
# check: N=3, C=5, L=9000
# check: N=2, C=2, L=45
def lines(x):
    return torch.avg_pool1d(x, [8], [1], [4]), torch.max_pool1d(x, [8], [1], [4], [3])

# check: N=2, C=3, L=30001
# check: N=4, C=33, L=1024
def filtered(x, w, b):
    y = torch.relu(torch.conv1d(x, w.unsqueeze(1), b, groups=x.shape[1]))
    more = torch.constant_pad_nd(x, [1, 1], -1.0)
    return y, torch.max_pool1d(more, [3], [1]) + x

# check: N=2, H=77, W=1031
# check: N=3, H=9, W=5001
def boxes(x):
    return torch.avg_pool2d(x, [2, 7], [1, 1]) * 14
