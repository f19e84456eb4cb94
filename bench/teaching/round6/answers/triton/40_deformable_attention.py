import torch
import triton
import triton.language as tl


@triton.jit
def deform_kernel(value, places, logits, out, total, QH, H, W, heads, D, P: tl.constexpr, PP: tl.constexpr,
                  BI: tl.constexpr, DP: tl.constexpr):
    n = tl.program_id(0).to(tl.int64) * BI + tl.arange(0, BI)
    ok = n < total
    d = tl.arange(0, DP)
    md = d < D
    p = tl.arange(0, PP)
    ls = tl.load(logits + n[:, None] * P + p[None, :], mask=ok[:, None] & (p[None, :] < P), other=-1e30)
    top = tl.max(ls, axis=1)
    den = tl.sum(tl.exp(ls - top[:, None]), axis=1)
    base = (n // QH) * H * W * heads * D + (n % heads) * D
    acc = tl.zeros((BI, DP), tl.float32)
    for k in tl.static_range(P):
        weight = tl.exp(tl.load(logits + n * P + k, mask=ok, other=-1e30) - top) / den
        x = tl.load(places + (n * P + k) * 2, mask=ok, other=0.0) * W - 0.5
        y = tl.load(places + (n * P + k) * 2 + 1, mask=ok, other=0.0) * H - 0.5
        x0 = tl.floor(x)
        y0 = tl.floor(y)
        fx = x - x0
        fy = y - y0
        for corner in tl.static_range(4):
            cx = x0 + (corner % 2)
            cy = y0 + (corner // 2)
            if corner % 2 == 1:
                wx = fx
            else:
                wx = 1.0 - fx
            if corner // 2 == 1:
                wy = fy
            else:
                wy = 1.0 - fy
            inside = ok & (cx >= 0) & (cx < W) & (cy >= 0) & (cy < H)
            ix = tl.where(inside, cx, 0.0).to(tl.int32)
            iy = tl.where(inside, cy, 0.0).to(tl.int32)
            at = base + (iy * W + ix).to(tl.int64) * (heads * D)
            read = tl.load(value + at[:, None] + d[None, :], mask=inside[:, None] & md[None, :], other=0.0)
            acc += read * (wx * wy * weight)[:, None]
    tl.store(out + n[:, None] * D + d[None, :], acc, mask=ok[:, None] & md[None, :])


class ModelNew(torch.nn.Module):
    def forward(self, value, places, logits):
        B, H, W, heads, D = value.shape
        Q, P = places.shape[1], places.shape[3]
        out = torch.empty((B, Q, heads * D), dtype=value.dtype, device=value.device)
        total = B * Q * heads
        DP = max(4, triton.next_power_of_2(D))
        BI = max(4, min(64, 1024 // DP))
        PP = max(2, triton.next_power_of_2(P))
        deform_kernel[(triton.cdiv(total, BI),)](value, places, logits, out, total, Q * heads, H, W, heads, D, P=P,
                                                 PP=PP, BI=BI, DP=DP, num_warps=4)
        return out
