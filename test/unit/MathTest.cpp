//===- MathTest.cpp - Errors of the elementary functions in ULP ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every function runs as vector code of the host over a sample of all f32 bit patterns (all 2^32
// with TEGULA_MATH_EXHAUSTIVE=1) and over random doubles, and is compared with long double results
// of the C library. TEGULA_MATH_TABLE=1 prints the table of docs/math.md.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/HostTarget.h"
#include "codegen/cpu/Jit.h"
#include "codegen/math/LowerMath.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include "gtest/gtest.h"
#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace llvm;
using namespace tegula;

namespace {

constexpr unsigned lanes = 16;

/// `void f(ptr x, ptr y, ptr result, i64 vectors)` over vectors of 16.
struct Compiled {
  std::unique_ptr<LoadedCode> code;
  template <typename T> void run(const T *x, const T *y, T *result, int64_t vectors) const {
    reinterpret_cast<void (*)(const T *, const T *, T *, int64_t)>(address)(x, y, result, vectors);
  }
  void *address = nullptr;
};

Compiled compile(MathFunction function, bool isDouble, unsigned width = lanes) {
  LLVMContext context;
  Module module("math", context);
  IRBuilder<> b(context);
  Type *element = isDouble ? b.getDoubleTy() : b.getFloatTy();
  Type *type = width == 1 ? element : FixedVectorType::get(element, width);
  Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty();
  auto *f = Function::Create(FunctionType::get(b.getVoidTy(), {ptr, ptr, ptr, i64}, false),
                             GlobalValue::ExternalLinkage, "run", module);
  auto *entry = BasicBlock::Create(context, "entry", f);
  auto *loop = BasicBlock::Create(context, "loop", f);
  auto *done = BasicBlock::Create(context, "done", f);
  b.SetInsertPoint(entry);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  PHINode *k = b.CreatePHI(i64, 2);
  k->addIncoming(b.getInt64(0), entry);
  SmallVector<Value *> arguments;
  Align align(element->getScalarSizeInBits() / 8);
  for (unsigned a = 0; a < numArguments(function); ++a)
    arguments.push_back(b.CreateAlignedLoad(type, b.CreateGEP(type, f->getArg(a), k), align));
  Value *value = b.CreateCall(getMathFunction(module, function, type), arguments);
  b.CreateAlignedStore(value, b.CreateGEP(type, f->getArg(2), k), align);
  Value *next = b.CreateAdd(k, b.getInt64(1));
  k->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpEQ(next, f->getArg(3)), done, loop);
  b.SetInsertPoint(done);
  b.CreateRetVoid();

  const HostTarget &target = HostTarget::get();
  auto machine = target.createMachine();
  applyTarget(module, target, *machine);
  optimize(module, *machine);
  Compiled result;
  result.code = cantFail(LoadedCode::load(emitObject(module, *machine)));
  result.address = cantFail(result.code->lookup("run"));
  return result;
}

/// Newton's steps for erf(y) = x, on whichever side of 1 loses nothing.
long double inverseOfErf(long double x) {
  long double a = fabsl(x);
  if (!(a < 1))
    return a == 1 ? copysignl(INFINITY, x) : NAN;
  if (a < 1e-12L)
    return x * 0.886226925452758013649083741670572591L;
  // Winitzki's approximation.
  long double w = logl((1 - a) * (1 + a)), t = 2 / (0.147L * M_PIl) + w / 2;
  long double y = sqrtl(sqrtl(t * t - w / 0.147L) - t);
  for (int step = 0; step < 6; ++step) {
    long double error = a < 0.5L ? erfl(y) - a : (1 - a) - erfcl(y);
    y -= error / (2 / sqrtl(M_PIl) * expl(-y * y));
  }
  return copysignl(y, x);
}

/// By the recurrence up to 40, and the series there.
long double derivativeOfLgamma(long double x) {
  if (x == 0)
    return copysignl(INFINITY, -x);
  if (x < 0) {
    if (x == floorl(x))
      return NAN;
    return derivativeOfLgamma(1 - x) - M_PIl / tanl(M_PIl * (x - nearbyintl(x)));
  }
  if (std::isinf(x))
    return x;
  long double sum = 0;
  for (; x < 40; ++x)
    sum -= 1 / x;
  long double z = 1 / (x * x);
  long double series =
      z *
      (1.0L / 12 -
       z * (1.0L / 120 - z * (1.0L / 252 - z * (1.0L / 240 - z * (1.0L / 132 - z * 691 / 32760)))));
  return sum + logl(x) - 0.5L / x - series;
}

