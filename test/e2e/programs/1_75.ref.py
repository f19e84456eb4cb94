# check: N=1, C=4, H=2, W=3, OG=1, KH=3, KW=5
# check: N=2, C=8, H=5, W=7, OG=3, KH=3, KW=5
def conv_transposed_grouped(x, conv_transpose2d_weight):
    return torch.conv_transpose2d(x, conv_transpose2d_weight, None, [2, 3], [1, 2], [0, 0], 4, [2, 1])
