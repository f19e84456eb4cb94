//===- EmulatorAbi.h - The interface between emulated device code and the emulator -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emulated code is device code for the host (codegen/emulate/Emulate.h). Wherever it would touch
// memory or the hardware it calls one of these; who runs it (runtime/emulator) knows which thread
// of which block is calling. Layouts here are known to Emulate.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_EMULATE_EMULATORABI_H
#define TEGULA_CODEGEN_EMULATE_EMULATORABI_H

#include <cstdint>

namespace tegula {

/// The order of members is part of the interface. A call that finds something wrong does not
/// return.
struct EmulatorHooks {
  /// Before a load, a store or an atomic operation; `access` is an index into
  /// EmulatedCode::accesses.
  void (*access)(const void *address, uint32_t access);
  /// Before a copy or a fill of so many bytes.
  void (*range)(const void *address, uint64_t bytes, uint32_t access);
  /// Before an access to a thread's own object of `size` bytes at `object`.
  void (*local)(const void *object, uint64_t size, const void *address, uint32_t access);
  /// In place of an atom; `call` is an index into EmulatedCode::calls. Addresses of the operands,
  /// and of where the results go: as many as the result has fields. An i1 is a byte.
  void (*atom)(uint32_t call, void *const *results, const void *const *operands);
  /// A fence; `access` says of which order and scope.
  void (*fence)(uint32_t access);
  /// The shared memory of the calling thread's block.
  char *(*shared)();
};

/// A device function as emulated code has it: `arguments` are the addresses of its arguments in
/// order.
using EmulatedFunction = void (*)(const void *const *arguments);

} // namespace tegula

#endif // TEGULA_CODEGEN_EMULATE_EMULATORABI_H
