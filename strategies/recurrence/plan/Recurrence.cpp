//===- Recurrence.cpp - Loops whose state stays with a cluster of blocks --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/recurrence/plan/Recurrence.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "target/DeviceFacts.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

BlockArgument RecurrenceNest::axis() const {
  return ParallelOp(op).getBody().front().getArgument(0);
}

const RecurrenceState *RecurrencePlan::stateOf(Value tensor) const {
  const auto *found =
      llvm::find_if(states, [&](const RecurrenceState &state) { return state.tensor == tensor; });
  return found == states.end() ? nullptr : found;
}

int RecurrencePlan::privateOf(Value tensor) const {
  const auto *found =
      llvm::find_if(privates, [&](const RecurrencePrivate &own) { return own.tensor == tensor; });
  return found == privates.end() ? -1 : int(found - privates.begin());
}

/// An axis from 0 to a number that is known.
static std::optional<int64_t> onlyExtent(AxesOp op) {
  if (op.getAxes().size() != 1 || getAxisRange(op, 0).lo.asConstant() != 0)
    return std::nullopt;
  return getAxisRange(op, 0).hi.asConstant();
}

static bool isPlain(ReadOp read) {
  return !read.getGuard() && !read.getFill() && !read.getChecked() &&
         read.getExactNumerators().empty();
}
static bool isPlain(WriteOp write) {
  return !write.getGuard() && !write.getCombine() && !write.getChecked();
}

static bool usesAny(ArrayRef<ValueExpr> subscripts, ValueRange values) {
  return llvm::any_of(subscripts, [&](const ValueExpr &expr) {
    return llvm::any_of(values, [&](Value value) { return expr.uses(value); });
  });
}

namespace {
/// Every method gives false, with a reason, where the loop is no such.
class Planner : MatcherBase {
public:
  explicit Planner(ParallelOp op) { plan.op = op; }

  Matched<RecurrencePlan> run() {
    if (find())
      return std::move(plan);
    return std::move(why);
  }

private:
  RecurrencePlan plan;

  bool find() {
    std::optional<int64_t> rows = knownPoints(cast<AxesOp>(plan.op.getOperation()));
    if (!findNests())
      return false;
    if (!rows)
      return fail(plan.op, "the number of rows is not known when compiling",
                  "compile for known sizes (-d)");
    plan.rows = *rows;
    for (RecurrenceNest &nest : plan.nests)
      if (!findState(nest))
        return false;
    for (RecurrenceNest &nest : plan.nests)
      if (nest.copied < 0 && !findSums(nest))
        return false;
    for (auto [index, nest] : llvm::enumerate(plan.nests))
      if (nest.copied < 0 && !checkAccesses(nest, index))
        return false;
    if (llvm::all_of(plan.nests, [](const RecurrenceNest &nest) { return nest.sums.empty(); }))
      return failAsOther(plan.loop, "no step of the loop multiplies a state by weights");
    return everyNextIsWritten() ||
           fail(plan.loop, "a state is read after it is written within a step, or is written twice",
                "write each state once, at the end of the step");
  }

  bool findNests() {
    for (Operation &op : plan.op.getBody().front()) {
      if (isa<TempOp>(op))
        continue;
      auto loop = dyn_cast<ForOp>(op);
      if (!loop)
        return failAsOther(&op, "the statement has no loop over steps");
      if (!loop.getInits().empty())
        return failAsOther(loop, "the loop carries single values from step to step, and no state "
                                 "that weights multiply");
      if (plan.loop)
        return fail(loop, "there is a second loop over steps");
      plan.loop = loop;
    }
    if (!plan.loop)
      return failAsOther(plan.op, "the statement has no loop over steps");
    for (const ValueExpr &bound : {plan.loop.getLowExpr(), plan.loop.getHighExpr()})
      if (!bound.operands()
               .empty()) // rows of a cluster, and threads, would take steps of their own number
        return fail(plan.loop, "the number of steps differs from row to row or depends on data");
    for (Operation &op : plan.loop.getBody().front().without_terminator()) {
      auto nest = dyn_cast<ParallelOp>(op);
      std::optional<int64_t> points = nest ? onlyExtent(cast<AxesOp>(op)) : std::nullopt;
      if (!points || *points <= 0)
        return fail(&op, describe(&op) +
                             " in the loop is no equation over one index of known size, "
                             "besides those of the rows");
      plan.nests.push_back({nest, *points, {}});
      for (Value tensor : accessesOf(nest).writes)
        plan.changing.insert(tensor);
    }
    return true;
  }

