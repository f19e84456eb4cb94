import torch
from tegula_eval import nvrtc

SOURCE = r'''
// A block for each token; thread t has elements (i * NT + t) * VEC .. .
#define WARPS (NT / 32)

__device__ __forceinline__ void load(float* r, const float* p, bool ok) {
#if VEC == 4
  float4 u = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (ok) u = *(const float4*)p;
  r[0] = u.x; r[1] = u.y; r[2] = u.z; r[3] = u.w;
#else
  r[0] = ok ? *p : 0.0f;
#endif
}

__device__ __forceinline__ void store(float* p, const float* r) {
#if VEC == 4
  *(float4*)p = make_float4(r[0], r[1], r[2], r[3]);
#else
  *p = r[0];
#endif
}

extern "C" __global__ void combine(const float* expert_out, const long long* place, const float* gates, const float* shared_out,
                                   const float* residual, const float* weight, float* out_h, float* out_y, float eps) {
  __shared__ float red[32];
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  long long token = blockIdx.x;
  long long at[TOPK];
  float g[TOPK];
  #pragma unroll
  for (int k = 0; k < TOPK; ++k) {
    at[k] = place[token * TOPK + k];
    g[k] = gates[token * TOPK + k];
  }
  float h[IT * VEC];
  float sum = 0.0f;
  #pragma unroll
  for (int i = 0; i < IT; ++i) {
    int c = (i * NT + tid) * VEC;
    bool in = c < DIM;
    float a[VEC], b[VEC], e[TOPK][VEC];
    load(a, residual + token * DIM + c, in);
    load(b, shared_out + token * DIM + c, in);
    #pragma unroll
    for (int k = 0; k < TOPK; ++k) load(e[k], expert_out + (at[k] >= 0 ? at[k] : 0) * DIM + c, in && at[k] >= 0);
    #pragma unroll
    for (int j = 0; j < VEC; ++j) {
      float s = 0.0f;
      #pragma unroll
      for (int k = 0; k < TOPK; ++k) s += at[k] >= 0 ? e[k][j] * g[k] : 0.0f;
      float v = (a[j] + b[j]) + s;
      h[i * VEC + j] = v;
      sum += v * v;
    }
  }
  #pragma unroll
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (lane == 0) red[warp] = sum;
  float w[IT * VEC];
  #pragma unroll
  for (int i = 0; i < IT; ++i) {
    int c = (i * NT + tid) * VEC;
    load(w + i * VEC, weight + c, c < DIM);
    if (c < DIM) store(out_h + token * DIM + c, h + i * VEC);
  }
  __syncthreads();
  sum = 0.0f;
  #pragma unroll
  for (int i = 0; i < WARPS; ++i) sum += red[i];
  float r = rsqrtf(sum / DIM + eps);
  #pragma unroll
  for (int i = 0; i < IT; ++i) {
    int c = (i * NT + tid) * VEC;
    float y[VEC];
    #pragma unroll
    for (int j = 0; j < VEC; ++j) y[j] = w[i * VEC + j] * h[i * VEC + j] * r;
    if (c < DIM) store(out_y + token * DIM + c, y);
  }
}
'''

_libs = {}


def _lib(D, K):
    key = (D, K)
    if key not in _libs:
        vec = 4 if D % 4 == 0 else 1
        units = D // vec
        it = -(-units // 256)
        nt = -(-(-(-units // it)) // 32) * 32
        head = f"#define DIM {D}\n#define TOPK {K}\n#define VEC {vec}\n#define IT {it}\n#define NT {nt}\n"
        _libs[key] = (nvrtc.compile(head + SOURCE), nt)
    return _libs[key]


class ModelNew(torch.nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(1 + 0.1 * torch.randn(dim))

    def forward(self, expert_out, place, gates, shared, residual):
        T, K = place.shape
        D = expert_out.shape[1]
        lib, nt = _lib(D, K)
        place = place.to(torch.int64)
        h = torch.empty_like(residual)
        y = torch.empty_like(residual)
        lib.combine(T, nt, expert_out, place, gates, shared, residual, self.weight, h, y, float(self.eps))
        return h, y
