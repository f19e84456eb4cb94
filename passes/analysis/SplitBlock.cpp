//===- SplitBlock.cpp - Splits a parallel around loops into a nest --------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/SplitBlock.h"
#include "passes/analysis/Outline.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

static bool isLoop(Operation *op) { return isa<ForOp, TilesOp>(op); }

static Block &bodyOf(Operation *op) { return op->getRegion(0).front(); }

static Block::BlockArgListType iterArgs(Operation *loop) {
  return isa<ForOp>(loop) ? cast<ForOp>(loop).getIterArgs() : cast<TilesOp>(loop).getIterArgs();
}

static ValueRange initsOf(Operation *loop) {
  return isa<ForOp>(loop) ? ValueRange(cast<ForOp>(loop).getInits())
                          : cast<TilesOp>(loop).getInits();
}

//===----------------------------------------------------------------------===//
// Which axes values vary along
//===----------------------------------------------------------------------===//

namespace {
/// For every value in the block (outside reductions), the axes of the block that it varies along.
class Variation {
public:
  explicit Variation(ParallelOp block) : axes(block.getAxes()) {
    for (auto [number, axis] : llvm::enumerate(axes)) {
      llvm::BitVector own(axes.size());
      own.set(number);
      table[axis] = own;
    }
    visit(bodyOf(block));
  }

  llvm::BitVector of(Value value) const {
    auto found = table.find(value);
    return found == table.end() ? llvm::BitVector(axes.size()) : found->second;
  }
  llvm::BitVector of(Operation *op) const {
    llvm::BitVector result(axes.size());
    for (Value value : valuesUsedBy(op))
      result |= of(value);
    return result;
  }
  /// An accumulating write happens once for every point of the block.
  llvm::BitVector ofWrite(WriteOp write) const {
    return write.getCombine() ? llvm::BitVector(axes.size(), true) : of(write);
  }

private:
  void visit(Block &block) {
    for (Operation &op : block) {
      if (isLoop(&op)) {
        visitLoop(&op);
        continue;
      }
      llvm::BitVector all = of(&op);
      for (Value result : op.getResults())
        table[result] = all;
    }
  }

  void visitLoop(Operation *loop) {
    // The number of iterations shows in everything that the loop computes.
    llvm::BitVector bounds(axes.size());
    for (Value index : cast<IndexedOp>(loop).getIndices())
      bounds |= of(index);
    for (BlockArgument argument : bodyOf(loop).getArguments())
      table[argument] = bounds;
    for (auto [argument, init] : llvm::zip_equal(iterArgs(loop), initsOf(loop)))
      table[argument] |= of(init);
    for (bool changed = true; changed;) {
      visit(bodyOf(loop));
      changed = false;
      Operation *yield = bodyOf(loop).getTerminator();
      for (auto [argument, next] : llvm::zip_equal(iterArgs(loop), yield->getOperands())) {
        llvm::BitVector &known = table[argument];
        llvm::BitVector now = known;
        now |= of(next);
        changed |= now != known;
        known = now;
      }
    }
    for (auto [result, argument] : llvm::zip_equal(loop->getResults(), iterArgs(loop)))
      table[result] = of(argument);
  }

  Block::BlockArgListType axes;
  DenseMap<Value, llvm::BitVector> table;
};
} // namespace

//===----------------------------------------------------------------------===//
// What can be split
//===----------------------------------------------------------------------===//

/// Whether the block holds loops, and only ops that may be copied to where they are needed.
static bool isSplittable(ParallelOp block) {
  bool hasLoops = false, plain = true;
  DenseSet<Value> read, written;
  block.walk([&](Operation *op) {
    hasLoops |= isLoop(op);
    if (auto readOp = dyn_cast<ReadOp>(op))
      read.insert(readOp.getTensor());
    else if (auto write = dyn_cast<WriteOp>(op))
      written.insert(write.getTensor());
    else if (op != block && !isLoop(op) && !isa<ReduceOp, YieldOp>(op))
      plain &= op->getNumRegions() == 0 && isMemoryEffectFree(op);
  });
  return hasLoops && plain &&
         llvm::none_of(written, [&](Value tensor) { return read.contains(tensor); });
}

