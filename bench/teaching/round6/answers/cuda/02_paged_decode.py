import torch
from tegula_eval import nvrtc

SOURCE = r'''
#include <cuda_fp16.h>

// LPT lanes share one token's row (CH chunks of 8 halves for each lane), GR tokens at a time in a warp.
#define GR (32 / LPT)

__device__ __forceinline__ uint4 load8(const __half* p, int d, bool ok) {
#if VEC
  uint4 z = make_uint4(0u, 0u, 0u, 0u);
  if (ok && d < D) z = *(const uint4*)(p + d);
  return z;
#else
  const unsigned short* s = (const unsigned short*)p;
  unsigned h[8];
  #pragma unroll
  for (int i = 0; i < 8; ++i) h[i] = (ok && d + i < D) ? (unsigned)s[d + i] : 0u;
  return make_uint4(h[0] | (h[1] << 16), h[2] | (h[3] << 16), h[4] | (h[5] << 16), h[6] | (h[7] << 16));
#endif
}

__device__ __forceinline__ void unpack(const uint4& u, float* f) {
  float2 t;
  t = __half22float2(*(const __half2*)&u.x); f[0] = t.x; f[1] = t.y;
  t = __half22float2(*(const __half2*)&u.y); f[2] = t.x; f[3] = t.y;
  t = __half22float2(*(const __half2*)&u.z); f[4] = t.x; f[5] = t.y;
  t = __half22float2(*(const __half2*)&u.w); f[6] = t.x; f[7] = t.y;
}

extern "C" __global__ void paged(const __half* query, const __half* keys, const __half* values, const int* table,
                                 const int* lengths, __half* out, float* part, float* ml, int* counter,
                                 int heads, int N, float sl) {
  int split = blockIdx.x, hb = blockIdx.y, b = blockIdx.z, splits = gridDim.x;
  int len = lengths[b];
  if (len > N * S) len = N * S;
  int t0 = split * SPLIT;
  if (t0 >= len) return;
  int ns = (len + SPLIT - 1) / SPLIT;
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  int head = hb * 8 + warp;
  bool active = head < heads;
  int sub = lane % LPT, grp = lane / LPT;
  __shared__ int last;
  long long bh = (long long)b * heads + head;

  if (active) {
    float q[CH * 8], acc[CH * 8];
    #pragma unroll
    for (int c = 0; c < CH; ++c) {
      unpack(load8(query + bh * D, (c * LPT + sub) * 8, true), q + c * 8);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        q[c * 8 + i] *= sl;
        acc[c * 8 + i] = 0.0f;
      }
    }
    float m = -1e30f, l = 0.0f;
    for (int base = 0; base < SPLIT; base += GR * UN) {
      uint4 kr[UN][CH], vr[UN][CH];
      #pragma unroll
      for (int u = 0; u < UN; ++u) {
        int t = t0 + base + u * GR + grp;
        bool ok = t < len;
        int page = ok ? table[(long long)b * N + t / S] : 0;
        long long row = (((long long)page * S + (ok ? t % S : 0)) * heads + head) * D;
        #pragma unroll
        for (int c = 0; c < CH; ++c) {
          kr[u][c] = load8(keys + row, (c * LPT + sub) * 8, ok);
          vr[u][c] = load8(values + row, (c * LPT + sub) * 8, ok);
        }
      }
      float s[UN], mb = m;
      #pragma unroll
      for (int u = 0; u < UN; ++u) {
        float d = 0.0f;
        #pragma unroll
        for (int c = 0; c < CH; ++c) {
          float f[8];
          unpack(kr[u][c], f);
          #pragma unroll
          for (int i = 0; i < 8; ++i) d += f[i] * q[c * 8 + i];
        }
        s[u] = d;
      }
      #pragma unroll
      for (int o = LPT / 2; o; o >>= 1) {
        #pragma unroll
        for (int u = 0; u < UN; ++u) s[u] += __shfl_xor_sync(0xffffffffu, s[u], o);
      }
      #pragma unroll
      for (int u = 0; u < UN; ++u) {
        if (t0 + base + u * GR + grp >= len) s[u] = -1e30f;
        mb = fmaxf(mb, s[u]);
      }
      float corr = exp2f(m - mb);
      m = mb;
      l *= corr;
      #pragma unroll
      for (int i = 0; i < CH * 8; ++i) acc[i] *= corr;
      #pragma unroll
      for (int u = 0; u < UN; ++u) {
        bool ok = t0 + base + u * GR + grp < len;
        float p = ok ? exp2f(s[u] - m) : 0.0f;
        l += p;
        #pragma unroll
        for (int c = 0; c < CH; ++c) {
          float f[8];
          unpack(vr[u][c], f);
          #pragma unroll
          for (int i = 0; i < 8; ++i) acc[c * 8 + i] += p * f[i];
        }
      }
    }
    #pragma unroll
    for (int o = LPT; o < 32; o <<= 1) {
      float m2 = __shfl_xor_sync(0xffffffffu, m, o), l2 = __shfl_xor_sync(0xffffffffu, l, o);
      float mm = fmaxf(m, m2), a = exp2f(m - mm), c2 = exp2f(m2 - mm);
      l = l * a + l2 * c2;
      #pragma unroll
      for (int i = 0; i < CH * 8; ++i) acc[i] = acc[i] * a + __shfl_xor_sync(0xffffffffu, acc[i], o) * c2;
      m = mm;
    }
    if (grp == 0) {
      float inv = 1.0f / l;
      long long slot = bh * splits + split;
      #pragma unroll
      for (int c = 0; c < CH; ++c) {
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          int d = (c * LPT + sub) * 8 + i;
          if (d < D) {
            if (ns == 1) out[bh * D + d] = __float2half(acc[c * 8 + i] * inv);
            else part[slot * D + d] = acc[c * 8 + i];
          }
        }
      }
      if (ns > 1 && sub == 0) {
        ml[slot * 2] = m;
        ml[slot * 2 + 1] = l;
      }
    }
  }
  if (ns == 1) return;
  __threadfence();
  __syncthreads();
  int id = b * gridDim.y + hb;
  if (threadIdx.x == 0) last = atomicAdd(&counter[id], 1) == ns - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (threadIdx.x == 0) counter[id] = 0;
  if (!active) return;
  long long slot0 = bh * splits;
  float m = -1e30f, l = 0.0f;
  for (int j = lane; j < ns; j += 32) m = fmaxf(m, __ldcg(ml + (slot0 + j) * 2));
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, o));
  for (int j = lane; j < ns; j += 32) l += __ldcg(ml + (slot0 + j) * 2 + 1) * exp2f(__ldcg(ml + (slot0 + j) * 2) - m);
  for (int o = 16; o; o >>= 1) l += __shfl_xor_sync(0xffffffffu, l, o);
  float inv = 1.0f / l;
  for (int d = lane; d < D; d += 32) {
    float a = 0.0f;
    #pragma unroll 8
    for (int j = 0; j < ns; ++j)
      a += exp2f(__ldcg(ml + (slot0 + j) * 2) - m) * __ldcg(part + (slot0 + j) * D + d);
    out[bh * D + d] = __float2half(a * inv);
  }
}
'''

