//===- TileOps.cpp - Text and verification of the tile dialect's ops --------------===//
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
  auto isMultiple = [&](const ValueExpr &one) {
    std::optional<int64_t> constant = one.asConstant();
    return constant && *constant % number == 0;
  };
  SmallVector<Value> operands(expr.operands());
  for (Value operand : operands) {
    std::optional<int64_t> step = stepAlong(expr, operand);
    std::optional<LoopRange> loop = loopOf(operand);
    if (!step || (!loop && !isa<BlockArgument>(operand)))
      return false;
    bool moves = *step % number == 0 ||
                 (loop && *step * loop->step % number == 0 && isMultiple(loop->low * *step));
    if (!moves)
      return false;
    expr = expr.substitute(operand, ValueExpr(int64_t(0)));
  }
  return isMultiple(expr);
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

//===----------------------------------------------------------------------===//
// Ops whose region computes a point
//===----------------------------------------------------------------------===//

static Type argumentTypeOf(Type input) {
  return getComputeType(cast<TileType>(input).getElementType());
}

/// Adds the operands and a region with its arguments.
static void buildPoints(OpBuilder &builder, OperationState &state, ValueRange spans,
                        ValueRange inputs) {
  state.addOperands(spans);
  state.addOperands(inputs);
  Block &block = state.addRegion()->emplaceBlock();
  for (size_t k = 0; k < spans.size(); ++k)
    block.addArgument(builder.getIndexType(), state.location);
  for (Value input : inputs)
    block.addArgument(argumentTypeOf(input.getType()), state.location);
}

void OperandOp::build(OpBuilder &builder, OperationState &state, TileType result,
                      ValueRange spans) {
  buildPoints(builder, state, spans, {});
  state.addTypes(result);
}
void MapOp::build(OpBuilder &builder, OperationState &state, TileType result, ValueRange spans,
                  ValueRange inputs) {
  buildPoints(builder, state, spans, inputs);
  state.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {int32_t(spans.size()), int32_t(inputs.size())});
  state.addTypes(result);
}
void StoreOp::build(OpBuilder &builder, OperationState &state, ValueRange spans,
                    ValueRange inputs) {
  buildPoints(builder, state, spans, inputs);
  state.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {int32_t(spans.size()), int32_t(inputs.size())});
}
void CopyOp::build(OpBuilder &builder, OperationState &state, CopyKind kind, ValueRange spans,
                   Value target) {
  buildPoints(builder, state, spans, {});
  state.addOperands(target);
  state.addAttribute(getKindAttrName(state.name), CopyKindAttr::get(builder.getContext(), kind));
}

namespace {
/// `(%i in %m, %j in %n)` and `(%p = %dot : type)`, as they are parsed.
struct PointsSyntax {
  llvm::SmallVector<OpAsmParser::Argument> arguments;
  llvm::SmallVector<OpAsmParser::UnresolvedOperand> spans, inputs;
  llvm::SmallVector<Type> inputTypes;

  ParseResult parseSpans(OpAsmParser &parser) {
    return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
      OpAsmParser::Argument argument;
      argument.type = parser.getBuilder().getIndexType();
      if (parser.parseArgument(argument) || parser.parseKeyword("in") ||
          parser.parseOperand(spans.emplace_back()))
        return failure();
      arguments.push_back(argument);
      return success();
    });
  }

  ParseResult parseInputs(OpAsmParser &parser) {
    return parser.parseCommaSeparatedList(
        OpAsmParser::Delimiter::OptionalParen, [&]() -> ParseResult {
          OpAsmParser::Argument argument;
          TileType type;
          if (parser.parseArgument(argument) || parser.parseEqual() ||
              parser.parseOperand(inputs.emplace_back()) || parser.parseColonType(type))
            return failure();
          argument.type = argumentTypeOf(type);
          inputTypes.push_back(type);
          arguments.push_back(argument);
          return success();
        });
  }

  /// Operands and region; `shape`: of the spans.
  ParseResult finish(OpAsmParser &parser, OperationState &result, llvm::ArrayRef<int64_t> shape) {
    if (shape.size() != spans.size())
      return parser.emitError(parser.getNameLoc(), "expected a span for each dim");
    for (auto [span, size] : llvm::zip_equal(spans, shape))
      if (parser.resolveOperand(span, SpanType::get(parser.getContext(), size), result.operands))
        return failure();
    if (parser.resolveOperands(inputs, inputTypes, parser.getNameLoc(), result.operands))
      return failure();
    if (ArrayAttr names = namesFromArguments(parser.getBuilder(), arguments))
      result.addAttribute("names", names);
    return parseBody(parser, result, arguments);
  }
};
} // namespace

