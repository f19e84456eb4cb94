# check: N=1, C=1, L=1, O=1, KL=1
# check: N=2, C=3, L=41, O=5, KL=3
def conv1d_dilated_strided(x, conv1d_weight):
    return torch.conv1d(x, conv1d_weight, None, [3], [0], [4])
