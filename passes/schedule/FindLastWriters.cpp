//===- FindLastWriters.cpp - Last writers without setting their places before ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A number that stands in the table counts where the point of that number writes the same place:
// then it is of this run, or of an earlier one that wrote the same. The nest computes place and
// filter of that point beside its own. All numbers that a run writes count; so one that does not is
// replaced once, by compare-and-swap, and from then on the maximum is taken.
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "ir/tgl/WriteAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_FINDLASTWRITERSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {
/// A table of last writers and what fills it.
struct Table {
  TempOp temp;
  WriteOp clear, mark; // -1, then the largest number
  SmallVector<ReadOp> reads;
  ParallelOp nest() { return mark->getParentOfType<ParallelOp>(); }
};

/// How points are numbered: in row-major order of these axes.
struct Numbering {
  SmallVector<unsigned> axes;
  ValueExpr points;
};
} // namespace

/// Whether the write stands in a statement of a launch, in no loop or nest of it.
static bool isOfStatement(WriteOp write) {
  auto nest = dyn_cast<ParallelOp>(write->getParentOp());
  return nest && isa<LaunchOp>(nest->getParentOp());
}

static std::optional<Table> matchTable(TempOp temp) {
  if (!temp->hasAttr(lastWritersAttrName) || isPrivate(temp))
    return std::nullopt;
  Table table{temp, {}, {}, {}};
  for (Operation *user : temp->getUsers()) {
    if (auto read = dyn_cast<ReadOp>(user); read && !read.getFill()) {
      table.reads.push_back(read);
      continue;
    }
    auto write = dyn_cast<WriteOp>(user);
    if (!write || write.getReplaced())
      return std::nullopt;
    WriteOp &place = write.getCombine() == ReduceKind::Max ? table.mark : table.clear;
    if (place)
      return std::nullopt;
    place = write;
  }
  if (!table.clear || !table.mark || table.clear.getCombine() != ReduceKind::Any ||
      !isOfStatement(table.clear) || !isOfStatement(table.mark))
    return std::nullopt;
  return table;
}

/// Nothing where the number is not that of the nest's own points in row-major order.
static std::optional<Numbering> matchNumbering(Table &table) {
  auto cast = table.mark.getValue().getDefiningOp<arith::IndexCastOp>();
  if (!cast)
    return std::nullopt;
  ValueExpr number = getValueExpr(cast.getIn());
  auto axes = mlir::cast<AxesOp>(table.nest().getOperation());
  Numbering numbering{{}, ValueExpr(1)};
  for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis) {
    AxisRange range = getAxisRange(axes, axis);
    for (Value own : axes.getAxes())
      if (range.lo.uses(own) || range.hi.uses(own))
        return std::nullopt;
    numbering.axes.push_back(axis);
    numbering.points = numbering.points * (range.hi - range.lo);
  }
  constexpr unsigned mostAxes = 5; // of which all orders are tried
  if (numbering.axes.size() > mostAxes)
    return std::nullopt;
  do {
    ValueExpr position(0);
    for (unsigned axis : numbering.axes) {
      AxisRange range = getAxisRange(axes, axis);
      position = position * (range.hi - range.lo) + (ValueExpr(axes.getAxes()[axis]) - range.lo);
    }
    if (position == number)
      return numbering;
  } while (std::next_permutation(numbering.axes.begin(), numbering.axes.end()));
  return std::nullopt;
}

/// The ops of the nest that place and filter of a point are made by, in order; nothing where one of
/// them is a loop, or reads what its launch writes.
static std::optional<SmallVector<Operation *>> decidingOps(Table &table) {
  ParallelOp nest = table.nest();
  Operation *launch = nest->getParentOp();
  llvm::SetVector<Value> written = accessesOf(launch).writes;
  llvm::SmallPtrSet<Operation *, 8> needed;
  SmallVector<Value> left(table.mark.getIndices());
  if (table.mark.getGuard())
    left.push_back(table.mark.getGuard());
  while (!left.empty()) {
    Operation *made = left.pop_back_val().getDefiningOp();
    if (!made || made->getParentOp() != nest || !needed.insert(made).second)
      continue;
    auto read = dyn_cast<ReadOp>(made);
    auto reads = [&](Value tensor) {
      Operation *temp = tensor.getDefiningOp();
      return !written.contains(tensor) && !(temp && launch->isAncestor(temp));
    };
    if (made->getNumRegions() || (read ? !reads(read.getTensor()) : !isMemoryEffectFree(made)))
      return std::nullopt;
    left.append(made->operand_begin(), made->operand_end());
  }
  SmallVector<Operation *> ops;
  for (Operation &op : nest.getBody().front())
    if (needed.contains(&op))
      ops.push_back(&op);
  return ops;
}

namespace {
struct FindLastWritersPass : Counted<tegula::impl::FindLastWritersPassBase<FindLastWritersPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    SmallVector<TempOp> temps;
    getOperation().walk([&](TempOp temp) { temps.push_back(temp); });
    for (TempOp temp : temps)
      if (std::optional<Table> table = matchTable(temp); table && find(*table))
        count("tables of last writers that are not set before");
  }

