//===- rms_norm.cu - A block for a row, four elements a thread ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Twin.cuh"

__global__ void rmsNormKernel(const float4 *x, const float4 *w, float4 *y, int vectors) {
  x += blockIdx.x * (long long)vectors;
  y += blockIdx.x * (long long)vectors;
  float squares = 0.0f;
  for (int j = threadIdx.x; j < vectors; j += blockDim.x) {
    float4 v = x[j];
    squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  float scale = rsqrtf(reduceBlock<Sum>(squares) / (4.0f * vectors) + 1e-6f);
  for (int j = threadIdx.x; j < vectors; j += blockDim.x) {
    float4 v = x[j], f = w[j];
    y[j] = make_float4(v.x * scale * f.x, v.y * scale * f.y, v.z * scale * f.z, v.w * scale * f.w);
  }
}

TWIN(in, out, n, stream) { // M, N, a multiple of 4
  rmsNormKernel<<<n[0], 256, 0, stream>>>((const float4 *)in[0], (const float4 *)in[1], (float4 *)out[0], n[1] / 4);
  return cudaGetLastError();
}
