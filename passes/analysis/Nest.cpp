//===- Nest.cpp - Utilities for loop nests, bounds and subscripts ---------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Nest.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

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

ValueExpr tegula::lowOf(Value axis) {
  return getAxisRange(axesOpOf(axis), cast<BlockArgument>(axis).getArgNumber()).lo;
}

ValueExpr tegula::highOf(Value axis) {
  return getAxisRange(axesOpOf(axis), cast<BlockArgument>(axis).getArgNumber()).hi;
}

StringRef tegula::nameOf(Value axis) {
  return getAxisName(axesOpOf(axis), cast<BlockArgument>(axis).getArgNumber());
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

bool tegula::runsAlongRows(ReduceOp reduce) {
  int along = 0;
  size_t most = 0; // axes that a read varies along: of a matrix more than of a vector
  reduce.getBody().walk([&](ReadOp read) {
    SmallVector<ValueExpr> subscripts = read.getSubscriptExprs();
    if (subscripts.empty())
      return;
    auto isOwn = [&](const ValueExpr &subscript) {
      return llvm::any_of(reduce.getAxes(), [&](Value axis) { return subscript.uses(axis); });
    };
    if (!llvm::any_of(subscripts, isOwn)) // what is the same for all terms does not count
      return;
    size_t axes = axesOf(read.getResult()).size();
    if (axes < most)
      return;
    along = (axes == most ? along : 0) + (isOwn(subscripts.back()) ? 1 : -1);
    most = axes;
  });
  return along >= 0;
}

std::optional<int64_t> tegula::strideAlong(TglTensorType type, ArrayRef<ValueExpr> subscripts,
                                           Value axis) {
  ValueExpr place(0);
  for (auto [subscript, dim] : llvm::zip_equal(subscripts, type.getDims()))
    place = place * ValueExpr(dim.getExpr()) + subscript;
  if (!place.uses(axis))
    return 0;
  return (place.substitute(axis, ValueExpr(axis) + 1) - place).asConstant();
}

/// Whether windows that are `stride` elements apart leave none out: what a thread leaves of a line
/// its neighbours take, while the line is in the cache.
static bool windowsMeet(ReadOp read, int64_t stride) {
  constexpr int64_t farthest = 16; // elements: threads of a warp then have half a line each
  if (stride < 1 || stride > farthest)
    return false;
  for (auto around = read->getParentOfType<ReduceOp>(); around;
       around = around->getParentOfType<ReduceOp>())
    for (unsigned axis = 0; axis < around.getAxes().size(); ++axis) {
      std::optional<int64_t> extent = knownPoints(cast<AxesOp>(around.getOperation()), {axis});
      if (extent && *extent >= stride &&
          strideAlong(read.getTensorType(), read.getSubscriptExprs(), around.getAxes()[axis]) == 1)
        return true;
    }
  return false;
}

/// Whether data that vary along the axis choose a row, through which a nest inside of the statement
/// walks (`a[row[z], d]`): neighbours along the axis are in rows of their own.
static bool walksChosenRow(ParallelOp statement, ReadOp read, Value axis) {
  bool isChosen = llvm::any_of(read.getIndices(), [&](Value index) {
    return index != axis && axesOf(index).contains(cast<BlockArgument>(axis));
  });
  if (!isChosen)
    return false;
  for (Operation *around = read->getParentOp(); around && around != statement;
       around = around->getParentOp())
    if (auto nest = dyn_cast<AxesOp>(around))
      for (Value inner : nest.getAxes())
        if (strideAlong(read.getTensorType(), read.getSubscriptExprs(), inner) == 1)
          return true;
  return false;
}

std::optional<int64_t> tegula::lengthOfFirst(const AxisRange &range) {
  return (range.hi - range.lo)
      .substitute([](Value value) {
        AxesOp axes = axesOpOf(value);
        return axes ? std::optional(lowOf(value)) : std::nullopt;
      })
      .asConstant();
}

bool tegula::neighboursAreNear(ParallelOp statement) {
  constexpr int64_t farthest = 4; // elements: half of what memory moves at a time
  Value axis = statement.getAxes().empty() ? Value() : statement.getAxes().back();
  auto isNear = [&](Value tensor, TglTensorType type, ArrayRef<ValueExpr> subscripts,
                    ReadOp read = nullptr) {
    auto temp = tensor.getDefiningOp<TempOp>();
    if (temp && statement->isAncestor(temp))
      return true; // each point's own
    std::optional<int64_t> stride = strideAlong(type, subscripts, axis);
    if (read && walksChosenRow(statement, read, axis))
      return false;
    return stride && (std::abs(*stride) <= farthest || (read && windowsMeet(read, *stride)));
  };
  return axis && !statement
                      ->walk([&](Operation *op) {
                        bool near = true;
                        if (auto read = dyn_cast<ReadOp>(op))
                          near = isNear(read.getTensor(), read.getTensorType(),
                                        read.getSubscriptExprs(), read);
                        else if (auto write = dyn_cast<WriteOp>(op))
                          near = isNear(write.getTensor(), write.getTensorType(),
                                        write.getSubscriptExprs());
                        return near ? WalkResult::advance() : WalkResult::interrupt();
                      })
                      .wasInterrupted();
}

unsigned tegula::dropSinglePoints(Operation *root) {
  unsigned dropped = 0;
  root->walk([&](AxesOp owner) {
    if (!isa<ParallelOp, ReduceOp>(owner.getOperation()))
      return;
    bool hasLoop =
        isa<ParallelOp>(owner.getOperation()) && !owner->getRegion(0).getOps<ForOp>().empty();
    for (unsigned axis = owner.getAxes().size();
         axis-- > 0 && (hasLoop || owner.getAxes().size() > 1);) {
      AxisRange range = getAxisRange(owner, axis);
      if (!range.lo.asConstant() || (range.hi - range.lo).asConstant() != 1)
        continue;
      OpBuilder builder(owner);
      replaceAllUsesWithExpr(builder, owner.getAxes()[axis], range.lo);
      eraseAxis(owner, axis);
      ++dropped;
    }
  });
  return dropped;
}

ParallelOp tegula::copyAxes(OpBuilder &builder, Location loc, ArrayRef<Value> axes,
                            IRMapping &map) {
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
  auto parallel =
      ParallelOp::create(builder, loc, builder.getArrayAttr(lows), builder.getArrayAttr(highs),
                         operands.values(), builder.getArrayAttr(names), StringAttr());
  Block &body = parallel.getBody().emplaceBlock();
  for (Value axis : axes)
    map.map(axis, body.addArgument(axis.getType(), axis.getLoc()));
  return parallel;
}

//===----------------------------------------------------------------------===//
// Index values
//===----------------------------------------------------------------------===//

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
  if (std::optional<ValueExpr> expr = integerExprOfDefinition(value);
      expr && !expr->expr().isOverflow())
    return expr;
  return isa<IndexType>(value.getType()) ? std::optional<ValueExpr>(value) : std::nullopt;
}

