# check: M=1, N=1
# check: M=7, N=131
# bench: M=2048, N=1024
def add_layer_norm(x, r, w, b):
    s = x + r
    return s, torch.layer_norm(s, [s.size(1)], w, b, 1e-5)
