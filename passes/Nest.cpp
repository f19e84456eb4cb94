//===- Nest.cpp - Taking statements apart and putting them together -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Nest.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

//===----------------------------------------------------------------------===//
// Axes and bounds
//===----------------------------------------------------------------------===//

AxesOp tegula::axesOpOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument ? dyn_cast<AxesOp>(argument.getOwner()->getParentOp()) : AxesOp();
}

/// A bound of an op with axes: dims are its indices, then its axes.
static ValueExpr boundExpr(AxesOp op, Attribute bound) {
  OperandRange indices = op.getIndices();
  return ValueExpr(cast<IndexExprAttr>(bound).getExpr(), [&](unsigned position) -> Value {
    if (position < indices.size())
      return indices[position];
    return op.getAxes()[position - indices.size()];
  });
}

ValueExpr tegula::lowOf(Value axis) {
  return boundExpr(axesOpOf(axis), axesOpOf(axis).getLows()[cast<BlockArgument>(axis).getArgNumber()]);
}

ValueExpr tegula::highOf(Value axis) {
  return boundExpr(axesOpOf(axis), axesOpOf(axis).getHighs()[cast<BlockArgument>(axis).getArgNumber()]);
}

StringRef tegula::nameOf(Value axis) {
  std::optional<ArrayAttr> names = axesOpOf(axis).getNames();
  unsigned number = cast<BlockArgument>(axis).getArgNumber();
  return names && number < names->size() ? cast<StringAttr>((*names)[number]).getValue() : "";
}

std::optional<ValueExpr> tegula::boxVolume(AxesOp op) {
  ValueExpr volume(1);
  for (Value axis : op.getAxes()) {
    ValueExpr extent = highOf(axis) - lowOf(axis);
    for (Value operand : extent.operands())
      if (axesOpOf(operand) == op)
        return std::nullopt;
    volume = volume * ValueExpr::max(extent, 0);
  }
  return volume;
}

ParallelOp tegula::copyAxes(OpBuilder &builder, Location loc, ArrayRef<Value> axes, IRMapping &map) {
  auto isCopied = [&](Value value) { return llvm::is_contained(axes, value); };
  SmallVector<std::pair<ValueExpr, ValueExpr>> bounds;
  IndexOperands operands;
  SmallVector<Attribute> names;
  for (Value axis : axes) {
    bounds.push_back({lowOf(axis), highOf(axis)});
    for (const ValueExpr &bound : {bounds.back().first, bounds.back().second})
      for (Value value : bound.operands())
        if (!isCopied(value))
          operands.dimOf(map.lookupOrDefault(value));
    names.push_back(builder.getStringAttr(nameOf(axis)));
  }
  size_t numOperands = operands.values().size();
  auto attrOf = [&](const ValueExpr &bound) -> Attribute {
    IndexExpr expr = bound.expr().substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
      if (var.isSymbol())
        return std::nullopt;
      Value value = bound.operands()[var.position()];
      const Value *copied = llvm::find(axes, value);
      if (copied != axes.end())
        return IndexExpr::dim(numOperands + (copied - axes.begin()));
      return IndexExpr::dim(operands.dimOf(map.lookupOrDefault(value)));
    });
    return IndexExprAttr::get(builder.getContext(), expr);
  };
  SmallVector<Attribute> lows, highs;
  for (auto &[low, high] : bounds) {
    lows.push_back(attrOf(low));
    highs.push_back(attrOf(high));
  }
  auto parallel = ParallelOp::create(builder, loc, builder.getArrayAttr(lows), builder.getArrayAttr(highs),
                                     operands.values(), builder.getArrayAttr(names), StringAttr());
  Block &body = parallel.getBody().emplaceBlock();
  for (Value axis : axes)
    map.map(axis, body.addArgument(axis.getType(), axis.getLoc()));
  return parallel;
}

//===----------------------------------------------------------------------===//
// Index values
//===----------------------------------------------------------------------===//

Value tegula::materialize(OpBuilder &builder, Location loc, const ValueExpr &expr) {
  if (Value value = expr.asValue())
    return value;
  return IndexOp::create(builder, loc, expr);
}