static void printSpans(OpAsmPrinter &printer, PointsOp op) {
  printer << '(';
  llvm::interleaveComma(
      llvm::zip_equal(op.getIndexArguments(), op.getSpans()), printer,
      [&](auto pair) { printer << std::get<0>(pair) << " in " << std::get<1>(pair); });
  printer << ')';
}

static void printInputs(OpAsmPrinter &printer, PointsOp op) {
  if (op.getInputs().empty())
    return;
  printer << " (";
  llvm::interleaveComma(llvm::zip_equal(op.getInputArguments(), op.getInputs()), printer,
                        [&](auto pair) {
                          auto [argument, input] = pair;
                          printer << argument << " = " << input << " : " << input.getType();
                        });
  printer << ')';
}

static void printPoint(OpAsmPrinter &printer, PointsOp op) {
  printAttrsBeforeBody(printer, op, op.getPoint()->getArguments(), op.getNames(),
                       {"kind", "operandSegmentSizes"});
  printer.printRegion(op->getRegion(0), false, true);
}

/// Spans and inputs have the shape; the region takes their elements and yields `result`, if any.
static LogicalResult verifyPoints(PointsOp op, llvm::ArrayRef<int64_t> shape, Type result) {
  if (op.getSpans().size() != shape.size())
    return op->emitOpError() << "expected " << shape.size() << " spans, found "
                             << op.getSpans().size();
  for (auto [span, extent] : llvm::zip_equal(op.getSpans(), shape))
    if (cast<SpanType>(span.getType()).getSize() != extent)
      return op->emitOpError() << "expected a span of " << extent << ", found " << span.getType();
  llvm::SmallVector<Type> arguments(shape.size(), IndexType::get(op.getContext()));
  for (Value input : op.getInputs()) {
    auto type = cast<TileType>(input.getType());
    if (type.getShape() != shape)
      return op->emitOpError() << "expected inputs of the spans' shape, found " << type;
    arguments.push_back(argumentTypeOf(type));
  }
  if (op.getPoint()->getArgumentTypes() != TypeRange(arguments))
    return op->emitOpError("expected a region of the point's indices and elements");
  auto yield = dyn_cast<tile::YieldOp>(op.getPoint()->getTerminator());
  if (!yield || yield.getNumOperands() != (result ? 1 : 0) ||
      (result && yield.getOperand(0).getType() != result))
    return op->emitOpError() << "expected to yield " << (result ? "one element" : "nothing");
  return success();
}

#define POINT_NAMES(Op)                                                                            \
  void Op::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {                 \
    setArgumentNames(region, getNames(), setName);                                                 \
  }
POINT_NAMES(OperandOp)
POINT_NAMES(MapOp)
POINT_NAMES(StoreOp)
POINT_NAMES(CopyOp)
#undef POINT_NAMES

/// Values of points may be computed again, and in any order.
static LogicalResult verifyReadsAlone(PointsOp op) {
  for (Operation &inside : *op.getPoint())
    if (isa<WriteOp>(inside))
      return op->emitOpError("expected a region that writes nothing");
  return success();
}

/// `spans (inputs) -> type region`.
static ParseResult parseWithResult(OpAsmParser &parser, OperationState &result,
                                   PointsSyntax &points) {
  TileType type;
  NamedAttrList attrs;
  if (points.parseSpans(parser) || points.parseInputs(parser) || parser.parseArrow() ||
      parser.parseType(type) || parser.parseOptionalAttrDictWithKeyword(attrs))
    return failure();
  result.attributes.append(attrs);
  result.addTypes(type);
  return points.finish(parser, result, type.getShape());
}

ParseResult OperandOp::parse(OpAsmParser &parser, OperationState &result) {
  PointsSyntax points;
  return parseWithResult(parser, result, points);
}
void OperandOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printSpans(printer, *this);
  printer << " -> " << getType();
  printPoint(printer, *this);
}
LogicalResult OperandOp::verify() {
  if (getType().getShape().size() != 2)
    return emitOpError() << "expected two dims, found " << getType();
  if (failed(verifyReadsAlone(*this)))
    return failure();
  return verifyPoints(*this, getType().getShape(), getComputeType(getType().getElementType()));
}

