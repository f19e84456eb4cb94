"""Backward passes as frameworks run them: eager mode's time is that of autograd's backward pass alone."""
import math

import torch
import torch.nn.functional as F

from .suite import Case, backward, gradients, kernel, wide


@kernel(dict(B=4, H=16, S=2048, D=128), dict(B=2, H=2, S=37, D=16), tolerance=3e-2, compiled=False)
def attention_backward(data, B, H, S, D):
    """Causal attention, from its result and the logsumexps of its rows."""
    def forward(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    tensors = {name: data.normal(B, H, S, D) for name in ("q", "k", "v", "do")}
    q, k, v, do = tensors.values()
    scores = wide(q @ k.transpose(2, 3))*D**-0.5
    later = torch.ones(S, S, device=data.device, dtype=torch.bool).triu(1)
    tensors |= dict(o=forward(q, k, v), lse=torch.logsumexp(scores.masked_fill(later, -math.inf), -1))
    return Case(tensors, lambda q, k, v, do, **_: gradients(forward, (q, k, v), do), timed=backward(forward, (q, k, v), do),
                bytes=B*H*S*D*2*8, operations=dict(bf16=5*B*H*S*S*D))


@kernel(dict(M=16384, N=4096), dict(M=7, N=50), tolerance=3e-2, compiled=False)
def rms_norm_backward(data, M, N):
    """Gradients of rows and of the weight from one reading."""
    def forward(x, w):
        return F.rms_norm(x, (N,), w, 1e-6)

    def liger():
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction
        return backward(lambda x, w: LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False), (x, w), dy)()
    x, w, dy = data.normal(M, N), data.normal(N), data.normal(M, N)
    return Case(dict(x=x, w=w, dy=dy), lambda x, w, dy: gradients(forward, (x, w), dy), timed=backward(forward, (x, w), dy),
                peers={"Liger": liger}, bytes=M*N*6)


@kernel(dict(M=16384, N=4096), dict(M=7, N=50), tolerance=3e-2, compiled=False)
def layer_norm_backward(data, M, N):
    """Gradients of rows, weight and bias from one reading."""
    def forward(x, w, b):
        return F.layer_norm(x, (N,), w, b)

    def liger():
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction
        return backward(lambda x, w, b: LigerLayerNormFunction.apply(x, w, b, 1e-5), (x, w, torch.zeros_like(w)), dy)()
    x, w, dy = data.normal(M, N), data.normal(N), data.normal(M, N)
    return Case(dict(x=x, w=w, dy=dy), lambda x, w, dy: gradients(forward, (x, w, torch.zeros_like(w)), dy),
                timed=backward(forward, (x, w, torch.zeros_like(w)), dy), peers={"Liger": liger}, bytes=M*N*6)


@kernel(dict(N=64, C=128, H=56, W=56), dict(N=3, C=5, H=6, W=7), tolerance=1e-4, compiled=False)
def batch_norm_backward(data, N, C, H, W):
    """In training mode: statistics of the batch, made again from x."""
    def forward(x, w, b):
        return F.batch_norm(x, None, None, w, b, True)
    x, w, dy = data.floats(N, C, H, W), data.uniform(C, low=0.5), data.floats(N, C, H, W)
    return Case(dict(x=x, w=w, dy=dy), lambda x, w, dy: gradients(forward, (x, w, torch.zeros_like(w)), dy),
                timed=backward(forward, (x, w, torch.zeros_like(w)), dy), bytes=N*C*H*W*4*5)


@kernel(dict(M=32768, N=2048), dict(M=7, N=50))
def softmax_backward(data, M, N):
    """From the probabilities."""
    def eager(p, dp):
        return torch._softmax_backward_data(dp, p, -1, p.dtype)
    tensors = dict(p=torch.softmax(data.floats(M, N), -1).bfloat16(), dp=data.normal(M, N))
    return Case(tensors, eager, bytes=M*N*6)


@kernel(dict(M=8192, N=14336), dict(M=7, N=50), tolerance=2e-2, compiled=False)
def swiglu_backward(data, M, N):
    """Of silu(a)*b with regard to both."""
    def forward(a, b):
        return F.silu(a)*b

    def liger():
        from liger_kernel.ops.swiglu import LigerSiLUMulFunction
        return backward(lambda a, b: LigerSiLUMulFunction.apply(a, b), (a, b), dy)()  # of copies, which it overwrites
    a, b, dy = (data.normal(M, N) for _ in range(3))
    return Case(dict(a=a, b=b, dy=dy), lambda a, b, dy: gradients(forward, (a, b), dy), timed=backward(forward, (a, b), dy),
                peers={"Liger (in place)": liger}, bytes=M*N*10)


@kernel(dict(M=8192, N=4096, K=4096), dict(M=17, N=20, K=24), tolerance=2e-2, compiled=False)
def linear_backward(data, M, N, K):
    """Gradients of rows, weight and bias of a linear layer."""
    def forward(x, w, b):
        return F.linear(x, w, b)
    x, w, dy = data.normal(M, K), data.normal(N, K), data.normal(M, N)
    zeros = torch.zeros(N, device=data.device, dtype=x.dtype)
    return Case(dict(x=x, w=w, dy=dy), lambda x, w, dy: gradients(forward, (x, w, zeros.to(x.dtype)), dy),
                timed=backward(forward, (x, w, zeros), dy), bytes=4*(M*K + N*K) + 2*M*N, operations=dict(bf16=4*M*N*K))


@kernel(dict(M=16384, V=50304, D=1024), dict(M=60, V=17, D=8), tolerance=1e-5)
def embedding_backward(data, M, V, D):
    """Rows added to those of a table that ids name."""
    def eager(dy, ids):
        return torch.ops.aten.embedding_dense_backward(dy, ids, V, -1, False)
    tensors = dict(dy=data.floats(M, D), ids=data.integers(0, V, M, dtype=torch.int64))
    return Case(tensors, eager, bytes=(M + V)*D*4, constants={"V": str(V)})


@kernel(dict(N=32, C=128, H=56, W=56, O=128), dict(N=2, C=5, H=6, W=7, O=4), tolerance=1e-2, compiled=False)
def conv2d_weight_grad(data, N, C, H, W, O):
    """Of a convolution of 3 x 3."""
    def eager(x, dy):
        return wide(torch.nn.grad.conv2d_weight(x, (O, C, 3, 3), dy, padding=1))
    tensors = dict(x=data.normal(N, C, H, W), dy=data.normal(N, O, H, W))
    return Case(tensors, eager, bytes=N*H*W*(C + O)*2, operations=dict(bf16=2*N*H*W*C*O*9))
