//===- Loops.cpp - Parallels, loops and reductions ----------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "prove/EvaluateImpl.h"
#include "prove/ProductSum.h"
#include "prove/Products.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;
using tgl::ReduceKind;

Number tegula::prove::extreme(Algebra &algebra, const Number &a, const Number &b, bool isMax) {
  switch (algebra.compare(a, b)) {
  case Comparison::Unordered:
    return algebra.nan();
  case Comparison::Less:
    return isMax ? b : a;
  default:
    return isMax ? a : b;
  }
}

static Number sum(Algebra &algebra, llvm::ArrayRef<Number> values) {
  Number total;
  for (const Number &value : values)
    total = algebra.add(total, value);
  // In another order each partial sum may be as large as the sum of magnitudes.
  Real magnitudes = 0;
  double errors = 0;
  for (const Number &value : values) {
    magnitudes += std::fabs(value.real);
    errors += value.error;
  }
  if (total.kind == Number::Finite)
    total.error = errors + Algebra::unit * double(values.size()) * double(magnitudes);
  return total;
}

Number tegula::prove::reduceNumbers(Algebra &algebra, ReduceKind kind,
                                    llvm::ArrayRef<Number> values, bool isUnbiased) {
  switch (kind) {
  case ReduceKind::Sum:
    return sum(algebra, values);
  case ReduceKind::Prod: {
    Number product = algebra.integer(1);
    for (const Number &value : values)
      product = algebra.mul(product, value);
    return product;
  }
  case ReduceKind::Mean:
    if (values.empty())
      return algebra.nan();
    return algebra.div(sum(algebra, values), algebra.integer(int64_t(values.size())));
  case ReduceKind::Var: {
    auto count = int64_t(values.size()) - (isUnbiased ? 1 : 0);
    if (count <= 0)
      return algebra.nan();
    Number mean = algebra.div(sum(algebra, values), algebra.integer(int64_t(values.size())));
    std::vector<Number> squares;
    for (const Number &value : values) {
      Number delta = algebra.sub(value, mean);
      squares.push_back(algebra.mul(delta, delta));
    }
    return algebra.div(sum(algebra, squares), algebra.integer(count));
  }
  case ReduceKind::LogSumExp: {
    if (values.empty())
      return algebra.infinity(true);
    Number largest = values.front();
    for (const Number &value : values.drop_front())
      largest = extreme(algebra, largest, value, true);
    if (largest.kind != Number::Finite)
      return largest;
    std::vector<Number> powers;
    for (const Number &value : values)
      powers.push_back(algebra.exp(algebra.sub(value, largest)));
    return algebra.add(largest, algebra.log(sum(algebra, powers)));
  }
  default: {
    bool isMax = kind == ReduceKind::Max;
    Number best = algebra.infinity(isMax);
    for (auto [k, value] : llvm::enumerate(values))
      best = k ? extreme(algebra, best, value, isMax) : value;
    return best;
  }
  }
}

namespace {
/// Values that a loop hands on: all are read before any is set.
struct Carried {
  llvm::SmallVector<std::pair<Slot, Slot>> integers, numbers;

  void add(StepBuilder &builder, Value from, Value to) {
    auto &list = StepBuilder::isNumber(to) ? numbers : integers;
    list.push_back({builder.slotOf(from), builder.slotOf(to)});
  }
  void move(Machine &machine) const {
    llvm::SmallVector<int64_t> held;
    for (auto [from, to] : integers)
      held.push_back(machine.integers[from]);
    for (auto [value, pair] : llvm::zip_equal(held, integers))
      machine.integers[pair.second] = value;
    std::vector<Number> heldNumbers;
    for (auto [from, to] : numbers)
      heldNumbers.push_back(machine.numbers[from]);
    for (auto [value, pair] : llvm::zip_equal(heldNumbers, numbers))
      machine.numbers[pair.second] = value;
  }
};

struct Loop {
  IndexCode low, high;
  Slot var = noSlot, tileEnd = noSlot;
  bool isReverse = false;
  int64_t tile = 1;
  std::shared_ptr<Steps> body = std::make_shared<Steps>();
  Carried enter, next, leave;

