import torch
from tegula_eval import nvrtc

SOURCE = r'''
#include <cuda_bf16.h>

#define LD (DP + 8)
#define NT (KT / 32)
#define LDP (KT + 8)

__device__ __forceinline__ unsigned saddr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void cp16(void* dst, const void* src, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" :: "r"(saddr(dst)), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void ldsm4(unsigned& a, unsigned& b, unsigned& c, unsigned& d, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(saddr(p)) : "memory");
}

__device__ __forceinline__ void ldsm2(unsigned& a, unsigned& b, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];\n" : "=r"(a), "=r"(b) : "r"(saddr(p)) : "memory");
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

__device__ __forceinline__ void load_tile(__nv_bfloat16* dst, const __nv_bfloat16* src, long long stride, int rows, int valid) {
#if VEC
  for (int i = threadIdx.x; i < rows * (DP / 8); i += 128) {
    int r = i / (DP / 8), c = (i % (DP / 8)) * 8;
    bool ok = r < valid && c < D;
    cp16(dst + r * LD + c, ok ? src + r * stride + c : src, ok ? 16 : 0);
  }
#else
  for (int i = threadIdx.x; i < rows * DP; i += 128) {
    int r = i / DP, c = i % DP;
    bool ok = r < valid && c < D;
    dst[r * LD + c] = ok ? src[r * stride + c] : __float2bfloat16(0.0f);
  }
#endif
}

extern "C" __global__ void decode(const __nv_bfloat16* query, const __nv_bfloat16* keys, const __nv_bfloat16* values,
                                  const long long* lengths, __nv_bfloat16* out, float* part, float* part_ml, int* counter,
                                  int T, int groups, int hg, int tiles, float sl) {
  int split = blockIdx.x, gt = blockIdx.y, b = blockIdx.z, splits = gridDim.x;
  long long len64 = lengths[b];
  int len = len64 < T ? (int)len64 : T;
  int k0 = split * KT;
  if (k0 >= len) return;
  int ns = (len + KT - 1) / KT;
  int g = gt / tiles, h0 = (gt % tiles) * 16;
  int rows = hg - h0 < 16 ? hg - h0 : 16;
  int nk = len - k0 < KT ? len - k0 : KT;
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;

  extern __shared__ __align__(16) unsigned char smem[];
  __nv_bfloat16* Ks = (__nv_bfloat16*)smem;
  __nv_bfloat16* Vs = Ks + KT * LD;
  __nv_bfloat16* Qs = Vs + KT * LD;
  float* red = (float*)(Qs + 16 * LD);
  float* red2 = red + 64;
  __nv_bfloat16* Ps = Ks;   // after the scores
  __shared__ int last;

  long long stride = (long long)groups * D;
  long long first = ((long long)b * T + k0) * stride + (long long)g * D;
  long long head0 = ((long long)b * groups + g) * hg + h0;
  load_tile(Qs, query + head0 * D, D, 16, rows);
  load_tile(Ks, keys + first, stride, KT, nk);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  load_tile(Vs, values + first, stride, KT, nk);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  asm volatile("cp.async.wait_group 1;\n" ::: "memory");
  __syncthreads();

  float s[NT][4];
  #pragma unroll
  for (int n = 0; n < NT; ++n)
    for (int i = 0; i < 4; ++i) s[n][i] = 0.0f;
  int nbase = warp * (KT / 4);
  #pragma unroll
  for (int kk = 0; kk < DP / 16; ++kk) {
    unsigned a0, a1, a2, a3;
    ldsm4(a0, a1, a2, a3, Qs + (lane & 15) * LD + kk * 16 + (lane >> 4) * 8);
    #pragma unroll
    for (int n = 0; n < NT; ++n) {
      unsigned b0, b1;
      ldsm2(b0, b1, Ks + (nbase + n * 8 + (lane & 7)) * LD + kk * 16 + ((lane >> 3) & 1) * 8);
      mma(s[n], a0, a1, a2, a3, b0, b1);
    }
  }
  float m0 = -1e30f, m1 = -1e30f;
  #pragma unroll
  for (int n = 0; n < NT; ++n) {
    #pragma unroll
    for (int e = 0; e < 2; ++e) {
      bool ok = nbase + n * 8 + (lane & 3) * 2 + e < nk;
      s[n][e] = ok ? s[n][e] * sl : -1e30f;
      s[n][2 + e] = ok ? s[n][2 + e] * sl : -1e30f;
      m0 = fmaxf(m0, s[n][e]);
      m1 = fmaxf(m1, s[n][2 + e]);
    }
  }
  for (int o = 1; o < 4; o <<= 1) {
    m0 = fmaxf(m0, __shfl_xor_sync(0xffffffffu, m0, o));
    m1 = fmaxf(m1, __shfl_xor_sync(0xffffffffu, m1, o));
  }
  int r0 = lane >> 2, r1 = r0 + 8;
  if ((lane & 3) == 0) {
    red[warp * 16 + r0] = m0;
    red[warp * 16 + r1] = m1;
  }
  __syncthreads();
  for (int w = 0; w < 4; ++w) {
    m0 = fmaxf(m0, red[w * 16 + r0]);
    m1 = fmaxf(m1, red[w * 16 + r1]);
  }
  float l0 = 0.0f, l1 = 0.0f;
  #pragma unroll
  for (int n = 0; n < NT; ++n) {
    int col = nbase + n * 8 + (lane & 3) * 2;
    float p0 = exp2f(s[n][0] - m0), p1 = exp2f(s[n][1] - m0), p2 = exp2f(s[n][2] - m1), p3 = exp2f(s[n][3] - m1);
    l0 += p0 + p1;
    l1 += p2 + p3;
    *(__nv_bfloat162*)(Ps + r0 * LDP + col) = __floats2bfloat162_rn(p0, p1);
    *(__nv_bfloat162*)(Ps + r1 * LDP + col) = __floats2bfloat162_rn(p2, p3);
  }
  for (int o = 1; o < 4; o <<= 1) {
    l0 += __shfl_xor_sync(0xffffffffu, l0, o);
    l1 += __shfl_xor_sync(0xffffffffu, l1, o);
  }
  if ((lane & 3) == 0) {
    red2[warp * 16 + r0] = l0;
    red2[warp * 16 + r1] = l1;
  }
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");
  __syncthreads();
  l0 = red2[r0] + red2[16 + r0] + red2[32 + r0] + red2[48 + r0];
  l1 = red2[r1] + red2[16 + r1] + red2[32 + r1] + red2[48 + r1];

  long long bgt = (long long)b * gridDim.y + gt;
  long long slot = bgt * splits + split;
  bool only = ns == 1;
  float i0 = 1.0f / l0, i1 = 1.0f / l1;
  int steps = (nk + 15) / 16;
  for (int ct = warp; ct < DP / 16; ct += 4) {
    float o0[4] = {0.0f, 0.0f, 0.0f, 0.0f}, o1[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int kk = 0; kk < steps; ++kk) {
      unsigned a0, a1, a2, a3, b0, b1, b2, b3;
      ldsm4(a0, a1, a2, a3, Ps + (lane & 15) * LDP + kk * 16 + (lane >> 4) * 8);
      ldsm4t(b0, b1, b2, b3, Vs + (kk * 16 + (lane & 15)) * LD + ct * 16 + (lane >> 4) * 8);
      mma(o0, a0, a1, a2, a3, b0, b1);
      mma(o1, a0, a1, a2, a3, b2, b3);
    }
    #pragma unroll
    for (int n = 0; n < 2; ++n) {
      #pragma unroll
      for (int e = 0; e < 2; ++e) {
        int col = ct * 16 + n * 8 + (lane & 3) * 2 + e;
        float x0 = n ? o1[e] : o0[e], x1 = n ? o1[2 + e] : o0[2 + e];
        if (col < D) {
          if (only) {
            if (r0 < rows) out[(head0 + r0) * D + col] = __float2bfloat16(x0 * i0);
            if (r1 < rows) out[(head0 + r1) * D + col] = __float2bfloat16(x1 * i1);
          } else {
            if (r0 < rows) part[(slot * 16 + r0) * D + col] = x0;
            if (r1 < rows) part[(slot * 16 + r1) * D + col] = x1;
          }
        }
      }
    }
  }
  if (only) return;
  if (warp == 0 && (lane & 3) == 0) {
    part_ml[slot * 32 + r0] = m0;
    part_ml[slot * 32 + r1] = m1;
    part_ml[slot * 32 + 16 + r0] = l0;
    part_ml[slot * 32 + 16 + r1] = l1;
  }
  __threadfence();
  __syncthreads();
  if (tid == 0) last = atomicAdd(&counter[bgt], 1) == ns - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (tid == 0) counter[bgt] = 0;
  long long slot0 = bgt * splits;
  if (tid < 16) {
    float m = -1e30f, l = 0.0f;
    for (int j = 0; j < ns; ++j) m = fmaxf(m, __ldcg(&part_ml[(slot0 + j) * 32 + tid]));
    for (int j = 0; j < ns; ++j)
      l += __ldcg(&part_ml[(slot0 + j) * 32 + 16 + tid]) * exp2f(__ldcg(&part_ml[(slot0 + j) * 32 + tid]) - m);
    red[tid] = m;
    red[16 + tid] = 1.0f / l;
  }
  __syncthreads();
#if VEC
  for (int i = tid; i < rows * (D / 4); i += 128) {
    int r = i / (D / 4), c = (i % (D / 4)) * 4;
    float m = red[r], inv = red[16 + r];
    float4 a = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    #pragma unroll 8
    for (int j = 0; j < ns; ++j) {
      float w = exp2f(__ldcg(&part_ml[(slot0 + j) * 32 + r]) - m);
      float4 v = __ldcg((const float4*)(part + ((slot0 + j) * 16 + r) * D + c));
      a.x += w * v.x; a.y += w * v.y; a.z += w * v.z; a.w += w * v.w;
    }
    __nv_bfloat162* o = (__nv_bfloat162*)(out + (head0 + r) * D + c);
    o[0] = __floats2bfloat162_rn(a.x * inv, a.y * inv);
    o[1] = __floats2bfloat162_rn(a.z * inv, a.w * inv);
  }
#else
  for (int i = tid; i < rows * D; i += 128) {
    int r = i / D, c = i % D;
    float m = red[r], a = 0.0f;
    for (int j = 0; j < ns; ++j)
      a += exp2f(__ldcg(&part_ml[(slot0 + j) * 32 + r]) - m) * __ldcg(part + ((slot0 + j) * 16 + r) * D + c);
    out[(head0 + r) * D + c] = __float2bfloat16(a * red[16 + r]);
  }
#endif
}
'''

