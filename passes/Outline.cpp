//===- Outline.cpp - Moving a value to where its own axes are -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Outline.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

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
    return llvm::any_of(accessesOf(op).reads, [&](Value tensor) { return written.contains(tensor); });
  });
}

std::optional<Outline> tegula::outline(Operation *op, ArrayRef<Value> values, OutlineMode mode) {
  Needs needs(op);
  for (Value value : values)
    needs.add(value);
  ArrayRef<Operation *> chain = needs.chain;
  auto ownAxes = [&](size_t depth) {
    SmallVector<Value> axes;
    for (Operation *around : llvm::reverse(chain.take_front(depth)))
      for (Value axis : cast<AxesOp>(around).getAxes())
        if (needs.has(axis))
          axes.push_back(axis);
    return axes;
  };
  // How many of the ops around it the value leaves: at least those with an axis that it does not use.
  size_t depth = 0;
  for (auto [level, around] : llvm::enumerate(chain.take_front(needs.limit)))
    if (llvm::any_of(cast<AxesOp>(around).getAxes(), [&](Value axis) { return !needs.has(axis); }))
      depth = level + 1;
  // A statement cannot stand in a reduction; a single value can.
  auto standsInReduction = [&] { return depth < chain.size() && !isa<ParallelOp>(chain[depth]); };
  if (mode == OutlineMode::IfRepeated) {
    if (depth == 0)
      return std::nullopt;
    while (standsInReduction() && !ownAxes(depth).empty())
      ++depth;
  } else {
    while (standsInReduction())
      ++depth;
    if (depth == 0 && !chain.empty() && mode == OutlineMode::Always)
      return Outline{op, {}, {}};
  }
  if (depth > needs.limit || depth > chain.size())
    return std::nullopt;

  Outline result;
  result.anchor = depth == 0 ? op : chain[depth - 1];
  result.axes = ownAxes(depth);
  SmallVector<Operation *> cloned;
  for (Operation *around : llvm::reverse(chain.take_front(depth)))
    for (Operation &nested : cast<AxesOp>(around).getAxesBlock()->without_terminator())
      if (needs.ops.contains(&nested))
        cloned.push_back(&nested);
  SmallVector<Operation *> moved(cloned);
  moved.push_back(op);
  if (writesWhatIsRead(result.anchor, moved))
    return std::nullopt;
  result.ops.insert_range(cloned);
  return result;
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
  return tiles && first == tiles.getTileLow() && high.asValue() == tiles.getTileHigh() ? tiles : TilesOp();
}

std::optional<AxesTemp> tegula::makeAxesTemp(Operation *anchor, ArrayRef<Value> axes, Type elementType,
                                             StringRef name, Prover &prover, int64_t tileSize) {
  AxesTemp result;
  result.axes.assign(axes.begin(), axes.end());
  OpBuilder builder(anchor);
  SmallVector<IndexExprAttr> dims;
  SmallVector<TilesOp> unsized;
  Scope scope(prover, anchor);
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
