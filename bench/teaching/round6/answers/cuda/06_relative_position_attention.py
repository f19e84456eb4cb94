import torch
from tegula_eval import nvrtc

SOURCE = r'''
// NW warps of 16 queries each, keys in tiles of 32. A lane has 4 queries (hq + 4 i) x 4 keys (kq + 8 j), later 4 queries x 4 dimensions.
// band[row][c]: first q . key_positions[c]; for the inner offsets, which one key has, replaced by that key's score, at last by its weight.
#define LD (DC * 32 + 4)
#define PLD 40
#define THREADS (NW * 32)
#define ROWS (NW * 16)

__device__ __forceinline__ unsigned saddr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void load_tile(float* dst, const float* src, int r0, int rows, int S) {
#if VEC
  for (int i = threadIdx.x; i < rows * (DC * 8); i += THREADS) {
    int r = i / (DC * 8), c = (i % (DC * 8)) * 4;
    bool ok = r0 + r < S && c < HEAD;
    const float* p = ok ? src + (long long)(r0 + r) * HEAD + c : src;
    int bytes = ok ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" :: "r"(saddr(dst + r * LD + c)), "l"(p), "r"(bytes) : "memory");
  }
#else
  for (int i = threadIdx.x; i < rows * (DC * 32); i += THREADS) {
    int r = i / (DC * 32), c = i % (DC * 32);
    bool ok = r0 + r < S && c < HEAD;
    const float* p = ok ? src + (long long)(r0 + r) * HEAD + c : src;
    int bytes = ok ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" :: "r"(saddr(dst + r * LD + c)), "l"(p), "r"(bytes) : "memory");
  }
#endif
}

extern "C" __global__ void relative_attention(const float* q, const float* k, const float* v, const float* kpos, const float* vpos,
                                              float* out, int S, int L, float scale) {
  extern __shared__ __align__(16) float smem[];
  float* Qs = smem;                    // [ROWS][LD]
  float* Ks = Qs + ROWS * LD;          // [2][32][LD]
  float* Vs = Ks + 2 * 32 * LD;        // [2][32][LD]
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  float* Ps = Vs + 2 * 32 * LD + warp * 16 * PLD;
  int NC = 2 * L + 1;
  float* band = Vs + 2 * 32 * LD + NW * 16 * PLD + warp * 16 * NC;   // [16][NC] for each warp
  int q0 = blockIdx.x * ROWS;
  int hq = lane >> 3, kq = lane & 7;
  long long base = (long long)blockIdx.y * S * HEAD;
  q += base; k += base; v += base; out += base;

  load_tile(Qs, q, q0, ROWS, S);
  for (int c0 = 0; c0 < NC; c0 += 64) {
    load_tile(Ks, kpos, c0, 64, NC);
    asm volatile("cp.async.commit_group;\n" ::: "memory");
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    __syncthreads();
    for (int pass = 0; pass < 2; ++pass) {
      if (c0 + pass * 32 < NC) {
        float a[16];
        #pragma unroll
        for (int i = 0; i < 16; ++i) a[i] = 0.0f;
        for (int c = 0; c < (HEAD + 3) / 4; ++c) {
          float4 x = *(const float4*)(Ks + (pass * 32 + lane) * LD + c * 4);
          #pragma unroll
          for (int i = 0; i < 16; ++i) {
            float4 y = *(const float4*)(Qs + (warp * 16 + i) * LD + c * 4);
            a[i] += x.x * y.x;
            a[i] += x.y * y.y;
            a[i] += x.z * y.z;
            a[i] += x.w * y.w;
          }
        }
        int col = c0 + pass * 32 + lane;
        if (col < NC) {
          #pragma unroll
          for (int i = 0; i < 16; ++i) band[i * NC + col] = a[i];
        }
      }
    }
    __syncthreads();
  }

  load_tile(Ks, k, 0, 32, S);
  load_tile(Vs, v, 0, 32, S);
  asm volatile("cp.async.commit_group;\n" ::: "memory");

  float o[DC][4][4], m[4], l[4], pl[4], pr[4], ql[4], qr[4];
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    m[i] = -1e30f;
    l[i] = pl[i] = pr[i] = 0.0f;
    ql[i] = band[(i * 4 + hq) * NC];
    qr[i] = band[(i * 4 + hq) * NC + NC - 1];
    #pragma unroll
    for (int dc = 0; dc < DC; ++dc)
      for (int j = 0; j < 4; ++j) o[dc][i][j] = 0.0f;
  }
  __syncwarp();
  int tiles = (S + 31) / 32;
  int wrow = q0 + warp * 16;
  for (int t = 0; t < tiles; ++t) {
    int buf = t & 1, k0 = t * 32;
    if (t + 1 < tiles) {
      load_tile(Ks + (buf ^ 1) * 32 * LD, k, k0 + 32, 32, S);
      load_tile(Vs + (buf ^ 1) * 32 * LD, v, k0 + 32, 32, S);
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
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
    bool left = k0 + 31 - wrow <= -L;             // the whole tile has the first offset
    bool right = !left && k0 - (wrow + 15) >= L;  // or the last one
    if (left || right) {
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        float e = left ? ql[i] : qr[i];
        #pragma unroll
        for (int j = 0; j < 4; ++j) s[i][j] = (s[i][j] + e) * scale;
      }
    } else {
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
          int key = k0 + j * 8 + kq, rel = key - (wrow + i * 4 + hq);
          if (rel <= -L) {
            s[i][j] = (s[i][j] + ql[i]) * scale;
          } else if (rel >= L) {
            s[i][j] = (s[i][j] + qr[i]) * scale;
          } else {
            float* p = band + (i * 4 + hq) * NC + rel + L;
            s[i][j] = (s[i][j] + *p) * scale;
            *p = s[i][j];
          }
        }
      }
    }
    float mx[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      mx[i] = m[i];
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (k0 + j * 8 + kq >= S) s[i][j] = -1e30f;
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
      pl[i] *= corr;
      pr[i] *= corr;
      #pragma unroll
      for (int dc = 0; dc < DC; ++dc) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) o[dc][i][j] *= corr;
      }
      float sum = 0.0f;
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        float p = k0 + j * 8 + kq < S ? __expf(s[i][j] - m[i]) : 0.0f;
        s[i][j] = p;
        sum += p;
        Ps[(i * 4 + hq) * PLD + j * 8 + kq] = p;
      }
      l[i] += sum;
      if (left) {
        pl[i] += sum;
      } else if (right) {
        pr[i] += sum;
      } else {
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
          int rel = k0 + j * 8 + kq - (wrow + i * 4 + hq);
          if (rel <= -L) pl[i] += s[i][j];
          else if (rel >= L) pr[i] += s[i][j];
        }
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
    for (int i = 0; i < 4; ++i) {
      l[i] += __shfl_xor_sync(0xffffffffu, l[i], d);
      pl[i] += __shfl_xor_sync(0xffffffffu, pl[i], d);
      pr[i] += __shfl_xor_sync(0xffffffffu, pr[i], d);
    }
  }
  __syncwarp();
  if (kq == 0) {
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      Ps[i * 4 + hq] = m[i];
      if (NC == 1) {
        band[(i * 4 + hq)] = pl[i] + pr[i];
      } else {
        band[(i * 4 + hq) * NC] = pl[i];
        band[(i * 4 + hq) * NC + NC - 1] = pr[i];
      }
    }
  }
  __syncwarp();
  for (int idx = lane; idx < 16 * NC; idx += 32) {
    int row = idx / NC, c = idx - row * NC;
    if (c > 0 && c < NC - 1) {
      int key = wrow + row + c - L;
      band[idx] = (key >= 0 && key < S) ? __expf(band[idx] - Ps[row]) : 0.0f;
    }
  }
  __syncwarp();
  #pragma unroll 2
  for (int c = 0; c < NC; ++c) {
    float w[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = band[(i * 4 + hq) * NC + c];
    #pragma unroll
    for (int dc = 0; dc < DC; ++dc) {
      int d = dc * 32 + kq * 4;
      float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      const float* p = vpos + (long long)c * HEAD + d;
#if VEC
      if (d < HEAD) x = *(const float4*)p;
#else
      if (d < HEAD) x.x = p[0];
      if (d + 1 < HEAD) x.y = p[1];
      if (d + 2 < HEAD) x.z = p[2];
      if (d + 3 < HEAD) x.w = p[3];
#endif
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        o[dc][i][0] += w[i] * x.x;
        o[dc][i][1] += w[i] * x.y;
        o[dc][i][2] += w[i] * x.z;
        o[dc][i][3] += w[i] * x.w;
      }
    }
  }
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    int row = wrow + i * 4 + hq;
    if (row < S) {
      float inv = 1.0f / l[i];
      #pragma unroll
      for (int dc = 0; dc < DC; ++dc) {
        int d = dc * 32 + kq * 4;
        float* p = out + (long long)row * HEAD + d;
#if VEC
        if (d < HEAD) *(float4*)p = make_float4(o[dc][i][0] * inv, o[dc][i][1] * inv, o[dc][i][2] * inv, o[dc][i][3] * inv);
#else
        #pragma unroll
        for (int e = 0; e < 4; ++e)
          if (d + e < HEAD) p[e] = o[dc][i][e] * inv;
#endif
      }
    }
  }
}
'''

