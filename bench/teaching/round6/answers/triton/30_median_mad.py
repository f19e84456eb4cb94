import torch
import triton
import triton.language as tl


@triton.jit
def select(key, mask, want):
    # the want-th smallest of the keys (from 1); masked keys are the largest int32
    least = tl.min(key, axis=0)
    lo = least
    hi = tl.max(tl.where(mask, key, least), axis=0)
    while lo < hi:
        mid = (lo & hi) + ((lo ^ hi) >> 1)
        n = tl.sum((key <= mid).to(tl.int32), axis=0)
        less = n < want
        lo = tl.where(less, mid + 1, tl.where(n == want, mid, lo))
        hi = tl.where(less, hi, mid)
    return tl.max(tl.where(key <= hi, key, least), axis=0)


@triton.jit
def robust_kernel(x, y, middles, mads, N, want, limit, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    v = tl.load(x + row * N + cols, mask=mask, other=0.0)
    bits = v.to(tl.int32, bitcast=True)
    key = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    key = tl.where(mask, key, 0x7FFFFFFF)
    got = select(key, mask, want)
    middle = (got ^ ((got >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
    off = v - middle
    key = tl.abs(off).to(tl.int32, bitcast=True)
    key = tl.where(mask, key, 0x7FFFFFFF)
    got = select(key, mask, want)
    mad = got.to(tl.float32, bitcast=True)
    out = off / (1.4826 * mad + 1e-3)
    out = tl.minimum(tl.maximum(out, -limit), limit)
    tl.store(y + row * N + cols, out, mask=mask)
    tl.store(middles + row, middle)
    tl.store(mads + row, mad)


class ModelNew(torch.nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def forward(self, x):
        N = x.shape[-1]
        shape = x.shape[:-1]
        rows = x.numel() // N
        y = torch.empty_like(x)
        middles = torch.empty(shape, dtype=x.dtype, device=x.device)
        mads = torch.empty(shape, dtype=x.dtype, device=x.device)
        BLOCK = max(32, triton.next_power_of_2(N))
        warps = max(1, min(16, BLOCK // 1024))
        robust_kernel[(rows,)](x, y, middles, mads, N, (N + 1) // 2, float(self.limit), BLOCK=BLOCK, num_warps=warps)
        return y, middles, mads
