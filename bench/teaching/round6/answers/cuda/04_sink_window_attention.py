import torch
from tegula_eval import nvrtc

SOURCE = r'''
#include <cuda_bf16.h>
MACROS
#define LD (DP + 8)

__device__ __forceinline__ unsigned saddr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void cp16(void* dst, const void* src, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" :: "r"(saddr(dst)), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void ldsm4(unsigned& a, unsigned& b, unsigned& c, unsigned& d, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(saddr(p)) : "memory");
}
__device__ __forceinline__ void ldsm4t(unsigned& a, unsigned& b, unsigned& c, unsigned& d, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(saddr(p)) : "memory");
}
__device__ __forceinline__ void mma(float* c, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned pack(float lo, float hi) {
  __nv_bfloat162 t = __floats2bfloat162_rn(lo, hi);
  return *(unsigned*)&t;
}

// 64 rows from row r0 of a (S, HEAD) matrix
__device__ __forceinline__ void load_tile(__nv_bfloat16* dst, const __nv_bfloat16* src, int r0, int S) {
#if VEC
  for (int i = threadIdx.x; i < 64 * (DP / 8); i += 128) {
    int r = i / (DP / 8), c = (i % (DP / 8)) * 8;
    bool ok = r0 + r < S && c < HEAD;
    cp16(dst + r * LD + c, ok ? src + (long long)(r0 + r) * HEAD + c : src, ok ? 16 : 0);
  }
#else
  for (int i = threadIdx.x; i < 64 * DP; i += 128) {
    int r = i / DP, c = i % DP;
    bool ok = r0 + r < S && c < HEAD;
    dst[r * LD + c] = ok ? src[(long long)(r0 + r) * HEAD + c] : __float2bfloat16(0.0f);
  }
#endif
}

extern "C" __global__ void sink_attention(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                          const float* sinks, __nv_bfloat16* out, int H, int S, int window, float sl) {
  extern __shared__ __align__(16) unsigned char smem[];
  __nv_bfloat16* Qs = (__nv_bfloat16*)smem;
  __nv_bfloat16* Ks = Qs + 64 * LD;          // [2][64][LD]
  __nv_bfloat16* Vs = Ks + 2 * 64 * LD;      // [2][64][LD]
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  int bh = blockIdx.y, q0 = blockIdx.x * 64;
  long long base = (long long)bh * S * HEAD;
  q += base; k += base; v += base; out += base;
  float sink = sinks[bh % H] * 1.4426950408889634f;

  int lo = q0 - window + 1;
  int kt0 = lo > 0 ? lo / 64 : 0;
  int qlast = q0 + 63 < S - 1 ? q0 + 63 : S - 1;
  int kt1 = qlast / 64;
  load_tile(Qs, q, q0, S);
  load_tile(Ks, k, kt0 * 64, S);
  load_tile(Vs, v, kt0 * 64, S);
  asm volatile("cp.async.commit_group;\n" ::: "memory");

  unsigned qf[DP / 16][4];
  float o[DP / 8][4];
  #pragma unroll
  for (int n = 0; n < DP / 8; ++n)
    for (int i = 0; i < 4; ++i) o[n][i] = 0.0f;
  float m0 = sink, m1 = sink, l0 = 0.0f, l1 = 0.0f;
  int wrow = q0 + warp * 16;
  int row0 = wrow + (lane >> 2), row1 = row0 + 8;

  for (int kt = kt0; kt <= kt1; ++kt) {
    int buf = (kt - kt0) & 1;
    if (kt < kt1) {
      load_tile(Ks + (buf ^ 1) * 64 * LD, k, (kt + 1) * 64, S);
      load_tile(Vs + (buf ^ 1) * 64 * LD, v, (kt + 1) * 64, S);
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");
    __syncthreads();
    if (kt == kt0) {
      #pragma unroll
      for (int kk = 0; kk < DP / 16; ++kk)
        ldsm4(qf[kk][0], qf[kk][1], qf[kk][2], qf[kk][3], Qs + (warp * 16 + (lane & 15)) * LD + kk * 16 + (lane >> 4) * 8);
    }
    const __nv_bfloat16* K = Ks + buf * 64 * LD;
    const __nv_bfloat16* V = Vs + buf * 64 * LD;
    float s[8][4];
    #pragma unroll
    for (int n = 0; n < 8; ++n)
      for (int i = 0; i < 4; ++i) s[n][i] = 0.0f;
    #pragma unroll
    for (int kk = 0; kk < DP / 16; ++kk) {
      #pragma unroll
      for (int np = 0; np < 4; ++np) {
        unsigned b0, b1, b2, b3;
        ldsm4(b0, b1, b2, b3, K + (np * 16 + (lane >> 4) * 8 + (lane & 7)) * LD + kk * 16 + ((lane >> 3) & 1) * 8);
        mma(s[2 * np], qf[kk][0], qf[kk][1], qf[kk][2], qf[kk][3], b0, b1);
        mma(s[2 * np + 1], qf[kk][0], qf[kk][1], qf[kk][2], qf[kk][3], b2, b3);
      }
    }
    bool masked = kt * 64 + 63 > wrow || wrow + 15 - kt * 64 >= window;
    float n0 = m0, n1 = m1;
    #pragma unroll
    for (int n = 0; n < 8; ++n) {
      #pragma unroll
      for (int e = 0; e < 2; ++e) {
        s[n][e] *= sl;
        s[n][2 + e] *= sl;
        if (masked) {
          int key = kt * 64 + n * 8 + (lane & 3) * 2 + e;
          if (key > row0 || row0 - key >= window) s[n][e] = -1e30f;
          if (key > row1 || row1 - key >= window) s[n][2 + e] = -1e30f;
        }
        n0 = fmaxf(n0, s[n][e]);
        n1 = fmaxf(n1, s[n][2 + e]);
      }
    }
    #pragma unroll
    for (int d = 1; d < 4; d <<= 1) {
      n0 = fmaxf(n0, __shfl_xor_sync(0xffffffffu, n0, d));
      n1 = fmaxf(n1, __shfl_xor_sync(0xffffffffu, n1, d));
    }
    float c0 = exp2f(m0 - n0), c1 = exp2f(m1 - n1);
    m0 = n0; m1 = n1;
    l0 *= c0; l1 *= c1;
    #pragma unroll
    for (int n = 0; n < DP / 8; ++n) {
      o[n][0] *= c0; o[n][1] *= c0; o[n][2] *= c1; o[n][3] *= c1;
    }
    #pragma unroll
    for (int n = 0; n < 8; ++n) {
      s[n][0] = exp2f(s[n][0] - m0);
      s[n][1] = exp2f(s[n][1] - m0);
      s[n][2] = exp2f(s[n][2] - m1);
      s[n][3] = exp2f(s[n][3] - m1);
      l0 += s[n][0] + s[n][1];
      l1 += s[n][2] + s[n][3];
    }
    #pragma unroll
    for (int kk = 0; kk < 4; ++kk) {
      unsigned a0 = pack(s[2 * kk][0], s[2 * kk][1]), a1 = pack(s[2 * kk][2], s[2 * kk][3]);
      unsigned a2 = pack(s[2 * kk + 1][0], s[2 * kk + 1][1]), a3 = pack(s[2 * kk + 1][2], s[2 * kk + 1][3]);
      #pragma unroll
      for (int ct = 0; ct < DP / 16; ++ct) {
        unsigned b0, b1, b2, b3;
        ldsm4t(b0, b1, b2, b3, V + (kk * 16 + (lane & 15)) * LD + ct * 16 + (lane >> 4) * 8);
        mma(o[2 * ct], a0, a1, a2, a3, b0, b1);
        mma(o[2 * ct + 1], a0, a1, a2, a3, b2, b3);
      }
    }
    __syncthreads();
  }
  #pragma unroll
  for (int d = 1; d < 4; d <<= 1) {
    l0 += __shfl_xor_sync(0xffffffffu, l0, d);
    l1 += __shfl_xor_sync(0xffffffffu, l1, d);
  }
  float i0 = 1.0f / (l0 + exp2f(sink - m0)), i1 = 1.0f / (l1 + exp2f(sink - m1));
  #pragma unroll
  for (int n = 0; n < DP / 8; ++n) {
    int col = n * 8 + (lane & 3) * 2;
#if VEC
    if (col < HEAD) {
      if (row0 < S) *(unsigned*)(out + (long long)row0 * HEAD + col) = pack(o[n][0] * i0, o[n][1] * i0);
      if (row1 < S) *(unsigned*)(out + (long long)row1 * HEAD + col) = pack(o[n][2] * i1, o[n][3] * i1);
    }
#else
    #pragma unroll
    for (int e = 0; e < 2; ++e) {
      if (col + e < HEAD) {
        if (row0 < S) out[(long long)row0 * HEAD + col + e] = __float2bfloat16(o[n][e] * i0);
        if (row1 < S) out[(long long)row1 * HEAD + col + e] = __float2bfloat16(o[n][2 + e] * i1);
      }
    }
#endif
  }
}
'''

_libs = {}


def _lib(D):
    if D not in _libs:
        DP = -(-D // 16) * 16
        macros = f"#define HEAD {D}\n#define DP {DP}\n#define VEC {1 if D % 8 == 0 else 0}\n"
        _libs[D] = (nvrtc.compile(SOURCE.replace("MACROS", macros)), DP)
    return _libs[D]


class ModelNew(torch.nn.Module):
    def __init__(self, num_heads, window):
        super().__init__()
        self.window = window
        self.sinks = torch.nn.Parameter(torch.randn(num_heads))

    def forward(self, q, k, v):
        B, H, S, D = q.shape
        lib, DP = _lib(D)
        out = torch.empty_like(q)
        sinks = self.sinks.to(torch.float32)
        lib.sink_attention((-(-S // 64), B * H), 128, q, k, v, sinks, out, H, S, self.window,
                           D ** -0.5 * 1.4426950408889634, shared=5 * 64 * (DP + 8) * 2)
        return out
