# check: B=1, H=1, G=1, S=1, S2=1, D=1
# check: B=2, H=4, G=2, S=13, S2=37, D=8
# check: B=1, H=4, G=2, S=33, S2=72, D=32, T=f16
# check: B=1, H=2, G=1, S=17, S2=129, D=16, T=bf16
# bench: B=2, H=8, G=8, S=512, S2=512, D=64
def online_attention(q, k, v):
    if q.element_size() < 8:
        return torch.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    o = torch.empty_like(q)  # a head at a time: all together have B*H*S*S2 scores
    shared = q.size(1) // k.size(1)
    for b in range(q.size(0)):
        for h in range(q.size(1)):
            g = h // shared
            o[b, h] = torch.scaled_dot_product_attention(q[b, h], k[b, g], v[b, g])
    return o
