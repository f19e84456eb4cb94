//===- BlockRows.cpp - Blocks rows of a nest, so that inner sums are matrix products ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_BLOCKROWSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {

/// Moves one axis of a nest inside: `parallel (.., i) { A; tiles { B } }` becomes
/// `parallel (.., block) { parallel (i) { A }; tiles { parallel (i) { B } } }`.
class RowBlocker {
public:
  RowBlocker(ParallelOp nest, unsigned position, int64_t size)
      : nest(nest), axes(cast<AxesOp>(nest.getOperation())), row(axes.getAxes()[position]),
        position(position), size(size), builder(nest) {}

  /// Every statement can run for a block of rows before the next one does.
  bool isPossible() { return canDistribute(nest.getBody().front()); }

  void run() {
    Location loc = nest.getLoc();
    AxisRange range = getAxisRange(axes, position);
    ValueExpr count =
        ValueExpr::floorDiv(range.hi - range.lo + ValueExpr(size - 1), ValueExpr(size));
    SmallVector<AxisSpec> specs;
    for (unsigned k = 0; k < axes.getAxes().size(); ++k) {
      AxisRange own = getAxisRange(axes, k);
      specs.push_back(k == position ? AxisSpec{getAxisName(axes, k).str() + "_block",
                                               ValueExpr(int64_t(0)), count}
                                    : AxisSpec{getAxisName(axes, k).str(), own.lo, own.hi});
    }
    auto blocked = ParallelOp::create(builder, loc, specs);
    for (unsigned k = 0; k < specs.size(); ++k)
      if (k != position)
        uniforms.map(axes.getAxes()[k], blocked.getBody().front().getArgument(k));
    ValueExpr number(Value(blocked.getBody().front().getArgument(position)));
    rowLow = range.lo + number * ValueExpr(size);
    rowHigh = ValueExpr::min(range.hi, rowLow + ValueExpr(size));
    builder.setInsertionPointToEnd(&blocked.getBody().front());
    distribute(nest.getBody().front(), nullptr);
    nest.erase();
  }

private:
  /// What the statement `op` is to the distribution.
  enum class Part {
    Uniform, ///< the same for all rows: stays as it is
    Scalar,  ///< a value for each row
    Inner,   ///< a parallel: gets the rows as its first axis
    Loop,    ///< runs once for all rows
    Temp,    ///< gets the rows as its first dim
  };

