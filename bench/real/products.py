"""Products of few rows, and products with something before or after them."""
import torch.nn.functional as F

from .suite import Case, kernel, wide


def few_rows(data, M, N, K):
    return Case(dict(x=data.normal(M, K), w=data.normal(N, K)), lambda x, w: x @ w.t(), bytes=2*(N*K + M*K + M*N),
                operations=dict(bf16=2*M*N*K))


@kernel(dict(M=1, N=14336, K=4096), dict(M=1, N=20, K=40))
def linear_1_row(data, M, N, K):
    """The weights' bytes are the time."""
    return few_rows(data, M, N, K)


@kernel(dict(M=8, N=14336, K=4096), dict(M=8, N=20, K=40))
def linear_8_rows(data, M, N, K):
    """The weights' bytes are the time."""
    return few_rows(data, M, N, K)


@kernel(dict(M=32, N=14336, K=4096), dict(M=32, N=20, K=40))
def linear_32_rows(data, M, N, K):
    """The weights' bytes are the time."""
    return few_rows(data, M, N, K)


@kernel(dict(M=64, N=2112, K=7168), dict(M=6, N=21, K=40))
def latent_projection(data, M, N, K):
    """DeepSeek's projection of queries and latent keys: few rows, a width that fills no grid."""
    return few_rows(data, M, N, K)


@kernel(dict(M=64, N=256, K=7168), dict(M=5, N=16, K=40))
def router_gemm(data, M, N, K):
    """Scores of experts, in f32, of bf16 rows."""
    def eager(x, w):
        return wide(x) @ wide(w).t()
    return Case(dict(x=data.normal(M, K), w=data.normal(N, K)), eager, bytes=2*(N*K + M*K) + 4*M*N,
                operations=dict(bf16=2*M*N*K))


@kernel(dict(M=256, N=256, K=256), dict(M=9, N=20, K=40), tolerance=1e-5)
def linear_f32_256(data, M, N, K):
    """A small f32 product at f32's accuracy: latency."""
    return Case(dict(x=data.floats(M, K), w=data.floats(N, K)), lambda x, w: x @ w.t(),
                bytes=4*(N*K + M*K + M*N), operations=dict(bf16=2*M*N*K))


@kernel(dict(M=1536, N=1536, K=1536), dict(M=9, N=20, K=40))
def linear_1536(data, M, N, K):
    """A product that does not fill the card evenly."""
    return few_rows(data, M, N, K)


@kernel(dict(M=16, D=4096, H=14336), dict(M=3, D=24, H=40), tolerance=2e-2)
def swiglu_mlp_16_rows(data, M, D, H):
    """A feed-forward layer of 16 rows."""
    def eager(x, a, b, c):
        return (F.silu(x @ a.t())*(x @ b.t())) @ c.t()
    tensors = dict(x=data.normal(M, D), a=data.normal(H, D, scale=0.02), b=data.normal(H, D, scale=0.02),
                   c=data.normal(D, H, scale=0.02))
    return Case(tensors, eager, bytes=3*D*H*2, operations=dict(bf16=6*M*D*H))


@kernel(dict(M=8192, D=4096, H=14336), dict(M=17, D=24, H=40), tolerance=2e-2)
def gemm_swiglu(data, M, D, H):
    """Two products of the same rows, and SwiGLU's product of them."""
    def eager(x, a, b):
        return F.silu(x @ a.t())*(x @ b.t())
    tensors = dict(x=data.normal(M, D), a=data.normal(H, D, scale=0.02), b=data.normal(H, D, scale=0.02))
    return Case(tensors, eager, bytes=2*(M*D + 2*H*D + M*H), operations=dict(bf16=4*M*D*H))


@kernel(dict(M=2048, K=2048, N=2048), dict(M=9, K=40, N=20), tolerance=2e-2)
def linear_add_rms_norm(data, M, K, N):
    """A product, the residual, and an RMS norm of the rows."""
    def eager(x, w, g, r):
        return F.rms_norm(x @ w.t() + r, (N,), g, 1e-6)
    tensors = dict(x=data.normal(M, K), w=data.normal(N, K, scale=0.02), g=data.normal(N), r=data.normal(M, N))
    return Case(tensors, eager, bytes=M*N*8, operations=dict(bf16=2*M*N*K))


@kernel(dict(M=256, K=4096, N=4096, R=16, L=32), dict(M=9, K=40, N=20, R=4, L=3), tolerance=2e-2, compiled=False)
def lora_batched(data, M, K, N, R, L):
    """Each row's own adapter of rank 16, of 32, added to the layer's result."""
    def eager(y, x, a, b, adapter):
        results = y.clone()
        for one in range(L):
            rows = (adapter == one).nonzero()[:, 0]
            results[rows] += (x[rows] @ a[one].t()) @ b[one].t()
        return results
    tensors = dict(y=data.normal(M, N), x=data.normal(M, K), a=data.normal(L, R, K, scale=0.02), b=data.normal(L, N, R),
                   adapter=data.integers(0, L, M))
    return Case(tensors, eager, bytes=2*(2*M*N + M*K + L*R*(K + N)), operations=dict(bf16=2*M*R*(K + N)))


@kernel(dict(M=4096, K=4096, N=4096), dict(M=9, K=40, N=20), tolerance=2e-2)
def rms_norm_linear(data, M, K, N):
    """An RMS norm, and a product of its rows."""
    def eager(x, g, w):
        return F.rms_norm(x, (K,), g, 1e-6) @ w.t()
    tensors = dict(x=data.normal(M, K), g=data.normal(K), w=data.normal(N, K, scale=0.02))
    return Case(tensors, eager, bytes=2*(M*K + N*K + M*N), operations=dict(bf16=2*M*N*K))


@kernel(dict(M=8192, K=1024, N=4096), dict(M=9, K=40, N=20), tolerance=2e-2)
def linear_bias_gelu(data, M, K, N):
    """A product with bias and GELU, and the value before GELU for the backward pass."""
    def eager(x, w, b):
        h = F.linear(x, w, b)
        return h, F.gelu(h)
    tensors = dict(x=data.normal(M, K), w=data.normal(N, K, scale=0.03), b=data.normal(N))
    return Case(tensors, eager, bytes=2*(M*K + N*K + 2*M*N), operations=dict(bf16=2*M*N*K))


@kernel(dict(B=64, M=64, N=64, K=64), dict(B=3, M=9, N=7, K=5), tolerance=1e-4)
def bmm_f32_64(data, B, M, N, K):
    """Small f32 products, many of them."""
    return Case(dict(a=data.floats(B, M, K), b=data.floats(B, K, N)), lambda a, b: a @ b, bytes=4*B*(M*K + K*N + M*N),
                operations=dict(bf16=2*B*M*N*K))
