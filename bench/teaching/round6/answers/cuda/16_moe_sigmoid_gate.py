import torch
from tegula_eval import nvrtc

SOURCE = r'''
#define FULL 0xffffffffu

__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + expf(-x)); }

// state[0]: blocks that are done, state[1 + e]: tokens of expert e; both are zero again at the end
__device__ __forceinline__ void finish_load(int* state, float* load) {
  __shared__ int last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(state, 1) == (int)gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (int e = threadIdx.x; e < EXPERTS; e += blockDim.x) load[e] = (float)atomicExch(state + 1 + e, 0);
  if (threadIdx.x == 0) state[0] = 0;
}

#if FAST
// 4 lanes for each token, lane q has experts 16 c + 4 q .. + 3. Each lane sorts out its TOPK largest, the lists are merged by shuffles:
// the smallest of the merged list is the threshold.
extern "C" __global__ void gate_fast(const float* logits, const float* bias, float* dense, float* load, int* state, int T, float factor) {
  __shared__ int hist[EXPERTS];
  const float NEG = __int_as_float(0xff800000);
  int tid = threadIdx.x, q = tid & 3;
  for (int e = tid; e < EXPERTS; e += 256) hist[e] = 0;
  float bq[CH * 4];
  #pragma unroll
  for (int c = 0; c < CH; ++c) {
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      int e = c * 16 + q * 4 + r;
      bq[c * 4 + r] = e < EXPERTS ? bias[e] : 0.0f;
    }
  }
  __syncthreads();
  for (int tile = blockIdx.x; tile * 64 < T; tile += gridDim.x) {
    int token = tile * 64 + (tid >> 2);
    bool ok = token < T;
    const float* row = logits + (long long)token * EXPERTS;
    float x[CH * 4], v[CH * 4], top[TOPK];
    #pragma unroll
    for (int c = 0; c < CH; ++c) {
      int e = c * 16 + q * 4;
#if VEC
      float4 u = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (ok && e < EXPERTS) u = *(const float4*)(row + e);
      x[c * 4] = u.x; x[c * 4 + 1] = u.y; x[c * 4 + 2] = u.z; x[c * 4 + 3] = u.w;
#else
      #pragma unroll
      for (int r = 0; r < 4; ++r) x[c * 4 + r] = ok && e + r < EXPERTS ? row[e + r] : 0.0f;
#endif
      #pragma unroll
      for (int r = 0; r < 4; ++r) v[c * 4 + r] = e + r < EXPERTS ? x[c * 4 + r] + bq[c * 4 + r] : NEG;
    }
    #pragma unroll
    for (int j = 0; j < TOPK; ++j) top[j] = NEG;
    #pragma unroll
    for (int e = 0; e < CH * 4; ++e) {
      float t = v[e];
      #pragma unroll
      for (int j = 0; j < TOPK; ++j) {
        float hi = fmaxf(top[j], t);
        t = fminf(top[j], t);
        top[j] = hi;
      }
    }
    float other[TOPK];
    #pragma unroll
    for (int j = 0; j < TOPK; ++j) other[j] = __shfl_xor_sync(FULL, top[TOPK - 1 - j], 1);
    #pragma unroll
    for (int j = 0; j < TOPK; ++j) top[j] = fmaxf(top[j], other[j]);
    #pragma unroll
    for (int round = 0; round < TOPK; ++round) {
      #pragma unroll
      for (int j = round & 1; j + 1 < TOPK; j += 2) {
        float hi = fmaxf(top[j], top[j + 1]);
        top[j + 1] = fminf(top[j], top[j + 1]);
        top[j] = hi;
      }
    }
    #pragma unroll
    for (int j = 0; j < TOPK; ++j) other[j] = __shfl_xor_sync(FULL, top[TOPK - 1 - j], 2);
    float thr = fmaxf(top[0], other[0]);
    #pragma unroll
    for (int j = 1; j < TOPK; ++j) thr = fminf(thr, fmaxf(top[j], other[j]));

    unsigned sel = 0u, eq = 0u;
    #pragma unroll
    for (int e = 0; e < CH * 4; ++e) {
      if (v[e] > thr) sel |= 1u << e;
      if (v[e] == thr) eq |= 1u << e;
    }
    int counts = __popc(sel) + (__popc(eq) << 16);
    counts += __shfl_xor_sync(FULL, counts, 1);
    counts += __shfl_xor_sync(FULL, counts, 2);
    int need = TOPK - (counts & 0xffff), ties = counts >> 16;
    if (__any_sync(FULL, ties != need)) {
      // equal numbers at the threshold: those of the smallest indices
      int used = 0;
      #pragma unroll
      for (int c = 0; c < CH; ++c) {
        int mine = __popc((eq >> (c * 4)) & 15u), incl = mine;
        int up = __shfl_up_sync(FULL, incl, 1, 4);
        if (q >= 1) incl += up;
        up = __shfl_up_sync(FULL, incl, 2, 4);
        if (q >= 2) incl += up;
        int total = __shfl_sync(FULL, incl, 3, 4);
        int start = used + incl - mine;
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
          if ((eq >> (c * 4 + r)) & 1u) {
            if (start < need) sel |= 1u << (c * 4 + r);
            ++start;
          }
        }
        used += total;
      }
    } else {
      sel |= eq;
    }
    float sum = 0.0f;
    #pragma unroll
    for (int e = 0; e < CH * 4; ++e) {
      float s = 0.0f;
      if ((sel >> e) & 1u) s = sigmoid(x[e]);
      x[e] = s;
      sum += s;
    }
    sum += __shfl_xor_sync(FULL, sum, 1);
    sum += __shfl_xor_sync(FULL, sum, 2);
    float f = factor / (sum + 1e-20f);
    if (ok) {
      float* out = dense + (long long)token * EXPERTS;
      #pragma unroll
      for (int c = 0; c < CH; ++c) {
        int e = c * 16 + q * 4;
#if VEC
        if (e < EXPERTS) *(float4*)(out + e) = make_float4(x[c * 4] * f, x[c * 4 + 1] * f, x[c * 4 + 2] * f, x[c * 4 + 3] * f);
#else
        #pragma unroll
        for (int r = 0; r < 4; ++r)
          if (e + r < EXPERTS) out[e + r] = x[c * 4 + r] * f;
#endif
        #pragma unroll
        for (int r = 0; r < 4; ++r)
          if ((sel >> (c * 4 + r)) & 1u) atomicAdd(&hist[e + r], 1);
      }
    }
  }
  __syncthreads();
  for (int e = tid; e < EXPERTS; e += 256) {
    int n = hist[e];
    if (n) atomicAdd(state + 1 + e, n);
  }
  finish_load(state, load);
}
#else
// any sizes: a warp for each token, TOPK rounds of argmax
extern "C" __global__ void gate_any(const float* logits, const float* bias, float* dense, float* load, int* state, int T, float factor) {
  int lane = threadIdx.x & 31;
  int token = blockIdx.x * 8 + (threadIdx.x >> 5);
  if (token < T) {
    const float* row = logits + (long long)token * EXPERTS;
    float* out = dense + (long long)token * EXPERTS;
    for (int e = lane; e < EXPERTS; e += 32) out[e] = 0.0f;
    __syncwarp();
    float pv = __int_as_float(0x7f800000), sum = 0.0f;
    int pi = -1;
    for (int k = 0; k < TOPK; ++k) {
      float bv = __int_as_float(0xff800000);
      int bi = 0x7fffffff;
      for (int e = lane; e < EXPERTS; e += 32) {
        float v = row[e] + bias[e];
        if ((v < pv || (v == pv && e > pi)) && (v > bv || (v == bv && e < bi))) {
          bv = v;
          bi = e;
        }
      }
      for (int o = 16; o; o >>= 1) {
        float ov = __shfl_xor_sync(FULL, bv, o);
        int oi = __shfl_xor_sync(FULL, bi, o);
        if (ov > bv || (ov == bv && oi < bi)) {
          bv = ov;
          bi = oi;
        }
      }
      pv = bv;
      pi = bi;
      if (bi < EXPERTS) {
        float s = sigmoid(row[bi]);
        sum += s;
        if (lane == 0) {
          out[bi] = s;
          atomicAdd(state + 1 + bi, 1);
        }
      }
    }
    __syncwarp();
    float f = factor / (sum + 1e-20f);
    for (int e = lane; e < EXPERTS; e += 32) out[e] *= f;
  }
  finish_load(state, load);
}
#endif
'''