/// The axes that every carried value and every reduction inside or after a loop varies along.
static llvm::BitVector commonAxes(ParallelOp block, const Variation &variation) {
  llvm::BitVector common(block.getAxes().size(), true);
  block.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isLoop(op))
      for (Value carried : iterArgs(op))
        common &= variation.of(carried);
    if (isa<ReduceOp>(op)) {
      common &= variation.of(op);
      return WalkResult::skip();
    }
    return WalkResult::advance();
  });
  // Bounds of a common axis may use common axes only.
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [number, axis] : llvm::enumerate(block.getAxes()))
      if (common[number])
        for (const ValueExpr &bound : {lowOf(axis), highOf(axis)})
          for (Value operand : bound.operands())
            if (axesOpOf(operand) == block &&
                !common[cast<BlockArgument>(operand).getArgNumber()]) {
              common.reset(number);
              changed = true;
            }
  }
  return common;
}

//===----------------------------------------------------------------------===//
// The nest
//===----------------------------------------------------------------------===//

namespace {
/// Something that must be computed for all points of its extra axes: a write, or the new element of
/// the temporary that stands for a carried value.
struct Sink {
  WriteOp write; // or
  Value value;   // stored to `temp`
  const AxesTemp *temp = nullptr;
};

class Splitter {
public:
  Splitter(ParallelOp block, const Variation &variation, llvm::BitVector common, Prover &prover,
           int64_t tileSize)
      : block(block), variation(variation), extra(common), prover(prover), tileSize(tileSize) {
    extra.flip();
    for (auto [number, axis] : llvm::enumerate(block.getAxes()))
      if (common[number])
        outer.push_back(axis);
  }

  /// Temporaries for the carried values are made first: they can fail, where an axis has no bound.
  bool prepare(Operation *anchor) {
    bool possible = true;
    block.walk([&](Operation *op) {
      if (!isLoop(op) || !possible)
        return;
      std::optional<ArrayAttr> names = cast<IndexedOp>(op)->getAttrOfType<ArrayAttr>("names");
      for (auto [number, carried] : llvm::enumerate(iterArgs(op))) {
        if (extraAxes(carried).empty())
          continue;
        StringRef name = names && *names && number + 1 < names->size()
                             ? cast<StringAttr>((*names)[number + 1]).getValue()
                             : "state";
        std::optional<AxesTemp> temp =
            makeAxesTemp(anchor, extraAxes(carried), carried.getType(), name, prover, tileSize);
        possible &= temp.has_value();
        if (temp)
          temps[carried] = std::make_unique<AxesTemp>(std::move(*temp));
      }
    });
    if (!possible)
      for (auto &[carried, temp] : temps)
        temp->tensor.getDefiningOp()->erase();
    return possible;
  }

  void run() {
    OpBuilder builder(block);
    IRMapping map;
    ParallelOp nest = copyAxes(builder, block.getLoc(), outer, map);
    OpBuilder inside = OpBuilder::atBlockEnd(&bodyOf(nest));
    for (auto &[carried, temp] : temps)
      temp->tensor.getDefiningOp()->moveBefore(&bodyOf(nest), bodyOf(nest).end());
    emit(bodyOf(block), inside, map);
    block.erase();
  }

private:
  SmallVector<Value> extraAxes(const llvm::BitVector &varies) {
    SmallVector<Value> axes;
    // With an axis go those that its bounds use.
    llvm::BitVector wanted = varies;
    for (unsigned number = block.getAxes().size(); number-- > 0;)
      if (wanted[number])
        for (const ValueExpr &bound :
             {lowOf(block.getAxes()[number]), highOf(block.getAxes()[number])})
          for (Value operand : bound.operands())
            if (axesOpOf(operand) == block)
              wanted.set(cast<BlockArgument>(operand).getArgNumber());
    wanted &= extra;
    for (unsigned number : wanted.set_bits())
      axes.push_back(block.getAxes()[number]);
    return axes;
  }
  SmallVector<Value> extraAxes(Value value) { return extraAxes(variation.of(value)); }

  /// The extra axes that are not among `axes`.
  SmallVector<Value> axesWithout(ArrayRef<Value> axes) {
    SmallVector<Value> others;
    for (unsigned number : extra.set_bits())
      if (!llvm::is_contained(axes, block.getAxes()[number]))
        others.push_back(block.getAxes()[number]);
    return others;
  }

