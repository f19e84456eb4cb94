import torch
from tegula_eval import nvrtc

SOURCE = r'''
// A block for each token; the first IT * NT * VEC logits of the row stay in registers, a longer rest is read again.
#define WARPS (NT / 32)
#define HELD (IT * NT * VEC)

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
__device__ __forceinline__ int warp_sum_int(int v) {
  #pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

extern "C" __global__ void z_loss(const float* logits, const long long* labels, float* grad, float* rowvals, float* out_loss, float* out_penalty,
                                  int* counter, int M, int V, float smoothing, float z) {
  __shared__ float red_f[3][WARPS];
  __shared__ int red_i[WARPS];
  __shared__ int last;
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  int row = blockIdx.x;
  long long label = labels[row];
  float* gr = grad + (long long)row * V;
  const float* x = logits + (long long)row * V;
  if (label < 0) {
#if VEC == 4
    for (int i = tid * 4; i < V; i += NT * 4) *(float4*)(gr + i) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#else
    for (int i = tid; i < V; i += NT) gr[i] = 0.0f;
#endif
    if (tid == 0) {
      rowvals[2 * row] = 0.0f;
      rowvals[2 * row + 1] = 0.0f;
    }
  } else {
    float v[IT * VEC];
    #pragma unroll
    for (int c = 0; c < IT; ++c) {
      int base = (c * NT + tid) * VEC;
#if VEC == 4
      float4 u = make_float4(-1e30f, -1e30f, -1e30f, -1e30f);
      if (base < V) u = *(const float4*)(x + base);
      v[c * 4] = u.x; v[c * 4 + 1] = u.y; v[c * 4 + 2] = u.z; v[c * 4 + 3] = u.w;
#else
      v[c] = base < V ? x[base] : -1e30f;
#endif
    }
    int count = 0;
    for (int i = tid; i < M; i += NT) count += labels[i] >= 0;
    float picked = x[label];
    float m = -1e30f, sum = 0.0f;
    #pragma unroll
    for (int c = 0; c < IT; ++c) {
      bool ok = (c * NT + tid) * VEC < V;
      float part = 0.0f;
      #pragma unroll
      for (int j = 0; j < VEC; ++j) {
        m = fmaxf(m, v[c * VEC + j]);
        part += v[c * VEC + j];
      }
      if (ok) sum += part;
    }
    for (int i = HELD + tid; i < V; i += NT) {
      m = fmaxf(m, x[i]);
      sum += x[i];
    }
    m = warp_max(m);
    sum = warp_sum(sum);
    count = warp_sum_int(count);
    if (lane == 0) {
      red_f[0][warp] = m;
      red_f[1][warp] = sum;
      red_i[warp] = count;
    }
    __syncthreads();
    m = red_f[0][0];
    sum = red_f[1][0];
    count = red_i[0];
    #pragma unroll
    for (int w = 1; w < WARPS; ++w) {
      m = fmaxf(m, red_f[0][w]);
      sum += red_f[1][w];
      count += red_i[w];
    }
    float l = 0.0f;
    #pragma unroll
    for (int c = 0; c < IT; ++c) {
      #pragma unroll
      for (int j = 0; j < VEC; ++j) {
        float e = expf(v[c * VEC + j] - m);
        v[c * VEC + j] = e;
        l += (c * NT + tid) * VEC < V ? e : 0.0f;
      }
    }
    for (int i = HELD + tid; i < V; i += NT) l += expf(x[i] - m);
    l = warp_sum(l);
    if (lane == 0) red_f[2][warp] = l;
    __syncthreads();
    l = red_f[2][0];
    #pragma unroll
    for (int w = 1; w < WARPS; ++w) l += red_f[2][w];
    float lse = m + logf(l);
    float number = (float)(count > 1 ? count : 1);
    float factor = (1.0f + 2.0f * z * lse) / (l * number);
    float shift = smoothing / ((float)V * number);
    float at_label = (smoothing - 1.0f) / number;
    int lab = (int)label;
    #pragma unroll
    for (int c = 0; c < IT; ++c) {
      int base = (c * NT + tid) * VEC;
      float y[VEC];
      #pragma unroll
      for (int j = 0; j < VEC; ++j) {
        y[j] = v[c * VEC + j] * factor - shift;
        if (base + j == lab) y[j] += at_label;
      }
      if (base < V) {
#if VEC == 4
        *(float4*)(gr + base) = make_float4(y[0], y[1], y[2], y[3]);
#else
        gr[base] = y[0];
#endif
      }
    }
    for (int i = HELD + tid; i < V; i += NT) {
      float y = expf(x[i] - m) * factor - shift;
      if (i == lab) y += at_label;
      gr[i] = y;
    }
    if (tid == 0) {
      rowvals[2 * row] = lse - (1.0f - smoothing) * picked - smoothing * (sum / V);
      rowvals[2 * row + 1] = z * lse * lse;
    }
  }
  // the last block adds up the rows
  if (tid == 0) {
    __threadfence();
    last = atomicAdd(counter, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (tid == 0) *counter = 0;
  float a = 0.0f, b = 0.0f;
  int count = 0;
  for (int i = tid; i < M; i += NT) {
    a += __ldcg(rowvals + 2 * i);
    b += __ldcg(rowvals + 2 * i + 1);
    count += labels[i] >= 0;
  }
  a = warp_sum(a);
  b = warp_sum(b);
  count = warp_sum_int(count);
  if (lane == 0) {
    red_f[0][warp] = a;
    red_f[1][warp] = b;
    red_i[warp] = count;
  }
  __syncthreads();
  if (tid == 0) {
    a = 0.0f;
    b = 0.0f;
    count = 0;
    for (int w = 0; w < WARPS; ++w) {
      a += red_f[0][w];
      b += red_f[1][w];
      count += red_i[w];
    }
    float number = (float)(count > 1 ? count : 1);
    *out_loss = a / number;
    *out_penalty = b / number;
  }
}
'''

_libs = {}
_counters = {}


def _lib(V):
    vec = 4 if V % 4 == 0 else 1
    units = -(-V // vec)
    nt = 512 if units > 1024 else 128
    it = min(-(-units // nt), 32 // vec)
    key = (vec, nt, it)
    if key not in _libs:
        head = f"#define VEC {vec}\n#define NT {nt}\n#define IT {it}\n"
        _libs[key] = nvrtc.compile(head + SOURCE, "--maxrregcount=64" if nt == 512 else "--maxrregcount=128")
    return _libs[key], nt


def _counter(device):
    if device not in _counters:
        _counters[device] = torch.zeros(1, dtype=torch.int32, device=device)
    return _counters[device]


class ModelNew(torch.nn.Module):
    def __init__(self, smoothing, z_weight):
        super().__init__()
        self.smoothing = smoothing
        self.z_weight = z_weight

    def forward(self, logits, labels):
        M, V = logits.shape
        lib, nt = _lib(V)
        labels = labels.to(torch.int64)
        grad = torch.empty_like(logits)
        loss = torch.empty((), dtype=logits.dtype, device=logits.device)
        penalty = torch.empty((), dtype=logits.dtype, device=logits.device)
        rowvals = torch.empty((M, 2), dtype=torch.float32, device=logits.device)
        lib.z_loss(M, nt, logits, labels, grad, rowvals, loss, penalty, _counter(logits.device), M, V,
                   float(self.smoothing), float(self.z_weight))
        return loss, penalty, grad
