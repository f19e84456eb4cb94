# check: N=1, C=1, H=1, W=1
# check: N=2, C=3, H=7, W=10
# check: N=1, C=2, H=9, W=5, T=bf16
# bench: N=8, C=64, H=112, W=112
def pool(x):
    return torch.max_pool2d(x, [3, 3], [2, 2], [1, 1])
