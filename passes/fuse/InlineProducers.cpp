//===- InlineProducers.cpp - Inlines pointwise producers into their readers ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A producer is inlined if it is read once per point (a read then costs what the write and the read
// cost), or if it is cheap. Reads of one element in one block count once, and are one: two
// statements that share a producer, as the terms of a divergence share a log_softmax, let it go
// once the first of them has moved into the second. Inside a contraction only what costs nothing
// is: its operands are read once for every point of the axes that they do not vary along. A product
// of few rows is another matter: it computes a factor once for all of them.
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/InlineProducers.h"
#include "ir/tgl/TglFunctions.h"
#include "passes/fuse/Access.h"
#include "strategies/skinny_product/plan/SkinnyProduct.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

Value tegula::roundToStorage(OpBuilder &builder, Location loc, Value value, Type elementType) {
  auto rounded = value.getDefiningOp<ConvertOp>();
  if (value.getType() == elementType || (rounded && rounded.getTarget() == elementType))
    return value;
  if (isa<FloatType>(elementType))
    return ConvertOp::create(builder, loc, value, elementType);
  // Integers wrap: the low bits, extended by their sign or by zeros.
  unsigned unused = value.getType().getIntOrFloatBitWidth() - elementType.getIntOrFloatBitWidth();
  if (unused == 0)
    return value;
  Value shift = arith::ConstantIntOp::create(builder, loc, value.getType(), unused);
  Value high = arith::ShLIOp::create(builder, loc, value, shift);
  if (elementType.isUnsignedInteger())
    return arith::ShRUIOp::create(builder, loc, high, shift);
  return arith::ShRSIOp::create(builder, loc, high, shift);
}

//===----------------------------------------------------------------------===//
// Producers
//===----------------------------------------------------------------------===//

namespace {
struct Producer {
  ParallelOp statement = nullptr;
  WriteOp write = nullptr;
  TempOp temp = nullptr;
  unsigned operations = 0; // arithmetic, functions counting for many
  unsigned reads = 0;
};
} // namespace

/// A function that takes tens of instructions.
static unsigned costOf(Operation *op) {
  if (isa<ReadOp, WriteOp, arith::ConstantOp, IndexOp, arith::IndexCastOp>(op))
    return 0;
  if (isa<RandomOp>(op) || op->hasTrait<FloatFunction>())
    return 40;
  if (isa<arith::DivFOp, arith::DivSIOp, arith::RemSIOp, arith::RemFOp>(op))
    return 4;
  if (isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
      !isa<math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::RoundEvenOp,
           math::TruncOp, math::FmaOp, math::CopySignOp, math::IsNaNOp, math::IsInfOp>(op))
    return isa<math::SqrtOp, math::RsqrtOp>(op) ? 4 : 16;
  return 1;
}

/// The axis that a subscript is, but for what does not vary inside the statement; null where there
/// is none.
static Value axisAlone(const ValueExpr &subscript, Operation *statement) {
  for (Value operand : subscript.operands())
    if (axesOpOf(operand) && statement->isAncestor(axesOpOf(operand)) &&
        isDefinedOutside(subscript - ValueExpr(operand), statement))
      return operand;
  return Value();
}

/// The axes of the statement as functions of the subscripts of an element, over the write's own
/// subscripts: each axis stands alone in exactly one dim. Empty where that is not so.
static DenseMap<Value, unsigned> dimOfAxis(ParallelOp statement, WriteOp write) {
  DenseMap<Value, unsigned> dims;
  for (auto [dim, subscript] : llvm::enumerate(write.getSubscriptExprs())) {
    if (isDefinedOutside(subscript, statement))
      continue;
    Value axis = axisAlone(subscript, statement);
    if (!axis || dims.contains(axis))
      return DenseMap<Value, unsigned>();
    dims[axis] = dim;
  }
  return dims.size() == statement.getAxes().size() ? dims : DenseMap<Value, unsigned>();
}

