//===- ParallelCodegen.h - Generates machine code on several threads -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_COMPILER_PARALLELCODEGEN_H
#define TEGULA_COMPILER_PARALLELCODEGEN_H

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class LLVMContext;
class MemoryBuffer;
class Module;
class StringRef;
} // namespace llvm

namespace tegula {
struct HostTarget;
class PassRuns;

/// Appends what LLVM reports of errors to `heard`, a line each: by itself it would print, and end
/// the process. `heard` must outlive the context.
void collectErrors(llvm::LLVMContext &context, std::string &heard);

/// Optimizes and assembles a module whose target was applied, a large one in up to `maxParts`
/// parts, each on a thread of its own. A function's code is the same in whatever part it is made.
/// Uses the module up.
std::vector<std::unique_ptr<llvm::MemoryBuffer>> assembleInParallel(llvm::Module &module,
                                                                    const HostTarget &target,
                                                                    unsigned maxParts,
                                                                    std::string &heard);

/// Optimizes a module for a device target and writes one PTX text, which does not depend on the
/// number of threads. `runs`: as for emitPtx.
std::string emitPtxInParallel(llvm::Module &module, llvm::StringRef target, unsigned threads,
                              PassRuns *runs, std::string &heard);

} // namespace tegula

#endif // TEGULA_COMPILER_PARALLELCODEGEN_H