bool tegula::hasFoldableIndices(IndexedOp op) {
  bool found = false;
  rewriteExprs(op, [&](const ValueExpr &expr) {
    if (llvm::any_of(expr.operands(), [](Value value) { return value.getDefiningOp<IndexOp>(); }))
      found |= !expr.substitute([](Value value) -> std::optional<ValueExpr> {
                      return integerExprOf(value);
                    })
                    .expr()
                    .isOverflow();
    return expr;
  });
  return found;
}

void tegula::setSubscripts(Operation *access, ArrayRef<ValueExpr> subscripts) {
  OpBuilder builder(access);
  IndexOperands operands;
  SmallVector<Attribute> attrs;
  for (const ValueExpr &subscript : subscripts)
    attrs.push_back(IndexExprAttr::get(access->getContext(), operands.add(subscript)));
  access->setAttr("subscripts", builder.getArrayAttr(attrs));
  cast<IndexedOp>(access).getIndicesMutable().assign(operands.values());
}

unsigned tegula::foldIndices(IndexedOp op) {
  unsigned folded = 0;
  for (Value index : op.getIndices())
    folded += integerExprOf(index)->asValue() != index;
  rewriteExprs(op, [](const ValueExpr &expr) {
    return expr.substitute(
        [](Value value) -> std::optional<ValueExpr> { return integerExprOf(value); });
  });
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
                return isa<WriteOp, SortOp, CallOp>(nested) ? WalkResult::interrupt()
                                                            : WalkResult::advance();
              }).wasInterrupted();
  return isMemoryEffectFree(op) || isa<ReadOp, TempOp>(op);
}

