//===- EmitArith.h - Operations on values as LLVM IR --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What operations of arith, of math and of tgl compute, at the current point or for all lanes.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_EMITARITH_H
#define TEGULA_CODEGEN_COMMON_EMITARITH_H

#include "ir/tgl/Tgl.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class ScalarEmitter;

void emitArith(ScalarEmitter &e, mlir::Operation *op);

/// llvm.maximum or minimum of floats. Either zero may be the larger one: telling them apart costs
/// x86 two more instructions.
llvm::Value *emitExtreme(llvm::IRBuilder<> &b, llvm::Intrinsic::ID id, llvm::Value *lhs,
                         llvm::Value *rhs);

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_EMITARITH_H
