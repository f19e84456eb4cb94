# check: ...=(1,), V=1, D=1
# check: ...=(3, 5), V=11, D=7
# check: ...=(3,), V=4, D=2, T=bf16
# bench: ...=(64, 128), V=10000, D=256
# bench: ...=(64, 128), V=10000, D=256, T=f16
# input: i = integers(0, V)
def t_embedding(i, w):
    return torch.embedding(w, i)

# check: N=9, V=11, D=7
# bench: N=8192, V=10000, D=256
# input: i = integers(0, V)
def t_embedding32(i, w):
    return torch.embedding(w, i)

# check: N=1, C=4, H=1, W=1
# check: N=2, C=18, H=3, W=5, r=3
# bench: N=8, C=64, H=64, W=64
def t_pixel_shuffle(x, r: int):
    return torch.pixel_shuffle(x, r)

# check: N=1, C=1, H=2, W=2
# check: N=2, C=3, H=6, W=9, r=3
# bench: N=8, C=16, H=128, W=128
def t_pixel_unshuffle(x, r: int):
    return torch.pixel_unshuffle(x, r)

# check: N=1, C=2, H=1, W=1
# check: N=2, C=12, H=3, W=5, g=3
# bench: N=8, C=64, H=64, W=64, g=4
def t_channel_shuffle(x, g: int):
    return torch.channel_shuffle(x, g)
