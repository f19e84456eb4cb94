# check: N=2, C=3, H=6, W=10, O=8
# check: N=1, C=17, H=4, W=6, O=70
# check: N=0, C=3, H=6, W=10, O=8
def pooled(x, g, w, b, s):
    h = torch.relu(x * g.view([1, -1, 1, 1]))
    t = torch.conv2d(h, w.unsqueeze(2).unsqueeze(3), b)
    u = (t - s.view([1, -1, 1, 1])) * s.view([1, -1, 1, 1]) / 3
    return torch.avg_pool2d(u, [2, 2], [2, 2])

# check: M=700, K=33, N=5
# check: M=700, K=8, N=17
# check: M=3, K=33, N=5
def total(x, w, b, s):
    t = torch.matmul(x, w.t()) + b
    return torch.sum(s.unsqueeze(1) - t / 2, [1]) * 3

# check: N=1, C=2, H=4, W=5, O=600
# check: N=2, C=3, H=5, W=4, O=7
def means(x, w, b):
    return torch.mean(torch.conv2d(x, w, b, [1, 1], [1, 1]), [2, 3])

# check: M=600, K=33, N=5
def kept(x, w):
    t = torch.matmul(x, w.t())
    return torch.sum(t, [1]), torch.amax(t, [1], False)
