//===- cross_entropy.cu - A block for a row's loss, then a block for their mean ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Twin.cuh"

__global__ void rowLosses(const float *logits, const long long *target, float *losses, int classes) {
  logits += blockIdx.x * (long long)classes;
  float largest = -INFINITY, sum = 0.0f;
  for (int j = threadIdx.x; j < classes; j += blockDim.x) {
    float value = logits[j], next = fmaxf(largest, value);
    sum = sum * __expf(largest - next) + __expf(value - next);
    largest = next;
  }
  float all = reduceBlock<Max>(largest);
  sum = reduceBlock<Sum>(largest == -INFINITY ? 0.0f : sum * __expf(largest - all));
  if (threadIdx.x == 0)
    losses[blockIdx.x] = all + __logf(sum) - logits[target[blockIdx.x]];
}

__global__ void meanLoss(const float *losses, float *loss, int rows) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < rows; i += blockDim.x)
    sum += losses[i];
  sum = reduceBlock<Sum>(sum);
  if (threadIdx.x == 0)
    *loss = sum / rows;
}

TWIN(in, out, n, stream) { // B, C; out[1]: the losses of B rows
  rowLosses<<<n[0], 256, 0, stream>>>((const float *)in[0], (const long long *)in[1], (float *)out[1], n[1]);
  meanLoss<<<1, 1024, 0, stream>>>((const float *)out[1], (float *)out[0], n[0]);
  return cudaGetLastError();
}