  /// The state that the nest copies, if it is such a nest; false where it is one that cannot be.
  bool findState(RecurrenceNest &nest) {
    auto ops = nest.op.getBody().front().getOps<WriteOp>();
    if (llvm::range_size(nest.op.getBody().front()) != 2 || ops.empty())
      return true;
    WriteOp write = *ops.begin();
    auto read = write.getValue().getDefiningOp<ReadOp>();
    auto next = read ? read.getTensor().getDefiningOp<TempOp>() : TempOp();
    if (!next || next->getParentOp() != plan.op)
      return true;
    SmallVector<ValueExpr> to = write.getSubscriptExprs();
    if (!isPlain(read) || !isPlain(write) || read.getSubscriptExprs().size() != 1 ||
        read.getSubscriptExprs()[0].asValue() != nest.axis() || plan.stateOf(write.getTensor()) ||
        !write.getTensorType().getElementType().isF32() ||
        !read.getTensorType().getElementType().isF32())
      return fail(write, "the state " + describeTensor(write.getTensor()) +
                             " is not of f32, or takes its value under a condition");
    const auto *dim =
        llvm::find_if(to, [&](const ValueExpr &expr) { return expr.asValue() == nest.axis(); });
    if (dim == to.end())
      return fail(write, "no dim of the state " + describeTensor(write.getTensor()) +
                             " has an index of its own");
    unsigned position = dim - to.begin();
    for (auto [other, expr] : llvm::enumerate(to))
      if (other != position && usesAny({expr}, {nest.axis(), plan.loop.getLoopVar()}))
        return fail(write, "the place of the state " + describeTensor(write.getTensor()) +
                               " changes from step to step");
    // Elements that no point writes would have to be copied from one copy of the state to the
    // other.
    if (write.getTensorType().getDims()[position].getExpr().asConstant() != nest.points)
      return fail(write,
                  "a step does not write all of the state " + describeTensor(write.getTensor()));
    nest.copied = plan.states.size();
    plan.states.push_back({write.getTensor(), read.getTensor(), write, position, nest.points});
    return true;
  }

  /// The subscripts of the state but the one along its points, which is `along`.
  bool isOfRow(const RecurrenceState &state, ArrayRef<ValueExpr> subscripts) {
    SmallVector<ValueExpr> written = WriteOp(state.write).getSubscriptExprs();
    for (unsigned dim = 0; dim < written.size(); ++dim)
      if (dim != state.dim && !(written[dim] == subscripts[dim]))
        return false;
    return true;
  }

  bool findSums(RecurrenceNest &nest) {
    bool all = true;
    nest.op.walk([&](ReduceOp reduce) {
      std::optional<RecurrenceSum> sum = asSum(nest, reduce);
      all &= sum.has_value();
      if (sum)
        nest.sums.push_back(*sum);
      else
        fail(reduce, describe(reduce) + " in the loop is no product, in f32, of a state and of "
                                        "weights that are the same for all rows and steps");
    });
    return all;
  }

  std::optional<RecurrenceSum> asSum(const RecurrenceNest &nest, ReduceOp reduce) {
    std::optional<int64_t> terms = onlyExtent(cast<AxesOp>(reduce.getOperation()));
    auto product =
        reduce.getReduced() ? reduce.getReduced().getDefiningOp<arith::MulFOp>() : arith::MulFOp();
    if (reduce->getParentOp() != nest.op || reduce.getKind() != ReduceKind::Sum ||
        reduce.getFilter() || !terms || *terms <= 0 || !product || !product.getType().isF32() ||
        product->getParentOp() != reduce)
      return std::nullopt;
    RecurrenceSum sum{reduce, product.getLhs().getDefiningOp<ReadOp>(),
                      product.getRhs().getDefiningOp<ReadOp>(), *terms};
    if (sum.weight && plan.stateOf(sum.weight.getTensor()))
      std::swap(sum.state, sum.weight);
    if (!sum.state || !sum.weight || sum.state->getParentOp() != reduce ||
        sum.weight->getParentOp() != reduce || llvm::range_size(reduce.getBody().front()) != 4 ||
        !isPlain(sum.state) || !isPlain(sum.weight))
      return std::nullopt;
    const RecurrenceState *state = plan.stateOf(sum.state.getTensor());
    Value axis = reduce.getBody().front().getArgument(0);
    if (!state || !isOfRow(*state, sum.state.getSubscriptExprs()) ||
        sum.state.getSubscriptExprs()[state->dim].asValue() != axis || *terms > state->points)
      return std::nullopt;
    // Weights are the same for all rows and all steps.
    SmallVector<Value> varying(plan.op.getBody().front().getArguments());
    varying.push_back(plan.loop.getLoopVar());
    if (plan.changing.contains(sum.weight.getTensor()) ||
        usesAny(sum.weight.getSubscriptExprs(), varying) ||
        !isa<FloatType>(sum.weight.getTensorType().getElementType()))
      return std::nullopt;
    for (const ValueExpr &expr : sum.weight.getSubscriptExprs())
      for (Value operand : expr.operands())
        if (!isa<BlockArgument>(operand))
          return std::nullopt; // data
    return sum;
  }

