import torch
import triton
import triton.language as tl


@triton.jit
def combine_kernel(rows, place, gates, shared, residual, w, h_out, y_out, D, eps, K: tl.constexpr, BLOCK: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < D
    at = t * D + cols
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(K):
        p = tl.load(place + t * K + k).to(tl.int64)
        g = tl.load(gates + t * K + k).to(tl.float32)
        v = tl.load(rows + tl.maximum(p, 0) * D + cols, mask=mask & (p >= 0), other=0.0).to(tl.float32)
        acc += v * tl.where(p >= 0, g, 0.0)
    s = tl.load(shared + at, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(residual + at, mask=mask, other=0.0).to(tl.float32)
    wv = tl.load(w + cols, mask=mask, other=0.0)
    h = r + s + acc
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / D + eps)
    tl.store(h_out + at, h, mask=mask)
    tl.store(y_out + at, wv * h * scale, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(1 + 0.1 * torch.randn(dim))

    def forward(self, expert_out, place, gates, shared, residual):
        T, D = residual.shape
        K = place.shape[1]
        h = torch.empty_like(residual)
        y = torch.empty_like(residual)
        BLOCK = max(32, triton.next_power_of_2(D))
        warps = 16 if BLOCK >= 8192 else (8 if BLOCK >= 2048 else (4 if BLOCK >= 512 else 2))
        combine_kernel[(T,)](expert_out, place, gates, shared, residual, self.weight, h, y, D, float(self.eps),
                             K=K, BLOCK=BLOCK, num_warps=warps)
        return h, y
