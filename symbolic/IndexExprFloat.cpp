//===- IndexExprFloat.cpp - Sizes that are computed in f64 ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `int(1.25*N*K/E)`: the arithmetic of doubles, operation by operation as Python does it, so that a
// size is the one that a model in Python has. To everything else such a number is one that it knows
// nothing of.
//
//===----------------------------------------------------------------------===//
#include "symbolic/IndexExprBuilder.h"
#include <bit>
#include <cmath>

using namespace tegula;
using FloatOp = IndexExpr::FloatOp;
using FloatStep = IndexExpr::FloatStep;

/// Integers up to here are doubles, each of them.
static constexpr double largest = 0x1p53;

static double floorDivide(double a, double b) {
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0))
    quotient -= 1;
  double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

static double modulo(double a, double b) {
  double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static double apply(FloatOp op, double a, double b) {
  switch (op) {
  case FloatOp::Add:
    return a + b;
  case FloatOp::Sub:
    return a - b;
  case FloatOp::Mul:
    return a * b;
  case FloatOp::Div:
    return a / b;
  case FloatOp::FloorDiv:
    return floorDivide(a, b);
  case FloatOp::Mod:
    return modulo(a, b);
  case FloatOp::Pow:
    return std::pow(a, b);
  case FloatOp::Max:
    return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
  case FloatOp::Min:
    return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
  case FloatOp::Neg:
    return -a;
  case FloatOp::Abs:
    return std::fabs(a);
  case FloatOp::Floor:
    return std::floor(a);
  case FloatOp::Ceil:
    return std::ceil(a);
  case FloatOp::Round:
    return std::nearbyint(a);
  case FloatOp::Trunc:
    return std::trunc(a);
  case FloatOp::Sqrt:
    return std::sqrt(a);
  case FloatOp::Exp:
    return std::exp(a);
  case FloatOp::Exp2:
    return std::exp2(a);
  case FloatOp::Log:
    return std::log(a);
  case FloatOp::Log2:
    return std::log2(a);
  }
  return NAN;
}

std::optional<int64_t> IndexExpr::runFloats(llvm::ArrayRef<int64_t> steps) {
  llvm::SmallVector<double, 8> stack;
  for (size_t at = 0; at + 1 < steps.size(); at += 2) {
    int64_t with = steps[at + 1];
    switch (static_cast<FloatStep>(steps[at])) {
    case FloatStep::Push:
      stack.push_back(static_cast<double>(with));
      break;
    case FloatStep::Number:
      stack.push_back(std::bit_cast<double>(with));
      break;
    case FloatStep::Apply: {
      auto op = static_cast<FloatOp>(with);
      size_t operands = op < FloatOp::Neg ? 2 : 1;
      if (stack.size() < operands)
        return std::nullopt;
      double b = operands == 2 ? stack.pop_back_val() : 0;
      stack.back() = apply(op, stack.back(), b);
      break;
    }
    default:
      return std::nullopt;
    }
  }
  if (stack.size() != 1 || !(std::fabs(stack[0]) <= largest) || stack[0] != std::trunc(stack[0]))
    return std::nullopt;
  return static_cast<int64_t>(stack[0]);
}

IndexExpr IndexExprBuilder::ofFloats(llvm::ArrayRef<IndexExpr> steps) {
  llvm::SmallVector<int64_t, 16> known;
  for (const IndexExpr &step : steps)
    if (std::optional<int64_t> value = step.asConstant())
      known.push_back(*value);
  if (known.size() == steps.size()) {
    std::optional<int64_t> value = IndexExpr::runFloats(known);
    return value ? IndexExpr(*value) : overflow();
  }
  Atom atom;
  atom.kind = IndexExpr::AtomKind::Float;
  atom.operands.append(steps.begin(), steps.end());
  return IndexExprBuilder::atom(std::move(atom));
}

IndexExpr IndexExpr::ofFloats(llvm::ArrayRef<std::pair<FloatStep, IndexExpr>> steps) {
  llvm::SmallVector<IndexExpr, 16> operands;
  for (const auto &[step, with] : steps) {
    operands.push_back(IndexExpr(static_cast<int64_t>(step)));
    operands.push_back(with);
  }
  return IndexExprBuilder::ofFloats(operands);
}
