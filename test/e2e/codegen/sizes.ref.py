# check: N=1, D=1
# check: N=37, D=2
# check: N=1000, D=1, E=7, K=3, capacity_factor=1.1
# check: N=2, D=1, E=64, capacity_factor=0.5
def capacity(x, E: int, K: int, capacity_factor: float):
    n = x.size(0)
    C = int(max(1.0, capacity_factor*n*K//E))
    e = torch.arange(E, device=x.device)[:, None]
    c = torch.arange(C, device=x.device)[None, :]
    return x[e*c % n, 0], torch.tensor(C)

# check: N=1
# check: N=10
# check: N=15, scale=0.7
# check: N=101, scale=0.5
def scaled(x, scale: float):
    n = x.size(0)
    v = scale*n
    low = int(v)
    high = low + 1 if v > low else low
    nearest = low + 1 if v - low > 0.5 or (v - low == 0.5 and low % 2 == 1) else low
    return x[0:low], x[0:high], x[0:min(nearest, n)], x[0].repeat(low + 1)

# check: N=1
# check: N=5
# check: N=64
# check: N=100, L=3
def powers(x, L: int):
    n = x.size(0)
    p = 1
    while p < n:
        p *= 2
    z = torch.arange(int(2**L), device=x.device) % n
    return torch.constant_pad_nd(x, [0, p - n]), x[z]
