import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["T"])
def chain_kernel(emission, transition, start, scratch, likelihood, batches, T, S, SP: tl.constexpr):
    b = tl.program_id(0).to(tl.int64)
    way = tl.program_id(1)
    forward = way == 0
    r = tl.arange(0, SP)
    ok = r < S
    both = ok[:, None] & ok[None, :]
    straight = r[:, None] * S + r[None, :]
    across = r[None, :] * S + r[:, None]
    raw = tl.load(transition + straight, mask=both, other=-1e30)
    top = tl.max(raw, axis=1)
    norm = top + tl.log(tl.sum(tl.exp(raw - top[:, None]), axis=1))
    turned = tl.load(transition + across, mask=both, other=-1e30)
    # a[from, to]: the sum runs over the first index in both directions
    a = tl.where(forward, raw - norm[:, None], turned - norm[None, :])
    a = tl.where(both, a, -1e30)
    ea = tl.exp(a)
    wide = tl.min(tl.min(tl.where(both, a, 0.0), axis=1), axis=0) < -60.0

    sv = tl.load(start + r, mask=ok, other=-1e30)
    st = tl.max(sv, axis=0)
    sv = sv - (st + tl.log(tl.sum(tl.exp(sv - st), axis=0)))
    em = emission + b * T * S
    dst = scratch + (way * batches + b) * T * S
    first = tl.load(em + r, mask=ok, other=0.0)
    state = tl.where(forward, sv + first, 0.0)
    state = tl.where(ok, state, -1e30)
    tl.store(dst + tl.where(forward, 0, T - 1) * S + r, state, mask=ok)
    offset = 0.0
    t1 = tl.where(forward, tl.minimum(T - 1, 1), T - 1)
    e = tl.load(em + t1 * S + r, mask=ok, other=0.0)
    for s in range(1, T):
        ahead = tl.where(forward, tl.minimum(s + 1, T - 1), tl.maximum(T - 1 - s, 0))
        e2 = tl.load(em + ahead * S + r, mask=ok, other=0.0)
        v = tl.where(forward, state, state + e)
        m = tl.max(tl.where(ok, v, -1e30), axis=0)
        v = tl.where(ok, v - m, -1e30)
        if wide:
            z = v[:, None] + a
            zt = tl.max(z, axis=0)
            new = zt + tl.log(tl.sum(tl.exp(z - zt[None, :]), axis=0))
        else:
            new = tl.log(tl.sum(tl.exp(v)[:, None] * ea, axis=0))
        new = tl.where(forward, new + e, new)
        state = tl.where(ok, new, -1e30)
        offset += m
        tl.store(dst + tl.where(forward, s, T - 1 - s) * S + r, state, mask=ok)
        e = e2
    peak = tl.max(state, axis=0)
    total = offset + (peak + tl.log(tl.sum(tl.exp(state - peak), axis=0)))
    tl.store(likelihood + b, total, mask=forward)


@triton.jit
def posterior_kernel(scratch, out, rows, S, BR: tl.constexpr, SP: tl.constexpr):
    r = (tl.program_id(0) * BR + tl.arange(0, BR)).to(tl.int64)
    c = tl.arange(0, SP)
    mask = (r[:, None] < rows) & (c[None, :] < S)
    at = r[:, None] * S + c[None, :]
    half = rows.to(tl.int64) * S
    v = tl.load(scratch + at, mask=mask, other=-1e30) + tl.load(scratch + half + at, mask=mask, other=0.0)
    v = v - tl.max(v, axis=1)[:, None]
    v = tl.exp(v)
    tl.store(out + at, v / tl.sum(v, axis=1)[:, None], mask=mask)


posterior_kernel = triton.jit(posterior_kernel.fn, do_not_specialize=["rows"])


class ModelNew(nn.Module):
    def __init__(self, states):
        super().__init__()
        self.transition = nn.Parameter(torch.randn(states, states))
        self.start = nn.Parameter(torch.randn(states))

    def forward(self, emission):
        B, T, S = emission.shape
        scratch = torch.empty((2, B, T, S), dtype=torch.float32, device=emission.device)
        likelihood = torch.empty((B,), dtype=emission.dtype, device=emission.device)
        out = torch.empty_like(emission)
        SP = max(16, triton.next_power_of_2(S))
        warps = 1 if SP <= 16 else (2 if SP <= 32 else (4 if SP <= 64 else 16))
        chain_kernel[(B, 2)](emission, self.transition, self.start, scratch, likelihood, B, T, S, SP=SP,
                             num_warps=warps)
        rows = B * T
        BR = max(1, 2048 // SP)
        posterior_kernel[(triton.cdiv(rows, BR),)](scratch, out, rows, S, BR=BR, SP=SP, num_warps=4)
        return likelihood, out
