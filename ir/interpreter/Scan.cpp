//===- Scan.cpp - Scans, softmax and sorted sequences ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op gives one position; the whole sequence is computed once and kept, since its neighbours will
// ask for theirs.
//
//===----------------------------------------------------------------------===//
#include "ir/interpreter/Impl.h"
#include "ir/interpreter/Order.h"
#include "ir/interpreter/Points.h"
#include "ir/tgl/TglUtils.h"
#include <cmath>
#include <limits>
#include <map>

using namespace mlir;
using namespace tegula;
using namespace tegula::interp;
using tgl::ScanKind;

namespace {
/// A scanned sequence: the results (bits as in a slot) in order of the points, and where each point
/// is.
struct Sequence {
  std::vector<int64_t> results;
  int64_t low = 0;                                        // one axis: results[k - low]
  std::map<llvm::SmallVector<int64_t, 2>, size_t> places; // several axes
};

struct Options {
  ScanKind kind = ScanKind::CumSum;
  bool reverse = false, exclusive = false, descending = false;
};

template <typename T, typename Wide> T neutral(ScanKind kind) {
  switch (kind) {
  case ScanKind::CumProd:
    return T(1);
  case ScanKind::CumMax:
    return -std::numeric_limits<T>::infinity();
  case ScanKind::CumMin:
    return std::numeric_limits<T>::infinity();
  default:
    return T(0);
  }
}

template <typename Wide> Wide combine(ScanKind kind, Wide sum, Wide value) {
  switch (kind) {
  case ScanKind::CumSum:
    if constexpr (std::is_integral_v<Wide>)
      return Wide(uint64_t(sum) + uint64_t(value));
    return sum + value;
  case ScanKind::CumProd:
    if constexpr (std::is_integral_v<Wide>)
      return Wide(uint64_t(sum) * uint64_t(value));
    return sum * value;
  case ScanKind::CumMax:
    return isNaN(sum) || sum > value ? sum : value;
  default:
    return isNaN(sum) || sum < value ? sum : value;
  }
}

template <typename T, typename Wide>
std::vector<T> cumulative(const Options &options, llvm::ArrayRef<T> values) {
  std::vector<T> results(values.size());
  Wide sum = neutral<T, Wide>(options.kind);
  bool any = false;
  for (size_t n = 0; n < values.size(); ++n) {
    size_t k = options.reverse ? values.size() - 1 - n : n;
    if (options.exclusive)
      results[k] = T(sum);
    // Integers have no neutral element of a maximum: the first value is the start.
    sum = any ? combine<Wide>(options.kind, sum, values[k])
              : (options.exclusive ? combine<Wide>(options.kind, sum, values[k]) : Wide(values[k]));
    any = true;
    if (!options.exclusive)
      results[k] = T(sum);
  }
  return results;
}

template <typename T, typename Wide> std::vector<T> softmax(bool isLog, llvm::ArrayRef<T> values) {
  std::vector<T> results(values.size());
  Wide largest = -std::numeric_limits<Wide>::infinity(), sum = 0;
  for (T value : values)
    largest = std::isnan(value) || std::isnan(largest) ? std::numeric_limits<Wide>::quiet_NaN()
                                                       : std::max(largest, Wide(value));
  for (T value : values)
    sum += std::exp(Wide(value) - largest);
  for (size_t k = 0; k < values.size(); ++k) {
    Wide shifted = Wide(values[k]) - largest;
    results[k] = T(isLog ? shifted - std::log(sum) : std::exp(shifted) / sum);
  }
  return results;
}

/// h(k) = a(k) * h(k-1) + b(k).
template <typename T, typename Wide>
std::vector<T> recurrence(bool reverse, Wide start, llvm::ArrayRef<T> a, llvm::ArrayRef<T> b) {
  std::vector<T> results(a.size());
  Wide h = start;
  for (size_t n = 0; n < a.size(); ++n) {
    size_t k = reverse ? a.size() - 1 - n : n;
    h = Wide(a[k]) * h + Wide(b[k]);
    results[k] = T(h);
  }
  return results;
}

class ScanNode final : public Node {
public:
  using Node::Node;
  Options options;
  Kind type = Kind::F32; // of the yielded values
  llvm::SmallVector<AxisCode> axes;
  llvm::SmallVector<IndexCode> positions;
  Code body;
  llvm::SmallVector<Slot, 2> yields;
  Slot init = noSlot, result = noSlot;
  MemoKey memo;

