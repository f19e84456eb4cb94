//===- LinearRecurrence.cpp - Matches loops with a state that is linear in itself ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/LinearRecurrence.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

SmallVector<unsigned> LinearRecurrence::dimsOf(ArrayRef<Value> factors,
                                               ArrayRef<Value> axesByDim) const {
  SmallVector<unsigned> found;
  for (auto [dim, axis] : llvm::enumerate(axesByDim))
    if (llvm::any_of(factors, [axis = cast<BlockArgument>(axis)](Value factor) {
          return axesOf(factor).contains(axis);
        }))
      found.push_back(dim);
  return found;
}

SmallVector<unsigned> LinearRecurrence::dimsOfKind(Dim kind) const {
  SmallVector<unsigned> found;
  for (auto [dim, own] : llvm::enumerate(dims))
    if (own == kind)
      found.push_back(dim);
  return found;
}

static bool isPlain(ReadOp read) {
  return !read.getGuard() && !read.getFill() && !read.getChecked() &&
         read.getExactNumerators().empty();
}

/// The factors of a product; negations turn the sign.
static void collectFactors(Value value, SmallVectorImpl<Value> &factors, bool &isNegative) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::MulFOp>(op)) {
    collectFactors(op->getOperand(0), factors, isNegative);
    collectFactors(op->getOperand(1), factors, isNegative);
  } else if (isa_and_nonnull<arith::NegFOp>(op)) {
    isNegative = !isNegative;
    collectFactors(op->getOperand(0), factors, isNegative);
  } else {
    factors.push_back(value);
  }
}

namespace {
class Matcher : MatcherBase {
public:
  explicit Matcher(ForOp loop) { found.loop = loop; }

  Matched<LinearRecurrence> run() {
    if (findState() && findUpdate() && findReaders() && findReadouts() && sortDims())
      return std::move(found);
    return std::move(why);
  }

private:
  LinearRecurrence found;
  SmallVector<ParallelOp> statements;
  ReadOp before; // of the update: the state that it changes

  /// The loop holds statements alone; one tensor keeps elements from step to step.
  bool findState() {
    ForOp loop = found.loop;
    if (!loop.getInits().empty() || !loop.getLowExpr().operands().empty() ||
        !loop.getHighExpr().operands().empty())
      return fail(loop, "the loop carries values, or its bounds are no sizes");
    for (Operation &op : loop.getBody().front().without_terminator()) {
      if (auto statement = dyn_cast<ParallelOp>(op))
        statements.push_back(statement);
      else if (!isa<TempOp>(op) && (op.getNumRegions() || !isMemoryEffectFree(&op)))
        return fail(&op, "the loop holds more than equations");
    }
    Accesses all = accessesOf(loop);
    for (Value tensor : all.writes) {
      if (Operation *temp = tensor.getDefiningOp(); temp && loop->isProperAncestor(temp))
        continue;
      if (!all.reads.contains(tensor)) {
        if (!isWrittenByStep(tensor))
          return fail(loop, "steps write the same elements of " + describeTensor(tensor));
        continue;
      }
      if (found.state)
        return fail(loop, "the loop has more than one state");
      found.state = tensor;
    }
    if (!found.state)
      return failAsOther(loop, "the loop has no state");
    if (!cast<TglTensorType>(found.state.getType()).getElementType().isF32())
      return fail(loop, "the state is not of f32");
    return true;
  }

  /// Whether every write has the loop variable, or that and the same number, as a subscript in one
  /// dim.
  bool isWrittenByStep(Value tensor) {
    std::optional<DenseSet<std::pair<unsigned, int64_t>>> common;
    found.loop.walk([&](WriteOp write) {
      if (write.getTensor() != tensor)
        return;
      DenseSet<std::pair<unsigned, int64_t>> dims;
      for (auto [dim, subscript] : llvm::enumerate(write.getSubscriptExprs())) {
        ValueExpr rest = subscript - ValueExpr(Value(found.loop.getLoopVar()));
        std::optional<int64_t> number = rest.asConstant();
        if (!rest.operands().empty() || !number || write.getCombine() || write.getChecked())
          continue;
        std::pair<unsigned, int64_t> own(dim, *number);
        if (!common || common->contains(own))
          dims.insert(own);
      }
      common = std::move(dims);
    });
    return common && !common->empty();
  }

