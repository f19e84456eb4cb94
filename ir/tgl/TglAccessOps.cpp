//===- TglAccessOps.cpp - Integers, reads, writes and conversions ----------------===//
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
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// tgl.index
//===----------------------------------------------------------------------===//

void IndexOp::build(OpBuilder &builder, OperationState &state, const ValueExpr &value) {
  state.addAttribute(getExprAttrName(state.name),
                     IndexExprAttr::get(builder.getContext(), value.expr()));
  state.addOperands(value.operands());
  state.addTypes(builder.getIndexType());
}

ParseResult IndexOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  IndexExpr expr;
  if (exprs.parseExpr(expr) || parser.parseOptionalAttrDict(result.attributes) ||
      exprs.resolve(result))
    return failure();
  result.addAttribute(getExprAttrName(result.name), exprs.attr(expr));
  result.addTypes(parser.getBuilder().getIndexType());
  return success();
}

void IndexOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  ExprPrinter(printer, getIndices()).print(getExpr());
  printer.printOptionalAttrDict((*this)->getAttrs(), {getExprAttrName()});
}

LogicalResult IndexOp::verify() { return verifyDims(*this, {getExpr()}, getIndices().size()); }

OpFoldResult IndexOp::fold(FoldAdaptor adaptor) {
  auto constantOf = [&](const IndexVar &var) -> std::optional<IndexExpr> {
    if (var.isSymbol())
      return std::nullopt;
    auto value = dyn_cast_or_null<IntegerAttr>(adaptor.getIndices()[var.position()]);
    if (!value)
      return std::nullopt;
    return IndexExpr(value.getInt());
  };
  IndexExpr expr = getExpr().getExpr().substitute(constantOf);
  if (std::optional<int64_t> constant = expr.asConstant())
    return IntegerAttr::get(IndexType::get(getContext()), *constant);
  if (Value value = ValueExpr(expr, getIndices()).asValue())
    return value;
  return {};
}

//===----------------------------------------------------------------------===//
// tgl.read
//===----------------------------------------------------------------------===//

void ReadOp::build(OpBuilder &builder, OperationState &state, Value tensor,
                   llvm::ArrayRef<ValueExpr> subscripts, Value fill, Value guard,
                   llvm::ArrayRef<std::pair<ValueExpr, ValueExpr>> exact, StringRef checked) {
  IndexOperands operands;
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.subscripts = exprArrayAttr(builder, operands, subscripts);
  llvm::SmallVector<ValueExpr> numerators, denominators;
  for (const auto &[numerator, denominator] : exact) {
    numerators.push_back(numerator);
    denominators.push_back(denominator);
  }
  properties.exactNumerators = exprArrayAttr(builder, operands, numerators);
  properties.exactDenominators = exprArrayAttr(builder, operands, denominators);
  if (!checked.empty())
    properties.checked = builder.getStringAttr(checked);
  state.addOperands(tensor);
  state.addOperands(operands.values());
  if (guard)
    state.addOperands(guard);
  if (fill)
    state.addOperands(fill);
  properties.setOperandSegmentSizes(
      {1, int32_t(operands.values().size()), guard ? 1 : 0, fill ? 1 : 0});
  state.addTypes(cast<TglTensorType>(tensor.getType()).getComputeType());
}

llvm::SmallVector<ValueExpr> ReadOp::getSubscriptExprs() {
  return valueExprs(getSubscripts(), getIndices());
}

llvm::SmallVector<std::pair<ValueExpr, ValueExpr>> ReadOp::getExactExprs() {
  llvm::SmallVector<std::pair<ValueExpr, ValueExpr>> result;
  for (auto [numerator, denominator] :
       llvm::zip_equal(valueExprs(getExactNumerators(), getIndices()),
                       valueExprs(getExactDenominators(), getIndices())))
    result.push_back({numerator, denominator});
  return result;
}

