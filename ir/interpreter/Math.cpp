//===- Math.cpp - Elementary functions -------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/interpreter/Impl.h"
#include "ir/tgl/TglFunctions.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace tegula;
using namespace tegula::interp;

/// libm in double; one rounding to float.
template <typename Fn>
static std::unique_ptr<Node> function(Location loc, bool isDouble, Slot in, Slot out, Fn fn) {
  if (isDouble)
    return makeNode(loc,
                    [=](Frame &f, const Node *) { f.set(out, double(fn(f.get<double>(in)))); });
  return makeNode(loc,
                  [=](Frame &f, const Node *) { f.set(out, float(fn(double(f.get<float>(in))))); });
}

template <typename Fn>
static std::unique_ptr<Node> function2(Location loc, bool isDouble, Slot a, Slot b, Slot out,
                                       Fn fn) {
  if (isDouble)
    return makeNode(loc, [=](Frame &f, const Node *) {
      f.set(out, double(fn(f.get<double>(a), f.get<double>(b))));
    });
  return makeNode(loc, [=](Frame &f, const Node *) {
    f.set(out, float(fn(double(f.get<float>(a)), double(f.get<float>(b)))));
  });
}

/// Where erf is x, by halving.
static double erfinv(double x) {
  if (!(std::fabs(x) < 1))
    return std::fabs(x) == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x)
                             : std::numeric_limits<double>::quiet_NaN();
  double a = std::fabs(x), low = 0, high = 6;
  if (a < 1e-8)
    return x * 0.88622692545275801;
  for (int step = 0; step < 100; ++step) {
    double middle = (low + high) / 2;
    bool isBelow = a < 0.5 ? std::erf(middle) < a : std::erfc(middle) > 1 - a;
    (isBelow ? low : high) = middle;
  }
  return std::copysign((low + high) / 2, x);
}

/// The derivative of lgamma, by its recurrence and series; PyTorch's values at the poles.
static double digamma(double x) {
  if (x == 0)
    return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) {
    if (x == std::floor(x))
      return std::numeric_limits<double>::quiet_NaN();
    return digamma(1 - x) - M_PI / std::tan(M_PI * (x - std::nearbyint(x)));
  }
  double sum = 0;
  for (; x < 20; ++x)
    sum -= 1 / x;
  double z = 1 / (x * x);
  double series = z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240 - z / 132))));
  return std::isinf(x) ? x : sum + std::log(x) - 0.5 / x - series;
}

using Function = double (*)(double);

static Function functionOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Function>(op)
      .Case<math::AbsFOp>([](auto) { return +[](double x) { return std::fabs(x); }; })
      .Case<math::AcosOp>([](auto) { return +[](double x) { return std::acos(x); }; })
      .Case<math::AsinOp>([](auto) { return +[](double x) { return std::asin(x); }; })
      .Case<math::AcoshOp>([](auto) { return +[](double x) { return std::acosh(x); }; })
      .Case<math::AsinhOp>([](auto) { return +[](double x) { return std::asinh(x); }; })
      .Case<math::AtanhOp>([](auto) { return +[](double x) { return std::atanh(x); }; })
      .Case<math::AtanOp>([](auto) { return +[](double x) { return std::atan(x); }; })
      .Case<math::CbrtOp>([](auto) { return +[](double x) { return std::cbrt(x); }; })
      .Case<math::CeilOp>([](auto) { return +[](double x) { return std::ceil(x); }; })
      .Case<math::CosOp>([](auto) { return +[](double x) { return std::cos(x); }; })
      .Case<math::CoshOp>([](auto) { return +[](double x) { return std::cosh(x); }; })
      .Case<math::ErfOp>([](auto) { return +[](double x) { return std::erf(x); }; })
      .Case<math::ErfcOp>([](auto) { return +[](double x) { return std::erfc(x); }; })
      .Case<math::ExpOp>([](auto) { return +[](double x) { return std::exp(x); }; })
      .Case<math::Exp2Op>([](auto) { return +[](double x) { return std::exp2(x); }; })
      .Case<math::ExpM1Op>([](auto) { return +[](double x) { return std::expm1(x); }; })
      .Case<math::FloorOp>([](auto) { return +[](double x) { return std::floor(x); }; })
      .Case<math::LogOp>([](auto) { return +[](double x) { return std::log(x); }; })
      .Case<math::Log10Op>([](auto) { return +[](double x) { return std::log10(x); }; })
      .Case<math::Log1pOp>([](auto) { return +[](double x) { return std::log1p(x); }; })
      .Case<math::Log2Op>([](auto) { return +[](double x) { return std::log2(x); }; })
      .Case<math::RoundOp>([](auto) { return +[](double x) { return std::round(x); }; })
      .Case<math::RoundEvenOp>([](auto) { return +[](double x) { return std::nearbyint(x); }; })
      .Case<math::RsqrtOp>([](auto) { return +[](double x) { return 1 / std::sqrt(x); }; })
      .Case<math::SinOp>([](auto) { return +[](double x) { return std::sin(x); }; })
      .Case<math::SinhOp>([](auto) { return +[](double x) { return std::sinh(x); }; })
      .Case<math::SqrtOp>([](auto) { return +[](double x) { return std::sqrt(x); }; })
      .Case<math::TanOp>([](auto) { return +[](double x) { return std::tan(x); }; })
      .Case<math::TanhOp>([](auto) { return +[](double x) { return std::tanh(x); }; })
      .Case<tgl::ErfinvOp>([](auto) { return +erfinv; })
      .Case<tgl::LgammaOp>([](auto) { return +[](double x) { return std::lgamma(x); }; })
      .Case<tgl::DigammaOp>([](auto) { return +digamma; })
      .Case<math::TruncOp>([](auto) { return +[](double x) { return std::trunc(x); }; })
      .Default([](Operation *) { return nullptr; });
}

