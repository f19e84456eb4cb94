//===- ReferenceMaps.cpp - Maps of elements in a reference ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/ReferenceMaps.h"
#include "prove/EvaluateImpl.h"
#include <cmath>

using namespace tegula;
using namespace tegula::prove;

bool tegula::prove::isCondition(llvm::StringRef fn) {
  return llvm::is_contained(
      llvm::ArrayRef<llvm::StringRef>{
          "maximum",     "minimum",    "eq",    "ne",    "lt",   "le",    "gt",       "ge",
          "relu",        "isnan",      "isinf", "where", "abs",  "sign",  "bool",     "logical_not",
          "logical_and", "logical_or", "trunc", "floor", "ceil", "round", "trunc_int"},
      fn);
}

UnaryMap tegula::prove::unaryMap(llvm::StringRef fn) {
  using Opaque = Algebra::Opaque;
  using Rounding = Algebra::Rounding;
  return llvm::StringSwitch<UnaryMap>(fn)
      .Case("sigmoid",
            [](Algebra &m, const Number &x) {
              return m.div(m.integer(1), m.add(m.integer(1), m.exp(m.neg(x))));
            })
      .Case("neg", [](Algebra &m, const Number &x) { return m.neg(x); })
      .Case("abs", [](Algebra &m, const Number &x) { return m.abs(x); })
      .Case("exp", [](Algebra &m, const Number &x) { return m.exp(x); })
      .Case("log", [](Algebra &m, const Number &x) { return m.log(x); })
      .Case("sqrt", [](Algebra &m, const Number &x) { return m.sqrt(x); })
      .Case("log1p", [](Algebra &m, const Number &x) { return m.log(m.add(x, m.integer(1))); })
      .Case("expm1", [](Algebra &m, const Number &x) { return m.sub(m.exp(x), m.integer(1)); })
      .Case("exp2",
            [](Algebra &m, const Number &x) { return m.exp(m.mul(x, m.constant(M_LN2, true))); })
      .Case("log2",
            [](Algebra &m, const Number &x) { return m.mul(m.log(x), m.constant(M_LOG2E, true)); })
      .Case("log10",
            [](Algebra &m, const Number &x) { return m.mul(m.log(x), m.constant(M_LOG10E, true)); })
      .Case("rsqrt", [](Algebra &m, const Number &x) { return m.div(m.integer(1), m.sqrt(x)); })
      .Case("reciprocal", [](Algebra &m, const Number &x) { return m.div(m.integer(1), x); })
      .Case("sin", [](Algebra &m, const Number &x) { return m.opaque(Opaque::Sin, x); })
      .Case("cos", [](Algebra &m, const Number &x) { return m.opaque(Opaque::Cos, x); })
      .Case("erf", [](Algebra &m, const Number &x) { return m.opaque(Opaque::Erf, x); })
      .Case("atan", [](Algebra &m, const Number &x) { return m.opaque(Opaque::Atan, x); })
      .Case("asin", [](Algebra &m, const Number &x) { return m.opaque(Opaque::Asin, x); })
      .Case("lgamma", [](Algebra &m, const Number &x) { return m.opaque(Opaque::LGamma, x); })
      .Case("tanh", [](Algebra &m, const Number &x) { return hyperbolicTangent(m, x); })
      .Case("floor", [](Algebra &m, const Number &x) { return m.round(Rounding::Floor, x); })
      .Case("ceil", [](Algebra &m, const Number &x) { return m.round(Rounding::Ceil, x); })
      .Case("trunc", [](Algebra &m, const Number &x) { return m.round(Rounding::Trunc, x); })
      .Case("round", [](Algebra &m, const Number &x) { return m.round(Rounding::Nearest, x); })
      .Case("bf16",
            [](Algebra &m, const Number &x) { return m.stored(x, unsigned(DType::BF16), 0x1p-8); })
      .Case("f16",
            [](Algebra &m, const Number &x) { return m.stored(x, unsigned(DType::F16), 0x1p-11); })
      .Default(nullptr);
}

