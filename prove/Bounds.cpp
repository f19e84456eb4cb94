//===- Bounds.cpp - Between which reals values lie ----------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Bounds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"
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
  constexpr double largest = std::numeric_limits<double>::max();
  if (isLow ? value == infinite : value == -infinite) // a real that is beyond
    return isLow ? largest : -largest;
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
  return {std::min(a.low, b.low), std::max(a.high, b.high), a.isFinite && b.isFinite,
          a.isPositive && b.isPositive};
}

Bounds tegula::prove::largerOf(const Bounds &a, const Bounds &b) {
  return {std::max(a.low, b.low), std::max(a.high, b.high), a.isFinite && b.isFinite,
          a.isPositive || b.isPositive};
}

Bounds tegula::prove::smallerOf(const Bounds &a, const Bounds &b) {
  return {std::min(a.low, b.low), std::min(a.high, b.high), a.isFinite && b.isFinite,
          a.isPositive && b.isPositive};
}

Bounds tegula::prove::negated(const Bounds &a) { return {-a.high, -a.low, a.isFinite}; }

Bounds tegula::prove::sum(const Bounds &a, const Bounds &b) {
  return {rounded((long double)a.low + b.low, true), rounded((long double)a.high + b.high, false),
          a.isFinite && b.isFinite, (a.isPositive && b.low >= 0) || (b.isPositive && a.low >= 0)};
}

Bounds tegula::prove::product(const Bounds &a, const Bounds &b) {
  // 0 * inf is nan in floats; of reals that grow it may be anything.
  Bounds bounds = ofCorners({(long double)a.low * b.low, (long double)a.low * b.high,
                             (long double)a.high * b.low, (long double)a.high * b.high});
  bounds.isFinite = a.isFinite && b.isFinite;
  bounds.isPositive = a.isPositive && b.isPositive;
  return bounds;
}

Bounds tegula::prove::quotient(const Bounds &a, const Bounds &b) {
  if (b.high <= 0 && b.low < 0)
    return quotient(negated(a), negated(b));
  if (b.low == 0 && b.high > 0) // by zero it is an infinity
    return {a.low >= 0 ? 0 : -infinite, a.high <= 0 ? 0 : infinite,
            a.isFinite && b.isFinite && b.isPositive, a.isPositive && b.isPositive && b.isFinite};
  if (b.low <= 0)
    return {};
  Bounds bounds = ofCorners({(long double)a.low / b.low, (long double)a.low / b.high,
                             (long double)a.high / b.low, (long double)a.high / b.high});
  bounds.isFinite = a.isFinite && b.isFinite;
  bounds.isPositive = a.isPositive && b.isFinite;
  return bounds;
}

/// Of a function that never falls, computed within a few units; it stays within `range`.
static Bounds rising(long double (*fn)(long double), const Bounds &a, const Bounds &range) {
  auto at = [&](double x, bool isLow) {
    long double value = fn(x), slack = std::isinf(value) ? 0 : std::fabs(value) * 1e-17L;
    return rounded(isLow ? value - slack : value + slack, isLow);
  };
  return {std::max(range.low, at(a.low, true)), std::min(range.high, at(a.high, false))};
}

static Bounds rangeOf(StringRef name, const Bounds &a) {
  if (name == "neg" || name == "negf")
    return negated(a);
  if (name == "relu")
    return largerOf(a, Bounds::of(0));
  if (name == "abs" || name == "absf") {
    double far = std::max(std::fabs(a.low), std::fabs(a.high));
    return {std::max({0.0, a.low, -a.high}), far};
  }
  if (name == "exp")
    return rising(std::exp, a, Bounds::notNegative());
  if (name == "expm1")
    return rising(std::expm1, a, {-1, infinite});
  if (name == "tanh")
    return rising(std::tanh, a, {-1, 1});
  if (name == "erf")
    return rising(std::erf, a, {-1, 1});
  if (name == "sigmoid")
    return rising([](long double x) { return 1 / (1 + std::exp(-x)); }, a, {0, 1});
  if (name == "log" && a.low > 0)
    return rising(std::log, a, {});
  if (name == "log1p" && a.low > -1)
    return rising(std::log1p, a, {});
  if (name == "sqrt" && a.low >= 0)
    return rising(std::sqrt, a, Bounds::notNegative());
  return llvm::StringSwitch<Bounds>(name)
      .Cases("exp2", "sqrt", "rsqrt", Bounds::notNegative())
      .Cases("sin", "cos", {-1, 1})
      .Case("float", a)
      .Default({});
}