  bool checkAccesses(const RecurrenceNest &nest, unsigned index) {
    for (Operation &op : ParallelOp(nest.op).getBody().front()) {
      if (isa<ReduceOp>(op))
        continue;
      auto read = dyn_cast<ReadOp>(op);
      auto write = dyn_cast<WriteOp>(op);
      if (!read && !write && (op.getNumRegions() || !isMemoryEffectFree(&op)))
        return fail(&op, describe(&op) + " stands in the loop");
      if ((read && !checkRead(nest, index, read)) || (write && !checkWrite(nest, index, write)))
        return fail(&op, describe(&op) + " is of values that other points of the step change");
    }
    return true;
  }

  bool checkRead(const RecurrenceNest &nest, unsigned index, ReadOp read) {
    if (read.getChecked())
      return false;
    if (const RecurrenceState *state = plan.stateOf(read.getTensor()))
      return isPlain(read) && isOfRow(*state, read.getSubscriptExprs());
    return !plan.changing.contains(read.getTensor()) ||
           (isPlain(read) && checkPrivate(nest, index, read.getTensor(), read.getSubscriptExprs()));
  }

  bool checkWrite(const RecurrenceNest &nest, unsigned index, WriteOp write) {
    if (!isPlain(write) || plan.stateOf(write.getTensor()))
      return false;
    SmallVector<ValueExpr> subscripts = write.getSubscriptExprs();
    for (const RecurrenceState &state : plan.states)
      if (state.next == write.getTensor())
        return nest.points == state.points && subscripts.size() == 1 &&
               subscripts[0].asValue() == nest.axis();
    if (auto temp = write.getTensor().getDefiningOp<TempOp>(); temp && isPrivate(temp))
      return false;
    bool isRead = false;
    plan.loop.walk([&](ReadOp read) { isRead |= read.getTensor() == write.getTensor(); });
    return !isRead || checkPrivate(nest, index, write.getTensor(), subscripts);
  }

  /// Whether the access is to the element that this point alone touches, in whatever nest.
  bool checkPrivate(const RecurrenceNest &nest, unsigned index, Value tensor,
                    ArrayRef<ValueExpr> subscripts) {
    if (usesAny(subscripts, {plan.loop.getLoopVar()}) ||
        !llvm::any_of(subscripts,
                      [&](const ValueExpr &expr) { return expr.asValue() == nest.axis(); }))
      return false;
    int known = plan.privateOf(tensor);
    if (known < 0) {
      plan.privates.push_back({tensor, index, SmallVector<ValueExpr>(subscripts)});
      return true;
    }
    const RecurrenceNest &first = plan.nests[plan.privates[known].nest];
    return first.points == nest.points &&
           llvm::all_of_zip(plan.privates[known].subscripts, subscripts,
                            [&](const ValueExpr &left, const ValueExpr &right) {
                              return left.substitute(first.axis(), nest.axis()) == right;
                            });
  }

  /// Each state gets its value in one nest, which nobody reads the old one after, and then at once
  /// takes it.
  bool everyNextIsWritten() {
    for (auto [number, state] : llvm::enumerate(plan.states)) {
      bool isWritten = false, isCopied = false;
      for (const RecurrenceNest &nest : plan.nests) {
        if (nest.copied >= 0) {
          isCopied |= nest.copied == int(number) && isWritten;
          continue;
        }
        if (isWritten && !isCopied)
          return false;
        for (Operation &op : ParallelOp(nest.op).getBody().front()) {
          auto write = dyn_cast<WriteOp>(op);
          if (write && write.getTensor() == state.next && std::exchange(isWritten, true))
            return false;
          if (isWritten && !isCopied && accessesOf(&op).reads.contains(state.tensor))
            return false;
        }
      }
      if (!isCopied)
        return false;
    }
    return !plan.states.empty();
  }
};
} // namespace

