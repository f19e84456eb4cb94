//===- max_pool.cu - Windows of 3 x 3 at a stride of 2, a thread for an output ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Twin.cuh"

__global__ void maxPoolKernel(const float *x, float *y, int height, int width, int rows, int columns,
                              long long outputs) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= outputs)
    return;
  int q = i % columns, p = i / columns % rows;
  const float *plane = x + i / columns / rows * height * width;
  float largest = -INFINITY;
#pragma unroll
  for (int r = 0; r < 3; ++r)
#pragma unroll
    for (int s = 0; s < 3; ++s) {
      int h = 2 * p + r - 1, w = 2 * q + s - 1;
      if (h >= 0 && h < height && w >= 0 && w < width)
        largest = fmaxf(largest, plane[h * width + w]);
    }
  y[i] = largest;
}

TWIN(in, out, n, stream) { // N, C, H, W
  int rows = (n[2] - 1) / 2 + 1, columns = (n[3] - 1) / 2 + 1;
  long long outputs = n[0] * n[1] * rows * columns;
  maxPoolKernel<<<(outputs + 255) / 256, 256, 0, stream>>>((const float *)in[0], (float *)out[0], n[2], n[3], rows,
                                                          columns, outputs);
  return cudaGetLastError();
}
