//===- Outline.cpp - Outlines a value into a statement over its own axes --===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Outline.h"
#include "ir/tgl/TglFunctions.h"
#include "ir/tgl/TglReports.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

bool tegula::isCostly(Operation *op) {
  if (isa<RandomOp, arith::DivFOp>(op) || op->hasTrait<FloatFunction>())
    return true;
  return isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
         !isa<math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::RoundEvenOp,
              math::TruncOp, math::FmaOp, math::CopySignOp, math::IsNaNOp, math::IsInfOp>(op);
}

namespace {
/// Follows what a value is computed from through the ops with axes around it.
class Needs {
public:
  explicit Needs(Operation *op) {
    for (Operation *parent = op->getParentOp(); isa<AxesOp>(parent); parent = parent->getParentOp())
      chain.push_back(parent);
    limit = chain.size();
  }

  void add(Value value) {
    if (!seen.insert(value).second)
      return;
    if (AxesOp owner = axesOpOf(value); owner && llvm::is_contained(chain, owner)) {
      for (const ValueExpr &bound : {lowOf(value), highOf(value)})
        for (Value operand : bound.operands())
          add(operand);
      return;
    }
    Operation *def = value.getDefiningOp();
    size_t level = def ? llvm::find(chain, def->getParentOp()) - chain.begin() : chain.size();
    if (level == chain.size())
      return; // available at the anchor, wherever it is
    if (isa<TempOp>(def))
      limit = std::min(limit, level); // the temporary is not visible further out
    else
      ops.insert(def);
    for (Value used : valuesUsedBy(def))
      add(used);
  }

  bool has(Value axis) const { return seen.contains(axis); }

  SmallVector<Operation *> chain; // innermost first
  size_t limit;                   // how many of the chain may be left
  DenseSet<Operation *> ops;

private:
  DenseSet<Value> seen;
};
} // namespace

/// Whether a statement writes a tensor that one of `ops`, or an op in them, reads.
static bool writesWhatIsRead(Operation *statement, ArrayRef<Operation *> ops) {
  SetVector<Value> written = accessesOf(statement).writes;
  return llvm::any_of(ops, [&](Operation *op) {
    return llvm::any_of(accessesOf(op).reads,
                        [&](Value tensor) { return written.contains(tensor); });
  });
}

/// Own axes of the `depth` innermost ops around, outermost first.
static SmallVector<Value> ownAxes(const Needs &needs, size_t depth) {
  SmallVector<Value> axes;
  for (Operation *around : llvm::reverse(ArrayRef(needs.chain).take_front(depth)))
    for (Value axis : cast<AxesOp>(around).getAxes())
      if (needs.has(axis))
        axes.push_back(axis);
  return axes;
}

/// The outline of a value that leaves the `depth` innermost ops around it.
static std::optional<Outline> outlineAt(Operation *op, const Needs &needs, size_t depth) {
  if (depth > needs.limit || depth > needs.chain.size())
    return std::nullopt;
  Outline result;
  result.anchor = depth == 0 ? op : needs.chain[depth - 1];
  result.axes = ownAxes(needs, depth);
  for (Operation *around : ArrayRef(needs.chain).take_front(depth))
    for (Value axis : cast<AxesOp>(around).getAxes())
      if (!needs.has(axis))
        result.left.push_back(axis);
  for (Operation *around : llvm::reverse(ArrayRef(needs.chain).take_front(depth)))
    for (Operation &nested : cast<AxesOp>(around).getAxesBlock()->without_terminator())
      if (needs.ops.contains(&nested))
        result.ops.insert(&nested);
  SmallVector<Operation *> moved(result.ops.begin(), result.ops.end());
  moved.push_back(op);
  if (depth && writesWhatIsRead(result.anchor, moved))
    return std::nullopt;
  return result;
}

std::optional<Outline> tegula::outline(Operation *op, ArrayRef<Value> values, OutlineMode mode) {
  Needs needs(op);
  for (Value value : values)
    needs.add(value);
  ArrayRef<Operation *> chain = needs.chain;
  // How many of the ops around it the value leaves: at least those with an axis that it does not
  // use.
  size_t depth = 0;
  for (auto [level, around] : llvm::enumerate(chain.take_front(needs.limit)))
    if (llvm::any_of(cast<AxesOp>(around).getAxes(), [&](Value axis) { return !needs.has(axis); }))
      depth = level + 1;
  if (mode == OutlineMode::IfRepeated && depth == 0)
    return std::nullopt;
  // A statement cannot stand in a reduction; a single value can.
  while (depth < chain.size() && !isa<ParallelOp>(chain[depth]) &&
         (mode == OutlineMode::Always || !ownAxes(needs, depth).empty()))
    ++depth;
  return outlineAt(op, needs, depth);
}

