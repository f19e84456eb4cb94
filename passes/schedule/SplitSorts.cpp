//===- SplitSorts.cpp - Sorts of long rows in launches of their own -------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "strategies/sort/plan/SortShape.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SPLITSORTSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {

/// Cuts the statement of one sort into what stands before, the sort, and what stands after.
class SortSplitter {
public:
  /// `isOnce`: elements are read once.
  SortSplitter(SortOp sort, const SortedElements &elements, bool isOnce)
      : sort(sort), elements(elements), isOnce(isOnce),
        statement(cast<ParallelOp>(sort->getParentOp())),
        launch(cast<LaunchOp>(statement->getParentOp())),
        axes(cast<AxesOp>(statement.getOperation())) {}

  /// False, with nothing changed, where the statement cannot be cut.
  bool split() {
    Block &block = statement.getBody().front();
    isInside = elements.nest->getParentOp() == statement && elements.nest.getAxes().size() == 1;
    bool comesAlong = elements.axis && elements.isCheap() && (isOnce || elements.isRepeatable()) &&
                      (isInside || standsAlone());
    if (!gatherParts(comesAlong && isInside))
      return false;
    written = accessesOf(statement).writes;
    if (!findTemps())
      return false;

    around.setInsertionPoint(launch);
    for (TempOp temp : shared)
      hoist(temp);
    written = accessesOf(statement).writes;
    Operation *last = launch;
    IRMapping map;
    ParallelOp sorting = openLaunch(last, map);
    if (!comesAlong)
      storeElements(sorting, map);
    else if (!isInside)
      bringNest(sorting, map);
    tensors = {sort.getValues(), sort.getPositions()};
    move(sorted, sorting, map);
    // What stands before has what the sort's elements are made of; what stands after both.
    if (!after.empty()) {
      IRMapping afterMap;
      ParallelOp rest = openLaunch(last, afterMap);
      move(after, rest, afterMap);
    }
    eraseUnusedOps(block);
    if (block.empty())
      launch.erase();
    return true;
  }

  /// The tensors that are sorted in a launch of their own.
  std::pair<Value, Value> sortedTensors() { return tensors; }

private:
  SortOp sort;
  SortedElements elements;
  bool isOnce;
  ParallelOp statement;
  LaunchOp launch;
  AxesOp axes;
  std::pair<Value, Value> tensors;
  bool isInside = false; ///< the nest that makes the elements is
  SmallVector<Operation *> sorted, after;
  SmallVector<TempOp> shared;         ///< temporaries that several parts use
  decltype(Accesses::writes) written; ///< by the statement
  OpBuilder around{sort};

  /// Whether the elements are all that another launch computes, of rows that are the statement's
  /// points, and would be the same if they were made here.
  bool standsAlone() {
    ParallelOp nest = elements.nest;
    auto from = dyn_cast<LaunchOp>(nest->getParentOp());
    if (!from || from->getBlock() != launch->getBlock() || !from->isBeforeInBlock(launch) ||
        !llvm::hasSingleElement(from.getBody().front()) ||
        writesInputsOf(nest, from->getNextNode(), launch))
      return false;
    SmallVector<ValueExpr> written = elements.value.getSubscriptExprs(),
                           row = sort.getSubscriptExprs();
    unsigned others = nest.getAxes().size() - 1;
    for (auto [to, here] : llvm::zip(written, row)) {
      Value axis = to.asValue(), own = here.asValue();
      if (std::optional<int64_t> only = to.asConstant()) { // an axis of one point has been dropped
        bool isOnly = own && axesOpOf(own) == statement && lowOf(own).asConstant() == only &&
                      highOf(own).asConstant() == *only + 1;
        if (!isOnly && here.asConstant() != only)
          return false;
        continue;
      }
      if (!axis || axesOpOf(axis) != nest || !own || axesOpOf(own) != statement ||
          !lowOf(axis).asConstant() || lowOf(axis) != lowOf(own) || highOf(axis) != highOf(own))
        return false;
      --others;
    }
    if (others)
      return false;
    return true;
  }

  /// What of the statement goes with the sort, and what comes after.
  bool gatherParts(bool withNest) {
    if (withNest && !elements.nest->isBeforeInBlock(sort))
      return false;
    if (withNest)
      sorted.push_back(elements.nest);
    sorted.push_back(sort);
    for (Operation *op = sort->getNextNode(); op; op = op->getNextNode())
      after.push_back(op);
    return true;
  }

