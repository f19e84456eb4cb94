# check: N=1, D=1
# check: N=41, D=5
# check: N=0, D=5
# check: N=300, D=7, V=3
# input: ids = integers(0, V)
def scatter_add(ids, x, V: int):
    y = torch.zeros([V, x.size(1)], dtype=x.dtype, device=x.device)
    return y.index_add(0, ids, x)
