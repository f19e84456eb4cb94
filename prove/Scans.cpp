//===- Scans.cpp - Scans, softmax and sorted sequences -------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "prove/EvaluateImpl.h"
#include "llvm/ADT/SetVector.h"
#include <map>

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;
using tgl::ScanKind;

namespace {
/// A whole sequence, from which an operation takes one position.
struct Sequence {
  std::vector<Number> numbers;
  std::vector<int64_t> integers;
  int64_t low = 0;                               // one axis: the place is k - low
  std::map<std::vector<int64_t>, size_t> places; // several
  size_t count = 0;
};

struct Scan {
  ScanKind kind = ScanKind::CumSum;
  bool isReverse = false, isExclusive = false, isDescending = false, isFloat = false;
  llvm::SmallVector<AxisCode> axes;
  llvm::SmallVector<IndexCode> positions;
  std::shared_ptr<Steps> body = std::make_shared<Steps>();
  llvm::SmallVector<Slot, 2> yields;
  Slot init = noSlot, out = noSlot;
  Type valueType, resultType;
  Captures captures;
  std::string place;
  using Known = std::map<std::vector<uint64_t>, Sequence>;
  std::shared_ptr<Known> known = std::make_shared<Known>();

  void operator()(Machine &machine) const {
    std::vector<int64_t> at;
    for (const IndexCode &position : positions)
      at.push_back(position.eval(machine));
    std::vector<uint64_t> key = captures.now(machine);
    auto found = known->find(key);
    if (found == known->end()) {
      if (known->size() > 4096)
        known->clear();
      found = known->emplace(std::move(key), compute(machine)).first;
    }
    if (machine.stopped)
      return;
    const Sequence &sequence = found->second;
    size_t index = sequence.count;
    if (axes.size() == 1)
      index = size_t(at[0] - sequence.low);
    else if (auto point = sequence.places.find(at); point != sequence.places.end())
      index = point->second;
    if (index >= sequence.count)
      return machine.stop(Evaluation::OutOfBounds,
                          place + ": a position is outside the scanned range");
    if (isa<FloatType>(resultType))
      machine.numbers[out] = sequence.numbers[index];
    else
      machine.integers[out] = sequence.integers[index];
  }

private:
  Sequence compute(Machine &machine) const {
    Sequence sequence;
    std::vector<Number> numbers, factors;
    std::vector<int64_t> integers;
    bool isRecurrence = kind == ScanKind::Recurrence;
    Slot wanted = yields[isRecurrence ? 1 : 0];
    sequence.low = axes[0].lo.eval(machine);
    forPoints(machine, axes, [&] {
      if (axes.size() > 1) {
        std::vector<int64_t> point;
        for (const AxisCode &axis : axes)
          point.push_back(machine.integers[axis.slot]);
        sequence.places[point] = sequence.count;
      }
      ++sequence.count;
      runSteps(machine, *body);
      if (isRecurrence)
        factors.push_back(machine.numbers[yields[0]]);
      if (isFloat)
        numbers.push_back(machine.numbers[wanted]);
      else
        integers.push_back(machine.integers[wanted]);
    });
    if (machine.stopped)
      return sequence;
    if (isFloat)
      scan(machine, numbers, factors, sequence);
    else
      scan(machine, integers, sequence);
    return sequence;
  }

  void scan(Machine &machine, llvm::ArrayRef<Number> values, llvm::ArrayRef<Number> factors,
            Sequence &sequence) const {
    Algebra &algebra = machine.algebra;
    size_t count = values.size();
    sequence.numbers.resize(count);
    switch (kind) {
    case ScanKind::Softmax:
    case ScanKind::LogSoftmax:
      return softmax(algebra, values, sequence);
    case ScanKind::Sort:
    case ScanKind::TopKValue:
    case ScanKind::ArgSort:
    case ScanKind::TopKIndex:
      for (auto [k, from] : llvm::enumerate(sortedPlaces(algebra, values, descending()))) {
        sequence.numbers[k] = values[from];
        sequence.integers.push_back(sequence.low + int64_t(from));
      }
      return;
    default:
      break;
    }
    Number held = kind == ScanKind::CumProd  ? algebra.integer(1)
                  : kind == ScanKind::CumMax ? algebra.infinity(true)
                  : kind == ScanKind::CumMin ? algebra.infinity(false)
                                             : Number();
    if (kind == ScanKind::Recurrence && init != noSlot)
      held = machine.numbers[init];
    for (size_t n = 0; n < count; ++n) {
      size_t k = isReverse ? count - 1 - n : n;
      Number before = held;
      if (kind == ScanKind::Recurrence)
        held = algebra.add(algebra.mul(factors[k], held), values[k]);
      else if (kind == ScanKind::CumSum)
        held = algebra.add(held, values[k]);
      else if (kind == ScanKind::CumProd)
        held = algebra.mul(held, values[k]);
      else
        held = extreme(algebra, held, values[k], kind == ScanKind::CumMax);
      sequence.numbers[k] = isExclusive ? before : held;
    }
  }

