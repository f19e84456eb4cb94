# check: N=1, C=1, H=1, W=1
# check: N=2, C=5, H=7, W=3
# bench: N=8, C=64, H=56, W=56
# input: v = uniform(0.5, 2)
# wrt: x, w, b
def batch_norm_relu(x, m, v, w, b):
    return torch.relu(torch.batch_norm(x, w, b, m, v, False, 0.1, 1e-5, False))
