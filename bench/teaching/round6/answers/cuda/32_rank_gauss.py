import torch
from tegula_eval import nvrtc

SOURCE = r'''
// N columns, THREADS, BINS (a multiple of THREADS), VECTORS = ceil(N / (4 * THREADS))
#define ITEMS (4 * VECTORS)
#define WARPS (THREADS / 32)
#define PER (BINS / THREADS)
#define FULL 0xffffffffu

__device__ __forceinline__ int ordered(float f) { int i = __float_as_int(f); return i ^ ((i >> 31) & 0x7fffffff); }
__device__ __forceinline__ float unordered(int i) { return __int_as_float(i ^ ((i >> 31) & 0x7fffffff)); }

// A block for each row: numbers go to equal intervals between the least and the largest; the rank is what lies in lower
// intervals and what is less in the own one.
extern "C" __global__ void __launch_bounds__(THREADS) gauss(const float* __restrict__ in, float* __restrict__ out) {
  extern __shared__ int sm[];
  int* base = sm;                            // BINS + 4
  float* sorted = (float*)(sm + BINS + 4);   // N
  __shared__ int wlo[32], whi[32], wsum[32];
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const float* p = in + (long long)blockIdx.x * N;
  float* o = out + (long long)blockIdx.x * N;
  float x[ITEMS];
  float lo = __int_as_float(0x7f800000), hi = -lo;
  #pragma unroll
  for (int j = 0; j < VECTORS; ++j) {
    int col = (j * THREADS + tid) * 4;
#if N % 4 == 0
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (col < N) v = *(const float4*)(p + col);
    x[4 * j] = v.x; x[4 * j + 1] = v.y; x[4 * j + 2] = v.z; x[4 * j + 3] = v.w;
#else
    #pragma unroll
    for (int q = 0; q < 4; ++q) x[4 * j + q] = col + q < N ? p[col + q] : 0.0f;
#endif
    #pragma unroll
    for (int q = 0; q < 4; ++q)
      if (col + q < N) { lo = fminf(lo, x[4 * j + q]); hi = fmaxf(hi, x[4 * j + q]); }
  }
  for (int i = tid; i < BINS; i += THREADS) base[i] = 0;
  int ilo = __reduce_min_sync(FULL, ordered(lo)), ihi = __reduce_max_sync(FULL, ordered(hi));
  if (lane == 0) { wlo[warp] = ilo; whi[warp] = ihi; }
  __syncthreads();
  ilo = __reduce_min_sync(FULL, wlo[lane < WARPS ? lane : 0]);
  ihi = __reduce_max_sync(FULL, whi[lane < WARPS ? lane : 0]);
  lo = unordered(ilo);
  hi = unordered(ihi);
  float scale = (float)BINS / (hi - lo);
  int bin[ITEMS], pos[ITEMS];
  #pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    int col = ((i >> 2) * THREADS + tid) * 4 + (i & 3);
    bin[i] = 0;
    pos[i] = 0;
    if (col < N) {
      int b = (int)((x[i] - lo) * scale);
      b = max(0, min(BINS - 1, b));
      bin[i] = b;
      pos[i] = atomicAdd(&base[b], 1);
    }
  }
  __syncthreads();
  int c[PER], sum = 0;
  #pragma unroll
  for (int i = 0; i < PER; ++i) { c[i] = base[tid * PER + i]; sum += c[i]; }
  int inc = sum;
  #pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    int u = __shfl_up_sync(FULL, inc, d);
    if (lane >= d) inc += u;
  }
  if (lane == 31) wsum[warp] = inc;
  __syncthreads();
  int before = __reduce_add_sync(FULL, lane < warp ? wsum[lane] : 0);
  int run = before + inc - sum;
  #pragma unroll
  for (int i = 0; i < PER; ++i) { base[tid * PER + i] = run; run += c[i]; }
  if (tid == 0) base[BINS] = N;
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    int col = ((i >> 2) * THREADS + tid) * 4 + (i & 3);
    if (col < N) sorted[base[bin[i]] + pos[i]] = x[i];
  }
  __syncthreads();
  #pragma unroll
  for (int j = 0; j < VECTORS; ++j) {
    int col = (j * THREADS + tid) * 4;
    float y[4];
    #pragma unroll
    for (int q = 0; q < 4; ++q) {
      int i = 4 * j + q;
      y[q] = 0.0f;
      if (col + q < N) {
        int s = base[bin[i]], e = base[bin[i] + 1];
        int twice = 2 * s;
        float v = x[i];
        for (int t = s; t < e; ++t) {
          float u = sorted[t];
          twice += (u < v ? 1 : 0) + (u <= v ? 1 : 0);
        }
        y[q] = erfinvf((float)(twice - N) / (float)N) * 1.41421356237f;
      }
    }
#if N % 4 == 0
    if (col < N) *(float4*)(o + col) = make_float4(y[0], y[1], y[2], y[3]);
#else
    #pragma unroll
    for (int q = 0; q < 4; ++q)
      if (col + q < N) o[col + q] = y[q];
#endif
  }
}
'''

BRUTE = r'''
// any length: every number is compared with all of its row. grid (ceil(N / 256), rows)
extern "C" __global__ void gauss(const float* in, float* out, int N) {
  __shared__ float tile[256];
  const float* p = in + (long long)blockIdx.y * N;
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = i < N ? p[i] : 0.0f;
  int twice = 0;
  for (int k = 0; k < N; k += 256) {
    __syncthreads();
    if (k + (int)threadIdx.x < N) tile[threadIdx.x] = p[k + threadIdx.x];
    __syncthreads();
    int n = min(256, N - k);
    for (int t = 0; t < n; ++t) twice += (tile[t] < v ? 1 : 0) + (tile[t] <= v ? 1 : 0);
  }
  if (i < N) out[(long long)blockIdx.y * N + i] = erfinvf((float)(twice - N) / (float)N) * 1.41421356237f;
}
'''
libs = {}


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        rows, N = x.shape
        out = torch.empty_like(x)
        if N > 24576:
            if 0 not in libs:
                libs[0] = nvrtc.compile(BRUTE)
            libs[0].gauss((-(-N // 256), rows), 256, x, out, N)
            return out
        threads = 256 if N <= 4096 else 1024
        bins = threads
        while bins < N:
            bins *= 2
        bins = min(bins, 16384)
        if N not in libs:
            libs[N] = nvrtc.compile("#define N %d\n#define THREADS %d\n#define BINS %d\n#define VECTORS %d\n"
                                    % (N, threads, bins, -(-N // (4 * threads))) + SOURCE)
        libs[N].gauss(rows, threads, x, out, shared=(bins + 4 + N) * 4)
        return out