ParseResult ReadOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  ExprParser exprs(parser);
  OpAsmParser::UnresolvedOperand tensor, guard, fill;
  llvm::SmallVector<IndexExpr> subscripts, numerators, denominators;
  bool hasGuard = false, hasFill = false;
  TglTensorType type;
  if (parser.parseOperand(tensor) || exprs.parseSubscripts(subscripts))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("exact"))) {
    auto parseExact = [&]() -> ParseResult {
      if (exprs.parseExpr(numerators.emplace_back()) || parser.parseKeyword("by"))
        return failure();
      return exprs.parseExpr(denominators.emplace_back());
    };
    if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseExact))
      return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("fill"))) {
    hasFill = true;
    if (parser.parseOperand(fill))
      return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("if"))) {
    hasGuard = true;
    if (parser.parseOperand(guard))
      return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("checked"))) {
    std::string text;
    if (parser.parseString(&text))
      return failure();
    result.addAttribute(getCheckedAttrName(result.name), builder.getStringAttr(text));
  }
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(type) || parser.resolveOperand(tensor, type, result.operands) ||
      exprs.resolve(result) ||
      (hasGuard && parser.resolveOperand(guard, builder.getI1Type(), result.operands)) ||
      (hasFill && parser.resolveOperand(fill, type.getComputeType(), result.operands)))
    return failure();
  result.addAttribute(getSubscriptsAttrName(result.name), exprs.attr(subscripts));
  result.addAttribute(getExactNumeratorsAttrName(result.name), exprs.attr(numerators));
  result.addAttribute(getExactDenominatorsAttrName(result.name), exprs.attr(denominators));
  result.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {1, int32_t(exprs.numIndices()), hasGuard, hasFill});
  result.addTypes(type.getComputeType());
  return success();
}

void ReadOp::print(OpAsmPrinter &printer) {
  ExprPrinter exprs(printer, getIndices());
  printer << ' ' << getTensor();
  exprs.printSubscripts(getSubscripts());
  if (!getExactNumerators().empty()) {
    printer << " exact (";
    llvm::interleaveComma(llvm::seq(getExactNumerators().size()), printer, [&](size_t k) {
      exprs.print(getExactNumerators()[k]);
      printer << " by ";
      exprs.print(getExactDenominators()[k]);
    });
    printer << ')';
  }
  if (getFill())
    printer << " fill " << getFill();
  if (getGuard())
    printer << " if " << getGuard();
  if (std::optional<StringRef> checked = getChecked()) {
    printer << " checked ";
    printer.printString(*checked);
  }
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getSubscriptsAttrName(), getExactNumeratorsAttrName(),
                                 getExactDenominatorsAttrName(), getCheckedAttrName(),
                                 getOperandSegmentSizesAttrName()});
  printer << " : " << getTensor().getType();
}

LogicalResult ReadOp::verify() {
  TglTensorType type = getTensorType();
  if (getSubscripts().size() != type.getRank())
    return emitOpError() << "expected " << type.getRank() << " subscripts for " << type
                         << ", found " << getSubscripts().size();
  if (getExactNumerators().size() != getExactDenominators().size())
    return emitOpError("expected as many exact denominators as numerators");
  if (getType() != type.getComputeType())
    return emitOpError() << "expected result type " << type.getComputeType() << ", found "
                         << getType();
  if (getFill() && getFill().getType() != getType())
    return emitOpError() << "expected fill type " << getType() << ", found " << getFill().getType();
  if (getFill() && getChecked())
    return emitOpError("expected either fill or checked: with a fill no subscript is bad");
  for (ArrayAttr exprs : {getSubscripts(), getExactNumerators(), getExactDenominators()})
    if (failed(verifyDims(*this, exprs.getValue(), getIndices().size())))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// tgl.write
//===----------------------------------------------------------------------===//

void WriteOp::build(OpBuilder &builder, OperationState &state, Value value, Value tensor,
                    llvm::ArrayRef<ValueExpr> subscripts, Value guard,
                    std::optional<ReduceKind> combine, StringRef checked) {
  IndexOperands operands;
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.subscripts = exprArrayAttr(builder, operands, subscripts);
  if (combine)
    properties.combine = ReduceKindAttr::get(builder.getContext(), *combine);
  if (!checked.empty())
    properties.checked = builder.getStringAttr(checked);
  state.addOperands({value, tensor});
  state.addOperands(operands.values());
  if (guard)
    state.addOperands(guard);
  properties.setOperandSegmentSizes({1, 1, int32_t(operands.values().size()), guard ? 1 : 0, 0, 0});
}

llvm::SmallVector<ValueExpr> WriteOp::getSubscriptExprs() {
  return valueExprs(getSubscripts(), getIndices());
}

/// What stands before the value of a write that combines.
static StringRef keywordOf(ReduceKind combine) {
  return combine == ReduceKind::Sum ? "add" : stringifyReduceKind(combine);
}

ParseResult WriteOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  ExprParser exprs(parser);
  OpAsmParser::UnresolvedOperand value, tensor, guard, replaced, unless;
  llvm::SmallVector<IndexExpr> subscripts;
  bool hasGuard = false, replaces = false;
  Type valueType;
  TglTensorType type;
  for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Any})
    if (succeeded(parser.parseOptionalKeyword(keywordOf(kind)))) {
      result.addAttribute(getCombineAttrName(result.name),
                          ReduceKindAttr::get(builder.getContext(), kind));
      break;
    }
  if (parser.parseOperand(value) || parser.parseComma() || parser.parseOperand(tensor) ||
      exprs.parseSubscripts(subscripts))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("replaces"))) {
    replaces = true;
    if (parser.parseOperand(replaced) || parser.parseKeyword("unless") ||
        parser.parseOperand(unless))
      return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("if"))) {
    hasGuard = true;
    if (parser.parseOperand(guard))
      return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("checked"))) {
    std::string text;
    if (parser.parseString(&text))
      return failure();
    result.addAttribute(getCheckedAttrName(result.name), builder.getStringAttr(text));
  }
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(valueType) || parser.parseComma() || parser.parseType(type) ||
      parser.resolveOperand(value, valueType, result.operands) ||
      parser.resolveOperand(tensor, type, result.operands) || exprs.resolve(result) ||
      (hasGuard && parser.resolveOperand(guard, builder.getI1Type(), result.operands)) ||
      (replaces && (parser.resolveOperand(replaced, valueType, result.operands) ||
                    parser.resolveOperand(unless, builder.getI1Type(), result.operands))))
    return failure();
  result.addAttribute(getSubscriptsAttrName(result.name), exprs.attr(subscripts));
  result.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {1, 1, int32_t(exprs.numIndices()), hasGuard, replaces, replaces});
  return success();
}

