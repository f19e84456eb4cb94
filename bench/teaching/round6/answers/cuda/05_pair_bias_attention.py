import torch
from tegula_eval import nvrtc

SOURCE = r'''
// 4 warps of 16 queries each, keys in tiles of 32. A lane has 4 queries (hq + 4 i) x 4 keys (kq + 8 j), later 4 queries x 4 dimensions.
#define LD (DC * 32 + 4)
#define PLD 40

__device__ __forceinline__ unsigned saddr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// rows r0 .. of a matrix with `stride` between rows, zeros beyond S rows and HEAD columns
__device__ __forceinline__ void load_tile(float* dst, const float* src, long long stride, int r0, int rows, int S) {
#if VEC
  for (int i = threadIdx.x; i < rows * (DC * 8); i += 128) {
    int r = i / (DC * 8), c = (i % (DC * 8)) * 4;
    bool ok = r0 + r < S && c < HEAD;
    const float* p = ok ? src + (r0 + r) * stride + c : src;
    int bytes = ok ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" :: "r"(saddr(dst + r * LD + c)), "l"(p), "r"(bytes) : "memory");
  }
#else
  for (int i = threadIdx.x; i < rows * (DC * 32); i += 128) {
    int r = i / (DC * 32), c = i % (DC * 32);
    bool ok = r0 + r < S && c < HEAD;
    const float* p = ok ? src + (r0 + r) * stride + c : src;
    int bytes = ok ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" :: "r"(saddr(dst + r * LD + c)), "l"(p), "r"(bytes) : "memory");
  }
#endif
}

extern "C" __global__ void pair_attention(const float* q, const float* k, const float* v, const float* gate, const float* bias,
                                          const unsigned char* mask, float* out, int S, int H, float scale) {
  extern __shared__ __align__(16) float smem[];
  float* Qs = smem;                    // [64][LD]
  float* Ks = Qs + 64 * LD;            // [2][32][LD]
  float* Vs = Ks + 2 * 32 * LD;        // [2][32][LD]
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  float* Ps = Vs + 2 * 32 * LD + warp * 16 * PLD;   // [16][PLD] for each warp
  int q0 = blockIdx.x * 64, h = blockIdx.y, r = blockIdx.z;
  int hq = lane >> 3, kq = lane & 7;
  long long stride = (long long)H * HEAD;
  long long base = (long long)r * S * stride + (long long)h * HEAD;
  const unsigned char* mrow = mask + (long long)r * S;
  const float* bh = bias + (long long)h * S * S;
  q += base; k += base; v += base; gate += base; out += base;

  load_tile(Qs, q, stride, q0, 64, S);
  load_tile(Ks, k, stride, 0, 32, S);
  load_tile(Vs, v, stride, 0, 32, S);
  asm volatile("cp.async.commit_group;\n" ::: "memory");

  float o[DC][4][4], m[4], l[4];
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    m[i] = -1e30f;
    l[i] = 0.0f;
    #pragma unroll
    for (int dc = 0; dc < DC; ++dc)
      for (int j = 0; j < 4; ++j) o[dc][i][j] = 0.0f;
  }
  int tiles = (S + 31) / 32;
  int wrow = q0 + warp * 16;
  for (int t = 0; t < tiles; ++t) {
    int buf = t & 1, k0 = t * 32;
    if (t + 1 < tiles) {
      load_tile(Ks + (buf ^ 1) * 32 * LD, k, stride, k0 + 32, 32, S);
      load_tile(Vs + (buf ^ 1) * 32 * LD, v, stride, k0 + 32, 32, S);
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
    float bb[4][4];
    bool in[4], see[4];
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      int key = k0 + j * 8 + kq;
      in[j] = key < S;
      see[j] = in[j] ? mrow[key] != 0 : false;
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        int row = wrow + i * 4 + hq;
        bb[i][j] = (in[j] && row < S) ? bh[(long long)row * S + key] : 0.0f;
      }
    }
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");
    __syncthreads();
    const float* Qw = Qs + (warp * 16 + hq) * LD;
    const float* K = Ks + buf * 32 * LD + kq * LD;
    const float* V = Vs + buf * 32 * LD + kq * 4;
    float s[4][4];
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) s[i][j] = 0.0f;
    #pragma unroll 4
    for (int c = 0; c < (HEAD + 3) / 4; ++c) {
      float4 a[4], b[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = *(const float4*)(Qw + i * 4 * LD + c * 4);
      #pragma unroll
      for (int j = 0; j < 4; ++j) b[j] = *(const float4*)(K + j * 8 * LD + c * 4);
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
          s[i][j] += a[i].x * b[j].x;
          s[i][j] += a[i].y * b[j].y;
          s[i][j] += a[i].z * b[j].z;
          s[i][j] += a[i].w * b[j].w;
        }
      }
    }
    float mx[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      mx[i] = m[i];
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        float x = see[j] ? s[i][j] * scale + bb[i][j] : -1e9f;
        s[i][j] = in[j] ? x : -1e30f;
        mx[i] = fmaxf(mx[i], s[i][j]);
      }
    }
    #pragma unroll
    for (int d = 1; d < 8; d <<= 1) {
      #pragma unroll
      for (int i = 0; i < 4; ++i) mx[i] = fmaxf(mx[i], __shfl_xor_sync(0xffffffffu, mx[i], d));
    }
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      float corr = __expf(m[i] - mx[i]);
      m[i] = mx[i];
      l[i] *= corr;
      #pragma unroll
      for (int dc = 0; dc < DC; ++dc) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) o[dc][i][j] *= corr;
      }
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        float p = in[j] ? __expf(s[i][j] - m[i]) : 0.0f;
        l[i] += p;
        Ps[(i * 4 + hq) * PLD + j * 8 + kq] = p;
      }
    }
    __syncwarp();
    #pragma unroll 4
    for (int c = 0; c < 8; ++c) {
      float p[4][4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        float4 x = *(const float4*)(Ps + (i * 4 + hq) * PLD + c * 4);
        p[i][0] = x.x; p[i][1] = x.y; p[i][2] = x.z; p[i][3] = x.w;
      }
      #pragma unroll
      for (int kk = 0; kk < 4; ++kk) {
        #pragma unroll
        for (int dc = 0; dc < DC; ++dc) {
          float4 x = *(const float4*)(V + (c * 4 + kk) * LD + dc * 32);
          #pragma unroll
          for (int i = 0; i < 4; ++i) {
            o[dc][i][0] += p[i][kk] * x.x;
            o[dc][i][1] += p[i][kk] * x.y;
            o[dc][i][2] += p[i][kk] * x.z;
            o[dc][i][3] += p[i][kk] * x.w;
          }
        }
      }
    }
    __syncthreads();
  }
  #pragma unroll
  for (int d = 1; d < 8; d <<= 1) {
    #pragma unroll
    for (int i = 0; i < 4; ++i) l[i] += __shfl_xor_sync(0xffffffffu, l[i], d);
  }
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    int row = wrow + i * 4 + hq;
    if (row < S) {
      float inv = 1.0f / l[i];
      #pragma unroll
      for (int dc = 0; dc < DC; ++dc) {
        int d = dc * 32 + kq * 4;
        long long at = row * stride + d;
#if VEC
        if (d < HEAD) {
          float4 g = *(const float4*)(gate + at);
          float4 y;
          y.x = o[dc][i][0] * inv / (1.0f + expf(-g.x));
          y.y = o[dc][i][1] * inv / (1.0f + expf(-g.y));
          y.z = o[dc][i][2] * inv / (1.0f + expf(-g.z));
          y.w = o[dc][i][3] * inv / (1.0f + expf(-g.w));
          *(float4*)(out + at) = y;
        }
#else
        #pragma unroll
        for (int e = 0; e < 4; ++e)
          if (d + e < HEAD) out[at + e] = o[dc][i][e] * inv / (1.0f + expf(-gate[at + e]));
#endif
      }
    }
  }
}
'''

_libs = {}


def _lib(D):
    if D not in _libs:
        DC = -(-D // 32)
        head = f"#define HEAD {D}\n#define DC {DC}\n#define VEC {1 if D % 4 == 0 else 0}\n"
        _libs[D] = (nvrtc.compile(head + SOURCE), DC * 32 + 4)
    return _libs[D]


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v, gate, bias, mask):
        R, S, H, D = q.shape
        lib, ld = _lib(D)
        out = torch.empty((R, S, H * D), dtype=torch.float32, device=q.device)
        shared = ((64 + 4 * 32) * ld + 4 * 16 * 40) * 4
        lib.pair_attention((-(-S // 64), H, R), 128, q, k, v, gate, bias, mask, out, S, H, D ** -0.5, shared=shared)
        return out
