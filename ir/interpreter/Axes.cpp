//===- Axes.cpp - Parallels, reductions and loops --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/interpreter/Impl.h"
#include "ir/interpreter/Points.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace tegula;
using namespace tegula::interp;
using tgl::ReduceKind;

llvm::SmallVector<AxisCode> Compiler::axes(tgl::AxesOp op) {
  llvm::SmallVector<Value> dims(op.getIndices());
  llvm::append_range(dims, op.getAxes());
  llvm::SmallVector<AxisCode> result;
  for (auto [axis, lo, hi] : llvm::zip_equal(op.getAxes(), op.getLows(), op.getHighs()))
    result.push_back(
        {slotOf(axis), indexCode(lo, dims, op.getLoc()), indexCode(hi, dims, op.getLoc())});
  return result;
}

//===----------------------------------------------------------------------===//
// Regions that are worth remembering
//===----------------------------------------------------------------------===//

std::vector<int64_t> MemoKey::now(const Frame &frame) const {
  std::vector<int64_t> key;
  key.reserve(slots.size() + 2 * tensors.size());
  for (Slot slot : slots)
    key.push_back(frame.slots[slot]);
  for (unsigned tensor : tensors) {
    key.push_back(int64_t(frame.tensors[tensor].version));
    key.push_back(int64_t(frame.tensors[tensor].born));
  }
  return key;
}

/// Everything from outside that the op's region uses, and `operands`.
MemoKey Compiler::memoKey(Operation *root, ValueRange operands) {
  MemoKey key;
  llvm::SetVector<Value> captured(operands.begin(), operands.end());
  root->walk([&](Operation *op) {
    if (op == root)
      return;
    for (Value operand : op->getOperands())
      if (!root->isAncestor(operand.getParentBlock()->getParentOp()))
        captured.insert(operand);
  });
  for (Value value : captured) {
    if (isa<tgl::TglTensorType>(value.getType()))
      key.tensors.push_back(tensorOf(value));
    else
      key.slots.push_back(slotOf(value));
  }
  return key;
}

