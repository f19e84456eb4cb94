//===- Atoms.h - What atoms do, on the host ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A host function for each atom (codegen/Atoms.def). It does what the PTX manual says of the instruction for
// the thread that calls; where the manual leaves something undefined, it fails.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_EMULATOR_ATOMS_H
#define TEGULA_RUNTIME_EMULATOR_ATOMS_H

#include "runtime/emulator/Grid.h"
#include <cstring>

namespace tegula::emulator {

/// One atom on its way through one thread: operands and results as the code has them, an i1 as a byte.
class AtomCall {
public:
  AtomCall(Thread &thread, const EmulatedCall &site, void *const *results,
           const void *const *operands)
      : thread(thread), site(site), results(results), operands(operands) {}

  template <typename T> T operand(unsigned number) const {
    assert(sizeof(T) == site.operandBytes[number] && "the host function knows the atom's operands");
    T value;
    std::memcpy(&value, operands[number], sizeof(T));
    return value;
  }
  template <typename T> void result(unsigned number, T value) {
    assert(sizeof(T) == site.resultBytes[number] && "the host function knows the atom's results");
    std::memcpy(results[number], &value, sizeof(T));
  }
  unsigned numResults() const { return site.resultBytes.size(); }

  Thread &thread;
  const EmulatedCall &site;

private:
  void *const *results;
  const void *const *operands;
};

using AtomFunction = void (*)(AtomCall &call);

/// The host function of a line of Atoms.def.
AtomFunction atomFunction(unsigned atom);

} // namespace tegula::emulator

#endif // TEGULA_RUNTIME_EMULATOR_ATOMS_H