/// As below, without the last resort for values of type index.
static std::optional<ValueExpr> integerExprOfDefinition(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSignificantBits() <= 64 ? std::optional<ValueExpr>(constant.getSExtValue())
                                               : std::nullopt;
  Operation *def = value.getDefiningOp();
  if (!def)
    return std::nullopt;
  if (auto index = dyn_cast<IndexOp>(def))
    return index.getValueExpr().substitute(
        [](Value operand) -> std::optional<ValueExpr> { return integerExprOf(operand); });
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(def) && !def->getOperand(0).getType().isInteger(1))
    return integerExprOf(def->getOperand(0));
  auto both = [&](auto combine) -> std::optional<ValueExpr> {
    std::optional<ValueExpr> lhs = integerExprOf(def->getOperand(0)),
                             rhs = integerExprOf(def->getOperand(1));
    if (!lhs || !rhs)
      return std::nullopt;
    return combine(*lhs, *rhs);
  };
  if (isa<arith::AddIOp>(def))
    return both([](const ValueExpr &a, const ValueExpr &b) { return a + b; });
  if (isa<arith::SubIOp>(def))
    return both([](const ValueExpr &a, const ValueExpr &b) { return a - b; });
  if (isa<arith::MulIOp>(def))
    return both([](const ValueExpr &a, const ValueExpr &b) { return a * b; });
  if (isa<arith::MaxSIOp>(def))
    return both(&ValueExpr::max);
  if (isa<arith::MinSIOp>(def))
    return both(&ValueExpr::min);
  return std::nullopt;
}

std::optional<ValueExpr> tegula::integerExprOf(Value value) {
  if (std::optional<ValueExpr> expr = integerExprOfDefinition(value))
    return expr;
  return isa<IndexType>(value.getType()) ? std::optional<ValueExpr>(value) : std::nullopt;
}

/// Calls `visit` with every attribute of an op that holds expressions, replaces it by what comes back.
static void rewriteExprs(Operation *op, llvm::function_ref<IndexExpr(const IndexExpr &)> rewrite) {
  auto rewriteAttr = [&](Attribute attr) -> Attribute {
    return IndexExprAttr::get(op->getContext(), rewrite(cast<IndexExprAttr>(attr).getExpr()));
  };
  for (NamedAttribute attr : llvm::to_vector(op->getAttrs())) {
    if (isa<IndexExprAttr>(attr.getValue())) {
      op->setAttr(attr.getName(), rewriteAttr(attr.getValue()));
    } else if (auto array = dyn_cast<ArrayAttr>(attr.getValue());
               array && llvm::all_of(array, llvm::IsaPred<IndexExprAttr>)) {
      op->setAttr(attr.getName(),
                  ArrayAttr::get(op->getContext(), llvm::map_to_vector(array, rewriteAttr)));
    }
  }
}

unsigned tegula::foldIndices(IndexedOp op) {
  unsigned folded = 0;
  size_t oldCount = op.getIndices().size();
  SmallVector<ValueExpr> exprs; // what each old index is
  for (Value index : op.getIndices()) {
    exprs.push_back(*integerExprOf(index));
    folded += exprs.back().asValue() != index;
  }
  // Values that the expressions still use, once they are made of those.
  IndexOperands operands;
  SmallVector<bool> used(oldCount);
  rewriteExprs(op, [&](const IndexExpr &expr) {
    for (const IndexVar &var : expr.variables())
      if (!var.isSymbol() && var.position() < oldCount)
        used[var.position()] = true;
    return expr;
  });
  SmallVector<IndexExpr> replacements(oldCount);
  for (size_t position = 0; position < oldCount; ++position)
    if (used[position])
      replacements[position] = operands.add(exprs[position]);
  if (!folded && operands.values().size() == oldCount)
    return 0;
  size_t newCount = operands.values().size();
  rewriteExprs(op, [&](const IndexExpr &expr) {
    return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
      if (var.isSymbol())
        return std::nullopt;
      if (var.position() < oldCount)
        return replacements[var.position()];
      return IndexExpr::dim(var.position() - oldCount + newCount);
    });
  });
  op.getIndicesMutable().assign(operands.values());
  return folded;
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

/// Whether removing the op when its results are unused changes nothing: it writes nothing and runs
/// no statement that does.
static bool isRemovable(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>() || isa<WriteOp, CallOp, KernelOp>(op))
    return false;
  if (op->getNumRegions())
    return !op->walk([](Operation *nested) {
                return isa<WriteOp, SortOp, CallOp>(nested) ? WalkResult::interrupt() : WalkResult::advance();
              }).wasInterrupted();
  return isMemoryEffectFree(op) || isa<ReadOp, TempOp>(op);
}

unsigned tegula::eraseUnusedOps(Block &block) {
  unsigned erased = 0;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        erased += eraseUnusedOps(nested);
    if (op.use_empty() && isRemovable(&op)) {
      op.erase();
      ++erased;
    }
  }
  return erased;
}