bool tegula::interp::compileMath(Compiler &compiler, Operation *op, Code &nodes) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0 ||
      !op->getResult(0).getType().isIntOrIndexOrFloat())
    return false;
  Location loc = op->getLoc();
  Slot in = compiler.slotOf(op->getOperand(0)), out = compiler.slotOf(op->getResult(0));
  Kind kind = Compiler::kindOf(op->getOperand(0).getType());
  bool isDouble = kind == Kind::F64;
  auto second = [&] { return compiler.slotOf(op->getOperand(1)); };
  auto predicate = [&](auto fn) {
    nodes.push_back(makeNode(loc, [=](Frame &f, const Node *) {
      f.set(out, int64_t(fn(isDouble ? f.get<double>(in) : double(f.get<float>(in)))));
    }));
    return true;
  };
  if (Function known = functionOf(op)) {
    nodes.push_back(function(loc, isDouble, in, out, known));
    return true;
  }
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<math::PowFOp>([&](auto) {
        nodes.push_back(function2(loc, isDouble, in, second(), out,
                                  [](double a, double b) { return std::pow(a, b); }));
        return true;
      })
      .Case<math::Atan2Op>([&](auto) {
        nodes.push_back(function2(loc, isDouble, in, second(), out,
                                  [](double a, double b) { return std::atan2(a, b); }));
        return true;
      })
      .Case<math::CopySignOp>([&](auto) {
        nodes.push_back(function2(loc, isDouble, in, second(), out,
                                  [](double a, double b) { return std::copysign(a, b); }));
        return true;
      })
      .Case<math::FPowIOp>([&](auto) {
        Slot exponent = second();
        nodes.push_back(makeNode(loc, [=](Frame &f, const Node *) {
          auto e = double(f.slots[exponent]);
          if (isDouble)
            f.set(out, std::pow(f.get<double>(in), e));
          else
            f.set(out, float(std::pow(double(f.get<float>(in)), e)));
        }));
        return true;
      })
      .Case<math::FmaOp>([&](auto) {
        Slot b = second(), c = compiler.slotOf(op->getOperand(2));
        nodes.push_back(makeNode(loc, [=](Frame &f, const Node *) {
          if (isDouble)
            f.set(out, std::fma(f.get<double>(in), f.get<double>(b), f.get<double>(c)));
          else
            f.set(out, std::fma(f.get<float>(in), f.get<float>(b), f.get<float>(c)));
        }));
        return true;
      })
      .Case<math::AbsIOp>([&](auto) {
        nodes.push_back(makeNode(loc, [=](Frame &f, const Node *) {
          int64_t value = f.slots[in];
          auto magnitude = int64_t(value < 0 ? 0 - uint64_t(value) : uint64_t(value));
          f.set(out, kind == Kind::I32 ? int64_t(int32_t(magnitude)) : magnitude);
        }));
        return true;
      })
      .Case<math::IsNaNOp>([&](auto) { return predicate([](double x) { return std::isnan(x); }); })
      .Case<math::IsInfOp>([&](auto) { return predicate([](double x) { return std::isinf(x); }); })
      .Case<math::IsFiniteOp>(
          [&](auto) { return predicate([](double x) { return std::isfinite(x); }); })
      .Default([](Operation *) { return false; });
}
