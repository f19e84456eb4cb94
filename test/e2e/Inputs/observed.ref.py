# check: N=3
# bench: N=4
# check: N=5, least=50
def observed(x, least: int):
    return 2 * x
