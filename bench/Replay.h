//===- Replay.h - Times of calls captured in graphs -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel of some microseconds takes less than what queues it. Programs that run many of them
// capture them in a CUDA graph and replay that, so this is how small problems are compared: calls
// on the sets of inputs one after the other, as many in libtorch's graph as in ours, each graph
// launched as one, in turns.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REPLAY_H
#define TEGULA_BENCH_REPLAY_H

#include "bench/Runner.h"
#include "bench/Timing.h"
#include "bench/reference/Reference.h"

namespace tegula::bench {

/// Times of a call. The launches are on a device; afterwards outputs are those of a replay, inouts
/// of many calls.
llvm::Expected<TimedPair> timeReplays(llvm::ArrayRef<Launch *> sets, const Reference &reference,
                                      unsigned calls, const TimingLimits &limits);

} // namespace tegula::bench

#endif // TEGULA_BENCH_REPLAY_H
