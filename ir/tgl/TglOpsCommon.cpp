//===- TglOpsCommon.cpp - What the ops' own code shares ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglOpsCommon.h"
#include "ir/tgl/TglSyntax.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;
using llvm::StringRef;

IndexExprAttr tgl::exprAttr(Builder &builder, IndexOperands &operands, const ValueExpr &expr) {
  return IndexExprAttr::get(builder.getContext(), operands.add(expr));
}

ArrayAttr tgl::exprArrayAttr(Builder &builder, IndexOperands &operands,
                             llvm::ArrayRef<ValueExpr> exprs) {
  llvm::SmallVector<Attribute> attrs;
  for (const ValueExpr &expr : exprs)
    attrs.push_back(exprAttr(builder, operands, expr));
  return builder.getArrayAttr(attrs);
}

llvm::SmallVector<ValueExpr> tgl::valueExprs(ArrayAttr exprs, ValueRange indices) {
  llvm::SmallVector<ValueExpr> result;
  for (Attribute expr : exprs)
    result.push_back(ValueExpr(cast<IndexExprAttr>(expr).getExpr(), indices));
  return result;
}

void tgl::setArgumentNames(Region &region, std::optional<ArrayAttr> names,
                           OpAsmSetValueNameFn setName) {
  if (!names)
    return;
  for (auto [argument, name] : llvm::zip(region.getArguments(), *names))
    if (StringRef text = cast<StringAttr>(name).getValue(); !text.empty())
      setName(argument, text);
}

void tgl::parseFlags(OpAsmParser &parser, OperationState &result, llvm::ArrayRef<StringRef> flags) {
  for (bool found = true; found;) {
    found = false;
    for (StringRef flag : flags) {
      if (failed(parser.parseOptionalKeyword(flag)))
        continue;
      result.addAttribute(flag, parser.getBuilder().getUnitAttr());
      found = true;
    }
  }
}

void tgl::printAttrsBeforeBody(OpAsmPrinter &printer, Operation *op, ValueRange arguments,
                               std::optional<ArrayAttr> names,
                               llvm::SmallVector<StringRef> elided) {
  if (!mustPrintNames(printer, arguments, names))
    elided.push_back("names");
  printer.printOptionalAttrDictWithKeyword(op->getAttrs(), elided);
  printer << ' ';
}

LogicalResult tgl::verifyDims(Operation *op, llvm::ArrayRef<Attribute> exprs, unsigned numIndices) {
  for (Attribute attr : exprs)
    for (const IndexVar &var : cast<IndexExprAttr>(attr).getExpr().variables())
      if (!var.isSymbol() && var.position() >= numIndices)
        return op->emitOpError() << "d" << var.position() << " stands for no value: the op has "
                                 << numIndices << " indices";
  return success();
}

LogicalResult tgl::verifyYield(Operation *op, YieldOp yield, TypeRange types) {
  if (yield.getValues().getTypes() != types) {
    InFlightDiagnostic diag = op->emitOpError("expected to yield (");
    llvm::interleaveComma(types, diag);
    diag << "), found (";
    llvm::interleaveComma(yield.getValues().getTypes(), diag);
    diag << ')';
    return diag;
  }
  return success();
}
