# check: M=1, N=4
# check: M=9, N=37
# check: M=5, N=100, K=1
# bench: M=512, N=1000, K=8
# exact
def top(x, K: int):
    return torch.topk(x, K, 1)
