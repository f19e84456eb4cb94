import torch
import triton
import triton.language as tl


@triton.jit
def paged_kernel(q, kp, vp, table, lengths, part, stat, out, scale, H, D, S, N, CHUNK, SPLITS,
                 SINGLE: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    split = tl.program_id(0) % SPLITS
    row = tl.program_id(0) // SPLITS
    h = row % H
    b = (row // H).to(tl.int64)
    length = tl.minimum(tl.load(lengths + b).to(tl.int32), N * S)
    lo = split * CHUNK
    hi = tl.minimum(length, lo + CHUNK)
    if lo < hi:
        d = tl.arange(0, BD)
        dm = d < D
        row64 = row.to(tl.int64)
        qs = tl.load(q + row64 * D + d, mask=dm, other=0.0).to(tl.float32)
        top = tl.max(tl.full((BN,), -1e30, tl.float32), axis=0)
        total = tl.sum(tl.zeros((BN,), tl.float32), axis=0)
        acc = tl.zeros((BD,), tl.float32)
        for start in range(lo, hi, BN):
            n = start + tl.arange(0, BN)
            ok = n < hi
            page = tl.load(table + b * N + n // S, mask=ok, other=0).to(tl.int64)
            place = (page * S + n % S) * (H * D) + h * D
            at = place[:, None] + d[None, :]
            inside = ok[:, None] & dm[None, :]
            ks = tl.load(kp + at, mask=inside, other=0.0)
            vs = tl.load(vp + at, mask=inside, other=0.0)
            s = tl.sum(ks.to(tl.float32) * qs[None, :], axis=1) * scale
            s = tl.where(ok, s, -1e30)
            new = tl.maximum(top, tl.max(s, axis=0))
            p = tl.exp(s - new)
            keep = tl.exp(top - new)
            total = total * keep + tl.sum(p, axis=0)
            acc = acc * keep + tl.sum(vs.to(tl.float32) * p[:, None], axis=0)
            top = new
        if SINGLE:
            tl.store(out + row64 * D + d, acc / total, mask=dm)
        else:
            slot = row64 * SPLITS + split
            tl.store(part + slot * D + d, acc, mask=dm)
            tl.store(stat + slot * 2, top)
            tl.store(stat + slot * 2 + 1, total)


@triton.jit
def combine_kernel(part, stat, lengths, out, T, H, D, CHUNK, SPLITS, BS: tl.constexpr, BD: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    b = row // H
    length = tl.minimum(tl.load(lengths + b).to(tl.int32), T)
    used = tl.cdiv(length, CHUNK)
    s = tl.arange(0, BS)
    d = tl.arange(0, BD)
    ok = s < used
    slot = row * SPLITS + s
    m = tl.load(stat + slot * 2, mask=ok, other=-1e30)
    l = tl.load(stat + slot * 2 + 1, mask=ok, other=0.0)
    w = tl.where(ok, tl.exp(m - tl.max(m, axis=0)), 0.0)
    x = tl.load(part + slot[:, None] * D + d[None, :], mask=ok[:, None] & (d[None, :] < D), other=0.0)
    y = tl.sum(x * w[:, None], axis=0) / tl.sum(w * l, axis=0)
    tl.store(out + row * D + d, y, mask=d < D)


class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, query, key_pages, value_pages, block_table, lengths):
        B, H, D = query.shape
        S, N = key_pages.shape[1], block_table.shape[1]
        T = N * S
        out = torch.empty_like(query)
        BD = max(16, triton.next_power_of_2(D))
        BN = max(16, 8192 // BD)
        splits = min(max(1, (132 * 6) // max(1, B * H)), 32, triton.cdiv(T, BN))
        chunk = triton.cdiv(triton.cdiv(T, splits), BN) * BN
        splits = triton.cdiv(T, chunk)
        single = splits == 1
        if single:
            part = out
            stat = out
        else:
            part = torch.empty((B * H * splits, D), device=query.device, dtype=torch.float32)
            stat = torch.empty((B * H * splits, 2), device=query.device, dtype=torch.float32)
        paged_kernel[(B * H * splits,)](query, key_pages, value_pages, block_table, lengths, part, stat, out,
                                        float(self.scale), H, D, S, N, chunk, splits, SINGLE=single, BN=BN, BD=BD,
                                        num_warps=4)
        if not single:
            combine_kernel[(B * H,)](part, stat, lengths, out, T, H, D, chunk, splits,
                                     BS=triton.next_power_of_2(splits), BD=BD, num_warps=2)
        return out
