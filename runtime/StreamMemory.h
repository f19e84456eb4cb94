//===- StreamMemory.h - Workspaces that are kept between calls ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls on one stream follow each other, so they may have the same workspace, one after another.
// Calls on two may overlap, and need two. A handle does not tell streams apart, since a new stream
// may get that of a destroyed one whose work is still running; the driver's number of a stream
// does. A call that is captured in a graph runs whenever the graph does, beside whatever: it never
// gets memory that is kept.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_STREAMMEMORY_H
#define TEGULA_RUNTIME_STREAMMEMORY_H

#include "runtime/Cuda.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <mutex>

namespace tegula {

class StreamMemory {
public:
  /// All workspaces have this size, more than 0.
  StreamMemory(const CudaDevice &device, int64_t bytes) : device(device), bytes(bytes) {}
  /// All work in the workspaces must have finished.
  ~StreamMemory();
  StreamMemory(const StreamMemory &) = delete;

  /// Queues `work` on the stream with a workspace, kept or, where none can be, allocated and
  /// released in the order of the stream. The device's context is current. Calls on one stream do
  /// not mix, whatever thread they come from.
  llvm::Error run(void *stream, llvm::function_ref<llvm::Error(DeviceAddress)> work);

  /// One workspace in the order of the stream.
  static llvm::Error runOnce(void *stream, int64_t bytes,
                             llvm::function_ref<llvm::Error(DeviceAddress)> work);

private:
  struct Kept {
    unsigned long long stream; // its number
    DeviceAddress address;
  };
  /// Who has more streams has them for a call or two.
  static constexpr size_t maxStreams = 8;

  const CudaDevice &device;
  const int64_t bytes;
  std::mutex mutex; // of what follows, and of the order of launches in it
  llvm::SmallVector<Kept, 2> kept;
};

} // namespace tegula

#endif // TEGULA_RUNTIME_STREAMMEMORY_H
