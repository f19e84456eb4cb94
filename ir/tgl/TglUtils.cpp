//===- TglUtils.cpp - What passes ask of tgl IR ----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

//===----------------------------------------------------------------------===//
// Integer expressions of ops, in terms of values
//===----------------------------------------------------------------------===//

ValueExpr tgl::getValueExpr(Value value) {
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    if (value.getType().isIndex() && cast.getIn().getType().isInteger(64))
      if (auto back = cast.getIn().getDefiningOp<arith::IndexCastOp>())
        return getValueExpr(back.getIn());
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  if (auto index = value.getDefiningOp<IndexOp>()) {
    ValueExpr whole = index.getValueExpr().substitute(
        [](Value operand) -> std::optional<ValueExpr> { return getValueExpr(operand); });
    if (!whole.expr().isOverflow())
      return whole;
  }
  return value;
}

Value tgl::materialize(OpBuilder &builder, Location loc, const ValueExpr &expr) {
  if (Value value = expr.asValue())
    return value;
  if (std::optional<int64_t> constant = expr.asConstant())
    return arith::ConstantIndexOp::create(builder, loc, *constant);
  return IndexOp::create(builder, loc, expr);
}

/// The values that dims of an op's expressions stand for: its indices, then its own axes.
static llvm::SmallVector<Value> dimValues(IndexedOp op) {
  llvm::SmallVector<Value> values(op.getIndices());
  if (auto axes = dyn_cast<AxesOp>(op.getOperation()))
    llvm::append_range(values, axes.getAxesBlock()->getArguments());
  return values;
}

/// Rebuilds an op's expressions, read over `oldDims`; `rewrite` is told the attribute and the
/// position in it. The op's own axes may have changed since the attributes were made: what
/// `rewrite` gives speaks of those that it has now.
using Rewrite = llvm::function_ref<ValueExpr(llvm::StringRef, size_t, const ValueExpr &)>;
static void rebuildExprs(IndexedOp op, llvm::ArrayRef<Value> oldDims, Rewrite rewrite) {
  Block *ownBlock = nullptr;
  if (auto axes = dyn_cast<AxesOp>(op.getOperation()))
    ownBlock = axes.getAxesBlock();
  auto isOwn = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == ownBlock;
  };
  MLIRContext *context = op->getContext();
  IndexOperands operands;
  llvm::SmallVector<std::pair<NamedAttribute, llvm::SmallVector<ValueExpr>>> rewritten;
  for (NamedAttribute attr : op->getAttrDictionary()) {
    Attribute single = attr.getValue();
    auto array = dyn_cast<ArrayAttr>(single);
    llvm::ArrayRef<Attribute> elements = array ? array.getValue() : llvm::ArrayRef(single);
    if (elements.empty() || !llvm::all_of(elements, llvm::IsaPred<IndexExprAttr>))
      continue;
    llvm::SmallVector<ValueExpr> exprs;
    for (auto [k, element] : llvm::enumerate(elements)) {
      exprs.push_back(
          rewrite(attr.getName(), k, ValueExpr(cast<IndexExprAttr>(element).getExpr(), oldDims)));
      for (Value value : exprs.back().operands())
        if (!isOwn(value))
          operands.dimOf(value);
    }
    rewritten.push_back({attr, std::move(exprs)});
  }
  // All operands are known now, so own axes can be numbered after them.
  auto number = [&](const ValueExpr &expr) -> Attribute {
    llvm::ArrayRef<Value> indices = operands.values();
    return IndexExprAttr::get(
        context, expr.expr().substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
          if (var.isSymbol())
            return std::nullopt;
          Value value = expr.operands()[var.position()];
          if (isOwn(value))
            return IndexExpr::dim(indices.size() + cast<BlockArgument>(value).getArgNumber());
          return IndexExpr::dim(llvm::find(indices, value) - indices.begin());
        }));
  };
  for (const auto &[attr, exprs] : rewritten) {
    if (isa<ArrayAttr>(attr.getValue()))
      op->setAttr(attr.getName(), ArrayAttr::get(context, llvm::map_to_vector(exprs, number)));
    else
      op->setAttr(attr.getName(), number(exprs[0]));
  }
  op.getIndicesMutable().assign(operands.values());
}