  unsigned partOf(Operation *user) {
    Operation *op = statement.getBody().front().findAncestorOpInBlock(*user);
    return llvm::is_contained(sorted, op) ? 1 : sort->isBeforeInBlock(op) ? 2 : 0;
  }

  /// Temporaries of the statement that have to outlive their part. False where one cannot.
  bool findTemps() {
    for (auto temp : statement.getBody().front().getOps<TempOp>()) {
      llvm::SmallSet<unsigned, 3> parts;
      bool isSorted = false;
      for (Operation *user : temp->getUsers()) {
        parts.insert(partOf(user));
        isSorted |= isa<SortOp>(user);
      }
      // Both tensors of a sort have its subscripts.
      bool isOfTwo = parts.size() > 1;
      for (Operation *user : temp->getUsers())
        if (auto other = dyn_cast<SortOp>(user))
          for (Value tensor : {other.getValues(), other.getPositions()})
            for (Operation *reader : tensor.getUsers())
              isOfTwo |= partOf(reader) != *parts.begin();
      if (!isOfTwo && !(isSorted && parts.contains(1))) {
        if (parts.contains(1))
          return false;
        continue;
      }
      if (!llvm::all_of(temp->getUsers(),
                        [](Operation *user) { return isa<ReadOp, WriteOp, SortOp>(user); }))
        return false;
      shared.push_back(temp);
    }
    for (Operation *part : llvm::concat<Operation *>(sorted, after))
      for (Value value : valuesUsedBy(part)) {
        Operation *definition = value.getDefiningOp();
        bool isOwn = definition && definition->getBlock() == &statement.getBody().front();
        if (isOwn && !isa<TempOp>(definition) && !isAgain(definition) &&
            partOf(definition) != partOf(part) && !value.getType().isIntOrFloat())
          return false;
      }
    return true;
  }

  /// Whether an operation of the statement gives what it gave if it is done again in a later part.
  bool isAgain(Operation *op) {
    auto read = dyn_cast<ReadOp>(op);
    if (op->getNumRegions() || isa<WriteOp, SortOp, TempOp>(op))
      return false;
    return !read || (!read.getChecked() && !written.contains(read.getTensor()));
  }

  SmallVector<ValueExpr> placeIn(const IRMapping &map) {
    SmallVector<ValueExpr> place;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      place.push_back(ValueExpr(map.lookupOrDefault(axes.getAxes()[axis])) -
                      getAxisRange(axes, axis).lo);
    return place;
  }
  SmallVector<IndexExprAttr> pointDims() {
    SmallVector<IndexExprAttr> dims;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      dims.push_back(IndexExprAttr::get(sort.getContext(), *knownPoints(axes, axis)));
    return dims;
  }

  /// A temporary of each point becomes one of all points.
  void hoist(TempOp temp) {
    SmallVector<IndexExprAttr> dims = pointDims();
    llvm::append_range(dims, temp.getType().getDims());
    auto type = TglTensorType::get(temp.getContext(), dims, temp.getType().getElementType());
    Value outer = TempOp::create(around, temp.getLoc(), type, temp.getName()).getTensor();
    SmallVector<Operation *> users(temp->getUsers());
    llvm::SmallPtrSet<Operation *, 8> done;
    for (Operation *user : users) {
      if (!done.insert(user).second)
        continue;
      SmallVector<ValueExpr> subscripts = placeIn(IRMapping());
      auto append = [&](auto access) {
        llvm::append_range(subscripts, access.getSubscriptExprs());
      };
      bool isDone = false;
      if (auto read = dyn_cast<ReadOp>(user))
        append(read);
      else if (auto write = dyn_cast<WriteOp>(user))
        append(write);
      else { // a sort has one row of subscripts for both of its tensors
        append(cast<SortOp>(user));
        isDone = !hoistedSorts.insert(user).second;
      }
      if (!isDone)
        setSubscripts(user, subscripts);
    }
    temp.getTensor().replaceAllUsesWith(outer);
    temp.erase();
  }
  llvm::SmallPtrSet<Operation *, 2> hoistedSorts;

  /// A launch after `last`, which it becomes, with a statement over the same points.
  ParallelOp openLaunch(Operation *&last, IRMapping &map) {
    OpBuilder builder(launch.getContext());
    builder.setInsertionPointAfter(last);
    auto made = LaunchOp::create(builder, launch.getLoc(), launch.getName());
    last = made;
    OpBuilder inside = OpBuilder::atBlockBegin(&made.getBody().front());
    SmallVector<Value> all(axes.getAxes().begin(), axes.getAxes().end());
    return copyAxes(inside, statement.getLoc(), all, map);
  }

