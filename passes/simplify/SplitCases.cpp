//===- SplitCases.cpp - Points of different cases side by side --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/Matchers.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include <numeric>

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SPLITCASESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Cases that a thread computes one after the other, and what it computes for them.
static constexpr int64_t maxCases = 4;
static constexpr unsigned maxOperations = 48;
/// Points of a case that are worth vectors of their own.
static constexpr int64_t minPoints = 8;

namespace {
/// Where along an axis from 0 conditions and fills change.
class CasesAlong {
public:
  CasesAlong(Value axis, int64_t points) : axis(axis), points(points) {}

  /// A condition that holds from `expr >= border` on, or below it. False: its border is not known.
  bool addBorder(const ValueExpr &expr, int64_t border) {
    if (!expr.uses(axis))
      return true;
    ValueExpr rest = expr - ValueExpr(axis);
    std::optional<int64_t> shift = rest.asConstant();
    if (!shift)
      return false;
    int64_t place = border - *shift;
    if (place > 0 && place < points) {
      length = std::gcd(length, place);
      hasBorder = true;
    }
    return true;
  }

  /// Points of a case; nothing where all points are of one, or borders make too many.
  std::optional<int64_t> lengthOfCase() const {
    int64_t each = std::gcd(length, points);
    bool fits = hasBorder && each >= minPoints && points / each <= maxCases;
    return fits ? std::optional(each) : std::nullopt;
  }

private:
  Value axis;
  int64_t points, length = 0;
  bool hasBorder = false;
};

struct SplitCasesPass : Counted<tegula::impl::SplitCasesPassBase<SplitCasesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    SmallVector<ParallelOp> statements;
    getOperation().walk([&](LaunchOp launch) {
      llvm::append_range(statements, launch.getBody().getOps<ParallelOp>());
    });
    for (ParallelOp statement : statements)
      if (isPointwise(statement))
        splitFirst(statement);
  }

private:
  static bool isPointwise(ParallelOp statement) {
    unsigned operations = 0;
    return llvm::all_of(statement.getBody().front(), [&](Operation &op) {
      auto write = dyn_cast<WriteOp>(op);
      return !op.getNumRegions() && !isa<TempOp>(op) && !(write && write.getCombine()) &&
             ++operations <= maxOperations;
    });
  }

  /// The last axis, along which memory runs, where it has cases that can be told apart.
  void splitFirst(ParallelOp statement) {
    auto axes = cast<AxesOp>(statement.getOperation());
    if (axes.getAxes().empty())
      return;
    unsigned number = axes.getAxes().size() - 1;
    AxisRange range = getAxisRange(axes, number);
    std::optional<int64_t> points = knownPoints(axes, {number});
    if (range.lo.asConstant() != 0 || !points)
      return;
    CasesAlong cases(axes.getAxes()[number], *points);
    for (Operation &op : statement.getBody().front())
      if (!addBorders(op, cases))
        return;
    if (std::optional<int64_t> length = cases.lengthOfCase()) {
      split(statement, number, *length, *points / *length);
      count("statements split");
    }
  }

  static bool addBorders(Operation &op, CasesAlong &cases) {
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      APInt border;
      std::optional<ValueExpr> expr = indexOf(compare.getLhs());
      if (!matchPattern(compare.getRhs(), m_ConstantInt(&border)) || !expr)
        return true; // stays in each case
      using Predicate = arith::CmpIPredicate;
      bool isBehind =
          compare.getPredicate() == Predicate::sle || compare.getPredicate() == Predicate::sgt;
      bool isOrder = isBehind || compare.getPredicate() == Predicate::slt ||
                     compare.getPredicate() == Predicate::sge;
      return !isOrder || cases.addBorder(*expr, border.getSExtValue() + isBehind);
    }
    auto read = dyn_cast<ReadOp>(op);
    if (!read || !read.getFill())
      return true;
    return llvm::all_of(
        llvm::zip_equal(read.getSubscriptExprs(), read.getTensorType().getDims()), [&](auto pair) {
          auto [subscript, dim] = pair;
          std::optional<int64_t> size = dim.getExpr().asConstant();
          return size && cases.addBorder(subscript, 0) && cases.addBorder(subscript, *size);
        });
  }

  /// The index that an integer is; nothing for other integers.
  static std::optional<ValueExpr> indexOf(Value value) {
    while (auto cast = value.getDefiningOp<arith::IndexCastOp>())
      value = cast.getIn();
    if (!value.getType().isIndex())
      return std::nullopt;
    if (auto index = value.getDefiningOp<IndexOp>())
      return index.getValueExpr();
    return ValueExpr(value);
  }

  /// Each point computes one of every case.
  static void split(ParallelOp statement, unsigned number, int64_t length, int64_t cases) {
    auto op = cast<AxesOp>(statement.getOperation());
    OpBuilder builder(statement.getContext());
    std::string name = getAxisName(op, number).str();
    BlockArgument inside = insertAxis(op, number, {name, ValueExpr(0), ValueExpr(length)});
    Value old = op.getAxes()[number + 1];
    Block &body = statement.getBody().front();
    SmallVector<Operation *> operations;
    for (Operation &one : body)
      operations.push_back(&one);
    builder.setInsertionPointToEnd(&body);
    for (int64_t which = 0; which < cases; ++which) {
      Value place =
          materialize(builder, statement.getLoc(), ValueExpr(inside) + ValueExpr(which * length));
      IRMapping map;
      map.map(old, place);
      for (Operation *one : operations)
        builder.clone(*one, map);
    }
    for (Operation *one : llvm::reverse(operations))
      one->erase();
    eraseAxis(op, number + 1);
  }
};
} // namespace