void tgl::rewriteExprs(IndexedOp op, llvm::function_ref<ValueExpr(const ValueExpr &)> rewrite) {
  rebuildExprs(op, dimValues(op), [&](llvm::StringRef, size_t, const ValueExpr &expr) {
    ValueExpr rewritten = rewrite(expr);
    return rewritten.expr().isOverflow() ? expr : rewritten;
  });
}

void tgl::replaceIndex(IndexedOp op, Value from, const ValueExpr &to) {
  Value value; // of `to`, where a formula of both would be too large
  rewriteExprs(op, [&](const ValueExpr &expr) {
    ValueExpr replaced = expr.substitute(from, to);
    if (!replaced.expr().isOverflow())
      return replaced;
    if (!value) {
      OpBuilder builder(op);
      value = materialize(builder, op->getLoc(), to);
    }
    return expr.substitute(from, ValueExpr(value));
  });
}

void tgl::replaceAllUsesWithExpr(OpBuilder &builder, Value from, const ValueExpr &to) {
  llvm::SmallSetVector<Operation *, 8> users;
  for (OpOperand &use : from.getUses())
    users.insert(use.getOwner());
  // The bounds of later axes use an axis without its being an operand.
  if (auto axis = dyn_cast<BlockArgument>(from))
    if (auto op = dyn_cast<AxesOp>(axis.getOwner()->getParentOp()))
      users.insert(op);
  OpBuilder::InsertionGuard guard(builder);
  for (Operation *user : users) {
    if (auto indexed = dyn_cast<IndexedOp>(user))
      replaceIndex(indexed, from, to);
    if (!llvm::is_contained(user->getOperands(), from))
      continue;
    builder.setInsertionPoint(user);
    user->replaceUsesOfWith(from, materialize(builder, user->getLoc(), to));
  }
}

AxisRange tgl::getAxisRange(AxesOp op, unsigned axis) {
  llvm::SmallVector<Value> dims = dimValues(op);
  auto expr = [&](Attribute attr) { return ValueExpr(cast<IndexExprAttr>(attr).getExpr(), dims); };
  return {expr(op.getLows()[axis]), expr(op.getHighs()[axis])};
}

llvm::SmallVector<AxisRange> tgl::getAxisRanges(AxesOp op) {
  llvm::SmallVector<AxisRange> result;
  for (unsigned axis = 0; axis < op.getLows().size(); ++axis)
    result.push_back(getAxisRange(op, axis));
  return result;
}

std::optional<int64_t> tgl::knownPoints(AxesOp op, ArrayRef<unsigned> axes) {
  int64_t points = 1;
  for (unsigned axis : axes) {
    AxisRange range = getAxisRange(op, axis);
    std::optional<int64_t> extent = (range.hi - range.lo).asConstant();
    if (!extent || llvm::MulOverflow(points, std::max<int64_t>(*extent, 0), points))
      return std::nullopt;
  }
  return points;
}

std::optional<int64_t> tgl::knownPoints(AxesOp op) {
  return knownPoints(op, llvm::to_vector(llvm::seq<unsigned>(0, op.getAxes().size())));
}

llvm::StringRef tgl::getAxisName(AxesOp op, unsigned axis) {
  std::optional<ArrayAttr> names = op.getNames();
  return names ? cast<StringAttr>((*names)[axis]).getValue() : llvm::StringRef();
}

AxisSpec tgl::getAxisSpec(AxesOp op, unsigned axis) {
  AxisRange range = getAxisRange(op, axis);
  return {getAxisName(op, axis).str(), range.lo, range.hi};
}

/// Sets bounds after the axes of the block have changed: `axes[k]` describes the k-th axis there is
/// now, other expressions are kept.
static void setAxes(AxesOp op, llvm::ArrayRef<AxisSpec> axes, llvm::ArrayRef<Value> oldDims) {
  MLIRContext *context = op->getContext();
  llvm::SmallVector<Attribute> names;
  for (const AxisSpec &axis : axes)
    names.push_back(StringAttr::get(context, axis.name));
  if (llvm::any_of(axes, [](const AxisSpec &axis) { return !axis.name.empty(); }))
    op.setNamesAttr(ArrayAttr::get(context, names));
  else
    op->removeAttr("names");
  llvm::SmallVector<Attribute> placeholders(axes.size(), IndexExprAttr::get(context, 0));
  op.setLowsAttr(ArrayAttr::get(context, placeholders));
  op.setHighsAttr(ArrayAttr::get(context, placeholders));
  rebuildExprs(op, oldDims, [&](llvm::StringRef attr, size_t k, const ValueExpr &expr) {
    return attr == "lows" ? axes[k].lo : attr == "highs" ? axes[k].hi : expr;
  });
}

