import torch
import triton
import triton.language as tl


@triton.jit
def norm_backward_kernel(x, res, gy, gh, gamma, out, part, R, N, P, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    wv = tl.load(gamma + cols, mask=mask, other=0.0)
    dg = tl.zeros((BLOCK,), tl.float32)
    db = tl.zeros((BLOCK,), tl.float32)
    for row in range(pid, R, P):
        at = row.to(tl.int64) * N + cols
        h = tl.load(x + at, mask=mask, other=0.0) + tl.load(res + at, mask=mask, other=0.0)
        dy = tl.load(gy + at, mask=mask, other=0.0)
        dh = tl.load(gh + at, mask=mask, other=0.0)
        g = dy * wv
        mean = tl.sum(h, axis=0) / N
        c = tl.where(mask, h - mean, 0.0)
        inverse = 1.0 / tl.sqrt(tl.sum(c * c, axis=0) / N + eps)
        normed = c * inverse
        gm = tl.sum(g, axis=0) / N
        gn = tl.sum(g * normed, axis=0) / N
        tl.store(out + at, dh + (g - gm - normed * gn) * inverse, mask=mask)
        dg += dy * normed
        db += dy
    base = pid.to(tl.int64) * 2 * N + cols
    tl.store(part + base, dg, mask=mask)
    tl.store(part + base + N, db, mask=mask)


@triton.jit
def column_kernel(part, out_g, out_b, P, N, BP: tl.constexpr, BC: tl.constexpr):
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    which = tl.program_id(1)
    acc = tl.zeros((BP, BC), tl.float32)
    for p0 in range(0, P, BP):
        p = p0 + tl.arange(0, BP)
        acc += tl.load(part + (p[:, None] * 2 + which) * N + c[None, :],
                       mask=(p[:, None] < P) & (c[None, :] < N), other=0.0)
    y = tl.sum(acc, axis=0)
    if which == 0:
        tl.store(out_g + c, y, mask=c < N)
    else:
        tl.store(out_b + c, y, mask=c < N)


class ModelNew(torch.nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.eps = eps
        self.gamma = torch.nn.Parameter(1 + 0.1 * torch.randn(dim))

    def forward(self, x, residual, grad_y, grad_h):
        N = x.shape[-1]
        R = x.numel() // N
        out = torch.empty_like(x)
        dg = torch.empty_like(self.gamma)
        db = torch.empty_like(self.gamma)
        BLOCK = max(32, triton.next_power_of_2(N))
        warps = 16 if BLOCK >= 8192 else (8 if BLOCK >= 2048 else (4 if BLOCK >= 512 else 2))
        P = min(R, 132 * 3)
        P = triton.cdiv(R, triton.cdiv(R, P))
        part = torch.empty((P, 2, N), device=x.device, dtype=torch.float32)
        norm_backward_kernel[(P,)](x, residual, grad_y, grad_h, self.gamma, out, part, R, N, P, float(self.eps),
                                   BLOCK=BLOCK, num_warps=warps)
        column_kernel[(triton.cdiv(N, 16), 2)](part, dg, db, P, N, BP=128, BC=16, num_warps=8)
        return out, dg, db
