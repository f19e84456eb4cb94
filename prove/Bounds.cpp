//===- Bounds.cpp - Between which reals values lie ----------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Bounds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;

namespace {
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr unsigned maxDepth = 24;

/// A real as a double that is no larger, or no smaller.
double rounded(long double exact, bool isLow) {
  if (std::isnan(exact))
    return isLow ? -infinite : infinite;
  auto value = double(exact);
  if ((long double)value == exact || std::isinf(value))
    return value;
  return std::nextafter(value, isLow ? -infinite : infinite);
}

Bounds ofCorners(std::initializer_list<long double> corners) {
  long double low = infinite, high = -infinite;
  for (long double corner : corners) {
    if (std::isnan(corner))
      return {};
    low = std::min(low, corner);
    high = std::max(high, corner);
  }
  return {rounded(low, true), rounded(high, false)};
}
} // namespace

bool Bounds::isKnown() const { return low > -infinite || high < infinite; }

Bounds tegula::prove::hull(const Bounds &a, const Bounds &b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Bounds tegula::prove::largerOf(const Bounds &a, const Bounds &b) {
  return {std::max(a.low, b.low), std::max(a.high, b.high)};
}

Bounds tegula::prove::smallerOf(const Bounds &a, const Bounds &b) {
  return {std::min(a.low, b.low), std::min(a.high, b.high)};
}

Bounds tegula::prove::negated(const Bounds &a) { return {-a.high, -a.low}; }

Bounds tegula::prove::sum(const Bounds &a, const Bounds &b) {
  return {rounded((long double)a.low + b.low, true), rounded((long double)a.high + b.high, false)};
}

Bounds tegula::prove::product(const Bounds &a, const Bounds &b) {
  // 0 * inf is nan in floats; of reals that grow it may be anything.
  return ofCorners({(long double)a.low * b.low, (long double)a.low * b.high,
                    (long double)a.high * b.low, (long double)a.high * b.high});
}

Bounds tegula::prove::quotient(const Bounds &a, const Bounds &b) {
  if (b.low <= 0 && b.high >= 0)
    return {};
  return ofCorners({(long double)a.low / b.low, (long double)a.low / b.high,
                    (long double)a.high / b.low, (long double)a.high / b.high});
}

Bounds tegula::prove::ofFunction(StringRef name, const Bounds &a) {
  if (name == "neg" || name == "negf")
    return negated(a);
  if (name == "relu")
    return largerOf(a, Bounds::of(0));
  if (name == "abs" || name == "absf") {
    double far = std::max(std::fabs(a.low), std::fabs(a.high));
    return {std::max({0.0, a.low, -a.high}), far};
  }
  return llvm::StringSwitch<Bounds>(name)
      .Cases("exp", "exp2", "sqrt", "rsqrt", Bounds::notNegative())
      .Case("sigmoid", {0, 1})
      .Cases("tanh", "sin", "cos", "erf", {-1, 1})
      .Case("float", a)
      .Default({});
}

/// Of a temporary what is written to it, of other tensors nothing is known.
static Bounds boundsOfRead(tgl::ReadOp read, unsigned depth) {
  if (!read.getTensor().getDefiningOp<tgl::TempOp>() || read.getChecked())
    return {};
  Bounds bounds{infinite, -infinite};
  for (Operation *user : read.getTensor().getUsers()) {
    if (isa<tgl::ReadOp>(user))
      continue;
    auto write = dyn_cast<tgl::WriteOp>(user);
    if (!write || write.getCombine() || write.getChecked())
      return {};
    bounds = hull(bounds, boundsOf(write.getValue(), depth));
    if (!bounds.isKnown())
      return {};
  }
  if (read.getFill())
    bounds = hull(bounds, boundsOf(read.getFill(), depth));
  if (read.getGuard() || !read.getExactNumerators().empty())
    bounds = hull(bounds, Bounds::of(0));
  return bounds.low <= bounds.high ? bounds : Bounds();
}

Bounds tegula::prove::boundsOf(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op || depth > maxDepth || !isa<FloatType>(value.getType()))
    return {};
  auto in = [&](unsigned k) { return boundsOf(op->getOperand(k), depth + 1); };
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    double number = cast<FloatAttr>(constant.getValue()).getValueAsDouble();
    return std::isnan(number) ? Bounds() : Bounds::of(number);
  }
  if (auto read = dyn_cast<tgl::ReadOp>(op))
    return boundsOfRead(read, depth + 1);
  if (isa<arith::MaximumFOp>(op))
    return largerOf(in(0), in(1));
  if (isa<arith::MinimumFOp>(op))
    return smallerOf(in(0), in(1));
  if (isa<arith::AddFOp>(op))
    return sum(in(0), in(1));
  if (isa<arith::SubFOp>(op))
    return sum(in(0), negated(in(1)));
  if (isa<arith::MulFOp>(op))
    return op->getOperand(0) == op->getOperand(1) ? Bounds::notNegative() : product(in(0), in(1));
  if (isa<arith::DivFOp>(op))
    return quotient(in(0), in(1));
  if (isa<arith::SelectOp>(op))
    return hull(in(1), in(2));
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return in(0);
  if (op->getNumOperands() == 1 && op->getNumRegions() == 0 && !isa<tgl::CallOp>(op) &&
      (op->getName().getDialectNamespace() == "math" || isa<arith::NegFOp>(op)))
    return ofFunction(op->getName().stripDialect(), in(0));
  return {};
}
