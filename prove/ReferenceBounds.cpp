//===- ReferenceBounds.cpp - Which conditions of a reference have one way alone -------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As Bounds.cpp finds it in a kernel: each tensor is one value here.
//
//===----------------------------------------------------------------------===//
#include "prove/Bounds.h"
#include "prove/ReferenceProgram.h"
#include "llvm/ADT/DenseMap.h"
#include <cmath>
#include <set>

using namespace llvm;
using namespace tegula;
using namespace tegula::prove;

namespace {
/// Bounds of tensors, maybe where the elements of one are within a piece.
class Ranges {
public:
  explicit Ranges(const ReferenceProgram &program) : program(program) {}
  Ranges(const ReferenceProgram &program, unsigned leaf, const Bounds &piece) : program(program) {
    known[leaf] = piece;
  }

  Bounds of(unsigned value) {
    if (auto found = known.find(value); found != known.end())
      return found->second;
    Bounds bounds = compute(program.instructions[value]);
    known[value] = bounds;
    return bounds;
  }
  std::optional<bool> truthOf(unsigned value);
  std::optional<int> outcomeOf(unsigned value);

private:
  Bounds compute(const Instruction &one);
  const ReferenceProgram &program;
  DenseMap<unsigned, Bounds> known;
};
} // namespace

static constexpr double infinite = std::numeric_limits<double>::infinity();

static Bounds ofConstants(ArrayRef<double> values) {
  if (values.empty() || any_of(values, [](double value) { return std::isnan(value); }))
    return {};
  Bounds bounds = Bounds::of(values[0]);
  for (double value : values)
    bounds = hull(bounds, Bounds::of(value));
  return bounds;
}

Bounds Ranges::compute(const Instruction &one) {
  auto in = [&](unsigned k) { return of(one.in[k]); };
  if (one.op == "const")
    return ofConstants(one.isFloat ? one.values
                                   : std::vector<double>(one.integers.begin(), one.integers.end()));
  if (one.op == "gather") {
    Bounds bounds = in(0);
    for (unsigned k = 1; k < one.in.size(); ++k)
      bounds = hull(bounds, in(k));
    if (!is_contained(*one.places, 0))
      return bounds;
    return std::isfinite(one.fill) ? hull(bounds, Bounds::of(one.fill)) : Bounds();
  }
  if (!one.isFloat)
    return {};
  if (one.op == "input")
    return {-infinite, infinite, /*isFinite=*/true};
  if (one.op == "bmm")
    return {-infinite, infinite, in(0).isFinite && in(1).isFinite};
  if (one.op == "reduce" && (one.fn == "max" || one.fn == "min"))
    return one.n ? in(0) : Bounds();
  if (one.op == "reduce" && one.fn == "sum") {
    Bounds bounds = ofSums(in(0));
    bounds.isPositive = one.n && in(0).isPositive;
    return bounds;
  }
  if (one.op == "reduce" && one.fn == "var" && one.correction >= 0 && one.n > one.correction)
    return {0, infinite, in(0).isFinite};
  if (one.op != "map")
    return {};
  StringRef fn = one.fn;
  if (one.in.size() == 1)
    return ofFunction(fn, in(0));
  if (fn == "maximum")
    return largerOf(in(0), in(1));
  if (fn == "minimum")
    return smallerOf(in(0), in(1));
  if (fn == "add")
    return sum(in(0), in(1));
  if (fn == "sub")
    return sum(in(0), negated(in(1)));
  if (fn == "mul") {
    Bounds bounds = product(in(0), in(1));
    return one.in[0] == one.in[1] ? largerOf(bounds, {0, -Bounds().high}) : bounds;
  }
  if (fn == "div")
    return quotient(in(0), in(1));
  if (fn == "where") {
    std::optional<bool> truth = truthOf(one.in[0]);
    return truth ? in(*truth ? 1 : 2) : hull(in(1), in(2));
  }
  return {};
}

