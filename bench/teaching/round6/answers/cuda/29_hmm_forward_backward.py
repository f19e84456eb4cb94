import torch
from tegula_eval import nvrtc

SOURCE = r'''
// S states, NT: S up to a multiple of 32
#define NWP (NT / 32)
#define REG (NT <= 128)
#define NEG __int_as_float(0xff800000)

__device__ __forceinline__ float warp_max(float f) {
  int i = __float_as_int(f);
  i ^= (i >> 31) & 0x7fffffff;
  i = __reduce_max_sync(0xffffffffu, i);
  i ^= (i >> 31) & 0x7fffffff;
  return __int_as_float(i);
}
__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

// A block of one warp for each row of the transitions, and one for the start.
extern "C" __global__ void prepare(const float* transition, const float* start, float* La, float* W, float* ls) {
  int i = blockIdx.x, lane = threadIdx.x;
  const float* row = i < S ? transition + (long long)i * S : start;
  float m = -3.0e38f;
  for (int j = lane; j < S; j += 32) m = fmaxf(m, row[j]);
  m = warp_max(m);
  float s = 0.0f;
  for (int j = lane; j < S; j += 32) s += expf(row[j] - m);
  s = logf(warp_sum(s));
  for (int j = lane; j < S; j += 32) {
    float v = row[j] - m - s;
    if (i < S) {
      float e = expf(v);
      La[i * S + j] = v;
      W[i * S + j] = e;
      W[S * S + j * S + i] = e;
    } else {
      ls[j] = v;
    }
  }
}

// A block for each sequence: one half of it goes forward, the other backward.
extern "C" __global__ void __launch_bounds__(2 * NT) hmm(const float* __restrict__ em, const float* __restrict__ La,
    const float* __restrict__ W, const float* __restrict__ ls, float* alpha, float* beta, float* like, float* post, int T) {
  __shared__ __align__(16) float ps[2][2][NT];
  __shared__ float xs[2][2][NT];
  __shared__ float wm[2][2][NWP];
  int tid = threadIdx.x, lane = tid & 31;
  int dir = tid / NT, j = tid - dir * NT, w = j >> 5;
  long long base = (long long)blockIdx.x * T * S;
  const float* e = em + base;
  float* mem = (dir ? beta : alpha) + base;
  const float* Wd = W + dir * S * S;
  bool ok = j < S;
#if REG
  float wr[NT];
  #pragma unroll
  for (int k = 0; k < NT; ++k) wr[k] = (k < S && ok) ? Wd[k * S + j] : 0.0f;
#endif
  float x = NEG;
  if (ok) {
    if (dir == 0) {
      x = ls[j] + e[j];
      mem[j] = x;
    } else {
      mem[(long long)(T - 1) * S + j] = 0.0f;
      x = e[(long long)(T - 1) * S + j];
    }
  }
  auto emission = [&](int n) {
    if (!ok || n >= T) return 0.0f;
    int t = dir ? T - 1 - n : n;
    return e[(long long)t * S + j];
  };
  float e1 = emission(1), e2 = emission(2);
  for (int n = 1; n < T; ++n) {
    float en = e1;
    e1 = e2;
    e2 = emission(n + 2);
    int t = dir ? T - 1 - n : n;
    int buf = n & 1;
    float m = fmaxf(warp_max(ok ? x : NEG), -1.0e37f);
    ps[buf][dir][j] = ok ? expf(x - m) : 0.0f;
    xs[buf][dir][j] = ok ? x : NEG;
    if (lane == 0) wm[buf][dir][w] = m;
    __syncthreads();
    float M = wm[buf][dir][0];
    #pragma unroll
    for (int q = 1; q < NWP; ++q) M = fmaxf(M, wm[buf][dir][q]);
    float sum = 0.0f;
    const float* p = ps[buf][dir];
    #pragma unroll
    for (int q = 0; q < NWP; ++q) {
      float scale = NWP == 1 ? 1.0f : expf(wm[buf][dir][q] - M);
      float d0 = 0.0f, d1 = 0.0f, d2 = 0.0f, d3 = 0.0f;
#if REG
      #pragma unroll
      for (int k = q * 32; k < q * 32 + 32; k += 4) {
        float4 v = *(const float4*)(p + k);
        d0 = fmaf(v.x, wr[k], d0);
        d1 = fmaf(v.y, wr[k + 1], d1);
        d2 = fmaf(v.z, wr[k + 2], d2);
        d3 = fmaf(v.w, wr[k + 3], d3);
      }
#else
      if (ok) {
        int end = min(S, q * 32 + 32);
        #pragma unroll 4
        for (int k = q * 32; k < end; ++k) d0 = fmaf(p[k], Wd[(long long)k * S + j], d0);
      }
#endif
      sum = fmaf(scale, (d0 + d1) + (d2 + d3), sum);
    }
    float val = M + logf(sum);
    if (ok && !(sum >= 1.0e-30f)) {   // too small for plain numbers: in the log domain
      const float* xr = xs[buf][dir];
      float mx = NEG;
      for (int k = 0; k < S; ++k) mx = fmaxf(mx, xr[k] + (dir ? La[j * S + k] : La[k * S + j]));
      if (mx > NEG) {
        float s = 0.0f;
        for (int k = 0; k < S; ++k) s += expf(xr[k] + (dir ? La[j * S + k] : La[k * S + j]) - mx);
        val = mx + logf(s);
      } else {
        val = NEG;
      }
    }
    if (ok) {
      if (dir == 0) {
        x = val + en;
        mem[(long long)t * S + j] = x;
      } else {
        mem[(long long)t * S + j] = val;
        x = val + en;
      }
    }
  }
  __syncthreads();
  int warp = tid >> 5, warps = 2 * NWP;
  for (int t = warp; t < T; t += warps) {
    long long o = base + (long long)t * S;
    float v[NWP];
    float m = NEG;
    #pragma unroll
    for (int q = 0; q < NWP; ++q) {
      int k = q * 32 + lane;
      v[q] = k < S ? alpha[o + k] + beta[o + k] : NEG;
      m = fmaxf(m, v[q]);
    }
    m = warp_max(m);
    float s = 0.0f;
    #pragma unroll
    for (int q = 0; q < NWP; ++q) {
      v[q] = expf(v[q] - m);
      s += v[q];
    }
    s = warp_sum(s);
    #pragma unroll
    for (int q = 0; q < NWP; ++q) {
      int k = q * 32 + lane;
      if (k < S) post[o + k] = v[q] / s;
    }
    if (t == T - 1) {
      float am = NEG;
      #pragma unroll
      for (int q = 0; q < NWP; ++q) {
        int k = q * 32 + lane;
        v[q] = k < S ? alpha[o + k] : NEG;
        am = fmaxf(am, v[q]);
      }
      am = warp_max(am);
      float as = 0.0f;
      #pragma unroll
      for (int q = 0; q < NWP; ++q) as += expf(v[q] - am);
      as = warp_sum(as);
      if (lane == 0) like[blockIdx.x] = am + logf(as);
    }
  }
}
'''
libs = {}


class ModelNew(torch.nn.Module):
    def __init__(self, states):
        super().__init__()
        self.transition = torch.nn.Parameter(torch.randn(states, states))
        self.start = torch.nn.Parameter(torch.randn(states))

    def forward(self, emission):
        B, T, S = emission.shape
        if S not in libs:
            libs[S] = nvrtc.compile("#define S %d\n#define NT %d\n" % (S, -(-S // 32) * 32) + SOURCE)
        lib = libs[S]
        nt = -(-S // 32) * 32
        dev, dt = emission.device, emission.dtype
        La = torch.empty((S, S), dtype=dt, device=dev)
        W = torch.empty((2, S, S), dtype=dt, device=dev)
        ls = torch.empty((S,), dtype=dt, device=dev)
        alpha, beta, post = torch.empty_like(emission), torch.empty_like(emission), torch.empty_like(emission)
        like = torch.empty((B,), dtype=dt, device=dev)
        lib.prepare(S + 1, 32, self.transition, self.start, La, W, ls)
        lib.hmm(B, 2 * nt, emission, La, W, ls, alpha, beta, like, post, T)
        return like, post