ParseResult MapOp::parse(OpAsmParser &parser, OperationState &result) {
  PointsSyntax points;
  if (parseWithResult(parser, result, points))
    return failure();
  result.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {int32_t(points.spans.size()), int32_t(points.inputs.size())});
  return success();
}
void MapOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printSpans(printer, *this);
  printInputs(printer, *this);
  printer << " -> " << getType();
  printPoint(printer, *this);
}
LogicalResult MapOp::verify() {
  for (Value input : getInputs())
    if (cast<TileType>(input.getType()).getLayout() != getType().getLayout())
      return emitOpError() << "expected inputs in the result's layout, found " << input.getType();
  if (failed(verifyReadsAlone(*this)))
    return failure();
  return verifyPoints(*this, getType().getShape(), getComputeType(getType().getElementType()));
}

ParseResult StoreOp::parse(OpAsmParser &parser, OperationState &result) {
  PointsSyntax points;
  NamedAttrList attrs;
  if (points.parseSpans(parser) || points.parseInputs(parser) ||
      parser.parseOptionalAttrDictWithKeyword(attrs))
    return failure();
  result.attributes.append(attrs);
  if (points.inputTypes.empty())
    return parser.emitError(parser.getNameLoc(), "expected a tile that is stored");
  result.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {int32_t(points.spans.size()), int32_t(points.inputs.size())});
  return points.finish(parser, result, cast<TileType>(points.inputTypes[0]).getShape());
}
void StoreOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printSpans(printer, *this);
  printInputs(printer, *this);
  printPoint(printer, *this);
}
LogicalResult StoreOp::verify() {
  if (getInputs().empty())
    return emitOpError("expected a tile that is stored");
  auto first = cast<TileType>(getInputs()[0].getType());
  for (Value input : getInputs())
    if (cast<TileType>(input.getType()).getLayout() != first.getLayout())
      return emitOpError() << "expected inputs of one layout, found " << input.getType();
  return verifyPoints(*this, first.getShape(), {});
}

ParseResult CopyOp::parse(OpAsmParser &parser, OperationState &result) {
  PointsSyntax points;
  StringRef word;
  OpAsmParser::UnresolvedOperand target;
  SharedType type;
  NamedAttrList attrs;
  llvm::SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<CopyKind> kind = symbolizeCopyKind(word);
  if (!kind)
    return parser.emitError(location, "expected registers or cp_async, found '") << word << "'";
  result.addAttribute(getKindAttrName(result.name), CopyKindAttr::get(parser.getContext(), *kind));
  if (points.parseSpans(parser) || parser.parseKeyword("to") || parser.parseOperand(target) ||
      parser.parseColonType(type) || parser.parseOptionalAttrDictWithKeyword(attrs))
    return failure();
  result.attributes.append(attrs);
  return failure(points.finish(parser, result, type.getShape()) ||
                 parser.resolveOperand(target, type, result.operands));
}
void CopyOp::print(OpAsmPrinter &printer) {
  printer << ' ' << stringifyCopyKind(getKind()) << ' ';
  printSpans(printer, *this);
  printer << " to " << getTarget() << " : " << getTarget().getType();
  printPoint(printer, *this);
}
LogicalResult CopyOp::verify() {
  SharedType type = getTarget().getType();
  if (failed(verifyReadsAlone(*this)))
    return failure();
  bool isRead = isa<ReadOp>(getPoint()->front()) && getPoint()->getOperations().size() == 2;
  if (getKind() == CopyKind::CpAsync && !isRead)
    return emitOpError("expected a region that reads one element, as cp_async copies bytes");
  return verifyPoints(*this, type.getShape(), getComputeType(type.getElementType()));
}

//===----------------------------------------------------------------------===//
// Products and reductions
//===----------------------------------------------------------------------===//

/// Operands of M x K and N x K for a result of M x N in f32.
static LogicalResult verifyProduct(Operation *op, llvm::ArrayRef<int64_t> a, Type aElement,
                                   llvm::ArrayRef<int64_t> b, Type bElement, TileType c) {
  if (a.size() != 2 || b.size() != 2 || c.getShape().size() != 2 || a[1] != b[1] ||
      c.getShape()[0] != a[0] || c.getShape()[1] != b[0])
    return op->emitOpError("expected tiles of M x K, N x K and M x N");
  if (aElement != bElement || !(aElement.isBF16() || aElement.isF16() || aElement.isF32()))
    return op->emitOpError() << "expected operands of bf16, of f16 or of f32, found " << aElement
                             << " and " << bElement;
  if (!c.getElementType().isF32())
    return op->emitOpError() << "expected sums of f32, found " << c;
  return success();
}