  /// Emits the ops of a block at the outer level, as far as they vary along outer axes alone; sinks
  /// along extra axes become inner parallels. `next` are the carried values' new values.
  void emit(Block &from, OpBuilder &builder, IRMapping &map) {
    SmallVector<Sink> sinks;
    for (Operation &op : from.without_terminator()) {
      if (auto write = dyn_cast<WriteOp>(op)) {
        sinks.push_back({write, Value(), nullptr});
      } else if (isLoop(&op)) {
        flush(sinks, builder, map);
        emitLoop(&op, builder, map);
      } else if (extraAxes(variation.of(&op)).empty()) {
        accessOnlyWithin(builder.clone(op, map), axesWithout({}), map, prover);
      }
    }
    if (isLoop(from.getParentOp())) {
      // Writes along other axes than the updates read the old elements: they go first.
      SmallVector<Value> updated;
      for (Value carried : iterArgs(from.getParentOp()))
        if (temps.contains(carried))
          updated = temps[carried]->axes;
      SmallVector<Sink> together, before;
      for (const Sink &sink : sinks)
        (extraAxes(variation.ofWrite(sink.write)) == updated ? together : before).push_back(sink);
      flush(before, builder, map);
      sinks = std::move(together);
      Operation *yield = from.getTerminator();
      for (auto [carried, next] :
           llvm::zip_equal(iterArgs(from.getParentOp()), yield->getOperands()))
        if (auto temp = temps.find(carried); temp != temps.end())
          sinks.push_back({WriteOp(), next, temp->second.get()});
    }
    flush(sinks, builder, map);
  }

  void emitLoop(Operation *loop, OpBuilder &builder, IRMapping &map) {
    SmallVector<Sink> sinks;
    SmallVector<unsigned> kept; // carried values that stay values
    for (auto [number, carried] : llvm::enumerate(iterArgs(loop))) {
      if (auto temp = temps.find(carried); temp != temps.end())
        sinks.push_back({WriteOp(), initsOf(loop)[number], temp->second.get()});
      else
        kept.push_back(number);
    }
    flush(sinks, builder, map);

    // The loop without the values that are in temporaries.
    SmallVector<Value> inits;
    SmallVector<StringRef> names;
    auto nameAttrs = loop->getAttrOfType<ArrayAttr>("names");
    auto nameAt = [&](unsigned number) -> StringRef {
      return nameAttrs && number < nameAttrs.size() ? cast<StringAttr>(nameAttrs[number]).getValue()
                                                    : "";
    };
    names.push_back(nameAt(0));
    for (unsigned number : kept) {
      inits.push_back(map.lookupOrDefault(initsOf(loop)[number]));
      names.push_back(nameAt(number + 1));
    }
    auto inMap = [&](const ValueExpr &expr) {
      return expr.substitute([&](Value value) -> std::optional<ValueExpr> {
        return ValueExpr(map.lookupOrDefault(value));
      });
    };
    Operation *copy;
    if (auto forOp = dyn_cast<ForOp>(loop))
      copy = ForOp::create(builder, loop->getLoc(), names, inMap(forOp.getLowExpr()),
                           inMap(forOp.getHighExpr()), inits, forOp.getReverse());
    else
      copy = TilesOp::create(
          builder, loop->getLoc(), names, inMap(cast<TilesOp>(loop).getLowExpr()),
          inMap(cast<TilesOp>(loop).getHighExpr()), inits, cast<TilesOp>(loop).getSize());
    unsigned numVars = bodyOf(loop).getNumArguments() - iterArgs(loop).size();
    for (unsigned number = 0; number < numVars; ++number)
      map.map(bodyOf(loop).getArgument(number), bodyOf(copy).getArgument(number));
    for (auto [position, number] : llvm::enumerate(kept)) {
      map.map(iterArgs(loop)[number], iterArgs(copy)[position]);
      map.map(loop->getResult(number), copy->getResult(position));
    }
    Block &body = bodyOf(copy);
    if (!body.empty())
      body.back().erase();
    OpBuilder inside = OpBuilder::atBlockEnd(&body);
    emit(bodyOf(loop), inside, map);
    SmallVector<Value> yielded;
    for (unsigned number : kept)
      yielded.push_back(map.lookupOrDefault(bodyOf(loop).getTerminator()->getOperand(number)));
    YieldOp::create(inside, loop->getLoc(), yielded);
    // After the loop a temporary holds the result.
    for (auto [number, carried] : llvm::enumerate(iterArgs(loop)))
      if (temps.contains(carried))
        stored[loop->getResult(number)] = temps[carried].get();
  }