  void operator()(Machine &machine) const {
    int64_t lo = low.eval(machine), hi = high.eval(machine);
    enter.move(machine);
    for (int64_t at = lo; at < hi && machine.count();) {
      int64_t end = tileEnd == noSlot ? at + 1 : hi - at > tile ? at + tile : hi;
      machine.integers[var] = isReverse ? hi - 1 - (at - lo) : at;
      if (tileEnd != noSlot)
        machine.integers[tileEnd] = end;
      runSteps(machine, *body);
      next.move(machine);
      at = end;
    }
    leave.move(machine);
  }
};

/// A reduction. A region that does not vary at its place is computed once.
struct Reduce {
  ReduceKind kind = ReduceKind::Sum;
  bool isUnbiased = false, isFloat = false;
  llvm::SmallVector<AxisCode> axes;
  std::shared_ptr<Steps> body = std::make_shared<Steps>();
  Slot value = noSlot, filter = noSlot, out = noSlot;
  Type type; // of the result
  uint8_t *ways = nullptr;
  std::shared_ptr<const ProductReduction> products; // where it is such a sum
  std::optional<Captures> memo;
  struct Last {
    std::vector<uint64_t> key;
    Number number;
    int64_t integer = 0;
    bool isThere = false;
  };
  std::shared_ptr<Last> last = std::make_shared<Last>();

  void operator()(Machine &machine) const {
    std::vector<uint64_t> key;
    bool givesNumber = isa<FloatType>(type);
    if (memo) {
      key = memo->now(machine);
      if (last->isThere && last->key == key) {
        if (givesNumber)
          machine.numbers[out] = last->number;
        else
          machine.integers[out] = last->integer;
        return;
      }
    }
    if (givesNumber)
      machine.numbers[out] = last->number = numbers(machine);
    else
      machine.integers[out] = last->integer = keptAs(type, integers(machine));
    last->key = std::move(key);
    last->isThere = !machine.stopped;
  }

private:
  void points(Machine &machine, llvm::function_ref<void()> fn) const {
    forPoints(machine, axes, [&] {
      runSteps(machine, *body);
      if (machine.stopped)
        return;
      bool counts = filter == noSlot || machine.integers[filter];
      note(ways, counts);
      if (counts)
        fn();
    });
  }

  Number numbers(Machine &machine) const {
    if (std::optional<Number> sum = products ? products->run(machine) : std::nullopt)
      return *sum;
    Algebra &algebra = machine.algebra;
    std::vector<Number> values;
    points(machine, [&] { values.push_back(machine.numbers[value]); });
    return reduceNumbers(algebra, kind, values, isUnbiased);
  }

  int64_t integers(Machine &machine) const {
    if (isFloat)
      return winner(machine);
    int64_t total = 0, yes = 0, best = 0, place = -1, sum = 0;
    uint64_t product = 1;
    bool isMax = kind == ReduceKind::Max || kind == ReduceKind::ArgMax;
    points(machine, [&] {
      int64_t next = machine.integers[value];
      if (!total || (isMax ? next > best : next < best)) {
        best = next;
        place = machine.integers[axes[0].slot];
      }
      ++total;
      yes += next != 0;
      sum = int64_t(uint64_t(sum) + uint64_t(next));
      product *= uint64_t(next);
    });
    switch (kind) {
    case ReduceKind::Any:
      return yes > 0;
    case ReduceKind::All:
      return yes == total;
    case ReduceKind::Count:
      return yes;
    case ReduceKind::ArgMax:
    case ReduceKind::ArgMin:
      return place;
    case ReduceKind::Prod:
      return int64_t(product);
    case ReduceKind::Max:
    case ReduceKind::Min:
      if (!total)
        return type.isInteger(32) ? (isMax ? INT32_MIN : INT32_MAX)
                                  : (isMax ? INT64_MIN : INT64_MAX);
      return best;
    default:
      return sum;
    }
  }

