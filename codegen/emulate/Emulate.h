//===- Emulate.h - Device code for the emulator ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes the LLVM IR from which PTX would be written, after its optimisation, so that what runs is
// what the device would run: the last step before it becomes machine code of the host instead.
// Every atom (Atoms.def), every access to memory and every fence becomes, or is preceded by, a call
// of the emulator.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_EMULATE_EMULATE_H
#define TEGULA_CODEGEN_EMULATE_EMULATE_H

#include "codegen/cpu/Jit.h"
#include "codegen/emulate/EmulatorAbi.h"
#include "target/TargetInfo.h"
#include "llvm/ADT/SmallVector.h"

namespace tegula {

/// Who sees an atomic operation or a fence, from few to many.
enum class EmulatedScope : uint8_t { Thread, Block, Device };

/// Where an instruction stands: `softmax.tgl:3:9`, or the name of its function where that is not
/// known.
struct EmulatedLocation {
  std::string text;
  std::string function;
};

struct EmulatedAccess {
  bool reads = false, writes = false;
  /// Atomic or volatile: no race with another such access whose scope holds both threads.
  bool isStrong = false;
  bool acquires = false, releases = false;
  bool mayBeUndefined = false; // reads what nobody may have written
  bool isBulk = false;         // a copy by the proxy by which tensor cores read
  EmulatedScope scope = EmulatedScope::Device;
  uint32_t bytes = 0;     // 0: the call says how many
  uint32_t alignment = 1; // that the instruction needs
  uint32_t place = 0;
};

/// One atom in the code.
struct EmulatedCall {
  unsigned atom = 0; // number of its line in Atoms.def
  uint32_t place = 0;
  uint32_t read = 0, write = 0; // numbers of the accesses that its host function may make
  llvm::SmallVector<uint32_t, 4> operandBytes, resultBytes;
};

/// An object of shared memory. Objects do not touch: what lies between is nobody's.
struct EmulatedObject {
  std::string name;
  std::string function; // of which it is; empty: of all
  uint64_t offset = 0, bytes = 0;
  /// Takes the bytes that a launch gives (an external array without a size).
  bool isDynamic = false;
};

/// Device code that the emulator runs.
class EmulatedCode {
public:
  std::vector<EmulatedLocation> places;
  std::vector<EmulatedAccess> accesses;
  std::vector<EmulatedCall> calls;
  std::vector<EmulatedObject> shared;
  uint64_t sharedBytes = 0;     // of all, the dynamic object's not counted, which is the last
  uint64_t maxDynamicBytes = 0; ///< of shared memory, that the device gives a block of a launch
  /// Tables in device memory: address and bytes.
  std::vector<std::pair<const void *, uint64_t>> constants;

  /// Null where there is none of that name.
  EmulatedFunction find(llvm::StringRef function) const;
  /// Calls of the code go there.
  void setHooks(const EmulatorHooks &hooks) const;

  std::unique_ptr<LoadedCode> code;
};

/// The name of an atom: an NVVM intrinsic, or the text of inline PTX.
llvm::StringRef atomName(unsigned atom);

/// Makes host code of a device module, which is used up. An error names an instruction that the
/// emulator cannot run, such as an atom without a host function. `maxDynamicBytes`: of shared
/// memory, for a block of a launch.
llvm::Expected<std::unique_ptr<EmulatedCode>>
emulate(llvm::Module &module, uint64_t maxDynamicBytes = TargetInfo::gpu(90, true).sharedBytes);

} // namespace tegula

#endif // TEGULA_CODEGEN_EMULATE_EMULATE_H