/// True when a parallel or reduction around the op has an axis that the op does not vary along.
bool Compiler::variesLessThanItsPlace(Operation *op) {
  tgl::AxisSet varies = tgl::axesUsedBy(op);
  for (auto around = op->getParentOfType<tgl::AxesOp>(); around;
       around = around->getParentOfType<tgl::AxesOp>())
    for (BlockArgument axis : around.getAxes())
      if (!varies.contains(axis))
        return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Accumulators
//===----------------------------------------------------------------------===//

namespace {
/// The state of one floating reduction; Wide is double for float and long double for double.
template <typename T, typename Wide> class FloatAccumulator {
public:
  explicit FloatAccumulator(ReduceKind kind) : kind(kind) {
    if (kind == ReduceKind::Prod)
      sum = 1;
  }

  void add(T value) {
    ++count;
    switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::Mean:
      sum += value;
      break;
    case ReduceKind::Prod:
      sum *= value;
      break;
    case ReduceKind::Max:
      if (count == 1 || wins(value > best, value, !std::signbit(value)))
        best = value;
      break;
    case ReduceKind::Min:
      if (count == 1 || wins(value < best, value, std::signbit(value)))
        best = value;
      break;
    case ReduceKind::Var: {
      // Welford: no cancellation between large sums.
      Wide delta = value - mean;
      mean += delta / Wide(count);
      sum += delta * (value - mean);
      break;
    }
    case ReduceKind::LogSumExp:
      // The sum is kept relative to the largest value so far.
      if (std::isnan(value) || std::isnan(mean)) {
        mean = std::numeric_limits<Wide>::quiet_NaN();
      } else if (count == 1 || value > mean) {
        sum = (count == 1 || std::isinf(mean) ? Wide(0) : sum * std::exp(mean - Wide(value))) + 1;
        mean = value;
      } else if (!std::isinf(mean)) {
        sum += std::exp(Wide(value) - mean);
      }
      break;
    default:
      break;
    }
  }

  T result(bool unbiased) const {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    switch (kind) {
    case ReduceKind::Max:
      return count ? best : -infinity;
    case ReduceKind::Min:
      return count ? best : infinity;
    case ReduceKind::Mean:
      return count ? T(sum / Wide(count)) : nan;
    case ReduceKind::Var:
      return count > (unbiased ? 1u : 0u) ? T(sum / Wide(count - (unbiased ? 1 : 0))) : nan;
    case ReduceKind::LogSumExp:
      if (count == 0)
        return -infinity;
      return std::isinf(mean) || std::isnan(mean) ? T(mean) : T(mean + std::log(sum));
    default:
      return T(sum);
    }
  }

private:
  /// nan stays; of two zeros the one with the better sign wins.
  bool wins(bool better, T value, bool betterSign) const {
    return !std::isnan(best) && (std::isnan(value) || better || (value == best && betterSign));
  }

  ReduceKind kind;
  uint64_t count = 0;
  Wide sum = 0, mean = 0; // LogSumExp: mean is the largest value
  T best = 0;
};

class ReduceNode final : public Node {
public:
  using Node::Node;
  ReduceKind kind = ReduceKind::Sum;
  Kind type = Kind::F32; // of the yielded value
  bool unbiased = false;
  llvm::SmallVector<AxisCode> axes;
  Code body;
  Slot value = noSlot, filter = noSlot, result = noSlot;
  /// Without points the integers have no extreme: a launch refuses sizes that leave none, and where
  /// data do the program has a report of its own.
  bool hasPointsBySizes = false;
  bool narrowResult = false; // a count in i32
  std::optional<MemoKey> memo;
  mutable std::optional<std::vector<int64_t>> lastKey;
  mutable int64_t lastResult = 0;

  void run(Frame &frame) const override {
    if (!memo)
      return compute(frame);
    std::vector<int64_t> key = memo->now(frame);
    if (lastKey == key) {
      frame.slots[result] = lastResult;
      return;
    }
    compute(frame);
    lastKey = std::move(key);
    lastResult = frame.slots[result];
  }

private:
  void compute(Frame &frame) const {
    switch (kind) {
    case ReduceKind::Any:
    case ReduceKind::All:
    case ReduceKind::Count: {
      int64_t total = 0, yes = 0;
      points(frame, [&] {
        ++total;
        yes += frame.slots[value];
      });
      int64_t found = kind == ReduceKind::Any   ? yes > 0
                      : kind == ReduceKind::All ? yes == total
                                                : yes;
      frame.slots[result] = narrowResult ? int32_t(found) : found;
      return;
    }
    case ReduceKind::ArgMax:
    case ReduceKind::ArgMin:
      switch (type) {
      case Kind::F64:
        return winner<double>(frame);
      case Kind::F32:
        return winner<float>(frame);
      default:
        return winner<int64_t>(frame);
      }
    default:
      break;
    }
    if (type == Kind::F64)
      return floats<double, long double>(frame);
    if (type == Kind::F32)
      return floats<float, double>(frame);
    integers(frame);
  }

  template <typename Fn> void points(Frame &frame, Fn fn) const {
    forPoints(frame, this, axes, [&] {
      frame.run(body);
      if (filter == noSlot || frame.slots[filter])
        fn();
    });
  }

  template <typename T, typename Wide> void floats(Frame &frame) const {
    FloatAccumulator<T, Wide> accumulator(kind);
    points(frame, [&] { accumulator.add(frame.get<T>(value)); });
    frame.set(result, accumulator.result(unbiased));
  }

  void integers(Frame &frame) const {
    uint64_t sum = kind == ReduceKind::Prod ? 1 : 0;
    bool isMax = kind == ReduceKind::Max;
    int64_t best = type == Kind::I32 ? int64_t(isMax ? INT32_MIN : INT32_MAX)
                   : isMax           ? INT64_MIN
                                     : INT64_MAX;
    bool any = false;
    points(frame, [&] {
      int64_t next = frame.slots[value];
      if (kind == ReduceKind::Sum)
        sum += uint64_t(next);
      else if (kind == ReduceKind::Prod)
        sum *= uint64_t(next);
      else if (!any || (isMax ? next > best : next < best))
        best = next;
      any = true;
    });
    bool extremum = kind == ReduceKind::Max || kind == ReduceKind::Min;
    if (extremum && !any && hasPointsBySizes)
      frame.report(this, InterpreterError::Arithmetic,
                   "the largest or smallest of no integers is wanted");
    auto total = extremum ? best : int64_t(sum);
    frame.slots[result] = type == Kind::I32 ? int32_t(total) : total;
  }

  /// The first winner; nan wins against all numbers, as in PyTorch.
  template <typename T> void winner(Frame &frame) const {
    T best{};
    std::optional<int64_t> place;
    points(frame, [&] {
      T next = frame.get<T>(value);
      bool wins = !place;
      if constexpr (std::is_floating_point_v<T>) {
        if (!wins && !std::isnan(best))
          wins = std::isnan(next) || (kind == ReduceKind::ArgMax ? next > best : next < best);
      } else if (!wins) {
        wins = kind == ReduceKind::ArgMax ? next > best : next < best;
      }
      if (wins) {
        best = next;
        place = frame.slots[axes[0].slot];
      }
    });
    frame.slots[result] = place.value_or(-1); // among none, which a filter on data may leave
  }
};

class ParallelNode final : public Node {
public:
  using Node::Node;
  llvm::SmallVector<AxisCode> axes;
  Code body;

  void run(Frame &frame) const override { runInParallel(frame, this, axes, body); }
};

/// Carried values: all are read before any is set.
void carry(Frame &frame, llvm::ArrayRef<Slot> from, llvm::ArrayRef<Slot> to) {
  llvm::SmallVector<int64_t> values;
  for (Slot slot : from)
    values.push_back(frame.slots[slot]);
  for (auto [slot, value] : llvm::zip_equal(to, values))
    frame.slots[slot] = value;
}

class LoopNode final : public Node {
public:
  using Node::Node;
  IndexCode low, high;
  Slot var = noSlot, tileEnd = noSlot; // tileEnd: tile loops
  bool reverse = false;
  int64_t tile = 1;
  Code body;
  llvm::SmallVector<Slot> inits, arguments, yields, results;

  void run(Frame &frame) const override {
    int64_t lo = low.eval(frame, this), hi = high.eval(frame, this);
    carry(frame, inits, arguments);
    for (int64_t at = lo; at < hi && !frame.stopped;) {
      int64_t next = tileEnd == noSlot ? at + 1 : hi - at > tile ? at + tile : hi;
      frame.slots[var] = reverse ? hi - 1 - (at - lo) : at;
      if (tileEnd != noSlot)
        frame.slots[tileEnd] = next;
      if (!frame.step(this))
        break;
      frame.run(body);
      carry(frame, yields, arguments);
      at = next;
    }
    carry(frame, arguments, results);
  }
};
} // namespace

