# check: M=1, N=1, s=0
# check: M=2, N=3, s=0.5
def scale(x, s: float, k: int):
    return x * s * k + s * 1e-3
