//===- depthwise_conv.cu - 3 x 3 for each channel, tiles of an image with a halo in shared memory ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Twin.cuh"

static constexpr int tileRows = 8, tileColumns = 32;

__global__ void depthwiseKernel(const float *x, const float *w, float *y, int channels, int height, int width) {
  __shared__ float tile[tileRows + 2][tileColumns + 2];
  long long plane = blockIdx.z;
  x += plane * height * width;
  y += plane * height * width;
  int top = blockIdx.y * tileRows, left = blockIdx.x * tileColumns;
  for (int k = threadIdx.y * tileColumns + threadIdx.x; k < (tileRows + 2) * (tileColumns + 2);
       k += tileRows * tileColumns) {
    int r = k / (tileColumns + 2), s = k % (tileColumns + 2), row = top + r - 1, column = left + s - 1;
    bool exists = row >= 0 && row < height && column >= 0 && column < width;
    tile[r][s] = exists ? x[row * width + column] : 0.0f;
  }
  float taps[9];
#pragma unroll
  for (int k = 0; k < 9; ++k)
    taps[k] = w[plane % channels * 9 + k];
  __syncthreads();
  int row = top + threadIdx.y, column = left + threadIdx.x;
  if (row >= height || column >= width)
    return;
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < 9; ++k)
    sum += taps[k] * tile[threadIdx.y + k / 3][threadIdx.x + k % 3];
  y[row * width + column] = sum;
}

TWIN(in, out, n, stream) { // N, C, H, W; N*C at most 65535
  dim3 blocks((n[3] + tileColumns - 1) / tileColumns, (n[2] + tileRows - 1) / tileRows, n[0] * n[1]);
  depthwiseKernel<<<blocks, dim3(tileColumns, tileRows), 0, stream>>>((const float *)in[0], (const float *)in[1],
                                                                    (float *)out[0], n[1], n[2], n[3]);
  return cudaGetLastError();
}