  bool findUpdate() {
    WriteOp write;
    for (ParallelOp statement : statements)
      if (accessesOf(statement).writes.contains(found.state)) {
        if (found.update)
          return fail(statement, "a step changes the state more than once");
        found.update = statement;
      }
    for (Operation &op : found.update.getBody().front())
      if (auto one = dyn_cast<WriteOp>(op)) {
        if (write)
          return fail(write, "the equation of the state writes more than that");
        write = one;
      } else if (op.getNumRegions() && !isa<ReduceOp>(op)) {
        return fail(&op, "the equation of the state holds more than one value");
      }
    if (!write || write.getTensor() != found.state || write.getGuard() || write.getCombine() ||
        write.getChecked())
      return fail(found.update, "the state is not written by `=`, for all of its elements");
    if (!findAxes(write.getSubscriptExprs(), cast<AxesOp>(found.update.getOperation()), {},
                  found.axes))
      return fail(found.update, "a step changes a part of the state alone");
    SmallVector<Value> added;
    if (!decompose(write.getValue(), found.decay, added, found.isNegative))
      return fail(found.update, "the state is not a multiple of what it was, and a product");
    found.key = std::move(added); // divided later
    return true;
  }

  /// The axis that each subscript is; each of the statement, or the sum in it, once and whole.
  bool findAxes(ArrayRef<ValueExpr> subscripts, AxesOp statement, AxesOp sum,
                SmallVectorImpl<Value> &axes) {
    auto type = cast<TglTensorType>(found.state.getType());
    for (auto [subscript, dim] : llvm::zip_equal(subscripts, type.getDims())) {
      Value axis = subscript.asValue();
      AxesOp owner = axis ? axesOpOf(axis) : AxesOp();
      if (!owner || (owner != statement && owner != sum) || llvm::is_contained(axes, axis) ||
          lowOf(axis).asConstant() != 0 || !(highOf(axis) == ValueExpr(dim.getExpr())))
        return false;
      axes.push_back(axis);
    }
    return sum || statement.getAxes().size() == axes.size();
  }

  bool dependsOnState(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !found.loop->isProperAncestor(op))
      return false;
    if (accessesOf(op).reads.contains(found.state))
      return true;
    return llvm::any_of(valuesUsedBy(op), [&](Value used) {
      return !isa<TglTensorType>(used.getType()) && dependsOnState(used);
    });
  }

  /// `decay * state + added`, both products of factors.
  bool decompose(Value value, SmallVectorImpl<Value> &decay, SmallVectorImpl<Value> &added,
                 bool &isNegative) {
    if (!dependsOnState(value))
      return false;
    if (auto read = value.getDefiningOp<ReadOp>()) {
      bool isWhole = read.getTensor() == found.state && isPlain(read) && !before &&
                     llvm::all_of_zip(
                         read.getSubscriptExprs(), found.axes,
                         [](const ValueExpr &expr, Value axis) { return expr.asValue() == axis; });
      before = read;
      return isWhole;
    }
    Operation *op = value.getDefiningOp();
    if (op->getNumOperands() != 2)
      return false;
    bool isRight = dependsOnState(op->getOperand(1));
    Value same = op->getOperand(isRight ? 1 : 0), other = op->getOperand(isRight ? 0 : 1);
    if (dependsOnState(other))
      return false;
    if (isa<arith::MulFOp>(op)) {
      SmallVector<Value> factors;
      bool turns = false;
      collectFactors(other, factors, turns);
      if (turns || !decompose(same, decay, added, isNegative))
        return false;
      llvm::append_range(decay, factors);
      if (!added.empty())
        llvm::append_range(added, factors);
      return true;
    }
    if (!isa<arith::AddFOp>(op) && !(isa<arith::SubFOp>(op) && !isRight))
      return false;
    if (!decompose(same, decay, added, isNegative) || !added.empty())
      return false;
    isNegative = isa<arith::SubFOp>(op);
    collectFactors(other, added, isNegative);
    return true;
  }

