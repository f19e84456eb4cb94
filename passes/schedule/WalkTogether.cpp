//===- WalkTogether.cpp - Loops of a point's rows as one loop over states -===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/schedule/WalkTogether.h"

#include "ir/tgl/TglShapes.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// Rows of so few elements stay on chip as they are.
static constexpr int64_t elementsOnChip = 1024;

namespace {
/// The nest, the loop in it, the temporary that it fills, and the nest that takes its steps.
struct RowsOfSteps {
  ParallelOp rows;
  ForOp loop;
  TempOp kept;
  WriteOp write;
  unsigned stepDim = 0; ///< of `kept`
  ParallelOp reader;
  unsigned stepAxis = 0; ///< of `reader`
};
} // namespace

/// The loop, if the nest is that and values that change nothing.
static ForOp loopOf(ParallelOp rows) {
  ForOp found;
  for (Operation &op : rows.getBody().front()) {
    if (auto loop = dyn_cast<ForOp>(op);
        loop && !found && !loop.getInits().empty() && loop->use_empty())
      found = loop;
    else if (op.getNumRegions() || !isMemoryEffectFree(&op))
      return {};
  }
  return found;
}

static bool isPlainWrite(WriteOp write) {
  return !write.getGuard() && !write.getCombine() && !write.getChecked();
}

/// The one write of the loop, to a temporary of the point, each row its own elements.
static bool findWrite(RowsOfSteps &found) {
  for (Operation &op : found.loop.getBody().front()) {
    if (op.getNumRegions())
      return false;
    auto write = dyn_cast<WriteOp>(op);
    if (!write)
      continue;
    if (found.write || !isPlainWrite(write))
      return false;
    found.write = write;
  }
  found.kept = found.write ? found.write.getTensor().getDefiningOp<TempOp>() : TempOp();
  if (!found.kept || found.kept->getBlock() != found.rows->getBlock())
    return false;
  llvm::SmallDenseSet<Value> seen;
  for (auto [dim, subscript] : llvm::enumerate(found.write.getSubscriptExprs())) {
    ValueExpr steps = subscript - ValueExpr(Value(found.loop.getLoopVar()));
    Value axis = subscript.asValue();
    if (steps.operands().empty() && steps.asConstant() == 0)
      found.stepDim = dim;
    else if (!axis || axesOpOf(axis) != found.rows || lowOf(axis).asConstant() != 0)
      return false;
    if (!axis || !seen.insert(axis).second)
      return false;
  }
  return seen.size() == found.rows.getAxes().size() + 1 && seen.contains(found.loop.getLoopVar());
}

/// The nest that reads the temporary, at its own step of it alone.
static bool findReader(RowsOfSteps &found) {
  for (Operation *user : found.kept->getUsers()) {
    if (user == found.write)
      continue;
    auto read = dyn_cast<ReadOp>(user);
    Operation *around = user;
    while (around->getBlock() != found.kept->getBlock())
      around = around->getParentOp();
    auto reader = dyn_cast<ParallelOp>(around);
    if (!read || !reader || (found.reader && reader != found.reader) || read.getFill() ||
        read.getChecked() || !read.getExactNumerators().empty())
      return false;
    found.reader = reader;
    Value axis = read.getSubscriptExprs()[found.stepDim].asValue();
    if (!axis || axesOpOf(axis) != reader)
      return false;
    found.stepAxis = cast<BlockArgument>(axis).getArgNumber();
    if (!(lowOf(axis) == found.loop.getLowExpr() && highOf(axis) == found.loop.getHighExpr()))
      return false;
  }
  return found.reader && found.rows->isBeforeInBlock(found.reader) &&
         llvm::all_of(found.kept->getUsers(), [&](Operation *user) {
           auto read = dyn_cast<ReadOp>(user);
           return !read || read.getSubscriptExprs()[found.stepDim].asValue() ==
                               found.reader.getAxes()[found.stepAxis];
         });
}

/// Whether the loop can wait for the reader's place: nothing from here to there, nor the reader,
/// changes what it reads, and the bounds of the reader's other axes do not use the step.
static bool mayMove(RowsOfSteps &found) {
  if (writesInputsOf(found.rows, found.rows->getNextNode(), found.reader))
    return false;
  AxesOp reader = cast<AxesOp>(found.reader.getOperation());
  Value step = found.reader.getAxes()[found.stepAxis];
  for (const AxisRange &range : getAxisRanges(reader))
    if (range.lo.uses(step) || range.hi.uses(step))
      return false;
  for (Value axis : found.rows.getAxes())
    if (!lowOf(axis).operands().empty() || !highOf(axis).operands().empty())
      return false;
  return true;
}

static bool isOnChip(TempOp temp) {
  std::optional<int64_t> elements = knownElements(temp);
  return elements && *elements <= elementsOnChip;
}

static Value makeState(OpBuilder &builder, const RowsOfSteps &found, Type type, StringRef name) {
  RowsOfSteps copy(found);
  SmallVector<IndexExprAttr> dims;
  for (Value axis : copy.rows.getAxes())
    dims.push_back(IndexExprAttr::get(builder.getContext(), highOf(axis).expr()));
  return TempOp::create(builder, copy.loop.getLoc(),
                        TglTensorType::get(builder.getContext(), dims, type), name);
}

