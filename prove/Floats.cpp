//===- Floats.cpp - Operations on numbers --------------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglFunctions.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "prove/EvaluateImpl.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;

bool tegula::prove::isInfinity(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  auto number = constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr();
  return number && number.getValue().isInfinity();
}

bool tegula::prove::asksForInfinity(Value condition) {
  Operation *op = condition.getDefiningOp();
  if (!op)
    return false;
  if (isa<arith::CmpFOp>(op))
    return llvm::any_of(op->getOperands(), isInfinity);
  if (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op))
    return llvm::any_of(op->getOperands(), asksForInfinity);
  return isa<math::IsNaNOp, math::IsInfOp, math::IsFiniteOp>(op);
}

namespace {
/// Makes the step of one operation on Numbers.
struct Emitter {
  StepBuilder &builder;
  Operation *op;
  Steps &steps;

  Slot in(unsigned k) const { return builder.slotOf(op->getOperand(k)); }
  Slot out() const { return builder.slotOf(op->getResult(0)); }

  template <typename Fn> bool unary(Fn fn) const {
    Slot a = in(0), r = out();
    steps.push_back([=](Machine &m) { m.numbers[r] = fn(m.algebra, m.numbers[a]); });
    return true;
  }
  template <typename Fn> bool binary(Fn fn) const {
    Slot a = in(0), b = in(1), r = out();
    steps.push_back([=](Machine &m) { m.numbers[r] = fn(m.algebra, m.numbers[a], m.numbers[b]); });
    return true;
  }
  bool opaque(Algebra::Opaque function) const {
    return unary([=](Algebra &algebra, const Number &x) { return algebra.opaque(function, x); });
  }
  /// One way it changes a number, the other way it gives one that is not 0.
  bool rounding(Algebra::Rounding how) const {
    uint8_t *ways = builder.conditionOf(op, op->getOperands());
    return unary([=](Algebra &algebra, const Number &x) {
      Number whole = algebra.round(how, x);
      if (x.kind == Number::Finite && whole.real != x.real)
        note(ways, true);
      if (x.kind == Number::Finite && whole.real != 0)
        note(ways, false);
      return whole;
    });
  }
  /// `fn`, where the sign of operand `k` decides.
  template <typename Fn> bool signOf(unsigned k, Fn fn) const {
    bool asks = llvm::all_of(op->getUsers(), [](Operation *user) {
      return isa<arith::CmpFOp>(user) && asksForInfinity(user->getResult(0));
    });
    uint8_t *ways = asks ? nullptr : builder.conditionOf(op, op->getOperand(k));
    Slot a = in(0), b = in(op->getNumOperands() - 1), sign = in(k), r = out();
    steps.push_back([=](Machine &m) {
      const Number &x = m.numbers[sign];
      if (x.kind == Number::Finite && x.real != 0)
        note(ways, x.real < 0);
      m.numbers[r] = fn(m.algebra, m.numbers[a], m.numbers[b]);
    });
    return true;
  }

  /// The larger or smaller of two; where `skipsNan`, the number where the other one is nan.
  bool extremum(bool isMax, bool skipsNan) const {
    uint8_t *ways =
        builder.isOrderChosen(op) ? nullptr : builder.conditionOf(op, op->getOperands());
    Slot a = in(0), b = in(1), r = out();
    if (ways)
      builder.whereChosen(op, steps, [=](Machine &m) {
        const Number &x = m.numbers[a], &y = m.numbers[b];
        Comparison comparison = m.algebra.compare(x, y);
        if (comparison == Comparison::Less || comparison == Comparison::Greater)
          note(ways, comparison == (isMax ? Comparison::Less : Comparison::Greater));
      });
    steps.push_back([=](Machine &m) {
      const Number &x = m.numbers[a], &y = m.numbers[b];
      if (skipsNan && (x.kind == Number::NotANumber || y.kind == Number::NotANumber)) {
        m.numbers[r] = x.kind == Number::NotANumber ? y : x;
        return;
      }
      Comparison comparison = m.algebra.compare(x, y);
      if (comparison == Comparison::Unordered) {
        m.numbers[r] = m.algebra.nan();
        return;
      }
      bool takesSecond = comparison == (isMax ? Comparison::Less : Comparison::Greater);
      m.numbers[r] = takesSecond ? y : x;
    });
    return true;
  }

