# check: N=1, T=i32
# check: N=1023, T=i32
# check: N=517, T=i64
# check: N=300, T=i8
# input: a = integers(-1000000, 1000000)
# input: b = integers(-300, 300)
# exact
def operators(a, b):
    return a & b, a | b, a ^ b, ~a, a | ((b & 12) ^ ((a + 1) << 2))

# check: N=1000, T=i32
# check: N=1000, T=i64
# input: a = integers(-1000000000, 1000000000)
# input: n = integers(-3, 70)
# exact
def shifts(a, n):
    width = 8*a.element_size()
    inside = (n >= 0) & (n < width)
    count = torch.where(inside, n, torch.zeros_like(n))
    l = torch.where(inside, a << count, torch.zeros_like(a))
    sign = torch.where(a < 0, torch.full_like(a, -1), torch.zeros_like(a))
    r = torch.where(inside, a >> count, sign)
    k = (a << 40) + (a >> 40) + (a >> 3) if width == 64 else sign + (a >> 3)
    return l, r, k

# check: K=1, C=1
# check: K=3, C=33
# input: q = integers(-2147483648, 2147483647)
# exact
def unpack(q, t):
    n = 4*torch.arange(8, device=q.device)
    w = (q.long()[:, :, None] >> n) & 15
    w = w.reshape(q.size(0), 8*q.size(1))
    return w.int(), t[w]

# check: N=1
# check: N=37
def subscripts(x, y):
    i = torch.arange(64, device=x.device)
    j = torch.arange(2*y.size(0), device=x.device)
    t = y[j >> 1] + j
    return (x[i ^ 1] + x[i ^ 32] + x[(i & 31) | 32], x[i >> 1] + x[i & 7] + x[i & -2], x[(i >> 3) + ((i & 7) << 3)],
            t[j ^ 1])

# check: N=1
# check: N=1001
def flags(x):
    # TorchScript's ~ binds weaker than Python's.
    return (x > 0) & torch.logical_not(x > 1) | (x < -1), (x > 0) ^ (x < 0.5)

# check: N=1, T=i32
# check: N=700, T=i32
# check: N=700, T=i64
# input: a = integers(-20, 20)
# input: b = integers(-3, 40)
# exact
def powers(a, b):
    n = torch.arange(8, device=a.device)
    w = torch.pow(torch.full_like(n, 16), n)[None, :] * (a & 1).long()[:, None]
    three = torch.full_like(b, 3)
    return torch.pow(a, b), a*a*a + torch.pow(three, b), w

# check: N=1
# check: N=999
# input: x = integers(-10000000000, 10000000000)
# exact
def conversions(x):
    return x.int(), x.short(), x.char(), x.byte()

# check: N=5
# check: N=600
# input: x = integers(0, 1000)
# exact
def ranked(x):
    # Stable: the first of equals first.
    key = torch.where(x % 2 == 0, x, torch.full_like(x, -1))
    order = torch.argsort(key, stable=True, dim=0, descending=True)
    e = order[0:2]
    found = key[e] >= 0
    v = torch.where(found, x[e] + 16777216, torch.full_like(x[e], -2147483648))
    s = torch.argsort(x, dim=0, descending=True)
    return v, e, x[s] + 16777216

# check: N=1
# check: N=77
def truths(x):
    n = torch.arange(x.size(0), device=x.device)
    return n >= x.size(0) - torch.sum(x), torch.any(x), torch.all(x), x, torch.cumsum(x, 0) > 0