  /// What depends on the state: statements that read it, or temporaries of those that do.
  bool findReaders() {
    llvm::SetVector<Value> tainted;
    tainted.insert(found.state);
    for (ParallelOp statement : statements) {
      Accesses own = accessesOf(statement);
      if (statement == found.update)
        continue;
      if (llvm::none_of(own.reads, [&](Value tensor) { return tainted.contains(tensor); }))
        continue;
      found.readers.insert(statement);
      tainted.insert_range(own.writes);
    }
    for (Value read : accessesOf(found.update).reads)
      if (read != found.state && tainted.contains(read) && !findCorrection(read, tainted))
        return fail(found.update, "what is added to the state depends on it other than by a sum of "
                                  "its products, to which a value is added");
    // A temporary that is written again after it was read would be two.
    DenseSet<Value> written;
    for (ParallelOp statement : statements)
      for (Value tensor : accessesOf(statement).writes)
        if (!written.insert(tensor).second)
          return fail(statement, "two equations of a step write " + describeTensor(tensor));
    return true;
  }

  /// The statement before the update that writes the temporary, one factor of what is added, and
  /// that nothing else reads.
  bool findCorrection(Value tensor, const llvm::SetVector<Value> &tainted) {
    auto temp = tensor.getDefiningOp<TempOp>();
    WriteOp write;
    ReadOp read;
    if (!temp || temp->getBlock() != found.update->getBlock() || found.correction ||
        !temp.getType().getElementType().isF32())
      return false;
    for (Operation *user : temp->getUsers()) {
      if (auto one = dyn_cast<WriteOp>(user); one && !write)
        write = one;
      else if (auto one = dyn_cast<ReadOp>(user); one && !read)
        read = one;
      else
        return false;
    }
    auto statement = write ? dyn_cast<ParallelOp>(write->getParentOp()) : ParallelOp();
    if (!statement || !read || !isPlain(read) || write.getGuard() || write.getCombine() ||
        write.getChecked() || !statement->isBeforeInBlock(found.update) ||
        !llvm::is_contained(found.key, read.getResult()))
      return false;
    // Each point of it is one of the update's, without the dims that it sums over.
    for (auto [own, theirs] : llvm::zip_equal(write.getSubscriptExprs(), read.getSubscriptExprs()))
      if (!own.asValue() || axesOpOf(own.asValue()) != statement || !theirs.asValue() ||
          axesOpOf(theirs.asValue()) != found.update)
        return false;
    if (write.getSubscriptExprs().size() != statement.getAxes().size())
      return false;
    for (Value other : accessesOf(statement).reads)
      if (other != found.state && tainted.contains(other))
        return false;
    ReduceOp sum;
    for (ReduceOp one : statement.getBody().front().getOps<ReduceOp>())
      if (accessesOf(one).reads.contains(found.state)) {
        if (sum)
          return false;
        sum = one;
      }
    ValueCorrection made{statement, 0, {}, {}, false, false};
    if (!sum || !takeApart(write.getValue(), sum, made) || made.base.empty())
      return false;
    found.correction = std::move(made);
    return true;
  }

  static bool uses(Value value, Value leaf) {
    Operation *op = value.getDefiningOp();
    return value == leaf ||
           (op && op->getNumRegions() == 0 && op->getBlock() == leaf.getParentBlock() &&
            llvm::any_of(op->getOperands(), [&](Value used) { return uses(used, leaf); }));
  }

