import torch
import triton
import triton.language as tl


@triton.jit
def combine(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@triton.jit
def fetch(log_ratio, rewards, values, done, last, i, c, mc, T, B):
    t = (T - 1 - i).to(tl.int64)
    mask = (i[:, None] < T) & mc[None, :]
    at = t[:, None] * B + c[None, :]
    lr = tl.load(log_ratio + at, mask=mask, other=0.0)
    rw = tl.load(rewards + at, mask=mask, other=0.0)
    vl = tl.load(values + at, mask=mask, other=0.0)
    dn = tl.load(done + at, mask=mask, other=0).to(tl.int32)
    fo = tl.load(values + at + B, mask=mask & (i[:, None] > 0), other=0.0)
    fo = tl.where(i[:, None] == 0, last[None, :], fo)
    return lr, rw, vl, dn, fo


@triton.jit
def vtrace_kernel(log_ratio, rewards, values, last_value, done, targets, advantages, T, B, gamma, rho_max, c_max,
                  BT: tl.constexpr, BC: tl.constexpr):
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    mc = c < B
    r = tl.arange(0, BT)
    before = tl.zeros((BT, BC), tl.int32) + tl.maximum(r - 1, 0)[:, None]
    last = tl.load(last_value + c, mask=mc, other=0.0)
    state = tl.zeros((BC,), tl.float32)
    lr, rw, vl, dn, fo = fetch(log_ratio, rewards, values, done, last, r, c, mc, T, B)
    for t0 in range(0, T, BT):
        i = t0 + r                                     # steps counted from the end
        lr2, rw2, vl2, dn2, fo2 = fetch(log_ratio, rewards, values, done, last, i + BT, c, mc, T, B)
        ratio = tl.exp(tl.minimum(tl.maximum(lr, -10.0), 10.0))
        rho = tl.minimum(ratio, rho_max)
        cut = tl.minimum(ratio, c_max)
        discount = tl.where(dn != 0, 0.0, gamma)
        delta = rho * (rw + discount * fo - vl)
        a, off = tl.associative_scan((discount * cut, delta), 0, combine)
        off = off + a * state[None, :]
        nxt = tl.gather(off, before, 0)
        nxt = tl.where(r[:, None] == 0, state[None, :], nxt)
        mask = (i[:, None] < T) & mc[None, :]
        at = (T - 1 - i).to(tl.int64)[:, None] * B + c[None, :]
        tl.store(targets + at, vl + off, mask=mask)
        tl.store(advantages + at, rho * (rw + discount * (fo + nxt) - vl), mask=mask)
        state = tl.sum(tl.where(r[:, None] == BT - 1, off, 0.0), axis=0)
        lr, rw, vl, dn, fo = lr2, rw2, vl2, dn2, fo2


class ModelNew(torch.nn.Module):
    def __init__(self, gamma, rho_max, c_max):
        super().__init__()
        self.gamma = gamma
        self.rho_max = rho_max
        self.c_max = c_max

    def forward(self, log_ratio, rewards, values, last_value, done):
        T, B = values.shape
        targets = torch.empty_like(values)
        advantages = torch.empty_like(values)
        BT, BC = 32, 32
        vtrace_kernel[(triton.cdiv(B, BC),)](log_ratio, rewards, values, last_value, done, targets, advantages, T, B,
                                             float(self.gamma), float(self.rho_max), float(self.c_max),
                                             BT=BT, BC=BC, num_warps=4)
        return targets, advantages
