# check: K=1, M=1, N=1
# check: K=67, M=13, N=29
def matmul_tt(a, b):
    return torch.matmul(a.t(), b.t())
