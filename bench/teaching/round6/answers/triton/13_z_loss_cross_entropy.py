import torch
import triton
import triton.language as tl


@triton.jit
def count_labels(labels, M, BL: tl.constexpr):
    i = tl.arange(0, BL)
    c = tl.zeros((BL,), tl.int32)
    for s in range(0, M, BL):
        y = tl.load(labels + s + i, mask=s + i < M, other=-1)
        c += (y >= 0).to(tl.int32)
    return tl.maximum(tl.sum(c, axis=0), 1).to(tl.float32)


@triton.jit
def row_kernel(x, labels, grad, rows, M, V, smoothing, z, BLOCK: tl.constexpr, BL: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    cols = tl.arange(0, BLOCK)
    mask = cols < V
    at = row * V + cols
    if label < 0:
        tl.store(grad + at, tl.zeros((BLOCK,), tl.float32), mask=mask)
        tl.store(rows + row, 0.0)
        tl.store(rows + M + row, 0.0)
    else:
        s = tl.load(x + at, mask=mask, other=-float("inf"))
        number = count_labels(labels, M, BL)
        picked = tl.load(x + row * V + label)
        top = tl.max(s, axis=0)
        total = tl.sum(tl.exp(s - top), axis=0)
        mean = tl.sum(tl.where(mask, s, 0.0), axis=0) / V
        lse = top + tl.log(total)
        tl.store(rows + row, lse - (1 - smoothing) * picked - smoothing * mean)
        tl.store(rows + M + row, z * lse * lse)
        g = tl.exp(s - top) * ((1 + 2 * z * lse) / total) - smoothing / V
        g = tl.where(cols == label, g + (smoothing - 1), g)
        tl.store(grad + at, g / number, mask=mask)


@triton.jit
def long_row_kernel(x, labels, grad, rows, M, V, smoothing, z, BLOCK: tl.constexpr, BL: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    cols = tl.arange(0, BLOCK)
    base = row * V
    if label < 0:
        for s0 in range(0, V, BLOCK):
            tl.store(grad + base + s0 + cols, tl.zeros((BLOCK,), tl.float32), mask=s0 + cols < V)
        tl.store(rows + row, 0.0)
        tl.store(rows + M + row, 0.0)
    else:
        number = count_labels(labels, M, BL)
        picked = tl.load(x + base + label)
        tops = tl.full((BLOCK,), -1e38, tl.float32)
        totals = tl.zeros((BLOCK,), tl.float32)
        sums = tl.zeros((BLOCK,), tl.float32)
        for s0 in range(0, V, BLOCK):
            mask = s0 + cols < V
            s = tl.load(x + base + s0 + cols, mask=mask, other=-float("inf"))
            new = tl.maximum(tops, s)
            totals = totals * tl.exp(tops - new) + tl.exp(s - new)
            sums += tl.where(mask, s, 0.0)
            tops = new
        top = tl.max(tops, axis=0)
        total = tl.sum(totals * tl.exp(tops - top), axis=0)
        mean = tl.sum(sums, axis=0) / V
        lse = top + tl.log(total)
        tl.store(rows + row, lse - (1 - smoothing) * picked - smoothing * mean)
        tl.store(rows + M + row, z * lse * lse)
        factor = (1 + 2 * z * lse) / total
        for s0 in range(0, V, BLOCK):
            c = s0 + cols
            s = tl.load(x + base + c, mask=c < V, other=-float("inf"))
            g = tl.exp(s - top) * factor - smoothing / V
            g = tl.where(c == label, g + (smoothing - 1), g)
            tl.store(grad + base + c, g / number, mask=c < V)


@triton.jit
def final_kernel(rows, labels, loss, penalty, M, BL: tl.constexpr):
    number = count_labels(labels, M, BL)
    i = tl.arange(0, BL)
    a = tl.zeros((BL,), tl.float32)
    b = tl.zeros((BL,), tl.float32)
    for s in range(0, M, BL):
        a += tl.load(rows + s + i, mask=s + i < M, other=0.0)
        b += tl.load(rows + M + s + i, mask=s + i < M, other=0.0)
    tl.store(loss, tl.sum(a, axis=0) / number)
    tl.store(penalty, tl.sum(b, axis=0) / number)


class ModelNew(torch.nn.Module):
    def __init__(self, smoothing, z_weight):
        super().__init__()
        self.smoothing = smoothing
        self.z_weight = z_weight

    def forward(self, logits, labels):
        M, V = logits.shape
        grad = torch.empty_like(logits)
        loss = torch.empty((), device=logits.device, dtype=logits.dtype)
        penalty = torch.empty((), device=logits.device, dtype=logits.dtype)
        rows = torch.empty((2, M), device=logits.device, dtype=torch.float32)
        BLOCK = max(128, triton.next_power_of_2(V))
        if BLOCK <= 16384:
            warps = 16 if BLOCK >= 8192 else (8 if BLOCK >= 4096 else 4)
            row_kernel[(M,)](logits, labels, grad, rows, M, V, float(self.smoothing), float(self.z_weight),
                             BLOCK=BLOCK, BL=1024, num_warps=warps)
        else:
            long_row_kernel[(M,)](logits, labels, grad, rows, M, V, float(self.smoothing), float(self.z_weight),
                                  BLOCK=4096, BL=1024, num_warps=8)
        final_kernel[(1,)](rows, labels, loss, penalty, M, BL=1024, num_warps=8)
        return loss, penalty, grad
