//===- CollapseAxes.cpp - Collapses neighbouring axes ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "strategies/contraction/plan/ContractionPlan.h"
#include "strategies/skinny_product/plan/SkinnyProduct.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_COLLAPSEAXESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {
/// Two axes of an op as one: outer = joined // extent, inner = joined % extent.
struct Joint {
  Value outer, inner;
  ValueExpr extent; // of the inner axis

  std::optional<ValueExpr> replace(Value value, const ValueExpr &joined) const {
    if (value != outer && value != inner)
      return std::nullopt;
    ValueExpr quotient = ValueExpr::floorDiv(joined, extent);
    return value == outer ? quotient : joined - quotient * extent;
  }
};

struct CollapseAxesPass : Counted<tegula::impl::CollapseAxesPassBase<CollapseAxesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    SmallVector<SmallVector<AxesOp>> groups;
    getOperation().walk<WalkOrder::PreOrder>([&](AxesOp op) {
      if (!isa<ParallelOp, ReduceOp>(op.getOperation()))
        return WalkResult::advance();
      // Tiles are made of the axes of a product, or of rows that run through tiles, or of windows.
      auto statement = dyn_cast<ParallelOp>(op.getOperation());
      if (alike && statement &&
          (planContraction(statement, /*byVectors=*/false) || planSkinnyProduct(statement) ||
           hasTiles(statement)))
        return WalkResult::skip();
      bool isOutermost = isa<LaunchOp, KernelOp>(op->getParentOp());
      if (alike && statement && isOutermost && hasWindows(statement))
        return WalkResult::advance();
      auto *found = llvm::find_if(
          groups, [&](ArrayRef<AxesOp> group) { return alike && areAlike(group.front(), op); });
      if (found != groups.end())
        found->push_back(op);
      else
        groups.push_back({op});
      return WalkResult::advance();
    });
    for (ArrayRef<AxesOp> group : groups)
      while (collapsePair(group))
        count("axes collapsed", group.size());
  }

  static bool hasTiles(ParallelOp statement) {
    return statement->walk([](TilesOp) { return WalkResult::interrupt(); }).wasInterrupted();
  }

  /// Nests of one statement over the same axes, which may be walked together.
  static bool areAlike(AxesOp a, AxesOp b) {
    return a->getBlock() == b->getBlock() && !isa<LaunchOp, KernelOp>(a->getParentOp()) &&
           llvm::equal(getAxisRanges(a), getAxisRanges(b),
                       [](const AxisRange &left, const AxisRange &right) {
                         return left.lo == right.lo && left.hi == right.hi;
                       });
  }

  static bool collapsePair(ArrayRef<AxesOp> group) {
    // The position of an argmax is its axis.
    if (llvm::any_of(group, [](AxesOp op) {
          auto reduce = dyn_cast<ReduceOp>(op.getOperation());
          return reduce &&
                 (reduce.getKind() == ReduceKind::ArgMax || reduce.getKind() == ReduceKind::ArgMin);
        }))
      return false;
    unsigned numAxes = AxesOp(group.front()).getAxes().size();
    for (unsigned outer = 0; outer < numAxes; ++outer)
      for (unsigned inner = 0; inner < numAxes; ++inner) {
        auto jointOf = [&](AxesOp op) {
          return Joint{op.getAxes()[outer], op.getAxes()[inner], getAxisRange(op, inner).hi};
        };
        if (outer == inner || !llvm::all_of(group, [&](AxesOp op) {
              return isBox(op, outer) && isBox(op, inner) && canJoin(jointOf(op));
            }))
          continue;
        for (AxesOp op : group)
          join(op, outer, inner, jointOf(op));
        return true;
      }
    return false;
  }

  /// Whether windows of a few points in more than one dim are reduced at its points: a thread of a
  /// GPU takes tiles of them (codegen/simt/WindowTiles.cpp), which are told by the step of each
  /// subscript along each axis.
  static bool hasWindows(ParallelOp op) {
    constexpr int64_t maxPoints = 64;
    return llvm::any_of(op.getBody().getOps<ReduceOp>(), [&](ReduceOp reduce) {
      auto own = cast<AxesOp>(reduce.getOperation());
      std::optional<int64_t> points = knownPoints(own);
      return points && *points <= maxPoints &&
             llvm::any_of(reduce.getBody().getOps<ReadOp>(), [&](ReadOp read) {
               unsigned dims = 0; // in which windows move
               for (const ValueExpr &subscript : read.getSubscriptExprs()) {
                 bool isWalked = llvm::any_of(llvm::enumerate(reduce.getAxes()), [&](auto each) {
                   return knownPoints(own, {unsigned(each.index())}) != 1 &&
                          subscript.uses(each.value());
                 });
                 dims += isWalked && llvm::any_of(op.getAxes(),
                                                  [&](Value axis) { return subscript.uses(axis); });
               }
               return dims > 1;
             });
    });
  }

  /// From 0 to a size, and in no bound of another axis.
  static bool isBox(AxesOp op, unsigned axis) {
    AxisRange range = getAxisRange(op, axis);
    Value value = op.getAxes()[axis];
    return range.lo.asConstant() == 0 && range.hi.operands().empty() &&
           llvm::none_of(getAxisRanges(op), [&](const AxisRange &other) {
             return other.lo.uses(value) || other.hi.uses(value);
           });
  }

  /// Whether both axes are used in accesses alone, and there as one: the place of an element must
  /// not change when the outer axis is 0 and the inner counts through both.
  static bool canJoin(const Joint &joint) {
    llvm::SetVector<Operation *> users;
    for (Value axis : {joint.outer, joint.inner})
      users.insert_range(axis.getUsers());
    ValueExpr number = ValueExpr(joint.outer) * joint.extent + ValueExpr(joint.inner);
    auto isJoint = [&](auto access) {
      if (access.getChecked() || access.getTensorType().getElementType().isInteger(4) ||
          isOtherPlace(access, joint))
        return false;
      ValueExpr offset(0);
      for (auto [subscript, dim] :
           llvm::zip_equal(access.getSubscriptExprs(), access.getTensorType().getDims()))
        offset = offset * ValueExpr(dim.getExpr()) + subscript;
      ValueExpr counted = offset.substitute([&](Value value) -> std::optional<ValueExpr> {
        if (value == joint.outer)
          return ValueExpr(0);
        return value == joint.inner ? std::optional(number) : std::nullopt;
      });
      return counted == offset;
    };
    return !users.empty() && llvm::all_of(users, [&](Operation *user) {
      if (auto read = dyn_cast<ReadOp>(user))
        return !read.getFill() && read.getExactNumerators().empty() && isJoint(read);
      auto write = dyn_cast<WriteOp>(user);
      return write && isJoint(write);
    });
  }

  /// Whether counting through both gives another place where the sizes are some numbers. Nearly
  /// every pair of axes is told apart so; multiplying polynomials out takes a hundred times as
  /// long.
  static bool isOtherPlace(auto access, const Joint &joint) {
    auto at = [&](const ValueExpr &expr, int64_t outer, int64_t inner) {
      return expr.expr().evaluate([&](const IndexVar &variable) -> std::optional<int64_t> {
        if (variable.isSymbol())
          return 1024 + llvm::xxh3_64bits(variable.name()) % 1024;
        Value value = expr.operands()[variable.position()];
        return value == joint.outer ? outer : value == joint.inner ? inner : 101;
      });
    };
    auto placeAt = [&](int64_t outer, int64_t inner) -> std::optional<uint64_t> {
      uint64_t place = 0; // modulo 2^64, where equal polynomials are equal too
      for (auto [subscript, dim] :
           llvm::zip_equal(access.getSubscriptExprs(), access.getTensorType().getDims())) {
        std::optional<int64_t> size = at(ValueExpr(dim.getExpr()), 0, 0);
        std::optional<int64_t> index = at(subscript, outer, inner);
        if (!size || !index)
          return std::nullopt;
        place = place * *size + *index;
      }
      return place;
    };
    std::optional<int64_t> extent = at(joint.extent, 0, 0);
    if (!extent)
      return false;
    std::optional<uint64_t> place = placeAt(3, 5), counted = placeAt(0, 3 * *extent + 5);
    return place && counted && *place != *counted;
  }

  static void join(AxesOp op, unsigned outer, unsigned inner, const Joint &joint) {
    ValueExpr extent = getAxisRange(op, outer).hi * joint.extent;
    std::string name = (getAxisName(op, outer) + "_" + getAxisName(op, inner)).str();
    BlockArgument joined = insertAxis(op, inner + 1, {name, ValueExpr(0), extent});
    llvm::SetVector<Operation *> users;
    for (Value axis : {joint.outer, joint.inner})
      users.insert_range(axis.getUsers());
    for (Operation *user : users)
      rewriteExprs(cast<IndexedOp>(user), [&](const ValueExpr &expr) {
        return expr.substitute(
            [&](Value value) { return joint.replace(value, ValueExpr(joined)); });
      });
    unsigned outerNow = outer > inner ? outer + 1 : outer;
    eraseAxis(op, std::max(outerNow, inner));
    eraseAxis(op, std::min(outerNow, inner));
  }
};
} // namespace
