# check: B=1, H=1, S=1, D=1
# check: B=2, H=3, S=37, D=16
def attention(q, k, v):
    return torch.scaled_dot_product_attention(q, k, v)
