import torch
from tegula_eval import nvrtc

SOURCE = r'''
// R4, P4: latent and rotary sizes padded to multiples of 4; CQ = (R4 + P4) / 4; LDK: stride of a key in shared memory (4 mod 32).
#define TK 32
#define PART_LD 40
#define PS_LD 20

__device__ __forceinline__ unsigned saddr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void cp16(float* dst, const float* src, bool ok) {
  int bytes = ok ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" :: "r"(saddr(dst)), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void cp4(float* dst, const float* src, bool ok) {
  int bytes = ok ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" :: "r"(saddr(dst)), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

// rows of (latent, rotary) to dst, zeros beyond `valid` and in the padding
__device__ __forceinline__ void load_rows(float* dst, const float* latent, const float* rotary, int rows, int valid) {
#if VEC
  for (int i = threadIdx.x; i < rows * CQ; i += 256) {
    int r = i / CQ, c = (i % CQ) * 4;
    bool ok = r < valid;
    const float* src = c < R4 ? latent + (long long)r * RDIM + c : rotary + (long long)r * PDIM + (c - R4);
    cp16(dst + r * LDK + c, ok ? src : latent, ok);
  }
#else
  for (int i = threadIdx.x; i < rows * CQ * 4; i += 256) {
    int r = i / (CQ * 4), c = i % (CQ * 4);
    bool ok = r < valid;
    const float* src = latent;
    if (c < R4) {
      ok = ok && c < RDIM;
      if (ok) src = latent + (long long)r * RDIM + c;
    } else {
      ok = ok && c - R4 < PDIM;
      if (ok) src = rotary + (long long)r * PDIM + (c - R4);
    }
    cp4(dst + r * LDK + c, src, ok);
  }
#endif
}

extern "C" __global__ void attend(const float* ql, const float* qr, const float* lat, const float* rot, float* part, float* ml,
                                  int H, int T, int tiles_each, float scale) {
  extern __shared__ __align__(16) float smem[];
  float* Qs = smem;                        // [16][LDK]
  float* Ks = Qs + 16 * LDK;               // [NBUF][TK][LDK]
  float* red = Ks + NBUF * TK * LDK;       // [8][16][PART_LD]
  float* ps = red + 8 * 16 * PART_LD;      // [TK][PS_LD]
  float* corr_s = ps + TK * PS_LD;         // [16]
  int split = blockIdx.x, ht = blockIdx.y, b = blockIdx.z, splits = gridDim.x;
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  int h0 = ht * 16, heads = H - h0 < 16 ? H - h0 : 16;
  int tiles = (T + TK - 1) / TK;
  int first = split * tiles_each;
  int count = tiles - first < tiles_each ? tiles - first : tiles_each;
  const float* latb = lat + (long long)b * T * RDIM;
  const float* rotb = rot + (long long)b * T * PDIM;

  load_rows(Qs, ql + ((long long)b * H + h0) * RDIM, qr + ((long long)b * H + h0) * PDIM, 16, heads);
#if NBUF == 2
  if (count > 0) load_rows(Ks, latb + (long long)first * TK * RDIM, rotb + (long long)first * TK * PDIM, TK, T - first * TK);
  cp_commit();
#endif

  float acc[RQ][8][4];
  #pragma unroll
  for (int p = 0; p < RQ; ++p)
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 4; ++j) acc[p][i][j] = 0.0f;
  float m_run[2] = {-1e30f, -1e30f}, l_run[2] = {0.0f, 0.0f};
  int hq = lane >> 3, kq = lane & 7;
  int half = tid >> 7, quad = tid & 127;   // context: heads half * 8 .., dimensions quad * 4 ..

  for (int t = 0; t < count; ++t) {
    int k0 = (first + t) * TK;
#if NBUF == 2
    if (t + 1 < count)
      load_rows(Ks + ((t + 1) & 1) * TK * LDK, latb + (long long)(k0 + TK) * RDIM, rotb + (long long)(k0 + TK) * PDIM, TK, T - k0 - TK);
    cp_commit();
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");
    const float* K = Ks + (t & 1) * TK * LDK;
#else
    load_rows(Ks, latb + (long long)k0 * RDIM, rotb + (long long)k0 * PDIM, TK, T - k0);
    cp_commit();
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    const float* K = Ks;
#endif
    __syncthreads();
    {
      float s[4][4];
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) s[i][j] = 0.0f;
      const int QW = (CQ + 7) / 8;
      int c_end = (warp + 1) * QW < CQ ? (warp + 1) * QW : CQ;
      #pragma unroll 2
      for (int c = warp * QW; c < c_end; ++c) {
        float4 a[4], k[4];
        #pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = *(const float4*)(Qs + (i * 4 + hq) * LDK + c * 4);
        #pragma unroll
        for (int j = 0; j < 4; ++j) k[j] = *(const float4*)(K + (j * 8 + kq) * LDK + c * 4);
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
          #pragma unroll
          for (int j = 0; j < 4; ++j) {
            s[i][j] += a[i].x * k[j].x;
            s[i][j] += a[i].y * k[j].y;
            s[i][j] += a[i].z * k[j].z;
            s[i][j] += a[i].w * k[j].w;
          }
        }
      }
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) red[(warp * 16 + i * 4 + hq) * PART_LD + j * 8 + kq] = s[i][j];
      }
    }
    __syncthreads();
    #pragma unroll
    for (int u = 0; u < 2; ++u) {
      int h = warp * 2 + u;
      float s = 0.0f;
      #pragma unroll
      for (int w = 0; w < 8; ++w) s += red[(w * 16 + h) * PART_LD + lane];
      bool ok = k0 + lane < T;
      s = ok ? s * scale : -1e30f;
      float m = s;
      for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, o));
      m = fmaxf(m, m_run[u]);
      float p = ok ? expf(s - m) : 0.0f;
      float corr = expf(m_run[u] - m);
      float l = p;
      for (int o = 16; o; o >>= 1) l += __shfl_xor_sync(0xffffffffu, l, o);
      l_run[u] = l_run[u] * corr + l;
      m_run[u] = m;
      ps[lane * PS_LD + h] = p;
      if (lane == 0) corr_s[h] = corr;
    }
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      float c = corr_s[half * 8 + i];
      #pragma unroll
      for (int p = 0; p < RQ; ++p) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) acc[p][i][j] *= c;
      }
    }
    #pragma unroll 4
    for (int k = 0; k < TK; ++k) {
      float4 p0 = *(const float4*)(ps + k * PS_LD + half * 8), p1 = *(const float4*)(ps + k * PS_LD + half * 8 + 4);
      float pv[8] = {p0.x, p0.y, p0.z, p0.w, p1.x, p1.y, p1.z, p1.w};
      #pragma unroll
      for (int p = 0; p < RQ; ++p) {
        int d = (p * 128 + quad) * 4;
        if (d < R4) {
          float4 v = *(const float4*)(K + k * LDK + d);
          #pragma unroll
          for (int i = 0; i < 8; ++i) {
            acc[p][i][0] += pv[i] * v.x;
            acc[p][i][1] += pv[i] * v.y;
            acc[p][i][2] += pv[i] * v.z;
            acc[p][i][3] += pv[i] * v.w;
          }
        }
      }
    }
    __syncthreads();
  }

  long long slot = ((long long)b * gridDim.y + ht) * splits + split;
  #pragma unroll
  for (int p = 0; p < RQ; ++p) {
    int d = (p * 128 + quad) * 4;
    if (d < R4) {
      #pragma unroll
      for (int i = 0; i < 8; ++i)
        *(float4*)(part + (slot * 16 + half * 8 + i) * R4 + d) = make_float4(acc[p][i][0], acc[p][i][1], acc[p][i][2], acc[p][i][3]);
    }
  }
  if (lane == 0) {
    for (int u = 0; u < 2; ++u) {
      ml[slot * 32 + warp * 2 + u] = m_run[u];
      ml[slot * 32 + 16 + warp * 2 + u] = l_run[u];
    }
  }
}

// merges the pieces of 4 sequences for one head and multiplies by the head's matrix, 32 columns
extern "C" __global__ void project(const float* part, const float* ml, const float* up, float* out, int B, int H, int V, int HT, int splits) {
  extern __shared__ __align__(16) float smem[];
  float* ctx = smem;              // [4][R4]
  float* wts = smem + 4 * R4;     // [4][splits]
  __shared__ float red[8][4][32];
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  int v = blockIdx.x * 32 + lane, h = blockIdx.y, b0 = blockIdx.z * 4;
  int ht = h / 16, hr = h % 16;
  if (warp < 4) {
    int b = b0 + warp;
    if (b < B) {
      const float* p = ml + (((long long)b * HT + ht) * splits) * 32 + hr;
      float m = -1e30f, l = 0.0f;
      for (int s = lane; s < splits; s += 32) m = fmaxf(m, p[(long long)s * 32]);
      for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, o));
      for (int s = lane; s < splits; s += 32) l += p[(long long)s * 32 + 16] * expf(p[(long long)s * 32] - m);
      for (int o = 16; o; o >>= 1) l += __shfl_xor_sync(0xffffffffu, l, o);
      for (int s = lane; s < splits; s += 32) wts[warp * splits + s] = expf(p[(long long)s * 32] - m) / l;
    } else {
      for (int s = lane; s < splits; s += 32) wts[warp * splits + s] = 0.0f;
    }
  }
  __syncthreads();
  for (int i = tid; i < R4; i += 256) {   // 4 sequences, R4 / 4 quads each
    int bi = i / (R4 / 4), d = (i % (R4 / 4)) * 4, b = b0 + bi;
    float4 a = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (b < B) {
      const float* p = part + ((((long long)b * HT + ht) * splits) * 16 + hr) * R4 + d;
      #pragma unroll 8
      for (int s = 0; s < splits; ++s) {
        float w = wts[bi * splits + s];
        float4 x = *(const float4*)(p + (long long)s * 16 * R4);
        a.x += w * x.x; a.y += w * x.y; a.z += w * x.z; a.w += w * x.w;
      }
    }
    *(float4*)(ctx + bi * R4 + d) = a;
  }
  __syncthreads();
  float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  if (v < V) {
    const float* u = up + (long long)h * RDIM * V + v;
    #pragma unroll 8
    for (int r = warp; r < RDIM; r += 8) {
      float x = u[(long long)r * V];
      #pragma unroll
      for (int i = 0; i < 4; ++i) acc[i] += ctx[i * R4 + r] * x;
    }
  }
  #pragma unroll
  for (int i = 0; i < 4; ++i) red[warp][i][lane] = acc[i];
  __syncthreads();
  if (warp < 4 && b0 + warp < B && v < V) {
    float s = 0.0f;
    for (int w = 0; w < 8; ++w) s += red[w][warp][lane];
    out[((long long)(b0 + warp) * H + h) * V + v] = s;
  }
}
'''

