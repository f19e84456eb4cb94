//===- sum_columns.cu - Sums over rows: blocks of 32 columns by strips of rows, then the strips ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Twin.cuh"

static constexpr int strips = 64;

__global__ void addRows(const float *x, float *parts, long long rows, int columns) {
  __shared__ float sums[8][33];
  int column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  if (column < columns)
    for (long long i = blockIdx.y * 8 + threadIdx.y; i < rows; i += 8 * strips)
      sum += x[i * columns + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y || column >= columns)
    return;
  for (int k = 1; k < 8; ++k)
    sum += sums[k][threadIdx.x];
  parts[blockIdx.y * (long long)columns + column] = sum;
}

__global__ void addStrips(const float *parts, float *y, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns)
    return;
  float sum = 0.0f;
  for (int k = 0; k < strips; ++k)
    sum += parts[k * (long long)columns + column];
  y[column] = sum;
}

TWIN(in, out, n, stream) { // M, N; out[1]: 64 rows for the strips
  int columns = n[1];
  addRows<<<dim3((columns + 31) / 32, strips), dim3(32, 8), 0, stream>>>((const float *)in[0], (float *)out[1], n[0],
                                                                       columns);
  addStrips<<<(columns + 255) / 256, 256, 0, stream>>>((const float *)out[1], (float *)out[0], columns);
  return cudaGetLastError();
}
