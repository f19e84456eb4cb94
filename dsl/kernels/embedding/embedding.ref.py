# check: B=1, L=1, V=1, D=1
# check: B=3, L=7, V=11, D=5
# check: B=3, L=7, V=11, D=5, T=f16
# check: B=0, L=7, V=11, D=5
# bench: B=64, L=128, V=10000, D=256
# input: ids = integers(0, V)
# exact
def lookup(ids, table):
    return torch.embedding(table, ids)
