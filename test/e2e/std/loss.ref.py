# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# check: ...=(5, 13), T=f64
# check: ...=(5, 13), T=bf16
# bench: ...=(512, 1024)
def t_mse_loss(x, y):
    return torch.mse_loss(x, y)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# check: ...=(5, 13), T=f64
# check: ...=(5, 13), T=bf16
# bench: ...=(512, 1024)
def t_l1_loss(x, y):
    return torch.l1_loss(x, y)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# check: ...=(9,), beta=0
# bench: ...=(512, 1024)
def t_smooth_l1_loss(x, y, beta: float):
    return torch.smooth_l1_loss(x, y, 1, beta)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# bench: ...=(512, 1024)
def t_huber_loss(x, y):
    return torch.huber_loss(x, y, 1, 0.7)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# bench: ...=(512, 1024)
# input: y = uniform(0, 1)
def t_kl_div(x, y):
    return torch.kl_div(x, y)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# bench: ...=(512, 1024)
# input: y = coin(0.5)
def t_kl_div_zero(x, y):
    return torch.kl_div(x, y)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# bench: ...=(512, 1024)
def t_kl_div_log(x, y):
    return torch.kl_div(x, y, 1, log_target=True)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# bench: ...=(512, 1024)
# input: x = uniform(0, 1)
# input: y = uniform(0, 1)
def t_binary_cross_entropy(x, y, w):
    return torch.binary_cross_entropy(x, y, w)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# bench: ...=(512, 1024)
# input: x = coin(0.5)
# input: y = coin(0.5)
def t_binary_cross_entropy_ends(x, y):
    return torch.binary_cross_entropy(x, y)

# check: ...=(1,), C=1
# check: ...=(5,), C=7
# bench: ...=(512), C=1024
# input: x = normal(0, 30)
# input: y = uniform(0, 1)
# input: p = uniform(0.5, 2)
def t_bce_with_logits(x, y, w, p):
    return torch.binary_cross_entropy_with_logits(x, y, w, p)

# check: N=1, C=1
# check: N=11, C=7
# check: N=31, C=3, ignore=1
# bench: N=4096, C=1000
# input: t = integers(0, C)
# input: w = uniform(0.5, 2)
def t_nll_loss(x, t, w, ignore: int):
    return torch.nll_loss_nd(x, t, w, 1, ignore)

# check: N=1, C=1
# check: N=11, C=7
# check: N=31, C=3, ignore=1
# check: N=31, C=5, ignore=2, smooth=0.1
# bench: N=4096, C=1000
# input: t = integers(0, C)
# input: w = uniform(0.5, 2)
# input: x = normal(0, 5)
def t_cross_entropy(x, t, w, ignore: int, smooth: float):
    return torch.cross_entropy_loss(x, t, w, 1, ignore, smooth)

# check: N=1, C=1, H=1, W=1
# check: N=2, C=5, H=3, W=4
# bench: N=4, C=21, H=128, W=128
# input: t = integers(0, C)
def t_cross_entropy_image(x, t):
    return torch.cross_entropy_loss(x, t)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# bench: ...=(512, 1024)
# input: y = sign()
def t_hinge_embedding_loss(x, y):
    return torch.hinge_embedding_loss(x, y, 0.8)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# bench: ...=(512, 1024)
# input: y = sign()
def t_margin_ranking_loss(x, z, y):
    return torch.margin_ranking_loss(x, z, y, 0.3)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# bench: ...=(512, 1024)
# input: y = sign()
def t_soft_margin_loss(x, y):
    return torch.soft_margin_loss(x, y)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# bench: ...=(512, 1024)
def t_poisson_nll_loss(x, y):
    return torch.poisson_nll_loss(x, y, True, False, 1e-8, 1)

# check: ...=(1,)
# check: ...=(7,)
# check: ...=(5, 13)
# bench: ...=(512, 1024)
# input: x = uniform(0.1, 3)
def t_poisson_nll_loss_plain(x, y):
    return torch.poisson_nll_loss(x, y, False, False, 1e-8, 1)

# check: N=1, D=1
# check: N=7, D=13
# check: N=5, D=9, p=1
# check: N=5, D=9, p=3
# bench: N=2048, D=512
def t_pairwise_distance(x, y, p: float):
    return torch.pairwise_distance(x, y, p)

# check: N=1, D=1
# check: N=7, D=13
# check: N=7, D=13, swap=true
# bench: N=2048, D=512
def t_triplet_margin_loss(a, p, n, swap: bool):
    return torch.triplet_margin_loss(a, p, n, 0.9, 2.0, 1e-6, swap)

# check: N=1, D=1
# check: N=7, D=13
# bench: N=2048, D=512
def t_cosine_similarity(x, y):
    return torch.cosine_similarity(x, y)

# check: N=1, D=1
# check: N=7, D=13
# bench: N=2048, D=512
# input: t = sign()
def t_cosine_embedding_loss(x, y, t):
    return torch.cosine_embedding_loss(x, y, t, 0.1)