_libs = {}


def _lib(D, L):
    key = (D, L)
    if key not in _libs:
        DC = -(-D // 32)
        ld = DC * 32 + 4
        for nw in (4, 2, 1):
            shared = (nw * 16 * ld + 128 * ld + nw * 16 * 40 + nw * 16 * (2 * L + 1)) * 4
            if shared <= 232448:
                break
        head = f"#define HEAD {D}\n#define DC {DC}\n#define NW {nw}\n#define VEC {1 if D % 4 == 0 else 0}\n"
        _libs[key] = (nvrtc.compile(head + SOURCE), nw, shared)
    return _libs[key]


class ModelNew(torch.nn.Module):
    def __init__(self, head_dim, max_distance):
        super().__init__()
        self.max_distance = max_distance
        self.key_positions = torch.nn.Parameter(torch.randn(2 * max_distance + 1, head_dim) * 0.2)
        self.value_positions = torch.nn.Parameter(torch.randn(2 * max_distance + 1, head_dim) * 0.2)

    def forward(self, q, k, v):
        B, H, S, D = q.shape
        lib, nw, shared = _lib(D, self.max_distance)
        out = torch.empty_like(q)
        lib.relative_attention((-(-S // (nw * 16)), B * H), nw * 32, q, k, v, self.key_positions, self.value_positions, out,
                               S, self.max_distance, D ** -0.5, shared=shared)
        return out