  /// The first winner; nan wins against all numbers.
  int64_t winner(Machine &machine) const {
    bool isMax = kind == ReduceKind::ArgMax;
    Number best;
    int64_t place = -1;
    points(machine, [&] {
      const Number &next = machine.numbers[value];
      machine.algebra.events.unordered += next.kind == Number::NotANumber;
      bool wins = place < 0;
      if (!wins && best.kind != Number::NotANumber) {
        Comparison comparison = machine.algebra.compare(next, best);
        wins = comparison == Comparison::Unordered ||
               comparison == (isMax ? Comparison::Greater : Comparison::Less);
      }
      if (wins) {
        best = next;
        place = machine.integers[axes[0].slot];
      }
    });
    return place;
  }
};
} // namespace

/// True when an axis around the op is one that the op does not vary along.
static bool variesLessThanItsPlace(Operation *op) {
  tgl::AxisSet varies = tgl::axesUsedBy(op);
  for (auto around = op->getParentOfType<tgl::AxesOp>(); around;
       around = around->getParentOfType<tgl::AxesOp>())
    for (BlockArgument axis : around.getAxes())
      if (!varies.contains(axis))
        return true;
  return false;
}

bool tegula::prove::buildReduce(StepBuilder &builder, Operation *op, Steps &steps) {
  auto reduce = dyn_cast<tgl::ReduceOp>(op);
  if (!reduce)
    return false;
  Reduce step;
  step.axes = builder.axes(cast<tgl::AxesOp>(op));
  if (auto products = ProductReduction::match(builder, reduce, step.axes))
    step.products = std::make_shared<const ProductReduction>(std::move(*products));
  bool isKept = variesLessThanItsPlace(op);
  builder.points(reduce.getBody().front(), *step.body, step.axes, isKept,
                 step.products ? ProductSum::productsOfStep : 1);
  step.kind = reduce.getKind();
  step.isUnbiased = reduce.getUnbiased();
  step.value = builder.slotOf(reduce.getReduced());
  step.isFloat = StepBuilder::isNumber(reduce.getReduced());
  if (reduce.getFilter()) {
    step.filter = builder.slotOf(reduce.getFilter());
    step.ways = builder.conditionOf(op, reduce.getFilter());
  }
  step.type = reduce.getType();
  step.out = builder.slotOf(reduce.getResult());
  if (isKept)
    step.memo = builder.captures(op, op->getOperands());
  steps.push_back(std::move(step));
  return true;
}

bool tegula::prove::buildLoop(StepBuilder &builder, Operation *op, Steps &steps) {
  auto fillIn = [&](auto loop, Loop &step) {
    step.low = builder.index(loop.getLow(), loop.getIndices());
    step.high = builder.index(loop.getHigh(), loop.getIndices());
    for (auto [init, argument] : llvm::zip_equal(loop.getInits(), loop.getIterArgs()))
      step.enter.add(builder, init, argument);
    uint64_t count = AxisCode{step.var, step.low, step.high}.certainCount();
    builder.repeated(loop.getBody().front(), *step.body,
                     llvm::divideCeil(count, uint64_t(step.tile)));
    for (auto [value, argument, result] :
         llvm::zip_equal(loop.getYield().getValues(), loop.getIterArgs(), loop.getResults())) {
      step.next.add(builder, value, argument);
      step.leave.add(builder, argument, result);
    }
    steps.push_back(std::move(step));
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](tgl::ParallelOp parallel) {
        llvm::SmallVector<AxisCode> axes = builder.axes(cast<tgl::AxesOp>(op));
        auto body = std::make_shared<Steps>();
        builder.points(parallel.getBody().front(), *body, axes);
        steps.push_back(
            [=](Machine &machine) { forPoints(machine, axes, [&] { runSteps(machine, *body); }); });
        return true;
      })
      .Case([&](tgl::ForOp loop) {
        Loop step;
        step.var = builder.slotOf(loop.getLoopVar());
        step.isReverse = loop.getReverse();
        return fillIn(loop, step);
      })
      .Case([&](tgl::TilesOp loop) {
        Loop step;
        step.var = builder.slotOf(loop.getTileLow());
        step.tileEnd = builder.slotOf(loop.getTileHigh());
        int64_t own = int64_t(loop.getSize().value_or(1));
        int64_t wanted = builder.machine.options.tileSize;
        step.tile = wanted ? std::min(wanted, own) : own;
        return fillIn(loop, step);
      })
      .Default([](Operation *) { return false; });
}
