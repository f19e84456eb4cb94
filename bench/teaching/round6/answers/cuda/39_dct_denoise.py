import torch
from tegula_eval import nvrtc

EIGHT = r'''
// Blocks of 8 x 8: a warp has four tiles side by side, a lane a column, and for the other direction a row of one.
#define PITCH 36
__device__ __forceinline__ float soft(float c, float threshold) {
  float m = fmaxf(fabsf(c) - threshold, 0.0f);
  return c > 0.0f ? m : (c < 0.0f ? -m : 0.0f);
}

extern "C" __global__ void __launch_bounds__(128, 4) denoise(const float* __restrict__ image, const float* __restrict__ basis,
    float* __restrict__ out, int H, int W, int groups, int tasks, float threshold) {
  __shared__ __align__(16) float sm[4][8 * PITCH];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float* buf = sm[warp];
  float d[8][8];
  #pragma unroll
  for (int i = 0; i < 8; ++i)
    #pragma unroll
    for (int j = 0; j < 8; ++j) d[i][j] = basis[i * 8 + j];
  int tile = lane >> 3, r = lane & 7;
  float* mine = buf + r * PITCH + tile * 8;
  int step = gridDim.x * 4;
  int task = blockIdx.x * 4 + warp;
  float nx[8];
  long long noff = 0;
  bool nin = false;
  auto load = [&](int t) {
    // rows of all images follow one another: t / groups is a row of tiles of them all
    int band = t / groups, g = t - band * groups;
    int x = g * 32 + lane;
    nin = x < W;
    noff = (long long)band * 8 * W + x;
    #pragma unroll
    for (int i = 0; i < 8; ++i) nx[i] = nin ? __ldcs(image + noff + (long long)i * W) : 0.0f;
  };
  if (task < tasks) load(task);
  for (; task < tasks; task += step) {
    float x[8], y[8];
    #pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = nx[i];
    long long off = noff;
    bool in = nin;
    if (task + step < tasks) load(task + step);
    // columns
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      float s = d[i][0] * x[0];
      #pragma unroll
      for (int n = 1; n < 8; ++n) s = fmaf(d[i][n], x[n], s);
      buf[i * PITCH + lane] = s;
    }
    __syncwarp();
    // rows, there and back
    float4 u = *(const float4*)mine, v = *(const float4*)(mine + 4);
    x[0] = u.x; x[1] = u.y; x[2] = u.z; x[3] = u.w;
    x[4] = v.x; x[5] = v.y; x[6] = v.z; x[7] = v.w;
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
      float s = d[j][0] * x[0];
      #pragma unroll
      for (int n = 1; n < 8; ++n) s = fmaf(d[j][n], x[n], s);
      float t = soft(s, threshold);
      y[j] = (j == 0 && r == 0) ? s : t;
    }
    #pragma unroll
    for (int n = 0; n < 8; ++n) {
      float s = d[0][n] * y[0];
      #pragma unroll
      for (int j = 1; j < 8; ++j) s = fmaf(d[j][n], y[j], s);
      x[n] = s;
    }
    *(float4*)mine = make_float4(x[0], x[1], x[2], x[3]);
    *(float4*)(mine + 4) = make_float4(x[4], x[5], x[6], x[7]);
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < 8; ++i) y[i] = buf[i * PITCH + lane];
    __syncwarp();
    #pragma unroll
    for (int n = 0; n < 8; ++n) {
      float s = d[0][n] * y[0];
      #pragma unroll
      for (int i = 1; i < 8; ++i) s = fmaf(d[i][n], y[i], s);
      if (in) __stcs(out + off + (long long)n * W, s);
    }
  }
}
'''

