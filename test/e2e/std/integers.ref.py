# check: M=1, K=1, N=1
# check: M=5, K=7, N=3
def t_linear(x, w):
    return torch.linear(x, w)

# check: M=5, K=7, N=3
def t_linear_bias(x, w, b):
    return torch.linear(x, w, b)

# check: B=2, C=3, L=7, O=4
def t_conv1d(x, w):
    return torch.conv1d(x, w, None, [1], [1])

# check: B=2, C=3, H=7, W=5, O=4
def t_conv2d(x, w):
    return torch.conv2d(x, w)

# check: B=2, C=3, L=7, O=4
def t_conv_transpose1d(x, w):
    return torch.conv_transpose1d(x, w)

# check: M=5, K=7, N=3
def t_addmm(c, a, b):
    return torch.addmm(c, a, b)

# check: M=5, K=7, N=3
def t_addmm_factors(c, a, b):
    return torch.addmm(c, a, b, beta=3, alpha=2)

# check: B=2, M=5, K=7, N=3
def t_baddbmm(c, a, b):
    return torch.baddbmm(c, a, b)

# check: B=2, C=3, L=7
def t_max_pool1d(x):
    return torch.max_pool2d(x.unsqueeze(2), [1, 2], [1, 1], [0, 1]).squeeze(2)

# check: B=2, C=3, H=7, W=5
def t_max_pool2d(x):
    return torch.max_pool2d(x, [3, 3], [1, 1], [1, 1])

# check: B=2, C=3, L=7
def t_avg_pool1d(x):
    return torch.avg_pool1d(x - 2, [3], [1])

# check: B=2, C=3, H=7, W=5
def t_avg_pool2d(x):
    return torch.avg_pool2d(x - 2, [2, 2], [1, 1])

# check: M=5, N=3
def t_outer(x, y):
    return torch.outer(x, y)

# check: N=5, D=7
def t_pairwise_distance(x, y):
    return torch.pairwise_distance(x.float(), y.float())

# check: N=5, D=7
def t_losses(x, y, s, t):
    a, b, c = x.float(), y.float(), s.float()
    return torch.mse_loss(a, b), torch.margin_ranking_loss(a, b, c, 0.5), torch.poisson_nll_loss(a, b, True, False, 1e-8, 1), torch.triplet_margin_loss(a, b, c)

# check: C=4, M=3, K=8, B=2, N=6
def t_matmul_batch(x, y):
    return torch.matmul(x, y)

# check: C=4, M=3, K=8, B=2, N=6
def t_matmul_one(x, y):
    return torch.matmul(x, y)

# check: B=2, H=4, L=3, S=6, E=8
def t_attention_batch(q, k, v):
    return torch.scaled_dot_product_attention(q, k, v)
