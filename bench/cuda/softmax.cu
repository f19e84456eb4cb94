//===- softmax.cu - A block for a row, which is read twice ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Twin.cuh"

__global__ void softmaxKernel(const float *x, float *y, int columns) {
  x += blockIdx.x * (long long)columns;
  y += blockIdx.x * (long long)columns;
  // Maximum and sum in one pass, rescaled where the maximum grows.
  float largest = -INFINITY, sum = 0.0f;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    float value = x[j], next = fmaxf(largest, value);
    sum = sum * __expf(largest - next) + __expf(value - next);
    largest = next;
  }
  float all = reduceBlock<Max>(largest);
  sum = reduceBlock<Sum>(largest == -INFINITY ? 0.0f : sum * __expf(largest - all));
  float scale = 1.0f / sum;
  for (int j = threadIdx.x; j < columns; j += blockDim.x)
    y[j] = __expf(x[j] - all) * scale;
}

TWIN(in, out, n, stream) { // M, N
  softmaxKernel<<<n[0], 256, 0, stream>>>((const float *)in[0], (float *)out[0], n[1]);
  return cudaGetLastError();
}
