"""Numerics, simulation and algorithms in small matrices."""
import torch
import torch.nn.functional as F

from .suite import Case, kernel, wide


@kernel(dict(M=262144, K=1024, D=64), dict(M=103, K=9, D=8), tolerance=5e-2, mismatches=1e-3)
def kmeans_assign(data, M, K, D):
    """The nearest centre of each point, the sums of the points of each centre, and their numbers."""
    def eager(x, c):
        a = ((c*c).sum(1) - 2*x @ c.t()).argmin(1)
        sums = torch.zeros(K, D, device=x.device, dtype=x.dtype).index_add_(0, a, x)
        return a, sums, torch.bincount(a, minlength=K).to(x.dtype)
    return Case(dict(x=data.floats(M, D), c=data.floats(K, D)), eager, bytes=M*D*8, operations=dict(bf16=2*M*K*D))


@kernel(dict(M=4096, N=262144, D=128), dict(M=7, N=103, D=8), mismatches=1e-3, tolerance=1e-2)
def nearest_neighbour(data, M, N, D):
    """Retrieval: the best product of a query and its place."""
    def eager(q, x):
        return (wide(q) @ wide(x).t()).max(1)

    def rounded():
        best = torch.compile(lambda q, x: (q @ x.t()).max(1))  # of scores in bf16, among which many are equal
        return lambda: best(**tensors)
    tensors = dict(q=data.normal(M, D), x=data.normal(N, D))
    return Case(tensors, eager, bytes=2*(M + N)*D, operations=dict(bf16=2*M*N*D), peers={"compiled, scores in bf16": rounded})


@kernel(dict(N=16384), dict(N=103), tolerance=1e-3)
def nbody_forces(data, N):
    """Gravitation of all pairs."""
    def eager(x, m):
        d = x[None] - x[:, None]
        r = (d.square().sum(-1) + 1e-4).rsqrt()
        return (m[None, :, None]*d*(r**3)[..., None]).sum(1)
    return Case(dict(x=data.floats(N, 3), m=data.uniform(N)), eager, bytes=N*28, operations=dict(f32=20*N*N))


@kernel(dict(N=8192), dict(N=13), tolerance=1e-5)
def jacobi_2d(data, N):
    """One step of Jacobi's method on a grid, its border kept."""
    def eager(u, f):
        y = u.clone()
        y[1:-1, 1:-1] = 0.25*(u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - f[1:-1, 1:-1])
        return y
    return Case(dict(u=data.floats(N, N), f=data.floats(N, N)), eager, bytes=N*N*12)


@kernel(dict(N=4096, S=16), dict(N=13, S=3), tolerance=1e-4)
def heat_steps(data, N, S):
    """Sixteen steps of a heat equation."""
    def eager(u):
        for _ in range(S):
            p = F.pad(u, (1, 1, 1, 1))
            u = u + 0.1*(p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4*u)
        return u
    return Case(dict(u=data.floats(N, N)), eager, bytes=N*N*8, operations=dict(f32=S*N*N*7), constants={"S": str(S)})


@kernel(dict(N=256, S=4), dict(N=7, S=2), tolerance=1e-4)
def wave_3d(data, N, S):
    """Four steps of a wave equation in space, of second order in time."""
    def eager(u, before):
        for _ in range(S):
            p = F.pad(u, (1,)*6)
            around = (p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1] + p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1] + p[1:-1, 1:-1, :-2]
                      + p[1:-1, 1:-1, 2:] - 6*u)
            u, before = 2*u - before + 0.1*around, u
        return u
    return Case(dict(u=data.floats(N, N, N), before=data.floats(N, N, N)), eager, bytes=N**3*12,
                operations=dict(f32=S*N**3*11), constants={"S": str(S)})