private:
  /// Where so many points share an element, they meet in copies of the table (few-targets), or
  /// combine in their warp before they write.
  static constexpr int64_t pointsOfElement = 8;

  bool find(Table &table) {
    std::optional<Numbering> numbering = matchNumbering(table);
    std::optional<SmallVector<Operation *>> deciding;
    if (!numbering || !(deciding = decidingOps(table)))
      return false;
    std::optional<int64_t> points = numbering->points.asConstant();
    std::optional<int64_t> elements = elementsOf(table.temp.getType());
    if (points && elements && *points / pointsOfElement > *elements)
      return false;
    if (points && *points <= std::numeric_limits<int32_t>::max())
      narrow(table);
    replaceOld(table, *numbering, *deciding);
    erase(table.clear);
    return true;
  }

  /// With its statement and its launch where these write nothing else.
  static void erase(WriteOp write) {
    Operation *nest = write->getParentOp(), *launch = nest->getParentOp();
    write.erase();
    for (Operation *around : {nest, launch})
      if (accessesOf(around).writes.empty())
        around->erase();
  }

  static std::optional<int64_t> elementsOf(TglTensorType type) {
    IndexExpr elements(1);
    for (IndexExprAttr dim : type.getDims())
      elements = elements * dim.getExpr();
    return elements.asConstant();
  }

  /// Numbers of 32 bits: half of what is read at random.
  static void narrow(Table &table) {
    OpBuilder b(table.mark);
    Type wide = b.getI64Type(), narrow = b.getI32Type();
    TglTensorType type = table.temp.getType();
    table.temp.getTensor().setType(TglTensorType::get(b.getContext(), type.getDims(), narrow));
    for (ReadOp read : table.reads) {
      b.setInsertionPointAfter(read);
      read.getResult().setType(narrow);
      Value number = arith::ExtSIOp::create(b, read.getLoc(), wide, read.getResult());
      read.getResult().replaceAllUsesExcept(number, number.getDefiningOp());
    }
  }

  static void replaceOld(Table &table, const Numbering &numbering, ArrayRef<Operation *> deciding) {
    WriteOp mark = table.mark;
    Location loc = mark.getLoc();
    OpBuilder b(mark);
    Type type = table.temp.getType().getElementType();
    SmallVector<ValueExpr> place = mark.getSubscriptExprs();
    Value guard = mark.getGuard();
    Value index = mark.getValue().getDefiningOp<arith::IndexCastOp>().getIn();
    Value own = arith::IndexCastOp::create(b, loc, type, index);
    // Outside of the table there is nothing to find: the write reports it.
    Value none;
    if (mark.getChecked())
      none = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, -1));
    auto found = ReadOp::create(b, loc, table.temp.getTensor(), place, none, guard);
    found->setAttr(unorderedAttrName, b.getUnitAttr());

    // A number of this nest, or the point's own in its place.
    Value points = arith::IndexCastOp::create(b, loc, type, materialize(b, loc, numbering.points));
    Value isNumber =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, found.getResult(), points);
    Value number = arith::SelectOp::create(b, loc, isNumber, found.getResult(), own);
    IRMapping map;
    mapAxes(b, loc, table.nest(), numbering,
            arith::IndexCastOp::create(b, loc, b.getIndexType(), number), map);
    for (Operation *op : deciding) {
      Operation *copy = b.clone(*op, map);
      if (auto indexed = dyn_cast<IndexedOp>(copy))
        foldIndices(indexed);
    }
    // Whether that point writes the same place.
    Value counts = isNumber;
    auto also = [&](Value condition) { counts = arith::AndIOp::create(b, loc, counts, condition); };
    for (const ValueExpr &subscript : place) {
      ValueExpr other = subscript.substitute([&](Value value) -> std::optional<ValueExpr> {
        Value mapped = map.lookupOrNull(value);
        return mapped ? std::optional(getValueExpr(mapped)) : std::nullopt;
      });
      if (!(other == subscript))
        also(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, materialize(b, loc, other),
                                   materialize(b, loc, subscript)));
    }
    if (guard && map.contains(guard))
      also(map.lookup(guard));

    auto write = WriteOp::create(b, loc, own, table.temp.getTensor(), place, guard, ReduceKind::Max,
                                 mark.getChecked().value_or(StringRef()));
    write.getReplacedMutable().assign(found.getResult());
    write.getUnlessMutable().assign(counts);
    for (NamedAttribute attribute : mark->getDiscardableAttrs())
      write->setAttr(attribute.getName(), attribute.getValue());
    Operation *wide = mark.getValue().getDefiningOp();
    mark.erase();
    if (wide->use_empty())
      wide->erase();
  }

  /// Maps the nest's axes to those of the point of a number.
  static void mapAxes(OpBuilder &b, Location loc, ParallelOp nest, const Numbering &numbering,
                      Value number, IRMapping &map) {
    auto axes = cast<AxesOp>(nest.getOperation());
    ValueExpr left(number);
    for (unsigned axis : llvm::reverse(numbering.axes)) {
      AxisRange range = getAxisRange(axes, axis);
      bool isFirst = axis == numbering.axes.front();
      ValueExpr extent = range.hi - range.lo;
      ValueExpr inside = isFirst ? left : ValueExpr::mod(left, extent);
      left = isFirst ? left : ValueExpr::floorDiv(left, extent);
      map.map(axes.getAxes()[axis], materialize(b, loc, range.lo + inside));
    }
  }
};
} // namespace