static llvm::SmallVector<AxisSpec> getAxisSpecs(AxesOp op) {
  llvm::SmallVector<AxisSpec> result;
  for (unsigned axis = 0; axis < op.getLows().size(); ++axis)
    result.push_back(getAxisSpec(op, axis));
  return result;
}

void tgl::setAxisRange(AxesOp op, unsigned axis, const ValueExpr &lo, const ValueExpr &hi) {
  llvm::SmallVector<AxisSpec> axes = getAxisSpecs(op);
  axes[axis].lo = lo;
  axes[axis].hi = hi;
  setAxes(op, axes, dimValues(op));
}

BlockArgument tgl::insertAxis(AxesOp op, unsigned position, const AxisSpec &axis) {
  llvm::SmallVector<AxisSpec> axes = getAxisSpecs(op);
  llvm::SmallVector<Value> dims = dimValues(op);
  axes.insert(axes.begin() + position, axis);
  BlockArgument argument =
      op.getAxesBlock()->insertArgument(position, IndexType::get(op->getContext()), op->getLoc());
  setAxes(op, axes, dims);
  return argument;
}

void tgl::eraseAxis(AxesOp op, unsigned axis) {
  llvm::SmallVector<AxisSpec> axes = getAxisSpecs(op);
  llvm::SmallVector<Value> dims = dimValues(op);
  assert(op.getAxesBlock()->getArgument(axis).use_empty() && "erasing an axis that is used");
  axes.erase(axes.begin() + axis);
  // No expression names the erased argument; a null value in its place keeps the numbering.
  dims[op.getIndices().size() + axis] = Value();
  op.getAxesBlock()->eraseArgument(axis);
  setAxes(op, axes, dims);
}

std::optional<AxisRange> tgl::getRange(BlockArgument argument) {
  Operation *op = argument.getOwner()->getParentOp();
  unsigned number = argument.getArgNumber();
  if (auto axes = dyn_cast<AxesOp>(op))
    return number < axes.getLows().size() ? std::optional(getAxisRange(axes, number))
                                          : std::nullopt;
  if (auto loop = dyn_cast<ForOp>(op))
    if (number == 0)
      return AxisRange{loop.getLowExpr(), loop.getHighExpr()};
  if (auto tiles = dyn_cast<TilesOp>(op))
    if (number < 2)
      return AxisRange{tiles.getLowExpr() + number, tiles.getHighExpr() + number};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// What values vary along
//===----------------------------------------------------------------------===//

bool tgl::isPrivate(TempOp temp) { return bool(temp->getParentOfType<ParallelOp>()); }

namespace {
/// Walks from values to the axes that they are computed from.
struct AxisCollector {
  /// Ops whose regions are being walked, innermost first. A state may be carried through a
  /// reduction that reads it: the walk comes back to that op, and the outer visit counts all that
  /// it uses.
  struct Walked {
    Operation *op;
    const Walked *outer;
  };
  const Walked *walked = nullptr;
  AxisSet axes;
  llvm::DenseSet<Value> visited;

  void collect(Value value) {
    if (!visited.insert(value).second)
      return;
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      return collectOp(value.getDefiningOp());
    if (getRange(argument)) {
      axes.insert(argument);
      return;
    }
    // A carried value changes with the loop and with all that its updates use.
    Operation *op = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<ForOp>(op)) {
      axes.insert(loop.getLoopVar());
      collectCarried(loop.getInits(), loop.getYield(), argument.getArgNumber() - 1);
    } else if (auto tiles = dyn_cast<TilesOp>(op)) {
      axes.insert(tiles.getTileLow());
      collectCarried(tiles.getInits(), tiles.getYield(), argument.getArgNumber() - 2);
    }
  }

  void collectCarried(OperandRange inits, YieldOp yield, unsigned number) {
    collect(inits[number]);
    collect(yield.getValues()[number]);
  }

  void collectOp(Operation *op) {
    if (auto temp = dyn_cast<TempOp>(op)) {
      for (auto parallel = temp->getParentOfType<ParallelOp>(); parallel;
           parallel = parallel->getParentOfType<ParallelOp>())
        for (BlockArgument axis : parallel.getBody().getArguments())
          axes.insert(axis);
      return;
    }
    for (Value operand : op->getOperands())
      collect(operand);
    if (op->getNumRegions() == 0)
      return;
    for (const Walked *at = walked; at; at = at->outer)
      if (at->op == op)
        return;
    Walked here{op, walked};
    AxisCollector inside;
    inside.walked = &here;
    inside.collectInside(op);
    axes.insert(inside.axes.begin(), inside.axes.end());
  }

  /// Of all that the op's regions use, but for axes that the op itself binds.
  void collectInside(Operation *root) {
    root->walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (!operand.getDefiningOp() || !root->isProperAncestor(operand.getDefiningOp()))
          collect(operand);
    });
    AxisSet outside;
    for (BlockArgument axis : axes)
      if (!root->isAncestor(axis.getOwner()->getParentOp()))
        outside.insert(axis);
    axes = std::move(outside);
  }
};
} // namespace

