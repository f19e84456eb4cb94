import torch
import triton
import triton.language as tl


@triton.jit
def score_kernel(ql, qp, lat, rot, sc, H, T, R, P, scale, BH: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    t = tl.program_id(0) * BN + tl.arange(0, BN)
    b = tl.program_id(1).to(tl.int64)
    h = tl.program_id(2) * BH + tl.arange(0, BH)
    hm = h < H
    tm = t < T
    kk = tl.arange(0, BK)
    acc = tl.zeros((BH, BN), tl.float32)
    for k0 in range(0, R, BK):
        k = k0 + kk
        a = tl.load(ql + (b * H + h)[:, None] * R + k[None, :], mask=hm[:, None] & (k[None, :] < R), other=0.0)
        c = tl.load(lat + (b * T + t)[:, None] * R + k[None, :], mask=tm[:, None] & (k[None, :] < R), other=0.0)
        acc = tl.dot(a, tl.trans(c), acc, input_precision="tf32x3")
    for k0 in range(0, P, BK):
        k = k0 + kk
        a = tl.load(qp + (b * H + h)[:, None] * P + k[None, :], mask=hm[:, None] & (k[None, :] < P), other=0.0)
        c = tl.load(rot + (b * T + t)[:, None] * P + k[None, :], mask=tm[:, None] & (k[None, :] < P), other=0.0)
        acc = tl.dot(a, tl.trans(c), acc, input_precision="tf32x3")
    tl.store(sc + (b * H + h)[:, None] * T + t[None, :], acc * scale, mask=hm[:, None] & tm[None, :])


@triton.jit
def context_kernel(sc, lat, part, stat, H, T, R, CHUNK, SPLITS, RB,
                   BH: tl.constexpr, BN: tl.constexpr, BR: tl.constexpr):
    rb = tl.program_id(0) % RB
    split = tl.program_id(0) // RB
    b = tl.program_id(1).to(tl.int64)
    h = tl.program_id(2) * BH + tl.arange(0, BH)
    r = rb * BR + tl.arange(0, BR)
    hm = h < H
    rm = r < R
    lo = split * CHUNK
    hi = tl.minimum(T, lo + CHUNK)
    top = tl.full((BH,), -1e30, tl.float32)
    total = tl.zeros((BH,), tl.float32)
    acc = tl.zeros((BH, BR), tl.float32)
    for n0 in range(lo, hi, BN):
        n = n0 + tl.arange(0, BN)
        nm = n < hi
        s = tl.load(sc + (b * H + h)[:, None] * T + n[None, :], mask=hm[:, None] & nm[None, :], other=-1e30)
        v = tl.load(lat + (b * T + n)[:, None] * R + r[None, :], mask=nm[:, None] & rm[None, :], other=0.0)
        new = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        keep = tl.exp(top - new)
        total = total * keep + tl.sum(p, axis=1)
        acc = tl.dot(p, v, acc * keep[:, None], input_precision="tf32x3")
        top = new
    slot = (b * H + h) * SPLITS + split
    tl.store(part + slot[:, None] * R + r[None, :], acc, mask=hm[:, None] & rm[None, :])
    if rb == 0:
        tl.store(stat + slot * 2, top, mask=hm)
        tl.store(stat + slot * 2 + 1, total, mask=hm)


@triton.jit
def up_kernel(part, stat, up, out, B, H, R, V, SPLITS, BB: tl.constexpr, BV: tl.constexpr, BK: tl.constexpr):
    v = tl.program_id(0) * BV + tl.arange(0, BV)
    h = tl.program_id(1).to(tl.int64)
    b = tl.program_id(2) * BB + tl.arange(0, BB)
    bm = b < B
    vm = v < V
    slot = (b * H + h) * SPLITS
    top = tl.full((BB,), -1e30, tl.float32)
    total = tl.zeros((BB,), tl.float32)
    for s in range(0, SPLITS):
        m = tl.load(stat + (slot + s) * 2, mask=bm, other=0.0)
        l = tl.load(stat + (slot + s) * 2 + 1, mask=bm, other=1.0)
        new = tl.maximum(top, m)
        total = total * tl.exp(top - new) + l * tl.exp(m - new)
        top = new
    acc = tl.zeros((BB, BV), tl.float32)
    for k0 in range(0, R, BK):
        k = k0 + tl.arange(0, BK)
        km = k < R
        u = tl.load(up + (h * R + k)[:, None] * V + v[None, :], mask=km[:, None] & vm[None, :], other=0.0)
        c = tl.zeros((BB, BK), tl.float32)
        for s in range(0, SPLITS):
            m = tl.load(stat + (slot + s) * 2, mask=bm, other=0.0)
            x = tl.load(part + (slot + s)[:, None] * R + k[None, :], mask=bm[:, None] & km[None, :], other=0.0)
            c += x * tl.exp(m - top)[:, None]
        c = c / total[:, None]
        acc = tl.dot(c, u, acc, input_precision="tf32x3")
    tl.store(out + (b * H + h)[:, None] * V + v[None, :], acc, mask=bm[:, None] & vm[None, :])


class ModelNew(torch.nn.Module):
    def __init__(self, num_heads, latent_dim, value_dim, scale):
        super().__init__()
        self.scale = scale
        self.up = torch.nn.Parameter(torch.randn(num_heads, latent_dim, value_dim) * latent_dim ** -0.5)

    def forward(self, q_latent, q_rotary, latent_cache, rotary_cache):
        B, H, R = q_latent.shape
        P = q_rotary.shape[2]
        T = latent_cache.shape[1]
        V = self.up.shape[2]
        dev = q_latent.device
        sc = torch.empty((B, H, T), device=dev, dtype=torch.float32)
        BH = 16
        HB = triton.cdiv(H, BH)
        BN, BR = 64, 64
        score_kernel[(triton.cdiv(T, BN), B, HB)](q_latent, q_rotary, latent_cache, rotary_cache, sc, H, T, R, P,
                                                  float(self.scale), BH=BH, BN=BN, BK=64, num_warps=4, num_stages=3)
        RB = triton.cdiv(R, BR)
        splits = min(max(1, (132 * 4) // max(1, B * HB * RB)), 16, triton.cdiv(T, BN))
        chunk = triton.cdiv(triton.cdiv(T, splits), BN) * BN
        splits = triton.cdiv(T, chunk)
        part = torch.empty((B, H, splits, R), device=dev, dtype=torch.float32)
        stat = torch.empty((B, H, splits, 2), device=dev, dtype=torch.float32)
        context_kernel[(RB * splits, B, HB)](sc, latent_cache, part, stat, H, T, R, chunk, splits, RB,
                                             BH=BH, BN=BN, BR=BR, num_warps=4, num_stages=3)
        out = torch.empty((B, H, V), device=dev, dtype=torch.float32)
        up_kernel[(triton.cdiv(V, 16), H, triton.cdiv(B, 16))](part, stat, self.up, out, B, H, R, V, splits,
                                                               BB=16, BV=16, BK=64, num_warps=4, num_stages=2)
        return out
