//===- Subject.h - What a case holds against libtorch -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_SUBJECT_H
#define TEGULA_BENCH_SUBJECT_H

#include "bench/Runner.h"
#include "bench/reference/Reference.h"

namespace tegula::bench {

/// One set of inputs: a launch, and what libtorch computes of the same numbers.
class Subject {
public:
  explicit Subject(std::unique_ptr<Launch> launch) : own(std::move(launch)) {}
  virtual ~Subject() = default;
  Launch &launch() const { return *own; }

  /// To the results' type, between exact values and the launch's results.
  virtual unsigned roundings() const { return launch().roundings(); }
  /// Bounds on the errors of the launch's results that roundings may make, by result and element;
  /// nothing where none are known.
  virtual std::optional<std::vector<std::vector<double>>> errorBounds() { return std::nullopt; }
  /// What the launch's results should be; in float64 with the inputs cast up first.
  virtual std::optional<std::vector<Tensor>> expected(bool float64, std::string &error) = 0;
  /// Seconds of one call of libtorch's.
  virtual std::optional<double> time(std::string &error) = 0;

private:
  std::unique_ptr<Launch> own;
};

/// A kernel beside its reference. Inouts of the launch must be prepared before libtorch runs.
class ForwardSubject : public Subject {
public:
  ForwardSubject(std::unique_ptr<Launch> launch, const Reference &reference)
      : Subject(std::move(launch)), reference(reference) {}

  std::optional<std::vector<Tensor>> expected(bool float64, std::string &error) override {
    return reference.run(launch().refValues(), float64, error);
  }
  std::optional<double> time(std::string &error) override {
    std::optional<std::vector<double>> seconds = reference.time(launch().refValues(), 1, error);
    return seconds ? std::optional(seconds->front()) : std::nullopt;
  }

private:
  const Reference &reference;
};

} // namespace tegula::bench

#endif // TEGULA_BENCH_SUBJECT_H