SmallVector<ParallelOp> tegula::outermostStatements(KernelOp kernel) {
  SmallVector<ParallelOp> statements;
  kernel.walk([&](ParallelOp op) {
    if (isa<LaunchOp, KernelOp>(op->getParentOp()))
      statements.push_back(op);
  });
  return statements;
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

int64_t tegula::pieceLength(int64_t extent, int64_t parts) {
  constexpr int64_t maxTries = 1 << 16; // of a length that is beyond all memory
  int64_t length = llvm::divideCeil(extent, parts);
  if (length > std::numeric_limits<int64_t>::max() / 2)
    return length;
  for (int64_t multiple : {4, 2, 1}) {
    int64_t first = llvm::alignTo(length, multiple);
    for (int64_t tries = 0; tries < maxTries; ++tries) {
      int64_t candidate = first + tries * multiple;
      if (candidate - length > length || candidate >= extent)
        break;
      if (extent % candidate == 0)
        return candidate;
    }
  }
  return length;
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

bool tegula::writesOneOf(const llvm::SetVector<Value> &tensors, Operation *first, Operation *last) {
  for (Operation *op = first;; op = op->getNextNode()) {
    if (llvm::any_of(accessesOf(op).writes, [&](Value tensor) { return tensors.contains(tensor); }))
      return true;
    if (op == last)
      return false;
  }
}

bool tegula::writesInputsOf(Operation *reader, Operation *first, Operation *last) {
  return writesOneOf(accessesOf(reader).reads, first, last);
}

bool tegula::isZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
}

bool tegula::vanishesWith(Value value, ReadOp read) {
  if (value == read.getResult())
    return true;
  auto product = value.getDefiningOp();
  return product && isa<arith::MulFOp, arith::MulIOp>(product) &&
         (vanishesWith(product->getOperand(0), read) || vanishesWith(product->getOperand(1), read));
}

bool tegula::isSequential(Operation *op) { return isa<ForOp, TilesOp, LaunchOp, KernelOp>(op); }

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

SizeFacts tegula::sizeFacts(KernelOp kernel) {
  SizeFacts facts;
  auto entry = kernel;
  // The extent of a dim `2*P` stands in no access: P, which is derived from it, is any size.
  llvm::StringSet<> extents;
  for (Attribute attr : entry.getSizeAttrs()) {
    auto size = cast<SizeAttr>(attr);
    if (size.isBound()) {
      auto type = cast<TglTensorType>(entry.getArgumentTypes()[size.getArgument()]);
      if (type.getDim(size.getDimension()) != IndexExpr::symbol(size.getName()))
        extents.insert(size.getName());
    } else if (llvm::none_of(size.getDefinition().variables(), [&](const IndexVar &var) {
                 return var.isSymbol() && extents.contains(var.name());
               })) {
      facts.definitions.push_back({size.getName().str(), size.getDefinition()});
    }
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

/// Whether a bound of an axis uses 64-bit data.
static bool isBoundedByData(Value axis) {
  SmallVector<Value> pending{axis};
  DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    auto argument = dyn_cast<BlockArgument>(value);
    std::optional<AxisRange> range = argument ? getRange(argument) : std::nullopt;
    if (range) {
      llvm::append_range(pending, range->lo.operands());
      llvm::append_range(pending, range->hi.operands());
      continue;
    }
    Operation *widening = value.getDefiningOp();
    if (!isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(widening))
      return true;
  }
  return false;
}

bool tegula::mayWrap(const ValueExpr &expr) {
  int64_t steps = 0;
  for (Value operand : expr.operands()) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!argument || !getRange(argument) || !isBoundedByData(argument))
      continue;
    std::optional<int64_t> step = stepAlong(expr, operand);
    if (!step || *step < -2 || *step > 2 || (steps += std::abs(*step)) > 2)
      return true;
  }
  return false;
}

