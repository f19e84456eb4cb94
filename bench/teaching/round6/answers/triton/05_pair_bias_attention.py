import torch
import triton
import triton.language as tl


@triton.jit
def pair_kernel(q, k, v, gate, bias, mask, o, S, H, D, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    h = tl.program_id(1)
    r = tl.program_id(2).to(tl.int64)
    d = tl.arange(0, BD)
    dm = d < D
    rows = (m[:, None] < S) & dm[None, :]
    base = r * S * H * D + h * D
    HD = H * D
    at = base + m[:, None] * HD + d[None, :]
    qs = tl.load(q + at, mask=rows, other=0.0)
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    brow = bias + (h.to(tl.int64) * S + m)[:, None] * S
    for start in range(0, S, BN):
        n = start + tl.arange(0, BN)
        nm = n < S
        keys = base + n[:, None] * HD + d[None, :]
        inside = nm[:, None] & dm[None, :]
        ks = tl.load(k + keys, mask=inside, other=0.0)
        vs = tl.load(v + keys, mask=inside, other=0.0)
        bs = tl.load(brow + n[None, :], mask=(m[:, None] < S) & nm[None, :], other=0.0)
        seen = tl.load(mask + r * S + n, mask=nm, other=0).to(tl.int32) != 0
        s = tl.dot(qs, tl.trans(ks), input_precision="tf32x3") * scale + bs
        s = tl.where(seen[None, :], s, -1e9)
        s = tl.where(nm[None, :], s, -float("inf"))
        new = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        keep = tl.exp(top - new)
        total = total * keep + tl.sum(p, axis=1)
        acc = tl.dot(p, vs, acc * keep[:, None], input_precision="tf32x3")
        top = new
    g = tl.load(gate + at, mask=rows, other=0.0)
    y = acc / total[:, None] / (1.0 + tl.exp(-g))
    tl.store(o + at, y, mask=rows)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v, gate, bias, mask):
        R, S, H, D = q.shape
        o = torch.empty((R, S, H * D), device=q.device, dtype=q.dtype)
        BD = max(16, triton.next_power_of_2(D))
        BM, BN = (64, 32) if BD <= 64 else (32, 32)
        pair_kernel[(triton.cdiv(S, BM), H, R)](q, k, v, gate, bias, mask, o, S, H, D, D ** -0.5,
                                                BM=BM, BN=BN, BD=BD, num_warps=4, num_stages=2)
        return o
