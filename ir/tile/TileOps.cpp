//===- TileOps.cpp - Kernels, spans and loops of the tile dialect -------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglOpsCommon.h"
#include "ir/tgl/TglSyntax.h"
#include "ir/tgl/TglUtils.h"
#include "ir/tile/Tile.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tile;
using namespace tegula::tgl; // syntax of expressions
using llvm::StringRef;

#define GET_OP_CLASSES
#include "ir/tile/TileOps.cpp.inc"

void TileDialect::registerOperations() {
  addOperations<
#define GET_OP_LIST
#include "ir/tile/TileOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// tile.kernel
//===----------------------------------------------------------------------===//

void tile::KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                           llvm::ArrayRef<AxisSpec> axes) {
  IndexOperands operands;
  llvm::SmallVector<Attribute> lows, highs, names;
  Block &block = state.addRegion()->emplaceBlock();
  for (const AxisSpec &axis : axes) {
    lows.push_back(exprAttr(builder, operands, axis.lo));
    highs.push_back(exprAttr(builder, operands, axis.hi));
    names.push_back(builder.getStringAttr(axis.name));
    block.addArgument(builder.getIndexType(), state.location);
  }
  state.addAttribute(getNameAttrName(state.name), builder.getStringAttr(name));
  state.addAttribute(getLowsAttrName(state.name), builder.getArrayAttr(lows));
  state.addAttribute(getHighsAttrName(state.name), builder.getArrayAttr(highs));
  state.addAttribute(getNamesAttrName(state.name), builder.getArrayAttr(names));
  state.addOperands(operands.values());
  state.addRegion()->emplaceBlock();
}

void tile::KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (&region == &getBody())
    setArgumentNames(region, getNames(), setName);
}

ParseResult tile::KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  llvm::SmallVector<IndexExpr> lows, highs;
  StringAttr name;
  if (parser.parseAttribute(name) || exprs.parseAxes(lows, highs))
    return failure();
  result.addAttribute(getNameAttrName(result.name), name);
  if (ArrayAttr names = namesFromArguments(parser.getBuilder(), exprs.axes()))
    result.addAttribute(getNamesAttrName(result.name), names);
  NamedAttrList attrs;
  if (parser.parseOptionalAttrDictWithKeyword(attrs) || exprs.resolve(result))
    return failure();
  for (NamedAttribute attr : attrs)
    result.attributes.set(attr.getName(), attr.getValue());
  result.addAttribute(getLowsAttrName(result.name), exprs.attr(lows));
  result.addAttribute(getHighsAttrName(result.name), exprs.attr(highs));
  if (parseBody(parser, result, exprs.axes()))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("otherwise")))
    return parseBody(parser, result, {});
  result.addRegion()->emplaceBlock();
  return success();
}

void tile::KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getNameAttr() << ' ';
  ValueRange axes = getBody().getArguments();
  ExprPrinter(printer, getIndices(), axes).printAxes(getLows(), getHighs());
  printAttrsBeforeBody(printer, *this, axes, getNames(),
                       {getNameAttrName(), getLowsAttrName(), getHighsAttrName()});
  printer.printRegion(getBody(), false, true);
  if (getOtherwise().front().empty())
    return;
  printer << " otherwise ";
  printer.printRegion(getOtherwise(), false, true);
}

