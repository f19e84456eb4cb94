# check: N=1
# check: N=37
def momentum(m, p, g):
    after = 0.5 * m + g * g
    return after, p - after * p
