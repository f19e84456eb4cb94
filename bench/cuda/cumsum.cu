//===- cumsum.cu - A block for a row: chunks of four elements a thread, scanned by warps ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Twin.cuh"

static constexpr int threads = 256, each = 4;

__global__ void cumsumKernel(const float *x, float *y, int columns) {
  __shared__ float warps[threads / 32];
  x += blockIdx.x * (long long)columns;
  y += blockIdx.x * (long long)columns;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float before = 0.0f; // of the chunks before
  for (int start = 0; start < columns; start += threads * each) {
    int first = start + threadIdx.x * each;
    float values[each], sum = 0.0f;
#pragma unroll
    for (int k = 0; k < each; ++k) {
      sum += first + k < columns ? x[first + k] : 0.0f;
      values[k] = sum;
    }
    float scanned = sum;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      float other = __shfl_up_sync(0xffffffffu, scanned, step);
      if (lane >= step)
        scanned += other;
    }
    if (lane == 31)
      warps[warp] = scanned;
    __syncthreads();
    float offset = before + scanned - sum;
    for (int k = 0; k < threads / 32; ++k) {
      if (k < warp)
        offset += warps[k];
      before += warps[k];
    }
#pragma unroll
    for (int k = 0; k < each; ++k)
      if (first + k < columns)
        y[first + k] = offset + values[k];
    __syncthreads();
  }
}

TWIN(in, out, n, stream) { // M, N
  cumsumKernel<<<n[0], threads, 0, stream>>>((const float *)in[0], (float *)out[0], n[1]);
  return cudaGetLastError();
}
