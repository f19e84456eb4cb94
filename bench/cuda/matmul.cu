//===- matmul.cu - Tiles of 128 x 128 in shared memory, 8 x 8 sums a thread ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Twin.cuh"

static constexpr int tile = 128, depth = 8, each = 8;

__global__ void __launch_bounds__(256) matmulKernel(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float left[depth][tile], right[depth][tile];
  int row = blockIdx.y * tile, column = blockIdx.x * tile, thread = threadIdx.x;
  int threadRow = thread / 16 * each, threadColumn = thread % 16 * each;
  float sums[each][each] = {};
  for (int start = 0; start < k; start += depth) {
#pragma unroll
    for (int part = thread; part < tile * depth; part += 256) {
      int i = part / depth, l = part % depth;
      left[l][i] = row + i < m && start + l < k ? a[(row + i) * (long long)k + start + l] : 0.0f;
      int d = part / tile, j = part % tile;
      right[d][j] = start + d < k && column + j < n ? b[(start + d) * (long long)n + column + j] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < depth; ++l) {
      float x[each], y[each];
#pragma unroll
      for (int i = 0; i < each; ++i) {
        x[i] = left[l][threadRow + i];
        y[i] = right[l][threadColumn + i];
      }
#pragma unroll
      for (int i = 0; i < each; ++i)
#pragma unroll
        for (int j = 0; j < each; ++j)
          sums[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < each; ++i)
#pragma unroll
    for (int j = 0; j < each; ++j)
      if (row + threadRow + i < m && column + threadColumn + j < n)
        c[(row + threadRow + i) * (long long)n + column + threadColumn + j] = sums[i][j];
}

TWIN(in, out, n, stream) { // M, N, K
  matmulKernel<<<dim3((n[1] + tile - 1) / tile, (n[0] + tile - 1) / tile), 256, 0, stream>>>(
      (const float *)in[0], (const float *)in[1], (float *)out[0], n[0], n[1], n[2]);
  return cudaGetLastError();
}
