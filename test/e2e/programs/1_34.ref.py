# check: B=1, C=1, H=1, W=2
# check: B=2, C=3, H=7, W=5
def instance_norm(x):
    return torch.instance_norm(x, None, None, None, None, True, 0.0, 1e-5, False)