Operation *tegula::largestAlike(Operation *op, size_t numAxes) {
  while (op->hasOneUse()) {
    Operation *user = *op->user_begin();
    if (user->getBlock() != op->getBlock() || user->getNumResults() != 1 || user->getNumRegions() ||
        !isMemoryEffectFree(user) || isa<IndexType>(user->getResult(0).getType()))
      break;
    std::optional<Outline> where =
        outline(user, valuesUsedBy(user).getArrayRef(), OutlineMode::IfRepeated);
    if (!where || where->axes.size() != numAxes)
      break;
    op = user;
  }
  return op;
}

std::optional<Outline> tegula::outlineTo(Operation *anchor, Operation *op, ArrayRef<Value> values) {
  Needs needs(op);
  for (Value value : values)
    needs.add(value);
  const auto *found = llvm::find(needs.chain, anchor);
  if (found == needs.chain.end())
    return std::nullopt;
  return outlineAt(op, needs, found - needs.chain.begin() + 1);
}

/// Whether a launch's guard is why the read stays inside its tensor: nothing at its place proves
/// it. A guard holds at points of the axes that the subscript had in the program. Simplified, it
/// may have fewer: `b[i] % n` of a tensor whose size n is 1 is 0 at every i.
static bool isInBoundsByGuard(ReadOp read, Prover &prover) {
  if (read.getChecked() || read.getFill())
    return false;
  AxisScope scope(prover, read);
  return !llvm::all_of(llvm::zip_equal(read.getSubscriptExprs(), read.getTensorType().getDims()),
                       [&](auto pair) {
                         auto [subscript, dim] = pair;
                         return scope.provesInBounds(subscript, dim.getExpr());
                       });
}

/// The read happens only where the lengths are positive.
static void readOnlyWithin(ReadOp read, ArrayRef<ValueExpr> lengths) {
  OpBuilder builder(read);
  Location loc = read.getLoc();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0), guard = read.getGuard();
  for (const ValueExpr &length : lengths) {
    Value has = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt,
                                      IndexOp::create(builder, loc, length), zero);
    guard = guard ? arith::AndIOp::create(builder, loc, guard, has) : has;
  }
  read.getGuardMutable().assign(guard);
}

void tegula::accessOnlyWithin(Operation *moved, ArrayRef<Value> left, const IRMapping &map,
                              Prover &prover) {
  SmallVector<IndexedOp> checked;
  SmallVector<ReadOp> guarded;
  moved->walk([&](Operation *op) {
    auto read = dyn_cast<ReadOp>(op);
    auto write = dyn_cast<WriteOp>(op);
    if ((read && read.getChecked()) || (write && write.getChecked()))
      checked.push_back(cast<IndexedOp>(op));
    else if (read && isInBoundsByGuard(read, prover))
      guarded.push_back(read);
  });
  if (checked.empty() && guarded.empty())
    return;
  SmallVector<ValueExpr> lengths;
  for (Value axis : left) {
    AxesOp owner = axesOpOf(axis);
    ValueExpr length = highOf(axis) - lowOf(axis);
    AxisScope scope(prover, owner);
    bool isKnown = llvm::all_of(length.operands(), [&](Value operand) {
      return map.contains(operand) || operand.getParentBlock()->findAncestorOpInBlock(*moved);
    });
    if (!isKnown || scope.proves(Condition::nonNegative(scope.toDims(length) - 1)))
      continue;
    lengths.push_back(length.substitute([&](Value value) -> std::optional<ValueExpr> {
      return ValueExpr(map.lookupOrDefault(value));
    }));
  }
  if (lengths.empty())
    return;
  MLIRContext *context = moved->getContext();
  for (ReadOp read : guarded)
    readOnlyWithin(read, lengths);
  for (IndexedOp access : checked) {
    SmallVector<Attribute> conditions;
    if (auto known = access->getAttrOfType<ArrayAttr>(reportsWhereAttrName))
      conditions.append(known.begin(), known.end());
    IndexOperands operands(access.getIndices());
    for (const ValueExpr &length : lengths)
      conditions.push_back(IndexExprAttr::get(context, operands.add(length)));
    access->setAttr(reportsWhereAttrName, ArrayAttr::get(context, conditions));
    access.getIndicesMutable().assign(operands.values());
  }
}

SmallVector<ValueExpr> AxesTemp::subscriptsIn(const IRMapping &map) const {
  SmallVector<ValueExpr> result;
  for (const ValueExpr &subscript : subscripts)
    result.push_back(subscript.substitute([&](Value value) -> std::optional<ValueExpr> {
      return ValueExpr(map.lookupOrDefault(value));
    }));
  return result;
}

