# check: M=1, N=1
# check: M=5, N=131
# check: M=2, N=0
def cumsum_exclusive(x):
    return torch.cumsum(x, 1) - x
