import torch
import triton
import triton.language as tl


@triton.jit
def softmax_backward_kernel(x, g, out, lse, S, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = (row % S).to(tl.int32)
    cols = tl.arange(0, BLOCK)
    seen = cols <= i
    at = row * S + cols
    s = tl.load(x + at, mask=seen, other=0.0) * scale
    gv = tl.load(g + at, mask=seen, other=0.0)
    s = tl.where(seen, s, -float("inf"))
    top = tl.max(s, axis=0)
    e = tl.exp(s - top)
    total = tl.sum(e, axis=0)
    p = e / total
    delta = tl.sum(p * gv, axis=0)
    tl.store(out + at, p * (gv - delta) * scale, mask=cols < S)
    tl.store(lse + row, top + tl.log(total))


class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, scores, grad_probabilities):
        S = scores.shape[-1]
        rows = scores.numel() // S
        out = torch.empty_like(scores)
        lse = torch.empty(scores.shape[:-1], device=scores.device, dtype=scores.dtype)
        BLOCK = max(32, triton.next_power_of_2(S))
        warps = 1 if BLOCK <= 256 else (2 if BLOCK <= 512 else (4 if BLOCK <= 2048 else (8 if BLOCK <= 4096 else 16)))
        softmax_backward_kernel[(rows,)](scores, grad_probabilities, out, lse, S, float(self.scale),
                                         BLOCK=BLOCK, num_warps=warps)
        return out, lse