/// Beside zeros results are as near as numbers of this size. Below 0, where zeros are many, they
/// are differences of logarithms, those of digamma of x and cotangents; above it digamma alone has
/// a zero beside which it is a difference.
double minUnit(MathFunction function, double x) {
  constexpr double zero = 1.4616321449683623;
  if (function == MathFunction::Digamma)
    return x < 0 ? std::max(0.5, std::log(1 - x)) : std::abs(x - zero) < 0.5 ? 0.5 : 0;
  return function == MathFunction::Lgamma && x < 0 ? 0.5 : 0;
}

long double reference(MathFunction function, long double x, long double y) {
  switch (function) {
  case MathFunction::Exp:
  case MathFunction::ExpLow:
  case MathFunction::ExpShort:
    return expl(x);
  case MathFunction::Exp2:
    return exp2l(x);
  case MathFunction::Expm1:
    return expm1l(x);
  case MathFunction::Log:
    return logl(x);
  case MathFunction::Log2:
    return log2l(x);
  case MathFunction::Log1p:
    return log1pl(x);
  case MathFunction::Log1pExp:
  case MathFunction::Log1pExpShort:
    return log1pl(expl(-fabsl(x)));
  case MathFunction::Sin:
    return sinl(x);
  case MathFunction::Cos:
    return cosl(x);
  case MathFunction::Tan:
    return tanl(x);
  case MathFunction::Tanh:
  case MathFunction::TanhShort:
    return tanhl(x);
  case MathFunction::Erf:
  case MathFunction::ErfShort:
    return erfl(x);
  case MathFunction::Log10:
    return log10l(x);
  case MathFunction::Asin:
    return asinl(x);
  case MathFunction::Acos:
    return acosl(x);
  case MathFunction::Atan:
    return atanl(x);
  case MathFunction::Atan2:
    return atan2l(x, y);
  case MathFunction::Sinh:
    return sinhl(x);
  case MathFunction::Cosh:
    return coshl(x);
  case MathFunction::Asinh:
    return asinhl(x);
  case MathFunction::Acosh:
    return acoshl(x);
  case MathFunction::Atanh:
    return atanhl(x);
  case MathFunction::Erfc:
    return erfcl(x);
  case MathFunction::Erfinv:
    return inverseOfErf(x);
  case MathFunction::Lgamma:
    return lgammal(x);
  case MathFunction::Digamma:
    return derivativeOfLgamma(x);
  case MathFunction::Pow:
    return powl(x, y);
  case MathFunction::Rsqrt:
    return 1 / sqrtl(x);
  case MathFunction::Fmod:
    return fmodl(x, y);
  }
  return 0;
}

/// Distance in units in the last place of T at `exact`; 0 where the class agrees (NaN with NaN,
/// infinities, signs of zero), huge where it does not.
template <typename T> double ulps(T value, long double exact, double least = 0) {
  constexpr double wrong = 1e30;
  if (std::isnan(exact))
    return std::isnan(value) ? 0 : wrong;
  if (std::isnan(value))
    return wrong;
  T rounded = static_cast<T>(exact);
  if (std::abs(exact) < least && std::isfinite(value))
    return static_cast<double>(std::abs(value - exact) /
                               (least * std::numeric_limits<T>::epsilon()));
  if (value == rounded)
    return rounded == 0 && std::signbit(value) != std::signbit(rounded) ? wrong
           : std::isinf(value)
               ? 0
               : static_cast<double>(
                     std::abs((static_cast<long double>(value) - exact)) /
                     std::ldexp(1.0L, std::max(std::ilogb(exact),
                                               std::numeric_limits<T>::min_exponent - 1) -
                                          (std::numeric_limits<T>::digits - 1)));
  int exponent = exact == 0 ? std::numeric_limits<T>::min_exponent - 1 : std::ilogb(exact);
  exponent = std::clamp(exponent, std::numeric_limits<T>::min_exponent - 1,
                        std::numeric_limits<T>::max_exponent - 1);
  long double unit = std::ldexp(1.0L, exponent - (std::numeric_limits<T>::digits - 1));
  // The rounding of an overflow counts as the next number after the largest.
  long double got = std::isinf(value)
                        ? std::copysign(std::ldexp(1.0L, std::numeric_limits<T>::max_exponent),
                                        static_cast<long double>(value))
                        : static_cast<long double>(value);
  if (std::isinf(rounded))
    exact = std::copysign(std::ldexp(1.0L, std::numeric_limits<T>::max_exponent), exact);
  return static_cast<double>(std::abs(got - exact) / unit);
}

