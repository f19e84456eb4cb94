//===- TglAxesOps.cpp - Parallels, reductions and scans --------------------------===//
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

YieldOp ReduceOp::getYield() { return cast<YieldOp>(getBody().front().getTerminator()); }
YieldOp ScanOp::getYield() { return cast<YieldOp>(getBody().front().getTerminator()); }

//===----------------------------------------------------------------------===//
// What ops with axes share
//===----------------------------------------------------------------------===//

/// Bounds and names as attributes, the block with its axes; the operands are the caller's to add.
static void buildAxes(OpBuilder &builder, OperationState &state, llvm::ArrayRef<AxisSpec> axes,
                      IndexOperands &operands) {
  llvm::SmallVector<Attribute> lows, highs, names;
  Block &block = state.addRegion()->emplaceBlock();
  for (const AxisSpec &axis : axes) {
    lows.push_back(exprAttr(builder, operands, axis.lo));
    highs.push_back(exprAttr(builder, operands, axis.hi));
    names.push_back(builder.getStringAttr(axis.name));
    block.addArgument(builder.getIndexType(), state.location);
  }
  state.addAttribute("lows", builder.getArrayAttr(lows));
  state.addAttribute("highs", builder.getArrayAttr(highs));
  if (llvm::any_of(axes, [](const AxisSpec &axis) { return !axis.name.empty(); }))
    state.addAttribute("names", builder.getArrayAttr(names));
}

/// Axes are index block arguments whose bounds use operands and earlier axes.
static LogicalResult verifyAxes(AxesOp op, unsigned numIndices) {
  ArrayAttr lows = op.getLows(), highs = op.getHighs();
  if (lows.size() != highs.size())
    return op->emitOpError("expected as many upper as lower bounds");
  Block *block = op.getAxesBlock();
  if (block->getNumArguments() != lows.size())
    return op->emitOpError() << "expected a block argument for each of " << lows.size()
                             << " axes, found " << block->getNumArguments();
  for (auto [k, axis] : llvm::enumerate(op.getAxes())) {
    if (!isa<IndexType>(axis.getType()))
      return op->emitOpError() << "expected axes of type index, found " << axis.getType();
    for (Attribute bound : {lows[k], highs[k]})
      for (const IndexVar &var : cast<IndexExprAttr>(bound).getExpr().variables())
        if (!var.isSymbol() && var.position() >= numIndices + k)
          return op->emitOpError() << "expected the bounds of axis " << k
                                   << " to use indices and earlier axes, found d" << var.position();
  }
  if (op.getNames() && op.getNames()->size() != lows.size())
    return op->emitOpError("expected a name for each axis");
  return success();
}

//===----------------------------------------------------------------------===//
// tgl.parallel
//===----------------------------------------------------------------------===//

void ParallelOp::build(OpBuilder &builder, OperationState &state, llvm::ArrayRef<AxisSpec> axes,
                       StringRef mapping) {
  IndexOperands operands;
  buildAxes(builder, state, axes, operands);
  state.addOperands(operands.values());
  if (!mapping.empty())
    state.addAttribute(getMappingAttrName(state.name), builder.getStringAttr(mapping));
}

void ParallelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  setArgumentNames(region, getNames(), setName);
}

ParseResult ParallelOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  llvm::SmallVector<IndexExpr> lows, highs;
  if (exprs.parseAxes(lows, highs))
    return failure();
  if (ArrayAttr names = namesFromArguments(parser.getBuilder(), exprs.axes()))
    result.addAttribute(getNamesAttrName(result.name), names);
  NamedAttrList attrs;
  if (parser.parseOptionalAttrDictWithKeyword(attrs) || exprs.resolve(result))
    return failure();
  for (NamedAttribute attr : attrs)
    result.attributes.set(attr.getName(), attr.getValue());
  result.addAttribute(getLowsAttrName(result.name), exprs.attr(lows));
  result.addAttribute(getHighsAttrName(result.name), exprs.attr(highs));
  return parseBody(parser, result, exprs.axes());
}

void ParallelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  ValueRange axes = getBody().getArguments();
  ExprPrinter(printer, getIndices(), axes).printAxes(getLows(), getHighs());
  printAttrsBeforeBody(printer, *this, axes, getNames(), {getLowsAttrName(), getHighsAttrName()});
  printer.printRegion(getBody(), false, /*printBlockTerminators=*/true);
}

LogicalResult ParallelOp::verify() { return verifyAxes(*this, getIndices().size()); }

//===----------------------------------------------------------------------===//
// tgl.reduce
//===----------------------------------------------------------------------===//

void ReduceOp::build(OpBuilder &builder, OperationState &state, Type result, ReduceKind kind,
                     llvm::ArrayRef<AxisSpec> axes, bool filtered, bool unbiased) {
  IndexOperands operands;
  buildAxes(builder, state, axes, operands);
  state.addOperands(operands.values());
  state.addAttribute(getKindAttrName(state.name), ReduceKindAttr::get(builder.getContext(), kind));
  if (filtered)
    state.addAttribute(getFilteredAttrName(state.name), builder.getUnitAttr());
  if (unbiased)
    state.addAttribute(getUnbiasedAttrName(state.name), builder.getUnitAttr());
  state.addTypes(result);
}

Value ReduceOp::getReduced() { return getYield().getValues()[0]; }
Value ReduceOp::getFilter() { return getFiltered() ? getYield().getValues()[1] : Value(); }

void ReduceOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  setArgumentNames(region, getNames(), setName);
}

/// The rest of a reduction or scan: `-> type attrs region`.
static ParseResult parseResultAndBody(OpAsmParser &parser, OperationState &result,
                                      ExprParser &exprs) {
  Type type;
  NamedAttrList attrs;
  if (parser.parseArrow() || parser.parseType(type) ||
      parser.parseOptionalAttrDictWithKeyword(attrs))
    return failure();
  result.addTypes(type);
  if (ArrayAttr names = namesFromArguments(parser.getBuilder(), exprs.axes()))
    result.addAttribute("names", names);
  for (NamedAttribute attr : attrs)
    result.attributes.set(attr.getName(), attr.getValue());
  return parseBody(parser, result, exprs.axes());
}

ParseResult ReduceOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  llvm::SmallVector<IndexExpr> lows, highs;
  StringRef word;
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<ReduceKind> kind = symbolizeReduceKind(word);
  if (!kind)
    return parser.emitError(location, "expected a kind of reduction, found '") << word << "'";
  result.addAttribute(getKindAttrName(result.name),
                      ReduceKindAttr::get(parser.getContext(), *kind));
  parseFlags(parser, result, {"filtered", "unbiased"});
  if (exprs.parseAxes(lows, highs) || exprs.resolve(result))
    return failure();
  result.addAttribute(getLowsAttrName(result.name), exprs.attr(lows));
  result.addAttribute(getHighsAttrName(result.name), exprs.attr(highs));
  return parseResultAndBody(parser, result, exprs);
}

void ReduceOp::print(OpAsmPrinter &printer) {
  printer << ' ' << stringifyReduceKind(getKind()) << ' ';
  if (getFiltered())
    printer << "filtered ";
  if (getUnbiased())
    printer << "unbiased ";
  ValueRange axes = getBody().getArguments();
  ExprPrinter(printer, getIndices(), axes).printAxes(getLows(), getHighs());
  printer << " -> " << getType();
  printAttrsBeforeBody(printer, *this, axes, getNames(),
                       {getLowsAttrName(), getHighsAttrName(), getKindAttrName(),
                        getFilteredAttrName(), getUnbiasedAttrName()});
  printer.printRegion(getBody(), false, true);
}

static bool isNumber(Type type) {
  return type.isF32() || type.isF64() || type.isInteger(32) || type.isInteger(64);
}