AxisSet tgl::axesOf(Value value) {
  AxisCollector collector;
  collector.collect(value);
  return std::move(collector.axes);
}

AxisSet tgl::axesUsedBy(Operation *root) {
  AxisCollector::Walked here{root, nullptr};
  AxisCollector collector;
  collector.walked = &here;
  collector.collectInside(root);
  return std::move(collector.axes);
}

Accesses tgl::accessesOf(Operation *root) {
  Accesses result;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      result.reads.insert(read.getTensor());
    } else if (auto write = dyn_cast<WriteOp>(op)) {
      result.writes.insert(write.getTensor());
      if (write.getCombine())
        result.reads.insert(write.getTensor());
    } else if (auto sort = dyn_cast<SortOp>(op)) {
      for (Value tensor : {sort.getValues(), sort.getPositions()}) {
        result.reads.insert(tensor);
        result.writes.insert(tensor);
      }
    } else if (auto call = dyn_cast<CallOp>(op)) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<KernelOp>(call, call.getCalleeAttr());
      for (auto [position, argument] : llvm::enumerate(call.getArgs())) {
        if (!isa<TglTensorType>(argument.getType()))
          continue;
        llvm::StringRef role = callee ? callee.getArgRole(position) : "inout";
        if (role != "out")
          result.reads.insert(argument);
        if (role != "in")
          result.writes.insert(argument);
      }
    }
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Places in memory
//===----------------------------------------------------------------------===//

ValueExpr tgl::elementOffset(TglTensorType type, llvm::ArrayRef<ValueExpr> subscripts) {
  ValueExpr offset(int64_t(0));
  for (auto [subscript, dim] : llvm::zip_equal(subscripts, type.getDims()))
    offset = offset * ValueExpr(dim.getExpr()) + subscript;
  return offset;
}

std::optional<int64_t> tgl::stepAlong(const ValueExpr &expr, Value axis) {
  if (!expr.uses(axis))
    return 0;
  return (expr.substitute(axis, ValueExpr(axis) + ValueExpr(int64_t(1))) - expr).asConstant();
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

std::optional<Contraction> tgl::matchContraction(ReduceOp reduce) {
  if (reduce.getKind() != ReduceKind::Sum)
    return std::nullopt;
  Contraction result{reduce, {}};
  Block::BlockArgListType summed = reduce.getBody().front().getArguments();
  unsigned varying = 0;
  llvm::SmallVector<Value> pending{reduce.getReduced()};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (op && isa<arith::MulFOp, arith::MulIOp>(op) && reduce->isProperAncestor(op)) {
      pending.push_back(op->getOperand(1));
      pending.push_back(op->getOperand(0));
      continue;
    }
    Contraction::Factor factor{value, axesOf(value)};
    varying += llvm::any_of(summed, [&](BlockArgument axis) { return factor.axes.contains(axis); });
    result.factors.push_back(std::move(factor));
  }
  if (varying < 2)
    return std::nullopt;
  return result;
}