  /// Moves operations to the end of a part, with what they need of the statement.
  void move(ArrayRef<Operation *> ops, ParallelOp part, IRMapping &map) {
    Block &from = statement.getBody().front(), &to = part.getBody().front();
    OpBuilder inside = OpBuilder::atBlockEnd(&to);
    SetVector<Value> needed;
    for (Operation *op : ops)
      for (Value value : valuesUsedBy(op))
        needed.insert(value);
    auto isMoved = [&](Operation *op) { return llvm::is_contained(ops, op); };
    std::function<void(Value)> bring = [&](Value value) {
      Operation *definition = value.getDefiningOp();
      if (map.contains(value) || !definition || definition->getBlock() != &from ||
          isMoved(definition))
        return;
      if (isAgain(definition) || isa<TempOp>(definition)) { // a temporary of this part alone
        for (Value operand : definition->getOperands())
          bring(operand);
        inside.clone(*definition, map);
        return;
      }
      auto type = TglTensorType::get(sort.getContext(), pointDims(), value.getType());
      Value kept = TempOp::create(around, value.getLoc(), type, "kept").getTensor();
      OpBuilder here(definition->getContext());
      here.setInsertionPointAfter(definition);
      WriteOp::create(here, value.getLoc(), value, kept, placeIn(IRMapping()));
      map.map(value, ReadOp::create(inside, value.getLoc(), kept, placeIn(map)).getResult());
    };
    for (Value value : needed)
      bring(value);
    for (Operation *op : ops) {
      Operation *copy = inside.clone(*op, map);
      if (op == elements.nest)
        elements.nest = cast<ParallelOp>(copy);
    }
    for (Operation *op : llvm::reverse(ops))
      op->erase();
  }

  /// The nest of another launch, over the elements of a row.
  void bringNest(ParallelOp part, IRMapping &rowMap) {
    ParallelOp nest = elements.nest;
    IRMapping map;
    for (auto [to, here] : llvm::zip(elements.value.getSubscriptExprs(), sort.getSubscriptExprs()))
      if (Value axis = to.asValue())
        map.map(axis, rowMap.lookup(here.asValue()));
    OpBuilder inside = OpBuilder::atBlockEnd(&part.getBody().front());
    ParallelOp made = copyAxes(inside, nest.getLoc(), Value(nest.getAxes()[*elements.axis]), map);
    OpBuilder within = OpBuilder::atBlockEnd(&made.getBody().front());
    for (Operation &op : nest.getBody().front())
      within.clone(op, map);
    nest->getParentOp()->erase();
  }

  /// Where the elements are made together with more they are stored, and copied to be sorted.
  void storeElements(ParallelOp part, IRMapping &rowMap) {
    Location loc = sort.getLoc();
    Value values = sort.getValues(), positions = sort.getPositions();
    auto type = cast<TglTensorType>(values.getType());
    OpBuilder beside(values.getDefiningOp());
    Value stored = TempOp::create(beside, loc, type, "unsorted").getTensor();
    elements.value.getTensorMutable().assign(stored);
    OpBuilder inside = OpBuilder::atBlockEnd(&part.getBody().front());
    int64_t length = *type.getDims().back().getExpr().asConstant();
    AxisSpec along{"element", ValueExpr(elements.first), ValueExpr(elements.first + length)};
    ParallelOp made = ParallelOp::create(inside, loc, along);
    Value axis = made.getAxes()[0];
    OpBuilder within = OpBuilder::atBlockEnd(&made.getBody().front());
    SmallVector<ValueExpr> place;
    for (const ValueExpr &expr : sort.getSubscriptExprs())
      place.push_back(expr.substitute([&](Value value) -> std::optional<ValueExpr> {
        return ValueExpr(rowMap.lookupOrDefault(value));
      }));
    place.push_back(ValueExpr(axis) - ValueExpr(elements.first));
    Value value = ReadOp::create(within, loc, stored, place);
    Value number = arith::IndexCastOp::create(within, loc, within.getI64Type(), axis);
    WriteOp::create(within, loc, value, values, place);
    WriteOp::create(within, loc, number, positions, place);
    elements.position.erase();
  }
};