/// Whether a function of reals within the bounds is a real.
static bool isFiniteOn(StringRef name, const Bounds &a) {
  if (llvm::is_contained({"log", "log2", "log10", "rsqrt"}, name))
    return a.low > 0 || a.isPositive;
  if (name == "sqrt")
    return a.low >= 0;
  return llvm::is_contained({"neg", "negf", "relu", "abs", "absf", "exp", "expm1", "exp2", "tanh",
                             "erf", "sigmoid", "sin", "cos", "float"},
                            name);
}

Bounds tegula::prove::ofFunction(StringRef name, const Bounds &a) {
  Bounds bounds = rangeOf(name, a);
  bounds.isFinite = a.isFinite && isFiniteOn(name, a);
  bool keepsSign = llvm::is_contained({"relu", "abs", "absf", "sqrt", "rsqrt", "float"}, name);
  bounds.isPositive = bounds.isFinite && ((keepsSign && a.isPositive) ||
                                          llvm::is_contained({"exp", "exp2", "sigmoid"}, name));
  return bounds;
}

Bounds tegula::prove::ofSums(const Bounds &a) {
  return {a.low >= 0 ? 0 : -infinite, a.high <= 0 ? 0 : infinite, a.isFinite};
}

std::optional<int> tegula::prove::orderOf(const Bounds &a, const Bounds &b) {
  auto isInfinity = [](const Bounds &one) { return one.low == one.high && std::isinf(one.low); };
  if (isInfinity(a) && b.isFinite)
    return a.low < 0 ? -1 : 1;
  if (a.isFinite && isInfinity(b))
    return b.low < 0 ? 1 : -1;
  if (a.high < b.low)
    return -1;
  if (a.low > b.high)
    return 1;
  if (a.low == a.high && b.low == b.high && a.low == b.low && std::isfinite(a.low))
    return 0;
  return std::nullopt;
}

std::optional<bool> tegula::prove::compared(StringRef predicate, const Bounds &a, const Bounds &b) {
  std::optional<int> order = orderOf(a, b);
  if (predicate == "eq")
    return order ? std::optional(*order == 0) : std::nullopt;
  if (predicate == "ne")
    return order ? std::optional(*order != 0) : std::nullopt;
  if (predicate == "gt" || predicate == "ge")
    return compared(predicate == "gt" ? "lt" : "le", b, a);
  bool isStrict = predicate == "lt";
  if (isStrict ? a.high < b.low : a.high <= b.low)
    return true;
  if (isStrict ? a.low >= b.high : a.low > b.high)
    return false;
  return std::nullopt;
}

std::optional<int> tegula::prove::extremeOf(const Bounds &a, const Bounds &b, bool isMax) {
  if (isMax ? a.low >= b.high : a.high <= b.low)
    return 0;
  if (isMax ? b.low >= a.high : b.high <= a.low)
    return 1;
  return std::nullopt;
}

std::optional<int> tegula::prove::signOf(const Bounds &a) {
  if (a.low >= 0)
    return 0;
  return a.high <= 0 ? std::optional(1) : std::nullopt;
}

bool tegula::prove::isOneOnPieces(const Bounds &range,
                                  function_ref<std::optional<int>(const Bounds &)> outcomeOn) {
  std::optional<int> first;
  auto agrees = [&](double low, double high) {
    Bounds piece{std::max(low, range.low), std::min(high, range.high)};
    if (piece.low > piece.high)
      return true;
    std::optional<int> outcome = outcomeOn(piece);
    if (!outcome || (first && *first != *outcome))
      return false;
    first = outcome;
    return true;
  };
  // Thirty-two for each power of two where functions bend, then one.
  constexpr int nearest = -10, far = 6, farthest = 1023, shares = 32;
  for (int exponent = nearest; exponent < farthest; ++exponent) {
    int count = exponent < far ? shares : 1;
    double start = std::ldexp(1.0, exponent);
    for (int k = 0; k < count; ++k) {
      double low = start + start * k / count, high = start + start * (k + 1) / count;
      if (!agrees(low, high) || !agrees(-high, -low))
        return false;
    }
  }
  double near = std::ldexp(1.0, nearest);
  return agrees(-near, 0) && agrees(0, near) && first;
}

namespace {
/// Bounds of values in one kernel, maybe where one of them is within a piece.
class Ranges {
public:
  Ranges() = default;
  Ranges(Value leaf, const Bounds &piece) { known[leaf] = piece; }

