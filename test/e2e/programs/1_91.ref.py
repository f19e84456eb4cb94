# check: M=1, N=1
# check: M=5, N=131
# check: M=2, N=0
def cumsum_reverse(x):
    return torch.flip(torch.cumsum(torch.flip(x, [1]), 1), [1])