LogicalResult tile::KernelOp::verify() {
  if (getLows().size() != getHighs().size() || getBody().getNumArguments() != getLows().size())
    return emitOpError("expected a block argument, a lower and an upper bound for each axis");
  for (auto [k, axis] : llvm::enumerate(getBody().getArguments())) {
    if (!isa<IndexType>(axis.getType()))
      return emitOpError() << "expected axes of type index, found " << axis.getType();
    if (failed(verifyDims(*this, {getLows()[k], getHighs()[k]}, getIndices().size() + k)))
      return failure();
  }
  if (!getSharedBytes())
    return success();
  if (!getThreads())
    return emitOpError("expected threads where there are shared_bytes");
  WalkResult fits = getBody().walk([&](AllocOp alloc) {
    if (alloc.getOffset() && *alloc.getOffset() + alloc.getBytes() <= *getSharedBytes())
      return WalkResult::advance();
    alloc.emitOpError() << "expected a place in the " << *getSharedBytes()
                        << " bytes of the kernel";
    return WalkResult::interrupt();
  });
  return failure(fits.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// tile.span
//===----------------------------------------------------------------------===//

void SpanOp::build(OpBuilder &builder, OperationState &state, int64_t size, const ValueExpr &base,
                   const ValueExpr &end) {
  IndexOperands operands;
  state.addAttribute(getBaseAttrName(state.name), exprAttr(builder, operands, base));
  state.addAttribute(getEndAttrName(state.name), exprAttr(builder, operands, end));
  state.addOperands(operands.values());
  state.addTypes(SpanType::get(builder.getContext(), size));
}

ParseResult SpanOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  IndexExpr base, end;
  SpanType type;
  if (exprs.parseExpr(base) || parser.parseKeyword("to") || exprs.parseExpr(end) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(type) ||
      exprs.resolve(result))
    return failure();
  result.addAttribute(getBaseAttrName(result.name), exprs.attr(base));
  result.addAttribute(getEndAttrName(result.name), exprs.attr(end));
  result.addTypes(type);
  return success();
}

void SpanOp::print(OpAsmPrinter &printer) {
  ExprPrinter exprs(printer, getIndices());
  printer << ' ';
  exprs.print(getBaseAttr());
  printer << " to ";
  exprs.print(getEndAttr());
  printer.printOptionalAttrDict((*this)->getAttrs(), {getBaseAttrName(), getEndAttrName()});
  printer << " : " << getType();
}

LogicalResult SpanOp::verify() {
  return verifyDims(*this, {getBaseAttr(), getEndAttr()}, getIndices().size());
}

namespace {
/// The loop whose variable an index is, or where a pipeline is in it.
struct LoopRange {
  ValueExpr low, high;
  int64_t step;
};
} // namespace

static std::optional<LoopRange> loopOf(Value index) {
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    auto loop = dyn_cast<tile::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument != loop.getLoopVar())
      return std::nullopt;
    return LoopRange{loop.getLowExpr(), loop.getHighExpr(), int64_t(loop.getStep())};
  }
  auto advance = index.getDefiningOp<AdvanceOp>();
  if (!advance || !llvm::is_contained(advance.getAt(), index))
    return std::nullopt;
  unsigned number = cast<OpResult>(index).getResultNumber() - 2;
  return LoopRange{advance.getLowExpr(number), advance.getHighExpr(number),
                   advance.getSteps()[number]};
}

bool tile::isMultipleEverywhere(ValueExpr expr, int64_t number) {
  // Whatever numbers the terms are multiples of, quotients among them.
  if (llvm::all_of(expr.expr().terms(),
                   [&](const IndexExpr::Term &term) { return term.coefficient % number == 0; }))
    return true;
  auto isMultiple = [&](const ValueExpr &one) {
    std::optional<int64_t> constant = one.asConstant();
    return constant && *constant % number == 0;
  };
  SmallVector<Value> operands(expr.operands());
  for (Value operand : operands) {
    std::optional<int64_t> step = stepAlong(expr, operand);
    if (!step)
      return false;
    // Whatever number it is, or one that a loop reaches from where it begins.
    std::optional<LoopRange> loop = loopOf(operand);
    bool moves = *step % number == 0 || (loop && *step * loop->step % number == 0 &&
                                         isMultipleEverywhere(loop->low * *step, number));
    if (!moves)
      return false;
    expr = expr.substitute(operand, ValueExpr(int64_t(0)));
  }
  return isMultiple(expr);
}

bool tile::isInsideTogether(tgl::ReadOp read, BlockArgument axis) {
  if (!read.getChecked())
    return true;
  return llvm::none_of(read.getSubscriptExprs(), [&](const ValueExpr &subscript) {
    return subscript.uses(axis) && llvm::any_of(subscript.operands(), [](Value operand) {
             return !isa<BlockArgument>(operand);
           });
  });
}

bool SpanOp::isFull() {
  // A loop's tiles hang over only where the loop goes on behind the end.
  for (Value operand : getBaseExpr().operands())
    if (std::optional<LoopRange> loop = loopOf(operand))
      if (loop->high != getEndExpr())
        return false;
  return isMultipleEverywhere(getBaseExpr(), getSize()) &&
         isMultipleEverywhere(getEndExpr(), getSize());
}

//===----------------------------------------------------------------------===//
// tile.for
//===----------------------------------------------------------------------===//