/// The tile loop whose tile an axis runs over, or null.
static TilesOp tilesOf(const ValueExpr &low, const ValueExpr &high) {
  auto first = dyn_cast_or_null<BlockArgument>(low.asValue());
  auto tiles = first ? dyn_cast<TilesOp>(first.getOwner()->getParentOp()) : TilesOp();
  return tiles && first == tiles.getTileLow() && high.asValue() == tiles.getTileHigh() ? tiles
                                                                                       : TilesOp();
}

std::optional<AxesTemp> tegula::makeAxesTemp(Operation *anchor, ArrayRef<Value> axes,
                                             Type elementType, StringRef name, Prover &prover,
                                             int64_t tileSize) {
  AxesTemp result;
  result.axes.assign(axes.begin(), axes.end());
  OpBuilder builder(anchor);
  SmallVector<IndexExprAttr> dims;
  SmallVector<TilesOp> unsized;
  AxisScope scope(prover, anchor);
  for (Value axis : axes) {
    ValueExpr low = lowOf(axis), high = highOf(axis);
    scope.addAxis(axis, low, high);
    result.subscripts.push_back(ValueExpr(axis) - low);
    std::optional<IndexExpr> extent;
    if (TilesOp tiles = tilesOf(low, high)) {
      if (!tiles.getSize())
        unsized.push_back(tiles);
      extent = tiles.getSize().value_or(tileSize);
    } else {
      extent = scope.maxOf(high - low);
    }
    if (!extent)
      return std::nullopt;
    if (!scope.proves(Condition::nonNegative(*extent)))
      extent = IndexExpr::max(*extent, 0);
    dims.push_back(IndexExprAttr::get(builder.getContext(), *extent));
  }
  for (TilesOp tiles : unsized)
    tiles.setSize(tileSize);
  auto type = TglTensorType::get(builder.getContext(), dims, elementType);
  result.tensor = TempOp::create(builder, anchor->getLoc(), type, name);
  return result;
}

/// The ops of an outline that bounds of its axes use, in order: they stand before the new
/// statement. Nothing where they use an axis of it themselves.
static std::optional<SmallVector<Operation *>> opsOfBounds(const Outline &where) {
  llvm::DenseSet<Operation *> used;
  SmallVector<Value> pending;
  for (Value axis : where.axes)
    for (const ValueExpr &bound : {lowOf(axis), highOf(axis)})
      for (Value operand : bound.operands())
        if (!llvm::is_contained(where.axes, operand))
          pending.push_back(operand);
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (llvm::is_contained(where.axes, value))
      return std::nullopt;
    Operation *def = value.getDefiningOp();
    if (def && where.ops.contains(def) && used.insert(def).second)
      llvm::append_range(pending, valuesUsedBy(def));
  }
  SmallVector<Operation *> ordered;
  llvm::copy_if(where.ops, std::back_inserter(ordered),
                [&](Operation *op) { return used.contains(op); });
  return ordered;
}

std::optional<AxesTemp> tegula::storeOutlined(Operation *op, const Outline &where, StringRef name,
                                              Prover &prover, int64_t tileSize) {
  Location loc = op->getLoc();
  Value value = op->getResult(0);
  // A rounded value is stored as what it was rounded to.
  auto convert = dyn_cast<ConvertOp>(op);
  Type stored =
      convert && isa<FloatType>(convert.getTarget()) ? convert.getTarget() : value.getType();
  std::optional<SmallVector<Operation *>> boundOps = opsOfBounds(where);
  std::optional<AxesTemp> temp;
  if (boundOps)
    temp = makeAxesTemp(where.anchor, where.axes, stored, name, prover, tileSize);
  if (!temp)
    return std::nullopt;
  OpBuilder before(where.anchor);
  IRMapping map;
  for (Operation *needed : *boundOps)
    before.clone(*needed, map);
  ParallelOp statement = copyAxes(before, loc, where.axes, map);
  OpBuilder inside = OpBuilder::atBlockEnd(&statement.getBody().front());
  for (Operation *needed : where.ops)
    if (!llvm::is_contained(*boundOps, needed))
      inside.clone(*needed, map);
  Value computed = inside.clone(*op, map)->getResult(0);
  WriteOp::create(inside, loc, computed, temp->tensor, temp->subscriptsIn(map));
  eraseUnusedOps(statement.getBody().front());
  accessOnlyWithin(statement, where.left, map, prover);
  OpBuilder here(op);
  value.replaceAllUsesWith(ReadOp::create(here, loc, temp->tensor, temp->subscripts));
  return temp;
}
