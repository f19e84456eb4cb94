//===- Equal.h - Whether two programs compute one function --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both programs are evaluated at points of several sizes, each point over two or more chains of
// primes.
// Where all residues agree, they are one function there but for a probability that is stated. Where
// some do not, the reals at the same point decide: numbers that are apart are a counterexample, and
// numbers that are not leave it undecided.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_EQUAL_H
#define TEGULA_PROVE_EQUAL_H

#include "prove/Draw.h"

namespace tegula::prove {

/// One side of a comparison.
class Subject {
public:
  virtual ~Subject() = default;
  virtual Evaluation run(const Point &point, Algebra &algebra, const EvaluateOptions &options) = 0;
  /// What can be told of the sizes of a point without running anything: that they are refused, or
  /// that a run would surely take too many steps. The point's tensors have shapes alone.
  virtual Evaluation outline(const Point &point, Algebra &algebra, EvaluateOptions options) = 0;
  /// Whether the runs since the last call count.
  virtual void settle(Coverage::Kind kind) = 0;
  /// The types of conversions whose border was never met.
  virtual std::multiset<std::string> unboundConversions() const { return {}; }
  /// Places of conditions that went one way alone in all runs.
  virtual std::vector<std::string> oneSided() const = 0;
  /// Whether its outputs have types of floats; those of PyTorch are f32 here.
  virtual bool hasTypes() const { return false; }
  /// Bits of the mantissa that products are allowed to keep, by statements `precision`.
  virtual unsigned productBits() const { return 23; }
  /// Whether other sizes take long to prepare for, so that few should be drawn.
  virtual bool isSlowToPrepare() const { return false; }
  /// The kernel whose guards say which sizes it takes, if any do.
  virtual tgl::KernelOp guarded() const { return {}; }
};

class KernelSubject final : public Subject {
public:
  explicit KernelSubject(tgl::KernelOp kernel) : kernel(kernel) {}
  Evaluation run(const Point &point, Algebra &algebra, const EvaluateOptions &options) override {
    return evaluate(kernel, point.inputs, point.scalars, algebra, coverage, options);
  }
  Evaluation outline(const Point &point, Algebra &algebra, EvaluateOptions options) override {
    options.isOutline = true;
    return run(point, algebra, options);
  }
  std::vector<std::string> oneSided() const override { return coverage.oneSided(); }
  void settle(Coverage::Kind kind) override { coverage.settle(kind); }
  std::multiset<std::string> unboundConversions() const override {
    return coverage.unboundConversions();
  }
  bool hasTypes() const override { return true; }
  unsigned productBits() const override;
  tgl::KernelOp guarded() const override { return kernel; }

private:
  tgl::KernelOp kernel;
  Coverage coverage;
};

enum class Verdict {
  Equal,         // one function at these sizes
  EqualOnPoints, // as above, where comparisons and roundings come out as at the points drawn
  Undecided,
  LessPrecise, // equal, but the first program rounds to a type of fewer bits
  NotEqual,
};
llvm::StringRef toString(Verdict verdict);

/// One point at which both were evaluated.
struct Trial {
  SizeKind sizeKind;
  PointKind kind;
  Sizes sizes;
  uint64_t seed = 0; // of the data; the primes' are mixed from it and the number of their round
  int64_t tileSize = 0;
  uint64_t elements = 0, finite = 0;
  double degree = 0; // of the outputs, at most
  /// The largest bound on the error that the first program makes in its types, to first order and
  /// for any order of its sums, and the largest value.
  double error = 0, magnitude = 0;
};

/// Where two programs differ.
struct Counterexample {
  size_t trial = 0;
  std::string output;
  std::vector<int64_t> index;
  double first = 0, second = 0;
};

struct Judgement {
  Verdict verdict = Verdict::Undecided;
  std::string reason;               // of Undecided, LessPrecise and NotEqual
  std::vector<std::string> untaken; // conditions that went one way alone
  std::vector<Trial> trials;
  std::optional<Counterexample> counterexample;
  uint64_t comparisons = 0, roundings = 0;
  /// Among infinite data one program gave inf or nan, or chose by a nan, where the other one did
  /// not.
  bool differsAtInfinity = false;
  unsigned chains = 0; // of primes that each point was evaluated over
  /// The probability that a point of unequal programs looks equal is at most 2^-this.
  double bits = 0;
};

struct EqualOptions {
  uint64_t seed = 0;
  Sizes sizes;                  // that are given
  bool hasPlainScalars = false; // as drawPoint has them
  EvaluateOptions evaluate;
};

/// `kernel` says which parameters there are; `second` takes the same ones in their order.
Judgement compare(tgl::KernelOp kernel, Subject &first, Subject &second,
                  const EqualOptions &options);

} // namespace tegula::prove

#endif // TEGULA_PROVE_EQUAL_H
