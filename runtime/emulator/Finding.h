//===- Finding.h - What the emulator finds wrong with device code ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_EMULATOR_FINDING_H
#define TEGULA_RUNTIME_EMULATOR_FINDING_H

#include "llvm/Support/Error.h"
#include <string>

namespace tegula {

/// Device code did what the PTX manual leaves undefined. A defect of the compiler: no program may
/// cause it.
class EmulatorError : public llvm::ErrorInfo<EmulatorError> {
public:
  static char ID;
  enum Kind {
    OutOfBounds,      ///< an access outside of every buffer
    Misaligned,       ///< an address that the instruction does not take
    Undefined,        ///< a read of what nobody has written
    Race,             ///< two accesses in no order, of which one writes
    DivergentBarrier, ///< threads that do not come to the barrier where others wait
    Deadlock,         ///< threads that wait for each other, or for a value that nobody writes
    UnorderedPhase,   ///< an arrival or a wait that is at another phase of its barrier in another
                      ///< order of execution
    MissingFence,  ///< a tensor core's read of what threads have written, without a fence between
    BlockLifetime, ///< an access to another block's shared memory that in another order comes
                   ///< before it begins or after it ends
    WrongOperand,  ///< an atom with operands that it does not take
    RefusedLaunch, ///< more shared memory for a block than the device has
  };
  EmulatorError(Kind kind, std::string message) : kind(kind), message(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
  Kind kind;
  std::string message;
};

} // namespace tegula

#endif // TEGULA_RUNTIME_EMULATOR_FINDING_H
