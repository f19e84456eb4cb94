//===- PeelInterior.cpp - Peels interior points, whose reads need no bounds check ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A window over a padded tensor leaves it at few points. So a reduction with reads that have a fill
// is emitted twice: once for points where the first and the last element of each window exist,
// without any check, and once with checks. Subscripts that grow or shrink steadily along each axis
// of the reduction (and along lanes) are largest and smallest at the corners of its box: where what
// lies between the corners is less than 2^63, so that subscripts, which wrap, do not come back into
// the tensor on the way.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/PeelInterior.h"

#include "codegen/common/ScalarEmitter.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// With steps and numbers of points of less than these, and at most 16 axes and lanes, corners are
/// less than 2^63 apart.
static constexpr int64_t maxStep = int64_t(1) << 16, maxPoints = int64_t(1) << 42;
static constexpr unsigned maxAxes = 15;

static bool isSmall(int64_t step) { return -maxStep < step && step < maxStep; }

/// `subscript` at the corner of the reduction's box where it is smallest (largest); nothing where
/// it is not steady along an axis, or takes large steps. Axes are taken from the last, whose bounds
/// may use those before. The numbers of points of the axes that it uses, where they are not known,
/// are appended to `points`.
static std::optional<ValueExpr> atCorner(ValueExpr subscript, tgl::AxesOp op, bool largest,
                                         SmallVectorImpl<ValueExpr> &points) {
  if (op.getAxes().size() > maxAxes)
    return std::nullopt;
  for (unsigned axis = op.getAxes().size(); axis-- > 0;) {
    mlir::Value variable = op.getAxes()[axis];
    if (!subscript.uses(variable))
      continue;
    ValueExpr one(int64_t(1));
    ValueExpr next = subscript.substitute(variable, ValueExpr(variable) + one);
    std::optional<int64_t> step = (next - subscript).asConstant();
    if (!step || !isSmall(*step))
      return std::nullopt;
    tgl::AxisRange range = tgl::getAxisRange(op, axis);
    ValueExpr extent = range.hi - range.lo;
    std::optional<int64_t> known = extent.asConstant();
    if (known && *known >= maxPoints)
      return std::nullopt;
    if (!known)
      points.push_back(extent);
    subscript = subscript.substitute(variable, (*step > 0) == largest ? range.hi - one : range.lo);
  }
  return subscript;
}

/// A bit that says that `subscript` is inside [0, size) all over the box and the lanes; null where
/// that cannot be said by its corners.
static Value *emitInside(ScalarEmitter &e, const ValueExpr &subscript, const IndexExpr &size,
                         tgl::AxesOp op) {
  IRBuilder<> &b = e.b;
  Value *inside = nullptr;
  auto also = [&](Value *condition) {
    inside = inside ? b.CreateAnd(inside, condition) : condition;
  };
  for (bool largest : {false, true}) {
    SmallVector<ValueExpr> points;
    std::optional<ValueExpr> corner = atCorner(subscript, op, largest, points);
    if (!corner)
      return nullptr;
    bool atLastLane = false;
    for (mlir::Value operand : corner->operands()) {
      if (op->isAncestor(operand.getParentBlock()->getParentOp()))
        return nullptr; // data
      if (!e.lanes || operand != e.lanes->axis) {
        if (e.isVector(e.valueOf(operand)))
          return nullptr;
        continue;
      }
      ValueExpr next = corner->substitute(operand, ValueExpr(operand) + ValueExpr(int64_t(1)));
      std::optional<int64_t> step = (next - *corner).asConstant();
      if (!step || !isSmall(*step))
        return nullptr;
      atLastLane = (*step > 0) == largest;
    }
    Value *value = e.emitExpr(corner->expr(), [&](const IndexVar &var) -> Value * {
      if (var.isSymbol())
        return e.sizeOf(var.name());
      mlir::Value operand = corner->operands()[var.position()];
      if (!e.lanes || operand != e.lanes->axis)
        return e.valueOf(operand);
      return atLastLane ? e.lanes->last : e.lanes->base;
    });
    also(largest ? b.CreateICmpULT(value, e.emitSize(size)) : b.CreateICmpSGE(value, e.i64(0)));
    for (const ValueExpr &extent : largest ? ArrayRef(points) : ArrayRef<ValueExpr>()) {
      bool isKnown = llvm::none_of(extent.operands(), [&](mlir::Value operand) {
        return op->isAncestor(operand.getParentBlock()->getParentOp()) ||
               e.isVector(e.valueOf(operand));
      });
      if (!isKnown)
        return nullptr;
      also(b.CreateICmpSLT(e.emitIndex(extent), e.i64(maxPoints)));
    }
  }
  return inside;
}

/// Collects in `free` the reads of the reduction that need no check where the result holds.
Value *tegula::emitPeeledInterior(ScalarEmitter &e, tgl::ReduceOp op,
                                  SmallVectorImpl<mlir::Operation *> &free) {
  IRBuilder<> &b = e.b;
  constexpr unsigned maxOperations = 48; // all of it is emitted twice
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  Value *interior = nullptr;
  unsigned operations = 0;
  for (mlir::Operation &nested : op.getBody().front()) {
    if (nested.getNumRegions() || ++operations > maxOperations)
      return nullptr;
    auto read = dyn_cast<tgl::ReadOp>(nested);
    if (!read || !read.getFill() || !read.getExactExprs().empty() || e.options.checked)
      continue;
    Value *inside = nullptr;
    for (auto [subscript, dim] :
         zip_equal(read.getSubscriptExprs(), read.getTensorType().getDims())) {
      Value *one = emitInside(e, subscript, dim.getExpr(), axes);
      if (!one) {
        inside = nullptr;
        break;
      }
      inside = inside ? b.CreateAnd(inside, one) : one;
    }
    if (!inside)
      continue;
    interior = interior ? b.CreateAnd(interior, inside) : inside;
    free.push_back(read);
  }
  return interior;
}