template <typename T> struct Worst {
  double error = 0;
  T x = 0, y = 0, value = 0;
};

template <typename T>
Worst<T> measure(MathFunction function, const Compiled &compiled, const std::vector<T> &xs,
                 const std::vector<T> &ys) {
  std::vector<T> results(xs.size());
  compiled.run(xs.data(), ys.data(), results.data(), xs.size() / lanes);
  Worst<T> worst;
  for (size_t k = 0; k < xs.size(); ++k) {
    double error = ulps<T>(results[k], reference(function, xs[k], ys.empty() ? T(0) : ys[k]),
                           minUnit(function, double(xs[k])));
    if (error > worst.error)
      worst = {error, xs[k], ys.empty() ? T(0) : ys[k], results[k]};
  }
  return worst;
}

template <typename T> std::vector<T> specialValues() {
  using L = std::numeric_limits<T>;
  std::vector<T> values = {T(0),
                           T(0.5),
                           T(1),
                           T(1.5),
                           T(2),
                           T(3),
                           T(4),
                           T(0.1),
                           T(10),
                           T(1e5),
                           T(1e30),
                           L::min(),
                           L::denorm_min(),
                           L::max(),
                           L::infinity(),
                           L::quiet_NaN(),
                           T(0.55),
                           T(1) - L::epsilon(),
                           T(1) + L::epsilon(),
                           T(16777216),
                           T(16777217),
                           T(88),
                           T(89),
                           T(104),
                           T(128),
                           T(150),
                           T(709),
                           T(711),
                           T(745),
                           T(1023),
                           T(1075)};
  for (size_t k = 0, n = values.size(); k < n; ++k)
    values.push_back(-values[k]);
  return values;
}

struct Case {
  MathFunction function;
  double single, twice; // bounds in ULP
};

std::vector<Case> cases() {
  return {{MathFunction::Exp, 1, 1},        {MathFunction::Exp2, 1, 1},
          {MathFunction::Expm1, 1.5, 1.5},  {MathFunction::Log, 1, 1},
          {MathFunction::Log2, 1, 1},       {MathFunction::Log1p, 1.5, 1.5},
          {MathFunction::Log1pExp, 2, 2},   {MathFunction::Sin, 1, 1},
          {MathFunction::Cos, 1, 1},        {MathFunction::Tan, 2.5, 2.5},
          {MathFunction::Tanh, 2, 2},       {MathFunction::Erf, 2, 2},
          {MathFunction::Pow, 1, 2},        {MathFunction::Rsqrt, 1.5, 1.5},
          {MathFunction::Fmod, 0, 0},       {MathFunction::Log10, 1.5, 1.5},
          {MathFunction::Asin, 2, 2},       {MathFunction::Acos, 2, 2},
          {MathFunction::Atan, 2, 2},       {MathFunction::Atan2, 2.5, 2.5},
          {MathFunction::Sinh, 2.5, 2.5},   {MathFunction::Cosh, 2, 2},
          {MathFunction::Asinh, 0.51, 3},   {MathFunction::Acosh, 0.51, 3.5},
          {MathFunction::Atanh, 0.51, 3.5}, {MathFunction::Erfc, 0.51, 4},
          {MathFunction::Erfinv, 0.51, 4},  {MathFunction::Lgamma, 0.51, 8},
          {MathFunction::Digamma, 0.51, 10}};
}

class Math : public testing::TestWithParam<Case> {};

