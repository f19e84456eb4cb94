//===- Trace.h - The time line of one run as a trace ---------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REPORT_TRACE_H
#define TEGULA_BENCH_REPORT_TRACE_H

#include "codegen/async/Timeline.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace tegula::report {

/// The marks of a run in Chrome's trace format: a process is a multiprocessor, a thread a warp.
/// Times are microseconds from the first warp's begin on.
std::string traceText(const async::Timeline &timeline, llvm::ArrayRef<int64_t> words);

} // namespace tegula::report

#endif // TEGULA_BENCH_REPORT_TRACE_H