Matched<RecurrencePlan> tegula::planRecurrence(ParallelOp op) { return Planner(op).run(); }

//===----------------------------------------------------------------------===//
// The shape
//===----------------------------------------------------------------------===//

int64_t RecurrenceShape::lanesFor(int64_t points) const {
  constexpr int64_t warp = 32;
  int64_t each = threads / pointsOfBlock(points);
  return each ? std::min<int64_t>(warp, llvm::bit_floor(uint64_t(each))) : 0;
}

int64_t RecurrenceShape::termsOfLane(const RecurrenceNest &nest, const RecurrenceSum &sum) const {
  return llvm::divideCeil(sum.terms, together * lanesFor(nest.points)) * together;
}

std::optional<int64_t> RecurrenceShape::weightsOfThread(const RecurrencePlan &plan) const {
  int64_t weights = 0;
  for (const RecurrenceNest &nest : plan.nests) {
    if (nest.copied >= 0)
      continue;
    if (!lanesFor(nest.points))
      return std::nullopt;
    for (const RecurrenceSum &sum : nest.sums)
      weights += termsOfLane(nest, sum);
  }
  return weights;
}

Attribute RecurrenceShape::toAttribute(MLIRContext *context) const {
  return Builder(context).getDenseI64ArrayAttr({cluster, threads, countsBytes});
}

std::optional<RecurrenceShape> RecurrenceShape::of(ParallelOp op) {
  auto shape = op->getAttrOfType<DenseI64ArrayAttr>(attributeName);
  if (!shape || shape.size() != 3)
    return std::nullopt;
  return RecurrenceShape{shape[0], shape[1], shape[2] != 0};
}

Matched<RecurrenceShape> tegula::chooseRecurrenceShape(const RecurrencePlan &plan,
                                                       int64_t maxBlocks, int64_t asked) {
  // Clusters that an H200 surely runs at once, by what their blocks need of its groups of 16 or 18
  // multiprocessors.
  static constexpr struct {
    int64_t blocks, atOnce;
  } clusters[] = {{1, device::multiprocessors}, {2, 64}, {4, 32}, {8, 14}, {16, 6}};
  // Shared memory for weights, where there are clusters; the rest is for states.
  constexpr int64_t maxSharedBytes = 208 << 10;
  // Cycles of a step: elementary functions and shuffles; a cluster's barrier; and of a step that is
  // launched anew.
  constexpr int64_t ofStep = 600, ofBarrier = 500, ofLaunches = 12000;
  constexpr int64_t lanesOfMultiprocessor = 128,
                    bytesOfMultiprocessor = 128; // products, and shared memory, in one
  std::optional<RecurrenceShape> best;
  int64_t least = ofLaunches;
  bool bestIsAsked = false;
  for (auto [cluster, atOnce] : clusters)
    for (int64_t threads : {256, 512}) {
      if (cluster > maxBlocks)
        break;
      RecurrenceShape shape{cluster, threads};
      bool fits = llvm::all_of(plan.states, [cluster = cluster](const RecurrenceState &state) {
        return state.points >= cluster; // each block has some
      });
      std::optional<int64_t> weights = shape.weightsOfThread(plan);
      int64_t shared = weights ? shape.sharedBytes(*weights) : 0;
      if (!fits || !weights || shared > (maxBlocks > 1 ? maxSharedBytes : 0))
        continue;
      int64_t cycles = ofStep + (cluster > 1 ? ofBarrier : 0) +
                       *weights * threads / lanesOfMultiprocessor + shared / bytesOfMultiprocessor;
      cycles *= llvm::divideCeil(plan.rows, atOnce);
      bool isAsked = cluster == asked;
      if ((isAsked && !bestIsAsked) || (isAsked == bestIsAsked && cycles < least)) {
        least = cycles;
        best = shape;
        bestIsAsked = isAsked;
      }
    }
  if (!best)
    return Mismatch{"the weights fit into no cluster's shared memory and registers, or a step "
                    "takes longer than a launch",
                    "", plan.op};
  return *best;
}
