import torch
import triton
import triton.language as tl


@triton.jit
def rms_backward_kernel(x, grad, w, gx, part, R, N, P, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    wv = tl.load(w + cols, mask=mask, other=0.0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for row in range(pid, R, P):
        at = row.to(tl.int64) * N + cols
        xv = tl.load(x + at, mask=mask, other=0.0)
        gv = tl.load(grad + at, mask=mask, other=0.0)
        wg = gv * wv
        r = 1.0 / tl.sqrt(tl.sum(xv * xv, axis=0) / N + eps)
        normed = xv * r
        c = tl.sum(wg * normed, axis=0) / N
        tl.store(gx + at, r * (wg - normed * c), mask=mask)
        acc += gv * normed
    tl.store(part + pid.to(tl.int64) * N + cols, acc, mask=mask)


@triton.jit
def column_kernel(part, out, P, N, BP: tl.constexpr, BC: tl.constexpr):
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    acc = tl.zeros((BP, BC), tl.float32)
    for p0 in range(0, P, BP):
        p = p0 + tl.arange(0, BP)
        acc += tl.load(part + p[:, None] * N + c[None, :], mask=(p[:, None] < P) & (c[None, :] < N), other=0.0)
    tl.store(out + c, tl.sum(acc, axis=0), mask=c < N)


class ModelNew(torch.nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(1 + 0.1 * torch.randn(dim))

    def forward(self, x, grad):
        N = x.shape[-1]
        R = x.numel() // N
        gx = torch.empty_like(x)
        gw = torch.empty_like(self.weight)
        BLOCK = max(32, triton.next_power_of_2(N))
        warps = 16 if BLOCK >= 8192 else (8 if BLOCK >= 2048 else (4 if BLOCK >= 512 else 2))
        P = min(R, 132 * 4)
        P = triton.cdiv(R, triton.cdiv(R, P))
        part = torch.empty((P, N), device=x.device, dtype=torch.float32)
        rms_backward_kernel[(P,)](x, grad, self.weight, gx, part, R, N, P, float(self.eps), BLOCK=BLOCK, num_warps=warps)
        column_kernel[(triton.cdiv(N, 16),)](part, gw, P, N, BP=128, BC=16, num_warps=8)
        return gx, gw
