//===- NumberTest.cpp - Values as residues and reals ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InterpreterFixture.h"
#include "prove/Draw.h"
#include "prove/Evaluate.h"
#include "prove/EvaluateImpl.h"
#include "prove/ProductSum.h"

using namespace tegula;
using namespace tegula::prove;

namespace {

Number drawn(const Algebra &algebra, double real) {
  return algebra.drawn(real, llvm::bit_cast<uint64_t>(real));
}

TEST(Number, ChainsHaveTheirForm) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Chain chain(seed);
    for (unsigned k = 0; k < Chain::levels; ++k) {
      EXPECT_TRUE(isPrime(chain[k].prime()));
      EXPECT_EQ(chain[k].prime() % 4, 3u);
      EXPECT_GT(chain[k].prime(), uint64_t(1) << 53);
    }
    for (unsigned k = 0; k + 1 < Chain::levels; ++k) {
      EXPECT_EQ(chain[k].prime(), chain.cofactor(k) * chain[k + 1].prime() + 1);
      EXPECT_NE(chain.base(k), chain[k].one());
      EXPECT_EQ(chain[k].pow(chain.base(k), chain[k + 1].prime()), chain[k].one());
    }
  }
}

TEST(Number, IdentitiesHold) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Algebra m(seed);
    Number a = drawn(m, 0.7), b = drawn(m, 1.9), two = m.integer(2);
    EXPECT_TRUE(m.same(m.exp(m.add(a, b)), m.mul(m.exp(a), m.exp(b))));
    EXPECT_TRUE(m.same(m.add(a, m.log(b)), m.log(m.mul(m.exp(a), b))));
    Number third = m.div(m.integer(1), m.integer(3));
    EXPECT_TRUE(m.same(m.add(m.mul(m.log(a), third), m.mul(m.log(b), third)),
                       m.div(m.log(m.mul(a, b)), m.integer(3))));
    EXPECT_TRUE(m.same(m.exp(m.log(a)), a));
    EXPECT_TRUE(m.same(m.mul(m.sqrt(a), m.sqrt(a)), a));
    EXPECT_TRUE(m.same(m.mul(m.sqrt(a), m.sqrt(b)), m.sqrt(m.mul(a, b))));
    EXPECT_TRUE(m.same(m.pow(a, two), m.mul(a, a)));
    EXPECT_TRUE(
        m.same(m.opaque(Algebra::Opaque::Sin, m.neg(a)), m.neg(m.opaque(Algebra::Opaque::Sin, a))));
    EXPECT_TRUE(m.same(m.constant(0.1f, false), m.div(m.integer(1), m.integer(10))));
    EXPECT_TRUE(m.same(m.constant(float(std::sqrt(0.125)), false),
                       m.sqrt(m.div(m.integer(1), m.integer(8)))));
    EXPECT_FALSE(m.same(m.add(a, b), m.add(a, m.mul(b, m.constant(1.0001, true)))));
    EXPECT_FALSE(m.same(m.exp(a), m.exp(m.add(a, a))));
    EXPECT_FALSE(m.same(m.constant(0.5, false), m.constant(0.5001f, false)));
  }
}

TEST(Number, ZeroByChanceIsNoZero) {
  Algebra m(1);
  Number a = drawn(m, 0.5);
  a.residues[0] = 0;
  m.div(m.integer(1), a);
  EXPECT_TRUE(m.events.isUnlucky);
}

/// A sum of products is what operations one by one give, with its bounds.
TEST(Number, SumsOfProductsAgree) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Algebra m(seed);
    Draws draws(seed);
    Number under = m.add(drawn(m, 0.3), drawn(m, 1.1));
    std::vector<Number> a, b, products;
    for (unsigned k = 0; k < 40; ++k) {
      a.push_back(m.exp(drawn(m, double(draws.below(100)) / 50 - 1)));
      b.push_back(k % 3 ? drawn(m, double(draws.below(100)) / 50 - 1)
                        : m.div(drawn(m, 0.7), under));
      products.push_back(m.mul(a.back(), b.back()));
    }
    ProductSum sum(m);
    sum.add(a.data(), 1, b.data(), 1, a.size());
    std::optional<Number> found = sum.total();
    Number wanted = reduceNumbers(m, tgl::ReduceKind::Sum, products, /*isUnbiased=*/false);
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(std::equal(found->residues, found->residues + Chains::places, wanted.residues));
    EXPECT_LE(std::fabs(double(found->real - wanted.real)), wanted.slack);
    EXPECT_NEAR(found->slack / wanted.slack, 1, 0.1);
    EXPECT_NEAR(found->error / wanted.error, 1, 1e-6);
    EXPECT_EQ(found->numerator, wanted.numerator);
    EXPECT_EQ(found->denominator, wanted.denominator);
    EXPECT_EQ(found->isProduct, wanted.isProduct);
  }
  Algebra m(1);
  Number log = m.log(drawn(m, 2)), root = m.sqrt(drawn(m, 2)), one = m.integer(1);
  for (const auto &[a, b] : {std::pair(log, one), std::pair(root, root)}) {
    ProductSum sum(m);
    sum.add(&a, 1, &b, 1, 1);
    EXPECT_FALSE(sum.total().has_value());
  }
}

