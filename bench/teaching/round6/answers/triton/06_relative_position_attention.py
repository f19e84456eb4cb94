import torch
import triton
import triton.language as tl


@triton.jit
def relative_kernel(q, k, v, kpos, vpos, rel, band, o, S, D, C, MD, scale,
                    BM: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr, BD: tl.constexpr):
    head = tl.program_id(1).to(tl.int64)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    dm = d < D
    mm = m < S
    rows = mm[:, None] & dm[None, :]
    base = head * S * D
    at = base + m[:, None] * D + d[None, :]
    qs = tl.load(q + at, mask=rows, other=0.0)
    srow = (head * S + m)[:, None] * C
    # products with the key positions, kept in scratch
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        kp = tl.load(kpos + c[:, None] * D + d[None, :], mask=(c[:, None] < C) & dm[None, :], other=0.0)
        x = tl.dot(qs, tl.trans(kp), input_precision="tf32x3")
        tl.store(rel + srow + c[None, :], x, mask=mm[:, None] & (c[None, :] < C))
    tl.debug_barrier()
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    left = tl.zeros((BM,), tl.float32)
    right = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for start in range(0, S, BN):
        n = start + tl.arange(0, BN)
        nm = n < S
        keys = base + n[:, None] * D + d[None, :]
        inside = nm[:, None] & dm[None, :]
        ks = tl.load(k + keys, mask=inside, other=0.0)
        vs = tl.load(v + keys, mask=inside, other=0.0)
        raw = n[None, :] - m[:, None]
        off = tl.minimum(tl.maximum(raw, -MD), MD) + MD
        ok = mm[:, None] & nm[None, :]
        bias = tl.load(rel + srow + off, mask=ok, other=0.0)
        s = (tl.dot(qs, tl.trans(ks), input_precision="tf32x3") + bias) * scale
        tl.store(band + srow + off, s, mask=ok & (off > 0) & (off < 2 * MD))
        s = tl.where(nm[None, :], s, -float("inf"))
        new = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        keep = tl.exp(top - new)
        total = total * keep + tl.sum(p, axis=1)
        is_left = raw <= -MD
        left = left * keep + tl.sum(tl.where(is_left, p, 0.0), axis=1)
        right = right * keep + tl.sum(tl.where((raw >= MD) & (raw > -MD), p, 0.0), axis=1)
        acc = tl.dot(p, vs, acc * keep[:, None], input_precision="tf32x3")
        top = new
    tl.debug_barrier()
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        j = m[:, None] + c[None, :] - MD
        ok = mm[:, None] & (c[None, :] > 0) & (c[None, :] < 2 * MD) & (j >= 0) & (j < S)
        s = tl.load(band + srow + c[None, :], mask=ok, other=-float("inf"))
        w = tl.exp(s - top[:, None])
        vp = tl.load(vpos + c[:, None] * D + d[None, :], mask=(c[:, None] < C) & dm[None, :], other=0.0)
        acc = tl.dot(w, vp, acc, input_precision="tf32x3")
    first = tl.load(vpos + d, mask=dm, other=0.0)
    last = tl.load(vpos + 2 * MD * D + d, mask=dm, other=0.0)
    acc += left[:, None] * first[None, :] + right[:, None] * last[None, :]
    tl.store(o + at, acc / total[:, None], mask=rows)


class ModelNew(torch.nn.Module):
    def __init__(self, head_dim, max_distance):
        super().__init__()
        self.max_distance = max_distance
        self.key_positions = torch.nn.Parameter(torch.randn(2 * max_distance + 1, head_dim) * 0.2)
        self.value_positions = torch.nn.Parameter(torch.randn(2 * max_distance + 1, head_dim) * 0.2)

    def forward(self, q, k, v):
        B, H, S, D = q.shape
        C = 2 * self.max_distance + 1
        o = torch.empty_like(q)
        rel = torch.empty((B * H, S, C), device=q.device, dtype=torch.float32)
        band = torch.empty((B * H, S, C), device=q.device, dtype=torch.float32)
        BD = max(16, triton.next_power_of_2(D))
        BM, BN = (64, 32) if BD <= 64 else (32, 32)
        relative_kernel[(triton.cdiv(S, BM), B * H)](q, k, v, self.key_positions, self.value_positions, rel, band, o,
                                                     S, D, C, self.max_distance, D ** -0.5,
                                                     BM=BM, BN=BN, BC=32, BD=BD, num_warps=4, num_stages=2)
        return o
