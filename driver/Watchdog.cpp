//===- Watchdog.cpp - An end to launches that have none -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/Watchdog.h"

#include "driver/ExitCode.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <unistd.h>

using namespace llvm;

namespace tegula {

Watchdog::Watchdog(std::string what, double seconds) : what(std::move(what)), seconds(seconds) {
  if (!watcher.start(1))
    errs() << "tegula: " << this->what
           << ": no thread for the deadline; nothing ends a launch that hangs\n";
}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  watcher.join();
}

void Watchdog::begin(const LaunchNote &launch) {
  std::lock_guard<std::mutex> lock(mutex);
  running = launch.text();
  ++turn;
  changed.notify_all();
}

void Watchdog::end() {
  std::lock_guard<std::mutex> lock(mutex);
  running.clear();
  ++turn;
  changed.notify_all();
}

void Watchdog::watch() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!isOver) {
    unsigned seen = turn;
    auto hasChanged = [&] { return isOver || turn != seen; };
    if (running.empty() || seconds == 0) {
      changed.wait(lock, hasChanged);
    } else if (!changed.wait_for(lock, std::chrono::duration<double>(seconds), hasChanged)) {
      errs() << "tegula: " << what << ": " << running << " did not end within "
             << format("%g", seconds) << " s\n";
      _exit(ExitWrongResult);
    }
  }
}

} // namespace tegula