namespace {
/// What a statement does that writes one tensor, pointwise.
struct Body {
  WriteOp write = nullptr;
  unsigned operations = 0, reads = 0; // as a Producer's
  DenseSet<Value> tensors;            // those that it reads
};

/// What the statements of a block do. It is kept while producers move into them: the last statement
/// of a long chain holds all those before it, and is not walked again for each.
class Statements {
public:
  /// Null for a statement that does anything else.
  Body *bodyOf(Operation *statement);
  ArrayRef<Value> writesOf(Operation *statement);
  void forget(Operation *statement) {
    bodies.erase(statement);
    writes.erase(statement);
  }

private:
  DenseMap<Operation *, std::unique_ptr<Body>> bodies;
  DenseMap<Operation *, SmallVector<Value, 1>> writes;
};
} // namespace

static std::unique_ptr<Body> findBody(Operation *op) {
  auto statement = dyn_cast<ParallelOp>(op);
  if (!statement)
    return nullptr;
  auto body = std::make_unique<Body>();
  for (Operation &nested : statement.getBody().front()) {
    if (auto write = dyn_cast<WriteOp>(nested)) {
      if (body->write || write.getCombine() || write.getGuard() || write.getChecked())
        return nullptr;
      body->write = write;
    } else if (auto read = dyn_cast<ReadOp>(nested)) {
      ++body->reads;
      body->tensors.insert(read.getTensor());
    } else if (nested.getNumRegions() || !isMemoryEffectFree(&nested)) {
      return nullptr;
    }
    body->operations += costOf(&nested);
  }
  return body->write ? std::move(body) : nullptr;
}

Body *Statements::bodyOf(Operation *statement) {
  auto [place, isNew] = bodies.try_emplace(statement);
  if (isNew)
    place->second = findBody(statement);
  return place->second.get();
}

ArrayRef<Value> Statements::writesOf(Operation *statement) {
  auto [place, isNew] = writes.try_emplace(statement);
  if (isNew)
    llvm::append_range(place->second, accessesOf(statement).writes);
  return place->second;
}

/// A statement that does nothing but define one temporary, pointwise.
static std::optional<Producer> asProducer(ParallelOp statement, Statements &statements) {
  Body *body = statements.bodyOf(statement);
  if (!body)
    return std::nullopt;
  Producer producer{statement, body->write, nullptr, body->operations, body->reads};
  producer.temp = producer.write.getTensor().getDefiningOp<TempOp>();
  if (!producer.temp ||
      (dimOfAxis(statement, producer.write).empty() && !statement.getAxes().empty()))
    return std::nullopt;
  for (Operation *user : producer.temp->getUsers())
    if (user != producer.write && !isa<ReadOp>(user))
      return std::nullopt;
  return producer;
}

//===----------------------------------------------------------------------===//
// Whether to inline
//===----------------------------------------------------------------------===//

/// The statement of `block` that an op is in.
static Operation *statementIn(Block &block, Operation *op) {
  while (op && op->getBlock() != &block)
    op = op->getParentOp();
  return op;
}

/// Whether a statement writes what the producer reads, after it and up to the reader.
static bool inputsChange(ParallelOp producer, Operation *reader, Statements &statements) {
  if (!producer->isBeforeInBlock(reader))
    return true;
  const DenseSet<Value> &inputs = statements.bodyOf(producer)->tensors;
  for (Operation *op = producer; op != reader;) {
    op = op->getNextNode();
    if (llvm::any_of(statements.writesOf(op),
                     [&](Value tensor) { return inputs.contains(tensor); }))
      return true;
  }
  return false;
}

/// The axes that a subscript tells apart: no two points of them have the same. One that stands
/// alone, or those of windows that do not overlap, `2*p + r` with r < 2.
static SmallVector<Value> axesApart(const ValueExpr &subscript, Operation *statement) {
  if (Value axis = axisAlone(subscript, statement))
    return {axis};
  SmallVector<std::pair<int64_t, Value>> steps;
  for (Value operand : subscript.operands()) {
    if (isDefinedOutside(ValueExpr(operand), statement))
      continue;
    std::optional<int64_t> step = axesOpOf(operand) ? stepAlong(subscript, operand) : std::nullopt;
    if (!step || *step <= 0)
      return {};
    steps.push_back({*step, operand});
  }
  llvm::stable_sort(steps, llvm::less_first());
  SmallVector<Value> apart;
  int64_t reached = 1; // numbers that the axes so far make are less than that
  for (auto [step, axis] : steps) {
    if (step < reached)
      return {};
    apart.push_back(axis);
    std::optional<int64_t> length = (highOf(axis) - lowOf(axis)).asConstant();
    if (apart.size() < steps.size() && (!length || llvm::MulOverflow(step, *length, reached)))
      return {};
  }
  return apart;
}

