//===- Twin.cuh - What the twins have in common ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_CUDA_TWIN_CUH
#define TEGULA_BENCH_CUDA_TWIN_CUH

#include <cuda_runtime.h>

/// What run.py calls: device addresses of inputs and outputs, sizes in the order of the table there. Returns
/// cudaGetLastError().
#define TWIN(inputs, outputs, sizes, stream)                                                                           \
  extern "C" int twin(void *const *inputs, void *const *outputs, const long long *sizes, cudaStream_t stream)

struct Sum {
  static __device__ float neutral() { return 0.0f; }
  static __device__ float join(float a, float b) { return a + b; }
};
struct Max {
  static __device__ float neutral() { return -INFINITY; }
  static __device__ float join(float a, float b) { return fmaxf(a, b); }
};

template <typename Operation> __device__ float reduceWarp(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = Operation::join(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

/// The same value for all threads of a block of whole warps.
template <typename Operation> __device__ float reduceBlock(float value) {
  __shared__ float parts[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = reduceWarp<Operation>(value);
  __syncthreads(); // the parts of the reduction before have been read
  if (lane == 0)
    parts[warp] = value;
  __syncthreads();
  value = lane < blockDim.x / 32 ? parts[lane] : Operation::neutral();
  return reduceWarp<Operation>(value);
}

#endif // TEGULA_BENCH_CUDA_TWIN_CUH