ANY = r'''
__device__ __forceinline__ float soft(float c, float threshold) {
  float m = fmaxf(fabsf(c) - threshold, 0.0f);
  return c > 0.0f ? m : (c < 0.0f ? -m : 0.0f);
}
// Blocks of S x S: COUNT tiles at once for each thread block, all in shared memory.
#define AREA (S * S)
extern "C" __global__ void __launch_bounds__(256) denoise(const float* __restrict__ image, const float* __restrict__ basis,
    float* __restrict__ out, int W, int across, long long tiles, float threshold) {
  extern __shared__ float sm[];
  float* d = sm;                    // [S][S]
  float* a = sm + AREA;             // [COUNT][S][S]
  float* b = a + COUNT * AREA;
  for (int i = threadIdx.x; i < AREA; i += 256) d[i] = basis[i];
  for (long long t0 = (long long)blockIdx.x * COUNT; t0 < tiles; t0 += (long long)gridDim.x * COUNT) {
    __syncthreads();
    for (int e = threadIdx.x; e < COUNT * AREA; e += 256) {
      int x = e % S, t = (e / S) % COUNT, y = e / (S * COUNT);
      long long tile = t0 + t, band = tile / across, g = tile - band * across;
      a[t * AREA + y * S + x] = tile < tiles ? image[(band * S + y) * W + g * S + x] : 0.0f;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < COUNT * AREA; e += 256) {   // b = d a
      int x = e % S, y = (e / S) % S, t = e / AREA;
      float s = 0.0f;
      for (int n = 0; n < S; ++n) s = fmaf(d[y * S + n], a[t * AREA + n * S + x], s);
      b[e] = s;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < COUNT * AREA; e += 256) {   // a = b d^T, shrunk
      int x = e % S, y = (e / S) % S, t = e / AREA;
      float s = 0.0f;
      for (int n = 0; n < S; ++n) s = fmaf(d[x * S + n], b[t * AREA + y * S + n], s);
      a[e] = x == 0 && y == 0 ? s : soft(s, threshold);
    }
    __syncthreads();
    for (int e = threadIdx.x; e < COUNT * AREA; e += 256) {   // b = d^T a
      int x = e % S, y = (e / S) % S, t = e / AREA;
      float s = 0.0f;
      for (int n = 0; n < S; ++n) s = fmaf(d[n * S + y], a[t * AREA + n * S + x], s);
      b[e] = s;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < COUNT * AREA; e += 256) {   // b d
      int x = e % S, t = (e / S) % COUNT, y = e / (S * COUNT);
      long long tile = t0 + t, band = tile / across, g = tile - band * across;
      if (tile < tiles) {
        float s = 0.0f;
        for (int n = 0; n < S; ++n) s = fmaf(d[n * S + x], b[t * AREA + y * S + n], s);
        out[(band * S + y) * W + g * S + x] = s;
      }
    }
  }
}
'''
libs = {}


class ModelNew(torch.nn.Module):
    def __init__(self, block, threshold):
        super().__init__()
        pi = 3.141592653589793
        n = torch.arange(block)
        basis = torch.cos(pi / block * (n[None, :] + 0.5) * n[:, None]) * (2 / block) ** 0.5
        basis[0] *= 0.5 ** 0.5
        self.register_buffer("basis", basis)
        self.block = block
        self.threshold = threshold

    def forward(self, image):
        B, H, W = image.shape
        s = self.block
        out = torch.empty_like(image)
        if s == 8:
            if 8 not in libs:
                libs[8] = nvrtc.compile(EIGHT)
            groups = -(-W // 32)
            tasks = B * (H // 8) * groups
            blocks = max(1, min(-(-tasks // 4), 132 * 4))
            libs[8].denoise(blocks, 128, image, self.basis, out, H, W, groups, tasks, float(self.threshold))
            return out
        count = max(1, 1024 // (s * s))
        if s not in libs:
            libs[s] = nvrtc.compile("#define S %d\n#define COUNT %d\n" % (s, count) + ANY)
        across = W // s
        tiles = B * (H // s) * across
        blocks = max(1, min(-(-tiles // count), 132 * 8))
        libs[s].denoise(blocks, 256, image, self.basis, out, W, across, tiles, float(self.threshold),
                        shared=(s * s + 2 * count * s * s) * 4)
        return out
