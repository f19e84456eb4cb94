# check: B=1, H=1, G=1, S=1, L=1, E=1, D=1
# check: B=2, H=4, G=2, S=5, L=7, E=8, D=3
# check: B=2, H=2, G=1, S=3, L=0, E=4, D=5
# check: B=1, H=2, G=2, S=9, L=9, E=16, D=16, T=bf16
# check: B=1, H=2, G=2, S=9, L=9, E=16, D=16, T=f64
# bench: B=2, H=8, G=8, S=512, L=512, E=64, D=64
# bench: B=2, H=8, G=2, S=256, L=256, E=64, D=64, T=bf16
def t_attention(q, k, v):
    return torch.scaled_dot_product_attention(q, k, v, enable_gqa=True)

# check: B=1, H=1, G=1, S=1, L=1, E=1, D=1
# check: B=2, H=4, G=1, S=11, L=11, E=8, D=5
# bench: B=2, H=8, G=8, S=512, L=512, E=64, D=64
def t_attention_causal(q, k, v):
    return torch.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

# check: B=2, H=4, G=2, S=5, L=7, E=8, D=3
# bench: B=2, H=8, G=8, S=512, L=512, E=64, D=64
def t_attention_mask(q, k, v, m):
    return torch.scaled_dot_product_attention(q, k, v, m, scale=0.3, enable_gqa=True)

# check: H=3, S=5, L=7, E=8, D=3
# bench: H=16, S=256, L=256, E=64, D=64
def t_attention_3d(q, k, v):
    return torch.scaled_dot_product_attention(q, k, v)
