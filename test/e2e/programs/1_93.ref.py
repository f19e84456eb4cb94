# check: M=1, N=1
# check: M=5, N=131
def masked_cumsum(x, mask):
    return torch.cumsum(x * mask, 1)