_libs = {}


def _lib(R, P):
    key = (R, P)
    if key not in _libs:
        R4, P4 = -(-R // 4) * 4, -(-P // 4) * 4
        C = R4 + P4
        ldk = -(-C // 32) * 32 + 4
        rest = 8 * 16 * 40 + 32 * 20 + 16
        nbuf = 2 if (16 * ldk + 2 * 32 * ldk + rest) * 4 <= 232448 else 1
        shared = (16 * ldk + nbuf * 32 * ldk + rest) * 4
        rq = -(-R4 // 512)
        vec = 1 if R % 4 == 0 and P % 4 == 0 else 0
        head = (f"#define RDIM {R}\n#define PDIM {P}\n#define R4 {R4}\n#define P4 {P4}\n#define CQ {C // 4}\n"
                f"#define LDK {ldk}\n#define NBUF {nbuf}\n#define RQ {rq}\n#define VEC {vec}\n")
        _libs[key] = (nvrtc.compile(head + SOURCE), shared, R4)
    return _libs[key]


class ModelNew(torch.nn.Module):
    def __init__(self, num_heads, latent_dim, value_dim, scale):
        super().__init__()
        self.scale = scale
        self.up = torch.nn.Parameter(torch.randn(num_heads, latent_dim, value_dim) * latent_dim ** -0.5)

    def forward(self, q_latent, q_rotary, latent_cache, rotary_cache):
        B, H, R = q_latent.shape
        P = q_rotary.shape[2]
        T = latent_cache.shape[1]
        V = self.up.shape[2]
        lib, shared, R4 = _lib(R, P)
        HT = -(-H // 16)
        tiles = -(-T // 32)
        splits = max(1, min(tiles, 132 // (B * HT)))
        each = -(-tiles // splits)
        splits = -(-tiles // each)
        n = B * HT * splits
        part = torch.empty(n * 16 * R4, dtype=torch.float32, device=q_latent.device)
        ml = torch.empty(n * 32, dtype=torch.float32, device=q_latent.device)
        out = torch.empty((B, H, V), dtype=torch.float32, device=q_latent.device)
        lib.attend((splits, HT, B), 256, q_latent, q_rotary, latent_cache, rotary_cache, part, ml, H, T, each,
                   float(self.scale), shared=shared)
        lib.project((-(-V // 32), H, -(-B // 4)), 256, part, ml, self.up, out, B, H, V, HT, splits,
                    shared=(4 * R4 + 4 * splits) * 4)
        return out
