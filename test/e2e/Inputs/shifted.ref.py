# check: N=33
def shifted(x):
    return x * x
