import torch
from tegula_eval import nvrtc

SOURCE = r'''
// A block walks over rows; thread t has elements (i * NT + t) * VEC .. of each. The gradient of the weight stays in registers.
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

extern "C" __global__ void rms_backward(const float* x, const float* grad, const float* weight, float* gx, float* part, int rows, float eps) {
  __shared__ float red[2][2][32];
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  float a[IT * VEC], g[IT * VEC], w[IT * VEC], gw[IT * VEC];
  int row = blockIdx.x;
  #pragma unroll
  for (int i = 0; i < IT; ++i) {
    int c = (i * NT + tid) * VEC;
    bool ok = c < DIM;
    load(w + i * VEC, weight + c, ok);
    load(a + i * VEC, x + (long long)row * DIM + c, ok && row < rows);
    load(g + i * VEC, grad + (long long)row * DIM + c, ok && row < rows);
    #pragma unroll
    for (int j = 0; j < VEC; ++j) gw[i * VEC + j] = 0.0f;
  }
  int par = 0;
  for (; row < rows; row += gridDim.x) {
    float na[IT * VEC], ng[IT * VEC];
    int next = row + gridDim.x;
    #pragma unroll
    for (int i = 0; i < IT; ++i) {
      int c = (i * NT + tid) * VEC;
      bool ok = c < DIM && next < rows;
      load(na + i * VEC, x + (long long)next * DIM + c, ok);
      load(ng + i * VEC, grad + (long long)next * DIM + c, ok);
    }
    float s = 0.0f, t = 0.0f;
    #pragma unroll
    for (int i = 0; i < IT * VEC; ++i) {
      s += a[i] * a[i];
      t += g[i] * w[i] * a[i];
    }
    #pragma unroll
    for (int o = 16; o; o >>= 1) {
      s += __shfl_xor_sync(0xffffffffu, s, o);
      t += __shfl_xor_sync(0xffffffffu, t, o);
    }
    if (lane == 0) {
      red[par][0][warp] = s;
      red[par][1][warp] = t;
    }
    __syncthreads();
    s = 0.0f;
    t = 0.0f;
    #pragma unroll
    for (int i = 0; i < WARPS; ++i) {
      s += red[par][0][i];
      t += red[par][1][i];
    }
    par ^= 1;
    float r = rsqrtf(s / DIM + eps);
    float mean = r * t / DIM;   // of weighted * normed
    #pragma unroll
    for (int i = 0; i < IT; ++i) {
      int c = (i * NT + tid) * VEC;
      float y[VEC];
      #pragma unroll
      for (int j = 0; j < VEC; ++j) {
        int e = i * VEC + j;
        float n = a[e] * r;
        gw[e] += g[e] * n;
        y[j] = r * (g[e] * w[e] - n * mean);
      }
      if (c < DIM) store(gx + (long long)row * DIM + c, y);
    }
    #pragma unroll
    for (int i = 0; i < IT * VEC; ++i) {
      a[i] = na[i];
      g[i] = ng[i];
    }
  }
  #pragma unroll
  for (int i = 0; i < IT; ++i) {
    int c = (i * NT + tid) * VEC;
    if (c < DIM) store(part + (long long)blockIdx.x * DIM + c, gw + i * VEC);
  }
}

extern "C" __global__ void column_sums(const float* part, float* out, int n, int cols) {
  __shared__ float red[16][33];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int c = blockIdx.x * 32 + lane;
  float s = 0.0f;
  if (c < cols) {
    #pragma unroll 8
    for (int i = warp; i < n; i += 16) s += part[(long long)i * cols + c];
  }
  red[warp][lane] = s;
  __syncthreads();
  if (warp == 0 && c < cols) {
    s = 0.0f;
    #pragma unroll
    for (int i = 0; i < 16; ++i) s += red[i][lane];
    out[c] = s;
  }
}
'''

_libs = {}


def _lib(D):
    if D not in _libs:
        vec = 4 if D % 4 == 0 else 1
        units = D // vec
        it = 1 if units <= 128 else (2 if units <= 1024 else -(-units // 512))
        nt = -(-(-(-units // it)) // 32) * 32
        head = f"#define DIM {D}\n#define VEC {vec}\n#define IT {it}\n#define NT {nt}\n"
        options = ("--maxrregcount=128",) if nt > 256 else ()
        _libs[D] = (nvrtc.compile(head + SOURCE, *options), nt)
    return _libs[D]


class ModelNew(torch.nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(1 + 0.1 * torch.randn(dim))

    def forward(self, x, grad):
        rows, D = x.shape
        lib, nt = _lib(D)
        per = 3 if nt >= 256 else (6 if nt >= 128 else 8)
        blocks = max(1, min(rows, 132 * per))
        gx = torch.empty_like(x)
        gw = torch.empty(D, dtype=x.dtype, device=x.device)
        part = torch.empty((blocks, D), dtype=torch.float32, device=x.device)
        lib.rms_backward(blocks, nt, x, grad, self.weight, gx, part, rows, float(self.eps))
        lib.column_sums(-(-D // 32), 512, part, gw, blocks, D)
        return gx, gw
