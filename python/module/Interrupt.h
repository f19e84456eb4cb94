//===- Interrupt.h - Ctrl-C while the C interface runs ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PYTHON_INTERRUPT_H
#define TEGULA_PYTHON_INTERRUPT_H

#include "python/module/Handles.h"

namespace tegula::python {

/// While one is there, on the main thread, Ctrl-C ends the call that it stands around, as far as
/// Python's own handler is set: `stop` becomes other than 0, and where the call goes on all the
/// same for three seconds the process ends by SIGINT. Elsewhere, and with a handler of the
/// program's own, it does nothing. Made and destroyed with the GIL.
class Interruptible {
public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible &) = delete;
  /// For tegula_launch_options.
  const int *stop() const;
  /// Raises KeyboardInterrupt, or whatever the handler raises, where a signal came.
  static void raise();

private:
  bool isWatched = false;
};

} // namespace tegula::python

#endif // TEGULA_PYTHON_INTERRUPT_H
