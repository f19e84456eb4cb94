//===- Ablate.h - What each pass is worth for a case -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each pass that the compilation can do without is left out in turn; the code that comes then is
// compared with that of all passes. It is meant to run in a child process (Child.h), for what a
// pass leaves behind may crash or hang.
//
// Events, by their "event":
//   base   milliseconds, instructions, registers, spillBytes, seconds, noiseLower, noiseUpper,
//   passes   the code of all
//          passes; the interval of its time as a multiple of its own
//   begin  pass                                              one pass is about to be left out
//   pass   pass, added, outcome, reason, milliseconds, instructions, registers, spillBytes, time
//
// A spare pass (PassRuns::shouldAdd) is `added` instead of left out.
// `outcome`: `same` (the code does not change), `needed` (there is no code without it), `wrong`
// (the results are), `failed` (the code does not run), or `worth`, with `time`, how many times as
// long the kernel takes so, and `timeLower` and `timeUpper`, between which the true median lies in
// 95 of 100 measurements.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_ABLATE_H
#define TEGULA_BENCH_ABLATE_H

#include "bench/Study.h"
#include "llvm/Support/JSON.h"

namespace tegula::bench {

/// Ablates one case, from pass number `firstPass` on; of `passes` alone, where there are any. False
/// where the device is lost to this process with what the last event tells: the passes after it
/// need another one.
llvm::Expected<bool> ablate(Study &study, const StudyCase &one,
                            llvm::ArrayRef<llvm::StringRef> passes, size_t firstPass,
                            llvm::function_ref<void(llvm::json::Object)> send);

} // namespace tegula::bench

#endif // TEGULA_BENCH_ABLATE_H
