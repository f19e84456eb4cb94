//===- Observed.h - What print and assert of a program saw -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_OBSERVE_OBSERVED_H
#define TEGULA_RUNTIME_OBSERVE_OBSERVED_H

#include "compiler/Compiler.h"
#include "runtime/Launch.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

namespace tegula {

/// The largest tensor that is made for what a statement looks at.
inline constexpr size_t maxObservedBytes = size_t(1) << 32;
/// Points that each `print` shows where nobody asks for more.
inline constexpr unsigned defaultPrintPoints = 20;

/// When a point was reached. Points of a parallel block or an equation count in the order of their
/// elements.
struct Moment {
  std::vector<int64_t> path;
  int64_t element;
  auto operator<=>(const Moment &) const = default;
};

/// One statement after a run: its tensors, and how far its axes go.
class Seen {
public:
  /// Copies what an argument of the kernel holds after the run.
  using Reader = llvm::function_ref<llvm::Expected<std::vector<char>>(unsigned argument)>;
  static llvm::Expected<Seen> read(const CompiledKernel &kernel, llvm::ArrayRef<int64_t> sizes,
                                   const KernelObservation &observation, Reader reader);

  const KernelObservation &observation() const { return *of; }
  checked::Observation::Kind kind() const { return of->statement.kind; }
  int64_t count() const { return happenings; }
  /// The first `most` points at which it happened.
  std::set<Moment> first(size_t most) const;
  /// All of them, in order.
  std::vector<Moment> all() const;
  std::vector<int64_t> indices(int64_t element) const;
  /// The least index of an axis, and the one behind its largest.
  std::pair<int64_t, int64_t> range(size_t axis) const {
    return {lows[axis], lows[axis] + extents[axis]};
  }
  /// `t=0, i=3`, of the axes that have names.
  std::string where(int64_t element) const;
  /// `h[i] = 0.5, "after", m = 3`.
  std::string values(int64_t element) const;
  struct Value {
    std::string text;                 // `h[i]`, or a text that is printed
    std::optional<std::string> value; // `0.5`; none of a text
  };
  std::vector<Value> valueList(int64_t element) const;
  /// What a point at which an assertion fails, or a value is what is looked for, is: `assertion
  /// fails at t=0: too large`.
  std::string verdict(int64_t element) const;

private:
  struct Data {
    DType dtype;
    std::vector<char> bytes;
  };
  Moment momentOf(int64_t element) const;
  static bool isTrueAt(const Data &tensor, int64_t element);
  bool happenedAt(int64_t element) const;

  const KernelObservation *of = nullptr;
  std::vector<int64_t> lows, extents;
  std::vector<Data> tensors; // `happened`, then those of the values
  struct ValueTensors {
    std::optional<size_t> value, isRead; // see Observation::Value
  };
  std::vector<ValueTensors> valueTensors;
  int64_t elements = 0, happenings = 0;
};

/// All statements of a kernel after a run.
class Observed {
public:
  static llvm::Expected<Observed> read(const CompiledKernel &kernel, llvm::ArrayRef<int64_t> sizes,
                                       Seen::Reader reader);

  llvm::ArrayRef<Seen> statements() const { return all; }
  /// What each `print` saw, at most `points` of its points, a line each, in order.
  std::string lines(unsigned points) const;
  /// The first point at which an assertion fails or a value is what is looked for: the diagnostic's
  /// text. Nothing where there is none.
  std::optional<std::string> failure() const;
  /// The same as one JSON object, `tegula.observed` (docs/checked.md).
  std::string json(unsigned points) const;

private:
  struct Point {
    Moment moment;
    size_t statement;
    auto operator<=>(const Point &) const = default;
  };
  std::vector<Point> printed(unsigned points) const;
  std::optional<Point> firstFailure() const;

  std::vector<Seen> all;
};

} // namespace tegula

#endif // TEGULA_RUNTIME_OBSERVE_OBSERVED_H
