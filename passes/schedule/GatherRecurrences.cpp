//===- GatherRecurrences.cpp - Forms persistent recurrences from loops on the host ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/fuse/InlineProducers.h"
#include "strategies/recurrence/plan/Recurrence.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_GATHERRECURRENCESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

//===----------------------------------------------------------------------===//
// Sums where they are used
//===----------------------------------------------------------------------===//

namespace {
/// A statement of the loop that computes one temporary of it.
struct StepProducer {
  ParallelOp statement;
  WriteOp write;
  DenseMap<Value, unsigned> dims; // by axis: the subscript that it is
};
} // namespace

static bool isPlain(ReadOp read) {
  return !read.getGuard() && !read.getFill() && !read.getChecked() &&
         read.getExactNumerators().empty();
}

static std::optional<StepProducer> producerOf(TempOp temp) {
  StepProducer producer;
  for (Operation *user : temp->getUsers()) {
    if (isa<ReadOp>(user))
      continue;
    auto write = dyn_cast<WriteOp>(user);
    if (!write || producer.write || write.getGuard() || write.getCombine() || write.getChecked())
      return std::nullopt;
    producer.write = write;
  }
  producer.statement =
      producer.write ? dyn_cast<ParallelOp>(producer.write->getParentOp()) : ParallelOp();
  if (!producer.statement || producer.statement->getBlock() != temp->getBlock())
    return std::nullopt;
  for (Operation &op : producer.statement.getBody().front())
    if (&op != producer.write && !isa<ReduceOp, ReadOp>(op) &&
        (op.getNumRegions() || !isMemoryEffectFree(&op)))
      return std::nullopt;
  for (auto [dim, subscript] : llvm::enumerate(producer.write.getSubscriptExprs())) {
    if (subscript.asConstant())
      continue;
    Value axis = subscript.asValue();
    if (!axis || axesOpOf(axis) != producer.statement ||
        !producer.dims.try_emplace(axis, dim).second)
      return std::nullopt;
  }
  if (producer.dims.size() != producer.statement.getAxes().size())
    return std::nullopt;
  return producer;
}

/// Whether the read is of what the producer writes, where that is a part of the temporary.
static bool readsWritten(const StepProducer &producer, ReadOp read) {
  SmallVector<ValueExpr> written = WriteOp(producer.write).getSubscriptExprs();
  return llvm::all_of_zip(
      written, read.getSubscriptExprs(),
      [](const ValueExpr &to, const ValueExpr &from) { return !to.asConstant() || to == from; });
}

/// Whether a statement writes what the producer reads, after it and before the reader.
static bool inputsChange(const StepProducer &producer, Operation *reader) {
  llvm::SetVector<Value> inputs = accessesOf(producer.statement).reads;
  for (Operation *op = StepProducer(producer).statement->getNextNode(); op && op != reader;
       op = op->getNextNode())
    for (Value written : accessesOf(op).writes)
      if (inputs.contains(written))
        return true;
  return false;
}

