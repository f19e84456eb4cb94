# check: M=1, D=1, H=1
# check: M=5, D=24, H=67
# check: M=8, D=32, H=64, T=f64
# bench: M=64, D=256, H=688
def swiglu(x, w1, w3, w2):
    gate = torch.silu(torch.linear(x, w1))
    return torch.linear(gate * torch.linear(x, w3), w2)
