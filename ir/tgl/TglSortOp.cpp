//===- TglSortOp.cpp - Sorting a row in place ---------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/Tgl.h"
#include "ir/tgl/TglOpsCommon.h"
#include "ir/tgl/TglSyntax.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

void SortOp::build(OpBuilder &builder, OperationState &state, Value values, Value positions,
                   llvm::ArrayRef<ValueExpr> subscripts, bool descending) {
  IndexOperands operands;
  state.addAttribute(getSubscriptsAttrName(state.name),
                     exprArrayAttr(builder, operands, subscripts));
  if (descending)
    state.addAttribute(getDescendingAttrName(state.name), builder.getUnitAttr());
  state.addOperands({values, positions});
  state.addOperands(operands.values());
}

llvm::SmallVector<ValueExpr> SortOp::getSubscriptExprs() {
  return valueExprs(getSubscripts(), getIndices());
}

ParseResult SortOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  OpAsmParser::UnresolvedOperand values, positions;
  llvm::SmallVector<IndexExpr> subscripts;
  Type valuesType, positionsType;
  if (parser.parseOperand(values) || parser.parseComma() || parser.parseOperand(positions) ||
      exprs.parseSubscripts(subscripts))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("descending")))
    result.addAttribute(getDescendingAttrName(result.name), parser.getBuilder().getUnitAttr());
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(valuesType) || parser.parseComma() || parser.parseType(positionsType) ||
      parser.resolveOperand(values, valuesType, result.operands) ||
      parser.resolveOperand(positions, positionsType, result.operands) || exprs.resolve(result))
    return failure();
  result.addAttribute(getSubscriptsAttrName(result.name), exprs.attr(subscripts));
  return success();
}

void SortOp::print(OpAsmPrinter &printer) {
  printer << " " << getValues() << ", " << getPositions();
  ExprPrinter(printer, getIndices()).printSubscripts(getSubscripts());
  if (getDescending())
    printer << " descending";
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getSubscriptsAttrName(), getDescendingAttrName()});
  printer << " : " << getValues().getType() << ", " << getPositions().getType();
}

LogicalResult SortOp::verify() {
  auto values = cast<TglTensorType>(getValues().getType());
  auto positions = cast<TglTensorType>(getPositions().getType());
  if (values.getDims() != positions.getDims())
    return emitOpError() << "expected tensors of one shape, found " << values << " and "
                         << positions;
  if (!positions.getElementType().isInteger(64))
    return emitOpError() << "expected positions of type i64, found " << positions.getElementType();
  if (getSubscripts().size() + 1 != values.getRank())
    return emitOpError() << "expected " << int64_t(values.getRank()) - 1
                         << " subscripts, of all dims but the last, found "
                         << getSubscripts().size();
  return verifyDims(*this, getSubscripts().getValue(), getIndices().size());
}