SetVector<Value> tegula::valuesUsedBy(Operation *op) {
  SetVector<Value> used(op->operand_begin(), op->operand_end());
  for (Region &region : op->getRegions())
    region.walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (!op->isAncestor(operand.getParentBlock()->getParentOp()))
          used.insert(operand);
    });
  return used;
}

bool tegula::isSequential(Operation *op) { return isa<ForOp, TilesOp, LaunchOp, KernelOp>(op); }

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

SizeFacts tegula::sizeFacts(KernelOp kernel) {
  SizeFacts facts;
  auto entry = kernel;
  for (Attribute attr : entry.getSizeAttrs()) {
    auto size = cast<SizeAttr>(attr);
    if (!size.isBound())
      facts.definitions.push_back({size.getName().str(), size.getDefinition()});
  }
  for (Attribute attr : entry.getGuardAttrs()) {
    auto guard = cast<GuardAttr>(attr);
    switch (guard.getKind()) {
    case GuardKind::NonNegative:
      facts.facts.push_back(Condition::nonNegative(guard.getLhs()));
      break;
    case GuardKind::Zero:
      facts.facts.push_back(Condition::zero(guard.getLhs()));
      break;
    case GuardKind::NonZero:
      facts.facts.push_back(Condition::nonZero(guard.getLhs()));
      break;
    case GuardKind::Divides:
      facts.facts.push_back(Condition::divides(guard.getLhs(), guard.getRhs()));
      break;
    case GuardKind::InBounds:
      break; // about points, not sizes alone
    }
  }
  // Not negative anyway; a derived size is only where it is the dim of an argument.
  auto isBoundSize = [&](const IndexExpr &dim) {
    std::optional<IndexVar> var = dim.asVariable();
    return var && llvm::none_of(facts.definitions,
                                [&](auto &definition) { return definition.first == var->name(); });
  };
  auto addDims = [&](Type type) {
    if (auto tensor = dyn_cast<TglTensorType>(type))
      for (IndexExprAttr dim : tensor.getDims())
        if (!dim.getExpr().asConstant() && !isBoundSize(dim.getExpr()))
          facts.facts.push_back(Condition::nonNegative(dim.getExpr()));
  };
  for (Type type : kernel.getArgumentTypes())
    addDims(type);
  return facts;
}

/// The range of a variable of an op that runs code for a range; nothing for carried values.
static std::optional<std::pair<ValueExpr, ValueExpr>> rangeOf(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  unsigned number = argument.getArgNumber();
  if (auto axes = dyn_cast<AxesOp>(parent); axes && number < axes.getLows().size())
    return std::pair(lowOf(argument), highOf(argument));
  if (auto loop = dyn_cast<ForOp>(parent); loop && number == 0)
    return std::pair(loop.getLowExpr(), loop.getHighExpr());
  if (auto tiles = dyn_cast<TilesOp>(parent)) {
    if (number == 0)
      return std::pair(tiles.getLowExpr(), tiles.getHighExpr());
    if (number == 1)
      return std::pair(ValueExpr(tiles.getTileLow()) + 1, tiles.getHighExpr() + 1);
  }
  return std::nullopt;
}

Scope::Scope(Prover &prover, Operation *place) : prover(prover) {
  SmallVector<Block *> blocks;
  for (Block *block = place->getBlock(); block && !isa<KernelOp>(block->getParentOp());
       block = block->getParentOp()->getBlock())
    blocks.push_back(block);
  for (Block *block : llvm::reverse(blocks))
    for (BlockArgument argument : block->getArguments())
      if (auto range = rangeOf(argument))
        addAxis(argument, range->first, range->second);
}

unsigned Scope::dimOf(Value value) {
  auto *found = llvm::find(values, value);
  if (found == values.end()) {
    values.push_back(value);
    return values.size() - 1;
  }
  return found - values.begin();
}

IndexExpr Scope::toDims(const ValueExpr &expr) {
  return expr.expr().substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    if (var.isSymbol())
      return std::nullopt;
    return IndexExpr::dim(dimOf(expr.operands()[var.position()]));
  });
}

ValueExpr Scope::toValues(const IndexExpr &expr) const {
  return ValueExpr(expr, [&](unsigned position) { return values[position]; });
}

void Scope::addAxis(Value axis, const ValueExpr &lo, const ValueExpr &hi) {
  IndexExpr low = toDims(lo), high = toDims(hi);
  ranges.add(dimOf(axis), low, high);
}

std::optional<IndexExpr> Scope::maxOf(const ValueExpr &expr) {
  if (expr.operands().empty())
    return expr.expr();
  std::optional<IndexExpr> max = prover.range(toDims(expr), ranges).max;
  if (!max || !max->isSize())
    return std::nullopt;
  return max;
}
