import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tick(dst, live, x, p1, p2, q1, q2, r1, r2, e, f0, f1, f2, f3, f4, g0, g1, g2, g3, g4, TWO: tl.constexpr):
    y = f0 * x + f1 * p1 + f2 * p2 - f3 * q1 - f4 * q2
    z = y
    if TWO:
        z = g0 * y + g1 * q1 + g2 * q2 - g3 * r1 - g4 * r2
    tl.store(dst, z, mask=live)
    e += tl.where(live, z * z, 0.0)
    return x, p1, y, q1, z, r1, e


@triton.jit(do_not_specialize=["T"])
def biquad_kernel(x, y, level, b, a1, a2, section, T, N, C, TWO: tl.constexpr, LAST: tl.constexpr, BC: tl.constexpr):
    n = tl.program_id(0) * BC + tl.arange(0, BC)
    m = n < N
    ch = n % C
    fb = b + section * 3 * C + ch
    f0 = tl.load(fb, mask=m, other=0.0)
    f1 = tl.load(fb + C, mask=m, other=0.0)
    f2 = tl.load(fb + 2 * C, mask=m, other=0.0)
    f3 = tl.load(a1 + section * C + ch, mask=m, other=0.0)
    f4 = tl.load(a2 + section * C + ch, mask=m, other=0.0)
    g0 = f0
    g1 = f1
    g2 = f2
    g3 = f3
    g4 = f4
    if TWO:
        g0 = tl.load(fb + 3 * C, mask=m, other=0.0)
        g1 = tl.load(fb + 4 * C, mask=m, other=0.0)
        g2 = tl.load(fb + 5 * C, mask=m, other=0.0)
        g3 = tl.load(a1 + (section + 1) * C + ch, mask=m, other=0.0)
        g4 = tl.load(a2 + (section + 1) * C + ch, mask=m, other=0.0)
    p1 = tl.zeros((BC,), tl.float32)
    p2 = tl.zeros((BC,), tl.float32)
    q1 = tl.zeros((BC,), tl.float32)
    q2 = tl.zeros((BC,), tl.float32)
    r1 = tl.zeros((BC,), tl.float32)
    r2 = tl.zeros((BC,), tl.float32)
    e = tl.zeros((BC,), tl.float32)
    src = x + n
    dst = y + n
    x0 = tl.load(src, mask=m & (T > 0), other=0.0)
    x1 = tl.load(src + N, mask=m & (T > 1), other=0.0)
    x2 = tl.load(src + 2 * N, mask=m & (T > 2), other=0.0)
    x3 = tl.load(src + 3 * N, mask=m & (T > 3), other=0.0)
    x4 = tl.load(src + 4 * N, mask=m & (T > 4), other=0.0)
    x5 = tl.load(src + 5 * N, mask=m & (T > 5), other=0.0)
    x6 = tl.load(src + 6 * N, mask=m & (T > 6), other=0.0)
    x7 = tl.load(src + 7 * N, mask=m & (T > 7), other=0.0)
    for t in range(0, T, 8):
        src += 8 * N
        w0 = tl.load(src, mask=m & (t + 8 < T), other=0.0)
        w1 = tl.load(src + N, mask=m & (t + 9 < T), other=0.0)
        w2 = tl.load(src + 2 * N, mask=m & (t + 10 < T), other=0.0)
        w3 = tl.load(src + 3 * N, mask=m & (t + 11 < T), other=0.0)
        w4 = tl.load(src + 4 * N, mask=m & (t + 12 < T), other=0.0)
        w5 = tl.load(src + 5 * N, mask=m & (t + 13 < T), other=0.0)
        w6 = tl.load(src + 6 * N, mask=m & (t + 14 < T), other=0.0)
        w7 = tl.load(src + 7 * N, mask=m & (t + 15 < T), other=0.0)
        p1, p2, q1, q2, r1, r2, e = tick(dst, m & (t < T), x0, p1, p2, q1, q2, r1, r2, e,
                                         f0, f1, f2, f3, f4, g0, g1, g2, g3, g4, TWO)
        p1, p2, q1, q2, r1, r2, e = tick(dst + N, m & (t + 1 < T), x1, p1, p2, q1, q2, r1, r2, e,
                                         f0, f1, f2, f3, f4, g0, g1, g2, g3, g4, TWO)
        p1, p2, q1, q2, r1, r2, e = tick(dst + 2 * N, m & (t + 2 < T), x2, p1, p2, q1, q2, r1, r2, e,
                                         f0, f1, f2, f3, f4, g0, g1, g2, g3, g4, TWO)
        p1, p2, q1, q2, r1, r2, e = tick(dst + 3 * N, m & (t + 3 < T), x3, p1, p2, q1, q2, r1, r2, e,
                                         f0, f1, f2, f3, f4, g0, g1, g2, g3, g4, TWO)
        p1, p2, q1, q2, r1, r2, e = tick(dst + 4 * N, m & (t + 4 < T), x4, p1, p2, q1, q2, r1, r2, e,
                                         f0, f1, f2, f3, f4, g0, g1, g2, g3, g4, TWO)
        p1, p2, q1, q2, r1, r2, e = tick(dst + 5 * N, m & (t + 5 < T), x5, p1, p2, q1, q2, r1, r2, e,
                                         f0, f1, f2, f3, f4, g0, g1, g2, g3, g4, TWO)
        p1, p2, q1, q2, r1, r2, e = tick(dst + 6 * N, m & (t + 6 < T), x6, p1, p2, q1, q2, r1, r2, e,
                                         f0, f1, f2, f3, f4, g0, g1, g2, g3, g4, TWO)
        p1, p2, q1, q2, r1, r2, e = tick(dst + 7 * N, m & (t + 7 < T), x7, p1, p2, q1, q2, r1, r2, e,
                                         f0, f1, f2, f3, f4, g0, g1, g2, g3, g4, TWO)
        dst += 8 * N
        x0 = w0
        x1 = w1
        x2 = w2
        x3 = w3
        x4 = w4
        x5 = w5
        x6 = w6
        x7 = w7
    if LAST:
        tl.store(level + n, tl.sqrt(e / T), mask=m)


class ModelNew(nn.Module):
    def __init__(self, sections, channels):
        super().__init__()
        self.b = nn.Parameter(torch.rand(sections, 3, channels) * 0.5)
        radius, angle = 0.5 + 0.4 * torch.rand(sections, channels), 3 * torch.rand(sections, channels)
        self.register_buffer("a1", -2 * radius * torch.cos(angle))
        self.register_buffer("a2", radius ** 2)

    def forward(self, x):
        T, B, C = x.shape
        N = B * C
        S = self.a1.shape[0]
        y = torch.empty_like(x)
        level = torch.empty((B, C), dtype=x.dtype, device=x.device)
        BC = 64
        src = x
        s = 0
        while s < S:
            two = s + 1 < S
            after = s + (2 if two else 1)
            biquad_kernel[(triton.cdiv(N, BC),)](src, y, level, self.b, self.a1, self.a2, s, T, N, C, TWO=two,
                                                 LAST=after >= S, BC=BC, num_warps=2)
            src = y
            s = after
        return y, level
