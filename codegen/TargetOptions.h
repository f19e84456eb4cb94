//===- TargetOptions.h - What a target means for passes and code --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a compilation's target has, and what of it is switched off by name (`--disable`), as the
// passes and the emission of device code ask for it. Where the target is `emulate`, that of the
// device that the emulator is.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_TARGETOPTIONS_H
#define TEGULA_CODEGEN_TARGETOPTIONS_H

#include "codegen/Compiler.h"
#include "codegen/Emitter.h"

namespace tegula {

/// The device, such as `sm_90a`, that code is made for. Not of `cpu`.
llvm::StringRef deviceOf(const CompileOptions &options);
unsigned capabilityOf(const CompileOptions &options);

/// What tiles of products may use; of a CPU, which has none, nothing. `runs`: null where everything
/// is switched on.
TileMachine tileMachineOf(const CompileOptions &options, PassRuns *runs);
EmitterOptions deviceOptionsOf(const CompileOptions &options, PassRuns *runs);

} // namespace tegula

#endif // TEGULA_CODEGEN_TARGETOPTIONS_H
