//===- Emulator.h - Device code and its plan, on the host --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_EMULATOR_EMULATOR_H
#define TEGULA_RUNTIME_EMULATOR_EMULATOR_H

#include "codegen/common/Plan.h"
#include "codegen/emulate/Emulate.h"
#include "runtime/emulator/Finding.h"
#include "runtime/emulator/Memory.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>
#include <optional>

namespace tegula {

struct EmulatorOptions {
  /// 0: threads and blocks take turns in order. Another number is another order of both.
  uint64_t seed = 0;
  /// The device: a plan gives small problems to blocks, large ones to threads, by its size.
  unsigned multiprocessors = 4, threadsPerMultiprocessor = 1024;
};

/// What an emulated plan runs on, all in memory of the host.
struct EmulatorInputs {
  struct Argument {
    void *data = nullptr;
    uint64_t bytes = 0;
    BufferContents contents = BufferContents::Undefined;
  };
  std::vector<Argument> arguments;      // the kernel's tensors in order
  llvm::ArrayRef<const void *> scalars; // addresses of the values, each in its own type
  std::function<std::optional<int64_t>(llvm::StringRef)> size;
  void *errors = nullptr; // an ErrorRecord
};

/// Runs a plan; a launch that does something undefined ends it with an EmulatorError.
llvm::Error emulatePlan(const EmulatedCode &code, const Plan &plan, const EmulatorInputs &inputs,
                        const EmulatorOptions &options = {});

} // namespace tegula

#endif // TEGULA_RUNTIME_EMULATOR_EMULATOR_H