LogicalResult ReduceOp::verify() {
  if (failed(verifyAxes(*this, getIndices().size())))
    return failure();
  Type type = getType(), i1 = IntegerType::get(getContext(), 1);
  Type reduced = type;
  switch (getKind()) {
  case ReduceKind::Sum:
  case ReduceKind::Prod:
  case ReduceKind::Max:
  case ReduceKind::Min:
    if (!isNumber(type))
      return emitOpError() << "expected a number (i32, i64, f32, f64), found " << type;
    break;
  case ReduceKind::Mean:
  case ReduceKind::Var:
  case ReduceKind::LogSumExp:
    if (!isa<FloatType>(type))
      return emitOpError() << "expected f32 or f64, found " << type;
    break;
  case ReduceKind::Any:
  case ReduceKind::All:
    if (type != i1)
      return emitOpError() << "expected result type i1, found " << type;
    break;
  case ReduceKind::Count:
    if (!type.isInteger(32) && !type.isInteger(64))
      return emitOpError() << "expected result type i32 or i64, found " << type;
    reduced = i1;
    break;
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin:
    if (!type.isInteger(64))
      return emitOpError() << "expected result type i64, found " << type;
    if (getLows().size() != 1)
      return emitOpError() << "expected one axis, found " << getLows().size();
    if (getYield().getValues().empty() || !isNumber(getReduced().getType()))
      return emitOpError("expected to yield a number (i32, i64, f32, f64)");
    reduced = getReduced().getType();
    break;
  }
  if (getUnbiased() && getKind() != ReduceKind::Var)
    return emitOpError("expected unbiased with var only");
  llvm::SmallVector<Type> yielded{reduced};
  if (getFiltered())
    yielded.push_back(i1);
  return verifyYield(*this, getYield(), yielded);
}

//===----------------------------------------------------------------------===//
// tgl.scan
//===----------------------------------------------------------------------===//

void ScanOp::build(OpBuilder &builder, OperationState &state, Type result, ScanKind kind,
                   llvm::ArrayRef<AxisSpec> axes, llvm::ArrayRef<ValueExpr> positions, Value init,
                   bool reverse, bool exclusive, bool descending) {
  IndexOperands operands;
  buildAxes(builder, state, axes, operands);
  state.addAttribute(getPositionsAttrName(state.name), exprArrayAttr(builder, operands, positions));
  state.addAttribute(getKindAttrName(state.name), ScanKindAttr::get(builder.getContext(), kind));
  state.addOperands(operands.values());
  if (init)
    state.addOperands(init);
  state.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {int32_t(operands.values().size()), init ? 1 : 0});
  auto flag = [&](bool set, StringAttr name) {
    if (set)
      state.addAttribute(name, builder.getUnitAttr());
  };
  flag(reverse, getReverseAttrName(state.name));
  flag(exclusive, getExclusiveAttrName(state.name));
  flag(descending, getDescendingAttrName(state.name));
  state.addTypes(result);
}

llvm::SmallVector<ValueExpr> ScanOp::getPositionExprs() {
  return valueExprs(getPositions(), getIndices());
}

void ScanOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  setArgumentNames(region, getNames(), setName);
}

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  llvm::SmallVector<IndexExpr> lows, highs, positions;
  StringRef word;
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<ScanKind> kind = symbolizeScanKind(word);
  if (!kind)
    return parser.emitError(location, "expected a kind of scan, found '") << word << "'";
  result.addAttribute(getKindAttrName(result.name), ScanKindAttr::get(parser.getContext(), *kind));
  parseFlags(parser, result, {"reverse", "exclusive", "descending"});
  OpAsmParser::UnresolvedOperand init;
  bool hasInit = false;
  if (exprs.parseAxes(lows, highs) || parser.parseKeyword("at") || exprs.parseSubscripts(positions))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("init"))) {
    hasInit = true;
    if (parser.parseOperand(init))
      return failure();
  }
  if (exprs.resolve(result))
    return failure();
  result.addAttribute(getLowsAttrName(result.name), exprs.attr(lows));
  result.addAttribute(getHighsAttrName(result.name), exprs.attr(highs));
  result.addAttribute(getPositionsAttrName(result.name), exprs.attr(positions));
  result.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {int32_t(exprs.numIndices()), hasInit});
  if (parseResultAndBody(parser, result, exprs))
    return failure();
  return hasInit ? parser.resolveOperand(init, result.types[0], result.operands) : success();
}

