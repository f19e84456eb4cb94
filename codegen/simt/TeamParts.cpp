//===- TeamParts.cpp - Deals points out to parts of a team ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Thread `t` of a team takes the vectors t, t + team, ... of a row. With parts of as many threads
// as a group has vectors, these are its vectors of the groups too: what nests over the row have
// read stays in registers.
//
//   team of 8, groups of 4 vectors      thread   0   1   2   3   4   5   6   7
//                                      round 0   g0: 0 1 2 3     g1: 0 1 2 3
//                                      round 1   g2: 0 1 2 3     g3: 0 1 2 3
//
// All threads of a warp take the same rounds, since shuffles and barriers are for whole warps:
// threads without a point repeat one and write nothing. Where a nest reads what it has written it
// is one of their own warp.
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/TeamParts.h"

#include "codegen/simt/DeviceEmitter.h"
#include "codegen/simt/NestShape.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// The expressions of an access; nothing for other ops, and for temporaries of a point that threads
/// do not keep (PrivateTemporaries.cpp).
static std::optional<SmallVector<ValueExpr>> placesOf(DeviceEmitter &e, mlir::Operation *op,
                                                      tgl::ParallelOp nest) {
  for (mlir::Value operand : op->getOperands())
    if (auto temp = operand.getDefiningOp<tgl::TempOp>(); temp && nest->isAncestor(temp)) {
      if (e.exchanged.contains(operand))
        return std::nullopt;
      return SmallVector<ValueExpr>();
    }
  if (auto read = dyn_cast<tgl::ReadOp>(op)) {
    SmallVector<ValueExpr> places = read.getSubscriptExprs();
    for (const auto &[numerator, denominator] : read.getExactExprs())
      places.append({numerator, denominator});
    return places;
  }
  if (auto write = dyn_cast<tgl::WriteOp>(op))
    return write.getSubscriptExprs();
  return std::nullopt;
}

/// Whether the nests inside use the nest's axis `g` and their own `j` as `terms*g + j` alone, with
/// terms 0 to `terms` of j: they go through a row of which each point has a piece. (What a thread
/// keeps of a temporary has no place.)
static bool goesThroughPieces(DeviceEmitter &e, tgl::ParallelOp nest, int64_t terms) {
  if (nest.getAxes().size() != 1 || lowOf(nest.getAxes()[0]).asConstant() != 0)
    return false;
  mlir::Value piece = nest.getAxes()[0];
  auto isPlace = [&](const ValueExpr &expr, mlir::Value own) {
    if (!expr.uses(piece) && !expr.uses(own))
      return true;
    ValueExpr rest = expr - ValueExpr(terms) * ValueExpr(piece) - ValueExpr(own);
    return !rest.uses(piece) && !rest.uses(own);
  };
  return all_of(nest.getBody().front(), [&](mlir::Operation &op) {
    auto inner = dyn_cast<tgl::AxesOp>(op);
    if (!inner)
      return true;
    if (inner.getAxes().size() != 1 || lowOf(inner.getAxes()[0]).asConstant() != 0 ||
        highOf(inner.getAxes()[0]).asConstant() != terms)
      return false;
    mlir::Value own = inner.getAxes()[0];
    return all_of(*inner.getAxesBlock(), [&](mlir::Operation &nested) {
      if (none_of(nested.getOperands(),
                  [&](mlir::Value value) { return value == piece || value == own; }))
        return true;
      std::optional<SmallVector<ValueExpr>> places = placesOf(e, &nested, nest);
      return places && all_of(*places, [&](const ValueExpr &expr) { return isPlace(expr, own); });
    });
  });
}

/// Emits the nest at its current point, for this part of the team. `vector`: the number of this
/// thread's vector in the row that the nests inside go through piece by piece; null where they do
/// not. They then have the addresses that other nests over the row have, which LLVM finds to be the
/// same.
static void emitPoint(DeviceEmitter &e, tgl::ParallelOp nest, Value *vector) {
  Value *piece = vector ? e.values.lookup(nest.getAxes()[0]) : nullptr, *thread = e.thread;
  for (mlir::Operation &op : nest.getBody().front()) {
    if (isa<tgl::YieldOp>(op))
      continue;
    bool isOfRow = vector && isa<tgl::AxesOp>(op);
    if (isOfRow) {
      e.values[nest.getAxes()[0]] = e.i64(0);
      e.thread = vector;
    }
    e.emitOp(&op);
    if (isOfRow) {
      e.values[nest.getAxes()[0]] = piece;
      e.thread = thread;
    }
    if (e.failed())
      return;
  }
}

void tegula::emitInParts(DeviceEmitter &e, tgl::ParallelOp nest) {
  assert(e.shape.cluster == 1 && "a cluster shares rows that no nest takes in parts");
  IRBuilder<> &b = e.b;
  auto axes = cast<tgl::AxesOp>(nest.getOperation());
  SmallVector<unsigned> box = to_vector(seq<unsigned>(0, axes.getAxes().size()));
  Value *thread = e.thread, *isPoint = e.isPoint;
  unsigned team = e.shape.team, width = 0;
  bool isAlike = true; // vectors of all nests inside
  unsigned part = threadsOfPart(nest, team, [&](tgl::AxesOp inner) {
    std::optional<LaneChoice> lane = e.chooseLanes(inner);
    unsigned own = lane ? lane->width : 1;
    isAlike &= !width || own == width;
    width = own;
    return lane;
  });
  bool isRow = isAlike && goesThroughPieces(e, nest, int64_t(part) * width);
  int64_t all = *tgl::knownPoints(axes) * part; // threads for all points
  int64_t rounds = divideCeil(all, int64_t(team)), whole = all / team;
  bool seen = e.exchanges(nest);
  if (seen)
    e.barrier(); // earlier writes of all threads are seen, earlier reads are over
  auto takePoint = [&](Value *number) {
    e.shape.team = part;
    e.thread = b.CreateURem(number, e.i64(part));
    e.setAxes(axes, box, b.CreateUDiv(number, e.i64(part)), std::nullopt,
              [&] { emitPoint(e, nest, isRow ? number : nullptr); });
    e.shape.team = team;
    e.thread = thread;
  };
  auto takeRound = [&](Value *round, bool isWhole) {
    Value *number = b.CreateNSWAdd(thread, b.CreateNSWMul(round, e.i64(team)));
    if (isWhole)
      return takePoint(number);
    Value *exists = b.CreateICmpULT(number, e.i64(all));
    e.isPoint = e.emitAnd(isPoint, exists);
    if (seen) {
      // Warps without a point have nobody whose elements they could read.
      Value *first = b.CreateAnd(number, e.i64(-int64_t(DeviceEmitter::warp)));
      Value *repeated = b.CreateNSWAdd(first, b.CreateURem(number, e.i64(part)));
      e.emitIf(b.CreateICmpULT(first, e.i64(all)),
               [&] { takePoint(b.CreateSelect(exists, number, repeated)); });
    } else {
      takePoint(b.CreateBinaryIntrinsic(Intrinsic::umin, number, e.i64(all - 1)));
    }
    e.isPoint = isPoint;
  };
  int64_t first = 0;
  if (rounds > e.maxRounds) {
    e.keepNextLoopRolled = true;
    e.emitLoop(e.i64(0), e.i64(whole), e.i64(1), {}, [&](Value *round, ArrayRef<Value *>) {
      takeRound(round, true);
      return SmallVector<Value *>();
    });
    first = whole;
  }
  for (int64_t round = first; round < rounds; ++round)
    takeRound(e.i64(round), round < whole);
  if (seen)
    e.barrier();
}