/// Whether some element is read more often than once: an axis around the read, from the outermost
/// of the block's statements, that no subscript tells.
static bool readsRepeat(ReadOp read, Operation *statement) {
  DenseSet<Value> alone;
  for (const ValueExpr &subscript : read.getSubscriptExprs())
    alone.insert_range(axesApart(subscript, statement));
  for (Operation *op = read; op != statement; op = op->getParentOp()) {
    Operation *around = op->getParentOp();
    if (isa<ForOp, TilesOp>(around))
      return true;
    if (auto axes = dyn_cast<AxesOp>(around))
      for (Value axis : axes.getAxes())
        if (!alone.contains(axis))
          return true;
  }
  return false;
}

/// Whether a read is an operand of a sum of products whose other factor varies along other axes.
static bool isContracted(ReadOp read) {
  for (auto reduce = read->getParentOfType<ReduceOp>(); reduce;
       reduce = reduce->getParentOfType<ReduceOp>())
    if (matchContraction(reduce))
      return true;
  return false;
}

/// Whether a subscript multiplies data. The product may wrap; where the producer divides by the
/// same (`x[i // 2]` behind `t[2*v[i], fill=0]`), its place is another than the one that is
/// compared with the dim.
static bool multipliesData(ReadOp read) {
  return llvm::any_of(read.getSubscriptExprs(), [](const ValueExpr &subscript) {
    return mayWrap(subscript) || llvm::any_of(subscript.operands(), [&](Value operand) {
             auto argument = dyn_cast<BlockArgument>(operand);
             std::optional<int64_t> step = stepAlong(subscript, operand);
             return !(argument && getRange(argument)) && step != 1 && step != -1;
           });
  });
}

static bool shouldInline(const Producer &producer, ArrayRef<ReadOp> reads, Block &block,
                         Statements &statements) {
  constexpr unsigned cheapOperations = 4, cheapReads = 3;
  bool free = producer.operations == 0 && producer.reads <= 1;
  bool cheap = producer.operations <= cheapOperations && producer.reads <= cheapReads;
  bool repeats = false;
  for (ReadOp read : reads) {
    if (read.getChecked() || (read.getFill() && multipliesData(read)))
      return false;
    Operation *statement = statementIn(block, read);
    if (!statement || inputsChange(producer.statement, statement, statements))
      return false;
    if (!readsRepeat(read, statement))
      continue;
    repeats = true;
    // In a window or a contraction every bound that must be checked again costs.
    bool conditional = read.getFill() || read.getGuard() || !read.getExactNumerators().empty();
    if (!free && (isContracted(read) || conditional))
      return false;
  }
  return cheap || (reads.size() == 1 && !repeats);
}

//===----------------------------------------------------------------------===//
// Inlining
//===----------------------------------------------------------------------===//

static Value both(OpBuilder &builder, Location loc, Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return arith::AndIOp::create(builder, loc, a, b);
}

/// Where a read with a fill finds an element: true inside the tensor and where divisions are exact.
/// Null where it always does.
static Value insideOf(OpBuilder &builder, ReadOp read, Prover &prover) {
  Location loc = read.getLoc();
  Value inside;
  auto holds = [&](arith::CmpIPredicate predicate, const ValueExpr &lhs, const ValueExpr &rhs) {
    Value left = materialize(builder, loc, lhs), right = materialize(builder, loc, rhs);
    inside =
        both(builder, loc, inside, arith::CmpIOp::create(builder, loc, predicate, left, right));
  };
  for (const auto &[numerator, denominator] : read.getExactExprs())
    holds(arith::CmpIPredicate::eq, ValueExpr::mod(numerator, denominator), ValueExpr(0));
  if (!read.getFill())
    return inside;
  AxisScope scope(prover, read);
  for (auto [subscript, dim] :
       llvm::zip_equal(read.getSubscriptExprs(), read.getTensorType().getDims())) {
    IndexExpr dims = scope.toDims(subscript);
    bool isWhole = mayWrap(subscript); // either half says something then
    if (isWhole || !scope.proves(Condition::nonNegative(dims)))
      holds(arith::CmpIPredicate::sge, subscript, ValueExpr(0));
    if (isWhole || !scope.proves(Condition::lessThan(dims, dim.getExpr())))
      holds(arith::CmpIPredicate::slt, subscript, ValueExpr(dim.getExpr()));
  }
  return inside;
}

