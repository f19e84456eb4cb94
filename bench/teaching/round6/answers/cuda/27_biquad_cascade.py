import torch
from tegula_eval import nvrtc

SOURCE = r'''
#define NS (SECTIONS > 0 ? SECTIONS : 1)
#define STEP 16
extern "C" __global__ void __launch_bounds__(64) biquad(const float* __restrict__ x, const float* __restrict__ b,
    const float* __restrict__ a1, const float* __restrict__ a2, float* __restrict__ out, float* __restrict__ level,
    int T, long long n, int C) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  int c = (int)(i % C);
  float b0[NS], b1[NS], b2[NS], c1[NS], c2[NS];
  #pragma unroll
  for (int s = 0; s < SECTIONS; ++s) {
    b0[s] = b[(long long)(s * 3) * C + c];
    b1[s] = b[(long long)(s * 3 + 1) * C + c];
    b2[s] = b[(long long)(s * 3 + 2) * C + c];
    c1[s] = a1[(long long)s * C + c];
    c2[s] = a2[(long long)s * C + c];
  }
  float p1[SECTIONS + 1], p2[SECTIONS + 1];
  #pragma unroll
  for (int s = 0; s <= SECTIONS; ++s) p1[s] = p2[s] = 0.0f;
  const float* px = x + i;
  float* po = out + i;
  float cur[STEP], nxt[STEP];
  #pragma unroll
  for (int k = 0; k < STEP; ++k) nxt[k] = k < T ? __ldcs(px + (long long)k * n) : 0.0f;
  float total = 0.0f;
  for (int t0 = 0; t0 < T; t0 += STEP) {
    #pragma unroll
    for (int k = 0; k < STEP; ++k) cur[k] = nxt[k];
    if (t0 + STEP < T) {
      #pragma unroll
      for (int k = 0; k < STEP; ++k) {
        int t = t0 + STEP + k;
        nxt[k] = t < T ? __ldcs(px + (long long)t * n) : 0.0f;
      }
    }
    float sum = 0.0f;
    #pragma unroll
    for (int k = 0; k < STEP; ++k) {
      if (t0 + k < T) {
        float v = cur[k];
        #pragma unroll
        for (int s = 0; s < SECTIONS; ++s) {
          float y = fmaf(b0[s], v, fmaf(b1[s], p1[s], b2[s] * p2[s]));
          y = fmaf(-c2[s], p2[s + 1], y);
          y = fmaf(-c1[s], p1[s + 1], y);
          p2[s] = p1[s];
          p1[s] = v;
          v = y;
        }
        p2[SECTIONS] = p1[SECTIONS];
        p1[SECTIONS] = v;
        __stcs(po + (long long)(t0 + k) * n, v);
        sum = fmaf(v, v, sum);
      }
    }
    total += sum;
  }
  level[i] = sqrtf(total / (float)T);
}
'''
libs = {}


class ModelNew(torch.nn.Module):
    def __init__(self, sections, channels):
        super().__init__()
        self.b = torch.nn.Parameter(torch.rand(sections, 3, channels) * 0.5)
        radius, angle = 0.5 + 0.4 * torch.rand(sections, channels), 3 * torch.rand(sections, channels)
        self.register_buffer("a1", -2 * radius * torch.cos(angle))
        self.register_buffer("a2", radius ** 2)

    def forward(self, x):
        T, B, C = x.shape
        sections = self.a1.shape[0]
        if sections not in libs:
            libs[sections] = nvrtc.compile("#define SECTIONS %d\n" % sections + SOURCE)
        out = torch.empty_like(x)
        level = torch.empty((B, C), dtype=x.dtype, device=x.device)
        n = B * C
        libs[sections].biquad(-(-n // 64), 64, x, self.b, self.a1, self.a2, out, level, T, n, C)
        return out, level
