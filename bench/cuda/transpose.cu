//===- transpose.cu - Tiles of 32 x 32 through shared memory, a column of padding against bank conflicts ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Twin.cuh"

__global__ void transposeKernel(const float *x, float *y, int rows, int columns) {
  __shared__ float tile[32][33];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (column < columns && row + k < rows)
      tile[threadIdx.y + k][threadIdx.x] = x[(row + k) * (long long)columns + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x;
  row = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (column < rows && row + k < columns)
      y[(row + k) * (long long)rows + column] = tile[threadIdx.x][threadIdx.y + k];
}

TWIN(in, out, n, stream) { // M, N
  transposeKernel<<<dim3((n[1] + 31) / 32, (n[0] + 31) / 32), dim3(32, 8), 0, stream>>>(
      (const float *)in[0], (float *)out[0], n[0], n[1]);
  return cudaGetLastError();
}