BinaryMap tegula::prove::binaryMap(llvm::StringRef fn) {
  return llvm::StringSwitch<BinaryMap>(fn)
      .Case("add", [](Algebra &m, const Number &a, const Number &b) { return m.add(a, b); })
      .Case("sub", [](Algebra &m, const Number &a, const Number &b) { return m.sub(a, b); })
      .Case("mul", [](Algebra &m, const Number &a, const Number &b) { return m.mul(a, b); })
      .Case("div", [](Algebra &m, const Number &a, const Number &b) { return m.div(a, b); })
      .Case("pow", [](Algebra &m, const Number &a, const Number &b) { return m.pow(a, b); })
      .Case("atan2", [](Algebra &m, const Number &a, const Number &b) { return m.atan2(a, b); })
      .Default(nullptr);
}

/// Marks what kind of number a function of one met.
static void noteUnary(llvm::StringRef fn, uint8_t *way, const Number &x) {
  if (x.kind != Number::Finite)
    return;
  if (fn == "abs" && x.real != 0)
    note(way, x.real < 0);
  bool rounds = fn == "trunc" || fn == "floor" || fn == "ceil" || fn == "round";
  if (rounds && x.real != std::floor(x.real))
    note(way, true);
  if (rounds && std::fabs(x.real) >= 1)
    note(way, false);
}

/// The larger or smaller of two.
static Number either(Algebra &m, const Number &a, const Number &b, bool isMax, uint8_t *way) {
  Comparison order = m.compare(a, b);
  if (order == Comparison::Unordered)
    return m.nan();
  bool takesSecond = order == (isMax ? Comparison::Less : Comparison::Greater);
  if (order != Comparison::Equal)
    note(way, takesSecond);
  return takesSecond ? b : a;
}

std::optional<Number> tegula::prove::mapToNumber(llvm::StringRef fn, Algebra &m,
                                                 llvm::ArrayRef<const Number *> numbers,
                                                 llvm::ArrayRef<int64_t> integers, uint8_t *way) {
  if (fn == "float")
    return m.integer(integers[0]);
  if (fn == "where")
    note(way, integers[0]);
  if (fn == "where")
    return numbers[1] && numbers[2] ? std::optional(*numbers[integers[0] ? 1 : 2]) : std::nullopt;
  if (!numbers[0])
    return std::nullopt;
  const Number &a = *numbers[0];
  if (fn == "relu")
    return either(m, a, m.integer(0), true, way);
  if (fn == "sign") {
    Comparison order = m.compare(a, m.integer(0));
    if (order != Comparison::Equal)
      note(way, order == Comparison::Less);
    return order == Comparison::Unordered
               ? m.nan()
               : m.integer(order == Comparison::Less ? -1 : order == Comparison::Greater);
  }
  if (numbers.size() == 1) {
    noteUnary(fn, way, a);
    UnaryMap known = unaryMap(fn);
    return known ? std::optional(known(m, a)) : std::nullopt;
  }
  if (!numbers[1])
    return std::nullopt;
  const Number &b = *numbers[1];
  auto quotient = [&](Algebra::Rounding how) { return m.round(how, m.div(a, b)); };
  if (BinaryMap known = binaryMap(fn))
    return known(m, a, b);
  if (fn == "maximum" || fn == "minimum")
    return either(m, a, b, fn == "maximum", way);
  if (fn == "fmod")
    return m.sub(a, m.mul(b, quotient(Algebra::Rounding::Trunc)));
  if (fn == "remainder")
    return m.sub(a, m.mul(b, quotient(Algebra::Rounding::Floor)));
  if (fn == "floor_divide")
    return quotient(Algebra::Rounding::Floor);
  return std::nullopt;
}