std::optional<bool> Ranges::truthOf(unsigned value) {
  const Instruction &one = program.instructions[value];
  if (one.op == "gather") {
    std::optional<bool> truth = truthOf(one.in[0]);
    for (unsigned source : ArrayRef(one.in).drop_front())
      truth = truthOf(source) == truth ? truth : std::nullopt;
    bool hasFill = is_contained(*one.places, 0);
    return hasFill && truth != (one.fill != 0) ? std::nullopt : truth;
  }
  if (one.op == "reduce" && (one.fn == "max" || one.fn == "min") && one.n) // any and all
    return truthOf(one.in[0]);
  if (one.op != "map")
    return std::nullopt;
  StringRef fn = one.fn;
  bool isOfNumbers = program.instructions[one.in[0]].isFloat;
  if ((fn == "isnan" || fn == "isinf") && of(one.in[0]).isFinite)
    return false;
  if (is_contained({"eq", "ne", "lt", "le", "gt", "ge"}, fn))
    return isOfNumbers ? compared(fn, of(one.in[0]), of(one.in[1])) : std::nullopt;
  if (fn == "bool" || fn == "logical_not") {
    std::optional<bool> truth =
        isOfNumbers ? compared("ne", of(one.in[0]), Bounds::of(0)) : truthOf(one.in[0]);
    return truth ? std::optional(*truth == (fn == "bool")) : std::nullopt;
  }
  if (fn != "logical_and" && fn != "logical_or")
    return std::nullopt;
  std::optional<bool> a = truthOf(one.in[0]), b = truthOf(one.in[1]);
  bool decisive = fn == "logical_or";
  if ((a && *a == decisive) || (b && *b == decisive))
    return decisive;
  return a && b ? std::optional(!decisive) : std::nullopt;
}

std::optional<int> Ranges::outcomeOf(unsigned value) {
  const Instruction &one = program.instructions[value];
  StringRef fn = one.fn;
  if (fn == "where" || !one.isFloat) {
    std::optional<bool> truth = truthOf(fn == "where" ? one.in[0] : value);
    return truth ? std::optional(int(*truth)) : std::nullopt;
  }
  if (fn == "maximum" || fn == "minimum")
    return extremeOf(of(one.in[0]), of(one.in[1]), fn == "maximum");
  if (fn == "relu")
    return extremeOf(of(one.in[0]), Bounds::of(0), /*isMax=*/true);
  if (fn == "abs")
    return signOf(of(one.in[0]));
  return fn == "sign" ? orderOf(of(one.in[0]), Bounds::of(0)) : std::nullopt;
}

/// Whether pieces of one tensor's range leave a condition one way alone.
static bool isDecidedByOne(const ReferenceProgram &program, unsigned condition, Ranges &plain) {
  // What the outcome follows from, from the last tensor back: each that stands alone is tried.
  std::set<unsigned> from;
  auto add = [&](unsigned value) {
    Bounds bounds = plain.of(value);
    if (bounds.low != bounds.high)
      from.insert(value);
  };
  ArrayRef<unsigned> asked = program.instructions[condition].in;
  for_each(program.instructions[condition].fn == "where" ? asked.take_front() : asked, add);
  for (unsigned step = 0; step < 64 && !from.empty(); ++step) {
    unsigned last = *from.rbegin();
    const Instruction &one = program.instructions[last];
    if (from.size() == 1 && one.isFloat && one.op != "const" &&
        isOneOnPieces(plain.of(last), [&](const Bounds &piece) {
          return Ranges(program, last, piece).outcomeOf(condition);
        }))
      return true;
    if (one.op != "map")
      return false;
    from.erase(last);
    for_each(one.in, add);
  }
  return false;
}

void ReferenceProgram::findDecided() {
  Ranges plain(*this);
  isDecided.assign(instructions.size(), false);
  for (auto [place, one] : enumerate(instructions)) {
    if (one.op != "map")
      continue;
    auto value = unsigned(place);
    if (plain.outcomeOf(value)) {
      isDecided[place] = true;
      continue;
    }
    if (one.isFloat &&
        !is_contained({"maximum", "minimum", "relu", "abs", "sign", "where"}, one.fn))
      continue;
    isDecided[place] = isDecidedByOne(*this, value, plain);
  }
}
