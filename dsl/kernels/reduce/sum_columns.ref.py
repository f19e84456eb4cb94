# check: M=1, N=1
# check: M=131, N=7
# check: M=0, N=3
# bench: M=4096, N=512
def sum_columns(x):
    return x.sum(0)