void ScanOp::print(OpAsmPrinter &printer) {
  printer << ' ' << stringifyScanKind(getKind()) << ' ';
  if (getReverse())
    printer << "reverse ";
  if (getExclusive())
    printer << "exclusive ";
  if (getDescending())
    printer << "descending ";
  ValueRange axes = getBody().getArguments();
  ExprPrinter exprs(printer, getIndices(), axes);
  exprs.printAxes(getLows(), getHighs());
  printer << " at ";
  exprs.printSubscripts(getPositions());
  if (getInit())
    printer << " init " << getInit();
  printer << " -> " << getType();
  printAttrsBeforeBody(printer, *this, axes, getNames(),
                       {getLowsAttrName(), getHighsAttrName(), getKindAttrName(),
                        getPositionsAttrName(), getReverseAttrName(), getExclusiveAttrName(),
                        getDescendingAttrName(), getOperandSegmentSizesAttrName()});
  printer.printRegion(getBody(), false, true);
}

LogicalResult ScanOp::verify() {
  if (failed(verifyAxes(*this, getIndices().size())) ||
      failed(verifyDims(*this, getPositions().getValue(), getIndices().size())))
    return failure();
  Type type = getType();
  ScanKind kind = getKind();
  bool cumulative = kind == ScanKind::CumSum || kind == ScanKind::CumProd ||
                    kind == ScanKind::CumMax || kind == ScanKind::CumMin;
  bool softmax = kind == ScanKind::Softmax || kind == ScanKind::LogSoftmax;
  bool sorts = kind == ScanKind::Sort || kind == ScanKind::ArgSort;
  bool givesPlace = kind == ScanKind::ArgSort || kind == ScanKind::TopKIndex;
  if (getLows().empty() || (!softmax && getLows().size() != 1))
    return emitOpError() << "expected one axis, found " << getLows().size();
  if (getPositions().size() != getLows().size())
    return emitOpError() << "expected a position for each of " << getLows().size()
                         << " axes, found " << getPositions().size();
  if (getReverse() && !cumulative && kind != ScanKind::Recurrence)
    return emitOpError("expected reverse with cumulative scans and recurrence only");
  if (getExclusive() && !cumulative)
    return emitOpError("expected exclusive with cumulative scans only");
  if (getExclusive() && (kind == ScanKind::CumMax || kind == ScanKind::CumMin) &&
      !isa<FloatType>(type))
    return emitOpError("expected floats in an exclusive maximum or minimum: integers have no "
                       "value to start from");
  if (getDescending() && !sorts)
    return emitOpError("expected descending with sort and argsort only");
  if (getInit() && kind != ScanKind::Recurrence)
    return emitOpError("expected init with recurrence only");
  if (getInit() && getInit().getType() != type)
    return emitOpError() << "expected init of type " << type << ", found " << getInit().getType();
  if (givesPlace ? !type.isInteger(64) : !isNumber(type))
    return emitOpError() << "expected result type " << (givesPlace ? "i64" : "i32, i64, f32 or f64")
                         << ", found " << type;
  if ((softmax || kind == ScanKind::Recurrence) && !isa<FloatType>(type))
    return emitOpError() << "expected f32 or f64, found " << type;
  Type scanned = type;
  if (givesPlace) {
    if (getYield().getValues().empty() || !isNumber(getYield().getValues()[0].getType()))
      return emitOpError("expected to yield a number (i32, i64, f32, f64)");
    scanned = getYield().getValues()[0].getType();
  }
  llvm::SmallVector<Type> yielded(kind == ScanKind::Recurrence ? 2 : 1, scanned);
  return verifyYield(*this, getYield(), yielded);
}
