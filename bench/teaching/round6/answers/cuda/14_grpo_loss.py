import torch
from tegula_eval import nvrtc

SOURCE = r'''
// A block for each token: one pass over its logits in pieces of IT * NT * VEC.
#define WARPS (NT / 32)

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

extern "C" __global__ void grpo(const float* logits, const long long* tokens, const float* old_logp, const float* ref_logp,
                                const float* advantages, const long long* lengths, float* out_logp, float* rowvals, float* out,
                                int* counter, int B, int T, int V, float inv_temperature, float clip, float beta) {
  __shared__ float red[2][WARPS];
  __shared__ int last;
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  int row = blockIdx.x;
  const float* x = logits + (long long)row * V;
  float picked = 0.0f;
  if (tid == 0) picked = x[tokens[row]];
  float m = -1e30f, l = 0.0f;
  for (int p = 0; p < V; p += IT * NT * VEC) {
    float v[IT * VEC];
    #pragma unroll
    for (int c = 0; c < IT; ++c) {
      int base = p + (c * NT + tid) * VEC;
#if VEC == 4
      float4 u = make_float4(-1e30f, -1e30f, -1e30f, -1e30f);
      if (base < V) u = *(const float4*)(x + base);
      v[c * 4] = u.x; v[c * 4 + 1] = u.y; v[c * 4 + 2] = u.z; v[c * 4 + 3] = u.w;
#else
      v[c] = base < V ? x[base] : -1e30f;
#endif
    }
    float n = m;
    #pragma unroll
    for (int e = 0; e < IT * VEC; ++e) n = fmaxf(n, v[e]);
    float s = 0.0f;
    #pragma unroll
    for (int c = 0; c < IT; ++c) {
      float t = 0.0f;
      #pragma unroll
      for (int j = 0; j < VEC; ++j) t += expf((v[c * VEC + j] - n) * inv_temperature);
      if (p + (c * NT + tid) * VEC < V) s += t;
    }
    l = l * expf((m - n) * inv_temperature) + s;
    m = n;
  }
  float wm = warp_max(m);
  l = warp_sum(l * expf((m - wm) * inv_temperature));
  if (lane == 0) {
    red[0][warp] = wm;
    red[1][warp] = l;
  }
  __syncthreads();
  if (tid == 0) {
    m = red[0][0];
    for (int w = 1; w < WARPS; ++w) m = fmaxf(m, red[0][w]);
    l = 0.0f;
    for (int w = 0; w < WARPS; ++w) l += red[1][w] * expf((red[0][w] - m) * inv_temperature);
    float logp = (picked - m) * inv_temperature - logf(l);
    out_logp[row] = logp;
    int b = row / T, t = row - b * T;
    float value = 0.0f;
    long long length = lengths[b];
    if (t < length) {
      float a = advantages[b];
      float ratio = expf(fminf(fmaxf(logp - old_logp[row], -5.0f), 5.0f));
      float clipped = fminf(fmaxf(ratio, 1.0f - clip), 1.0f + clip);
      float policy = -fminf(ratio * a, clipped * a);
      float off = fminf(fmaxf(ref_logp[row] - logp, -5.0f), 5.0f);
      float kl = expf(off) - off - 1.0f;
      value = policy + beta * kl;
    }
    rowvals[row] = value / (float)length;
    __threadfence();
    last = atomicAdd(counter, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (tid == 0) *counter = 0;
  int rows = gridDim.x;
  float s = 0.0f;
  for (int i = tid; i < rows; i += NT) s += __ldcg(rowvals + i);
  s = warp_sum(s);
  if (lane == 0) red[0][warp] = s;
  __syncthreads();
  if (tid == 0) {
    s = 0.0f;
    for (int w = 0; w < WARPS; ++w) s += red[0][w];
    *out = s / B;
  }
}
'''

_libs = {}
_counters = {}


def _lib(V):
    vec = 4 if V % 4 == 0 else 1
    units = -(-V // vec)
    nt = 256 if units > 512 else 128
    it = min(-(-units // nt), 8)
    key = (vec, nt, it)
    if key not in _libs:
        _libs[key] = nvrtc.compile(f"#define VEC {vec}\n#define NT {nt}\n#define IT {it}\n" + SOURCE)
    return _libs[key], nt


def _counter(device):
    if device not in _counters:
        _counters[device] = torch.zeros(1, dtype=torch.int32, device=device)
    return _counters[device]


class ModelNew(torch.nn.Module):
    def __init__(self, temperature, clip, beta):
        super().__init__()
        self.temperature = temperature
        self.clip = clip
        self.beta = beta

    def forward(self, logits, tokens, old_logp, ref_logp, advantages, lengths):
        B, T, V = logits.shape
        lib, nt = _lib(V)
        tokens = tokens.to(torch.int64)
        lengths = lengths.to(torch.int64)
        logp = torch.empty((B, T), dtype=logits.dtype, device=logits.device)
        loss = torch.empty((), dtype=logits.dtype, device=logits.device)
        rowvals = torch.empty(B * T, dtype=torch.float32, device=logits.device)
        lib.grpo(B * T, nt, logits, tokens, old_logp, ref_logp, advantages, lengths, logp, rowvals, loss,
                 _counter(logits.device), B, T, V, 1.0 / float(self.temperature), float(self.clip), float(self.beta))
        return loss, logp
