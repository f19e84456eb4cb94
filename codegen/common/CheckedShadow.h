//===- CheckedShadow.h - Shadow memory that checks definitions ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In checked mode every element that a kernel writes has a stamp, which says when and how it was
// last written (CheckedShadow.cpp). Without a clock nothing is checked, and nothing is emitted.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_CHECKEDSHADOW_H
#define TEGULA_CODEGEN_COMMON_CHECKEDSHADOW_H

#include "ir/tgl/Tgl.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class RuntimeChecks;
class ScalarEmitter;

class CheckedShadow {
public:
  CheckedShadow(ScalarEmitter &e, RuntimeChecks &checks);

  /// Address of the time; null: no definitions are checked, and what follows does nothing.
  llvm::Value *clock = nullptr;
  struct Level {
    llvm::Value *begin, *point; // times
  };
  llvm::SmallVector<Level> levels; // of the parallels around

  /// Around all points of a `parallel`, and before each of them.
  void beginPoints();
  void beginPoint();
  void endPoints();
  /// Where the access may go on: `mask`, and the element is defined (written in no other way).
  llvm::Value *checkRead(mlir::Operation *op, mlir::Value tensor,
                         llvm::ArrayRef<tgl::ValueExpr> subscripts, llvm::Value *mask);
  llvm::Value *checkReadAt(mlir::Operation *op, mlir::Value tensor, llvm::Value *offset);
  llvm::Value *checkWrite(mlir::Operation *op, mlir::Value tensor,
                          llvm::ArrayRef<tgl::ValueExpr> subscripts, llvm::Value *mask,
                          llvm::Value *raw);
  llvm::Value *checkWriteAt(mlir::Operation *op, mlir::Value tensor, llvm::Value *offset,
                            std::optional<tgl::ReduceKind> combine = {},
                            llvm::Value *differs = nullptr);
  void checkComplete(mlir::Operation *op, mlir::Value tensor);

private:
  ScalarEmitter &e;
  llvm::IRBuilder<> &b;
  RuntimeChecks &checks;

  llvm::Value *tick();
  llvm::Value *isByAnotherPoint(llvm::Value *when);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_CHECKEDSHADOW_H
