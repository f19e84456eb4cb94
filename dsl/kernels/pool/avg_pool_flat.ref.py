# check: N=1, C=1, H=1, W=1, K=1
# check: N=3, C=17, H=5, W=7, K=10
# bench: N=16, C=256, H=14, W=14, K=1000
def pooled_linear(x, w, b):
    return torch.linear(x.mean([2, 3]), w, b)
