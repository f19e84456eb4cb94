import torch
from tegula_eval import nvrtc

SOURCE = r'''
// A block walks over rows; thread t has elements (i * NT + t) * VEC .. of each. Gradients of gamma and beta stay in registers.
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

extern "C" __global__ void ln_backward(const float* x, const float* residual, const float* grad_y, const float* grad_h, const float* gamma,
                                       float* out, float* part, int rows, float eps) {
  __shared__ float red[2][2][32];
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  float xa[IT * VEC], xb[IT * VEC], gy[IT * VEC], gh[IT * VEC], gm[IT * VEC], dg[IT * VEC], db[IT * VEC];
  int row = blockIdx.x;
  #pragma unroll
  for (int i = 0; i < IT; ++i) {
    int c = (i * NT + tid) * VEC;
    bool ok = c < DIM;
    long long at = (long long)row * DIM + c;
    load(gm + i * VEC, gamma + c, ok);
    ok = ok && row < rows;
    load(xa + i * VEC, x + at, ok);
    load(xb + i * VEC, residual + at, ok);
    load(gy + i * VEC, grad_y + at, ok);
    load(gh + i * VEC, grad_h + at, ok);
    #pragma unroll
    for (int j = 0; j < VEC; ++j) dg[i * VEC + j] = db[i * VEC + j] = 0.0f;
  }
  for (; row < rows; row += gridDim.x) {
    float h[IT * VEC], g[IT * VEC], ch[IT * VEC];
    float s = 0.0f, t = 0.0f;
    #pragma unroll
    for (int i = 0; i < IT * VEC; ++i) {
      h[i] = xa[i] + xb[i];
      g[i] = gy[i];
      ch[i] = gh[i];
      s += h[i];
      t += g[i] * gm[i];
    }
    int next = row + gridDim.x;
    #pragma unroll
    for (int i = 0; i < IT; ++i) {
      int c = (i * NT + tid) * VEC;
      bool ok = c < DIM && next < rows;
      long long at = (long long)next * DIM + c;
      load(xa + i * VEC, x + at, ok);
      load(xb + i * VEC, residual + at, ok);
      load(gy + i * VEC, grad_y + at, ok);
      load(gh + i * VEC, grad_h + at, ok);
    }
    #pragma unroll
    for (int o = 16; o; o >>= 1) {
      s += __shfl_xor_sync(0xffffffffu, s, o);
      t += __shfl_xor_sync(0xffffffffu, t, o);
    }
    if (lane == 0) {
      red[0][0][warp] = s;
      red[0][1][warp] = t;
    }
    __syncthreads();
    s = 0.0f;
    t = 0.0f;
    #pragma unroll
    for (int i = 0; i < WARPS; ++i) {
      s += red[0][0][i];
      t += red[0][1][i];
    }
    float mean = s / DIM, mean_g = t / DIM;
    float var = 0.0f, dot = 0.0f;
    #pragma unroll
    for (int i = 0; i < IT; ++i) {
      bool ok = (i * NT + tid) * VEC < DIM;
      #pragma unroll
      for (int j = 0; j < VEC; ++j) {
        int e = i * VEC + j;
        h[e] = ok ? h[e] - mean : 0.0f;
        var += h[e] * h[e];
        dot += g[e] * gm[e] * h[e];
      }
    }
    #pragma unroll
    for (int o = 16; o; o >>= 1) {
      var += __shfl_xor_sync(0xffffffffu, var, o);
      dot += __shfl_xor_sync(0xffffffffu, dot, o);
    }
    if (lane == 0) {
      red[1][0][warp] = var;
      red[1][1][warp] = dot;
    }
    __syncthreads();
    var = 0.0f;
    dot = 0.0f;
    #pragma unroll
    for (int i = 0; i < WARPS; ++i) {
      var += red[1][0][i];
      dot += red[1][1][i];
    }
    float inv = rsqrtf(var / DIM + eps);
    float mean_gn = dot * inv / DIM;
    #pragma unroll
    for (int i = 0; i < IT; ++i) {
      int c = (i * NT + tid) * VEC;
      float y[VEC];
      #pragma unroll
      for (int j = 0; j < VEC; ++j) {
        int e = i * VEC + j;
        float n = h[e] * inv;
        dg[e] += g[e] * n;
        db[e] += g[e];
        y[j] = ch[e] + (g[e] * gm[e] - mean_g - n * mean_gn) * inv;
      }
      if (c < DIM) store(out + (long long)row * DIM + c, y);
    }
  }
  #pragma unroll
  for (int i = 0; i < IT; ++i) {
    int c = (i * NT + tid) * VEC;
    if (c < DIM) {
      store(part + (long long)blockIdx.x * 2 * DIM + c, dg + i * VEC);
      store(part + (long long)blockIdx.x * 2 * DIM + DIM + c, db + i * VEC);
    }
  }
}

// part (n, 2, dim): the sums go to two vectors
extern "C" __global__ void column_sums(const float* part, float* out0, float* out1, int n, int dim) {
  __shared__ float red[16][33];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int c = blockIdx.x * 32 + lane, cols = 2 * dim;
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
    if (c < dim) out0[c] = s;
    else out1[c - dim] = s;
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
        self.gamma = torch.nn.Parameter(1 + 0.1 * torch.randn(dim))

    def forward(self, x, residual, grad_y, grad_h):
        rows, D = x.shape
        lib, nt = _lib(D)
        per = 2 if nt > 256 else (3 if nt >= 128 else 6)
        blocks = max(1, min(rows, 132 * per))
        out = torch.empty_like(x)
        dg = torch.empty(D, dtype=x.dtype, device=x.device)
        db = torch.empty(D, dtype=x.dtype, device=x.device)
        part = torch.empty((blocks, 2, D), dtype=torch.float32, device=x.device)
        lib.ln_backward(blocks, nt, x, residual, grad_y, grad_h, self.gamma, out, part, rows, float(self.eps))
        lib.column_sums(-(-2 * D // 32), 512, part, dg, db, blocks, D)
        return out, dg, db