/// Sorts into a result where the only statement that reads a sorted tensor copies all of it there.
bool sortIntoResult(Value sorted) {
  auto temp = sorted.getDefiningOp<TempOp>();
  ReadOp read;
  for (Operation *user : sorted.getUsers())
    if (auto one = dyn_cast<ReadOp>(user)) {
      if (read)
        return false;
      read = one;
    }
  if (!temp || !read || !read.getResult().hasOneUse() || read.getGuard() || read.getFill() ||
      read.getChecked())
    return false;
  auto write = dyn_cast<WriteOp>(*read.getResult().user_begin());
  if (!write || write.getGuard() || write.getCombine() || write.getChecked() ||
      write->getBlock() != read->getBlock() || !isa<BlockArgument>(write.getTensor()) ||
      !write.getTensor().hasOneUse() || write.getTensor().getType() != sorted.getType() ||
      !llvm::equal(read.getSubscriptExprs(), write.getSubscriptExprs()))
    return false;
  SmallVector<Value> seen;
  for (auto [subscript, dim] :
       llvm::zip_equal(write.getSubscriptExprs(), write.getTensorType().getDims())) {
    if (subscript.asConstant() == 0 && dim.getExpr().asConstant() == 1)
      continue;
    Value axis = subscript.asValue();
    auto owner = axis ? axesOpOf(axis) : AxesOp();
    if (!owner || !isa<ParallelOp>(owner.getOperation()) || !owner->isAncestor(write) ||
        llvm::is_contained(seen, axis) || lowOf(axis).asConstant() != 0 ||
        highOf(axis) != ValueExpr(dim.getExpr()))
      return false;
    seen.push_back(axis);
  }
  Value result = write.getTensor();
  auto nest = cast<ParallelOp>(write->getParentOp());
  write.erase();
  read.erase();
  sorted.replaceAllUsesWith(result);
  temp.erase();
  while (nest) { // and what has nothing left to do
    eraseUnusedOps(nest.getBody().front());
    Operation *around = nest->getParentOp();
    if (!nest.getBody().front().empty())
      break;
    nest.erase();
    nest = dyn_cast<ParallelOp>(around);
    if (auto launch = dyn_cast<LaunchOp>(around); launch && launch.getBody().front().empty())
      launch.erase();
  }
  return true;
}

struct SplitSortsPass : Counted<tegula::impl::SplitSortsPassBase<SplitSortsPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    FailureOr<TargetInfo> machine = parseTarget(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    SmallVector<SortOp> sorts;
    getOperation().walk([&](SortOp sort) { sorts.push_back(sort); });
    // The last sort of a statement first: what comes after it has none, and those before it stay.
    for (SortOp sort : llvm::reverse(sorts))
      if (std::optional<std::pair<Value, Value>> sorted = split(sort, *machine)) {
        count("sorts split");
        for (Value tensor : {sorted->first, sorted->second})
          if (sortIntoResult(tensor))
            count("results sorted in place");
      }
  }

  /// What is sorted, if the sort has a launch of its own now.
  std::optional<std::pair<Value, Value>> split(SortOp sort, const TargetInfo &machine) {
    auto refuse = [&](const Mismatch &why) {
      remarkMismatch(sort->getParentOp(), "radix-sort", why);
      return std::nullopt;
    };
    auto statement = dyn_cast<ParallelOp>(sort->getParentOp());
    auto launch = statement ? dyn_cast<LaunchOp>(statement->getParentOp()) : LaunchOp();
    if (!launch)
      return refuse({"the sort stands inside another nest", "", sort});
    if (!llvm::hasSingleElement(launch.getBody().front()))
      return refuse({"the sort's launch has other statements", "", sort});
    for (AxisRange &range : getAxisRanges(cast<AxesOp>(statement.getOperation())))
      if (!range.lo.asConstant() || !range.hi.asConstant())
        return refuse({"the number of the sorted rows is not known when compiling",
                       "compile for known sizes (-d)", sort});
    Matched<SortedElements> elements = elementsOf(sort);
    if (!elements)
      return refuse(elements.mismatch());
    Matched<SortPlan> plan = planSort(sort, statement, *elements);
    if (!plan)
      return refuse(plan.mismatch());
    Matched<SortShape> shape = chooseSortShape(*plan, machine, wholeRows);
    if (!shape)
      return refuse(shape.mismatch());
    SortSplitter splitter(sort, *elements, shape->form == SortShape::Block);
    if (!splitter.split())
      return refuse({"the sort shares values with the statement that it stands in", "", sort});
    return splitter.sortedTensors();
  }
};
} // namespace
