"""Accumulation and reading by index: histograms, sparse matrices, graphs, tables."""
import torch

from .suite import Case, kernel


@kernel(dict(N=1 << 26, K=256), dict(N=1031, K=256), compiled=False)
def histogram_256(data, N, K):
    """Of bytes."""
    def eager(x):
        return torch.bincount(x.int(), minlength=K).int()
    return Case(dict(x=data.integers(0, K, N, dtype=torch.uint8)), eager, bytes=N)


@kernel(dict(B=1024, N=65536, K=64), dict(B=3, N=103, K=9), compiled=False)
def histogram_rows(data, B, N, K):
    """Of each row's floats, in 64 bins between 0 and 1."""
    def eager(x):
        bins = (x*K).floor().clamp(0, K - 1).long()
        zeros = torch.zeros(B, K, dtype=torch.int32, device=x.device)
        return zeros.scatter_add_(1, bins, torch.ones_like(bins, dtype=torch.int32))
    return Case(dict(x=data.uniform(B, N)), eager, bytes=B*N*4, constants={"K": str(K)})


@kernel(dict(R=262144, Z=8388608), dict(R=20, Z=103), tolerance=1e-4)
def spmv_coo_sorted(data, R, Z):
    """A sparse matrix times a vector: values, columns and rows, in the order of rows."""
    rows = data.integers(0, R, Z).sort().values

    def eager(v, col, row, x):
        return torch.zeros(R, device=x.device, dtype=x.dtype).index_add_(0, row, v*x[col.long()])

    def cusparse():
        starts = torch.searchsorted(rows, data.range(R + 1, dtype=torch.int32)).int()
        matrix = torch.sparse_csr_tensor(starts, tensors["col"], tensors["v"], (R, R))
        return lambda: matrix @ tensors["x"]
    tensors = dict(v=data.floats(Z), col=data.integers(0, R, Z), row=rows, x=data.floats(R))
    return Case(tensors, eager, bytes=Z*12 + R*8, peers={"cuSPARSE": cusparse})


@kernel(dict(R=262144, Z=8388608), dict(R=20, Z=103), tolerance=1e-4, compiled=False)
def spmv_csr(data, R, Z):
    """The same with the places where rows begin: a sum over a range that data gives."""
    starts = torch.searchsorted(data.integers(0, R, Z).sort().values, data.range(R + 1, dtype=torch.int32)).int()

    def eager(v, col, start, x):
        rows = torch.repeat_interleave(torch.arange(R, device=x.device), (start[1:] - start[:-1]).long())
        return torch.zeros(R, device=x.device, dtype=x.dtype).index_add_(0, rows, v*x[col.long()])

    def cusparse():
        matrix = torch.sparse_csr_tensor(starts, tensors["col"], tensors["v"], (R, R))
        return lambda: matrix @ tensors["x"]
    tensors = dict(v=data.floats(Z), col=data.integers(0, R, Z), start=starts, x=data.floats(R))
    return Case(tensors, eager, bytes=Z*8 + R*12, peers={"cuSPARSE": cusparse})


@kernel(dict(R=65536, Z=1048576, D=64), dict(R=20, Z=103, D=8), tolerance=1e-4)
def graph_mean(data, R, Z, D):
    """Each node's mean of its neighbours' features, edges in no order."""
    def eager(x, source, target):
        y = torch.zeros(R, D, device=x.device, dtype=x.dtype).index_add_(0, target, x[source.long()])
        n = torch.zeros(R, device=x.device, dtype=x.dtype).index_add_(0, target, torch.ones_like(target, dtype=x.dtype))
        return y/n.clamp(min=1)[:, None]
    tensors = dict(x=data.floats(R, D), source=data.integers(0, R, Z), target=data.integers(0, R, Z))
    return Case(tensors, eager, bytes=2*R*D*4 + Z*8)


@kernel(dict(R=65536, Z=1048576, H=8), dict(R=20, Z=103, H=3), tolerance=1e-4)
def edge_softmax(data, R, Z, H):
    """Graph attention: a softmax over the edges that end at the same node."""
    def eager(s, target):
        rows = target.long()[:, None].expand(Z, H)
        m = torch.full((R, H), float("-inf"), device=s.device, dtype=s.dtype).scatter_reduce_(0, rows, s, "amax")
        p = torch.exp(s - m[target.long()])
        return p/torch.zeros(R, H, device=s.device, dtype=s.dtype).index_add_(0, target, p)[target.long()]
    return Case(dict(s=data.floats(Z, H), target=data.integers(0, R, Z)), eager, bytes=Z*H*8 + Z*4, constants={"R": str(R)})


