"""Norms with what stands beside them, and rotary embeddings."""
import torch
import torch.nn.functional as F

from .suite import Case, bf16, kernel, wide


@kernel(dict(M=16384, N=4096), dict(M=7, N=50), tolerance=2e-2)
def rms_norm_add(data, M, N):
    """The residual is added, and both are results."""
    def eager(x, r, w):
        s = x + r
        return F.rms_norm(s, (N,), w, 1e-6), s
    return Case(dict(x=data.normal(M, N), r=data.normal(M, N), w=data.normal(N)), eager, bytes=M*N*8)


@kernel(dict(M=32768, N=1024), dict(M=7, N=50))
def layer_norm_modulate(data, M, N, S=256):
    """A diffusion transformer's layer norm, without weights, shifted and scaled by each sample's vectors."""
    S = min(S, M)

    def eager(x, shift, scale):
        return F.layer_norm(x, (N,))*(1 + scale[:, None]) + shift[:, None]
    B = max(M//S, 1)
    tensors = dict(x=data.normal(B, S, N), shift=data.normal(B, N), scale=data.normal(B, N))
    return Case(tensors, eager, bytes=M*N*4)


@kernel(dict(N=16, C=512, H=64, W=64, G=32), dict(N=2, C=8, H=5, W=6, G=4), tolerance=2e-2)
def group_norm_silu(data, N, C, H, W, G):
    """As in diffusion models' convolutional blocks."""
    def eager(x, w, b):
        return F.silu(F.group_norm(x, G, w, b))
    tensors = dict(x=data.normal(N, C, H, W), w=data.normal(C), b=data.normal(C))
    return Case(tensors, eager, bytes=N*C*H*W*4, constants={"G": str(G)})


@kernel(dict(B=4, S=4096, H=32, G=8, D=128), dict(B=2, S=5, H=4, G=2, D=16), tolerance=2e-2)
def rope_qk(data, B, S, H, G, D):
    """Halves of a head's vector rotate with each other, queries and keys in one call."""
    def eager(q, k, cos, sin):
        def turned(x):
            a, b = x.chunk(2, -1)
            return (x*cos[:, None] + torch.cat((-b, a), -1)*sin[:, None]).to(x.dtype)
        return turned(q), turned(k)

    def liger():
        from liger_kernel.ops.rope import LigerRopeFunction
        q, k = (tensors[name].clone().transpose(1, 2) for name in "qk")
        cos, sin = (tensors[name][None].to(bf16) for name in ("cos", "sin"))
        return lambda: tuple(one.transpose(1, 2) for one in LigerRopeFunction.apply(q, k, cos, sin))
    angle = data.uniform(S, D//2, high=6.28).repeat(1, 2)
    tensors = dict(q=data.normal(B, S, H, D), k=data.normal(B, S, G, D), cos=angle.cos(), sin=angle.sin())
    return Case(tensors, eager, bytes=B*S*(H + G)*D*4, peers={"Liger (in place)": liger})


@kernel(dict(B=4, S=4096, H=32, D=128), dict(B=2, S=5, H=4, D=16), tolerance=2e-2)
def rope_interleaved(data, B, S, H, D):
    """Neighbours of a head's vector rotate with each other."""
    def eager(x, cos, sin):
        a, b = wide(x)[..., ::2], wide(x)[..., 1::2]
        c, s = cos[:, None], sin[:, None]
        return torch.stack((a*c - b*s, a*s + b*c), -1).flatten(3).to(x.dtype)
    angle = data.uniform(S, D//2, high=6.28)
    return Case(dict(x=data.normal(B, S, H, D), cos=angle.cos(), sin=angle.sin()), eager, bytes=B*S*H*D*4)


@kernel(dict(B=4, S=4096, H=32, D=128), dict(B=2, S=5, H=4, D=16), tolerance=2e-2)
def qk_norm_rope(data, B, S, H, D):
    """An RMS norm of each head's vector, then its rotation, as in Qwen's attention."""
    def eager(x, w, cos, sin):
        x = F.rms_norm(x, (D,), w, 1e-6)
        a, b = wide(x).chunk(2, -1)
        c, s = cos[:, None], sin[:, None]
        return torch.cat((a*c - b*s, b*c + a*s), -1).to(x.dtype)
    angle = data.uniform(S, D//2, high=6.28)
    return Case(dict(x=data.normal(B, S, H, D), w=data.normal(D), cos=angle.cos(), sin=angle.sin()), eager, bytes=B*S*H*D*4)
