//===- TileRoles.cpp - Roles of warps, pipes and boxes of the tile dialect ---===//
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

//===----------------------------------------------------------------------===//
// tile.roles
//===----------------------------------------------------------------------===//

void RolesOp::build(OpBuilder &builder, OperationState &state, int64_t producerRegisters,
                    int64_t consumers, int64_t consumerRegisters) {
  state.addAttribute(getProducerRegistersAttrName(state.name),
                     builder.getI64IntegerAttr(producerRegisters));
  state.addAttribute(getConsumersAttrName(state.name), builder.getI64IntegerAttr(consumers));
  state.addAttribute(getConsumerRegistersAttrName(state.name),
                     builder.getI64IntegerAttr(consumerRegisters));
  state.addRegion()->emplaceBlock();
  state.addRegion()->emplaceBlock();
}

/// PTX ISA, "setmaxnreg": 24 to 256 registers, multiples of 8; a multiprocessor has 65536.
static LogicalResult verifyRegisters(RolesOp op) {
  constexpr int64_t least = 24, most = 256, unit = 8, all = 65536;
  for (int64_t registers : {int64_t(op.getProducerRegisters()), int64_t(op.getConsumerRegisters())})
    if (registers < least || registers > most || registers % unit != 0)
      return op.emitOpError() << "expected " << least << " to " << most
                              << " registers, a multiple of " << unit << ", found " << registers;
  int64_t sum = RolesOp::producerThreads * op.getProducerRegisters() +
                int64_t(op.getConsumers()) * op.getConsumerRegisters();
  if (sum > all)
    return op.emitOpError() << "expected at most " << all << " registers in all, found " << sum;
  return success();
}

LogicalResult RolesOp::verify() {
  constexpr int64_t warpgroup = 128;
  if (int64_t(getConsumers()) < warpgroup || getConsumers() % warpgroup != 0)
    return emitOpError() << "expected whole warpgroups of consumers, found " << getConsumers()
                         << " threads";
  if (failed(verifyRegisters(*this)))
    return failure();
  auto kernel = (*this)->getParentOfType<tile::KernelOp>();
  if (kernel && kernel.getThreads() && int64_t(*kernel.getThreads()) != getThreads())
    return emitOpError() << "expected " << getThreads() << " threads of the kernel, found "
                         << *kernel.getThreads();
  auto verifyInside = [&](Operation *op, bool ofProducer) -> LogicalResult {
    if (isa<BarrierOp, CopyOp, UnpackOp, SumWarpsOp, RolesOp>(op))
      return op->emitOpError("expected to be of all threads of the block");
    if (isa<FillOp, TmaDescriptorOp>(op) && !ofProducer)
      return op->emitOpError("expected to be the producer's");
    if (isa<WaitOp, ReleaseOp, MmaOp>(op) && ofProducer)
      return op->emitOpError("expected to be the consumers'");
    return success();
  };
  for (Region *region : {&getProducer(), &getConsumer()}) {
    WalkResult result = region->walk(
        [&](Operation *op) { return WalkResult(verifyInside(op, region == &getProducer())); });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Pipes: `%pipe at number` and, of a release, `of total`
//===----------------------------------------------------------------------===//

template <typename Op>
static void buildAtNumber(OpBuilder &builder, OperationState &state, Value pipe,
                          const ValueExpr &number, IndexOperands &operands) {
  state.addOperands(pipe);
  state.addAttribute(Op::getNumberAttrName(state.name), exprAttr(builder, operands, number));
}

void FillOp::build(OpBuilder &builder, OperationState &state, Value pipe, const ValueExpr &number) {
  IndexOperands operands;
  buildAtNumber<FillOp>(builder, state, pipe, number, operands);
  state.addOperands(operands.values());
  state.addRegion()->emplaceBlock();
}

void WaitOp::build(OpBuilder &builder, OperationState &state, Value pipe, const ValueExpr &number) {
  IndexOperands operands;
  buildAtNumber<WaitOp>(builder, state, pipe, number, operands);
  state.addOperands(operands.values());
}

void ReleaseOp::build(OpBuilder &builder, OperationState &state, Value pipe,
                      const ValueExpr &number, const ValueExpr &total) {
  IndexOperands operands;
  buildAtNumber<ReleaseOp>(builder, state, pipe, number, operands);
  state.addAttribute(getTotalAttrName(state.name), exprAttr(builder, operands, total));
  state.addOperands(operands.values());
}

/// `%pipe at number`, then what `rest` parses before the type; null: nothing.
static ParseResult parseAtNumber(OpAsmParser &parser, OperationState &result, StringAttr name,
                                 ExprParser &exprs,
                                 llvm::function_ref<ParseResult()> rest = nullptr) {
  OpAsmParser::UnresolvedOperand pipe;
  IndexExpr number;
  PipeType type;
  if (parser.parseOperand(pipe) || parser.parseKeyword("at") || exprs.parseExpr(number) ||
      (rest && rest()) || parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type) || parser.resolveOperand(pipe, type, result.operands) ||
      exprs.resolve(result))
    return failure();
  result.addAttribute(name, exprs.attr(number));
  return success();
}

ParseResult FillOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  if (parseAtNumber(parser, result, getNumberAttrName(result.name), exprs))
    return failure();
  return parseBody(parser, result, {});
}

void FillOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getPipe() << " at ";
  ExprPrinter(printer, getIndices()).print(getNumberAttr());
  printer.printOptionalAttrDict((*this)->getAttrs(), {getNumberAttrName()});
  printer << " : " << getPipe().getType() << ' ';
  printer.printRegion(getBody(), false, true);
}

int64_t FillOp::getBytes() {
  int64_t bytes = 0;
  for (CopyBoxOp copy : getBody().getOps<CopyBoxOp>())
    bytes += copy.getDescriptor().getType().getBoxBytes();
  return bytes;
}

LogicalResult FillOp::verify() {
  if (getBody().getOps<CopyBoxOp>().empty())
    return emitOpError("expected a copy of a box");
  return verifyDims(*this, {getNumberAttr()}, getIndices().size());
}

ParseResult WaitOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  return parseAtNumber(parser, result, getNumberAttrName(result.name), exprs);
}

void WaitOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getPipe() << " at ";
  ExprPrinter(printer, getIndices()).print(getNumberAttr());
  printer.printOptionalAttrDict((*this)->getAttrs(), {getNumberAttrName()});
  printer << " : " << getPipe().getType();
}

LogicalResult WaitOp::verify() { return verifyDims(*this, {getNumberAttr()}, getIndices().size()); }

ParseResult ReleaseOp::parse(OpAsmParser &parser, OperationState &result) {
  ExprParser exprs(parser);
  IndexExpr total;
  auto parseTotal = [&] { return failure(parser.parseKeyword("of") || exprs.parseExpr(total)); };
  if (parseAtNumber(parser, result, getNumberAttrName(result.name), exprs, parseTotal))
    return failure();
  result.addAttribute(getTotalAttrName(result.name), exprs.attr(total));
  return success();
}

void ReleaseOp::print(OpAsmPrinter &printer) {
  ExprPrinter exprs(printer, getIndices());
  printer << ' ' << getPipe() << " at ";
  exprs.print(getNumberAttr());
  printer << " of ";
  exprs.print(getTotalAttr());
  printer.printOptionalAttrDict((*this)->getAttrs(), {getNumberAttrName(), getTotalAttrName()});
  printer << " : " << getPipe().getType();
}

LogicalResult ReleaseOp::verify() {
  return verifyDims(*this, {getNumberAttr(), getTotalAttr()}, getIndices().size());
}

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

LogicalResult CopyBoxOp::verify() {
  TmaDescriptorType box = getDescriptor().getType();
  SharedType target = getTarget().getType();
  if (box.getShape() != target.getShape() || box.getElementType() != target.getElementType() ||
      !target.getKMajor())
    return emitOpError() << "expected a tile of the box's lines, k_major, found " << target;
  if (getLines().getType().getSize() != box.getShape()[0] ||
      getAlong().getType().getSize() != box.getShape()[1])
    return emitOpError() << "expected spans of the box's shape, found " << getLines().getType()
                         << " and " << getAlong().getType();
  return success();
}