  /// The same for all rows of a block.
  bool isUniform(Value value) {
    if (value == row)
      return false;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *owner = argument.getOwner()->getParentOp();
      if (!nest->isAncestor(owner) || owner == nest)
        return true;
      if (auto loop = dyn_cast<ForOp>(owner))
        return argument == loop.getLoopVar();
      if (auto tiles = dyn_cast<TilesOp>(owner))
        return argument == tiles.getTileLow() || argument == tiles.getTileHigh();
      return false;
    }
    Operation *def = value.getDefiningOp();
    return !nest->isProperAncestor(def) || partOf(def) == Part::Uniform;
  }

  Part partOf(Operation *op) {
    if (isa<TempOp>(op))
      return Part::Temp;
    if (isa<ParallelOp>(op))
      return Part::Inner;
    if (isa<ForOp, TilesOp>(op))
      return Part::Loop;
    if (op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
        llvm::all_of(op->getOperands(), [&](Value value) { return isUniform(value); }))
      return Part::Uniform;
    return Part::Scalar;
  }

  bool canDistribute(Block &block) {
    for (Operation &op : block) {
      switch (partOf(&op)) {
      case Part::Uniform:
      case Part::Temp:
        break;
      case Part::Scalar:
        if (!isa<ReadOp, WriteOp, ReduceOp, YieldOp>(op) && !isMemoryEffectFree(&op))
          return false;
        break;
      case Part::Inner: // its bounds may use the row, but no other value that the rows have each
        for (Value operand : op.getOperands())
          if (operand != row && !isUniform(operand))
            return false;
        break;
      case Part::Loop:
        for (Value operand : cast<IndexedOp>(op).getIndices())
          if (!isUniform(operand))
            return false;
        if (!canDistribute(op.getRegion(0).front()))
          return false;
        break;
      }
    }
    return true;
  }

  //===--- Rewriting ---===//

  /// A temporary with one element for each row.
  TempOp makeRowTemp(Location loc, StringRef name, ArrayRef<IndexExprAttr> dims, Type element) {
    SmallVector<IndexExprAttr> all{IndexExprAttr::get(builder.getContext(), IndexExpr(size))};
    all.append(dims.begin(), dims.end());
    return TempOp::create(builder, loc, TglTensorType::get(builder.getContext(), all, element),
                          name);
  }

  static Type storedType(Type type) {
    return type.isIndex() ? Type(IntegerType::get(type.getContext(), 64)) : type;
  }

  TempOp storeFor(Value value, StringRef name) {
    return stored[value] = makeRowTemp(value.getLoc(), name, {}, storedType(value.getType()));
  }

  ValueExpr rowNumber(Value rowValue) { return ValueExpr(rowValue) - rowLow; }

  /// The value of `old` for the row at hand, read from its store where it has one.
  Value use(Value old, Value rowValue, IRMapping &map) {
    if (Value known = map.lookupOrNull(old))
      return known;
    auto found = stored.find(old);
    if (found == stored.end())
      return old; // from outside of the nest
    Value value =
        ReadOp::create(builder, old.getLoc(), found->second.getTensor(), {rowNumber(rowValue)});
    if (old.getType().isIndex())
      value = arith::IndexCastOp::create(builder, old.getLoc(), builder.getIndexType(), value);
    map.map(old, value);
    return value;
  }

  void write(Value value, TempOp temp, Value rowValue) {
    if (value.getType().isIndex())
      value = arith::IndexCastOp::create(builder, value.getLoc(), builder.getI64Type(), value);
    WriteOp::create(builder, value.getLoc(), value, temp.getTensor(), {rowNumber(rowValue)});
  }

  /// Clones an op for the row at hand. Accesses to temporaries that got the rows as a dim name the
  /// row.
  Operation *cloneForRow(Operation *op, Value rowValue, IRMapping &map) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (!isa<TglTensorType>(operand.getType()) && !isInside(operand, op))
          use(operand, rowValue, map);
    });
    Operation *clone = builder.clone(*op, map);
    return nameRows(clone, rowValue);
  }

  static bool isInside(Value value, Operation *op) {
    if (Operation *def = value.getDefiningOp())
      return op->isAncestor(def);
    return op->isAncestor(cast<BlockArgument>(value).getOwner()->getParentOp());
  }

  /// Makes accesses in `root` to temporaries that have rows name the row; returns what `root`
  /// became.
  Operation *nameRows(Operation *root, Value rowValue) {
    SmallVector<Operation *> accesses;
    root->walk([&](Operation *op) {
      if (auto read = dyn_cast<ReadOp>(op); read && expanded.contains(read.getTensor()))
        accesses.push_back(op);
      if (auto write = dyn_cast<WriteOp>(op); write && expanded.contains(write.getTensor()))
        accesses.push_back(op);
    });
    for (Operation *op : accesses) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(op);
      SmallVector<ValueExpr> subscripts{rowNumber(rowValue)};
      Operation *named;
      if (auto read = dyn_cast<ReadOp>(op)) {
        llvm::append_range(subscripts, read.getSubscriptExprs());
        named = ReadOp::create(builder, op->getLoc(), expanded[read.getTensor()].getTensor(),
                               subscripts, read.getFill(), read.getGuard(), read.getExactExprs(),
                               read.getChecked().value_or(""));
        op->replaceAllUsesWith(named);
      } else {
        auto write = cast<WriteOp>(op);
        llvm::append_range(subscripts, write.getSubscriptExprs());
        named = WriteOp::create(
            builder, op->getLoc(), write.getValue(), expanded[write.getTensor()].getTensor(),
            subscripts, write.getGuard(), write.getCombine(), write.getChecked().value_or(""));
      }
      root = op == root ? named : root;
      op->erase();
    }
    return root;
  }

  /// A parallel over the rows of the block, the builder inside it.
  Value openRows(Location loc) {
    AxisSpec spec{getAxisName(axes, position).str(), rowLow, rowHigh};
    auto rows = ParallelOp::create(builder, loc, spec);
    builder.setInsertionPointToEnd(&rows.getBody().front());
    return rows.getBody().front().getArgument(0);
  }

  /// Statements of a block, one after the other for all rows. `carried`: stores of what the loop
  /// around it carries, in order of its yield.
  void distribute(Block &block, ArrayRef<TempOp> *carried) {
    // Neighbouring scalars form a group, one parallel over the rows.
    DenseMap<Operation *, unsigned> groupOf;
    unsigned group = 0;
    bool open = false;
    for (Operation &op : block) {
      Part part = partOf(&op);
      if (part == Part::Scalar) {
        group += !open;
        open = true;
        groupOf[&op] = group;
      } else if (part == Part::Inner || part == Part::Loop) {
        open = false;
      }
    }
    // What one group computes and others use is stored.
    for (Operation &op : block) {
      if (!groupOf.contains(&op))
        continue;
      for (Value result : op.getResults())
        for (Operation *user : result.getUsers()) {
          Operation *home = block.findAncestorOpInBlock(*user);
          auto at = groupOf.find(home);
          if (at != groupOf.end() && at->second == groupOf[&op])
            continue;
          storeFor(result, "row");
          break;
        }
    }
    auto op = block.begin();
    while (op != block.end()) {
      switch (partOf(&*op)) {
      case Part::Uniform:
        builder.clone(*op, uniforms);
        ++op;
        break;
      case Part::Temp: {
        auto temp = cast<TempOp>(*op);
        TglTensorType type = cast<TglTensorType>(temp.getTensor().getType());
        expanded[temp.getTensor()] =
            makeRowTemp(temp.getLoc(), temp.getName(), type.getDims(), type.getElementType());
        ++op;
        break;
      }
      case Part::Inner:
        emitInner(cast<ParallelOp>(*op));
        ++op;
        break;
      case Part::Loop:
        emitLoop(&*op);
        ++op;
        break;
      case Part::Scalar:
        op = emitGroup(block, op, groupOf, carried);
        break;
      }
    }
  }

  Block::iterator emitGroup(Block &block, Block::iterator op,
                            DenseMap<Operation *, unsigned> &groupOf, ArrayRef<TempOp> *carried) {
    unsigned group = groupOf[&*op];
    // A yield of nothing ends a loop's block and computes nothing.
    if (isa<YieldOp>(*op) && op->getNumOperands() == 0)
      return std::next(op);
    SmallVector<Operation *> inOrder;
    auto last = op;
    for (; last != block.end(); ++last) {
      auto found = groupOf.find(&*last);
      if (found != groupOf.end() ? found->second != group
                                 : partOf(&*last) != Part::Uniform && partOf(&*last) != Part::Temp)
        break;
      if (found != groupOf.end())
        inOrder.push_back(&*last);
      else if (partOf(&*last) == Part::Uniform)
        builder.clone(*last, uniforms);
      else
        inOrder.push_back(&*last); // a temporary: made before the group
    }
    for (Operation *&member : inOrder)
      if (auto temp = dyn_cast<TempOp>(member)) {
        TglTensorType type = cast<TglTensorType>(temp.getTensor().getType());
        expanded[temp.getTensor()] =
            makeRowTemp(temp.getLoc(), temp.getName(), type.getDims(), type.getElementType());
        member = nullptr;
      }
    OpBuilder::InsertionGuard guard(builder);
    Value rowValue = openRows(inOrder.front() ? inOrder.front()->getLoc() : nest.getLoc());
    IRMapping map = uniforms;
    map.map(row, rowValue);
    for (Operation *member : inOrder) {
      if (!member)
        continue;
      if (auto yield = dyn_cast<YieldOp>(member)) {
        // All values before any of them is replaced.
        SmallVector<Value> next;
        for (Value value : yield.getValues())
          next.push_back(use(value, rowValue, map));
        for (auto [value, temp] : llvm::zip_equal(next, *carried))
          write(value, temp, rowValue);
        continue;
      }
      Operation *clone = cloneForRow(member, rowValue, map);
      for (auto [old, now] : llvm::zip(member->getResults(), clone->getResults())) {
        map.map(old, now);
        if (auto found = stored.find(old); found != stored.end())
          write(now, found->second, rowValue);
      }
    }
    return last;
  }

  void emitInner(ParallelOp inner) {
    auto innerAxes = cast<AxesOp>(inner.getOperation());
    OpBuilder::InsertionGuard guard(builder);
    SmallVector<AxisSpec> specs{{getAxisName(axes, position).str(), rowLow, rowHigh}};
    for (unsigned k = 0; k < innerAxes.getAxes().size(); ++k)
      specs.push_back(
          {getAxisName(innerAxes, k).str(), ValueExpr(int64_t(0)), ValueExpr(int64_t(0))});
    auto blocked = ParallelOp::create(builder, inner.getLoc(), specs);
    auto blockedAxes = cast<AxesOp>(blocked.getOperation());
    Value rowValue = blockedAxes.getAxes()[0];
    IRMapping map = uniforms;
    map.map(row, rowValue);
    for (unsigned k = 0; k < innerAxes.getAxes().size(); ++k)
      map.map(innerAxes.getAxes()[k], blockedAxes.getAxes()[k + 1]);
    auto translate = [&](const ValueExpr &expr) {
      return expr.substitute([&](Value value) -> std::optional<ValueExpr> {
        return ValueExpr(map.lookupOrDefault(value));
      });
    };
    for (unsigned k = 0; k < innerAxes.getAxes().size(); ++k) {
      AxisRange range = getAxisRange(innerAxes, k);
      setAxisRange(blockedAxes, k + 1, translate(range.lo), translate(range.hi));
    }
    builder.setInsertionPointToEnd(&blocked.getBody().front());
    for (Operation &member : inner.getBody().front()) {
      Operation *clone = cloneForRow(&member, rowValue, map);
      for (auto [old, now] : llvm::zip(member.getResults(), clone->getResults()))
        map.map(old, now);
    }
  }

  void emitLoop(Operation *op) {
    // What is carried gets a place for each row.
    Block &body = op->getRegion(0).front();
    auto loop = dyn_cast<ForOp>(op);
    auto tiles = dyn_cast<TilesOp>(op);
    OperandRange inits = loop ? loop.getInits() : tiles.getInits();
    auto arguments = loop ? loop.getIterArgs() : tiles.getIterArgs();
    SmallVector<TempOp> places;
    for (auto [argument, result] : llvm::zip_equal(arguments, op->getResults())) {
      places.push_back(storeFor(argument, "carried"));
      stored[result] = places.back();
    }
    if (!places.empty()) {
      OpBuilder::InsertionGuard guard(builder);
      Value rowValue = openRows(op->getLoc());
      IRMapping map = uniforms;
      map.map(row, rowValue);
      SmallVector<Value> values;
      for (Value init : inits)
        values.push_back(use(init, rowValue, map));
      for (auto [value, place] : llvm::zip_equal(values, places))
        write(value, place, rowValue);
    }
    auto translate = [&](const ValueExpr &expr) {
      return expr.substitute([&](Value value) -> std::optional<ValueExpr> {
        return ValueExpr(uniforms.lookupOrDefault(value));
      });
    };
    OpBuilder::InsertionGuard guard(builder);
    Block *target;
    SmallVector<StringRef> names;
    auto nameList = loop ? loop.getNames() : tiles.getNames();
    if (nameList && !nameList->empty())
      names.push_back(cast<StringAttr>((*nameList)[0]).getValue());
    if (loop) {
      auto now = ForOp::create(builder, op->getLoc(), names, translate(loop.getLowExpr()),
                               translate(loop.getHighExpr()), ValueRange(), loop.getReverse());
      uniforms.map(loop.getLoopVar(), now.getLoopVar());
      target = &now.getBody().front();
    } else {
      auto now = TilesOp::create(builder, op->getLoc(), names, translate(tiles.getLowExpr()),
                                 translate(tiles.getHighExpr()), ValueRange(), tiles.getSize());
      uniforms.map(tiles.getTileLow(), now.getTileLow());
      uniforms.map(tiles.getTileHigh(), now.getTileHigh());
      target = &now.getBody().front();
    }
    // Builders of loops without carried values may have made the yield.
    if (!target->empty())
      builder.setInsertionPoint(&target->back());
    else
      builder.setInsertionPointToEnd(target);
    ArrayRef<TempOp> list = places;
    distribute(body, &list);
    if (target->empty() || !isa<YieldOp>(target->back())) {
      builder.setInsertionPointToEnd(target);
      YieldOp::create(builder, op->getLoc());
    }
  }

  ParallelOp nest;
  AxesOp axes;
  BlockArgument row;
  unsigned position;
  int64_t size;
  OpBuilder builder;
  ValueExpr rowLow, rowHigh;
  IRMapping uniforms; ///< what is the same for all rows, old to new
  DenseMap<Value, TempOp> stored;
  DenseMap<Value, TempOp> expanded;
};

