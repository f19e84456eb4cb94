import torch
from tegula_eval import nvrtc

SOURCE = r'''
#define BM 128
#define BK 16

__device__ __forceinline__ float4 ld4(const float* p, bool in, int k, int K, bool vec) {
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (!in) return v;
  if (vec) {
    if (k < K) v = *(const float4*)(p + k);
  } else {
    if (k < K) v.x = p[k];
    if (k + 1 < K) v.y = p[k + 1];
    if (k + 2 < K) v.z = p[k + 2];
    if (k + 3 < K) v.w = p[k + 3];
  }
  return v;
}

__device__ __forceinline__ void put(float (&t)[BK][BM + 4], int k, int r, float4 v) {
  t[k][r] = v.x; t[k + 1][r] = v.y; t[k + 2][r] = v.z; t[k + 3][r] = v.w;
}

// 128 frames x 64 bins (cosine and sine of each) for a block. grid (frame tiles, bin tiles, B)
extern "C" __global__ void __launch_bounds__(256, 2) spectrum(const float* __restrict__ signal, const float* __restrict__ cosines,
    const float* __restrict__ sines, float* __restrict__ out, float* mean, int N, int F, int hop, int K, int bins) {
  __shared__ __align__(16) float As[2][BK][BM + 4];
  __shared__ __align__(16) float Bs[2][BK][BM + 4];
  int tid = threadIdx.x, tx = tid & 15, ty = tid >> 4;
  int m0 = blockIdx.x * BM, n0 = blockIdx.y * 64;
  int lr = tid >> 2, lk = (tid & 3) * 4;
  bool vecA = K % 4 == 0 && hop % 4 == 0 && N % 4 == 0, vecB = K % 4 == 0;
  const float* sig = signal + (long long)blockIdx.z * N;
  bool inA0 = m0 + lr < F, inA1 = m0 + lr + 64 < F, inB = n0 + lr < bins;
  const float* pa0 = sig + (inA0 ? (long long)(m0 + lr) * hop : 0);
  const float* pa1 = sig + (inA1 ? (long long)(m0 + lr + 64) * hop : 0);
  const float* pb0 = cosines + (inB ? (long long)(n0 + lr) * K : 0);
  const float* pb1 = sines + (inB ? (long long)(n0 + lr) * K : 0);
  float acc[8][8];
  #pragma unroll
  for (int i = 0; i < 8; ++i)
    #pragma unroll
    for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;
  float4 a0 = ld4(pa0, inA0, lk, K, vecA), a1 = ld4(pa1, inA1, lk, K, vecA);
  float4 b0 = ld4(pb0, inB, lk, K, vecB), b1 = ld4(pb1, inB, lk, K, vecB);
  put(As[0], lk, lr, a0);
  put(As[0], lk, lr + 64, a1);
  put(Bs[0], lk, lr, b0);
  put(Bs[0], lk, lr + 64, b1);
  __syncthreads();
  int buf = 0;
  for (int k0 = 0; k0 < K; k0 += BK) {
    bool more = k0 + BK < K;
    if (more) {
      int k = k0 + BK + lk;
      a0 = ld4(pa0, inA0, k, K, vecA);
      a1 = ld4(pa1, inA1, k, K, vecA);
      b0 = ld4(pb0, inB, k, K, vecB);
      b1 = ld4(pb1, inB, k, K, vecB);
    }
    #pragma unroll
    for (int kk = 0; kk < BK; ++kk) {
      float4 u0 = *(const float4*)&As[buf][kk][ty * 4], u1 = *(const float4*)&As[buf][kk][64 + ty * 4];
      float4 w0 = *(const float4*)&Bs[buf][kk][tx * 4], w1 = *(const float4*)&Bs[buf][kk][64 + tx * 4];
      float av[8] = {u0.x, u0.y, u0.z, u0.w, u1.x, u1.y, u1.z, u1.w};
      float bv[8] = {w0.x, w0.y, w0.z, w0.w, w1.x, w1.y, w1.z, w1.w};
      #pragma unroll
      for (int i = 0; i < 8; ++i)
        #pragma unroll
        for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(av[i], bv[j], acc[i][j]);
    }
    if (more) {
      buf ^= 1;
      put(As[buf], lk, lr, a0);
      put(As[buf], lk, lr + 64, a1);
      put(Bs[buf], lk, lr, b0);
      put(Bs[buf], lk, lr + 64, b1);
      __syncthreads();
    }
  }
  float col[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  #pragma unroll
  for (int i = 0; i < 8; ++i) {
    int m = m0 + (i < 4 ? ty * 4 + i : 60 + ty * 4 + i);
    if (m < F) {
      float* o = out + ((long long)blockIdx.z * F + m) * bins + n0 + tx * 4;
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        float p = fmaf(acc[i][j], acc[i][j], acc[i][4 + j] * acc[i][4 + j]);
        col[j] += p;
        if (n0 + tx * 4 + j < bins) o[j] = 10.0f * log10f(p + 1e-3f);
      }
    }
  }
  __syncthreads();
  float* red = &As[0][0][0];   // 16 x 64
  #pragma unroll
  for (int j = 0; j < 4; ++j) red[ty * 64 + tx * 4 + j] = col[j];
  __syncthreads();
  if (tid < 64 && n0 + tid < bins) {
    float s = 0.0f;
    #pragma unroll
    for (int i = 0; i < 16; ++i) s += red[i * 64 + tid];
    atomicAdd(&mean[(long long)blockIdx.z * bins + n0 + tid], s / (float)F);
  }
}

// The last `bins - first` bins: a warp for each frame, four frames one after another. grid (ceil(F / 32), B), 256 threads
extern "C" __global__ void __launch_bounds__(256) tail(const float* __restrict__ signal, const float* __restrict__ cosines,
    const float* __restrict__ sines, float* __restrict__ out, float* mean, int N, int F, int hop, int K, int bins, int first) {
  __shared__ float part[8];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const float* sig = signal + (long long)blockIdx.y * N;
  for (int bin = first; bin < bins; ++bin) {
    const float* pc = cosines + (long long)bin * K;
    const float* ps = sines + (long long)bin * K;
    float c[4] = {0.0f, 0.0f, 0.0f, 0.0f}, s[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int f0 = blockIdx.x * 32 + warp * 4;
    #pragma unroll 4
    for (int k = lane; k < K; k += 32) {
      float cv = pc[k], sv = ps[k];
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        float x = f0 + i < F ? sig[(long long)(f0 + i) * hop + k] : 0.0f;
        c[i] = fmaf(x, cv, c[i]);
        s[i] = fmaf(x, sv, s[i]);
      }
    }
    float sum = 0.0f;
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      #pragma unroll
      for (int o = 16; o; o >>= 1) {
        c[i] += __shfl_xor_sync(0xffffffffu, c[i], o);
        s[i] += __shfl_xor_sync(0xffffffffu, s[i], o);
      }
      float p = fmaf(c[i], c[i], s[i] * s[i]);
      if (f0 + i < F) {
        sum += p;
        if (lane == 0) out[((long long)blockIdx.y * F + f0 + i) * bins + bin] = 10.0f * log10f(p + 1e-3f);
      }
    }
    if (lane == 0) part[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      float t = 0.0f;
      #pragma unroll
      for (int i = 0; i < 8; ++i) t += part[i];
      atomicAdd(&mean[(long long)blockIdx.y * bins + bin], t / (float)F);
    }
    __syncthreads();
  }
}
'''
lib = nvrtc.compile(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, frame, hop):
        super().__init__()
        self.hop = hop
        pi = 3.141592653589793
        n = torch.arange(frame)
        turns = (torch.arange(frame // 2 + 1)[:, None] * n) % frame * (2 * pi / frame)
        window = 0.5 - 0.5 * torch.cos(2 * pi * n / frame)
        self.register_buffer("cosines", torch.cos(turns) * window)
        self.register_buffer("sines", torch.sin(turns) * window)

    def forward(self, signal):
        B, N = signal.shape
        bins, K = self.cosines.shape
        hop = self.hop
        F = (N - K) // hop + 1
        out = torch.empty((B, F, bins), dtype=signal.dtype, device=signal.device)
        mean = torch.zeros((B, bins), dtype=signal.dtype, device=signal.device)
        tiles, rest = divmod(bins, 64)
        if rest and (tiles == 0 or rest > 4):
            tiles, rest = tiles + 1, 0
        lib.spectrum((-(-F // 128), tiles, B), 256, signal, self.cosines, self.sines, out, mean, N, F, hop, K, bins)
        if rest:
            lib.tail((-(-F // 32), B), 256, signal, self.cosines, self.sines, out, mean, N, F, hop, K, bins, bins - rest)
        return out, mean