  bool compare(arith::CmpFPredicate predicate) const {
    uint8_t *ways = builder.conditionOf(op, op->getOperands());
    bool countsAlways = asksForInfinity(op->getResult(0));
    Slot a = in(0), b = in(1), r = out();
    steps.push_back([=](Machine &m) {
      bool is = holds(predicate, m.algebra.compare(m.numbers[a], m.numbers[b]));
      note(ways, is, countsAlways);
      m.integers[r] = is;
    });
    return true;
  }

  static bool holds(arith::CmpFPredicate predicate, Comparison order) {
    using P = arith::CmpFPredicate;
    bool isLess = order == Comparison::Less, isEqual = order == Comparison::Equal,
         isGreater = order == Comparison::Greater, isUnordered = order == Comparison::Unordered;
    switch (predicate) {
    case P::AlwaysFalse:
      return false;
    case P::OEQ:
      return isEqual;
    case P::OGT:
      return isGreater;
    case P::OGE:
      return isGreater || isEqual;
    case P::OLT:
      return isLess;
    case P::OLE:
      return isLess || isEqual;
    case P::ONE:
      return isLess || isGreater;
    case P::ORD:
      return !isUnordered;
    case P::UEQ:
      return isEqual || isUnordered;
    case P::UGT:
      return isGreater || isUnordered;
    case P::UGE:
      return !isLess;
    case P::ULT:
      return isLess || isUnordered;
    case P::ULE:
      return !isGreater;
    case P::UNE:
      return !isEqual;
    case P::UNO:
      return isUnordered;
    case P::AlwaysTrue:
      return true;
    }
    return false;
  }
};

Number halfOf(Algebra &algebra, const Number &x) {
  return algebra.mul(x, algebra.constant(0.5, true));
}
Number one(Algebra &algebra) { return algebra.integer(1); }

/// (exp(x) + sign * exp(-x)) / 2.
Number hyperbolic(Algebra &algebra, const Number &x, bool isCosine) {
  if (x.kind != Number::Finite)
    return isCosine ? algebra.abs(x) : x;
  Number up = algebra.exp(x), down = algebra.exp(algebra.neg(x));
  return halfOf(algebra, isCosine ? algebra.add(up, down) : algebra.sub(up, down));
}

/// log(x + sqrt(x*x + offset)).
Number areaFunction(Algebra &algebra, const Number &x, int64_t offset) {
  if (x.kind != Number::Finite)
    return x;
  Number under = algebra.add(algebra.mul(x, x), algebra.integer(offset));
  return algebra.log(algebra.add(x, algebra.sqrt(under)));
}

Number areaTangent(Algebra &algebra, const Number &x) {
  Number quotient = algebra.div(algebra.add(one(algebra), x), algebra.sub(one(algebra), x));
  return halfOf(algebra, algebra.log(quotient));
}
} // namespace

/// (exp(2x) - 1) / (exp(2x) + 1).
Number tegula::prove::hyperbolicTangent(Algebra &algebra, const Number &x) {
  if (x.kind == Number::Infinite)
    return algebra.integer(x.real < 0 ? -1 : 1);
  Number power = algebra.exp(algebra.add(x, x));
  if (power.kind != Number::Finite)
    return one(algebra);
  Number result =
      algebra.sub(one(algebra), algebra.div(algebra.integer(2), algebra.add(power, one(algebra))));
  double slope = std::max(0.0, 1 - double(result.real * result.real));
  result.error = x.error * slope + 3 * Algebra::unit;
  result.coarse = x.coarse * slope;
  result.single = x.single * slope;
  return result;
}

