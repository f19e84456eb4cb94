//===- CudaGraph.h - Work captured once and launched as one ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_CUDAGRAPH_H
#define TEGULA_RUNTIME_CUDAGRAPH_H

#include "runtime/Cuda.h"

namespace tegula {

class CudaGraph {
public:
  /// What `work` queues on the stream that it is given. Addresses are those of the capture; it may
  /// allocate memory, but not wait.
  static llvm::Expected<std::unique_ptr<CudaGraph>>
  capture(CudaDevice &device, llvm::function_ref<llvm::Error(void *stream)> work);
  ~CudaGraph();
  CudaGraph(const CudaGraph &) = delete;

  /// Launches it and waits: microseconds between two events around it.
  llvm::Expected<double> replay();

private:
  explicit CudaGraph(CudaDevice &device) : device(device) {}
  CudaDevice &device;
  void *stream = nullptr, *executable = nullptr;
};

} // namespace tegula

#endif // TEGULA_RUNTIME_CUDAGRAPH_H