@kernel(dict(N=4096, S=8), dict(N=13, S=3))
def life_steps(data, N, S):
    """Eight steps of Conway's game, of bytes on a torus."""
    def eager(x):
        for _ in range(S):
            n = sum(torch.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
            x = ((n == 3) | ((n == 2) & (x == 1))).to(torch.int8)
        return x
    return Case(dict(x=data.integers(0, 2, N, N, dtype=torch.int8)), eager, bytes=N*N*2, constants={"S": str(S)})


@kernel(dict(B=16384, N=32), dict(B=3, N=7), tolerance=1e-4, compiled=False)
def triangular_solve_32(data, B, N):
    """Forward substitution in small matrices."""
    def eager(L, b):
        return torch.linalg.solve_triangular(L, b[..., None], upper=False)[..., 0]
    L = torch.tril(data.floats(B, N, N))*0.2 + torch.eye(N, device=data.device)*2
    return Case(dict(L=L, b=data.floats(B, N)), eager, bytes=B*N*N*2 + B*N*8)


@kernel(dict(B=16384, N=32), dict(B=3, N=7), tolerance=1e-4, compiled=False)
def cholesky_32(data, B, N):
    """The Cholesky factor of small matrices."""
    def eager(a):
        return torch.linalg.cholesky(a)
    x = data.floats(B, N, N)
    return Case(dict(a=x @ x.transpose(1, 2)/N + torch.eye(N, device=data.device)), eager, bytes=B*N*N*8)


@kernel(dict(B=4096, N=16), dict(B=3, N=5), tolerance=1e-3, compiled=False)
def inverse_16(data, B, N):
    """Gauss and Jordan's inverse, without pivots, of small matrices with a strong diagonal."""
    def eager(a):
        return torch.linalg.inv(a)
    a = data.floats(B, N, N)*0.1 + torch.eye(N, device=data.device)*2
    return Case(dict(a=a), eager, bytes=B*N*N*8)


@kernel(dict(B=256, T=512, N=64), dict(B=3, T=9, N=5), tolerance=1e-4, compiled=False, mismatches=1e-2)
def viterbi(data, B, T, N):
    """The score of the best path, and where each state's best path comes from."""
    def eager(x, a):
        v, back = x[:, 0], []
        for t in range(1, T):
            best, place = (v[:, :, None] + a).max(1)
            v = best + x[:, t]
            back.append(place)
        return v.amax(1), torch.stack(back, 1)
    return Case(dict(x=data.floats(B, T, N), a=data.floats(N, N)), eager, bytes=B*T*N*12)


@kernel(dict(B=4096, M=128, N=128), dict(B=3, M=7, N=9), compiled=False)
def edit_distance(data, B, M, N):
    """Levenshtein's distance of pairs of words."""
    def eager(a, b):
        row = torch.arange(N + 1, device=a.device, dtype=torch.int32).repeat(B, 1)
        for i in range(M):
            other = torch.empty_like(row)
            other[:, 0] = i + 1
            step = torch.minimum(row[:, 1:] + 1, row[:, :-1] + (a[:, i, None] != b).int())
            for j in range(N):
                other[:, j + 1] = torch.minimum(step[:, j], other[:, j] + 1)
            row = other
        return row[:, N]
    return Case(dict(a=data.integers(0, 4, B, M), b=data.integers(0, 4, B, N)), eager, bytes=B*(M + N + 1)*4,
                operations=dict(f32=5*B*M*N))


@kernel(dict(N=1024), dict(N=11), tolerance=1e-5, compiled=False)
def shortest_paths(data, N):
    """Floyd and Warshall's shortest paths of all pairs."""
    def eager(w):
        d = w.clone()
        for k in range(N):
            d = torch.minimum(d, d[:, k, None] + d[k])
        return d
    return Case(dict(w=data.uniform(N, N, high=10)), eager, bytes=N*N*8, operations=dict(f32=2*N**3))


@kernel(dict(B=512, T=256, S=64, V=64), dict(B=3, T=9, S=3, V=5), tolerance=1e-4, compiled=False)
def ctc_loss(data, B, T, S, V):
    """Connectionist temporal classification: the probability of labels with blanks, by a recurrence in logarithms."""
    def eager(x, y):
        lengths = torch.full((B,), T), torch.full((B,), S)
        return F.ctc_loss(x.transpose(0, 1), y.long(), *lengths, blank=0, reduction="none")
    y = data.integers(1, V, B, S)
    return Case(dict(x=torch.log_softmax(data.floats(B, T, V), -1), y=y), eager, bytes=B*T*V*4)


@kernel(dict(N=2048, S=32), dict(N=9, S=10), mismatches=1e-2)
def mandelbrot(data, N, S):
    """How many of 32 steps each point stays within 2."""
    def eager(cr, ci):
        zr, zi = torch.zeros_like(cr[None] + ci[:, None]), torch.zeros_like(cr[None] + ci[:, None])
        n = torch.zeros(zr.shape, device=cr.device, dtype=torch.int32)
        for _ in range(S):
            inside = zr*zr + zi*zi <= 4
            n += inside.int()
            zr, zi = torch.where(inside, zr*zr - zi*zi + cr, zr), torch.where(inside, 2*zr*zi + ci[:, None], zi)
        return n
    return Case(dict(cr=data.uniform(N, low=-2, high=0.5), ci=data.uniform(N, low=-1.2, high=1.2)), eager, bytes=N*N*4,
                operations=dict(f32=10*S*N*N), constants={"S": str(S)})


@kernel(dict(B=1024, N=1024), dict(B=3, N=16), tolerance=1e-4)
def fft_1024(data, B, N):
    """A discrete Fourier transform of 1024 by two products of 32, as a tile library would do it."""
    R = int(N**0.5)

    def eager(xr, xi):
        y = torch.fft.fft(torch.complex(xr, xi))
        return y.real, y.imag
    return Case(dict(xr=data.floats(B, N), xi=data.floats(B, N)), eager, bytes=B*N*16, constants={"R": str(R)})


@kernel(dict(B=16, N=1024, S=10), dict(B=2, N=9, S=3), tolerance=1e-3)
def sinkhorn(data, B, N, S):
    """Ten rounds of optimal transport: logsumexps of rows and columns in turns."""
    def eager(c):
        u, v = torch.zeros_like(c[:, :, 0]), torch.zeros_like(c[:, 0])
        for _ in range(S):
            u = -torch.logsumexp(v[:, None] - c, 2)
            v = -torch.logsumexp(u[:, :, None] - c, 1)
        return torch.exp(u[:, :, None] + v[:, None] - c)
    return Case(dict(c=data.uniform(B, N, N, high=5)), eager, bytes=B*N*N*8, constants={"S": str(S)})


@kernel(dict(N=4096, S=16), dict(N=9, S=4), tolerance=1e-2)
def power_iteration(data, N, S):
    """Sixteen steps towards a matrix's largest eigenvalue: a product with a vector, a norm, a division."""
    def eager(a, x):
        for _ in range(S):
            y = a @ x
            norm = y.norm()
            x = y/norm
        return x, norm
    return Case(dict(a=data.uniform(N, N), x=data.uniform(N)), eager, bytes=S*N*N*4, constants={"S": str(S)})


@kernel(dict(B=2048, M=128, N=128), dict(B=3, M=7, N=9), compiled=False)
def smith_waterman(data, B, M, N):
    """The best local alignment of pairs of words, row after row."""
    def eager(a, b):
        row, best = torch.zeros(B, N + 1, device=a.device, dtype=torch.int32), torch.zeros(B, device=a.device,
                                                                                           dtype=torch.int32)
        for i in range(M):
            step = torch.maximum(row[:, :-1] + torch.where(a[:, i, None] == b, 3, -2), row[:, 1:] - 1).clamp(min=0).int()
            other = torch.zeros_like(row)
            for j in range(N):
                other[:, j + 1] = torch.maximum(step[:, j], other[:, j] - 1)
            row, best = other, torch.maximum(best, other.amax(1))
        return best
    return Case(dict(a=data.integers(0, 4, B, M), b=data.integers(0, 4, B, N)), eager, bytes=B*(M + N + 1)*4,
                operations=dict(f32=6*B*M*N))
