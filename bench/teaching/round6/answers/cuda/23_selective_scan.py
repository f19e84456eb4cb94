import torch
from tegula_eval import nvrtc

SOURCE = r'''
#define SP (4 * SPT)
#define CH 32
#define RP (TT / 4)
#define NB ((TT * SP + 127) / 128)

__device__ __forceinline__ float ex2(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

// A block: 32 channels of one batch entry, four threads for a channel, each SPT states.
extern "C" __global__ void __launch_bounds__(128) scan(const float* __restrict__ x, const float* __restrict__ z,
    const float* __restrict__ dt, const float* __restrict__ b, const float* __restrict__ c, const float* __restrict__ a_log,
    const float* __restrict__ d, const float* __restrict__ dt_bias, float* __restrict__ out, float* __restrict__ hout,
    int T, int C, int S) {
  __shared__ float ds[TT][CH], us[TT][CH], ys[TT][CH];
  __shared__ __align__(16) float bs[TT * SP];
  __shared__ __align__(16) float cs[TT * SP];
  int tid = threadIdx.x, col = tid & 31, row0 = tid >> 5;
  int c0 = blockIdx.x * CH;
  long long batch = blockIdx.y;
  int gc = c0 + col;
  bool okc = gc < C;
  const long long base = batch * T * C + gc;
  const long long bbase = batch * T * S;
  float bias = okc ? dt_bias[gc] : 0.0f, dd = okc ? d[gc] : 0.0f;
  int ch = tid >> 2, q = tid & 3, mc = c0 + ch;
  float a[SPT], h[SPT];
  #pragma unroll
  for (int s = 0; s < SPT; ++s) {
    int st = q * SPT + s;
    a[s] = (mc < C && st < S) ? -expf(a_log[(long long)mc * S + st]) * 1.44269504088896f : 0.0f;
    h[s] = 0.0f;
  }
  float nx[RP], nz[RP], nd[RP], cx[RP], cz[RP], nb[NB], nc[NB];

  auto load = [&](int t0) {
    #pragma unroll
    for (int i = 0; i < RP; ++i) {
      int t = t0 + row0 + 4 * i;
      bool in = okc && t < T;
      long long off = base + (long long)t * C;
      nx[i] = in ? x[off] : 0.0f;
      nd[i] = in ? dt[off] : 0.0f;
      nz[i] = in ? z[off] : 0.0f;
    }
    #pragma unroll
    for (int i = 0; i < NB; ++i) {
      int e = tid + 128 * i;
      int t = e / SP, s = e % SP;
      bool in = e < TT * SP && t0 + t < T && s < S;
      long long off = bbase + (long long)(t0 + t) * S + s;
      nb[i] = in ? b[off] : 0.0f;
      nc[i] = in ? c[off] : 0.0f;
    }
  };

  load(0);
  for (int t0 = 0; t0 < T; t0 += TT) {
    #pragma unroll
    for (int i = 0; i < RP; ++i) {
      float v = nd[i] + bias;
      float sp = v > 20.0f ? v : log1pf(expf(v));
      ds[row0 + 4 * i][col] = sp;
      us[row0 + 4 * i][col] = sp * nx[i];
      cx[i] = nx[i];
      cz[i] = nz[i];
    }
    #pragma unroll
    for (int i = 0; i < NB; ++i) {
      int e = tid + 128 * i;
      if (e < TT * SP) { bs[e] = nb[i]; cs[e] = nc[i]; }
    }
    __syncthreads();
    if (t0 + TT < T) load(t0 + TT);
    int steps = min(TT, T - t0);
    #pragma unroll 4
    for (int t = 0; t < steps; ++t) {
      float dv = ds[t][ch], uv = us[t][ch];
      float bv[SPT], cv[SPT];
#if SPT % 4 == 0
      #pragma unroll
      for (int s = 0; s < SPT; s += 4) {
        float4 b4 = *(const float4*)&bs[t * SP + q * SPT + s];
        float4 c4 = *(const float4*)&cs[t * SP + q * SPT + s];
        bv[s] = b4.x; bv[s + 1] = b4.y; bv[s + 2] = b4.z; bv[s + 3] = b4.w;
        cv[s] = c4.x; cv[s + 1] = c4.y; cv[s + 2] = c4.z; cv[s + 3] = c4.w;
      }
#else
      #pragma unroll
      for (int s = 0; s < SPT; ++s) { bv[s] = bs[t * SP + q * SPT + s]; cv[s] = cs[t * SP + q * SPT + s]; }
#endif
      float y = 0.0f;
      #pragma unroll
      for (int s = 0; s < SPT; ++s) {
        h[s] = fmaf(ex2(dv * a[s]), h[s], uv * bv[s]);
        y = fmaf(h[s], cv[s], y);
      }
      y += __shfl_xor_sync(0xffffffffu, y, 1);
      y += __shfl_xor_sync(0xffffffffu, y, 2);
      if (q == 0) ys[t][ch] = y;
    }
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < RP; ++i) {
      int r = row0 + 4 * i;
      if (okc && r < steps) {
        float g = cz[i] / (1.0f + expf(-cz[i]));
        out[base + (long long)(t0 + r) * C] = fmaf(dd, cx[i], ys[r][col]) * g;
      }
    }
  }
  if (mc < C) {
    #pragma unroll
    for (int s = 0; s < SPT; ++s) {
      int st = q * SPT + s;
      if (st < S) hout[(batch * C + mc) * S + st] = h[s];
    }
  }
}
'''
libs = {}


class ModelNew(torch.nn.Module):
    def __init__(self, channels, states):
        super().__init__()
        self.a_log = torch.nn.Parameter(torch.rand(channels, states))
        self.d = torch.nn.Parameter(torch.randn(channels))
        self.dt_bias = torch.nn.Parameter(torch.randn(channels) - 2)

    def forward(self, x, z, dt, b, c):
        B, T, C = x.shape
        S = b.shape[2]
        spt = -(-S // 4)
        tt = 32 if S <= 64 else 8
        key = (spt, tt)
        if key not in libs:
            libs[key] = nvrtc.compile("#define SPT %d\n#define TT %d\n" % key + SOURCE)
        out = torch.empty_like(x)
        h = torch.empty((B, C, S), dtype=x.dtype, device=x.device)
        libs[key].scan((-(-C // 32), B), 128, x, z, dt, b, c, self.a_log, self.d, self.dt_bias, out, h, T, C, S)
        return out, h
