//===- gelu.cu - y = gelu(x), four elements a thread ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Twin.cuh"

static __device__ float gelu(float x) { return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))); }

__global__ void geluKernel(const float4 *x, float4 *y, long long vectors) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= vectors)
    return;
  float4 v = x[i];
  y[i] = make_float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w));
}

TWIN(in, out, n, stream) { // N, a multiple of 4
  long long vectors = n[0] / 4;
  geluKernel<<<(vectors + 255) / 256, 256, 0, stream>>>((const float4 *)in[0], (float4 *)out[0], vectors);
  return cudaGetLastError();
}
