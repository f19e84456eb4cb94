import torch
from tegula_eval import nvrtc

SOURCE = r'''
#include <cuda_bf16.h>

// Weights (E2M1 times a power of two) are exact in bfloat16; x is split into three bfloat16 parts, which hold all its 24 bits.
// Outputs are the rows of the products (m16), rows of x their columns (n8). A block has 32 outputs x 8 rows, 8 warps share K.
// A lane (g = lane / 4, t = lane % 4) has the scale block `4 step + t` of weight rows g, g + 8 (and 16 more).
#define XT 36
#define XR 144

__device__ __forceinline__ unsigned saddr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void mma(float* c, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned mul2(unsigned a, unsigned b) {
  __nv_bfloat162 r = __hmul2(*(__nv_bfloat162*)&a, *(__nv_bfloat162*)&b);
  return *(unsigned*)&r;
}

// x exactly as a sum of three bfloat16 by cutting off bits; two numbers packed
__device__ __forceinline__ void split2(float x, float y, unsigned& hi, unsigned& mid, unsigned& lo) {
  unsigned xi = __float_as_uint(x), yi = __float_as_uint(y);
  hi = __byte_perm(xi, yi, 0x7632);
  x -= __uint_as_float(xi & 0xffff0000u);
  y -= __uint_as_float(yi & 0xffff0000u);
  xi = __float_as_uint(x);
  yi = __float_as_uint(y);
  mid = __byte_perm(xi, yi, 0x7632);
  x -= __uint_as_float(xi & 0xffff0000u);
  y -= __uint_as_float(yi & 0xffff0000u);
  lo = __byte_perm(__float_as_uint(x), __float_as_uint(y), 0x7632);
}

// codes (i, i + 4) of a word as two bfloat16, 2^-126 too small, times scale
template <bool BIG>
__device__ __forceinline__ void decode(unsigned w, unsigned s1, unsigned s2, unsigned (&p)[4]) {
  p[0] = ((w << 12) & 0x80008000u) | ((w << 6) & 0x01c001c0u);
  p[1] = ((w << 8) & 0x80008000u) | ((w << 2) & 0x01c001c0u);
  p[2] = ((w << 4) & 0x80008000u) | ((w >> 2) & 0x01c001c0u);
  p[3] = (w & 0x80008000u) | ((w >> 6) & 0x01c001c0u);
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    p[i] = mul2(p[i], s1);
    if (BIG) p[i] = mul2(p[i], s2);
  }
}

__device__ __forceinline__ unsigned word_of(const uint4& u, int j) { return j == 0 ? u.x : j == 1 ? u.y : j == 2 ? u.z : u.w; }

template <bool BIG>
__device__ __forceinline__ void compute(const uint4 (&w)[4], const unsigned (&e)[4], const float* xs, float (&tot)[2][4]) {
  unsigned s1[4], s2[4];
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    unsigned c = BIG ? (e[i] < 128u ? e[i] : 128u) : e[i];
    s1[i] = ((c + 126u) << 7) * 0x00010001u;                 // 2 ** (c - 1)
    s2[i] = BIG ? ((e[i] - c + 127u) << 7) * 0x00010001u : 0u;
  }
  float acc[2][2][4];
  #pragma unroll
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int k = 0; k < 4; ++k) acc[i][j][k] = 0.0f;
  #pragma unroll
  for (int j = 0; j < 4; ++j) {
    float4 xa = *(const float4*)(xs + j * 8), xb = *(const float4*)(xs + j * 8 + 4);
    unsigned hi[4], mid[4], lo[4];
    split2(xa.x, xb.x, hi[0], mid[0], lo[0]);
    split2(xa.y, xb.y, hi[1], mid[1], lo[1]);
    split2(xa.z, xb.z, hi[2], mid[2], lo[2]);
    split2(xa.w, xb.w, hi[3], mid[3], lo[3]);
    #pragma unroll
    for (int mt = 0; mt < 2; ++mt) {
      unsigned a[4], b[4];
      decode<BIG>(word_of(w[mt * 2], j), s1[mt * 2], s2[mt * 2], a);
      decode<BIG>(word_of(w[mt * 2 + 1], j), s1[mt * 2 + 1], s2[mt * 2 + 1], b);
      #pragma unroll
      for (int h = 0; h < 2; ++h) {
        mma(acc[mt][0], a[2 * h], b[2 * h], a[2 * h + 1], b[2 * h + 1], hi[2 * h], hi[2 * h + 1]);
        mma(acc[mt][1], a[2 * h], b[2 * h], a[2 * h + 1], b[2 * h + 1], mid[2 * h], mid[2 * h + 1]);
        mma(acc[mt][1], a[2 * h], b[2 * h], a[2 * h + 1], b[2 * h + 1], lo[2 * h], lo[2 * h + 1]);
      }
    }
  }
  #pragma unroll
  for (int mt = 0; mt < 2; ++mt)
    for (int k = 0; k < 4; ++k) tot[mt][k] += acc[mt][0][k] + acc[mt][1][k];
}

extern "C" __global__ void mxfp4(const float* x, const unsigned char* codes, const unsigned char* exponents, const float* bias, float* y,
                                 int M, int N, int blocks) {
  extern __shared__ __align__(16) float smem[];
  __shared__ float red[8][32 * 9];
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3;
  float* xs = smem + warp * 2 * 8 * XR;    // [2][8][XR] for each warp
  int n0 = blockIdx.x * 32, m0 = blockIdx.y * 8;
  const int K = blocks * 32;
  int steps = (blocks + 3) / 4;
  float tot[2][4];
  #pragma unroll
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j) tot[i][j] = 0.0f;
  uint4 nw[4];
  unsigned ne[4];
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    nw[i] = make_uint4(0u, 0u, 0u, 0u);
    ne[i] = 0u;
  }

  auto fetch = [&](int step, int buf) {
    int k = step * 128 + lane * 4;
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      bool ok = m0 + i < M && k < K;
      const float* src = ok ? x + (long long)(m0 + i) * K + k : x;
      int bytes = ok ? 16 : 0;
      float* dst = xs + buf * 8 * XR + i * XR + (lane >> 3) * XT + (lane & 7) * 4;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" :: "r"(saddr(dst)), "l"(src), "r"(bytes) : "memory");
    }
    int kb = step * 4 + t;
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      int n = n0 + (i >> 1) * 16 + (i & 1) * 8 + g;
      if (n < N && kb < blocks) {
        nw[i] = *(const uint4*)(codes + (long long)n * (K / 2) + kb * 16);
        ne[i] = exponents[(long long)n * blocks + kb];
      } else {
        nw[i] = make_uint4(0u, 0u, 0u, 0u);
        ne[i] = 0u;
      }
    }
  };

  int buf = 0;
  if (warp < steps) fetch(warp, 0);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  for (int step = warp; step < steps; step += 8) {
    uint4 cw[4];
    unsigned ce[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      cw[i] = nw[i];
      ce[i] = ne[i];
    }
    if (step + 8 < steps) fetch(step + 8, buf ^ 1);
    asm volatile("cp.async.commit_group;\n" ::: "memory");
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");
    __syncwarp();
    bool big = ce[0] > 128u || ce[1] > 128u || ce[2] > 128u || ce[3] > 128u;
    const float* xl = xs + buf * 8 * XR + g * XR + t * XT;
    if (__any_sync(0xffffffffu, big)) compute<true>(cw, ce, xl, tot);
    else compute<false>(cw, ce, xl, tot);
    __syncwarp();
    buf ^= 1;
  }
  #pragma unroll
  for (int mt = 0; mt < 2; ++mt) {
    red[warp][(mt * 16 + g) * 9 + t * 2] = tot[mt][0];
    red[warp][(mt * 16 + g) * 9 + t * 2 + 1] = tot[mt][1];
    red[warp][(mt * 16 + g + 8) * 9 + t * 2] = tot[mt][2];
    red[warp][(mt * 16 + g + 8) * 9 + t * 2 + 1] = tot[mt][3];
  }
  __syncthreads();
  int n = n0 + lane, m = m0 + warp;
  float s = 0.0f;
  #pragma unroll
  for (int w = 0; w < 8; ++w) s += red[w][lane * 9 + warp];
  if (n < N && m < M) y[(long long)m * N + n] = s + bias[n];
}
'''
lib = nvrtc.compile(SOURCE, "--maxrregcount=128")


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.register_buffer("codes", torch.randint(0, 256, (out_features, in_features // 2), dtype=torch.uint8))
        self.register_buffer("exponents", torch.randint(118, 124, (out_features, in_features // 32), dtype=torch.uint8))
        positive = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
        self.register_buffer("table", torch.cat([positive, -positive]))
        self.bias = torch.nn.Parameter(0.1 * torch.randn(out_features))

    def forward(self, x):
        M = x.shape[0]
        N, blocks = self.exponents.shape
        y = torch.empty((M, N), dtype=x.dtype, device=x.device)
        lib.mxfp4((-(-N // 32), -(-M // 8)), 256, x, self.codes, self.exponents, self.bias, y, M, N, blocks,
                  shared=8 * 2 * 8 * 144 * 4)
        return y