  Bounds of(Value value, unsigned depth = 0);
  std::optional<bool> truthOf(Value condition, unsigned depth = 0);
  std::optional<int> outcomeOf(Operation *op);

private:
  Bounds compute(Operation *op, unsigned depth);
  Bounds ofRead(tgl::ReadOp read, unsigned depth);
  Bounds ofWrites(Value tensor, unsigned depth);
  Bounds ofReduce(tgl::ReduceOp reduce, unsigned depth);
  DenseMap<Value, Bounds> known;
};
} // namespace

/// Of what is written to a tensor, by calls, too; nothing is written by reads.
Bounds Ranges::ofWrites(Value tensor, unsigned depth) {
  Bounds bounds{infinite, -infinite};
  for (OpOperand &use : tensor.getUses()) {
    Operation *user = use.getOwner();
    if (isa<tgl::ReadOp>(user))
      continue;
    auto write = dyn_cast<tgl::WriteOp>(user);
    auto call = dyn_cast<tgl::CallOp>(user);
    auto callee =
        call ? SymbolTable::lookupNearestSymbolFrom<tgl::KernelOp>(call, call.getCalleeAttr())
             : tgl::KernelOp();
    if ((!write && !callee) || depth > maxDepth)
      return {};
    if (write && (write.getCombine() || write.getChecked()))
      return {};
    bounds = hull(
        bounds, write ? of(write.getValue(), depth + 1)
                      : ofWrites(callee.getBody().getArgument(use.getOperandNumber()), depth + 1));
    if (bounds.low == -infinite && bounds.high == infinite)
      return {};
  }
  return bounds;
}

Bounds Ranges::ofRead(tgl::ReadOp read, unsigned depth) {
  if (!read.getTensor().getDefiningOp<tgl::TempOp>() || read.getChecked())
    return {};
  Bounds bounds = ofWrites(read.getTensor(), depth);
  if (read.getFill())
    bounds = hull(bounds, of(read.getFill(), depth));
  if (read.getGuard() || !read.getExactNumerators().empty())
    bounds = hull(bounds, Bounds::of(0));
  return bounds.low <= bounds.high ? bounds : Bounds();
}

Bounds Ranges::ofReduce(tgl::ReduceOp reduce, unsigned depth) {
  Value reduced = reduce.getReduced();
  if (!isa<FloatType>(reduced.getType()))
    return {};
  Bounds bounds = of(reduced, depth);
  switch (reduce.getKind()) {
  case tgl::ReduceKind::Sum:
    return ofSums(bounds);
  case tgl::ReduceKind::Mean:
    return bounds;
  case tgl::ReduceKind::Max: // of nothing it is infinite
    return {-infinite, bounds.high};
  case tgl::ReduceKind::Min:
    return {bounds.low, infinite};
  default:
    return {};
  }
}

Bounds Ranges::of(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (auto found = known.find(value); found != known.end())
    return found->second;
  if (!op || depth > maxDepth || !isa<FloatType>(value.getType()))
    return {};
  known[value] = Bounds(); // where it is made of itself
  return known[value] = compute(op, depth);
}

Bounds Ranges::compute(Operation *op, unsigned depth) {
  auto in = [&](unsigned k) { return of(op->getOperand(k), depth + 1); };
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    double number = cast<FloatAttr>(constant.getValue()).getValueAsDouble();
    return std::isnan(number) ? Bounds() : Bounds::of(number);
  }
  if (auto read = dyn_cast<tgl::ReadOp>(op))
    return ofRead(read, depth + 1);
  if (isa<arith::MaximumFOp>(op))
    return largerOf(in(0), in(1));
  if (isa<arith::MinimumFOp>(op))
    return smallerOf(in(0), in(1));
  if (isa<arith::AddFOp>(op))
    return sum(in(0), in(1));
  if (isa<arith::SubFOp>(op))
    return sum(in(0), negated(in(1)));
  if (isa<arith::MulFOp>(op)) {
    Bounds bounds = product(in(0), in(1));
    bool isSquare = op->getOperand(0) == op->getOperand(1);
    return isSquare ? largerOf(bounds, Bounds{0, -infinite}) : bounds;
  }
  if (isa<arith::DivFOp>(op))
    return quotient(in(0), in(1));
  if (isa<arith::SelectOp>(op)) {
    std::optional<bool> truth = truthOf(op->getOperand(0), depth + 1);
    return truth ? in(*truth ? 1 : 2) : hull(in(1), in(2));
  }
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return in(0);
  if (auto reduce = dyn_cast<tgl::ReduceOp>(op))
    return ofReduce(reduce, depth + 1);
  if (auto scan = dyn_cast<tgl::ScanOp>(op); scan && scan.getKind() == tgl::ScanKind::Softmax)
    return {0, 1};
  if (op->getNumOperands() == 1 && op->getNumRegions() == 0 && !isa<tgl::CallOp>(op) &&
      (op->getName().getDialectNamespace() == "math" || isa<arith::NegFOp>(op)))
    return ofFunction(op->getName().stripDialect(), in(0));
  return {};
}

