//===- TileProducts.cpp - Products, reductions and rings of the tile dialect ===//
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

/// Both factors are computed in registers.
static LogicalResult verifySliced(MmaOp op) {
  for (Value factor : {op.getA(), op.getB()}) {
    auto type = dyn_cast<TileType>(factor.getType());
    if (!type || type.getLayout() != op.getType().getLayout() || !factor.getDefiningOp<OperandOp>())
      return op.emitOpError() << "expected operands in the layout of the sums, found "
                              << factor.getType();
  }
  auto a = cast<TileType>(op.getA().getType()), b = cast<TileType>(op.getB().getType());
  // A lane takes four points of the sum for each product.
  int64_t lanes = 4 * op.getType().getFragments().getWarpSlices();
  if (op.getSplit() || a.getElementType().isF32() || a.getShape()[0] % 16 != 0 ||
      a.getShape()[1] % (4 * lanes) != 0)
    return op.emitOpError() << "expected operands of 16 bits, of 16 rows and " << 4 * lanes
                            << " columns or multiples, found " << a;
  return verifyProduct(op, a.getShape(), a.getElementType(), b.getShape(), b.getElementType(),
                       op.getType());
}

/// Both factors are in shared memory, of 16 bits, with lines along the sum.
static LogicalResult verifyAsynchronous(MmaOp op) {
  for (Value factor : {op.getA(), op.getB()}) {
    auto type = dyn_cast<SharedType>(factor.getType());
    if (!type || !type.getKMajor() || type.getElementType().isF32())
      return op.emitOpError() << "expected factors of 16 bits in shared memory, k_major, found "
                              << factor.getType();
  }
  if (op.getSplit())
    return op.emitOpError("expected factors that are not split");
  auto a = cast<SharedType>(op.getA().getType()), b = cast<SharedType>(op.getB().getType());
  return verifyProduct(op, a.getShape(), a.getElementType(), b.getShape(), b.getElementType(),
                       op.getType());
}

LogicalResult UnpackOp::verify() {
  SharedType from = getSource().getType(), to = getTarget().getType();
  if (!from.isOfBytes() || to.getElementType().getIntOrFloatBitWidth() != 16)
    return emitOpError() << "expected elements of 8 bits and of 16, found " << from << " and "
                         << to;
  if (from.getShape() != to.getShape() || from.getKMajor() != to.getKMajor())
    return emitOpError() << "expected tiles of one shape and order, found " << from << " and "
                         << to;
  return success();
}

LogicalResult MmaOp::verify() {
  FragmentLayout layout = getType().getFragments();
  if (!layout)
    return emitOpError() << "expected sums in a layout of mma or wgmma, found " << getType();
  if (layout.isAsynchronous())
    return verifyAsynchronous(*this);
  if (layout.isSliced())
    return verifySliced(*this);
  auto bType = dyn_cast<SharedType>(getB().getType());
  if (!bType)
    return emitOpError() << "expected a factor in shared memory, found " << getB().getType();
  if (bType.isOfBytes())
    return emitOpError() << "expected a factor that is unpacked, found " << bType;
  TileType inRegisters = dyn_cast<TileType>(getA().getType());
  llvm::ArrayRef<int64_t> shape =
      inRegisters ? inRegisters.getShape() : cast<SharedType>(getA().getType()).getShape();
  Type element = inRegisters ? inRegisters.getElementType()
                             : cast<SharedType>(getA().getType()).getElementType();
  if (inRegisters && (inRegisters.getLayout() != getType().getLayout() ||
                      layout.getWarpColumns() != 1 || element.isF32()))
    return emitOpError() << "expected a factor of 16 bits in the layout of the sums, by warps one "
                            "above the other, found "
                         << getA().getType();
  if (getSplit() != element.isF32())
    return emitOpError() << "expected operands to be split where they are f32, found "
                         << getA().getType();
  return verifyProduct(*this, shape, element, bType.getShape(), bType.getElementType(), getType());
}

static LogicalResult verifyUnderWay(Operation *op, TileType sums) {
  if (!sums.getFragments() || !sums.getFragments().isAsynchronous())
    return op->emitOpError() << "expected sums in a layout of wgmma, found " << sums;
  return success();
}

LogicalResult AwaitProductsOp::verify() { return verifyUnderWay(*this, getSums().getType()); }
LogicalResult ReadyOp::verify() { return verifyUnderWay(*this, getSums().getType()); }

void SumWarpsOp::build(OpBuilder &builder, OperationState &state, Value terms, Value scratch) {
  auto type = cast<TileType>(terms.getType());
  state.addOperands({terms, scratch});
  state.addTypes(
      TileType::get(builder.getContext(), type.getShape(), type.getElementType(),
                    LinearLayoutAttr::get(builder.getContext(), type.getFragments().getThreads())));
}

LogicalResult SumWarpsOp::verify() {
  TileType terms = getTerms().getType();
  FragmentLayout layout = terms.getFragments();
  if (!layout || !layout.isSliced() || terms.getShape().size() != 2 ||
      !terms.getElementType().isF32())
    return emitOpError() << "expected accumulators of warps with slices, found " << terms;
  if (getScratch().getType().getShape() !=
      llvm::ArrayRef<int64_t>({layout.getWarpSlices(), terms.getShape()[1], terms.getShape()[0]}))
    return emitOpError() << "expected scratch for the columns of each warp, found "
                         << getScratch().getType();
  if (getType() != TileType::get(getContext(), terms.getShape(), terms.getElementType(),
                                 LinearLayoutAttr::get(getContext(), layout.getThreads())))
    return emitOpError() << "expected sums that all threads have in turn, found " << getType();
  return success();
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
  if (state.getLayout() && state.getLayout().getWarpColumns() != 1)
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
  if (auto scratch = dyn_cast<ScratchType>(getType()))
    return scratch.getBytes();
  if (auto pipe = dyn_cast<PipeType>(getType()))
    return pipe.getBytes();
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
