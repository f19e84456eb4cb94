"""Attention with a query or a few for each sequence, as in serving: the time is that of reading keys and values."""
import torch
import torch.nn.functional as F

from .suite import Case, f8, kernel, low, wide


@kernel(dict(B=64, H=32, G=8, T=4096, D=128), dict(B=2, H=4, G=2, T=37, D=16))
def decode_gqa(data, B, H, G, T, D):
    """Heads in groups that share keys, a contiguous cache."""
    def eager(q, k, v):
        return F.scaled_dot_product_attention(q[:, :, None], k.transpose(1, 2), v.transpose(1, 2), enable_gqa=True)[:, :, 0]
    tensors = dict(q=data.normal(B, H, D), k=data.normal(B, T, G, D), v=data.normal(B, T, G, D))
    return Case(tensors, eager, bytes=2*B*T*G*D*2, operations=dict(bf16=4*B*H*T*D))


@kernel(dict(B=64, H=32, G=8, N=256, S=16, D=128), dict(B=3, H=4, G=2, N=5, S=4, D=16))
def decode_paged(data, B, H, G, N, S, D):
    """The same, keys and values in pages that a table names, sequences of different lengths."""
    pages = B*N
    lengths = data.integers(N*S//2, N*S, B)

    def eager(q, kc, vc, table, len):
        k, v = (cache[table.long()].reshape(B, N*S, G, D).transpose(1, 2) for cache in (kc, vc))
        mask = (data.range(N*S)[None] < len[:, None])[:, None, None]
        return F.scaled_dot_product_attention(q[:, :, None], k, v, attn_mask=mask, enable_gqa=True)[:, :, 0]
    tensors = dict(q=data.normal(B, H, D), kc=data.normal(pages, S, G, D), vc=data.normal(pages, S, G, D),
                   table=data.permutation(pages).view(B, N), len=lengths)
    total = int(lengths.sum())
    return Case(tensors, eager, bytes=total*G*D*4, operations=dict(bf16=4*H*total*D))


@kernel(dict(B=64, H=128, T=4096, C=512, R=64), dict(B=2, H=4, T=37, C=32, R=8))
def decode_mla(data, B, H, T, C, R):
    """Latent attention: keys and values are one compressed vector of all heads, scores have a part for positions."""
    def eager(q, qr, c, kr):
        scores = (q @ c.transpose(1, 2) + qr @ kr.transpose(1, 2))*0.041666
        return torch.softmax(wide(scores), -1).to(c.dtype) @ c
    tensors = dict(q=data.normal(B, H, C), qr=data.normal(B, H, R), c=data.normal(B, T, C), kr=data.normal(B, T, R))
    return Case(tensors, eager, bytes=B*T*(C + R)*2, operations=dict(bf16=2*B*H*T*(2*C + R)))


@kernel(dict(B=64, H=64, G=8, T=4096, D=64), dict(B=2, H=4, G=2, T=200, D=16))
def decode_window_sink(data, B, H, G, T, D, window=128):
    """A window of the last 128 keys, and a learned sink that takes part of each row's weight."""
    def eager(q, k, v, sink):
        k, v = (one[:, -window:].transpose(1, 2).repeat_interleave(H//G, 1) for one in (k, v))
        scores = (q[:, :, None] @ k.transpose(2, 3)).to(sink.dtype)*D**-0.5
        p = torch.softmax(torch.cat((scores, sink[None, :, None, None].expand(B, H, 1, 1)), -1), -1)[..., :-1]
        return (p.to(v.dtype) @ v)[:, :, 0]
    tensors = dict(q=data.normal(B, H, D), k=data.normal(B, T, G, D), v=data.normal(B, T, G, D), sink=data.floats(H))
    seen = min(window, T)
    return Case(tensors, eager, bytes=2*B*seen*G*D*2, operations=dict(bf16=4*B*H*seen*D))


@kernel(dict(B=64, H=32, G=8, T=8192, D=128), dict(B=2, H=4, G=2, T=37, D=16))
def decode_fp8_cache(data, B, H, G, T, D):
    """Keys and values in fp8 with a scale for each head."""
    def eager(q, k, v, ks, vs):
        k, v = ((one.to(q.dtype)*scale.to(q.dtype)[:, None]).transpose(1, 2) for one, scale in ((k, ks), (v, vs)))
        return F.scaled_dot_product_attention(q[:, :, None], k, v, enable_gqa=True)[:, :, 0]
    tensors = dict(q=data.normal(B, H, D), k=data.normal(B, T, G, D, dtype=f8), v=data.normal(B, T, G, D, dtype=f8),
                   ks=data.uniform(G, low=0.5), vs=data.uniform(G, low=0.5))
    return Case(tensors, eager, bytes=2*B*T*G*D, operations=dict(bf16=4*B*H*T*D))


@kernel(dict(B=16, H=128, T=8192, C=512, R=64, K=2048), dict(B=2, H=4, T=50, C=32, R=8, K=12))
def decode_sparse_mla(data, B, H, T, C, R, K):
    """Latent attention over the 2048 keys that an indexer has chosen."""
    def eager(q, qr, c, kr, chosen):
        rows = torch.arange(B, device=q.device)[:, None]
        c, kr = c[rows, chosen.long()], kr[rows, chosen.long()]
        scores = (q @ c.transpose(1, 2) + qr @ kr.transpose(1, 2))*0.041666
        return torch.softmax(wide(scores), -1).to(c.dtype) @ c
    tensors = dict(q=data.normal(B, H, C), qr=data.normal(B, H, R), c=data.normal(B, T, C), kr=data.normal(B, T, R),
                   chosen=data.distinct(T, B, K))
    return Case(tensors, eager, bytes=B*K*(C + R)*2, operations=dict(bf16=2*B*H*K*(2*C + R)))


@kernel(dict(M=2048, T=8192, H=64, D=128), dict(M=9, T=33, H=4, D=16), tolerance=2e-2)
def indexer_logits(data, M, T, H, D):
    """Scores by which sparse attention chooses keys: a weighted sum of heads of fp8 products."""
    def eager(q, k, w):
        q, k = low(q), low(k)
        return sum(w[:, h, None]*F.relu(q[:, h] @ k.t()) for h in range(H))
    tensors = dict(q=data.normal(M, H, D, dtype=f8), k=data.normal(T, D, dtype=f8), w=data.uniform(M, H))
    return Case(tensors, eager, bytes=M*H*D + T*D + M*T*4, operations=dict(f8=2*M*T*H*D))


@kernel(dict(M=65536, H=32, D=128), dict(M=5, H=3, D=16))
def merge_states(data, M, H, D):
    """Joins results of attention over two parts of the keys by their logsumexps."""
    def eager(a, la, b, lb):
        lse = torch.logaddexp(la, lb)
        return (a*torch.exp(la - lse)[..., None] + b*torch.exp(lb - lse)[..., None]).to(a.dtype), lse
    tensors = dict(a=data.normal(M, H, D), la=data.floats(M, H), b=data.normal(M, H, D), lb=data.floats(M, H))
    return Case(tensors, eager, bytes=M*H*(D*6 + 12))


@kernel(dict(N=8192, H=32, G=8, D=128, P=4096, S=16, L=8192), dict(N=7, H=4, G=2, D=16, P=3, S=4, L=40), tolerance=2e-2)
def rope_cache_write(data, N, H, G, D, P, S, L):
    """Rotates queries and keys, and writes keys and values into pages of the cache."""
    def eager(q, k, v, cos, sin, position, slot, kc, vc):
        def turned(x):
            a, b = x.chunk(2, -1)
            c, s = (one[position.long()][:, None] for one in (cos, sin))
            return torch.cat((a*c - b*s, b*c + a*s), -1).to(x.dtype)
        kc.view(P*S, G, D)[slot] = turned(k)
        vc.view(P*S, G, D)[slot] = v
        return turned(q), kc, vc
    tensors = dict(q=data.normal(N, H, D), k=data.normal(N, G, D), v=data.normal(N, G, D), cos=data.floats(L, D//2),
                   sin=data.floats(L, D//2), position=data.integers(0, L, N), slot=data.permutation(P*S,
                                                                                                    torch.int64)[:N].clone(),
                   kc=data.normal(P, S, G, D), vc=data.normal(P, S, G, D))
    return Case(tensors, eager, bytes=N*(H + 2*G)*D*4 + N*D*4)


@kernel(dict(B=16, M=64, H=32, G=8, T=4096, D=128), dict(B=2, M=6, H=4, G=2, T=20, D=16))
def tree_verify(data, B, M, H, G, T, D):
    """Speculative decoding: a tree of 64 drafted tokens sees the cache and, by a mask, its own branch."""
    mask = torch.ones(M, M, device=data.device, dtype=torch.bool).tril() & (data.integers(0, 3, M, M) > 0)
    mask |= torch.eye(M, device=data.device, dtype=torch.bool)

    def eager(q, k, v, mask):
        seen = torch.cat((mask.new_ones(M, T - M), mask), 1)
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True).transpose(1, 2)
    tensors = dict(q=data.normal(B, M, H, D), k=data.normal(B, T, G, D), v=data.normal(B, T, G, D), mask=mask)
    return Case(tensors, eager, bytes=2*B*T*G*D*2, operations=dict(bf16=4*B*H*M*T*D))


@kernel(dict(B=64, H=32, G=8, T=4096, D=128), dict(B=3, H=4, G=2, T=37, D=16))
def decode_lengths(data, B, H, G, T, D):
    """A contiguous cache with a length for each sequence, sums written over the range that the length gives."""
    lengths = data.integers(T//2, T + 1, B)

    def eager(q, k, v, len):
        mask = (data.range(T)[None] < len[:, None])[:, None, None]
        k, v = (one.transpose(1, 2) for one in (k, v))
        return F.scaled_dot_product_attention(q[:, :, None], k, v, attn_mask=mask, enable_gqa=True)[:, :, 0]
    tensors = dict(q=data.normal(B, H, D), k=data.normal(B, T, G, D), v=data.normal(B, T, G, D), len=lengths)
    total = int(lengths.sum())
    return Case(tensors, eager, bytes=total*G*D*4, operations=dict(bf16=4*H*total*D))


@kernel(dict(B=64, H=32, G=8, N=256, S=16, D=128), dict(B=3, H=4, G=2, N=5, S=4, D=16))
def decode_paged_tiles(data, B, H, G, N, S, D):
    """Pages again, written as an online loop over tiles of keys."""
    return decode_paged(data, B, H, G, N, S, D)
