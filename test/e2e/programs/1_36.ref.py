# check: B=1, C=1, H=1, W=1
# check: B=2, C=13, H=7, W=5
def rms_norm(x):
    return x / torch.sqrt(torch.mean(x * x, 1, True) + 1e-5)
