# check: M=1, K=32, N=1
# check: M=3, K=64, N=5, G=16
# check: M=7, K=128, N=9
# input: w = integers(0, 16)
# input: zero = integers(0, 16)
def int4_linear(x, w, scale, zero, G: int):
    s = scale.repeat_interleave(G, 1)
    z = zero.repeat_interleave(G, 1)
    return torch.matmul(x, ((w - z) * s).t())
