//===- TilePoints.cpp - Ops of the tile dialect whose region is a point -===//
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

void OperandOp::build(OpBuilder &builder, OperationState &state, TileType result, ValueRange spans,
                      ValueRange inputs) {
  buildPoints(builder, state, spans, inputs);
  state.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {int32_t(spans.size()), int32_t(inputs.size())});
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
void VectorsOp::build(OpBuilder &builder, OperationState &state, TileType result,
                      ValueRange spans) {
  buildPoints(builder, state, spans, {});
  state.addTypes(result);
}
void TmaDescriptorOp::build(OpBuilder &builder, OperationState &state, TmaDescriptorType result,
                            ValueRange spans) {
  buildPoints(builder, state, spans, {});
  state.addTypes(result);
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
    FragmentLayout layout = type.getFragments();
    bool hasFewer = isa<OperandOp>(op) && layout && layout.isSliced() && shape.size() == 2 &&
                    type.getShape()[0] == shape[0] && shape[1] % type.getShape()[1] == 0;
    if (!hasFewer && type.getShape() != shape.take_front(type.getShape().size()))
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
POINT_NAMES(VectorsOp)
POINT_NAMES(TmaDescriptorOp)
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
  if (parseWithResult(parser, result, points))
    return failure();
  result.getOrAddProperties<Properties>().setOperandSegmentSizes(
      {int32_t(points.spans.size()), int32_t(points.inputs.size())});
  return success();
}
void OperandOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printSpans(printer, *this);
  printInputs(printer, *this);
  printer << " -> " << getType();
  printPoint(printer, *this);
}
/// Inputs are where the result is.
template <typename Op> static LogicalResult verifyInputLayouts(Op op) {
  for (Value input : op.getInputs())
    if (cast<TileType>(input.getType()).getLayout() != op.getType().getLayout())
      return op.emitOpError() << "expected inputs in the result's layout, found "
                              << input.getType();
  return success();
}

LogicalResult OperandOp::verify() {
  if (getType().getShape().size() != 2)
    return emitOpError() << "expected two dims, found " << getType();
  if (failed(verifyInputLayouts(*this)))
    return failure();
  if (failed(verifyReadsAlone(*this)))
    return failure();
  return verifyPoints(*this, getType().getShape(), getComputeType(getType().getElementType()));
}

ParseResult VectorsOp::parse(OpAsmParser &parser, OperationState &result) {
  PointsSyntax points;
  if (parseWithResult(parser, result, points))
    return failure();
  if (!points.inputs.empty())
    return parser.emitError(parser.getNameLoc(), "expected no inputs");
  return success();
}
void VectorsOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printSpans(printer, *this);
  printer << " -> " << getType();
  printPoint(printer, *this);
}
LogicalResult VectorsOp::verify() {
  FragmentLayout layout = getType().getFragments();
  if (!layout || !layout.isSliced())
    return emitOpError() << "expected a layout of warps with slices, found " << getType();
  ReadOp read = getYielded() ? getRead() : ReadOp();
  if (!read || read->getNextNode() != getPoint()->getTerminator() || read.getFill() ||
      read.getTensorType().getElementType() != getType().getElementType())
    return emitOpError("expected a region that ends in a read of the tile's elements");
  if (failed(verifyReadsAlone(*this)))
    return failure();
  return verifyPoints(*this, getType().getShape(), getComputeType(getType().getElementType()));
}

ParseResult TmaDescriptorOp::parse(OpAsmParser &parser, OperationState &result) {
  PointsSyntax points;
  TmaDescriptorType type;
  if (points.parseSpans(parser) || parser.parseArrow() || parser.parseType(type) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  result.addTypes(type);
  return points.finish(parser, result, type.getShape());
}
void TmaDescriptorOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printSpans(printer, *this);
  printer << " -> " << getType();
  printPoint(printer, *this);
}
LogicalResult TmaDescriptorOp::verify() {
  ReadOp read = getYielded() ? getRead() : ReadOp();
  bool isAlone =
      read && read == &getPoint()->front() && read->getNextNode() == getPoint()->getTerminator();
  if (!isAlone || read.getFill() || read.getGuard() ||
      read.getTensorType().getElementType() != getType().getElementType())
    return emitOpError("expected a region that is a read of the descriptor's elements");
  ValueExpr offset = elementOffset(read.getTensorType(), read.getSubscriptExprs());
  int64_t unit = 16 * 8 / int64_t(getType().getElementType().getIntOrFloatBitWidth());
  std::optional<int64_t> apart = stepAlong(offset, getPoint()->getArgument(0));
  if (stepAlong(offset, getPoint()->getArgument(1)) != 1 || !apart || *apart % unit != 0)
    return emitOpError("expected lines a known multiple of 16 bytes apart, of neighbours");
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
  if (failed(verifyInputLayouts(*this)) || failed(verifyReadsAlone(*this)))
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
  auto read = getYielded() ? getYielded().getDefiningOp<ReadOp>() : ReadOp();
  bool isLast = read && read->getNextNode() == getPoint()->getTerminator();
  if (getKind() == CopyKind::CpAsync && (!isLast || read.getFill()))
    return emitOpError("expected a region that ends in a read, as cp_async copies bytes");
  return verifyPoints(*this, type.getShape(), getComputeType(type.getElementType()));
}
