//===- Watchdog.h - An end to launches that have none ------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_WATCHDOG_H
#define TEGULA_DRIVER_WATCHDOG_H

#include "runtime/LaunchWatch.h"
#include "support/Workers.h"
#include <condition_variable>
#include <mutex>

namespace tegula {

/// Ends the process, with ExitWrongResult and a message that begins with `what`, when a launch
/// takes longer than so many seconds (0: any number). Nothing is cleaned up: whatever gives memory
/// back would wait for the device, and the driver does it for a process that is gone.
class Watchdog : public LaunchWatch {
public:
  Watchdog(std::string what, double seconds);
  ~Watchdog() override;
  void begin(const LaunchNote &launch) override;
  void end() override;

private:
  void watch();

  const std::string what;
  const double seconds;
  std::mutex mutex; // of what follows
  std::condition_variable changed;
  std::string running; // empty: no launch
  unsigned turn = 0;   // counts changes of `running`
  bool isOver = false;
  Workers watcher{[this] { watch(); }};
};

} // namespace tegula

#endif // TEGULA_DRIVER_WATCHDOG_H
