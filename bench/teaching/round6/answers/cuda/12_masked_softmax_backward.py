import torch
from tegula_eval import nvrtc

SOURCE = r'''
// A warp for each row; lane l has elements (c * 32 + l) * VEC .. in registers.
__device__ __forceinline__ float warp_sum(float v) {
  #pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
  #pragma unroll
  for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}

extern "C" __global__ void softmax_backward(const float* scores, const float* grad, float* out, float* lse, long long rows, int S, float scale) {
  int lane = threadIdx.x & 31;
  long long row = (long long)blockIdx.x * 8 + (threadIdx.x >> 5);
  if (row >= rows) return;
  int limit = (int)(row % S);
  const float* sr = scores + row * S;
  const float* gr = grad + row * S;
  float* orow = out + row * S;
  float s[IT * VEC], g[IT * VEC];
  #pragma unroll
  for (int c = 0; c < IT; ++c) {
    int base = (c * 32 + lane) * VEC;
#if VEC == 4
    float4 a = make_float4(0.0f, 0.0f, 0.0f, 0.0f), b = a;
    if (base <= limit) {
      a = *(const float4*)(sr + base);
      b = *(const float4*)(gr + base);
    }
    s[c * 4] = a.x; s[c * 4 + 1] = a.y; s[c * 4 + 2] = a.z; s[c * 4 + 3] = a.w;
    g[c * 4] = b.x; g[c * 4 + 1] = b.y; g[c * 4 + 2] = b.z; g[c * 4 + 3] = b.w;
#else
    s[c] = 0.0f;
    g[c] = 0.0f;
    if (base <= limit) {
      s[c] = sr[base];
      g[c] = gr[base];
    }
#endif
  }
  float m = -1e30f;
  #pragma unroll
  for (int c = 0; c < IT; ++c) {
    #pragma unroll
    for (int j = 0; j < VEC; ++j) {
      int e = c * VEC + j;
      s[e] = (c * 32 + lane) * VEC + j <= limit ? s[e] * scale : -1e30f;
      m = fmaxf(m, s[e]);
    }
  }
  m = warp_max(m);
  float l = 0.0f, d = 0.0f;
  #pragma unroll
  for (int c = 0; c < IT; ++c) {
    if (c * 32 * VEC <= limit) {
      #pragma unroll
      for (int j = 0; j < VEC; ++j) {
        int e = c * VEC + j;
        bool in = (c * 32 + lane) * VEC + j <= limit;
        float p = in ? expf(s[e] - m) : 0.0f;
        s[e] = p;
        l += p;
        d += in ? p * g[e] : 0.0f;
      }
    }
  }
  l = warp_sum(l);
  d = warp_sum(d);
  float inv = 1.0f / l;
  d *= inv;
  #pragma unroll
  for (int c = 0; c < IT; ++c) {
    int base = (c * 32 + lane) * VEC;
    float y[VEC];
    #pragma unroll
    for (int j = 0; j < VEC; ++j) {
      int e = c * VEC + j;
      y[j] = base + j <= limit ? s[e] * inv * (g[e] - d) * scale : 0.0f;
    }
    if (base < S) {
#if VEC == 4
      *(float4*)(orow + base) = make_float4(y[0], y[1], y[2], y[3]);
#else
      orow[base] = y[0];
#endif
    }
  }
  if (lane == 0) lse[row] = m + logf(l);
}

// rows that do not fit in registers: a block for each row, read twice
extern "C" __global__ void softmax_backward_long(const float* scores, const float* grad, float* out, float* lse, int S, float scale) {
  __shared__ float red[3][8];
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  long long row = blockIdx.x;
  int limit = (int)(row % S);
  const float* sr = scores + row * S;
  const float* gr = grad + row * S;
  float* orow = out + row * S;
  float m = -1e30f, l = 0.0f, d = 0.0f;
  for (int i = tid; i <= limit; i += 256) {
    float s = sr[i] * scale;
    float n = fmaxf(m, s);
    float corr = expf(m - n), p = expf(s - n);
    l = l * corr + p;
    d = d * corr + p * gr[i];
    m = n;
  }
  float wm = warp_max(m);
  float f = expf(m - wm);
  l = warp_sum(l * f);
  d = warp_sum(d * f);
  if (lane == 0) {
    red[0][warp] = wm;
    red[1][warp] = l;
    red[2][warp] = d;
  }
  __syncthreads();
  m = -1e30f;
  for (int w = 0; w < 8; ++w) m = fmaxf(m, red[0][w]);
  l = 0.0f;
  d = 0.0f;
  for (int w = 0; w < 8; ++w) {
    float c = expf(red[0][w] - m);
    l += red[1][w] * c;
    d += red[2][w] * c;
  }
  float inv = 1.0f / l;
  d *= inv;
  for (int i = tid; i < S; i += 256)
    orow[i] = i <= limit ? expf(sr[i] * scale - m) * inv * (gr[i] - d) * scale : 0.0f;
  if (tid == 0) lse[row] = m + logf(l);
}
'''

_libs = {}


def _lib(S):
    vec = 4 if S % 4 == 0 else 1
    it = -(-S // (32 * vec))
    if it * vec > 48:
        vec, it = 1, 1
        long_rows = True
    else:
        long_rows = False
    key = (vec, it)
    if key not in _libs:
        _libs[key] = nvrtc.compile(f"#define VEC {vec}\n#define IT {it}\n" + SOURCE)
    return _libs[key], long_rows


class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, scores, grad_probabilities):
        S = scores.shape[-1]
        lib, long_rows = _lib(S)
        rows = scores.numel() // S
        out = torch.empty_like(scores)
        lse = torch.empty(scores.shape[:-1], dtype=scores.dtype, device=scores.device)
        if long_rows:
            lib.softmax_backward_long(rows, 256, scores, grad_probabilities, out, lse, S, float(self.scale))
        else:
            lib.softmax_backward(-(-rows // 8), 256, scores, grad_probabilities, out, lse, rows, S, float(self.scale))
        return out, lse
