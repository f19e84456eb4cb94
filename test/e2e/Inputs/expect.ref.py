# bench: N=4
def small(x):
    return 2 * x


# bench: N=4
def modest(x):
    return 2 * x


# bench: N=4
def other(x):
    return 2 * x