TEST_P(Math, SingleWithinBound) {
  auto [function, bound, unused] = GetParam();
  Compiled compiled = compile(function, false);
  bool exhaustive = getenv("TEGULA_MATH_EXHAUSTIVE") != nullptr;
  Worst<float> worst;
  auto keep = [&](Worst<float> w) {
    if (w.error > worst.error)
      worst = w;
  };
  if (numArguments(function) == 2) {
    std::mt19937_64 random(1);
    std::vector<float> xs, ys;
    for (float x : specialValues<float>())
      for (float y : specialValues<float>()) {
        xs.push_back(x);
        ys.push_back(y);
      }
    for (int k = 0; k < (exhaustive ? 1 << 26 : 1 << 20); ++k) {
      float x = std::bit_cast<float>(static_cast<uint32_t>(random()));
      // Mostly exponents that keep the result in range.
      float scale = 120 / std::max(1e-3f, std::abs(std::log2(std::abs(x))));
      float y = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f * scale;
      if (k % 8 == 0 || (function == MathFunction::Fmod && k % 2))
        y = std::bit_cast<float>(static_cast<uint32_t>(random()));
      if (k % 8 == 1)
        y = static_cast<float>(static_cast<int>(random() % 21) - 10);
      xs.push_back(x);
      ys.push_back(y);
    }
    xs.resize(xs.size() / lanes * lanes);
    keep(measure<float>(function, compiled, xs, ys));
  } else {
    uint64_t step = exhaustive ? 1 : 1021;
    constexpr size_t chunk = 1 << 16;
    std::vector<float> xs = specialValues<float>();
    for (uint64_t pattern = 0; pattern < (uint64_t(1) << 32); pattern += step) {
      xs.push_back(std::bit_cast<float>(static_cast<uint32_t>(pattern)));
      if (xs.size() == chunk || pattern + step >= (uint64_t(1) << 32)) {
        xs.resize((xs.size() + lanes - 1) / lanes * lanes);
        keep(measure<float>(function, compiled, xs, {}));
        xs.clear();
      }
    }
  }
  if (getenv("TEGULA_MATH_TABLE"))
    printf("| %s | f32 | %.3f | %a %a |\n", toString(function).data(), worst.error, worst.x,
           worst.y);
  EXPECT_LE(worst.error, bound) << toString(function).str() << '(' << worst.x << ", " << worst.y
                                << ") gave " << worst.value << ", expected "
                                << static_cast<float>(reference(function, worst.x, worst.y));
}

TEST_P(Math, DoubleWithinBound) {
  auto [function, unused, bound] = GetParam();
  Compiled compiled = compile(function, true);
  std::mt19937_64 random(2);
  std::vector<double> xs, ys;
  size_t count = getenv("TEGULA_MATH_EXHAUSTIVE") ? size_t(1) << 26 : size_t(1) << 19;
  if (numArguments(function) == 2) {
    for (double x : specialValues<double>())
      for (double y : specialValues<double>()) {
        xs.push_back(x);
        ys.push_back(y);
      }
  } else {
    xs = specialValues<double>();
  }
  while (xs.size() < count) {
    double x = std::bit_cast<double>(random());
    // Half of the arguments from the range where the functions vary, with all exponents down to
    // 2^-40.
    if (xs.size() % 2)
      x = std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52,
                     static_cast<int>(random() % 50) - 40) *
          (random() % 2 ? 1 : -1);
    if (numArguments(function) == 2) {
      double scale = 1000 / std::max(1e-3, std::abs(std::log2(std::abs(x))));
      double y = static_cast<double>(static_cast<int64_t>(random())) * 0x1p-63 * scale;
      if (xs.size() % 8 == 1)
        y = static_cast<double>(static_cast<int>(random() % 21) - 10);
      if (function == MathFunction::Fmod && xs.size() % 4 == 2)
        y = std::bit_cast<double>(random());
      ys.push_back(y);
    }
    xs.push_back(x);
  }
  xs.resize(xs.size() / lanes * lanes);
  Worst<double> worst = measure<double>(function, compiled, xs, ys);
  if (getenv("TEGULA_MATH_TABLE"))
    printf("| %s | f64 | %.3f | %a %a |\n", toString(function).data(), worst.error, worst.x,
           worst.y);
  EXPECT_LE(worst.error, bound) << toString(function).str() << '(' << worst.x << ", " << worst.y
                                << ") gave " << worst.value << ", expected "
                                << static_cast<double>(reference(function, worst.x, worst.y));
}