AxisScope::AxisScope(Prover &prover, Operation *place) : prover(prover) {
  SmallVector<Block *> blocks;
  for (Block *block = place->getBlock(); block && !isa<KernelOp>(block->getParentOp());
       block = block->getParentOp()->getBlock())
    blocks.push_back(block);
  for (Block *block : llvm::reverse(blocks))
    for (BlockArgument argument : block->getArguments())
      if (auto range = getRange(argument))
        addAxis(argument, range->lo, range->hi);
}

unsigned AxisScope::dimOf(Value value) {
  auto *found = llvm::find(values, value);
  if (found == values.end()) {
    values.push_back(value);
    return values.size() - 1;
  }
  return found - values.begin();
}

IndexExpr AxisScope::toDims(const ValueExpr &expr) {
  return expr.expr().substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    if (var.isSymbol())
      return std::nullopt;
    return IndexExpr::dim(dimOf(expr.operands()[var.position()]));
  });
}

ValueExpr AxisScope::toValues(const IndexExpr &expr) const {
  return ValueExpr(expr, [&](unsigned position) { return values[position]; });
}

llvm::DenseSet<unsigned> AxisScope::usedBy(ArrayRef<IndexExpr> exprs) const {
  llvm::DenseSet<unsigned> used;
  SmallVector<IndexExpr> pending(exprs);
  while (!pending.empty()) {
    IndexExpr expr = pending.pop_back_val();
    for (const IndexVar &var : expr.variables())
      if (!var.isSymbol() && used.insert(var.position()).second)
        for (const RangedVar &range : ranges.vars)
          if (range.position == var.position())
            pending.append({range.lo, range.hi});
  }
  return used;
}

Domain AxisScope::rangesFor(ArrayRef<IndexExpr> exprs) const {
  SmallVector<IndexExpr> all(exprs);
  Domain domain;
  domain.conditions = ranges.conditions;
  for (const Condition &condition : ranges.conditions)
    all.append({condition.lhs, condition.rhs});
  llvm::DenseSet<unsigned> used = usedBy(all);
  for (const RangedVar &range : ranges.vars)
    if (used.contains(range.position))
      domain.vars.push_back(range);
  return domain;
}

bool AxisScope::hasPoints(const ValueExpr &expr, ArrayRef<ValueExpr> kept) {
  SmallVector<IndexExpr> keptDims =
      llvm::map_to_vector(kept, [&](const ValueExpr &one) { return toDims(one); });
  llvm::DenseSet<unsigned> used = usedBy({toDims(expr)}), stays = usedBy(keptDims);
  return llvm::all_of(ranges.vars, [&](const RangedVar &range) {
    return !used.contains(range.position) || stays.contains(range.position) ||
           proves(Condition::lessThan(range.lo, range.hi));
  });
}

void AxisScope::addAxis(Value axis, const ValueExpr &lo, const ValueExpr &hi) {
  IndexExpr low = toDims(lo), high = toDims(hi);
  ranges.add(dimOf(axis), low, high);
}

std::optional<IndexExpr> AxisScope::maxOf(const ValueExpr &expr) {
  if (expr.operands().empty())
    return expr.expr();
  std::optional<IndexExpr> max = rangeOf(expr).max;
  if (!max || !max->isSize())
    return std::nullopt;
  return max;
}
