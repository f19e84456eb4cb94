//===- EmitIRScatter.h - Writes whose points may meet -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_LOWER_EMITIRSCATTER_H
#define TEGULA_FRONTEND_LOWER_EMITIRSCATTER_H

#include "frontend/lower/EmitIRImpl.h"

namespace tegula::emit {

Emitter::LastWriters emitLastWriters(Emitter &emitter, const Stmt &stmt);
mlir::Value isLastWriter(Emitter &emitter, const Emitter::LastWriters &last, mlir::Value guard,
                         llvm::StringRef checked, mlir::Location loc);
llvm::SmallVector<Emitter::NarrowSum> narrowSums(Emitter &emitter, const Stmt &root);
void emitNarrowSums(Emitter &emitter, const Stmt &stmt, llvm::ArrayRef<Emitter::NarrowSum> narrow,
                    llvm::ArrayRef<Stmt *> following);

} // namespace tegula::emit

#endif // TEGULA_FRONTEND_LOWER_EMITIRSCATTER_H
