//===- TargetOptions.h - Options of passes and code generation for a target -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Capabilities of a compilation's target, and which of them `--disable` switches off by name, as
// the passes and the emission of device code ask for it. Where the target is `emulate`, that of the
// device that the emulator is.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_COMPILER_TARGETOPTIONS_H
#define TEGULA_COMPILER_TARGETOPTIONS_H

#include "codegen/common/Emitter.h"
#include "compiler/Compiler.h"

namespace tegula {

/// The device, such as `sm_90a`, that code is made for. Not of `cpu`.
llvm::StringRef deviceOf(const CompileOptions &options);
unsigned capabilityOf(const CompileOptions &options);

/// What code is made for. `runs`: null where everything is switched on.
TargetInfo targetOf(const CompileOptions &options, PassRuns *runs);
EmitterOptions deviceOptionsOf(const CompileOptions &options, PassRuns *runs);

} // namespace tegula

#endif // TEGULA_COMPILER_TARGETOPTIONS_H
