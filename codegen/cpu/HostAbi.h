//===- HostAbi.h - The interface between host code and the runtime -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel for the CPU is one function, KernelFunction. Layouts here are known to HostEmitter.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_CPU_HOSTABI_H
#define TEGULA_CODEGEN_CPU_HOSTABI_H

#include <cstdint>

namespace tegula {

/// The first error of a run. With BadAccess, `site` is an index into the kernel's error
/// sites and `value` the subscript that left its tensor, or (checked mode) the offset of an
/// element.
struct ErrorRecord {
  enum Kind : int32_t { None = 0, BadAccess = 1, OutOfMemory = 2 };
  int32_t taken = None;
  int32_t site = 0;
  int64_t value = 0;
};

struct HostRun;
/// Points [begin, end) of a parallel statement; `frame` holds what the statement uses from outside.
using ParallelBody = void (*)(int64_t begin, int64_t end, void *frame, HostRun *run);

/// The services that host code calls in the runtime. The order of members is part of the interface.
struct HostRun {
  ErrorRecord errors;
  /// Runs `body` over [0, count), perhaps on several threads, and returns when all is done. `cost`
  /// is an estimate of the operations of one point: small work stays on this thread.
  void (*parallelFor)(HostRun *run, ParallelBody body, void *frame, int64_t count, int64_t cost);
  /// `bytes` of memory for this thread, 64-byte aligned, valid until this thread asks again. Null,
  /// and OutOfMemory in `errors`, where there is none.
  void *(*scratch)(HostRun *run, int64_t bytes);
  void *runtime;       // the runtime's own
  int64_t threads = 1; // that parallelFor may use
  /// As `scratch`, of its own: panels of a matrix product, which may stand inside what uses
  /// scratch.
  void *(*panels)(HostRun *run, int64_t bytes) = nullptr;
  int64_t clock = 1; // of checked code
  /// Sorts a row (runtime/Sort.h): elements of the type with this number in DType, and their
  /// positions.
  void (*sort)(HostRun *run, void *values, int64_t *positions, int64_t length, int64_t take,
               int32_t type, int32_t descending) = nullptr;
};

/// `buffers`: the kernel's tensor arguments in order, then its global temporaries. `sizes`: values
/// of the kernel's size symbols in order. `scalars`: addresses of the run-time scalars in order.
using KernelFunction = void (*)(void *const *buffers, const int64_t *sizes,
                                const void *const *scalars, HostRun *run);

} // namespace tegula

#endif // TEGULA_CODEGEN_CPU_HOSTABI_H
