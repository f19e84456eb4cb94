"""Products of narrow types with scales, weights in packed words, and quantisation beside what makes the values."""
import torch
import torch.nn.functional as F

from .suite import Case, bf16, f8, f32, kernel, low, wide


def scaled(tensor, scale):
    """A tensor of fp8 times scales, in bf16."""
    tensor = low(tensor)
    return (wide(tensor)*scale).to(tensor.dtype)


def bf16_product(x, N):
    """A peer: the same product of weights in bf16."""
    def make():
        w = torch.randn(N, x.shape[1], device=x.device, dtype=bf16)

        def call():
            x @ w.t()
            return (None,)
        return call
    return make


def block_scaled(data, M, N, K, G):
    def eager(a, sa, b, sb):
        a, b = scaled(a.view(M, -1, G), sa[..., None]), scaled(b.view(N//G, G, -1, G), sb[:, None, :, None])
        return a.view(M, K) @ b.view(N, K).t()

    def scaled_mm():
        sa, sb = tensors["sa"].t().contiguous().t(), tensors["sb"].t()
        return lambda: torch._scaled_mm(tensors["a"], tensors["b"].t(), sa, sb, out_dtype=bf16)
    tensors = dict(a=data.normal(M, K, dtype=f8), sa=data.uniform(M, K//G, low=0.5, high=1.5), b=data.normal(N, K, dtype=f8),
                   sb=data.uniform(N//G, K//G, low=0.5, high=1.5))
    return Case(tensors, eager, bytes=M*K + N*K + 2*M*N, operations=dict(f8=2*M*N*K), peers={"scaled_mm": scaled_mm})


@kernel(dict(M=4096, N=7168, K=4096, G=128), dict(M=9, N=256, K=256, G=128), tolerance=2e-2)
def fp8_block_gemm(data, M, N, K, G):
    """Scales of 1 x 128 and 128 x 128, the sum written block by block."""
    return block_scaled(data, M, N, K, G)


@kernel(dict(M=4096, N=7168, K=4096, G=128), dict(M=9, N=256, K=256, G=128), tolerance=2e-2)
def fp8_block_gemm_flat(data, M, N, K, G):
    """The same, written as one sum whose scales are read at k//128."""
    return block_scaled(data, M, N, K, G)


@kernel(dict(M=4096, N=4096, K=4096), dict(M=9, N=20, K=40), tolerance=2e-2)
def fp8_tensor_gemm(data, M, N, K):
    """One scale for each operand."""
    def eager(a, b, sa, sb):
        return scaled(low(a) @ low(b).t(), sa*sb)

    def scaled_mm():
        return lambda: torch._scaled_mm(tensors["a"], tensors["b"].t(), tensors["sa"][0], tensors["sb"][0], out_dtype=bf16)
    tensors = dict(a=data.normal(M, K, dtype=f8), b=data.normal(N, K, dtype=f8), sa=data.uniform(1), sb=data.uniform(1))
    return Case(tensors, eager, bytes=M*K + N*K + 2*M*N, operations=dict(f8=2*M*N*K), peers={"scaled_mm": scaled_mm})


@kernel(dict(M=32768, E=8, N=4096, K=7168), dict(M=21, E=3, N=20, K=128), tolerance=2e-2, compiled=False)
def fp8_grouped(data, M, E, N, K):
    """Rows, sorted by expert, times the expert's matrix: scales of 1 x 128 for rows, of a column for matrices."""
    def eager(x, sx, w, sw, e):
        x = scaled(x.view(M, -1, 128), sx[..., None]).view(M, K)
        y = torch.empty(M, N, device=x.device, dtype=x.dtype)
        for expert in range(E):
            y[e == expert] = x[e == expert] @ scaled(w[expert], sw[expert][:, None]).t()
        return y
    tensors = dict(x=data.normal(M, K, dtype=f8), sx=data.uniform(M, K//128, low=0.5, high=1.5),
                   w=data.normal(E, N, K, dtype=f8),
                   sw=data.uniform(E, N, low=0.5, high=1.5), e=data.integers(0, E, M).sort().values)
    return Case(tensors, eager, bytes=M*K + E*N*K + 2*M*N, operations=dict(f8=2*M*N*K))


@kernel(dict(E=32, R=192, N=4096, K=7168), dict(E=3, R=6, N=20, K=128), tolerance=2e-2)
def fp8_grouped_masked(data, E, R, N, K):
    """The same for decoding: each expert has up to R rows, of which the first are used."""
    def eager(x, sx, w, sw, rows):
        y = scaled(x.view(E, R, -1, 128), sx[..., None]).view(E, R, K) @ scaled(w, sw[..., None]).transpose(1, 2)
        return torch.where((torch.arange(R, device=x.device) < rows[:, None])[..., None], y, 0)
    rows = data.integers(R//4, R, E)
    tensors = dict(x=data.normal(E, R, K, dtype=f8), sx=data.uniform(E, R, K//128, low=0.5, high=1.5),
                   w=data.normal(E, N, K, dtype=f8),
                   sw=data.uniform(E, N, low=0.5, high=1.5), rows=rows)
    used = int(rows.sum())
    return Case(tensors, eager, bytes=used*K + E*N*K + 2*E*R*N, operations=dict(f8=2*used*N*K))


@kernel(dict(M=16, N=12288, K=4096), dict(M=3, N=20, K=256), tolerance=2e-2)
def w4a16_linear(data, M, N, K):
    """Weights of 4 bits, two in a byte, a scale and a zero point for 128 of them."""
    def eager(x, w, s, z):
        q = torch.stack((w & 15, w >> 4), -1).view(N, -1, 128).to(wide(s).dtype)
        return x @ ((q - wide(z)[..., None])*wide(s)[..., None]).view(N, K).to(x.dtype).t()
    tensors = dict(x=data.normal(M, K), w=data.integers(0, 256, N, K//2, dtype=torch.uint8),
                   s=data.normal(N, K//128, scale=0.02),
                   z=data.normal(N, K//128, scale=3))
    return Case(tensors, eager, bytes=N*K//2 + N*K//32 + M*K*2 + M*N*2, operations=dict(bf16=2*M*N*K),
                peers={"bf16 cuBLAS": bf16_product(tensors["x"], N)})


@kernel(dict(M=1, N=12288, K=4096), dict(M=1, N=24, K=256), tolerance=2e-2)
def w4a16_gptq(data, M, N, K):
    """GPTQ's order: eight weights of a column in an i32, zero points packed as well, rows of any group."""
    def eager(x, w, s, z, group):
        shifts = torch.arange(0, 32, 4, device=x.device, dtype=torch.int32)
        q = ((w[:, None] >> shifts[:, None]) & 15).reshape(K, N)
        zeros = ((z[..., None] >> shifts) & 15).reshape(-1, N)
        return x @ ((q - zeros[group.long()] - 1).to(wide(s).dtype)*wide(s)[group.long()]).to(x.dtype)
    tensors = dict(x=data.normal(M, K), w=data.integers(-2**31, 2**31, K//8, N), s=data.normal(K//128, N, scale=0.02),
                   z=data.integers(-2**31, 2**31, K//128, N//8), group=data.range(K, dtype=torch.int32)//128)
    return Case(tensors, eager, bytes=N*K//2 + N*K//64 + M*K*2 + M*N*2, operations=dict(bf16=2*M*N*K),
                peers={"bf16 cuBLAS": bf16_product(tensors["x"], N)})


@kernel(dict(M=4096, N=4096, K=4096), dict(M=9, N=20, K=40))
def w8a8_linear(data, M, N, K):
    """Products of i8, a scale for each row and each column."""
    def eager(x, w, sx, sw):
        product = torch._int_mm(x, w.t()) if x.is_cuda else x.int() @ w.int().t()
        return (product.to(sx.dtype)*sx[:, None]*sw).to(bf16 if sx.dtype == f32 else sx.dtype)
    tensors = dict(x=data.integers(-127, 128, M, K, dtype=torch.int8), w=data.integers(-127, 128, N, K, dtype=torch.int8),
                   sx=data.uniform(M), sw=data.uniform(N))
    return Case(tensors, eager, bytes=M*K + N*K + 2*M*N, operations=dict(i8=2*M*N*K))


@kernel(dict(M=16, N=12288, K=4096), dict(M=3, N=20, K=64), tolerance=2e-2)
def mxfp4_linear(data, M, N, K):
    """Weights of MXFP4: codes that a table gives a value, a scale of 2^e for 32 of them."""
    def eager(x, w, e, table):
        q = torch.stack((table[(w & 15).long()], table[(w >> 4).long()]), -1).view(N, -1, 32)
        return x @ (q*torch.exp2(e.to(q.dtype) - 127)[..., None]).view(N, K).to(x.dtype).t()
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], device=data.device)
    tensors = dict(x=data.normal(M, K), w=data.integers(0, 256, N, K//2, dtype=torch.uint8),
                   e=data.integers(118, 126, N, K//32, dtype=torch.uint8), table=table)
    return Case(tensors, eager, bytes=N*K//2 + N*K//32 + M*K*2 + M*N*2, operations=dict(bf16=2*M*N*K),
                peers={"bf16 cuBLAS": bf16_product(tensors["x"], N)})


@kernel(dict(M=16, N=12288, K=4096), dict(M=3, N=20, K=128), tolerance=2e-2)
def nf4_linear(data, M, N, K):
    """Weights of NF4: a table of 16 values, the largest of each 64 as f32."""
    def eager(x, w, largest, table):
        q = torch.stack((table[(w >> 4).long()], table[(w & 15).long()]), -1).view(N, -1, 64)
        return x @ (q*largest[..., None]).view(N, K).to(x.dtype).t()
    tensors = dict(x=data.normal(M, K), w=data.integers(0, 256, N, K//2, dtype=torch.uint8), largest=data.uniform(N, K//64),
                   table=data.uniform(16, low=-1).sort().values)
    return Case(tensors, eager, bytes=N*K//2 + N*K//16 + M*K*2 + M*N*2, operations=dict(bf16=2*M*N*K),
                peers={"bf16 cuBLAS": bf16_product(tensors["x"], N)})


def to_f8(value):
    return value.clamp(-448, 448).to(f32).to(f8)


@kernel(dict(M=16384, N=4096), dict(M=5, N=50), tolerance=5e-2)
def fp8_token_quant(data, M, N):
    """Rows to fp8 with a scale each."""
    def eager(x):
        s = wide(x).abs().amax(1).clamp(min=1e-6)/448
        return to_f8(wide(x)/s[:, None]), s
    return Case(dict(x=data.normal(M, N)), eager, bytes=M*N*3)


@kernel(dict(M=8192, N=7168), dict(M=5, N=256), tolerance=5e-2)
def fp8_group_quant(data, M, N):
    """A scale for each 128 elements of a row."""
    def eager(x):
        groups = wide(x).view(M, -1, 128)
        s = groups.abs().amax(2).clamp(min=1e-6)/448
        return to_f8(groups/s[..., None]).view(M, N), s
    return Case(dict(x=data.normal(M, N)), eager, bytes=M*N*3 + M*N//32)


@kernel(dict(M=8192, N=7168), dict(M=5, N=256), tolerance=5e-2)
def rms_norm_fp8_group_quant(data, M, N):
    """An RMS norm that adds the residual, its result in fp8 with a scale for each 128 elements."""
    def eager(x, r, w):
        s = (x + r).to(bf16).to(x.dtype)
        groups = F.rms_norm(wide(s), (N,), wide(w), 1e-6).view(M, -1, 128)
        scales = groups.abs().amax(2).clamp(min=1e-6)/448
        return s, to_f8(groups/scales[..., None]).view(M, N), scales
    return Case(dict(x=data.normal(M, N), r=data.normal(M, N), w=data.normal(N)), eager, bytes=M*N*7 + M*N//32)


@kernel(dict(M=8192, N=7168), dict(M=5, N=256), tolerance=5e-2)
def silu_mul_fp8_group_quant(data, M, N):
    """SwiGLU's product of two halves, in fp8 with a scale for each 128 elements."""
    def eager(x):
        a, b = wide(x).chunk(2, 1)
        groups = (F.silu(a)*b).view(M, -1, 128)
        s = groups.abs().amax(2).clamp(min=1e-6)/448
        return to_f8(groups/s[..., None]).view(M, N), s
    return Case(dict(x=data.normal(M, 2*N)), eager, bytes=M*N*5 + M*N//32)


@kernel(dict(M=8192, N=8192), dict(M=20, N=33), tolerance=5e-2)
def fp8_cast_transpose(data, M, N):
    """One scale, the result and its transposed copy from one reading."""
    def eager(x, s):
        y = to_f8(wide(x)*s)
        return y, y.t().contiguous()
    return Case(dict(x=data.normal(M, N), s=data.uniform(1, low=1, high=50)), eager, bytes=M*N*4)


@kernel(dict(M=8192, N=8192), dict(M=5, N=256))
def hadamard_128(data, M, N):
    """Rows times a Hadamard matrix in blocks of 128, as before quantisation."""
    def eager(x, h):
        return (x.view(M, -1, 128) @ h.to(x.dtype)).view(M, N)*128**-0.5
    h = torch.ones(1, 1, device=data.device)
    while len(h) < 128:
        h = torch.cat((torch.cat((h, h), 1), torch.cat((h, -h), 1)))
    return Case(dict(x=data.normal(M, N), h=h.to(bf16)), eager, bytes=M*N*4, operations=dict(bf16=2*M*N*128))


@kernel(dict(M=16384, N=4096), dict(M=5, N=50), mismatches=1e-3)
def int8_token_quant(data, M, N):
    """Rows to i8 with a scale each."""
    def eager(x):
        s = wide(x).abs().amax(1).clamp(min=1e-6)/127
        return torch.round(wide(x)/s[:, None]).clamp(-128, 127).to(torch.int8), s
    return Case(dict(x=data.normal(M, N)), eager, bytes=M*N*3)


@kernel(dict(M=16, N=12288, K=4096), dict(M=3, N=20, K=40), tolerance=2e-2)
def w8a16_linear(data, M, N, K):
    """Weights of i8 with a scale for each column."""
    def eager(x, w, s):
        return (x @ w.to(x.dtype).t())*s.to(x.dtype)
    tensors = dict(x=data.normal(M, K), w=data.integers(-127, 128, N, K, dtype=torch.int8), s=data.uniform(N, high=0.02))
    return Case(tensors, eager, bytes=N*K + M*K*2 + M*N*2, operations=dict(bf16=2*M*N*K),
                peers={"bf16 cuBLAS": bf16_product(tensors["x"], N)})


@kernel(dict(M=4096, N=4096, K=4096), dict(M=9, N=20, K=256), tolerance=2e-2)
def w4a16_many_rows(data, M, N, K):
    """Weights of 4 bits and many rows: the product's time, not the weights'."""
    return w4a16_linear(data, M, N, K)
