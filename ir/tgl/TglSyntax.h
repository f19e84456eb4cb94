//===- TglSyntax.h - Integer expressions in textual IR ------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Custom formats are made of these: expressions over SSA names (`%p + %r - pad`), lists of them,
// axes (`(%i = 0 to M, %j = 0 to %i + 1)`), and expressions over dims in attributes.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGL_TGLSYNTAX_H
#define TEGULA_IR_TGL_TGLSYNTAX_H

#include "ir/tgl/Tgl.h"

namespace tegula::tgl {

/// An expression inside an attribute: dims are `d0`, `d1`, ....
mlir::ParseResult parseIndexExpr(mlir::AsmParser &parser, IndexExpr &result);
void printIndexExpr(mlir::AsmPrinter &printer, const IndexExpr &expr);
/// `e, e, ...` without brackets, at least one.
mlir::ParseResult parseIndexExprList(mlir::AsmParser &parser,
                                     llvm::SmallVectorImpl<IndexExprAttr> &result);

/// Parses the expressions of one op: its SSA names become `indices` in order of first use.
class ExprParser {
public:
  explicit ExprParser(mlir::OpAsmParser &parser) : parser(parser) {}

  mlir::ParseResult parseExpr(IndexExpr &result);
  /// `[e, e, ...]`, perhaps empty.
  mlir::ParseResult parseSubscripts(llvm::SmallVectorImpl<IndexExpr> &result);
  /// `(%i = lo to hi, ...)`: block arguments of type index, which later expressions may name.
  mlir::ParseResult parseAxes(llvm::SmallVectorImpl<IndexExpr> &lows,
                              llvm::SmallVectorImpl<IndexExpr> &highs);
  llvm::SmallVector<mlir::OpAsmParser::Argument> &axes() { return ownAxes; }

  /// To be called once all is parsed: adds the operands and gives dims their final numbers.
  mlir::ParseResult resolve(mlir::OperationState &result);
  IndexExprAttr attr(const IndexExpr &expr);
  mlir::ArrayAttr attr(llvm::ArrayRef<IndexExpr> exprs);
  size_t numIndices() const { return operands.size(); }

  IndexExpr variable(const mlir::OpAsmParser::UnresolvedOperand &name);

private:
  mlir::OpAsmParser &parser;
  llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand> operands;
  llvm::SmallVector<mlir::OpAsmParser::Argument> ownAxes;
};

/// Prints an expression of an op whose dims are `indices`, then `axes`.
class ExprPrinter {
public:
  ExprPrinter(mlir::OpAsmPrinter &printer, mlir::ValueRange indices, mlir::ValueRange axes = {})
      : printer(printer), indices(indices), axes(axes) {}
  void print(mlir::Attribute expr);
  void printSubscripts(mlir::ArrayAttr exprs);
  void printAxes(mlir::ArrayAttr lows, mlir::ArrayAttr highs);

private:
  mlir::OpAsmPrinter &printer;
  mlir::ValueRange indices, axes;
};

/// The names of block arguments are attributes; text keeps them as SSA names where it can.
/// What `names` should be for arguments that were spelled so; null where all are numbered.
mlir::ArrayAttr namesFromArguments(mlir::Builder &builder,
                                   llvm::ArrayRef<mlir::OpAsmParser::Argument> arguments);
/// True when reading the printed arguments would not give `names` back.
bool mustPrintNames(mlir::OpAsmPrinter &printer, mlir::ValueRange arguments,
                    std::optional<mlir::ArrayAttr> names);
/// Parses a region whose entry block has these arguments, also where it is empty.
mlir::ParseResult parseBody(mlir::OpAsmParser &parser, mlir::OperationState &result,
                            llvm::ArrayRef<mlir::OpAsmParser::Argument> arguments);

} // namespace tegula::tgl

#endif // TEGULA_IR_TGL_TGLSYNTAX_H
