# check: N=2, C=8, O=12, H=9, W=10
# check: N=1, C=16, O=16, H=16, W=16
# check: N=3, C=8, O=33, H=7, W=5
def added(x, w, b, r):
    c = torch.conv_transpose2d(x, w, b, [2, 2], [1, 1])
    return torch.maximum(c + r, 0.1 * c)

# check: M=70, N=90, K=64
# check: M=128, N=256, K=96
# check: M=17, N=300, K=80
def gated(x, w, s, g):
    return g * torch.tanh(0.125 * torch.matmul(x, torch.transpose(w, 0, 1)) * s)
