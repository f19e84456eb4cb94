# check: B=1, H=1, G=1, S=1, S2=1, D=1
# check: B=2, H=4, G=2, S=13, S2=37, D=8
# check: B=1, H=4, G=2, S=33, S2=72, D=32, T=f16
# check: B=1, H=2, G=1, S=17, S2=129, D=16, T=bf16
# bench: B=2, H=8, G=8, S=512, S2=512, D=64
def online_attention(q, k, v):
    return torch.scaled_dot_product_attention(q, k, v, enable_gqa=True)
