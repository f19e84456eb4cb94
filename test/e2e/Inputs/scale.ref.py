# check: M=2, N=3, s=0.5
# check: M=1, N=1, s=2, k=3, T=f16
def scale(x, w, s: float, k: int):
    return x * w * s * k
