//===- Compare.cpp - How far a result is from the truth -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Compare.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace tegula::bench {

const std::array<const char *, 9> ulpLabels = {"0", "1", "2", "4", "8", "16", "64", "1024", "more"};

namespace {

constexpr int64_t ulpLimits[] = {0, 1, 2, 4, 8, 16, 64, 1024};

/// `17 [0, 17]`
std::string position(int64_t element, ArrayRef<int64_t> shape) {
  std::vector<int64_t> subscripts(shape.size());
  int64_t rest = element;
  for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim])
    subscripts[dim] = rest % shape[dim];
  return shapeText(subscripts);
}

std::string describe(const char *what, int64_t i, const Tensor &kernel, double ours, double torchs,
                     double exact) {
  std::string text;
  raw_string_ostream stream(text);
  stream << what << " at " << position(i, kernel.shape()) << ": the kernel has ";
  stream << format("%.9g", ours) << ", libtorch " << format("%.9g", torchs) << ", exact is "
         << format("%.9g", exact);
  return text;
}

bool sameKind(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::isinf(a) ? a == b : std::isfinite(b);
}

/// Rounded to what the type can hold.
std::vector<double> rounded(ArrayRef<double> values, const Tensor &like) {
  Tensor stored = std::move(*Tensor::make(like.dtype(), like.shape()));
  stored.store(values);
  return stored.doubles();
}

/// Distance between neighbours of `value` in the type (at least that of its smallest normal
/// numbers).
double spacing(double value, DType type) {
  int least = type == DType::F64      ? -1022
              : type == DType::F16    ? -14
              : type == DType::F8E4M3 ? -6
              : type == DType::F8E5M2 ? -14
                                      : -126;
  int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(2 * unitRoundoff(type), exponent);
}

ErrorMeasure measure(ArrayRef<double> values, ArrayRef<double> exact, ArrayRef<double> nearest,
                     DType type) {
  ErrorMeasure result;
  double squares = 0, errors = 0;
  int64_t finite = 0;
  for (double value : exact)
    if (std::isfinite(value)) {
      squares += value * value;
      ++finite;
    }
  double rms = finite ? std::sqrt(squares / finite) : 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(exact[i]) || !std::isfinite(nearest[i]) || !std::isfinite(values[i]))
      continue; // judged by kind
    double error = std::fabs(values[i] - exact[i]), scale = std::max(std::fabs(exact[i]), rms);
    errors += error * error;
    double relative = error == 0 ? 0 : error / scale;
    if (relative > result.worst) {
      result.worst = relative;
      result.worstAt = i;
    }
    double ulps = std::fabs(values[i] - nearest[i]) / spacing(nearest[i], type);
    size_t bin = 0;
    while (bin < std::size(ulpLimits) && ulps > ulpLimits[bin])
      ++bin;
    ++result.ulps[bin];
  }
  result.norm = errors == 0 ? 0 : std::sqrt(errors / squares);
  return result;
}

} // namespace

Comparison compare(const Tensor &kernel, const Tensor &libtorch, const Tensor &exact, double depth,
                   bool bitExact, unsigned roundings, ArrayRef<double> bounds) {
  Comparison result;
  auto fail = [&](std::string why) {
    result.reason = std::move(why);
    return result;
  };
  if (kernel.shape() != exact.shape())
    return fail("the kernel's result has shape " + shapeText(kernel.shape()) +
                ", the reference's " + shapeText(exact.shape()));
  std::vector<double> ours = kernel.doubles(), torchs = libtorch.doubles(), truth = exact.doubles();

  double tolerance = kernel.dtype() == DType::F32 || kernel.dtype() == DType::F64 ? 1e-4 : 1e-2;
  result.kernelBench = true;
  for (size_t i = 0; i < ours.size(); ++i)
    if (!(ours[i] == torchs[i] ||
          std::fabs(ours[i] - torchs[i]) <= tolerance + tolerance * std::fabs(torchs[i])))
      result.kernelBench = false;

  if (!isFloat(kernel.dtype())) {
    if (isFloat(libtorch.dtype()))
      return fail(("the kernel's result is " + toString(kernel.dtype()) + ", the reference's " +
                   toString(libtorch.dtype()))
                      .str());
    std::vector<int64_t> a = kernel.integers(), t = libtorch.integers();
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i] != t[i] && double(a[i]) != truth[i])
        return fail(describe("a wrong integer", i, kernel, ours[i], torchs[i], truth[i]));
    result.passed = true;
    return result;
  }

  std::vector<double> nearest = rounded(truth, kernel);
  for (size_t i = 0; i < ours.size(); ++i)
    if (!sameKind(ours[i], nearest[i]) && !sameKind(ours[i], torchs[i]))
      return fail(describe("not finite where it should be, or finite where it should not", i,
                           kernel, ours[i], torchs[i], truth[i]));
  result.kernel = measure(ours, truth, nearest, kernel.dtype());
  result.libtorch = measure(torchs, truth, nearest, kernel.dtype());
  if (bitExact) {
    for (size_t i = 0; i < ours.size(); ++i)
      if (ours[i] != nearest[i] && !(std::isnan(ours[i]) && std::isnan(nearest[i])))
        return fail(describe("not exact", i, kernel, ours[i], torchs[i], truth[i]));
    result.passed = true;
    return result;
  }

  double roundoff = roundings * unitRoundoff(kernel.dtype());
  double step =
      unitRoundoff(kernel.dtype() == DType::F64 ? DType::F64 : DType::F32) * std::sqrt(1.0 + depth);
  result.normBound = std::max(2 * result.libtorch.norm, roundoff + 2 * step);
  result.worstBound = std::max(2 * result.libtorch.worst, roundoff + 16 * step);
  if (bounds.size() == ours.size() && !bounds.empty()) {
    // They are of first order, and the reference's double has an error, too.
    constexpr double slack = 1.01;
    result.isBounded = all_of(seq<size_t>(0, ours.size()), [&](size_t i) {
      return !std::isfinite(ours[i]) || !std::isfinite(truth[i]) ||
             std::fabs(ours[i] - truth[i]) <= slack * bounds[i];
    });
    result.passed = result.isBounded;
    if (result.passed)
      return result;
  }
  result.isFar = true;
  if (result.kernel.worst > result.worstBound) {
    int64_t i = result.kernel.worstAt;
    return fail(describe("the worst element", i, kernel, ours[i], torchs[i], truth[i]) +
                formatv(" (error {0:e2}, allowed {1:e2}, libtorch's worst {2:e2})",
                        result.kernel.worst, result.worstBound, result.libtorch.worst)
                    .str());
  }
  if (result.kernel.norm > result.normBound)
    return fail(formatv("the error's norm is {0:e2}, allowed {1:e2}, libtorch's {2:e2}",
                        result.kernel.norm, result.normBound, result.libtorch.norm)
                    .str());
  result.isFar = false;
  result.passed = true;
  return result;
}

} // namespace tegula::bench
