# check: N=33
def shifted(x):
    return 1.001 * x * x
