# check: B=1, C=1, H=1, W=1
# check: B=3, C=5, H=7, W=4
def layer_norm3(x, ln_weight, ln_bias):
    return torch.layer_norm(x, ln_weight.size(), ln_weight, ln_bias, 1e-5)