template <typename Op>
static void buildProduct(OpBuilder &builder, OperationState &state, Value a, Value b, Value c,
                         bool split) {
  state.addOperands({a, b, c});
  if (split)
    state.addAttribute(Op::getSplitAttrName(state.name), builder.getUnitAttr());
  state.addTypes(c.getType());
}

void DotOp::build(OpBuilder &builder, OperationState &state, Value a, Value b, Value c,
                  bool split) {
  buildProduct<DotOp>(builder, state, a, b, c, split);
}
void MmaOp::build(OpBuilder &builder, OperationState &state, Value a, Value b, Value c,
                  bool split) {
  buildProduct<MmaOp>(builder, state, a, b, c, split);
}

LogicalResult DotOp::verify() {
  if (getSplit() && !getA().getType().getElementType().isF32())
    return emitOpError() << "expected split operands of f32, found " << getA().getType();
  return verifyProduct(*this, getA().getType().getShape(), getA().getType().getElementType(),
                       getB().getType().getShape(), getB().getType().getElementType(), getType());
}

LogicalResult MmaOp::verify() {
  if (!getType().getLayout())
    return emitOpError() << "expected sums in a layout, found " << getType();
  if (getSplit() != getA().getType().getElementType().isF32())
    return emitOpError() << "expected operands to be split where they are f32, found "
                         << getA().getType();
  return verifyProduct(*this, getA().getType().getShape(), getA().getType().getElementType(),
                       getB().getType().getShape(), getB().getType().getElementType(), getType());
}

LogicalResult tile::ReduceOp::verify() {
  TileType value = getValue().getType();
  StateType state = getType();
  if (value.getShape().size() != 2 || value.getShape()[0] != state.getRows() ||
      value.getShape()[1] != getColumns().getType().getSize())
    return emitOpError("expected a tile of the state's rows by the span's columns");
  if (value.getElementType() != state.getElementType() || value.getLayout() != state.getLayout())
    return emitOpError("expected a tile of the state's elements and layout");
  // States of several warps would have to be combined through shared memory.
  if (state.getLayout() && cast<MmaLayoutAttr>(state.getLayout()).getWarpColumns() != 1)
    return emitOpError() << "expected warps one above the other, found " << state;
  return success();
}

void FinishOp::build(OpBuilder &builder, OperationState &state, Value from) {
  auto type = cast<StateType>(from.getType());
  state.addOperands(from);
  state.addTypes(TileType::get(builder.getContext(), {type.getRows()}, type.getResultType(),
                               type.getLayout()));
}

LogicalResult FinishOp::verify() {
  StateType state = getState().getType();
  if (getType() !=
      TileType::get(getContext(), {state.getRows()}, state.getResultType(), state.getLayout()))
    return emitOpError() << "expected a row for each of " << state;
  return success();
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

int64_t AllocOp::getBytes() {
  if (auto ring = dyn_cast<RingType>(getType()))
    return ring.getBytes();
  return cast<SharedType>(getType()).getBytes();
}

void StageOp::build(OpBuilder &builder, OperationState &state, Value ring,
                    const ValueExpr &number) {
  IndexOperands operands;
  state.addOperands(ring);
  state.addAttribute(getNumberAttrName(state.name), exprAttr(builder, operands, number));
  state.addOperands(operands.values());
  state.addTypes(cast<RingType>(ring.getType()).getStage());
}

ParseResult StageOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  OpAsmParser::UnresolvedOperand ring;
  IndexExpr number;
  RingType type;
  if (parser.parseOperand(ring) || parser.parseKeyword("at") || exprs.parseExpr(number) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(type) ||
      parser.resolveOperand(ring, type, result.operands) || exprs.resolve(result))
    return failure();
  result.addAttribute(getNumberAttrName(result.name), exprs.attr(number));
  result.addTypes(type.getStage());
  return success();
}

void StageOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getRing() << " at ";
  ExprPrinter(printer, getIndices()).print(getNumberAttr());
  printer.printOptionalAttrDict((*this)->getAttrs(), {getNumberAttrName()});
  printer << " : " << getRing().getType();
}

LogicalResult StageOp::verify() {
  if (getType() != getRing().getType().getStage())
    return emitOpError() << "expected a stage of " << getRing().getType() << ", found "
                         << getType();
  return verifyDims(*this, {getNumberAttr()}, getIndices().size());
}