  /// `scale * leaf + base`, products of factors.
  static bool takeApart(Value value, Value leaf, ValueCorrection &made) {
    if (value == leaf)
      return true;
    Operation *op = value.getDefiningOp();
    if (isa<arith::NegFOp>(op)) {
      if (!uses(op->getOperand(0), leaf) || !takeApart(op->getOperand(0), leaf, made))
        return false;
      made.scaleIsNegative = !made.scaleIsNegative;
      made.baseIsNegative = !made.baseIsNegative;
      return true;
    }
    if (op->getNumOperands() != 2)
      return false;
    bool isRight = uses(op->getOperand(1), leaf);
    Value same = op->getOperand(isRight ? 1 : 0), other = op->getOperand(isRight ? 0 : 1);
    if (!uses(same, leaf) || uses(other, leaf) || !takeApart(same, leaf, made))
      return false;
    SmallVector<Value> factors;
    bool turns = false;
    collectFactors(other, factors, turns);
    if (isa<arith::MulFOp>(op)) {
      llvm::append_range(made.scale, factors);
      if (!made.base.empty())
        llvm::append_range(made.base, factors);
      made.scaleIsNegative ^= turns;
      made.baseIsNegative ^= turns;
      return true;
    }
    if (!isa<arith::AddFOp, arith::SubFOp>(op) || !made.base.empty())
      return false;
    made.base = std::move(factors);
    bool isSub = isa<arith::SubFOp>(op);
    made.baseIsNegative = turns != (isSub && !isRight);
    made.scaleIsNegative ^= isSub && isRight;
    return true;
  }

  bool findReadouts() {
    for (ParallelOp statement : statements) {
      if (!found.readers.contains(statement))
        continue;
      bool isFine = true;
      statement.walk([&](ReadOp read) {
        if (read.getTensor() == found.state)
          isFine &= addReadout(statement, read);
      });
      if (!isFine)
        return fail(statement, "the state is read other than in a sum of its products");
    }
    if (found.readouts.empty())
      return failAsOther(found.loop, "no sum reads the state");
    return true;
  }

  bool addReadout(ParallelOp statement, ReadOp read) {
    auto reduce = dyn_cast<ReduceOp>(read->getParentOp());
    if (!reduce || reduce->getParentOp() != statement || reduce.getKind() != ReduceKind::Sum ||
        reduce.getFiltered() || !isPlain(read))
      return false;
    LinearReadout readout{reduce, statement, {},
                          {},     false,     found.update->isBeforeInBlock(statement)};
    if (!findAxes(read.getSubscriptExprs(), cast<AxesOp>(statement.getOperation()),
                  cast<AxesOp>(reduce.getOperation()), readout.axes))
      return false;
    collectFactors(reduce.getReduced(), readout.query, readout.isNegative);
    auto *own = llvm::find(readout.query, read.getResult());
    if (own == readout.query.end())
      return false;
    readout.query.erase(own);
    if (llvm::any_of(readout.query, [&](Value factor) { return dependsOnReaders(factor); }))
      return false;
    for (Value axis : reduce.getAxes())
      if (!llvm::is_contained(readout.axes, axis))
        return false;
    if (found.correction && found.correction->statement == statement)
      found.correction->readout = found.readouts.size();
    found.readouts.push_back(std::move(readout));
    return true;
  }

