//===- Accesses.h - tgl.read and tgl.write as LLVM IR -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An access with its guard, its fill and its checks; ScalarEmitter has the loads and stores.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_ACCESSES_H
#define TEGULA_CODEGEN_COMMON_ACCESSES_H

#include "ir/tgl/Tgl.h"
#include "llvm/IR/Value.h"

namespace tegula {

class ScalarEmitter;

/// Where a read has an element to give (null: everywhere). What data puts outside is reported.
llvm::Value *emitReadMask(ScalarEmitter &e, tgl::ReadOp op);
void emitRead(ScalarEmitter &e, tgl::ReadOp op);
void emitWrite(ScalarEmitter &e, tgl::WriteOp op);
/// The value's bits in memory: as they were loaded where an element is copied.
llvm::Value *emitRaw(ScalarEmitter &e, mlir::Value value, mlir::Type element);
/// Where a write happens (null: everywhere). What data puts outside is reported.
llvm::Value *emitWriteMask(ScalarEmitter &e, tgl::WriteOp op);
/// Combines a value by an atomic operation, as the write says, with the element that stands
/// `offset` elements behind `pointer`.
void emitCombine(ScalarEmitter &e, tgl::WriteOp op, llvm::Value *pointer, llvm::Value *offset,
                 llvm::Value *value, llvm::Value *mask);

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_ACCESSES_H
