# check: M=2, N=70001
# check: M=2, N=131072
# check: M=140, N=33000
# input: x = normal(1000, 1)
def rows(x):
    v = torch.var(x, [1], False)
    m = torch.mean(x, [1], True)
    return (v, (x - m) * torch.rsqrt(v + 1e-5).unsqueeze(1))

# check: M=64, N=1000
# check: M=64, N=30000
# check: M=67, N=1000
# input: x = normal(1000, 1)
def columns(x):
    return torch.var(x, [0], False)

# check: N=3, C=4, H=130, W=128
# check: N=5, C=3, H=129, W=127
# input: x = normal(100, 1)
def batches(x, weight, bias):
    return torch.batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5, False)