_libs = {}
_states = {}


def _lib(E, K):
    key = (E, K)
    if key not in _libs:
        fast = E <= 128 and K <= 16
        head = (f"#define EXPERTS {E}\n#define TOPK {K}\n#define FAST {1 if fast else 0}\n#define CH {-(-E // 16)}\n"
                f"#define VEC {1 if E % 4 == 0 else 0}\n")
        _libs[key] = (nvrtc.compile(head + SOURCE), fast)
    return _libs[key]


def _state(E, device):
    key = (E, device)
    if key not in _states:
        _states[key] = torch.zeros(E + 1, dtype=torch.int32, device=device)
    return _states[key]


class ModelNew(torch.nn.Module):
    def __init__(self, num_experts, top_k, factor):
        super().__init__()
        self.top_k = top_k
        self.factor = factor
        self.bias = torch.nn.Parameter(torch.randn(num_experts) * 0.3)

    def forward(self, logits):
        T, E = logits.shape
        lib, fast = _lib(E, self.top_k)
        dense = torch.empty_like(logits)
        load = torch.empty(E, dtype=logits.dtype, device=logits.device)
        state = _state(E, logits.device)
        if fast:
            blocks = min(-(-T // 64), 132 * 4)
            lib.gate_fast(blocks, 256, logits, self.bias, dense, load, state, T, float(self.factor))
        else:
            lib.gate_any(-(-T // 8), 256, logits, self.bias, dense, load, state, T, float(self.factor))
        return dense, load
