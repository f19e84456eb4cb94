# check: B=1, H=1, S=1, D=2
# check: B=2, H=3, S=19, D=8
# check: B=1, H=2, S=128, D=64
# bench: B=2, H=16, S=512, D=64
def rope(x, base: float):
    R = x.size(3) // 2
    r = torch.arange(R, dtype=x.dtype, device=x.device)
    t = torch.arange(x.size(2), dtype=x.dtype, device=x.device)
    a = t[:, None] * torch.pow(base, -2.0 * r / x.size(3))[None, :]
    c, s = torch.cos(a), torch.sin(a)
    x1, x2 = x[:, :, :, :R], x[:, :, :, R:]
    return torch.cat([x1 * c - x2 * s, x2 * c + x1 * s], 3)