static std::optional<bool> ordered(llvm::StringRef fn, Comparison order) {
  bool isLess = order == Comparison::Less, isEqual = order == Comparison::Equal,
       isGreater = order == Comparison::Greater;
  return llvm::StringSwitch<std::optional<bool>>(fn)
      .Case("eq", isEqual)
      .Case("ne", !isEqual)
      .Case("lt", isLess)
      .Case("le", isLess || isEqual)
      .Case("gt", isGreater)
      .Case("ge", isGreater || isEqual)
      .Default(std::nullopt);
}

std::optional<int64_t> tegula::prove::mapToInteger(llvm::StringRef fn, Algebra &m,
                                                   llvm::ArrayRef<const Number *> numbers,
                                                   llvm::ArrayRef<int64_t> integers, uint8_t *way) {
  if (numbers[0]) {
    const Number &a = *numbers[0];
    auto marked = [&](bool is, bool countsAlways = false) {
      note(way, is, countsAlways);
      return int64_t(is);
    };
    if (fn == "trunc_int") {
      noteUnary("trunc", way, a);
      return m.toInteger(Algebra::Rounding::Trunc, a);
    }
    if (fn == "bool")
      return marked(m.compare(a, m.integer(0)) != Comparison::Equal);
    if (fn == "isnan")
      return marked(a.kind == Number::NotANumber, true);
    if (fn == "isinf")
      return marked(a.kind == Number::Infinite, true);
    if (fn == "logical_not")
      return marked(m.compare(a, m.integer(0)) == Comparison::Equal);
    if (numbers.size() < 2 || !numbers[1])
      return std::nullopt;
    Comparison order = m.compare(a, *numbers[1]);
    std::optional<bool> is = ordered(fn, order);
    if (is)
      note(way, *is);
    return is;
  }
  int64_t a = integers[0];
  if (fn == "where") {
    note(way, a);
    return a ? integers[1] : integers[2];
  }
  if (fn == "bool" || fn == "logical_not") {
    note(way, a);
    return (a != 0) == (fn == "bool");
  }
  if (fn == "neg")
    return int64_t(0 - uint64_t(a));
  if (fn == "abs") {
    if (a)
      note(way, a < 0);
    return a < 0 ? int64_t(0 - uint64_t(a)) : a;
  }
  if (fn == "floor" || fn == "trunc" || fn == "ceil" || fn == "round")
    return a;
  if (integers.size() < 2)
    return std::nullopt;
  int64_t b = integers[1];
  bool divides = fn == "floor_divide" || fn == "remainder" || fn == "fmod";
  if (divides && b == 0)
    return std::nullopt;
  bool isInexact = divides && a % b != 0 && (a < 0) != (b < 0);
  if (std::optional<bool> is = ordered(fn, a < b   ? Comparison::Less
                                           : a > b ? Comparison::Greater
                                                   : Comparison::Equal)) {
    note(way, *is);
    return *is;
  }
  if (divides)
    return fn == "fmod"        ? a % b
           : fn == "remainder" ? a % b + (isInexact ? b : 0)
                               : a / b - (isInexact ? 1 : 0);
  if (fn == "logical_and")
    note(way, a && b);
  if (fn == "logical_or")
    note(way, a || b);
  if ((fn == "maximum" || fn == "minimum") && a != b)
    note(way, (a < b) == (fn == "maximum"));
  auto x = uint64_t(a), y = uint64_t(b);
  return llvm::StringSwitch<std::optional<int64_t>>(fn)
      .Case("add", int64_t(x + y))
      .Case("sub", int64_t(x - y))
      .Case("mul", int64_t(x * y))
      .Case("maximum", std::max(a, b))
      .Case("minimum", std::min(a, b))
      .Cases({"logical_and"}, int64_t(a && b))
      .Case("logical_or", int64_t(a || b))
      .Case("logical_xor", int64_t(bool(a) != bool(b)))
      .Case("bitwise_and", a & b)
      .Case("bitwise_or", a | b)
      .Case("bitwise_xor", a ^ b)
      .Default(std::nullopt);
}
