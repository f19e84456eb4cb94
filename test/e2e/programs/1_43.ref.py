# check: B=1, C=1, D=5, H=5, W=5
# check: B=2, C=3, D=13, H=11, W=9
# check: B=1, C=2, D=4, H=5, W=7, K=2, S=2, P=0, L=1
def max_pool3d(x, K: int, S: int, P: int, L: int):
    return torch.max_pool3d(x, [K, K, K], [S, S, S], [P, P, P], [L, L, L])