static bool buildArithmetic(const Emitter &emit) {
  return llvm::TypeSwitch<Operation *, bool>(emit.op)
      .Case<arith::AddFOp>([&](auto) {
        return emit.binary(
            [](Algebra &m, const Number &a, const Number &b) { return m.add(a, b); });
      })
      .Case<arith::SubFOp>([&](auto) {
        return emit.binary(
            [](Algebra &m, const Number &a, const Number &b) { return m.sub(a, b); });
      })
      .Case<arith::MulFOp>([&](auto) {
        return emit.binary(
            [](Algebra &m, const Number &a, const Number &b) { return m.mul(a, b); });
      })
      .Case<arith::DivFOp>([&](auto) {
        return emit.binary(
            [](Algebra &m, const Number &a, const Number &b) { return m.div(a, b); });
      })
      .Case<arith::RemFOp>([&](auto) {
        return emit.binary([](Algebra &m, const Number &a, const Number &b) {
          Number whole = m.round(Algebra::Rounding::Trunc, m.div(a, b));
          return m.sub(a, m.mul(b, whole));
        });
      })
      .Case<arith::NegFOp>(
          [&](auto) { return emit.unary([](Algebra &m, const Number &a) { return m.neg(a); }); })
      .Case<arith::MaximumFOp>([&](auto) { return emit.extremum(true, false); })
      .Case<arith::MinimumFOp>([&](auto) { return emit.extremum(false, false); })
      .Case<arith::MaxNumFOp>([&](auto) { return emit.extremum(true, true); })
      .Case<arith::MinNumFOp>([&](auto) { return emit.extremum(false, true); })
      .Case([&](arith::CmpFOp cmp) { return emit.compare(cmp.getPredicate()); })
      .Case([&](math::FmaOp fma) {
        Slot a = emit.in(0), b = emit.in(1), c = emit.in(2), r = emit.out();
        emit.steps.push_back([=](Machine &m) {
          m.numbers[r] = m.algebra.add(m.algebra.mul(m.numbers[a], m.numbers[b]), m.numbers[c]);
        });
        return true;
      })
      .Default([](Operation *) { return false; });
}

/// Functions that are powers, exponentials or logarithms.
static bool buildExponentials(const Emitter &emit) {
  auto scaledLog = [&](double scale) {
    return emit.unary(
        [=](Algebra &m, const Number &x) { return m.mul(m.log(x), m.constant(scale, true)); });
  };
  return llvm::TypeSwitch<Operation *, bool>(emit.op)
      .Case<math::ExpOp>(
          [&](auto) { return emit.unary([](Algebra &m, const Number &x) { return m.exp(x); }); })
      .Case<math::Exp2Op>([&](auto) {
        return emit.unary([](Algebra &m, const Number &x) {
          return m.exp(m.mul(x, m.constant(0.69314718055994530942, true)));
        });
      })
      .Case<math::ExpM1Op>([&](auto) {
        return emit.unary([](Algebra &m, const Number &x) { return m.sub(m.exp(x), one(m)); });
      })
      .Case<math::LogOp>(
          [&](auto) { return emit.unary([](Algebra &m, const Number &x) { return m.log(x); }); })
      .Case<math::Log1pOp>([&](auto) {
        return emit.unary([](Algebra &m, const Number &x) { return m.log(m.add(x, one(m))); });
      })
      .Case<math::Log2Op>([&](auto) { return scaledLog(1.4426950408889634074); })
      .Case<math::Log10Op>([&](auto) { return scaledLog(0.43429448190325182765); })
      .Case<math::SqrtOp>(
          [&](auto) { return emit.unary([](Algebra &m, const Number &x) { return m.sqrt(x); }); })
      .Case<math::RsqrtOp>([&](auto) {
        return emit.unary([](Algebra &m, const Number &x) { return m.div(one(m), m.sqrt(x)); });
      })
      .Case<math::PowFOp>([&](auto) {
        return emit.binary(
            [](Algebra &m, const Number &a, const Number &b) { return m.pow(a, b); });
      })
      .Case<math::FPowIOp>([&](auto) {
        Slot a = emit.in(0), b = emit.in(1), r = emit.out();
        emit.steps.push_back(
            [=](Machine &m) { m.numbers[r] = m.algebra.power(m.numbers[a], m.integers[b]); });
        return true;
      })
      .Case<math::TanhOp>([&](auto) { return emit.unary(hyperbolicTangent); })
      .Case<math::SinhOp>([&](auto) {
        return emit.unary([](Algebra &m, const Number &x) { return hyperbolic(m, x, false); });
      })
      .Case<math::CoshOp>([&](auto) {
        return emit.unary([](Algebra &m, const Number &x) { return hyperbolic(m, x, true); });
      })
      .Case<math::AsinhOp>([&](auto) {
        return emit.unary([](Algebra &m, const Number &x) { return areaFunction(m, x, 1); });
      })
      .Case<math::AcoshOp>([&](auto) {
        return emit.unary([](Algebra &m, const Number &x) { return areaFunction(m, x, -1); });
      })
      .Case<math::AtanhOp>([&](auto) { return emit.unary(areaTangent); })
      .Default([](Operation *) { return false; });
}

