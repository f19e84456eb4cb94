import torch
import triton
import triton.language as tl


@triton.jit
def add_corner(a0, a1, a2, a3, base, cx, cy, w, m0, m1, m2, m3, H, W, ROW: tl.constexpr, D4: tl.constexpr):
    inside = (cx >= 0) & (cx < W) & (cy >= 0) & (cy < H)
    at = base + (cy * W + cx) * ROW
    r0 = tl.load(at, mask=inside & m0, other=0.0)
    r1 = tl.load(at + D4, mask=inside & m1, other=0.0)
    r2 = tl.load(at + 2 * D4, mask=inside & m2, other=0.0)
    r3 = tl.load(at + 3 * D4, mask=inside & m3, other=0.0)
    return a0 + w * r0, a1 + w * r1, a2 + w * r2, a3 + w * r3


@triton.jit
def deform_kernel(value, places, logits, out, items, H, W, ROW: tl.constexpr, HEADS: tl.constexpr, D: tl.constexpr,
                  D4: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr):
    # One lane for a (query, head) and the channels d, d + D4, d + 2*D4, d + 3*D4.
    b = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = i // D4
    d = i - n * D4
    head = n - (n // HEADS) * HEADS
    m0 = n < items
    m1 = m0 & (d + D4 < D)
    m2 = m0 & (d + 2 * D4 < D)
    m3 = m0 & (d + 3 * D4 < D)
    base = value + b * H * W * ROW + (head * D + d)
    ls = logits + b * items * P + n * P
    ps = places + b * items * (2 * P) + n * (2 * P)
    top = tl.load(ls, mask=m0, other=0.0)
    for k in tl.static_range(1, P):
        top = tl.maximum(top, tl.load(ls + k, mask=m0, other=0.0))
    den = tl.zeros((BLOCK,), tl.float32)
    a0 = tl.zeros((BLOCK,), tl.float32)
    a1 = tl.zeros((BLOCK,), tl.float32)
    a2 = tl.zeros((BLOCK,), tl.float32)
    a3 = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(0, P):
        e = tl.exp(tl.load(ls + k, mask=m0, other=0.0) - top)
        den += e
        x = tl.load(ps + 2 * k, mask=m0, other=0.0) * W - 0.5
        y = tl.load(ps + (2 * k + 1), mask=m0, other=0.0) * H - 0.5
        x = tl.minimum(tl.maximum(x, -2.0), W + 1.0)   # further out reads zeros all the same
        y = tl.minimum(tl.maximum(y, -2.0), H + 1.0)
        xf = tl.floor(x)
        yf = tl.floor(y)
        fx = x - xf
        fy = y - yf
        gx = 1.0 - fx
        w0 = e * (1.0 - fy)
        w1 = e * fy
        x0 = xf.to(tl.int32)
        y0 = yf.to(tl.int32)
        x1 = x0 + 1
        y1 = y0 + 1
        a0, a1, a2, a3 = add_corner(a0, a1, a2, a3, base, x0, y0, w0 * gx, m0, m1, m2, m3, H, W, ROW, D4)
        a0, a1, a2, a3 = add_corner(a0, a1, a2, a3, base, x1, y0, w0 * fx, m0, m1, m2, m3, H, W, ROW, D4)
        a0, a1, a2, a3 = add_corner(a0, a1, a2, a3, base, x0, y1, w1 * gx, m0, m1, m2, m3, H, W, ROW, D4)
        a0, a1, a2, a3 = add_corner(a0, a1, a2, a3, base, x1, y1, w1 * fx, m0, m1, m2, m3, H, W, ROW, D4)
    to = out + b * items * D + (n * D + d)
    tl.store(to, a0 / den, mask=m0)
    tl.store(to + D4, a1 / den, mask=m1)
    tl.store(to + 2 * D4, a2 / den, mask=m2)
    tl.store(to + 3 * D4, a3 / den, mask=m3)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, value, places, logits):
        B, H, W, heads, D = value.shape
        Q, P = places.shape[1], places.shape[3]
        out = torch.empty((B, Q, heads * D), dtype=value.dtype, device=value.device)
        items = Q * heads
        D4 = triton.cdiv(D, 4)
        BLOCK = 128
        deform_kernel[(triton.cdiv(items * D4, BLOCK), B)](value, places, logits, out, items, H, W, ROW=heads * D,
                                                           HEADS=heads, D=D, D4=D4, P=P, BLOCK=BLOCK, num_warps=4)
        return out
