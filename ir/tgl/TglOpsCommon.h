//===- TglOpsCommon.h - What the ops' own code shares -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGL_TGLOPSCOMMON_H
#define TEGULA_IR_TGL_TGLOPSCOMMON_H

#include "ir/tgl/Tgl.h"

namespace tegula::tgl {

/// The expression over `operands`, which it extends.
IndexExprAttr exprAttr(mlir::Builder &builder, IndexOperands &operands, const ValueExpr &expr);
mlir::ArrayAttr exprArrayAttr(mlir::Builder &builder, IndexOperands &operands,
                              llvm::ArrayRef<ValueExpr> exprs);
/// An op's expressions over its indices.
llvm::SmallVector<ValueExpr> valueExprs(mlir::ArrayAttr exprs, mlir::ValueRange indices);

/// `names[k]` for the k-th block argument, where there is one.
void setArgumentNames(mlir::Region &region, std::optional<mlir::ArrayAttr> names,
                      mlir::OpAsmSetValueNameFn setName);
/// Keywords that each set a unit attribute, in any order.
void parseFlags(mlir::OpAsmParser &parser, mlir::OperationState &result,
                llvm::ArrayRef<llvm::StringRef> flags);
/// What an op with a region prints before it: attributes, `names` only where the arguments' SSA
/// names do not say them.
void printAttrsBeforeBody(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                          mlir::ValueRange arguments, std::optional<mlir::ArrayAttr> names,
                          llvm::SmallVector<llvm::StringRef> elided);

/// Every dim of the expressions stands for one of `numDims` values.
mlir::LogicalResult verifyDims(mlir::Operation *op, llvm::ArrayRef<mlir::Attribute> exprs,
                               unsigned numDims);
/// The region yields values of these types.
mlir::LogicalResult verifyYield(mlir::Operation *op, YieldOp yield, mlir::TypeRange types);

} // namespace tegula::tgl

#endif // TEGULA_IR_TGL_TGLOPSCOMMON_H