_libs = {}
_counters = {}


def _lib(D, S):
    key = (D, S)
    if key not in _libs:
        lpt = 1
        while lpt < 32 and lpt * 8 < D:
            lpt *= 2
        ch = -(-D // (8 * lpt))
        un = 8 if ch == 1 else (4 if ch == 2 else 2)
        step = (32 // lpt) * un
        split = step
        while split < 32:
            split *= 2
        head = (f"#define D {D}\n#define S {S}\n#define LPT {lpt}\n#define CH {ch}\n#define UN {un}\n"
                f"#define SPLIT {split}\n#define VEC {1 if D % 8 == 0 else 0}\n")
        _libs[key] = (nvrtc.compile(head + SOURCE), split)
    return _libs[key]


def _counter(n, device):
    c = _counters.get(device)
    if c is None or c.numel() < n:
        c = torch.zeros(max(n, 4096), dtype=torch.int32, device=device)
        _counters[device] = c
    return c


class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, query, key_pages, value_pages, block_table, lengths):
        B, heads, D = query.shape
        S, N = key_pages.shape[1], block_table.shape[1]
        lib, split = _lib(D, S)
        block_table = block_table.to(torch.int32)
        lengths = lengths.to(torch.int32)
        splits = -(-(N * S) // split)
        hb = -(-heads // 8)
        out = torch.empty_like(query)
        part, ml = None, None
        if splits > 1:
            part = torch.empty(B * heads * splits * D, dtype=torch.float32, device=query.device)
            ml = torch.empty(B * heads * splits * 2, dtype=torch.float32, device=query.device)
        counter = _counter(B * hb, query.device)
        lib.paged((splits, hb, B), 256, query, key_pages, value_pages, block_table, lengths, out, part, ml, counter,
                  heads, N, float(self.scale) * 1.4426950408889634)
        return out
