"""Elementwise kernels and copies whose lengths and orders are no friend of vectors."""
import torch.nn.functional as F

from .suite import Case, kernel


@kernel(dict(M=3073, N=294913), dict(M=3, N=37))
def relu_odd(data, M, N):
    """Elements that are no multiple of four."""
    return Case(dict(x=data.floats(M, N)), lambda x: F.relu(x), bytes=M*N*8)


@kernel(dict(M=8191, N=32771), dict(M=3, N=37), tolerance=1e-2)
def gelu_odd_bf16(data, M, N):
    """Rows of bf16 that begin anywhere."""
    def eager(x, b):
        return F.gelu(x + b)
    return Case(dict(x=data.normal(M, N), b=data.normal(N)), eager, bytes=M*N*4)


@kernel(dict(M=8192, N=16384), dict(M=3, N=38))
def halves_with_offset(data, M, N):
    """Slices that begin one element behind a vector's place: x[:, 1:] - x[:, :-1]."""
    return Case(dict(x=data.floats(M, N)), lambda x: x[:, 1:] - x[:, :-1], bytes=M*N*8)


@kernel(dict(B=64, H=32, S=1024, D=64), dict(B=2, H=3, S=5, D=7))
def permute_4d(data, B, H, S, D):
    """A copy with the innermost dim moved."""
    return Case(dict(x=data.normal(B, S, H, D)), lambda x: x.permute(0, 2, 3, 1).contiguous(), bytes=B*H*S*D*4)


@kernel(dict(M=16384, N=14336), dict(M=3, N=38), tolerance=1e-2)
def swiglu_packed(data, M, N):
    """SwiGLU of a row's two halves."""
    def eager(x):
        a, b = x.chunk(2, 1)
        return F.silu(a)*b

    def liger():
        from liger_kernel.ops.swiglu import LigerSiLUMulFunction
        a, b = (one.contiguous() for one in tensors["x"].chunk(2, 1))
        return lambda: LigerSiLUMulFunction.apply(a, b)
    tensors = dict(x=data.normal(M, 2*N))
    return Case(tensors, eager, bytes=M*N*6, peers={"Liger (two tensors)": liger})


@kernel(dict(M=8192, N=8192), dict(M=3, N=38), tolerance=1e-2)
def dropout_add(data, M, N):
    """Dropout by a mask, scaled, and the residual."""
    def eager(x, r, mask):
        return x*mask/0.9 + r
    tensors = dict(x=data.normal(M, N), r=data.normal(M, N), mask=data.uniform(M, N) < 0.9)
    return Case(tensors, eager, bytes=M*N*7)


@kernel(dict(M=8192, N=8192), dict(M=9, N=38), tolerance=1e-4)
def cumsum_columns(data, M, N):
    """Sums along the outer dim."""
    return Case(dict(x=data.floats(M, N)), lambda x: x.cumsum(0), bytes=M*N*8)
