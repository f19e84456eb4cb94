//===- embedding.cu - A block for a row of the table ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Twin.cuh"

__global__ void embeddingKernel(const long long *ids, const float4 *table, float4 *y, int vectors) {
  const float4 *row = table + ids[blockIdx.x] * vectors;
  y += blockIdx.x * (long long)vectors;
  for (int j = threadIdx.x; j < vectors; j += blockDim.x)
    y[j] = row[j];
}

TWIN(in, out, n, stream) { // L, V, D, a multiple of 4
  embeddingKernel<<<n[0], 128, 0, stream>>>((const long long *)in[0], (const float4 *)in[1], (float4 *)out[0],
                                          n[2] / 4);
  return cudaGetLastError();
}
