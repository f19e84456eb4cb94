//===- LaunchWatch.h - Which launch runs now ------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device reports what a kernel did wrong at some later call, and of one that hangs nothing. Under
// watch the launches of a plan run one at a time, so that either has a launch to be named with.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_LAUNCHWATCH_H
#define TEGULA_RUNTIME_LAUNCHWATCH_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace tegula {

struct LaunchNote {
  llvm::StringRef function;
  unsigned blocks = 0, threads = 0, sharedBytes = 0;

  /// `launch 'softmax_0' (128 blocks of 256 threads)`.
  std::string text() const;
};

class LaunchWatch {
public:
  virtual ~LaunchWatch();
  /// Before it is queued.
  virtual void begin(const LaunchNote &launch) = 0;
  /// The device has finished with it.
  virtual void end() = 0;
};

} // namespace tegula

#endif // TEGULA_RUNTIME_LAUNCHWATCH_H
