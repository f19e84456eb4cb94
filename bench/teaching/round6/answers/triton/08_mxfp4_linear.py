import torch
import triton
import triton.language as tl


@triton.jit
def mxfp4_kernel(x, codes, exps, bias, out, M, N, K, PER, SPLITS,
                 SINGLE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    split = tl.program_id(1)
    m = tl.program_id(2) * BM + tl.arange(0, BM)
    nm = n < N
    mm = m < M
    KH = K // 2
    KS = K // 32
    n64 = n.to(tl.int64)
    m64 = m.to(tl.int64)
    high = tl.zeros((BM, BN), tl.float32)
    low = tl.zeros((BM, BN), tl.float32)
    lo = split * PER
    hi = tl.minimum(K, lo + PER)
    for k0 in range(lo, hi, BK):
        kx = k0 + tl.arange(0, BK)
        kc = k0 // 2 + tl.arange(0, BK // 2)
        ke = k0 // 32 + tl.arange(0, BK // 32)
        c = tl.load(codes + n64[:, None] * KH + kc[None, :], mask=nm[:, None] & (kc < KH)[None, :], other=0)
        e = tl.load(exps + n64[:, None] * KS + ke[None, :], mask=nm[:, None] & (ke < KS)[None, :], other=1)
        a = tl.load(x + m64[:, None] * K + kx[None, :], mask=mm[:, None] & (kx < K)[None, :], other=0.0)
        # a code's bits placed in a bfloat16 are its value times 2^-126; the scale makes up for it
        scale = ((e.to(tl.uint16) + 126) << 7).to(tl.bfloat16, bitcast=True)
        c16 = tl.reshape(c.to(tl.uint16), (BN, BK // 32, 16))
        first = (((c16 & 8) << 12) | ((c16 & 7) << 6)).to(tl.bfloat16, bitcast=True) * scale[:, :, None]
        second = (((c16 & 128) << 8) | ((c16 & 112) << 2)).to(tl.bfloat16, bitcast=True) * scale[:, :, None]
        w = tl.trans(tl.reshape(tl.join(first, second), (BN, BK)))
        a1 = a.to(tl.bfloat16)
        r1 = a - a1.to(tl.float32)
        a2 = r1.to(tl.bfloat16)
        a3 = (r1 - a2.to(tl.float32)).to(tl.bfloat16)
        low = tl.dot(a3, w, low)
        low = tl.dot(a2, w, low)
        high = tl.dot(a1, w, high)
    acc = high + low
    if SINGLE:
        acc += tl.load(bias + n, mask=nm, other=0.0)[None, :]
    tl.store(out + (split.to(tl.int64) * M + m64)[:, None] * N + n[None, :], acc, mask=mm[:, None] & nm[None, :])


@triton.jit
def reduce_kernel(part, bias, out, TOTAL, N, SPLITS, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < TOTAL
    acc = tl.load(bias + i % N, mask=mask, other=0.0)
    for s in range(0, SPLITS):
        acc += tl.load(part + s * TOTAL + i, mask=mask, other=0.0)
    tl.store(out + i, acc, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.register_buffer("codes", torch.randint(0, 256, (out_features, in_features // 2), dtype=torch.uint8))
        self.register_buffer("exponents", torch.randint(118, 124, (out_features, in_features // 32), dtype=torch.uint8))
        positive = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
        self.register_buffer("table", torch.cat([positive, -positive]))
        self.bias = torch.nn.Parameter(0.1 * torch.randn(out_features))

    def forward(self, x):
        M, K = x.shape
        N = self.codes.shape[0]
        BM = 16 if M <= 16 else 32
        BN, BK = 64, 256
        nb, mb = triton.cdiv(N, BN), triton.cdiv(M, BM)
        tiles = triton.cdiv(K, BK)
        splits = max(1, min(tiles, (132 * 4) // (nb * mb)))
        per = triton.cdiv(tiles, splits) * BK
        splits = triton.cdiv(K, per)
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)
        single = splits == 1
        part = out if single else torch.empty((splits, M, N), device=x.device, dtype=torch.float32)
        mxfp4_kernel[(nb, splits, mb)](x, self.codes, self.exponents, self.bias, part, M, N, K, per, splits,
                                       SINGLE=single, BM=BM, BN=BN, BK=BK, num_warps=4, num_stages=3)
        if not single:
            total = M * N
            reduce_kernel[(triton.cdiv(total, 512),)](part, self.bias, out, total, N, splits, BLOCK=512, num_warps=4)
        return out
