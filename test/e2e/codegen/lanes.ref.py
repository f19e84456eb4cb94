# check: M=1, N=4
# check: M=3, N=61
# check: M=2, N=260
# check: M=5, N=133, T=f16
# check: M=3, N=140, T=f64
def apart(x):
    n = x.size(1)
    w = n // 4
    j = torch.arange(w, device=x.device)
    return x[:, 2*j] + 2*x[:, 3*j + 1] + 3*x[:, 4*j + 3] - x[:, n - 1 - j] - 5*x[:, n - 1 - 3*j]

# check: M=1, N=1
# check: M=2, N=17
# check: M=4, N=75, K=1
# check: M=5, N=130, K=5
# check: M=3, N=64, T=bf16
def windows(x, K: int):
    n = x.size(1)
    p = torch.constant_pad_nd(x, [K + 2, 2*K + 2, 1, 1], -1.0)
    y = torch.full_like(x, -1e30)
    for r in range(3):
        for s in range(K):
            y = torch.maximum(y, p[r:r + x.size(0), 2 + 2*s:2 + 2*s + n])
    lo = torch.constant_pad_nd(x, [K, K + 2], 1.0)
    hi = torch.constant_pad_nd(x, [K, K + 2], 2.0)
    j = 2 * torch.arange(n // 2 + 1, device=x.device)
    z = torch.zeros([x.size(0), n // 2 + 1], dtype=x.dtype, device=x.device)
    for s in range(K):
        z = z + lo[:, j - s + K] * hi[:, j + s + K]
    return y, z

# check: B=1, M=1, N=1
# check: B=2, M=5, N=23
# check: B=3, M=7, N=133
# check: B=1, M=65, N=600
def columns(x):
    return torch.softmax(x, 1), torch.sum(x * x, 1), torch.cumsum(x, 1)

# check: M=1
# check: M=1023
# check: M=70001
# check: M=300000
# input: k = integers(0, 8)
def whole(x, k):
    return torch.sum(x), torch.argmax(x), torch.argmin(x), torch.all(k < 4), torch.any(k == 7), torch.sum(k == 1), torch.max(k)

# check: A=1, B=1, C=1
# check: A=3, B=5, C=67
# check: A=300, B=4, C=129
# check: A=2, B=3, C=70000
def whole_nested(x):
    keep = torch.arange(x.size(2), device=x.device)[None, None, :] <= torch.arange(x.size(0), device=x.device)[:, None, None]
    return torch.sum(x), torch.sum(torch.where(keep, x, torch.zeros_like(x)))

# check: M=1, N=1
# check: M=3, N=5
# check: M=40, N=37
# check: M=2, N=133
# input: x = integers(-90, 90)
# input: v = integers(-9, 9)
def divided(x, v):
    n = x.size(1)
    j = torch.arange(n, device=x.device)
    y = torch.div(x, torch.minimum(j + 3, torch.full_like(j, n)) - j, rounding_mode="floor")
    z = torch.remainder(x, j - n)
    apart = torch.arange(x.size(0), device=x.device)[:, None] - j[None, :]
    divisor = torch.where(apart > 0, apart, torch.ones_like(apart))
    none = torch.zeros_like(x)
    s = torch.sum(torch.where(apart > 0, torch.remainder(x, divisor), none), 1)
    t = torch.sum(torch.where((apart > 0) & (x > 2), torch.div(x, divisor, rounding_mode="floor"), none), 1)
    left = torch.where(v == 3, torch.ones_like(v), v - 3)
    parts = torch.where(v == 3, torch.zeros_like(v), torch.div(v, left, rounding_mode="floor") + torch.remainder(v, left))
    u = torch.div(v, n - j, rounding_mode="floor") + parts
    w = torch.div(v + 9, n - j, rounding_mode="floor")
    return y, z, s, t, u.to(v.dtype), w