  void softmax(Algebra &algebra, llvm::ArrayRef<Number> values, Sequence &sequence) const {
    if (values.empty())
      return;
    Number largest = values.front(), sum;
    for (const Number &value : values.drop_front())
      largest = extreme(algebra, largest, value, true);
    std::vector<Number> powers;
    for (const Number &value : values) {
      powers.push_back(algebra.exp(algebra.sub(value, largest)));
      sum = algebra.add(sum, powers.back());
    }
    for (auto [k, value] : llvm::enumerate(values))
      sequence.numbers[k] = kind == ScanKind::LogSoftmax
                                ? algebra.sub(algebra.sub(value, largest), algebra.log(sum))
                                : algebra.div(powers[k], sum);
  }

  void scan(Machine &machine, llvm::ArrayRef<int64_t> values, Sequence &sequence) const {
    size_t count = values.size();
    sequence.integers.resize(count);
    switch (kind) {
    case ScanKind::Sort:
    case ScanKind::TopKValue:
    case ScanKind::ArgSort:
    case ScanKind::TopKIndex: {
      bool givesPlaces = kind == ScanKind::ArgSort || kind == ScanKind::TopKIndex;
      for (auto [k, from] : llvm::enumerate(sortedPlaces(values, descending())))
        sequence.integers[k] = givesPlaces ? sequence.low + int64_t(from) : values[from];
      return;
    }
    case ScanKind::Softmax:
    case ScanKind::LogSoftmax:
    case ScanKind::Recurrence:
      return machine.stop(Evaluation::Unknown, place + ": a scan of floats is given integers");
    default:
      break;
    }
    bool isMax = kind == ScanKind::CumMax, isSum = kind == ScanKind::CumSum;
    // As the interpreter has it: an exclusive extreme of integers begins with 0.
    auto held = int64_t(kind == ScanKind::CumProd);
    for (size_t n = 0; n < count; ++n) {
      size_t k = isReverse ? count - 1 - n : n;
      int64_t before = held, next = values[k];
      if (isSum)
        held = int64_t(uint64_t(held) + uint64_t(next));
      else if (kind == ScanKind::CumProd)
        held = int64_t(uint64_t(held) * uint64_t(next));
      else if (n == 0 && !isExclusive)
        held = next;
      else
        held = isMax ? std::max(held, next) : std::min(held, next);
      sequence.integers[k] = keptAs(valueType, isExclusive ? before : held);
    }
  }

  bool descending() const {
    return isDescending || kind == ScanKind::TopKValue || kind == ScanKind::TopKIndex;
  }
};
} // namespace

bool tegula::prove::buildScan(StepBuilder &builder, Operation *op, Steps &steps) {
  auto scan = dyn_cast<tgl::ScanOp>(op);
  if (!scan)
    return false;
  Scan step;
  step.axes = builder.axes(cast<tgl::AxesOp>(op));
  step.kind = scan.getKind();
  step.isReverse = scan.getReverse();
  step.isExclusive = scan.getExclusive();
  step.isDescending = scan.getDescending();
  step.place = placeOf(op->getLoc());
  for (Attribute position : scan.getPositions())
    step.positions.push_back(builder.index(position, scan.getIndices()));
  builder.points(scan.getBody().front(), *step.body, step.axes, /*isKept=*/true);
  for (Value value : scan.getYield().getValues())
    step.yields.push_back(builder.slotOf(value));
  Value first = scan.getYield().getValues()[0];
  step.isFloat = StepBuilder::isNumber(first);
  step.valueType = first.getType();
  step.resultType = scan.getType();
  step.out = builder.slotOf(scan.getResult());
  if (scan.getInit())
    step.init = builder.slotOf(scan.getInit());
  // The sequence is made of all but the wanted position.
  llvm::SetVector<Value> shared;
  for (const tgl::AxisRange &range : tgl::getAxisRanges(cast<tgl::AxesOp>(op)))
    for (const tgl::ValueExpr &bound : {range.lo, range.hi})
      for (Value value : bound.operands())
        if (value.getParentBlock() != &scan.getBody().front())
          shared.insert(value);
  if (scan.getInit())
    shared.insert(scan.getInit());
  step.captures = builder.captures(op, shared.getArrayRef());
  steps.push_back(std::move(step));
  return true;
}
