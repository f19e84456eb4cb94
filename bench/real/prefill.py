"""Attention of many queries: masks, biases and caches of the kinds that models have."""
import math

import torch
import torch.nn.functional as F

from .suite import Case, kernel, wide


@kernel(dict(B=4, H=32, G=8, S=4096, D=128), dict(B=2, H=4, G=2, S=37, D=16))
def prefill_causal_gqa(data, B, H, G, S, D):
    """Causal, heads in groups that share keys, rows before heads."""
    def eager(q, k, v):
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)
    tensors = dict(q=data.normal(B, S, H, D), k=data.normal(B, S, G, D), v=data.normal(B, S, G, D))
    return Case(tensors, eager, bytes=2*B*S*(2*H + 2*G)*D, operations=dict(bf16=2*B*H*D*S*S))


@kernel(dict(B=2, H=32, G=8, S=2048, T=6144, D=128), dict(B=2, H=4, G=2, S=9, T=37, D=16))
def prefill_causal_cache(data, B, H, G, S, T, D):
    """The same behind a cache: row i sees T - S + i + 1 keys."""
    from torch.nn.attention.bias import causal_lower_right

    def eager(q, k, v):
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        k, v = (one.repeat_interleave(H//G, 1) for one in (k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(S, T)).transpose(1, 2)
    tensors = dict(q=data.normal(B, S, H, D), k=data.normal(B, T, G, D), v=data.normal(B, T, G, D))
    return Case(tensors, eager, bytes=2*B*(2*S*H + 2*T*G)*D, operations=dict(bf16=4*B*H*D*(S*(T - S) + S*S//2)))


@kernel(dict(B=2, H=16, S=4096, D=128, W=1024), dict(B=2, H=3, S=40, D=16, W=7))
def prefill_window_sink(data, B, H, S, D, W):
    """A sliding window, and a learned sink that takes part of each row's weight."""
    def eager(q, k, v, sink):
        i = torch.arange(S, device=q.device)
        hidden = (i > i[:, None]) | (i <= i[:, None] - W)
        scores = (wide(q @ k.transpose(2, 3))*D**-0.5).masked_fill(hidden, -math.inf)
        p = torch.softmax(torch.cat((scores, sink[None, :, None, None].expand(B, H, S, 1)), -1), -1)[..., :-1]
        return p.to(v.dtype) @ v

    def flex():
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        mask = create_block_mask(lambda b, h, i, j: (j <= i) & (j > i - W), None, None, S, S)
        attention = torch.compile(flex_attention)
        sink = tensors["sink"][None, :, None]

        def call():
            o, lse = attention(*(tensors[name] for name in "qkv"), block_mask=mask, return_lse=True)
            return (o*torch.sigmoid(lse - sink)[..., None]).to(o.dtype)
        return call
    tensors = dict(q=data.normal(B, H, S, D), k=data.normal(B, H, S, D), v=data.normal(B, H, S, D), sink=data.floats(H))
    return Case(tensors, eager, bytes=B*H*S*D*8, operations=dict(bf16=4*B*H*S*min(W, S)*D), peers={"flex": flex},
                constants={"window": str(W)})


@kernel(dict(B=2, H=16, S=4096, D=128), dict(B=2, H=3, S=37, D=16), tolerance=2e-2)
def attention_softcap_alibi(data, B, H, S, D):
    """Causal, scores kept within 30 by tanh, and a bias that grows with the distance."""
    def eager(q, k, v, slope):
        i = torch.arange(S, device=q.device)
        scores = 30*torch.tanh(wide(q @ k.transpose(2, 3))*D**-0.5/30) - slope[:, None, None]*(i[:, None] - i)
        return torch.softmax(scores.masked_fill(i > i[:, None], -math.inf), -1).to(v.dtype) @ v

    def flex():
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        slope = tensors["slope"]
        mask = create_block_mask(lambda b, h, i, j: j <= i, None, None, S, S)
        attention = torch.compile(flex_attention)

        def changed(score, b, h, i, j):
            return 30*torch.tanh(score/30) - slope[h]*(i - j)
        return lambda: attention(*(tensors[name] for name in "qkv"), score_mod=changed, block_mask=mask)
    tensors = dict(q=data.normal(B, H, S, D), k=data.normal(B, H, S, D), v=data.normal(B, H, S, D), slope=data.uniform(H))
    return Case(tensors, eager, bytes=B*H*S*D*8, operations=dict(bf16=2*B*H*D*S*S), peers={"flex": flex})


@kernel(dict(H=16, D=128, S=2048, N=8), dict(H=3, D=16, S=11, N=4), compiled=False)
def varlen_attention(data, H, D, S, N):
    """Sequences of different lengths one after the other: a row sees those of its own sequence up to itself."""
    lengths = [max(1, int(S*part)) for part in (1, 0.75, 0.146, 0.83, 0.38, 1, 0.031, 0.937)][:N]
    starts = [sum(lengths[:n]) for n in range(N + 1)]
    total = starts[-1]

    def eager(q, k, v, segment):
        return torch.cat([F.scaled_dot_product_attention(*(one[a:b].transpose(0, 1)[None] for one in (q, k, v)),
                                                         is_causal=True)[0]
                          .transpose(0, 1) for a, b in zip(starts, starts[1:])])

    def flex():
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        segment = tensors["segment"]
        mask = create_block_mask(lambda b, h, i, j: (j <= i) & (segment[i] == segment[j]), None, None, total, total)
        attention = torch.compile(flex_attention)
        given = [tensors[name].transpose(0, 1)[None] for name in "qkv"]
        return lambda: attention(*given, block_mask=mask)[0].transpose(0, 1)
    segment = torch.repeat_interleave(torch.arange(N), torch.tensor(lengths)).int().to(data.device)
    tensors = dict(q=data.normal(total, H, D), k=data.normal(total, H, D), v=data.normal(total, H, D), segment=segment)
    return Case(tensors, eager, bytes=total*H*D*8, operations=dict(bf16=sum(2*H*D*length**2 for length in lengths)),
                peers={"flex": flex})


@kernel(dict(B=2, H=16, S=8192, D=128, L=64, K=16), dict(B=2, H=2, S=24, D=16, L=4, K=3), compiled=False)
def block_sparse_attention(data, B, H, S, D, L, K):
    """Each block of 64 queries sees 16 chosen blocks of keys, causally, its own among them."""
    blocks = S//L

    def eager(q, k, v, chosen):
        q, k, v = (one.view(B, H, blocks, L, D) for one in (q, k, v))
        batch, head = (torch.arange(count, device=q.device).view(shape) for count,
                       shape in ((B, (-1, 1, 1)), (H, (1, -1, 1))))
        results = []
        for block in range(blocks):
            places = chosen[:, :, block].long()
            keys, vs = (one[batch, head, places].reshape(B, H, K*L, D) for one in (k, v))
            columns = (places[..., None]*L + torch.arange(L, device=q.device)).view(B, H, 1, K*L)
            rows = block*L + torch.arange(L, device=q.device)[:, None]
            results.append(F.scaled_dot_product_attention(q[:, :, block], keys, vs, attn_mask=columns <= rows))
        return torch.cat(results, 2)
    # The block itself, and others drawn from all: those that lie behind it are masked.
    other = data.distinct(blocks - 1, B, H, blocks, K - 1)
    own = torch.arange(blocks, device=data.device, dtype=torch.int32).view(1, 1, -1, 1).expand(B, H, -1, 1)
    chosen = torch.cat((own, other + (other >= own)), -1).contiguous()
    tensors = dict(q=data.normal(B, H, S, D), k=data.normal(B, H, S, D), v=data.normal(B, H, S, D), chosen=chosen)
    return Case(tensors, eager, bytes=B*H*S*D*8, operations=dict(bf16=2*B*H*S*K*L*D))


@kernel(dict(H=16, D=128, S=2048, N=8), dict(H=3, D=16, S=11, N=4), compiled=False)
def varlen_ranges(data, H, D, S, N):
    """The same, where each row knows the place at which its sequence begins: sums over a range that data gives."""
    case = varlen_attention(data, H, D, S, N)
    segment = case.tensors.pop("segment")
    counts = torch.bincount(segment)
    case.tensors["start"] = (counts.cumsum(0) - counts)[segment.long()].int()
    eager = case.eager
    case.eager = lambda q, k, v, start: eager(q, k, v, None)
    case.peers = {}
    return case


@kernel(dict(B=4, H=16, S=1024, T=4096, D=64), dict(B=2, H=3, S=9, T=37, D=16))
def cross_attention_padded(data, B, H, S, T, D):
    """Not causal, keys padded to the longest sequence, and the logsumexps of the rows as a second result."""
    def eager(q, k, v, len):
        hidden = (torch.arange(T, device=q.device)[None] >= len[:, None])[:, None, None]
        scores = (wide(q @ k.transpose(2, 3))*D**-0.5).masked_fill(hidden, -math.inf)
        return torch.softmax(scores, -1).to(v.dtype) @ v, torch.logsumexp(scores, -1)
    lengths = data.integers(T//2, T + 1, B)
    tensors = dict(q=data.normal(B, H, S, D), k=data.normal(B, H, T, D), v=data.normal(B, H, T, D), len=lengths)
    total = int(lengths.sum())
    return Case(tensors, eager, bytes=B*H*S*D*4 + H*total*D*4, operations=dict(bf16=4*H*S*total*D))


@kernel(dict(B=2, H=8, S=2048, D=64), dict(B=2, H=3, S=37, D=16))
def attention_pair_bias(data, B, H, S, D):
    """A bias for each pair of rows, and a gate of the result, as in models of proteins."""
    def eager(q, k, v, bias, gate):
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return o*torch.sigmoid(gate)
    tensors = {name: data.normal(B, H, S, D) for name in ("q", "k", "v")}
    tensors |= dict(bias=data.normal(B, H, S, S), gate=data.normal(B, H, S, D))
    return Case(tensors, eager, bytes=B*H*S*D*10 + B*H*S*S*2, operations=dict(bf16=4*B*H*S*S*D))
