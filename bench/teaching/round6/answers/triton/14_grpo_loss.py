import torch
import triton
import triton.language as tl


@triton.jit
def token_kernel(x, tokens, old, ref, adv, lengths, logp_out, rows, B, T, V, temperature, clip, beta,
                 ONE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    b = row // T
    t = row % T
    cols = tl.arange(0, BLOCK)
    base = x + row * V
    token = tl.load(tokens + row)
    picked = tl.load(base + token)
    if ONE:
        s = tl.load(base + cols, mask=cols < V, other=-float("inf"))
        top = tl.max(s, axis=0)
        total = tl.sum(tl.exp((s - top) / temperature), axis=0)
    else:
        tops = tl.full((BLOCK,), -1e38, tl.float32)
        totals = tl.zeros((BLOCK,), tl.float32)
        for s0 in range(0, V, BLOCK):
            s = tl.load(base + s0 + cols, mask=s0 + cols < V, other=-float("inf"))
            new = tl.maximum(tops, s)
            totals = totals * tl.exp((tops - new) / temperature) + tl.exp((s - new) / temperature)
            tops = new
        top = tl.max(tops, axis=0)
        total = tl.sum(totals * tl.exp((tops - top) / temperature), axis=0)
    logp = (picked - top) / temperature - tl.log(total)
    tl.store(logp_out + row, logp)
    length = tl.load(lengths + b)
    o = tl.load(old + row)
    r = tl.load(ref + row)
    a = tl.load(adv + b)
    diff = tl.minimum(tl.maximum(logp - o, -5.0), 5.0)
    ratio = tl.exp(diff)
    clipped = tl.minimum(tl.maximum(ratio, 1 - clip), 1 + clip)
    policy = -tl.minimum(ratio * a, clipped * a)
    off = tl.minimum(tl.maximum(r - logp, -5.0), 5.0)
    kl = tl.exp(off) - off - 1
    value = (policy + beta * kl) / length.to(tl.float32)
    value = tl.where(t < length, value, 0.0)
    tl.store(rows + row, value)


@triton.jit
def final_kernel(rows, loss, TOTAL, B, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for s in range(0, TOTAL, BLOCK):
        acc += tl.load(rows + s + i, mask=s + i < TOTAL, other=0.0)
    tl.store(loss, tl.sum(acc, axis=0) / B)


class ModelNew(torch.nn.Module):
    def __init__(self, temperature, clip, beta):
        super().__init__()
        self.temperature = temperature
        self.clip = clip
        self.beta = beta

    def forward(self, logits, tokens, old_logp, ref_logp, advantages, lengths):
        B, T, V = logits.shape
        logp = torch.empty((B, T), device=logits.device, dtype=logits.dtype)
        rows = torch.empty((B, T), device=logits.device, dtype=torch.float32)
        loss = torch.empty((), device=logits.device, dtype=logits.dtype)
        BLOCK = max(128, triton.next_power_of_2(V))
        one = BLOCK <= 16384
        if not one:
            BLOCK = 4096
        warps = 16 if BLOCK >= 16384 else (8 if BLOCK >= 4096 else 4)
        token_kernel[(B * T,)](logits, tokens, old_logp, ref_logp, advantages, lengths, logp, rows, B, T, V,
                               float(self.temperature), float(self.clip), float(self.beta),
                               ONE=one, BLOCK=BLOCK, num_warps=warps)
        final_kernel[(1,)](rows, loss, B * T, B, BLOCK=1024, num_warps=8)
        return loss, logp
