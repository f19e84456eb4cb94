# check: N=1
# check: N=37
# bench: N=1024
# exact
def transpose_add(x):
    return x + x.t()
