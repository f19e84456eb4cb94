# check: N=1
# check: N=37
def tril_matmul(a, b):
    return torch.tril(torch.matmul(a, b))
