import torch
from tegula_eval import nvrtc

SOURCE = r'''
#define THREADS 512
#define WARPS 16
#define ITEMS 8

template <bool VEC>
__device__ __forceinline__ void load(const float* x, const unsigned char* reset, int i0, int N, float (&v)[ITEMS], unsigned& flags) {
  flags = 0;
  if (VEC) {
    if (i0 < N) {
      float4 a = __ldcs((const float4*)(x + i0)), b = __ldcs((const float4*)(x + i0 + 4));
      uint2 f = __ldcs((const uint2*)(reset + i0));
      v[0] = a.x; v[1] = a.y; v[2] = a.z; v[3] = a.w;
      v[4] = b.x; v[5] = b.y; v[6] = b.z; v[7] = b.w;
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        if ((f.x >> (8 * i)) & 0xffu) flags |= 1u << i;
        if ((f.y >> (8 * i)) & 0xffu) flags |= 16u << i;
      }
    } else {
      #pragma unroll
      for (int i = 0; i < ITEMS; ++i) v[i] = 0.0f;
    }
  } else {
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      v[i] = 0.0f;
      if (i0 + i < N) {
        v[i] = x[i0 + i];
        if (reset[i0 + i]) flags |= 1u << i;
      }
    }
  }
}

// (s, p): the sum since the last reset of a piece, and its place (-1: none)
__device__ __forceinline__ void join(float as, int ap, float& s, int& p) {
  if (p < 0) s += as;
  p = max(p, ap);
}

template <bool VEC>
__device__ __forceinline__ void body(const float* x, const unsigned char* reset, float* out, long long* count, int N) {
  __shared__ float ws[2][WARPS];
  __shared__ int wp[2][WARPS];
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  long long row = (long long)blockIdx.x * N;
  x += row; reset += row; out += row; count += row;
  float carry_s = 0.0f;
  int carry_p = 0, par = 0;
  float nv[ITEMS];
  unsigned nf;
  load<VEC>(x, reset, tid * ITEMS, N, nv, nf);
  for (int base = 0; base < N; base += THREADS * ITEMS, par ^= 1) {
    int i0 = base + tid * ITEMS;
    float v[ITEMS];
    unsigned flags = nf;
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) v[i] = nv[i];
    if (N - base > THREADS * ITEMS) load<VEC>(x, reset, i0 + THREADS * ITEMS, N, nv, nf);
    float s = 0.0f;
    int p = -1;
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      if ((flags >> i) & 1u) { s = 0.0f; p = i0 + i; }
      s += v[i];
    }
    #pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      float us = __shfl_up_sync(0xffffffffu, s, o);
      int up = __shfl_up_sync(0xffffffffu, p, o);
      if (lane >= o) join(us, up, s, p);
    }
    if (lane == 31) { ws[par][warp] = s; wp[par][warp] = p; }
    float es = __shfl_up_sync(0xffffffffu, s, 1);
    int ep = __shfl_up_sync(0xffffffffu, p, 1);
    if (lane == 0) { es = 0.0f; ep = -1; }
    __syncthreads();
    float ts = lane < WARPS ? ws[par][lane] : 0.0f;
    int tp = lane < WARPS ? wp[par][lane] : -1;
    #pragma unroll
    for (int o = 1; o < WARPS; o <<= 1) {
      float us = __shfl_up_sync(0xffffffffu, ts, o);
      int up = __shfl_up_sync(0xffffffffu, tp, o);
      if (lane >= o) join(us, up, ts, tp);
    }
    float bs = __shfl_sync(0xffffffffu, ts, warp > 0 ? warp - 1 : 0);
    int bp = __shfl_sync(0xffffffffu, tp, warp > 0 ? warp - 1 : 0);
    if (warp == 0) { bs = 0.0f; bp = -1; }
    float as = __shfl_sync(0xffffffffu, ts, WARPS - 1);
    int ap = __shfl_sync(0xffffffffu, tp, WARPS - 1);
    join(carry_s, carry_p, bs, bp);
    join(bs, bp, es, ep);
    join(carry_s, carry_p, as, ap);
    carry_s = as;
    carry_p = ap;
    float run = es;
    int start = ep;
    float o[ITEMS];
    int c[ITEMS];
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      if ((flags >> i) & 1u) { run = 0.0f; start = i0 + i; }
      run += v[i];
      o[i] = run;
      c[i] = i0 + i - start + 1;
    }
    if (VEC) {
      if (i0 < N) {
        __stcs((float4*)(out + i0), make_float4(o[0], o[1], o[2], o[3]));
        __stcs((float4*)(out + i0 + 4), make_float4(o[4], o[5], o[6], o[7]));
        #pragma unroll
        for (int i = 0; i < ITEMS; i += 2) {
          longlong2 q;
          q.x = c[i];
          q.y = c[i + 1];
          *(longlong2*)(count + i0 + i) = q;
        }
      }
    } else {
      #pragma unroll
      for (int i = 0; i < ITEMS; ++i)
        if (i0 + i < N) { out[i0 + i] = o[i]; count[i0 + i] = c[i]; }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) seg_vec(const float* x, const unsigned char* reset, float* out, long long* count, int N) {
  body<true>(x, reset, out, count, N);
}
extern "C" __global__ void __launch_bounds__(THREADS, 2) seg_any(const float* x, const unsigned char* reset, float* out, long long* count, int N) {
  body<false>(x, reset, out, count, N);
}
'''
lib = nvrtc.compile(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, reset):
        B, N = x.shape
        out = torch.empty_like(x)
        count = torch.empty((B, N), dtype=torch.int64, device=x.device)
        kernel = lib.seg_vec if N % 8 == 0 else lib.seg_any
        kernel(B, 512, x, reset, out, count, N)
        return out, count