static bool buildFunctions(const Emitter &emit) {
  using Opaque = Algebra::Opaque;
  using Rounding = Algebra::Rounding;
  Slot in = noSlot, out = noSlot;
  auto predicate = [&](auto fn) {
    in = emit.in(0), out = emit.out();
    uint8_t *ways = emit.builder.conditionOf(emit.op, emit.op->getOperands());
    emit.steps.push_back([=](Machine &m) {
      bool is = fn(m.numbers[in].kind);
      note(ways, is, /*countsAlways=*/true);
      m.integers[out] = is;
    });
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(emit.op)
      .Case<math::AbsFOp>([&](auto) {
        return emit.signOf(0, [](Algebra &m, const Number &x, const Number &) { return m.abs(x); });
      })
      .Case<math::CopySignOp>([&](auto) {
        return emit.signOf(
            1, [](Algebra &m, const Number &a, const Number &b) { return m.copySign(a, b); });
      })
      .Case<math::Atan2Op>([&](auto) {
        return emit.binary(
            [](Algebra &m, const Number &a, const Number &b) { return m.atan2(a, b); });
      })
      .Case<math::SinOp>([&](auto) { return emit.opaque(Opaque::Sin); })
      .Case<math::CosOp>([&](auto) { return emit.opaque(Opaque::Cos); })
      .Case<math::TanOp>([&](auto) {
        return emit.unary([](Algebra &m, const Number &x) {
          return m.div(m.opaque(Opaque::Sin, x), m.opaque(Opaque::Cos, x));
        });
      })
      .Case<math::ErfOp>([&](auto) { return emit.opaque(Opaque::Erf); })
      .Case<math::ErfcOp>([&](auto) {
        return emit.unary(
            [](Algebra &m, const Number &x) { return m.sub(one(m), m.opaque(Opaque::Erf, x)); });
      })
      .Case<math::AtanOp>([&](auto) { return emit.opaque(Opaque::Atan); })
      .Case<math::AsinOp>([&](auto) { return emit.opaque(Opaque::Asin); })
      .Case<math::AcosOp>([&](auto) {
        return emit.unary([](Algebra &m, const Number &x) {
          Number right = m.mul(m.constant(M_PI, true), m.constant(0.5, true));
          return m.sub(right, m.opaque(Opaque::Asin, x));
        });
      })
      .Case<math::CbrtOp>([&](auto) { return emit.opaque(Opaque::Cbrt); })
      .Case<tgl::ErfinvOp>([&](auto) { return emit.opaque(Opaque::ErfInv); })
      .Case<tgl::LgammaOp>([&](auto) { return emit.opaque(Opaque::LGamma); })
      .Case<tgl::DigammaOp>([&](auto) { return emit.opaque(Opaque::DiGamma); })
      .Case<math::FloorOp>([&](auto) { return emit.rounding(Rounding::Floor); })
      .Case<math::CeilOp>([&](auto) { return emit.rounding(Rounding::Ceil); })
      .Case<math::TruncOp>([&](auto) { return emit.rounding(Rounding::Trunc); })
      .Case<math::RoundOp>([&](auto) { return emit.rounding(Rounding::Away); })
      .Case<math::RoundEvenOp>([&](auto) { return emit.rounding(Rounding::Nearest); })
      .Case<math::IsNaNOp>(
          [&](auto) { return predicate([](auto kind) { return kind == Number::NotANumber; }); })
      .Case<math::IsInfOp>(
          [&](auto) { return predicate([](auto kind) { return kind == Number::Infinite; }); })
      .Case<math::IsFiniteOp>(
          [&](auto) { return predicate([](auto kind) { return kind == Number::Finite; }); })
      .Default([](Operation *) { return false; });
}

bool tegula::prove::buildFloats(StepBuilder &builder, Operation *op, Steps &steps) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0 ||
      !StepBuilder::isNumber(op->getOperand(0)))
    return false;
  Emitter emit{builder, op, steps};
  return buildArithmetic(emit) || buildExponentials(emit) || buildFunctions(emit);
}