void WriteOp::print(OpAsmPrinter &printer) {
  if (std::optional<ReduceKind> combine = getCombine())
    printer << ' ' << keywordOf(*combine);
  printer << ' ' << getValue() << ", " << getTensor();
  ExprPrinter(printer, getIndices()).printSubscripts(getSubscripts());
  if (getReplaced())
    printer << " replaces " << getReplaced() << " unless " << getUnless();
  if (getGuard())
    printer << " if " << getGuard();
  if (std::optional<StringRef> checked = getChecked()) {
    printer << " checked ";
    printer.printString(*checked);
  }
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getSubscriptsAttrName(), getCombineAttrName(),
                                 getCheckedAttrName(), getOperandSegmentSizesAttrName()});
  printer << " : " << getValue().getType() << ", " << getTensor().getType();
}

LogicalResult WriteOp::verify() {
  TglTensorType type = getTensorType();
  if (getSubscripts().size() != type.getRank())
    return emitOpError() << "expected " << type.getRank() << " subscripts for " << type
                         << ", found " << getSubscripts().size();
  if (getValue().getType() != type.getComputeType())
    return emitOpError() << "expected a value of type " << type.getComputeType() << " for " << type
                         << ", found " << getValue().getType();
  if (std::optional<ReduceKind> combine = getCombine()) {
    if (type.getElementType().isInteger(1) && *combine != ReduceKind::Any)
      return emitOpError("expected numbers to ")
             << (*combine == ReduceKind::Sum ? "add" : "compare") << ", found i1";
    if (*combine != ReduceKind::Sum && *combine != ReduceKind::Max && *combine != ReduceKind::Min &&
        *combine != ReduceKind::Any)
      return emitOpError() << "expected sum, max, min or any, found "
                           << stringifyReduceKind(*combine);
  }
  if (!getReplaced() != !getUnless())
    return emitOpError("expected a value that is replaced, and where it is not");
  if (getReplaced() && (getCombine() != ReduceKind::Max || !type.getElementType().isInteger() ||
                        getReplaced().getType() != getValue().getType()))
    return emitOpError("expected the largest of integers, of which one is replaced");
  return verifyDims(*this, getSubscripts().getValue(), getIndices().size());
}

//===----------------------------------------------------------------------===//
// tgl.convert
//===----------------------------------------------------------------------===//

void ConvertOp::build(OpBuilder &builder, OperationState &state, Value value, Type target,
                      bool nearest) {
  state.addOperands(value);
  state.addAttribute(getTargetAttrName(state.name), TypeAttr::get(target));
  if (nearest)
    state.addAttribute(getNearestAttrName(state.name), builder.getUnitAttr());
  state.addTypes(getComputeType(target));
}

LogicalResult ConvertOp::verify() {
  if (!isElementType(getTarget()))
    return emitOpError() << "expected an element type, found " << getTarget();
  if (getType() != getComputeType(getTarget()))
    return emitOpError() << "expected result type " << getComputeType(getTarget()) << ", found "
                         << getType();
  if (getNearest() && isa<FloatType>(getTarget()))
    return emitOpError("expected nearest with an integer target: floats always round to nearest");
  if (isa<IndexType>(getValue().getType()))
    return emitOpError("expected a number, found index");
  return success();
}