tile::YieldOp tile::ForOp::getYield() {
  return cast<tile::YieldOp>(getBody().front().getTerminator());
}

void tile::ForOp::build(OpBuilder &builder, OperationState &state, const ValueExpr &low,
                        const ValueExpr &high, int64_t step, ValueRange inits) {
  IndexOperands operands;
  state.addAttribute(getLowAttrName(state.name), exprAttr(builder, operands, low));
  state.addAttribute(getHighAttrName(state.name), exprAttr(builder, operands, high));
  state.addAttribute(getStepAttrName(state.name), builder.getI64IntegerAttr(step));
  state.addOperands(operands.values());
  state.addOperands(inits);
  state.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {int32_t(operands.values().size()), int32_t(inits.size())});
  state.addTypes(inits.getTypes());
  Block &block = state.addRegion()->emplaceBlock();
  block.addArgument(builder.getIndexType(), state.location);
  for (Value init : inits)
    block.addArgument(init.getType(), state.location);
}

ParseResult tile::ForOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  IndexExpr low, high;
  int64_t step;
  llvm::SmallVector<OpAsmParser::Argument> arguments(1);
  llvm::SmallVector<OpAsmParser::UnresolvedOperand> inits;
  arguments[0].type = parser.getBuilder().getIndexType();
  if (parser.parseArgument(arguments[0]) || parser.parseEqual() || exprs.parseExpr(low) ||
      parser.parseKeyword("to") || exprs.parseExpr(high) || parser.parseKeyword("step") ||
      parser.parseInteger(step))
    return failure();
  auto parseCarried = [&]() -> ParseResult {
    OpAsmParser::Argument argument;
    if (parser.parseArgument(argument) || parser.parseEqual() ||
        parser.parseOperand(inits.emplace_back()) || parser.parseColonType(argument.type))
      return failure();
    arguments.push_back(argument);
    result.addTypes(argument.type);
    return success();
  };
  if (succeeded(parser.parseOptionalKeyword("iter")) &&
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseCarried))
    return failure();
  NamedAttrList attrs;
  if (parser.parseOptionalAttrDictWithKeyword(attrs) || exprs.resolve(result) ||
      parser.resolveOperands(inits, result.types, parser.getCurrentLocation(), result.operands))
    return failure();
  for (NamedAttribute attr : attrs)
    result.attributes.set(attr.getName(), attr.getValue());
  result.addAttribute(getLowAttrName(result.name), exprs.attr(low));
  result.addAttribute(getHighAttrName(result.name), exprs.attr(high));
  result.addAttribute(getStepAttrName(result.name), parser.getBuilder().getI64IntegerAttr(step));
  result.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {int32_t(exprs.numIndices()), int32_t(inits.size())});
  return parseBody(parser, result, arguments);
}

void tile::ForOp::print(OpAsmPrinter &printer) {
  ExprPrinter exprs(printer, getIndices());
  printer << ' ' << getLoopVar() << " = ";
  exprs.print(getLowAttr());
  printer << " to ";
  exprs.print(getHighAttr());
  printer << " step " << getStep();
  if (!getInits().empty()) {
    printer << " iter (";
    llvm::interleaveComma(llvm::zip_equal(getIterArgs(), getInits()), printer, [&](auto pair) {
      auto [argument, init] = pair;
      printer << argument << " = " << init << " : " << init.getType();
    });
    printer << ')';
  }
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getLowAttrName(), getHighAttrName(), getStepAttrName(), getOperandSegmentSizesAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), false, true);
}

LogicalResult tile::ForOp::verify() {
  if (failed(verifyDims(*this, {getLowAttr(), getHighAttr()}, getIndices().size())))
    return failure();
  if (int64_t(getStep()) < 1)
    return emitOpError() << "expected a step of at least 1, found " << getStep();
  Block &block = getBody().front();
  TypeRange types = getInits().getTypes();
  if (block.getNumArguments() != 1 + types.size() ||
      !isa<IndexType>(block.getArgument(0).getType()))
    return emitOpError("expected a loop variable of type index and the carried values");
  if (TypeRange(block.getArguments().drop_front()) != types || getResultTypes() != types)
    return emitOpError("expected carried values of the types of their initial values");
  auto yield = dyn_cast<tile::YieldOp>(block.getTerminator());
  if (!yield || yield.getOperandTypes() != types)
    return emitOpError("expected to yield the carried values");
  return success();
}
