import torch
import triton
import triton.language as tl


@triton.jit
def normalize_kernel(x, f, N, D, BR: tl.constexpr, BD: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    d = tl.arange(0, BD)
    mask = (r[:, None] < N) & (d[None, :] < D)
    at = r.to(tl.int64)[:, None] * D + d[None, :]
    v = tl.load(x + at, mask=mask, other=0.0)
    norm = tl.maximum(tl.sqrt(tl.sum(v * v, axis=1)), 1e-6)
    tl.store(f + at, v / norm[:, None], mask=mask)


@triton.jit
def pair_kernel(f, labels, stat, N, D, CHUNK, inv, WHOLE: tl.constexpr,
                BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    split = tl.program_id(1)
    mm = m < N
    k = tl.arange(0, BK)
    m64 = m.to(tl.int64)
    lm = tl.load(labels + m, mask=mm, other=0)
    if WHOLE:
        a = tl.load(f + m64[:, None] * D + k[None, :], mask=mm[:, None] & (k < D)[None, :], other=0.0)
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM,), tl.float32)
    number = tl.zeros((BM,), tl.float32)
    lo = split * CHUNK
    hi = tl.minimum(N, lo + CHUNK)
    for n0 in range(lo, hi, BN):
        n = n0 + tl.arange(0, BN)
        nm = n < hi
        n64 = n.to(tl.int64)
        ln = tl.load(labels + n, mask=nm, other=0)
        if WHOLE:
            c = tl.load(f + n64[:, None] * D + k[None, :], mask=nm[:, None] & (k < D)[None, :], other=0.0)
            s = tl.dot(a, tl.trans(c), input_precision="tf32x3")
        else:
            s = tl.zeros((BM, BN), tl.float32)
            for k0 in range(0, D, BK):
                km = k0 + k < D
                x = tl.load(f + m64[:, None] * D + (k0 + k)[None, :], mask=mm[:, None] & km[None, :], other=0.0)
                y = tl.load(f + n64[:, None] * D + (k0 + k)[None, :], mask=nm[:, None] & km[None, :], other=0.0)
                s = tl.dot(x, tl.trans(y), s, input_precision="tf32x3")
        s = s * inv
        ok = (m[:, None] != n[None, :]) & nm[None, :]
        same = ok & (lm[:, None] == ln[None, :])
        sums += tl.sum(tl.where(same, s, 0.0), axis=1)
        number += tl.sum(same.to(tl.float32), axis=1)
        s = tl.where(ok, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, axis=1))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(s - new[:, None]), axis=1)
        top = new
    base = stat + split * 4 * N + m
    tl.store(base, top, mask=mm)
    tl.store(base + N, total, mask=mm)
    tl.store(base + 2 * N, sums, mask=mm)
    tl.store(base + 3 * N, number, mask=mm)


@triton.jit
def final_kernel(stat, loss, per_sample, N, SPLITS, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        m = start + i
        mm = m < N
        top = tl.full((BLOCK,), -1e30, tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        sums = tl.zeros((BLOCK,), tl.float32)
        number = tl.zeros((BLOCK,), tl.float32)
        for s in range(0, SPLITS):
            base = stat + s * 4 * N + m
            t = tl.load(base, mask=mm, other=0.0)
            l = tl.load(base + N, mask=mm, other=0.0)
            sums += tl.load(base + 2 * N, mask=mm, other=0.0)
            number += tl.load(base + 3 * N, mask=mm, other=0.0)
            new = tl.maximum(top, t)
            total = total * tl.exp(top - new) + l * tl.exp(t - new)
            top = new
        value = top + tl.log(total) - sums / tl.maximum(number, 1.0)
        value = tl.where(mm & (number > 0), value, 0.0)
        tl.store(per_sample + m, value, mask=mm)
        acc += value
    tl.store(loss, tl.sum(acc, axis=0) / N)


class ModelNew(torch.nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, features, labels):
        N, D = features.shape
        dev = features.device
        f = torch.empty_like(features)
        BD = max(16, triton.next_power_of_2(D))
        BR = max(1, 2048 // BD)
        normalize_kernel[(triton.cdiv(N, BR),)](features, f, N, D, BR=BR, BD=BD, num_warps=4)
        whole = BD <= 128
        BM, BN = 64, 64
        BK = BD if whole else 32
        mb = triton.cdiv(N, BM)
        splits = max(1, min((132 * 2) // mb, 32, triton.cdiv(N, BN)))
        chunk = triton.cdiv(triton.cdiv(N, splits), BN) * BN
        splits = triton.cdiv(N, chunk)
        stat = torch.empty((splits, 4, N), device=dev, dtype=torch.float32)
        pair_kernel[(mb, splits)](f, labels, stat, N, D, chunk, 1.0 / self.temperature, WHOLE=whole,
                                  BM=BM, BN=BN, BK=BK, num_warps=4, num_stages=2)
        loss = torch.empty((), device=dev, dtype=features.dtype)
        per_sample = torch.empty((N,), device=dev, dtype=features.dtype)
        final_kernel[(1,)](stat, loss, per_sample, N, splits, BLOCK=1024, num_warps=8)
        return loss, per_sample