/// One lane and sixteen give the same bits: remainders of loops do not show.
TEST_P(Math, ScalarEqualsVector) {
  auto [function, unused1, unused2] = GetParam();
  Compiled vector = compile(function, false), scalar = compile(function, false, 1);
  std::mt19937_64 random(3);
  std::vector<float> xs(1 << 14), ys(1 << 14), a(1 << 14), b(1 << 14);
  for (size_t k = 0; k < xs.size(); ++k) {
    xs[k] = std::bit_cast<float>(static_cast<uint32_t>(random()));
    ys[k] = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-28f;
  }
  vector.run(xs.data(), ys.data(), a.data(), xs.size() / lanes);
  scalar.run(xs.data(), ys.data(), b.data(), xs.size());
  for (size_t k = 0; k < xs.size(); ++k)
    ASSERT_TRUE((std::isnan(a[k]) && std::isnan(b[k])) ||
                std::bit_cast<uint32_t>(a[k]) == std::bit_cast<uint32_t>(b[k]))
        << xs[k] << ' ' << ys[k];
}

/// Which of the two is emitted does not show.
TEST(MathTogether, Log1pExpIsLog1pOfExp) {
  Compiled together = compile(MathFunction::Log1pExp, false),
           exp = compile(MathFunction::Exp, false), log = compile(MathFunction::Log1p, false);
  std::vector<float> xs = specialValues<float>();
  for (uint64_t pattern = 0; pattern < (uint64_t(1) << 32); pattern += 4093)
    xs.push_back(std::bit_cast<float>(static_cast<uint32_t>(pattern)));
  for (float x = 0; x < 20; x += 0x1p-14f)
    xs.push_back(x);
  xs.resize(xs.size() / lanes * lanes);
  std::vector<float> negative(xs.size()), powers(xs.size()), apart(xs.size()), once(xs.size());
  for (size_t k = 0; k < xs.size(); ++k)
    negative[k] = -std::abs(xs[k]);
  exp.run(negative.data(), xs.data(), powers.data(), xs.size() / lanes);
  log.run(powers.data(), xs.data(), apart.data(), xs.size() / lanes);
  together.run(xs.data(), xs.data(), once.data(), xs.size() / lanes);
  for (size_t k = 0; k < xs.size(); ++k)
    ASSERT_TRUE((std::isnan(apart[k]) && std::isnan(once[k])) ||
                std::bit_cast<uint32_t>(apart[k]) == std::bit_cast<uint32_t>(once[k]))
        << xs[k];
}

template <typename T> void expectExpLowIsExp(const std::vector<T> &given) {
  std::vector<T> xs = given, usual, low;
  std::erase_if(xs, [](T x) { return x > T(maxExpLow); });
  xs.resize(xs.size() / lanes * lanes);
  usual.resize(xs.size());
  low.resize(xs.size());
  bool isDouble = sizeof(T) == 8;
  compile(MathFunction::Exp, isDouble).run(xs.data(), xs.data(), usual.data(), xs.size() / lanes);
  compile(MathFunction::ExpLow, isDouble).run(xs.data(), xs.data(), low.data(), xs.size() / lanes);
  for (size_t k = 0; k < xs.size(); ++k)
    ASSERT_TRUE((std::isnan(usual[k]) && std::isnan(low[k])) ||
                (usual[k] == low[k] && !std::isnan(usual[k])))
        << xs[k];
}

/// Nor does which exp is, results too small to be normal numbers included.
TEST(MathTogether, ExpLowIsExp) {
  std::vector<float> singles = specialValues<float>();
  for (uint64_t pattern = 0; pattern < (uint64_t(1) << 32); pattern += 4093)
    singles.push_back(std::bit_cast<float>(static_cast<uint32_t>(pattern)));
  for (float x = -105; x < 41; x += 0x1p-10f)
    singles.push_back(x);
  expectExpLowIsExp(singles);
  std::vector<double> doubles = specialValues<double>();
  for (double x = -747; x < 41; x += 0x1.123p-8)
    doubles.push_back(x);
  expectExpLowIsExp(doubles);
}

INSTANTIATE_TEST_SUITE_P(All, Math, testing::ValuesIn(cases()),
                         [](const auto &info) { return toString(info.param.function).str(); });

} // namespace