/// `olt` and `ult` are `lt`; empty where a predicate asks for nan.
static StringRef orderAskedBy(arith::CmpFPredicate predicate) {
  StringRef name = arith::stringifyCmpFPredicate(predicate);
  if (name.size() != 3 || name == "ord" || name == "uno")
    return "";
  return name.drop_front();
}

std::optional<bool> Ranges::truthOf(Value condition, unsigned depth) {
  Operation *op = condition.getDefiningOp();
  if (!op || depth > maxDepth)
    return std::nullopt;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto integer = dyn_cast<IntegerAttr>(constant.getValue());
    return integer ? std::optional(!integer.getValue().isZero()) : std::nullopt;
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    StringRef asked = orderAskedBy(compare.getPredicate());
    if (asked.empty())
      return std::nullopt;
    return compared(asked, of(compare.getLhs(), depth + 1), of(compare.getRhs(), depth + 1));
  }
  if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op))
    return std::nullopt;
  std::optional<bool> a = truthOf(op->getOperand(0), depth + 1),
                      b = truthOf(op->getOperand(1), depth + 1);
  if (isa<arith::XOrIOp>(op))
    return a && b ? std::optional(*a != *b) : std::nullopt;
  bool decisive = isa<arith::OrIOp>(op); // what one operand alone decides by
  if ((a && *a == decisive) || (b && *b == decisive))
    return decisive;
  return a && b ? std::optional(!decisive) : std::nullopt;
}

std::optional<int> Ranges::outcomeOf(Operation *op) {
  if (isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp, arith::MinNumFOp>(op))
    return extremeOf(of(op->getOperand(0)), of(op->getOperand(1)),
                     isa<arith::MaximumFOp, arith::MaxNumFOp>(op));
  if (op->getName().stripDialect() == "absf")
    return signOf(of(op->getOperand(0)));
  Value condition = isa<arith::SelectOp>(op) ? op->getOperand(0) : op->getResult(0);
  std::optional<bool> truth = truthOf(condition);
  return truth ? std::optional(int(*truth)) : std::nullopt;
}

/// Whether the elements of a result follow from those of its operands alone.
static bool isThrough(Operation *op) {
  return op && op->getNumOperands() > 0 && op->getNumRegions() == 0 && op->getNumResults() == 1 &&
         (op->getName().getDialectNamespace() == "math" ||
          op->getName().getDialectNamespace() == "arith") &&
         llvm::all_of(op->getOperandTypes(),
                      [](Type type) { return isa<FloatType>(type) || type.isInteger(1); });
}

static bool isConstant(Value value, Ranges &plain) {
  if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
    auto number = dyn_cast<FloatAttr>(constant.getValue());
    return !number || number.getValue().isFinite();
  }
  Bounds bounds = plain.of(value);
  return bounds.low == bounds.high;
}

bool tegula::prove::isDecided(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 || op->getNumOperands() == 0)
    return false;
  Ranges plain;
  ValueRange asked = op->getOperands();
  if (isa<arith::SelectOp>(op))
    asked = asked.take_front();
  else if (!isa<arith::CmpFOp, arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
                arith::MinNumFOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op) &&
           op->getName().stripDialect() != "absf")
    return false;
  if (plain.outcomeOf(op))
    return true;
  // What the outcome follows from, from the last value back: each that stands alone is tried.
  llvm::SmallSetVector<Value, 8> from;
  auto add = [&](Value value) {
    if (!isConstant(value, plain))
      from.insert(value);
  };
  llvm::for_each(asked, add);
  for (unsigned step = 0; step < 64 && !from.empty(); ++step) {
    Value last = from[0];
    for (Value value : from) {
      Operation *a = last.getDefiningOp(), *b = value.getDefiningOp();
      if (!a || (b && a->getBlock() == b->getBlock() && a->isBeforeInBlock(b)))
        last = value;
    }
    if (from.size() == 1 && isa<FloatType>(last.getType()) &&
        isOneOnPieces(plain.of(last),
                      [&](const Bounds &piece) { return Ranges(last, piece).outcomeOf(op); }))
      return true;
    if (!isThrough(last.getDefiningOp()))
      return false;
    from.remove(last);
    llvm::for_each(last.getDefiningOp()->getOperands(), add);
  }
  return false;
}
