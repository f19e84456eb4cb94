//===- layer_norm.cu - A block for a row, which waits in shared memory ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Twin.cuh"

__global__ void layerNormKernel(const float *x, const float *w, const float *b, float *y, int columns) {
  extern __shared__ float row[];
  x += blockIdx.x * (long long)columns;
  y += blockIdx.x * (long long)columns;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    row[j] = x[j];
    sum += row[j];
  }
  float mean = reduceBlock<Sum>(sum) / columns, squares = 0.0f;
  for (int j = threadIdx.x; j < columns; j += blockDim.x)
    squares += (row[j] - mean) * (row[j] - mean);
  float scale = rsqrtf(reduceBlock<Sum>(squares) / columns + 1e-5f);
  for (int j = threadIdx.x; j < columns; j += blockDim.x)
    y[j] = (row[j] - mean) * scale * w[j] + b[j];
}

TWIN(in, out, n, stream) { // M, N, a row of at most 48 KiB
  layerNormKernel<<<n[0], 256, n[1] * sizeof(float), stream>>>((const float *)in[0], (const float *)in[1],
                                                              (const float *)in[2], (float *)out[0], n[1]);
  return cudaGetLastError();
}