/// The axis along which sums of products inside the nest use one factor again and again.
std::optional<unsigned> findReusingAxis(ParallelOp nest) {
  std::optional<unsigned> result;
  nest.getBody().walk([&](ReduceOp reduce) {
    auto inner = reduce->getParentOfType<ParallelOp>();
    if (inner == nest || result)
      return;
    std::optional<Contraction> contraction = matchContraction(reduce);
    if (!contraction)
      return;
    for (BlockArgument axis : llvm::reverse(nest.getBody().front().getArguments())) {
      bool isShared = false, isOwn = false;
      for (const Contraction::Factor &factor : contraction->factors) {
        bool usesInner = llvm::any_of(inner.getBody().front().getArguments(),
                                      [&](BlockArgument own) { return factor.axes.contains(own); });
        isShared |= usesInner && !factor.axes.contains(axis);
        isOwn |= !usesInner && factor.axes.contains(axis);
      }
      if (isShared && isOwn) {
        result = axis.getArgNumber();
        return;
      }
    }
  });
  return result;
}

struct BlockRowsPass : Counted<tegula::impl::BlockRowsPassBase<BlockRowsPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    SmallVector<ParallelOp> nests;
    getOperation().walk([&](ParallelOp parallel) {
      if (isa<LaunchOp>(parallel->getParentOp()))
        nests.push_back(parallel);
    });
    for (ParallelOp nest : nests) {
      std::optional<unsigned> axis = findReusingAxis(nest);
      if (!axis)
        continue;
      auto axes = cast<AxesOp>(nest.getOperation());
      AxisRange range = getAxisRange(axes, *axis);
      bool alone = true;
      for (unsigned k = 0; k < axes.getAxes().size(); ++k) {
        AxisRange other = getAxisRange(axes, k);
        for (Value own : axes.getAxes())
          alone &= !other.lo.uses(own) && !other.hi.uses(own);
      }
      std::optional<int64_t> extent = (range.hi - range.lo).asConstant();
      if (!alone || (extent && *extent < 8))
        continue;
      RowBlocker blocker(nest, *axis, rows);
      if (!blocker.isPossible())
        continue;
      blocker.run();
      count("nests blocked");
    }
  }
};
} // namespace