namespace {
/// Counts what is put into a statement beside a producer's own operations.
struct CountCost : OpBuilder::Listener {
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    operations += costOf(op);
  }
  unsigned operations = 0;
};
} // namespace

/// Moves a producer's operations before a read of it, its axes replaced as `axes` says.
static void moveBefore(Producer &producer, ReadOp read, const IRMapping &axes) {
  SetVector<Operation *> changed; // what subscripts with an axis, or with an index made of it
  for (Value axis : producer.statement.getAxes())
    changed.insert_range(axis.getUsers());
  for (unsigned i = 0; i != changed.size(); ++i)
    if (isa<IndexOp>(changed[i]))
      changed.insert_range(changed[i]->getUsers());
  Block &body = producer.statement.getBody().front();
  producer.write->moveBefore(&body, body.end());
  read->getBlock()->getOperations().splice(read->getIterator(), body.getOperations(), body.begin(),
                                           producer.write->getIterator());
  for (Value axis : producer.statement.getAxes())
    if (Value now = axes.lookupOrNull(axis))
      axis.replaceAllUsesWith(now);
  for (Operation *op : changed)
    if (auto indexed = dyn_cast<IndexedOp>(op); indexed && op != producer.write)
      foldIndices(indexed);
}

/// Puts the producer's value in the place of a read of `target`, null where that is no pointwise
/// statement; `isLast` moves its operations, so that a long chain of statements is not copied once
/// for each of them.
static void inlineAt(Producer &producer, const Body &body, ReadOp read, Body *target, bool isLast,
                     Prover &prover) {
  CountCost added;
  OpBuilder builder(read->getContext(), &added);
  builder.setInsertionPoint(read);
  Location loc = read.getLoc();
  WriteOp write = producer.write;
  DenseMap<Value, unsigned> dims = dimOfAxis(producer.statement, write);
  SmallVector<ValueExpr> written = write.getSubscriptExprs(), wanted = read.getSubscriptExprs();
  IRMapping map;
  for (auto [axis, dim] : dims)
    map.map(axis, materialize(builder, loc, wanted[dim] - (written[dim] - ValueExpr(axis))));

  Value inside = insideOf(builder, read, prover);
  Value condition = both(builder, loc, read.getGuard(), inside);
  Block::iterator before = read->getIterator();
  bool isFirst = before == read->getBlock()->begin();
  if (!isFirst)
    --before;
  if (isLast)
    moveBefore(producer, read, map);
  else
    for (Operation &op : producer.statement.getBody().front())
      if (&op != write)
        if (auto indexed = dyn_cast<IndexedOp>(OpBuilder(read).clone(op, map)))
          foldIndices(indexed);
  // Where the producer was not computed its inputs may not be there.
  if (condition)
    for (Operation &op : llvm::make_early_inc_range(llvm::make_range(
             isFirst ? read->getBlock()->begin() : std::next(before), read->getIterator())))
      if (auto input = dyn_cast<ReadOp>(op)) {
        OpBuilder::InsertionGuard back(builder);
        builder.setInsertionPoint(input);
        input.getGuardMutable().assign(both(builder, loc, input.getGuard(), condition));
      }
  Value value = roundToStorage(builder, loc, map.lookupOrDefault(write.getValue()),
                               producer.temp.getType().getElementType());
  if (inside) {
    Value fill = read.getFill();
    if (!fill)
      fill = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(value.getType()));
    value = arith::SelectOp::create(builder, loc, inside, value, fill);
  }
  if (read.getGuard()) {
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(value.getType()));
    value = arith::SelectOp::create(builder, loc, read.getGuard(), value, zero);
  }
  read.replaceAllUsesWith(value);
  read.erase();
  if (!target)
    return;
  target->operations += body.operations + added.operations;
  target->reads += body.reads - 1;
  target->tensors.insert_range(body.tensors);
}

