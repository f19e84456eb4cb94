# check: S=1, H=1, D=1, N=1
# check: S=11, H=2, D=5, N=41
# check: S=7, H=3, D=16, N=0
# check: S=300, H=2, D=8, N=129
# input: slot = integers(0, S)
def write_cache(cache, slot, k):
    y = cache.clone()
    for i in range(slot.size(0)):
        y[int(slot[i])] = k[i]
    return y

# check: B=3, P=4, H=2, D=5, N=1
# check: B=8, P=16, H=1, D=7, N=1
# input: slot = integers(0, B*P)
def write_pages(cache, slot, k):
    y = cache.clone()
    for i in range(slot.size(0)):
        y.view(-1, y.size(2), y.size(3))[int(slot[i])] = k[i]
    return y

# check: M=1, D=1, N=1
# check: M=5, D=7, N=41
# check: M=129, D=3, N=33
# input: index = integers(0, M)
def scatter0(x, index, src):
    y = x.clone()
    for j in range(index.size(0)):
        for d in range(index.size(1)):
            y[int(index[j, d]), d] = src[j, d]
    return y

# check: M=1, D=1, N=1
# check: M=5, D=7, N=41
# input: index = integers(0, D)
def scatter1(x, index, src):
    y = x.clone()
    for i in range(index.size(0)):
        for j in range(index.size(1)):
            y[i, int(index[i, j])] = src[i, j]
    return y

# check: A=1, B=1, N=1, K=1
# check: A=3, B=4, N=7, K=5
# input: r = integers(0, A)
# input: c = integers(0, B)
def pairs(x, r, c, v):
    y = x.clone()
    for n in range(r.size(0)):
        for k in range(r.size(1)):
            y[int(r[n, k]), int(c[n, k])] = v[n, k]
    return y

# check: N=1
# check: N=40
# check: N=300, V=1
# input: ids = integers(0, 1000)
# input: x = integers(-9, 9)
# input: mask = coin(0.5)
def masked(x, ids, mask, V: int):
    y = x.new_full([V], -1)
    for n in range(x.size(0)):
        if bool(mask[n]):
            y[int(ids[n]) % V] = x[n]
    return 2 * y

# check: M=1, D=1, N=1
# check: M=5, D=7, N=41
# check: M=64, D=2, N=300
# input: ids = integers(0, M)
def extremes(x, ids, u):
    index = ids.unsqueeze(1).expand(-1, x.size(1))
    return (x.scatter_reduce(0, index, u, "amax"), x.scatter_reduce(0, index, u, "amin"),
            x.index_add(0, ids, u))

# check: N=1
# check: N=40
# check: N=0
# input: ids = integers(0, 5)
# input: m = coin(0.5)
def truths(ids, m, V: int):
    some = m.new_zeros([V])
    every = m.new_ones([V])
    seen = m.new_zeros([V])
    for n in range(ids.size(0)):
        v = int(ids[n]) % V
        seen[v] = True
        if bool(m[n]):
            some[v] = True
        else:
            every[v] = False
    return some, every, seen

# check: V=1, D=1, N=1
# check: V=9, D=5, N=41
# check: V=70, D=3, N=2
# input: ids = integers(0, V)
# input: q = integers(0, 90)
def narrow(c, ids, x, q):
    y = c.float().index_add(0, ids, x.float()).to(c.dtype)
    u = 100 * (torch.arange(ids.size(0), device=ids.device) % 2)
    return y, q.scatter_reduce(0, ids, u.to(q.dtype), "amax")

# check: T=1
# check: T=100
# check: T=0
# input: expert = integers(0, 100)
def slots(expert, E: int):
    n = torch.bincount(expert % E, minlength=E)
    return n, torch.cumsum(n, 0) - n

# check: M=1, D=1, N=1
# check: M=5, D=7, N=41
# check: M=64, D=2, N=300
# input: ids = integers(0, M)
def doubles(x, ids, u):
    index = ids.unsqueeze(1).expand(-1, x.size(1))
    return (x.scatter_reduce(0, index, u, "amax"), x.scatter_reduce(0, index, u, "amin"),
            torch.zeros_like(x).index_add(0, ids, u), 2 * x.index_add(0, ids, u))

# check: M=1, D=1, N=1
# check: M=5, D=7, N=41
# check: M=64, D=2, N=300
# input: ids = integers(0, M)
# input: x = integers(1152921504606846976, 1152921504606856976)
# input: u = integers(1152921504606846976, 1152921504606856976)
def longs(x, ids, u):
    index = ids.unsqueeze(1).expand(-1, x.size(1))
    return (x.scatter_reduce(0, index, u, "amax"), x.scatter_reduce(0, index, u, "amin"),
            torch.zeros_like(x).index_add(0, ids, u), 2 * x.index_add(0, ids, u))

# check: M=1, D=1, N=1, T=f64
# check: M=5, D=7, N=41, T=f64
# check: M=5, D=7, N=41, T=i64
# check: M=64, D=2, N=300, T=i64
# input: ids = integers(0, M)
def changed(a, b, c, ids, u):
    index = ids.unsqueeze(1).expand(-1, c.size(1))
    return (a.scatter_reduce(0, index, u, "amax"), b.scatter_reduce(0, index, u, "amin"), c.index_add(0, ids, u))

# check: S=1, D=1, N=1
# check: S=7, D=5, N=41
# check: S=300, D=64, N=100
# input: slot = integers(0, 1000)
def normalized(cache, slot, k):
    rows = k * torch.rsqrt((k * k).sum(1, keepdim=True) + 1)
    y = cache.clone()
    for n in range(slot.size(0)):
        y[int(slot[n]) % cache.size(0)] = rows[n]
    return y

# check: N=1, D=1, T=f32
# check: N=5, D=7, T=f32
# check: N=65, D=64, T=f32
# check: N=5, D=8, T=f16
# check: N=5, D=7, T=i64
def mirrored(a, b, c, x):
    wide = a.float().dtype if a.element_size() < 4 else a.dtype
    p, q, r, u = a.to(wide), b.to(wide), c.to(wide), x.to(wide)
    return ((p + (p.flip(1) + u)).to(a.dtype), torch.maximum(q, q.flip(1) + u).to(a.dtype),
            (r.flip(1) + u).to(a.dtype))

# check: N=1
# check: N=37
def triangle(x, y, z):
    below = torch.ones(x.size(0), x.size(0), device=x.device).tril() > 0
    n = x.size(0)
    left = torch.where(below, y[:, n:] + x, y[:, :n])
    return torch.cat((left, y[:, n:]), 1), torch.ones_like(z)
