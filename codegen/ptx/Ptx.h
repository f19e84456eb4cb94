//===- Ptx.h - LLVM IR for NVPTX to PTX -------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_PTX_PTX_H
#define TEGULA_CODEGEN_PTX_PTX_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace tegula {

class PassRuns;

/// `sm_80`, `sm_90a`, ...: a target that LLVM's NVPTX back end knows, of compute capability 8.0 or
/// newer.
bool isDeviceTarget(llvm::StringRef target);
/// All of them, the oldest first.
llvm::SmallVector<llvm::StringRef> deviceTargets();
/// For messages: "a device of capability 8.0 or newer that LLVM 22.1.8 knows (sm_80, ...)".
std::string expectedDeviceTargets();
/// Compute capability times ten from `sm_90a`; 0 where it is not of that form.
unsigned deviceCapability(llvm::StringRef target);
/// The target for a device of this compute capability: `sm_90a` for 9.0, whose own instructions
/// need it.
std::string deviceTarget(int major, int minor);

/// Enters the target in LLVM's registry, which has no lock of its own: once in a process, before
/// two threads compile for different targets. createDeviceMachine does it too.
void initializeDeviceTarget();
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createDeviceMachine(llvm::StringRef target, unsigned minPtxVersion = 0);
/// Sets triple and data layout.
void applyDeviceTarget(llvm::Module &module, llvm::TargetMachine &machine);
/// A trimmed middle end: functions inlined, memory to registers, loop invariants out, common
/// subexpressions merged. No vectorisers and no unrolling (docs/rationale.md).
void optimizeForDevice(llvm::Module &module, llvm::TargetMachine &machine);
/// `runs` decides which of the passes run that code generation for us leaves out: slsr and
/// nary-reassociate (docs/rationale.md). Null: none.
std::string emitPtx(llvm::Module &module, llvm::TargetMachine &machine, PassRuns *runs = nullptr);

} // namespace tegula

#endif // TEGULA_CODEGEN_PTX_PTX_H
