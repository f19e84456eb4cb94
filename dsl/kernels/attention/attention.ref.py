# check: B=1, H=1, G=1, S=1, S2=1, D=1
# check: B=1, H=2, G=1, S=3, S2=0, D=4
# check: B=2, H=4, G=2, S=13, S2=19, D=8
# check: B=1, H=4, G=1, S=1, S2=65, D=32
# check: B=1, H=2, G=2, S=9, S2=9, D=16, T=bf16
# bench: B=2, H=8, G=8, S=256, S2=256, D=64
def attention(q, k, v):
    if q.element_size() < 8:
        return torch.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    o = torch.empty_like(q)  # a head at a time: all together have B*H*S*S2 scores
    shared = q.size(1) // k.size(1)
    for b in range(q.size(0)):
        for h in range(q.size(1)):
            g = h // shared
            o[b, h] = torch.scaled_dot_product_attention(q[b, h], k[b, g], v[b, g])
    return o