  /// Whether a factor of a readout depends on what the loop computes from the state.
  bool dependsOnReaders(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !found.loop->isProperAncestor(op))
      return false;
    for (Value tensor : accessesOf(op).reads)
      for (Operation *reader : found.readers)
        if (tensor == found.state || accessesOf(reader).writes.contains(tensor))
          return true;
    return llvm::any_of(valuesUsedBy(op), [&](Value used) {
      return !isa<TglTensorType>(used.getType()) && dependsOnReaders(used);
    });
  }

  bool sortDims() {
    using Dim = LinearRecurrence::Dim;
    found.dims.assign(found.axes.size(), Dim::Column);
    auto isSummed = [](const LinearReadout &readout, unsigned dim) {
      return axesOpOf(readout.axes[dim]) == LinearReadout(readout).reduce;
    };
    for (unsigned dim = 0; dim < found.dims.size(); ++dim)
      if (isSummed(found.readouts.front(), dim))
        found.dims[dim] = Dim::Summed;
    for (const LinearReadout &readout : found.readouts)
      for (unsigned dim = 0; dim < found.dims.size(); ++dim)
        if (isSummed(readout, dim) != (found.dims[dim] == Dim::Summed))
          return fail(readout.reduce, "sums over different dims read the state");
    for (unsigned dim : found.dimsOf(found.decay, found.axes))
      if (found.dims[dim] != Dim::Summed)
        found.dims[dim] = Dim::Batch;
    return divideFactors();
  }

  /// The corrected value is the only one, over all dims but the summed ones; its scale varies along
  /// batch dims alone.
  bool sortCorrection() {
    using Dim = LinearRecurrence::Dim;
    const LinearReadout &readout = found.readouts[found.correction->readout];
    auto isCorrected = [&](Value factor) {
      auto read = factor.getDefiningOp<ReadOp>();
      return read && accessesOf(found.correction->statement).writes.contains(read.getTensor());
    };
    auto read = found.value.size() == 1 ? found.value[0].getDefiningOp<ReadOp>() : ReadOp();
    if (!read || !isCorrected(read))
      return fail(found.update,
                  "what is added to the state is no product of a key and a value that "
                  "the state corrects");
    WriteOp write;
    for (WriteOp one : found.correction->statement.getBody().front().getOps<WriteOp>())
      write = one;
    for (auto [from, to] : llvm::zip_equal(write.getSubscriptExprs(), read.getSubscriptExprs()))
      for (unsigned dim = 0; dim < found.dims.size(); ++dim)
        if ((readout.axes[dim] == from.asValue()) != (found.axes[dim] == to.asValue()))
          return fail(found.update, "the value and what corrects it are of different elements");
    for (unsigned dim : found.dimsOf(found.correction->scale, readout.axes))
      if (found.dims[dim] != Dim::Batch)
        return fail(found.update, "the correction's scale varies along columns of the state");
    return true;
  }

  /// Factors that vary along summed dims are keys, others are values.
  bool divideFactors() {
    using Dim = LinearRecurrence::Dim;
    SmallVector<Value> factors = std::move(found.key);
    found.key.clear();
    auto kinds = [&](Value factor) {
      DenseSet<unsigned> dims;
      dims.insert_range(found.dimsOf({factor}, found.axes));
      return dims;
    };
    for (Value factor : factors) {
      bool isKey =
          llvm::any_of(kinds(factor), [&](unsigned dim) { return found.dims[dim] == Dim::Summed; });
      (isKey ? found.key : found.value).push_back(factor);
    }
    auto makeBatch = [&](ArrayRef<Value> of, ArrayRef<Value> axes) {
      for (unsigned dim : found.dimsOf(of, axes))
        if (found.dims[dim] == Dim::Column)
          found.dims[dim] = Dim::Batch;
    };
    makeBatch(found.key, found.axes);
    for (const LinearReadout &readout : found.readouts)
      makeBatch(readout.query, readout.axes);
    if (found.correction && !sortCorrection())
      return false;
    if (found.key.empty() || found.value.empty())
      return fail(found.update, "what is added to the state is no product of a key and a value");
    if (found.dimsOfKind(Dim::Column).empty())
      return fail(found.update,
                  "keys or queries vary along all dims of the state, so that there is "
                  "no matrix product");
    return true;
  }
};
} // namespace

Matched<LinearRecurrence> tegula::matchLinearRecurrence(ForOp loop) { return Matcher(loop).run(); }