/// Whether every read is in a factor of a product of few rows, which with the producer's value in
/// the read's place is one that strategy `skinny-product` computes. Only a copy can tell.
static bool servesSkinnyProducts(Producer &producer, ArrayRef<ReadOp> reads, Block &block,
                                 Statements &statements, Prover &prover) {
  return llvm::all_of(reads, [&](ReadOp read) {
    auto statement = dyn_cast_or_null<ParallelOp>(statementIn(block, read));
    if (!statement || read.getChecked() || read.getFill() || read.getGuard() ||
        !read.getExactNumerators().empty() || !isContracted(read) ||
        inputsChange(producer.statement, statement, statements))
      return false;
    IRMapping map;
    auto copy = cast<ParallelOp>(OpBuilder(statement).clone(*statement, map));
    auto copied = map.lookup(read.getResult()).getDefiningOp<ReadOp>();
    inlineAt(producer, *statements.bodyOf(producer.statement), copied, nullptr, /*isLast=*/false,
             prover);
    bool isTaken(planSkinnyProduct(copy));
    copy.erase();
    return isTaken;
  });
}

/// Reads of the same element in one block become one: nobody but the producer writes the temporary.
static SmallVector<ReadOp> mergedReads(Producer &producer, Statements &statements) {
  SmallVector<ReadOp> reads;
  for (Operation *user : llvm::make_early_inc_range(producer.temp->getUsers())) {
    auto read = dyn_cast<ReadOp>(user);
    if (!read)
      continue;
    auto same = llvm::find_if(reads, [&](ReadOp other) {
      return other->getBlock() == read->getBlock() &&
             other->getAttrDictionary() == read->getAttrDictionary() &&
             other->getOperands() == read->getOperands();
    });
    if (same == reads.end()) {
      reads.push_back(read);
      continue;
    }
    bool isEarlier = read->isBeforeInBlock(*same);
    ReadOp first = isEarlier ? read : *same, second = isEarlier ? *same : read;
    if (Body *body = statements.bodyOf(read->getParentOp()))
      --body->reads;
    second.replaceAllUsesWith(first.getResult());
    second.erase();
    *same = first;
  }
  return reads;
}

/// Once for each statement of the block.
static unsigned inlineOnce(Block &block, bool skinnyProducts, Prover &prover,
                           Statements &statements) {
  unsigned inlined = 0;
  // The read behind a producer may be gone after it.
  for (ParallelOp statement : llvm::to_vector(block.getOps<ParallelOp>())) {
    std::optional<Producer> producer = asProducer(statement, statements);
    if (!producer)
      continue;
    SmallVector<ReadOp> reads = mergedReads(*producer, statements);
    if (reads.empty())
      continue;
    if (!shouldInline(*producer, reads, block, statements) &&
        !(skinnyProducts && servesSkinnyProducts(*producer, reads, block, statements, prover)))
      continue;
    const Body &body = *statements.bodyOf(statement);
    for (ReadOp read : reads) {
      Body *target = statements.bodyOf(read->getParentOp());
      inlineAt(*producer, body, read, target, /*isLast=*/read == reads.back(), prover);
      if (target)
        target->tensors.erase(producer->temp);
    }
    inlined += reads.size();
    statements.forget(producer->statement);
    producer->statement.erase();
    producer->temp.erase();
  }
  return inlined;
}

unsigned tegula::inlineProducers(Block &block, bool skinnyProducts, Prover &prover) {
  unsigned inlined = 0;
  Statements statements;
  // Two statements that read a producer are one where the first of them has moved into the second.
  while (unsigned now = inlineOnce(block, skinnyProducts, prover, statements))
    inlined += now;
  return inlined;
}