/// Sums of products of infinite data are what operations one by one give.
TEST(Number, SumsOfInfiniteProductsAgree) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Algebra m(seed);
    Draws draws(seed);
    std::vector<Number> numbers[2], products;
    for (unsigned k = 0; k < 30; ++k)
      for (auto &side : numbers) {
        uint64_t kind = draws.below(seed % 2 ? 60 : 20);
        side.push_back(kind == 0               ? m.infinity(true)
                       : kind == 1             ? m.infinity(seed % 4 == 0)
                       : kind == 2             ? Number()
                       : kind == 3 && seed % 8 ? m.nan()
                                               : drawn(m, seed % 3 ? 0.5 : double(k) - 12.5));
      }
    for (unsigned k = 0; k < 30; ++k)
      products.push_back(m.mul(numbers[0][k], numbers[1][k]));
    ProductSum sum(m);
    sum.add(numbers[0].data(), 1, numbers[1].data(), 1, 30);
    std::optional<Number> found = sum.total();
    Number wanted = reduceNumbers(m, tgl::ReduceKind::Sum, products, /*isUnbiased=*/false);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->kind, wanted.kind);
    EXPECT_TRUE(m.same(*found, wanted));
  }
}

/// Guards that hardly any draw meets are met by changing one size after another.
TEST(Number, SizesOfDeepNetworksAreFound) {
  mlir::MLIRContext context;
  context.loadDialect<tgl::TglDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    tgl.kernel @k(%x: !tgl.tensor<[N, C, H, W], f32> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[O, K], f32> {tgl.name = "w", tgl.role = "in"},
                  %y: !tgl.tensor<[N, O], f32> {tgl.name = "y", tgl.role = "out"})
        sizes [N = 0 : 0, C = 0 : 1, H = 0 : 2, W = 0 : 3, O = 1 : 0, K = 1 : 1,
               P = (H floordiv 32), Q = (W floordiv 32)]
        guards [nonneg P - 1 : "H", nonneg Q - 1 : "W",
                zero K - P*Q*C : "K"] {
    })",
                                                        mlir::ParserConfig(&context));
  ASSERT_TRUE(bool(module));
  auto kernel = *module->getOps<tgl::KernelOp>().begin();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::optional<Sizes> sizes = drawSizes(kernel, SizeKind::Borders, {}, seed);
    ASSERT_TRUE(sizes.has_value());
    EXPECT_EQ((*sizes)["H"], 32);
    EXPECT_EQ((*sizes)["K"], (*sizes)["C"]);
    EXPECT_LE((*sizes)["O"], 3);
  }
}

/// What f32 computes is within the bound of what is exact.
TEST(Number, BoundsHoldMeasuredErrors) {
  mlir::MLIRContext context;
  context.loadDialect<tgl::TglDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    tgl.kernel @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "out"})
        sizes [M = 0 : 0, N = 0 : 1] {
      %eps = arith.constant 1.0e-5 : f32
      tgl.parallel (%i = 0 to M) {
        %mean = tgl.reduce mean (%j = 0 to N) -> f32 {
          %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], f32>
          tgl.yield %v : f32
        }
        %s = tgl.reduce sum (%j = 0 to N) -> f32 {
          %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], f32>
          %d = arith.subf %v, %mean : f32
          %q = arith.mulf %d, %d : f32
          %e = math.exp %d : f32
          %p = arith.addf %q, %eps : f32
          %r = math.rsqrt %p : f32
          %t = math.tanh %r : f32
          %z = arith.mulf %e, %t : f32
          tgl.yield %z : f32
        }
        tgl.write %s, %y[%i] : f32, !tgl.tensor<[M], f32>
      }
    })",
                                                        mlir::ParserConfig(&context));
  ASSERT_TRUE(bool(module));
  auto kernel = *module->getOps<tgl::KernelOp>().begin();
  unsigned isTight = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Sizes sizes{{"M", 5}, {"N", int64_t(1 + seed)}};
    Algebra algebra(seed);
    Point point = drawPoint(kernel, sizes, {}, seed, algebra, hintsOf({kernel}));
    Coverage coverage;
    Evaluation exact = evaluate(kernel, point.inputs, {}, algebra, coverage, {});
    ASSERT_EQ(exact.problem, Evaluation::None) << exact.message;
    HostTensor x(DType::F32, point.inputs[0].shape);
    for (int64_t n = 0; n < x.numElements(); ++n)
      x.set(n, double(point.inputs[0].numbers[size_t(n)].real));
    InterpreterResult measured = interpret(kernel, {x});
    ASSERT_TRUE(measured.ok());
    for (int64_t n = 0; n < 5; ++n) {
      const Number &value = exact.outputs[0].numbers[size_t(n)];
      double error = std::fabs(measured.outputs[0].get(n) - double(value.real));
      EXPECT_LE(error, value.error) << "N = " << 1 + seed << ", element " << n;
      isTight += error * 1e4 > value.error;
    }
  }
  EXPECT_GT(isTight, 100u); // of 200: a bound that is always far away says nothing
}

} // namespace