  void run(Frame &frame) const override {
    llvm::SmallVector<int64_t, 2> at;
    for (const IndexCode &position : positions)
      at.push_back(position.eval(frame, this));
    std::vector<int64_t> key = memo.now(frame);
    auto found = sequences.find(key);
    if (found == sequences.end()) {
      if (remembered > maxRemembered) {
        sequences.clear();
        remembered = 0;
      }
      found = sequences.emplace(std::move(key), compute(frame)).first;
      remembered += found->second.results.size() + 1;
    }
    const Sequence &sequence = found->second;
    size_t place = sequence.results.size();
    if (axes.size() == 1) {
      place = size_t(at[0] - sequence.low);
    } else if (auto point = sequence.places.find(at); point != sequence.places.end()) {
      place = point->second;
    }
    if (place >= sequence.results.size()) {
      std::string text;
      llvm::raw_string_ostream os(text);
      os << "position [";
      llvm::interleaveComma(at, os);
      os << "] is outside the scanned range";
      frame.report(this, InterpreterError::OutOfBounds, text);
      frame.slots[result] = 0;
      return;
    }
    frame.slots[result] = sequence.results[place];
  }

private:
  Sequence compute(Frame &frame) const {
    Sequence sequence;
    std::vector<int64_t> values, factors;
    bool isRecurrence = options.kind == ScanKind::Recurrence;
    sequence.low = axes[0].lo.eval(frame, this);
    forPoints(frame, this, axes, [&] {
      if (axes.size() > 1) {
        llvm::SmallVector<int64_t, 2> place;
        for (const AxisCode &axis : axes)
          place.push_back(frame.slots[axis.slot]);
        sequence.places[place] = values.size();
      }
      frame.run(body);
      if (isRecurrence)
        factors.push_back(frame.slots[yields[0]]);
      values.push_back(frame.slots[yields[isRecurrence ? 1 : 0]]);
    });
    switch (type) {
    case Kind::F64:
      scan<double, long double>(frame, values, factors, sequence);
      break;
    case Kind::F32:
      scan<float, double>(frame, values, factors, sequence);
      break;
    default:
      scan<int64_t, int64_t>(frame, values, factors, sequence);
      break;
    }
    return sequence;
  }

  template <typename T> static std::vector<T> decode(llvm::ArrayRef<int64_t> bits) {
    std::vector<T> result;
    for (int64_t value : bits) {
      if constexpr (std::is_same_v<T, float>)
        result.push_back(std::bit_cast<float>(uint32_t(value)));
      else
        result.push_back(std::bit_cast<T>(value));
    }
    return result;
  }

  template <typename T> int64_t encode(T value) const {
    if constexpr (std::is_same_v<T, float>)
      return std::bit_cast<uint32_t>(value);
    else if constexpr (std::is_same_v<T, double>)
      return std::bit_cast<int64_t>(value);
    else
      return type == Kind::I32 ? int32_t(value) : value;
  }

  template <typename T, typename Wide>
  void scan(Frame &frame, llvm::ArrayRef<int64_t> bits, llvm::ArrayRef<int64_t> factorBits,
            Sequence &sequence) const {
    std::vector<T> values = decode<T>(bits), results;
    switch (options.kind) {
    case ScanKind::CumSum:
    case ScanKind::CumProd:
    case ScanKind::CumMax:
    case ScanKind::CumMin:
      results = cumulative<T, Wide>(options, values);
      break;
    case ScanKind::Softmax:
    case ScanKind::LogSoftmax:
      if constexpr (std::is_floating_point_v<T>)
        results = softmax<T, Wide>(options.kind == ScanKind::LogSoftmax, values);
      break;
    case ScanKind::Recurrence:
      if constexpr (std::is_floating_point_v<T>)
        results =
            recurrence<T, Wide>(options.reverse, init == noSlot ? Wide(0) : frame.get<T>(init),
                                decode<T>(factorBits), values);
      break;
    case ScanKind::Sort:
    case ScanKind::TopKValue:
      for (size_t place : sortedOrder<T>(values, descending()))
        results.push_back(values[place]);
      break;
    case ScanKind::ArgSort:
    case ScanKind::TopKIndex:
      for (size_t place : sortedOrder<T>(values, descending()))
        sequence.results.push_back(sequence.low + int64_t(place));
      return;
    }
    for (T value : results)
      sequence.results.push_back(encode(value));
  }

  bool descending() const {
    return options.descending || options.kind == ScanKind::TopKValue ||
           options.kind == ScanKind::TopKIndex;
  }

  static constexpr size_t maxRemembered = size_t(1) << 22;
  mutable std::map<std::vector<int64_t>, Sequence> sequences;
  mutable size_t remembered = 0;
};
} // namespace

bool tegula::interp::compileScan(Compiler &compiler, Operation *op, Code &nodes) {
  auto scan = dyn_cast<tgl::ScanOp>(op);
  if (!scan)
    return false;
  auto node = std::make_unique<ScanNode>(op->getLoc());
  node->axes = compiler.axes(cast<tgl::AxesOp>(op));
  node->options = {scan.getKind(), scan.getReverse(), scan.getExclusive(), scan.getDescending()};
  for (Attribute position : scan.getPositions())
    node->positions.push_back(compiler.indexCode(position, scan.getIndices(), op->getLoc()));
  compiler.compileBlock(scan.getBody().front(), node->body);
  for (Value value : scan.getYield().getValues())
    node->yields.push_back(compiler.slotOf(value));
  node->type = Compiler::kindOf(scan.getYield().getValues()[0].getType());
  node->result = compiler.slotOf(scan.getResult());
  if (scan.getInit())
    node->init = compiler.slotOf(scan.getInit());
  // The sequence is made of all but the wanted position.
  llvm::SetVector<Value> shared;
  for (const tgl::AxisRange &range : tgl::getAxisRanges(cast<tgl::AxesOp>(op)))
    for (const tgl::ValueExpr &bound : {range.lo, range.hi})
      for (Value value : bound.operands())
        if (value.getParentBlock() != &scan.getBody().front())
          shared.insert(value);
  if (scan.getInit())
    shared.insert(scan.getInit());
  node->memo = compiler.memoKey(op, shared.getArrayRef());
  nodes.push_back(std::move(node));
  return true;
}