_libs = {}
_counters = {}


def _lib(D):
    if D not in _libs:
        DP = -(-D // 16) * 16
        KT = 128 if DP <= 128 else (64 if DP <= 256 else 32)
        head = f"#define D {D}\n#define DP {DP}\n#define KT {KT}\n#define VEC {1 if D % 8 == 0 else 0}\n"
        _libs[D] = (nvrtc.compile(head + SOURCE), DP, KT)
    return _libs[D]


def _counter(n, device):
    c = _counters.get(device)
    if c is None or c.numel() < n:
        c = torch.zeros(max(n, 4096), dtype=torch.int32, device=device)
        _counters[device] = c
    return c


class ModelNew(torch.nn.Module):
    def forward(self, query, key_cache, value_cache, lengths):
        B, heads, D = query.shape
        T, groups = key_cache.shape[1], key_cache.shape[2]
        hg = heads // groups
        lib, DP, KT = _lib(D)
        tiles = -(-hg // 16)
        splits = -(-T // KT)
        lengths = lengths.to(torch.int64)
        out = torch.empty_like(query)
        part, ml = None, None
        if splits > 1:
            n = B * groups * tiles * splits
            part = torch.empty(n * 16 * D, dtype=torch.float32, device=query.device)
            ml = torch.empty(n * 32, dtype=torch.float32, device=query.device)
        counter = _counter(B * groups * tiles, query.device)
        shared = (2 * KT + 16) * (DP + 8) * 2 + 512
        lib.decode((splits, groups * tiles, B), 128, query, key_cache, value_cache, lengths, out, part, ml, counter,
                   T, groups, hg, tiles, D ** -0.5 * 1.4426950408889634, shared=shared)
        return out
