//===- Instructions.cpp - What operations cost a thread -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/expected/Instructions.h"

#include "ir/tgl/TglFunctions.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;
namespace arith = mlir::arith;
namespace math = mlir::math;

/// Of ranges in which functions need no care: exponents of -|x|, divisors of 1 + exp(...).
static bool isNotPositive(mlir::Value value) {
  auto negated = value.getDefiningOp<arith::NegFOp>();
  return negated && negated.getOperand().getDefiningOp<math::AbsFOp>();
}
static bool isNearOne(mlir::Value value) {
  auto sum = value.getDefiningOp<arith::AddFOp>();
  return sum && any_of(sum->getOperands(),
                       [](mlir::Value operand) { return operand.getDefiningOp<math::ExpOp>(); });
}
static bool isConstant(mlir::Value value) { return value.getDefiningOp<arith::ConstantOp>(); }

/// A quotient of integers by a constant is a multiplication and shifts.
static constexpr double dividedByConstant = 4, dividedInteger = 20;

/// Quotients and remainders of an expression of axes.
static double instructionsOf(const ValueExpr &expr) {
  double own = 0;
  for (mlir::Value operand : expr.operands())
    own += stepAlong(expr, operand) ? 0 : dividedByConstant;
  return own;
}

/// Made of the hardware's power of two and reciprocal (passes/schedule/ApproximateFunctions.h).
static bool isShort(mlir::Operation *op) {
  auto flagged = dyn_cast<arith::ArithFastMathInterface>(op);
  arith::FastMathFlagsAttr flags =
      flagged ? flagged.getFastMathFlagsAttr() : arith::FastMathFlagsAttr();
  return flags && bitEnumContainsAll(flags.getValue(), arith::FastMathFlags::afn);
}

static std::optional<double> instructionsOfShort(mlir::Operation *op) {
  if (!isShort(op))
    return std::nullopt;
  return TypeSwitch<mlir::Operation *, std::optional<double>>(op)
      .Case<math::ExpOp>([](auto) { return 3; })
      .Case<math::TanhOp>([](auto) { return 18; })
      .Case<math::ErfOp>([](auto) { return 24; })
      .Case<arith::DivFOp>([](arith::DivFOp quotient) -> std::optional<double> {
        return isNearOne(quotient.getRhs()) ? std::optional(2.0) : std::nullopt;
      })
      .Default([](auto) { return std::nullopt; });
}

double tegula::instructionsOf(mlir::Operation *op) {
  if (std::optional<double> ofShort = instructionsOfShort(op))
    return *ofShort;
  return TypeSwitch<mlir::Operation *, double>(op)
      .Case<arith::ConstantOp, YieldOp, arith::IndexCastOp, arith::BitcastOp, arith::NegFOp,
            math::AbsFOp>([](auto) { return 0; }) // a sign is part of what uses it
      .Case<IndexOp>([](IndexOp index) { return ::instructionsOf(getValueExpr(index)); })
      .Case<arith::AddFOp, arith::SubFOp>([](mlir::Operation *sum) {
        // One instruction multiplies and adds.
        return any_of(sum->getOperands(),
                      [](mlir::Value operand) {
                        return operand.getDefiningOp<arith::MulFOp>() && operand.hasOneUse();
                      })
                   ? 0
                   : 1;
      })
      .Case<arith::DivFOp>([](arith::DivFOp quotient) {
        return isNearOne(quotient.getRhs())     ? 5
               : !isConstant(quotient.getRhs()) ? 10
               : quotient.getType().isF64()     ? 4
                                                : 2;
      })
      .Case<arith::DivSIOp, arith::RemSIOp, arith::DivUIOp, arith::RemUIOp, arith::FloorDivSIOp>(
          [](mlir::Operation *quotient) {
            return isConstant(quotient->getOperand(1)) ? dividedByConstant : dividedInteger;
          })
      .Case<arith::RemFOp>([](auto) { return 60; })
      .Case<math::SqrtOp>([](auto) { return 9; })
      .Case<math::ExpOp>([](math::ExpOp op) { return isNotPositive(op.getOperand()) ? 13 : 18; })
      .Case<math::RsqrtOp, math::Exp2Op>([](auto) { return 18; })
      .Case<math::LogOp, math::Log1pOp>([](auto) { return 30; })
      .Case<math::Log2Op, math::Log10Op>([](auto) { return 38; })
      .Case<math::ExpM1Op>([](auto) { return 24; })
      .Case<math::TanhOp>([](auto) { return 28; })
      .Case<math::ErfOp>([](auto) { return 33; })
      .Case<math::SinOp, math::CosOp, math::TanOp>([](auto) { return 60; })
      .Case<math::PowFOp>([](auto) { return 80; })
      .Case<math::FloorOp, math::CeilOp, math::RoundEvenOp, math::RoundOp, math::TruncOp,
            math::CopySignOp, math::FmaOp>([](auto) { return 1; })
      .Case<RandomOp>([](auto) { return 60; })
      .Default([](mlir::Operation *other) {
        StringRef dialect = other->getName().getDialectNamespace();
        if (dialect == "math" || other->hasTrait<FloatFunction>())
          return 30.0;
        return other->getNumResults() ? 1.0 : 0.0;
      });
}

double tegula::instructionsInTiles(mlir::Operation *op) {
  return isa<math::ExpOp, math::Exp2Op>(op) ? 6 : ::tegula::instructionsOf(op);
}

double tegula::latencyOf(mlir::Operation *op) {
  constexpr double independent = 1.5; // instructions of a function that need not wait
  double own = ::tegula::instructionsOf(op);
  return own ? Latency::instruction * std::max(1.0, own / independent) : 0;
}

double tegula::conversionInstructions(mlir::Type element, bool isWrite) {
  unsigned bits = element.getIntOrFloatBitWidth();
  if (bits >= 32)
    return 0;
  bool isFloat = isa<mlir::FloatType>(element);
  if (bits == 16)
    return isWrite && isFloat ? 0.5 : 1; // two at a time
  if (bits == 8) // bytes of floats are clamped, put together two at a time, and stored one by one
    return !isFloat ? 1 : isWrite ? 7 : 1.5;
  return 3;
}

double tegula::quotientInstructions(const ValueExpr &subscript) {
  return any_of(subscript.operands(),
                [&](mlir::Value operand) { return !stepAlong(subscript, operand); })
             ? dividedByConstant
             : 0;
}

/// Instructions of an address that is not a constant apart from another.
static constexpr double ofAddress = 1.5;

double tegula::addressInstructions(ReadOp read) {
  constexpr double filled = 3, checked = 4;
  return ofAddress + (read.getFill() ? filled : 0) + (read.getChecked() ? checked : 0) +
         (read.getGuard() ? 1 : 0);
}

double tegula::addressInstructions(WriteOp write) {
  constexpr double checked = 4;
  return ofAddress + (write.getChecked() ? checked : 0);
}

bool tegula::isOperation(mlir::Operation *op) {
  return isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         op->getNumOperands() > 0 &&
         isa<mlir::FloatType>(op->getOperand(op->getNumOperands() - 1).getType()) &&
         !isa<mlir::CastOpInterface, arith::SelectOp>(op);
}
