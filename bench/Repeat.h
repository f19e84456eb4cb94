//===- Repeat.h - The same bits, run after run -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a launch many times, each time as another machine might: on a device all shared memory has
// been filled with NaNs and blocks begin at other times, and in another order, since
// multiprocessors become free one by one; in the emulator threads and blocks take turns in another
// order.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REPEAT_H
#define TEGULA_BENCH_REPEAT_H

#include "bench/Runner.h"

namespace tegula::bench {

/// The first argument whose bytes differ, of two runs' results; nothing where all are the same.
std::optional<size_t> findOther(llvm::ArrayRef<Tensor> first, llvm::ArrayRef<Tensor> second);

/// What a run gave otherwise.
struct OtherBits {
  unsigned run; // from 1 on
  size_t result;
};

/// Runs `launch` `runs` times, and holds `arguments` of each run against `expected`. `watch` is
/// told of each run.
llvm::Expected<std::optional<OtherBits>> findOtherBits(Launch &launch,
                                                       llvm::ArrayRef<unsigned> arguments,
                                                       llvm::ArrayRef<Tensor> expected,
                                                       unsigned runs, LaunchWatch *watch);

} // namespace tegula::bench

#endif // TEGULA_BENCH_REPEAT_H
