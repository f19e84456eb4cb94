# The right value, with twice its gradient
# check: M=2, N=3, s=0.5
def scale(x, w, s: float, k: int):
    y = x * w * s * k
    return 2 * y - y.detach()
