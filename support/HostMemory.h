//===- HostMemory.h - Host memory that is available -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SUPPORT_HOSTMEMORY_H
#define TEGULA_SUPPORT_HOSTMEMORY_H

#include <cstddef>
#include <cstdint>

namespace tegula {

/// Bytes that can be used now without swapping, by the machine and the control group; UINT64_MAX
/// where the system does not say.
uint64_t availableMemory();

/// Memory for std::free; null where there is none, and too where the memory is promised but not
/// there: Linux gives addresses freely, and ends the process that uses them.
void *allocateAligned(size_t alignment, size_t bytes);

} // namespace tegula

#endif // TEGULA_SUPPORT_HOSTMEMORY_H
