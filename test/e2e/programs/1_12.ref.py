# check: N=1, M=1
# check: N=7, M=13
# check: N=64, M=31
# check: N=0, M=3
def diag_matmul(a, b):
    return a[:, None] * b