static SmallVector<ValueExpr> pointOf(ParallelOp rows) {
  return llvm::map_to_vector(rows.getAxes(), [](Value axis) { return ValueExpr(axis); });
}

static void rewrite(RowsOfSteps &found) {
  ForOp loop = found.loop;
  Location loc = loop.getLoc();
  OpBuilder builder(found.reader);
  IRMapping none;
  ParallelOp first = copyAxes(builder, loc, llvm::to_vector_of<Value>(found.rows.getAxes()), none);
  // States begin as the loop's values do.
  SmallVector<Value> states;
  OpBuilder before(first);
  for (auto [number, carried] : llvm::enumerate(loop.getIterArgs()))
    states.push_back(makeState(before, found, carried.getType(), "state"));
  OpBuilder inside = OpBuilder::atBlockEnd(&first.getBody().front());
  for (Operation &op : found.rows.getBody().front())
    if (&op != loop)
      inside.clone(op, none);
  for (auto [state, init] : llvm::zip_equal(states, loop.getInits()))
    WriteOp::create(inside, loc, none.lookupOrDefault(init), state, pointOf(first));
  eraseUnusedOps(first.getBody().front());
  // A step of all rows.
  auto walk = ForOp::create(builder, loc,
                            ArrayRef<StringRef>{nameOf(found.reader.getAxes()[found.stepAxis])},
                            loop.getLowExpr(), loop.getHighExpr(), ValueRange(), loop.getReverse());
  Block &body = walk.getBody().front();
  body.clear();
  OpBuilder step = OpBuilder::atBlockEnd(&body);
  IRMapping map;
  ParallelOp rows = copyAxes(step, loc, llvm::to_vector_of<Value>(found.rows.getAxes()), map);
  OpBuilder row = OpBuilder::atBlockEnd(&rows.getBody().front());
  map.map(Value(loop.getLoopVar()), Value(walk.getLoopVar()));
  for (Operation &op : found.rows.getBody().front())
    if (&op != loop)
      row.clone(op, map);
  for (auto [state, carried] : llvm::zip_equal(states, loop.getIterArgs()))
    map.map(Value(carried), Value(ReadOp::create(row, loc, state, pointOf(rows))));
  // What is kept for the reader: a state, or a value of its own.
  Type element = found.kept.getType().getElementType();
  Value kept;
  for (auto [state, value] : llvm::zip_equal(states, loop.getYield().getValues()))
    if (value == found.write.getValue() && value.getType() == element)
      kept = state;
  if (!kept)
    kept = makeState(before, found, element, found.kept.getName());
  bool isState = llvm::is_contained(states, kept);
  for (Operation &op : loop.getBody().front().without_terminator()) {
    if (&op != found.write)
      row.clone(op, map);
    else if (!isState)
      WriteOp::create(row, loc, map.lookupOrDefault(found.write.getValue()), kept, pointOf(rows));
  }
  for (auto [state, value] : llvm::zip_equal(states, loop.getYield().getValues()))
    WriteOp::create(row, loc, map.lookupOrDefault(value), state, pointOf(rows));
  eraseUnusedOps(rows.getBody().front());
  // The reader's step.
  SmallVector<Value> own, all(found.reader.getAxes());
  for (auto [number, axis] : llvm::enumerate(all))
    if (number != found.stepAxis)
      own.push_back(axis);
  IRMapping reading;
  reading.map(all[found.stepAxis], Value(walk.getLoopVar()));
  OpBuilder at = step;
  if (!own.empty()) {
    ParallelOp rest = copyAxes(step, loc, own, reading);
    at = OpBuilder::atBlockEnd(&rest.getBody().front());
  }
  for (Operation &op : found.reader.getBody().front())
    at.clone(op, reading);
  SmallVector<ReadOp> reads;
  walk.walk([&](ReadOp read) {
    if (read.getTensor() == found.kept)
      reads.push_back(read);
  });
  for (ReadOp read : reads) {
    OpBuilder place(read);
    SmallVector<ValueExpr> subscripts;
    // Dims of `kept` are rows in any order; states have them as the rows are.
    for (Value axis : found.rows.getAxes())
      for (auto [dim, subscript] : llvm::enumerate(found.write.getSubscriptExprs()))
        if (subscript.asValue() == axis)
          subscripts.push_back(read.getSubscriptExprs()[dim]);
    Value same = ReadOp::create(place, read.getLoc(), kept, subscripts, Value(), read.getGuard());
    read.replaceAllUsesWith(same);
    read.erase();
  }
  step.setInsertionPointToEnd(&body);
  YieldOp::create(step, loc, ValueRange());
  found.reader->erase();
  found.rows->erase();
  found.kept->erase();
}

/// The first nest of the point for which this works.
static std::optional<RowsOfSteps> findRows(ParallelOp points) {
  for (ParallelOp rows : points.getBody().front().getOps<ParallelOp>()) {
    RowsOfSteps found{rows, loopOf(rows), {}, {}, 0, {}, 0};
    if (found.loop && findWrite(found) && !isOnChip(found.kept) && findReader(found) &&
        mayMove(found))
      return found;
  }
  return std::nullopt;
}

unsigned tegula::walkTogether(ParallelOp points) {
  unsigned done = 0;
  while (std::optional<RowsOfSteps> found = findRows(points)) {
    rewrite(*found);
    ++done;
  }
  return done;
}