@kernel(dict(B=16384, L=32, V=1000000, D=64), dict(B=5, L=4, V=30, D=8), tolerance=1e-4)
def embedding_bag(data, B, L, V, D):
    """Sums of 32 rows of a table, as recommenders read them."""
    def eager(table, ids):
        return torch.nn.functional.embedding_bag(ids, table, mode="sum")
    return Case(dict(table=data.floats(V, D), ids=data.integers(0, V, B, L, dtype=torch.int64)), eager,
                bytes=B*L*(D*4 + 8) + B*D*4)


@kernel(dict(M=1048576, R=65536, D=16), dict(M=103, R=20, D=3))
def scatter_max(data, M, R, D):
    """The largest of the rows that have the same index."""
    def eager(x, index):
        rows = index.long()[:, None].expand(M, D)
        return torch.full((R, D), -1e30, device=x.device, dtype=x.dtype).scatter_reduce_(0, rows, x, "amax")
    return Case(dict(x=data.floats(M, D), index=data.integers(0, R, M)), eager, bytes=M*(D*4 + 4) + R*D*4,
                constants={"R": str(R)})


@kernel(dict(M=262144, R=1048576, D=64), dict(M=20, R=30, D=3))
def scatter_rows(data, M, R, D):
    """Rows written where a permutation says."""
    def eager(y, x, index):
        y[index.long()] = x
        return y
    tensors = dict(y=data.normal(R, D), x=data.normal(M, D), index=data.permutation(R)[:M].clone())
    return Case(tensors, eager, bytes=M*(D*4 + 4))


@kernel(dict(N=1 << 24), dict(N=1031))
def compact(data, N):
    """The elements above zero, one after the other, and how many there are."""
    def eager(x):
        kept = x > 0
        y = torch.zeros_like(x)
        count = kept.sum()
        y[:int(count)] = x[kept]
        return y, count
    return Case(dict(x=data.floats(N)), eager, bytes=N*8)


@kernel(dict(R=65536, Z=1048576, D=64), dict(R=20, Z=103, D=8), tolerance=1e-4, compiled=False)
def spmm_csr(data, R, Z, D):
    """A sparse matrix times a dense one of 64 columns."""
    starts = torch.searchsorted(data.integers(0, R, Z).sort().values, data.range(R + 1, dtype=torch.int32)).int()

    def eager(v, col, start, x):
        rows = torch.repeat_interleave(torch.arange(R, device=x.device), (start[1:] - start[:-1]).long())
        return torch.zeros(R, D, device=x.device, dtype=x.dtype).index_add_(0, rows, v[:, None]*x[col.long()])

    def cusparse():
        matrix = torch.sparse_csr_tensor(starts, tensors["col"], tensors["v"], (R, R))
        return lambda: matrix @ tensors["x"]
    tensors = dict(v=data.floats(Z), col=data.integers(0, R, Z), start=starts, x=data.floats(R, D))
    return Case(tensors, eager, bytes=Z*8 + 2*R*D*4, peers={"cuSPARSE": cusparse})


@kernel(dict(R=65536, Z=1048576, D=64), dict(R=20, Z=103, D=8), tolerance=1e-4)
def sddmm(data, R, Z, D):
    """Products of the rows that each edge names."""
    def eager(a, b, row, col):
        return (a[row.long()]*b[col.long()]).sum(-1)
    tensors = dict(a=data.floats(R, D), b=data.floats(R, D), row=data.integers(0, R, Z), col=data.integers(0, R, Z))
    return Case(tensors, eager, bytes=2*R*D*4 + Z*12)


@kernel(dict(B=64, V=128256, T=4096), dict(B=3, V=53, T=20))
def repetition_penalty(data, B, V, T):
    """Logits of tokens that were said before are made smaller, once for each token."""
    def eager(x, token):
        seen = torch.zeros(B, V, device=x.device, dtype=torch.bool).scatter_(1, token, True)
        return torch.where(seen, torch.where(x > 0, x/1.2, x*1.2), x)
    return Case(dict(x=data.floats(B, V), token=data.integers(0, V, B, T, dtype=torch.int64)), eager, bytes=B*V*8 + B*T*8)


@kernel(dict(M=262144, V=50304, D=1024), dict(M=20, V=30, D=3))
def gather_rows(data, M, V, D):
    """Rows of a table that ids name."""
    return Case(dict(table=data.normal(V, D), ids=data.integers(0, V, M, dtype=torch.int64)), lambda table, ids: table[ids],
                bytes=M*D*2 + V*D*2 + M*8)
