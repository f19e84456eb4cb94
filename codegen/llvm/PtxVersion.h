//===- PtxVersion.h - The PTX version that a module needs -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_LLVM_PTXVERSION_H
#define TEGULA_CODEGEN_LLVM_PTXVERSION_H

namespace llvm {
class Module;
}

namespace tegula {

/// Notes that something in the module needs this version of PTX, 84 for 8.4, though older ones have
/// most of the target.
void needPtx(llvm::Module &module, unsigned version);
/// The newest version that was noted; 0: none.
unsigned neededPtx(const llvm::Module &module);

} // namespace tegula

#endif // TEGULA_CODEGEN_LLVM_PTXVERSION_H
