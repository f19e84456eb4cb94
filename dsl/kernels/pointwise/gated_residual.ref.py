# check: M=1, N=1
# check: M=7, N=131
# bench: M=2048, N=1024
def gated_residual(x, r, gate, bias):
    h = torch.silu(x + bias) * torch.sigmoid(gate)
    return torch.clamp(r + h, -3.0, 3.0)