/// Puts the temporary's expression where it is read, if that computes each of its elements once at
/// most.
static bool inlineOnce(TempOp temp) {
  std::optional<StepProducer> producer = producerOf(temp);
  if (!producer)
    return false;
  std::optional<int64_t> elements = knownPoints(cast<AxesOp>(producer->statement.getOperation()));
  SmallVector<ReadOp> reads;
  int64_t wanted = 0;
  for (Operation *user : temp->getUsers())
    if (auto read = dyn_cast<ReadOp>(user)) {
      auto reader = dyn_cast<ParallelOp>(read->getParentOp());
      std::optional<int64_t> points =
          reader ? knownPoints(cast<AxesOp>(reader.getOperation())) : std::nullopt;
      if (!points || !isPlain(read) || reader->getBlock() != temp->getBlock() ||
          !producer->statement->isBeforeInBlock(reader) || inputsChange(*producer, reader) ||
          !readsWritten(*producer, read))
        return false;
      wanted += *points;
      reads.push_back(read);
    }
  if (!elements || wanted > *elements || reads.empty())
    return false;
  for (ReadOp read : reads) {
    OpBuilder builder(read);
    IRMapping map;
    SmallVector<ValueExpr> subscripts = read.getSubscriptExprs();
    SmallVector<Value> places;
    for (auto [axis, dim] : producer->dims) {
      places.push_back(materialize(builder, read.getLoc(), subscripts[dim]));
      map.map(axis, places.back());
    }
    for (Operation &op : producer->statement.getBody().front())
      if (&op != producer->write) {
        Operation *clone = builder.clone(op, map);
        clone->walk([](IndexedOp indexed) { foldIndices(indexed); });
      }
    Value value =
        roundToStorage(builder, read.getLoc(), map.lookupOrDefault(producer->write.getValue()),
                       temp.getType().getElementType());
    read.replaceAllUsesWith(value);
    read.erase();
    for (Value place : places)
      if (place.use_empty() && place.getDefiningOp())
        place.getDefiningOp()->erase();
  }
  producer->statement.erase();
  temp.erase();
  return true;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// The axis of each statement such that every access to a tensor that the loop writes has it,
/// alone, in the same dim. Such rows never meet.
static std::optional<SmallVector<unsigned>> findRows(ArrayRef<ParallelOp> statements) {
  llvm::SetVector<Value> changing;
  for (ParallelOp statement : statements)
    for (Value tensor : accessesOf(statement).writes)
      changing.insert(tensor);
  DenseMap<Value, unsigned> dimOf; // of each tensor
  auto agrees = [&](ParallelOp statement, unsigned axis) {
    Value row = statement.getAxes()[axis];
    DenseMap<Value, unsigned> dims = dimOf;
    bool all = true;
    auto visit = [&](Value tensor, ArrayRef<ValueExpr> subscripts) {
      if (!changing.contains(tensor))
        return;
      const auto *found =
          llvm::find_if(subscripts, [&](const ValueExpr &expr) { return expr.asValue() == row; });
      unsigned dim = found - subscripts.begin();
      all &= found != subscripts.end() && dims.try_emplace(tensor, dim).first->second == dim;
    };
    statement.walk([&](Operation *op) {
      if (auto read = dyn_cast<ReadOp>(op))
        visit(read.getTensor(), read.getSubscriptExprs());
      else if (auto write = dyn_cast<WriteOp>(op))
        visit(write.getTensor(), write.getSubscriptExprs());
    });
    if (all)
      dimOf = dims;
    return all;
  };
  SmallVector<unsigned> rows;
  std::optional<AxisRange> range;
  for (ParallelOp statement : statements) {
    auto axes = cast<AxesOp>(statement.getOperation());
    unsigned axis = 0;
    for (; axis < axes.getAxes().size(); ++axis) {
      AxisRange own = getAxisRange(axes, axis);
      bool isSame = own.lo.operands().empty() && own.hi.operands().empty() &&
                    (!range || (own.lo == range->lo && own.hi == range->hi));
      if (isSame && agrees(statement, axis)) {
        range = own;
        break;
      }
    }
    if (axis == axes.getAxes().size() || axes.getAxes().size() < 2)
      return std::nullopt;
    rows.push_back(axis);
  }
  return rows;
}

namespace {
struct GatherRecurrencesPass
    : Counted<tegula::impl::GatherRecurrencesPassBase<GatherRecurrencesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    FailureOr<TargetInfo> machine = parseTarget(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    for (ForOp loop : llvm::make_early_inc_range(getOperation().getBody().front().getOps<ForOp>()))
      if (gather(loop, *machine))
        count("loops put into statements");
  }

  /// Tries on a copy, which takes the loop's place if there is a plan for it.
  bool gather(ForOp loop, const TargetInfo &machine) {
    if (!loop.getInits().empty())
      return false;
    OpBuilder builder(loop);
    auto copy = cast<ForOp>(builder.clone(*loop));
    LaunchOp launch = inRows(copy);
    copy.erase();
    if (!launch) {
      remarkMismatch(loop, "recurrence",
                     {"the loop's equations have no first indices (rows) in common, or the loop "
                      "has more than equations",
                      "", loop});
      return false;
    }
    auto op = cast<ParallelOp>(launch.getBody().front().front());
    Matched<RecurrencePlan> plan = planRecurrence(op);
    Matched<RecurrenceShape> shape = plan ? chooseRecurrenceShape(*plan, machine.clusterBlocks)
                                          : Matched<RecurrenceShape>(plan.mismatch());
    if (!shape) {
      Mismatch why = shape.mismatch();
      why.where = loop; // what the reason names is gone with the attempt
      remarkMismatch(loop, "recurrence", why);
      launch.erase();
      return false;
    }
    loop.erase();
    return true;
  }

  /// The loop's statements in one over their rows; null where they have none in common.
  LaunchOp inRows(ForOp loop) {
    Block &body = loop.getBody().front();
    for (LaunchOp launch : llvm::make_early_inc_range(body.getOps<LaunchOp>())) {
      body.getOperations().splice(launch->getIterator(), launch.getBody().front().getOperations());
      launch.erase();
    }
    for (TempOp temp : llvm::make_early_inc_range(body.getOps<TempOp>()))
      if (!inlineOnce(temp))
        return LaunchOp();
    SmallVector<ParallelOp> statements;
    for (Operation &op : body.without_terminator()) {
      auto statement = dyn_cast<ParallelOp>(op);
      if (!statement)
        return LaunchOp();
      statements.push_back(statement);
    }
    if (statements.empty())
      return LaunchOp();
    // One row has no axis.
    bool isOneRow = llvm::all_of(
        statements, [](ParallelOp statement) { return statement.getAxes().size() == 1; });
    std::optional<SmallVector<unsigned>> rows;
    rows = isOneRow ? SmallVector<unsigned>() : findRows(statements);
    if (!rows)
      return LaunchOp();

    OpBuilder builder(loop);
    auto launch = LaunchOp::create(builder, loop.getLoc(), "recurrence");
    builder.setInsertionPointToStart(&launch.getBody().front());
    IRMapping none;
    auto around =
        isOneRow ? ParallelOp::create(builder, loop.getLoc(), {AxisSpec{"row", 0, 1}})
                 : copyAxes(builder, loop.getLoc(), {statements[0].getAxes()[(*rows)[0]]}, none);
    builder.setInsertionPointToStart(&around.getBody().front());
    auto inside = cast<ForOp>(builder.clone(*loop));
    SmallVector<ParallelOp> copies(inside.getBody().front().getOps<ParallelOp>());
    for (auto [statement, row] : llvm::zip(copies, *rows)) {
      replaceAllUsesWithExpr(builder, statement.getAxes()[row],
                             ValueExpr(Value(around.getAxes()[0])));
      eraseAxis(cast<AxesOp>(statement.getOperation()), row);
      eraseUnusedOps(statement.getBody().front());
    }
    for (ParallelOp statement : copies)
      exchangeStates(statement, inside, around);
    return launch;
  }

  static bool isReadAfter(WriteOp write) {
    for (Operation *op = write->getNextNode(); op; op = op->getNextNode())
      if (accessesOf(op).reads.contains(write.getTensor()))
        return true;
    return false;
  }

  /// A tensor that other points of the loop read is written in two steps: all have read it before
  /// it changes.
  void exchangeStates(ParallelOp statement, ForOp loop, ParallelOp around) {
    for (WriteOp write :
         llvm::make_early_inc_range(statement.getBody().front().getOps<WriteOp>())) {
      Value tensor = write.getTensor();
      bool isRead = false;
      loop.walk([&](ReadOp read) {
        isRead |= read.getTensor() == tensor && read->getParentOfType<ReduceOp>();
      });
      if (!isRead || statement.getAxes().size() != 1 || isReadAfter(write))
        continue;
      AxisRange range = getAxisRange(cast<AxesOp>(statement.getOperation()), 0);
      if (!range.lo.asConstant() || !range.hi.asConstant())
        continue;
      Location loc = write.getLoc();
      OpBuilder builder(&getContext());
      builder.setInsertionPointToStart(&around.getBody().front());
      auto type = TglTensorType::get(&getContext(),
                                     {IndexExprAttr::get(&getContext(), *range.hi.asConstant())},
                                     write.getTensorType().getElementType());
      auto next = TempOp::create(builder, loc, type, "next");
      builder.setInsertionPointAfter(statement);
      IRMapping map;
      Value axis = statement.getAxes()[0];
      ParallelOp copy = copyAxes(builder, loc, {axis}, map);
      builder.setInsertionPointToStart(&copy.getBody().front());
      Value value = ReadOp::create(builder, loc, next.getTensor(), {ValueExpr(map.lookup(axis))});
      SmallVector<ValueExpr> subscripts;
      for (const ValueExpr &expr : write.getSubscriptExprs())
        subscripts.push_back(expr.substitute(axis, ValueExpr(map.lookup(axis))));
      WriteOp::create(builder, loc, value, tensor, subscripts);
      builder.setInsertionPoint(write);
      WriteOp::create(builder, loc, write.getValue(), next.getTensor(), {ValueExpr(axis)});
      write.erase();
    }
  }
};
} // namespace
