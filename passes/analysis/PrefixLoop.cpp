//===- PrefixLoop.cpp - Matches loops that carry a running total ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/PrefixLoop.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseSet.h"

using namespace llvm;
using namespace tegula;

std::optional<SteppedLoop> tegula::matchSteppedLoop(tgl::ForOp loop) {
  tgl::Accesses accesses = tgl::accessesOf(loop);
  for (mlir::Value tensor : accesses.writes)
    if (accesses.reads.contains(tensor))
      return std::nullopt;
  SteppedLoop stepped{loop, {}, {}};
  DenseSet<mlir::Value> late;
  late.insert_range(loop.getIterArgs());
  for (mlir::Operation &op : loop.getBody().front()) {
    if (isa<tgl::YieldOp>(op))
      continue;
    bool isSeldom = op.hasAttr(seldomAttribute);
    if ((op.getNumRegions() && !isSeldom) || isa<tgl::TempOp>(op))
      return std::nullopt;
    bool isLate = isSeldom || isa<tgl::WriteOp>(op) ||
                  any_of(op.getOperands(), [&](mlir::Value value) { return late.contains(value); });
    if (isLate)
      late.insert_range(op.getResults());
    (isLate ? stepped.after : stepped.before).push_back(&op);
  }
  return stepped;
}

unsigned tegula::stepsTogether(const SteppedLoop &stepped, bool hasLanes) {
  constexpr unsigned together = 8, maxOperations = 32;
  tgl::ForOp loop = stepped.loop;
  // Elementary functions are a dozen instructions each: copies of them would only fill the
  // instruction cache.
  auto isFunction = [](mlir::Operation &op) {
    return isa<mlir::math::MathDialect>(op.getDialect()) &&
           !isa<mlir::math::AbsFOp, mlir::math::FmaOp>(op);
  };
  unsigned operations = 0;
  for (mlir::Operation &op : loop.getBody().front())
    operations += isFunction(op) ? 16 : 1;
  bool loads = any_of(stepped.before, IsaPred<tgl::ReadOp>);
  if (!loads || operations > maxOperations || loop->hasAttr(seldomAttribute))
    return 1;
  return hasLanes ? together / 2 : together;
}

/// Whether each step writes an element of its own: the place moves by a constant, or the write was
/// a point's of a `parallel`.
static bool isOwnOfStep(tgl::WriteOp write, tgl::ForOp loop) {
  SmallVector<tgl::ValueExpr> places = write.getSubscriptExprs();
  places.push_back(tgl::elementOffset(write.getTensorType(), places));
  bool moves = any_of(places, [&](const tgl::ValueExpr &place) {
    bool isChosen = any_of(place.operands(), [&](mlir::Value value) {
      return value != loop.getLoopVar() && loop->isAncestor(value.getParentBlock()->getParentOp());
    });
    return !isChosen && tgl::stepAlong(place, loop.getLoopVar()).value_or(0) != 0;
  });
  return moves || write->hasAttr(apartAttribute);
}

/// Whether steps may write in any order: no two of them replace one element, and none replaces what
/// another adds to.
static bool writesInAnyOrder(tgl::ForOp loop) {
  DenseMap<mlir::Value, tgl::WriteOp> seen;
  for (tgl::WriteOp write : loop.getBody().getOps<tgl::WriteOp>()) {
    auto [other, isFirst] = seen.try_emplace(write.getTensor(), write);
    tgl::WriteOp first = other->second;
    if (first.getCombine() != write.getCombine())
      return false;
    if (write.getCombine())
      continue;
    bool isSamePlace = isFirst || equal(first.getSubscriptExprs(), write.getSubscriptExprs());
    if (!isSamePlace || !isOwnOfStep(write, loop))
      return false;
  }
  return true;
}

Matched<PrefixLoop> tegula::matchPrefixLoop(tgl::ForOp loop) {
  if (loop.getIterArgs().size() != 1)
    return Mismatch{"the loop carries " + std::to_string(loop.getIterArgs().size()) +
                        " values from step to step, not one",
                    "", loop, loop.getIterArgs().empty()};
  std::optional<SteppedLoop> stepped = matchSteppedLoop(loop);
  mlir::Operation *combine = loop.getYield().getValues()[0].getDefiningOp();
  if (!stepped || !combine || combine->getParentOp() != loop ||
      !isa<mlir::arith::AddFOp, mlir::arith::AddIOp, mlir::arith::MulFOp, mlir::arith::MulIOp,
           mlir::arith::MaximumFOp, mlir::arith::MinimumFOp, mlir::arith::MaxSIOp,
           mlir::arith::MinSIOp>(combine))
    return Mismatch{"a step of the loop does not end by adding, multiplying or taking the larger "
                    "or smaller of what it carries",
                    "", loop};
  if (!writesInAnyOrder(loop))
    return Mismatch{"steps of the loop may write the same element, where the last one counts", "",
                    loop};
  mlir::Value carried = loop.getIterArgs()[0];
  bool first = combine->getOperand(0) == carried;
  if (!first && combine->getOperand(1) != carried)
    return Mismatch{
        "what the loop carries is changed before a step adds to it; tiles of a scan are for plain "
        "sums, products, largest and smallest values",
        "", loop};
  mlir::Value added = combine->getOperand(first ? 1 : 0);
  bool isLate = added == carried || is_contained(stepped->after, added.getDefiningOp());
  if (isLate)
    return Mismatch{"what is added depends on what the loop carries", "", loop};
  return PrefixLoop{std::move(*stepped), combine, added};
}

std::optional<AffineLoop> tegula::matchAffineLoop(tgl::ForOp loop) {
  if (loop.getIterArgs().size() != 1 || !loop.getIterArgs()[0].getType().isF32())
    return std::nullopt;
  std::optional<SteppedLoop> stepped = matchSteppedLoop(loop);
  mlir::Value carried = loop.getIterArgs()[0], next = loop.getYield().getValues()[0];
  auto add = next.getDefiningOp<mlir::arith::AddFOp>();
  if (!stepped || !add || add->getParentOp() != loop || !writesInAnyOrder(loop))
    return std::nullopt;
  auto isLate = [&](mlir::Value value) {
    return value == carried || is_contained(stepped->after, value.getDefiningOp());
  };
  for (unsigned side : {0u, 1u}) {
    auto scaled = add->getOperand(side).getDefiningOp<mlir::arith::MulFOp>();
    mlir::Value added = add->getOperand(1 - side);
    if (!scaled || scaled->getParentOp() != loop || isLate(added))
      continue;
    bool first = scaled.getLhs() == carried;
    mlir::Value factor = first ? scaled.getRhs() : scaled.getLhs();
    if ((first || scaled.getRhs() == carried) && !isLate(factor))
      return AffineLoop{std::move(*stepped), factor, added};
  }
  return std::nullopt;
}
