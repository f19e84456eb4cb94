//===- VectorAdds.cpp - Additions to neighbours in memory -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/VectorAdds.h"

#include "codegen/common/AccessShape.h"
#include "codegen/common/Accesses.h"
#include "codegen/simt/DeviceEmitter.h"
#include "codegen/simt/RaggedLanes.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/IR/InlineAsm.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static constexpr unsigned globalSpace = 1;

/// PTX ISA, "red": vectors of f32 need sm_90.
bool tegula::addsInVectors(unsigned capability) { return capability >= 90; }

static bool addsFloats(tgl::WriteOp write) {
  return write.getCombine() == tgl::ReduceKind::Sum &&
         write.getTensorType().getElementType().isF32();
}

static ValueExpr offsetOf(tgl::WriteOp write) {
  return tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs());
}

/// Whether every read and write of the statement is of whole vectors along the axis, of one element
/// for all of them, or of elements that data choose for each; and what is written is neighbours.
static bool isAlong(tgl::ParallelOp op, mlir::Value axis, unsigned width,
                    unsigned tensorAlignment) {
  DenseSet<mlir::Value> varying{axis};
  auto stepOf = [&](const ValueExpr &offset) {
    return stepAlong(offset, axis,
                     [&](mlir::Value value) { return value != axis && varying.contains(value); });
  };
  bool adds = false;
  for (mlir::Operation &inside : op.getBody().front()) {
    if (inside.getNumRegions() || isa<tgl::TempOp, tgl::SortOp>(inside))
      return false;
    if (auto read = dyn_cast<tgl::ReadOp>(inside)) {
      std::optional<int64_t> step =
          stepOf(tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs()));
      if (isPacked(read.getTensorType().getElementType()) || (step && *step != 0 && *step != 1))
        return false;
    } else if (auto write = dyn_cast<tgl::WriteOp>(inside)) {
      ValueExpr offset = offsetOf(write);
      if (!addsFloats(write) || stepOf(offset) != 1 ||
          (write.getGuard() && varying.contains(write.getGuard())) ||
          !beginsWithVectors(write.getTensor(), offset, axis, width, tensorAlignment))
        return false;
      adds = true;
    }
    if (any_of(inside.getOperands(), [&](mlir::Value value) { return varying.contains(value); }))
      varying.insert_range(inside.getResults());
  }
  return adds;
}

std::optional<LaneChoice> tegula::chooseAddLanes(tgl::ParallelOp op, ArrayRef<unsigned> outer,
                                                 unsigned tensorAlignment) {
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  if (outer.empty() || outer.size() != op.getAxes().size())
    return std::nullopt;
  unsigned axis = outer.back();
  std::optional<int64_t> points = tgl::knownPoints(nest, axis);
  std::optional<int64_t> low = tgl::getAxisRange(nest, axis).lo.asConstant();
  for (unsigned width : {4u, 2u})
    if (points && low && *points % width == 0 && *low % width == 0 &&
        isAlong(op, op.getAxes()[axis], width, tensorAlignment))
      return LaneChoice{axis, width, 1};
  return std::nullopt;
}

bool tegula::emitVectorAdd(DeviceEmitter &e, mlir::Operation *op) {
  auto write = dyn_cast<tgl::WriteOp>(op);
  if (!write || !e.perThread || !e.lanes || e.lanes->mask || e.lanes->apart != 1 ||
      !addsFloats(write) || write->getParentOp() != e.statement.getOperation() ||
      !addsInVectors(e.options.target.capability))
    return false;
  const ScalarEmitter::Buffer &buffer = e.buffers.find(write.getTensor())->second;
  unsigned width = e.lanes->width;
  ValueExpr offset = offsetOf(write);
  if ((width != 2 && width != 4) || e.laneStep(offset) != 1 ||
      cast<PointerType>(buffer.pointer->getType())->getAddressSpace() != globalSpace ||
      !beginsWithVectors(write.getTensor(), offset, e.lanes->axis, width,
                         e.options.tensorAlignment))
    return false;
  IRBuilder<> &b = e.b;
  Value *mask = emitWriteMask(e, write);
  e.checks.verifyProved(buffer.type, write.getSubscriptExprs(), mask);
  if (mask && e.isVector(mask)) { // some of the lanes
    emitCombine(e, write, buffer.pointer, e.emitIndex(offset), e.valueOf(write.getValue()), mask);
    return true;
  }
  auto add = [&] {
    Value *all = e.splat(e.valueOf(write.getValue()));
    Value *first = e.emitIndexAtLaneZero(offset);
    SmallVector<Value *> operands{b.CreateInBoundsGEP(b.getFloatTy(), buffer.pointer, first)};
    for (unsigned lane = 0; lane < width; ++lane)
      operands.push_back(b.CreateExtractElement(all, lane));
    SmallVector<Type *> types =
        map_to_vector(operands, [](Value *operand) { return operand->getType(); });
    bool isPair = width == 2;
    b.CreateCall(InlineAsm::get(FunctionType::get(b.getVoidTy(), types, false),
                                isPair
                                    ? "red.relaxed.gpu.global.add.v2.f32 [$0], {$1, $2};"
                                    : "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};",
                                isPair ? "l,f,f,~{memory}" : "l,f,f,f,f,~{memory}",
                                /*hasSideEffects=*/true),
                 operands);
  };
  mask ? e.emitIf(mask, add) : add();
  return true;
}