  /// One inner parallel for all sinks that share their extra axes. New elements are stored once all
  /// are computed: each update sees the old ones.
  void flush(SmallVector<Sink> &sinks, OpBuilder &builder, IRMapping &map) {
    llvm::MapVector<SmallVector<Value>, SmallVector<Sink>,
                    std::map<SmallVector<Value>, unsigned, AxesLess>>
        groups;
    for (const Sink &sink : sinks)
      groups[sink.write ? extraAxes(variation.ofWrite(sink.write)) : sink.temp->axes].push_back(
          sink);
    for (auto &[axes, group] : groups) {
      IRMapping innerMap(map);
      OpBuilder inside(builder);
      if (!axes.empty()) {
        ParallelOp inner = copyAxes(builder, block.getLoc(), axes, innerMap);
        inside = OpBuilder::atBlockEnd(&bodyOf(inner));
      }
      SmallVector<Value> values;
      left = axesWithout(axes);
      for (const Sink &sink : group) {
        if (sink.write)
          for (Value used : valuesUsedBy(sink.write))
            compute(used, inside, innerMap);
        values.push_back(sink.write ? Value() : compute(sink.value, inside, innerMap));
      }
      for (auto [sink, value] : llvm::zip_equal(group, values)) {
        if (sink.write)
          inside.clone(*sink.write, innerMap);
        else
          WriteOp::create(inside, value.getLoc(), value, sink.temp->tensor,
                          sink.temp->subscriptsIn(innerMap));
      }
      if (axes.empty())
        builder = inside;
    }
    sinks.clear();
  }

  /// The copy of a value inside a parallel over its extra axes, made where it is missing.
  Value compute(Value value, OpBuilder &builder, IRMapping &map) {
    if (map.contains(value))
      return map.lookup(value);
    const AxesTemp *temp = nullptr;
    if (auto found = temps.find(value); found != temps.end())
      temp = found->second.get();
    else if (auto result = stored.find(value); result != stored.end())
      temp = result->second;
    if (temp) {
      Value read = ReadOp::create(builder, value.getLoc(), temp->tensor, temp->subscriptsIn(map));
      map.map(value, read);
      return read;
    }
    Operation *def = value.getDefiningOp();
    if (!def || !block->isProperAncestor(def))
      return value;
    for (Value used : valuesUsedBy(def))
      compute(used, builder, map);
    accessOnlyWithin(builder.clone(*def, map), left, map, prover);
    return map.lookup(value);
  }

  struct AxesLess {
    bool operator()(const SmallVector<Value> &a, const SmallVector<Value> &b) const {
      return std::lexicographical_compare(
          a.begin(), a.end(), b.begin(), b.end(), [](Value x, Value y) {
            return cast<BlockArgument>(x).getArgNumber() < cast<BlockArgument>(y).getArgNumber();
          });
    }
  };

  ParallelOp block;
  const Variation &variation;
  llvm::BitVector extra;
  Prover &prover;
  int64_t tileSize;
  SmallVector<Value> outer;
  SmallVector<Value> left; // extra axes that the sinks at hand do not vary along
  llvm::MapVector<Value, std::unique_ptr<AxesTemp>> temps; // carried values in temporaries
  DenseMap<Value, const AxesTemp *> stored;                // loop results in temporaries
};
} // namespace

/// Whether the carried values of some loop vary along different extra axes and one reads another:
/// their temporaries could not be updated in place.
static bool updatesInterfere(ParallelOp block, const Variation &variation,
                             const llvm::BitVector &common) {
  return block
      .walk([&](Operation *loop) {
        if (!isLoop(loop))
          return WalkResult::advance();
        std::optional<llvm::BitVector> seen;
        for (Value carried : iterArgs(loop)) {
          llvm::BitVector extra = variation.of(carried);
          extra.reset(common);
          if (extra.none())
            continue;
          if (seen && *seen != extra)
            return WalkResult::interrupt();
          seen = extra;
        }
        return WalkResult::advance();
      })
      .wasInterrupted();
}

bool tegula::splitBlock(ParallelOp block, Prover &prover, int64_t tileSize) {
  if (!isSplittable(block))
    return false;
  Variation variation(block);
  llvm::BitVector common = commonAxes(block, variation);
  if (common.all() || updatesInterfere(block, variation, common))
    return false;
  Splitter splitter(block, variation, common, prover, tileSize);
  if (!splitter.prepare(block))
    return false;
  splitter.run();
  return true;
}