void AdvanceOp::build(OpBuilder &builder, OperationState &state, llvm::ArrayRef<ForOp> loops,
                      ValueRange from) {
  IndexOperands operands;
  llvm::SmallVector<Attribute> lows, highs;
  llvm::SmallVector<int64_t> steps;
  for (ForOp loop : loops) {
    lows.push_back(exprAttr(builder, operands, loop.getLowExpr()));
    highs.push_back(exprAttr(builder, operands, loop.getHighExpr()));
    steps.push_back(loop.getStep());
  }
  state.addAttribute(getLowsAttrName(state.name), builder.getArrayAttr(lows));
  state.addAttribute(getHighsAttrName(state.name), builder.getArrayAttr(highs));
  state.addAttribute(getStepsAttrName(state.name), builder.getDenseI64ArrayAttr(steps));
  state.addOperands(operands.values());
  state.addOperands(from);
  state.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {int32_t(operands.values().size()), int32_t(from.size())});
  state.addTypes({builder.getIndexType(), builder.getI1Type()});
  state.types.append(loops.size(), builder.getIndexType());
}

ValueExpr AdvanceOp::getLowExpr(unsigned loop) {
  return {cast<IndexExprAttr>(getLows()[loop]).getExpr(), getIndices()};
}
ValueExpr AdvanceOp::getHighExpr(unsigned loop) {
  return {cast<IndexExprAttr>(getHighs()[loop]).getExpr(), getIndices()};
}

void AdvanceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getNumber(), "number");
  setName(getExists(), "exists");
  for (Value at : getAt())
    setName(at, "at");
}

ParseResult AdvanceOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  llvm::SmallVector<IndexExpr> lows, highs;
  llvm::SmallVector<int64_t> steps;
  llvm::SmallVector<OpAsmParser::UnresolvedOperand> from;
  if (succeeded(parser.parseOptionalKeyword("from")) && parser.parseOperandList(from))
    return failure();
  auto parseLoop = [&]() -> ParseResult {
    return failure(exprs.parseExpr(lows.emplace_back()) || parser.parseKeyword("to") ||
                   exprs.parseExpr(highs.emplace_back()) || parser.parseKeyword("step") ||
                   parser.parseInteger(steps.emplace_back()));
  };
  Builder &builder = parser.getBuilder();
  if (parser.parseKeyword("in") ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseLoop) ||
      parser.parseOptionalAttrDict(result.attributes) || exprs.resolve(result) ||
      parser.resolveOperands(from, builder.getIndexType(), result.operands))
    return failure();
  result.addAttribute(getLowsAttrName(result.name), exprs.attr(lows));
  result.addAttribute(getHighsAttrName(result.name), exprs.attr(highs));
  result.addAttribute(getStepsAttrName(result.name), builder.getDenseI64ArrayAttr(steps));
  result.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {int32_t(exprs.numIndices()), int32_t(from.size())});
  result.addTypes({builder.getIndexType(), builder.getI1Type()});
  result.types.append(steps.size(), builder.getIndexType());
  return success();
}

void AdvanceOp::print(OpAsmPrinter &printer) {
  ExprPrinter exprs(printer, getIndices());
  if (!getFrom().empty())
    printer << " from " << getFrom();
  printer << " in (";
  llvm::interleaveComma(llvm::seq<size_t>(0, getSteps().size()), printer, [&](size_t loop) {
    exprs.print(getLows()[loop]);
    printer << " to ";
    exprs.print(getHighs()[loop]);
    printer << " step " << getSteps()[loop];
  });
  printer << ')';
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getLowsAttrName(), getHighsAttrName(), getStepsAttrName(),
                                 getOperandSegmentSizesAttrName()});
}

LogicalResult AdvanceOp::verify() {
  size_t loops = getSteps().size();
  if (!loops || getLows().size() != loops || getHighs().size() != loops || getAt().size() != loops)
    return emitOpError("expected bounds, a step and a result for each loop");
  if (llvm::any_of(getSteps(), [](int64_t step) { return step < 1; }))
    return emitOpError("expected steps of at least 1");
  if (!getFrom().empty() && getFrom().size() != loops + 1)
    return emitOpError() << "expected a number and " << loops << " indices, found "
                         << getFrom().size() << " values";
  llvm::SmallVector<Attribute> bounds(getLows().getValue());
  llvm::append_range(bounds, getHighs());
  return verifyDims(*this, bounds, getIndices().size());
}

void tile::IfOp::build(OpBuilder &, OperationState &state, Value condition) {
  state.addOperands(condition);
  state.addRegion()->emplaceBlock();
}