bool Compiler::compileAxes(Operation *op, Code &nodes) {
  Location loc = op->getLoc();
  auto slotsOf = [&](auto values) {
    return llvm::map_to_vector(values, [&](Value value) { return slotOf(value); });
  };
  auto fillLoop = [&](auto loop, LoopNode &node) {
    node.low = indexCode(loop.getLow(), loop.getIndices(), loc);
    node.high = indexCode(loop.getHigh(), loop.getIndices(), loc);
    node.inits = slotsOf(loop.getInits());
    node.arguments = slotsOf(loop.getIterArgs());
    node.yields = slotsOf(loop.getYield().getValues());
    node.results = slotsOf(loop.getResults());
    return compileBlock(loop.getBody().front(), node.body);
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](tgl::ParallelOp parallel) {
        auto node = std::make_unique<ParallelNode>(loc);
        node->axes = axes(cast<tgl::AxesOp>(op));
        compileBlock(parallel.getBody().front(), node->body);
        nodes.push_back(std::move(node));
        return true;
      })
      .Case([&](tgl::ReduceOp reduce) {
        auto node = std::make_unique<ReduceNode>(loc);
        node->axes = axes(cast<tgl::AxesOp>(op));
        compileBlock(reduce.getBody().front(), node->body);
        node->kind = reduce.getKind();
        node->unbiased = reduce.getUnbiased();
        node->value = slotOf(reduce.getReduced());
        node->type = kindOf(reduce.getReduced().getType());
        if (reduce.getFilter())
          node->filter = slotOf(reduce.getFilter());
        node->hasPointsBySizes = !reduce.getFilter() && reduce.getIndices().empty();
        node->result = slotOf(reduce.getResult());
        node->narrowResult = reduce.getType().isInteger(32);
        if (variesLessThanItsPlace(op))
          node->memo = memoKey(op, op->getOperands());
        nodes.push_back(std::move(node));
        return true;
      })
      .Case([&](tgl::ForOp loop) {
        auto node = std::make_unique<LoopNode>(loc);
        node->var = slotOf(loop.getLoopVar());
        node->reverse = loop.getReverse();
        fillLoop(loop, *node);
        nodes.push_back(std::move(node));
        return true;
      })
      .Case([&](tgl::TilesOp loop) {
        auto node = std::make_unique<LoopNode>(loc);
        node->var = slotOf(loop.getTileLow());
        node->tileEnd = slotOf(loop.getTileHigh());
        node->tile =
            frame.options.tileSize ? frame.options.tileSize : int64_t(loop.getSize().value_or(1));
        fillLoop(loop, *node);
        nodes.push_back(std::move(node));
        return true;
      })
      .Default([](Operation *) { return false; });
}
