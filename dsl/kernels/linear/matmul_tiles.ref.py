# check: M=1, K=1, N=1
# check: M=19, K=101, N=23
# check: M=2, K=0, N=3
# bench: M=512, K=512, N=512
def matmul_tiles(x, w):
    return torch.matmul(x, w)
