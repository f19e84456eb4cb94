//===- InterpreterRunTest.cpp - Accesses, loops, calls and launches, executed -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InterpreterFixture.h"
#include "llvm/Support/FormatVariadic.h"
#include <random>

namespace tegula::test {
namespace {

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

TEST_F(Interpreter, ReadsWithFillGuardAndExactDivision) {
  // Transposed convolution of one dim: stride 2, kernel 3, no padding.
  InterpreterResult result = run(R"(
    tgl.kernel @k(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[2*N + 1], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
      %zero = arith.constant 0.0 : f32
      tgl.parallel (%p = 0 to 2*N + 1) {
        %s = tgl.reduce sum (%r = 0 to 3) -> f32 {
          %v = tgl.read %x[(%p - %r) floordiv 2] exact (%p - %r by 2) fill %zero : !tgl.tensor<[N], f32>
          tgl.yield %v : f32
        }
        tgl.write %s, %y[%p] : f32, !tgl.tensor<[2*N + 1], f32>
      }
    })",
                                 {vec({1, 10, 100})});
  expectOk(result);
  expectValues(result.outputs[0], {1, 1, 11, 10, 110, 100, 100});

  result = map(R"(%c = arith.constant 1.5 : f32
      %big = arith.cmpf ogt, %v, %c : f32
      %r = tgl.read %x[%i + 1] if %big : !tgl.tensor<[N], f32>)",
               vec({1, 2, 5, 0}));
  expectOk(result); // the guard keeps the last point from reading past the end
  expectValues(result.outputs[0], {0, 5, 0, 0});
  result = map(R"(%c = arith.constant 7.0 : f32
      %r = tgl.read %x[%i - 1] fill %c : !tgl.tensor<[N], f32>)",
               vec({1, 2, 3}));
  expectOk(result);
  expectValues(result.outputs[0], {7, 1, 2});
}

TEST_F(Interpreter, BadAccessesAreReported) {
  InterpreterResult result = map("%r = tgl.read %x[%i + 1] : !tgl.tensor<[N], f32>", vec({1, 2}));
  expectError(result, InterpreterError::OutOfBounds, "x[2] (x is [2]) is outside the tensor");
  EXPECT_EQ(result.errors.size(), 1u);
  expectValues(result.outputs[0], {2, 0});

  result = map("tgl.write %v, %y[%i + 1] : f32, !tgl.tensor<[N], f32>\n %r = arith.negf %v : f32",
               vec({1, 2}));
  expectError(result, InterpreterError::OutOfBounds, "y[2] (y is [2]) is outside the tensor");

  // Data-dependent: bad reads give 0, bad writes are dropped, both are reported.
  result = map(R"(%j = arith.fptosi %v : f32 to i64
      %k = arith.index_cast %j : i64 to index
      %r = tgl.read %x[%k] checked "ids[i]" : !tgl.tensor<[N], f32>)",
               vec({1, 7}));
  expectError(result, InterpreterError::BadSubscript, "subscript ids[i] is out of range: x[7]");
  expectValues(result.outputs[0], {7, 0});
  result = run(R"(
    tgl.kernel @k(%ids: !tgl.tensor<[N], i32> {tgl.name = "ids", tgl.role = "in"},
                  %y: !tgl.tensor<[3], f32> {tgl.name = "y", tgl.role = "inout"}) sizes [N = 0 : 0] {
      %one = arith.constant 1.0 : f32
      tgl.parallel (%i = 0 to N) {
        %a = tgl.read %ids[%i] : !tgl.tensor<[N], i32>
        %b = arith.index_cast %a : i32 to index
        tgl.write add %one, %y[%b] checked "ids[i]" : f32, !tgl.tensor<[3], f32>
      }
    })",
               {vec({2, 0, -1, 2}, DType::I32), vec({10, 20, 30})});
  expectError(result, InterpreterError::BadSubscript, "y[-1]");
  EXPECT_EQ(result.errors.size(), 1u);
  expectValues(result.outputs[0], {11, 20, 32});
}

TEST_F(Interpreter, UndefinedElementsAreReported) {
  InterpreterResult result = map(R"(%h = tgl.temp "h" : !tgl.tensor<[2], f32>
      tgl.write %v, %h[0] : f32, !tgl.tensor<[2], f32>
      %r = tgl.read %h[%i] : !tgl.tensor<[2], f32>)",
                                 vec({1, 2}));
  expectError(result, InterpreterError::Undefined, "h[1] (h is [2]) is read before");

  // A private temporary is fresh at each point.
  result = map(R"(%h = tgl.temp "h" : !tgl.tensor<[], f32>
      %c = arith.constant 1.5 : f32
      %first = arith.cmpf olt, %v, %c : f32
      tgl.write %v, %h[] if %first : f32, !tgl.tensor<[], f32>
      %r = tgl.read %h[] : !tgl.tensor<[], f32>)",
               vec({1, 2}));
  expectError(result, InterpreterError::Undefined, "h[] (h is []) is read before");

  result = run(R"(
    tgl.kernel @k(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[N, 2], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
      tgl.parallel (%i = 0 to N) {
        %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
        tgl.write %v, %y[%i, 0] : f32, !tgl.tensor<[N, 2], f32>
      }
    })",
               {vec({1, 2})});
  expectError(result, InterpreterError::Undefined, "y[0, 1] (y is [2, 2]) is never written");

  result = map(R"(tgl.write add %v, %y[%i] : f32, !tgl.tensor<[N], f32>
      %r = arith.negf %v : f32)",
               vec({1}));
  expectError(result, InterpreterError::Undefined, "y[0] (y is [1]) is added to before");
}

TEST_F(Interpreter, RacesAreReported) {
  // Two points write one element.
  InterpreterResult result = map(R"(tgl.write %v, %y[0] : f32, !tgl.tensor<[N], f32>
      %r = arith.negf %v : f32)",
                                 vec({1, 2, 3}));
  expectError(result, InterpreterError::Race, "y[0] (y is [3]) is written by two points");

  // One reads what another wrote.
  llvm::StringRef shift = R"(
    tgl.kernel @k(%y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "inout"}) sizes [N = 0 : 0] {
      tgl.parallel (%i = 0 to N - 1) {
        %v = tgl.read %y[%i] : !tgl.tensor<[N], f32>
        tgl.write %v, %y[%i + 1] : f32, !tgl.tensor<[N], f32>
      }
    })";
  result = run(shift, {vec({1, 2, 3})});
  expectError(result, InterpreterError::Race, "is read by one point of a parallel");
  expectValues(result.outputs[0], {1, 1, 1});
  // In the other order no point reads what is new, and the result differs.
  InterpreterOptions backwards;
  backwards.reversePoints = true;
  result = run(shift, {vec({1, 2, 3})}, backwards);
  expectValues(result.outputs[0], {1, 1, 2});

  // Sequential iterations, other statements and adds are no races; neither are inner parallels.
  result = run(R"(
    tgl.kernel @k(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
      %zero = arith.constant 0.0 : f32
      tgl.parallel (%i = 0 to N) {
        tgl.write %zero, %y[%i] : f32, !tgl.tensor<[N], f32>
      }
      tgl.for %t = 0 to 3 {
        tgl.parallel (%i = 0 to N) {
          tgl.parallel (%j = 0 to 2) {
            %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
            tgl.write add %v, %y[N - 1 - %i] : f32, !tgl.tensor<[N], f32>
          }
        }
        tgl.parallel (%i = 0 to N) {
          %h = tgl.temp "h" : !tgl.tensor<[2], f32>
          tgl.for %u = 0 to 2 {
            tgl.parallel (%j = 0 to 2) {
              %v = tgl.read %y[%i] : !tgl.tensor<[N], f32>
              tgl.write %v, %h[%j] : f32, !tgl.tensor<[2], f32>
            }
          }
          %w = tgl.read %h[1] : !tgl.tensor<[2], f32>
          tgl.write %w, %y[%i] : f32, !tgl.tensor<[N], f32>
        }
      }
    })",
               {vec({1, 2})});
  expectOk(result);
  expectValues(result.outputs[0], {12, 6});
  // Writing where others add is one.
  result = run(R"(
    tgl.kernel @k(%y: !tgl.tensor<[], f32> {tgl.name = "y", tgl.role = "inout"}) {
      %one = arith.constant 1.0 : f32
      tgl.parallel (%i = 0 to 4) {
        tgl.write add %one, %y[] : f32, !tgl.tensor<[], f32>
        tgl.write %one, %y[] : f32, !tgl.tensor<[], f32>
      }
    })",
               {tensor(DType::F32, {}, {0})});
  expectError(result, InterpreterError::Race, "is written by two points");
}

TEST_F(Interpreter, WritesOfTwoKindsAreRaces) {
  auto both = [&](llvm::StringRef first, llvm::StringRef second) {
    return run(llvm::formatv(R"(
    tgl.kernel @k(%y: !tgl.tensor<[], f16> {{tgl.name = "y", tgl.role = "inout"}) {{
      %one = arith.constant 1.0 : f32
      %two = arith.constant 2.0 : f32
      tgl.parallel (%i = 0 to 4) {{
        tgl.write {0}, %y[] : f32, !tgl.tensor<[], f16>
        tgl.write {1}, %y[] : f32, !tgl.tensor<[], f16>
      }
    })",
                             first, second)
                   .str(),
               {tensor(DType::F16, {}, {0})});
  };
  for (auto [first, second] : {std::pair("max %one", "min %one"), std::pair("any %one", "max %one"),
                               std::pair("any %one", "any %two")})
    expectError(both(first, second), InterpreterError::Race, "is written by two points");
  expectOk(both("any %two", "any %two"));
  expectOk(both("max %one", "max %two"));
}

//===----------------------------------------------------------------------===//
// Loops, calls, launches
//===----------------------------------------------------------------------===//

TEST_F(Interpreter, LoopsCarryValues) {
  llvm::StringRef text = R"(
    tgl.kernel @k(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[2], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
      %zero = arith.constant 0.0 : f32
      %ten = arith.constant 10.0 : f32
      // a, b = b, 10*a + x[t]
      %r:2 = tgl.for %t = 0 to N REVERSE iter (%a = %zero : f32, %b = %ten : f32) {
        %v = tgl.read %x[%t] : !tgl.tensor<[N], f32>
        %m = arith.mulf %a, %ten : f32
        %n = arith.addf %m, %v : f32
        tgl.yield %b, %n : f32, f32
      }
      tgl.write %r#0, %y[0] : f32, !tgl.tensor<[2], f32>
      tgl.write %r#1, %y[1] : f32, !tgl.tensor<[2], f32>
    })";
  InterpreterResult result = run(replace(text.str(), {{"REVERSE", ""}}), {vec({1, 2, 3})});
  expectOk(result);
  expectValues(result.outputs[0], {102, 13});
  result = run(replace(text.str(), {{"REVERSE", "reverse"}}), {vec({1, 2, 3})});
  expectValues(result.outputs[0], {102, 31});
  result = run(replace(text.str(), {{"REVERSE", ""}}), {vec({})});
  expectValues(result.outputs[0], {0, 10});
}

/// Attention with online softmax, as the language page writes it, after distribution.
static constexpr llvm::StringLiteral attention = R"(
  tgl.kernel @attention(%q: !tgl.tensor<[S, D], f16> {tgl.name = "q", tgl.role = "in"},
                        %k: !tgl.tensor<[T, D], f16> {tgl.name = "k", tgl.role = "in"},
                        %v: !tgl.tensor<[T, D], f16> {tgl.name = "v", tgl.role = "in"},
                        %o: !tgl.tensor<[S, D], f32> {tgl.name = "o", tgl.role = "out"})
      sizes [S = 0 : 0, D = 0 : 1, T = 1 : 0] {
    %m0 = arith.constant -1.0e30 : f32
    %zero = arith.constant 0.0 : f32
    %minus = arith.constant 0xFF800000 : f32
    tgl.parallel (%i = 0 to S) {
      %acc = tgl.temp "acc" : !tgl.tensor<[D], f32>
      tgl.parallel (%d = 0 to D) {
        tgl.write %zero, %acc[%d] : f32, !tgl.tensor<[D], f32>
      }
      %state:2 = tgl.tiles (%j_lo, %j_hi) = 0 to T iter (%m = %m0 : f32, %l = %zero : f32) {
        %s = tgl.temp "s" : !tgl.tensor<[T], f32>
        tgl.parallel (%j = %j_lo to %j_hi) {
          %dot = tgl.reduce sum (%e = 0 to D) -> f32 {
            %a = tgl.read %q[%i, %e] : !tgl.tensor<[S, D], f16>
            %b = tgl.read %k[%j, %e] : !tgl.tensor<[T, D], f16>
            %ab = arith.mulf %a, %b : f32
            tgl.yield %ab : f32
          }
          %visible = arith.cmpi sle, %j, %i : index
          %masked = arith.select %visible, %dot, %minus : f32
          tgl.write %masked, %s[%j] : f32, !tgl.tensor<[T], f32>
        }
        %tile = tgl.reduce max (%j = %j_lo to %j_hi) -> f32 {
          %a = tgl.read %s[%j] : !tgl.tensor<[T], f32>
          tgl.yield %a : f32
        }
        %m2 = arith.maximumf %m, %tile : f32
        %dm = arith.subf %m, %m2 : f32
        %r = math.exp %dm : f32
        %sum = tgl.reduce sum (%j = %j_lo to %j_hi) -> f32 {
          %a = tgl.read %s[%j] : !tgl.tensor<[T], f32>
          %b = arith.subf %a, %m2 : f32
          %p = math.exp %b : f32
          tgl.yield %p : f32
        }
        %lr = arith.mulf %l, %r : f32
        %l2 = arith.addf %lr, %sum : f32
        tgl.parallel (%d = 0 to D) {
          %old = tgl.read %acc[%d] : !tgl.tensor<[D], f32>
          %scaled = arith.mulf %old, %r : f32
          %new = tgl.reduce sum (%j = %j_lo to %j_hi) -> f32 {
            %a = tgl.read %s[%j] : !tgl.tensor<[T], f32>
            %b = arith.subf %a, %m2 : f32
            %p = math.exp %b : f32
            %h = tgl.convert %p to f16 : f32 -> f32
            %c = tgl.read %v[%j, %d] : !tgl.tensor<[T, D], f16>
            %hc = arith.mulf %h, %c : f32
            tgl.yield %hc : f32
          }
          %next = arith.addf %scaled, %new : f32
          tgl.write %next, %acc[%d] : f32, !tgl.tensor<[D], f32>
        }
        tgl.yield %m2, %l2 : f32, f32
      }
      tgl.parallel (%d = 0 to D) {
        %a = tgl.read %acc[%d] : !tgl.tensor<[D], f32>
        %b = arith.divf %a, %state#1 : f32
        tgl.write %b, %o[%i, %d] : f32, !tgl.tensor<[S, D], f32>
      }
    }
  })";

TEST_F(Interpreter, AttentionInTilesOfAnySize) {
  constexpr int64_t s = 5, t = 7, d = 3;
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  auto make = [&](int64_t rows) {
    HostTensor result(DType::F16, {rows, d});
    for (int64_t n = 0; n < rows * d; ++n)
      result.set(n, normal(random));
    return result;
  };
  HostTensor q = make(s), k = make(t), v = make(t);
  std::vector<double> expected;
  for (int64_t i = 0; i < s; ++i) {
    for (int64_t c = 0; c < d; ++c) {
      double numerator = 0, denominator = 0;
      for (int64_t j = 0; j < t && j <= i; ++j) {
        double dot = 0;
        for (int64_t e = 0; e < d; ++e)
          dot += q.get(i * d + e) * k.get(j * d + e);
        numerator += std::exp(dot) * v.get(j * d + c);
        denominator += std::exp(dot);
      }
      expected.push_back(numerator / denominator);
    }
  }
  for (int64_t tile : {0, 1, 2, 3, 7, 100}) {
    SCOPED_TRACE(tile);
    InterpreterOptions options;
    options.tileSize = tile;
    options.reversePoints = tile == 2;
    InterpreterResult result = run(attention, {q, k, v}, options);
    expectOk(result);
    expectValues(result.outputs[0], expected, 1e-3);
  }
}

TEST_F(Interpreter, CallsLaunchesAndTemps) {
  llvm::StringRef text = R"(
    tgl.kernel private @square(%a: !tgl.tensor<[N], f32> {tgl.name = "a", tgl.role = "in"},
                               %b: !tgl.tensor<[N], bf16> {tgl.name = "b", tgl.role = "out"},
                               %s: f32 {tgl.name = "s", tgl.role = "scalar"}) {
      %h = tgl.temp "h" : !tgl.tensor<[N], f32>
      tgl.parallel (%n = 0 to N) {
        %v = tgl.read %a[%n] : !tgl.tensor<[N], f32>
        %w = arith.mulf %v, %s : f32
        tgl.write %w, %h[%n] : f32, !tgl.tensor<[N], f32>
      }
      tgl.parallel (%n = 0 to N) {
        %v = tgl.read %h[%n] : !tgl.tensor<[N], f32>
        %w = arith.mulf %v, %v : f32
        tgl.write %w, %b[%n] : f32, !tgl.tensor<[N], bf16>
      }
    }
    tgl.kernel @k(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"},
                  %s: f32 {tgl.name = "s", tgl.role = "scalar"}) sizes [N = 0 : 0] {
      %p = tgl.temp "p" : !tgl.tensor<[N], bf16>
      %q = tgl.temp "q" : !tgl.tensor<[N], bf16>
      tgl.call @square(%x, %p, %s) : !tgl.tensor<[N], f32>, !tgl.tensor<[N], bf16>, f32
      tgl.call @square(%x, %q, %s) : !tgl.tensor<[N], f32>, !tgl.tensor<[N], bf16>, f32
      tgl.launch "sum" {
        tgl.parallel (%n = 0 to N) {
          %v = tgl.read %p[%n] : !tgl.tensor<[N], bf16>
          %w = tgl.read %q[%n] : !tgl.tensor<[N], bf16>
          %z = arith.addf %v, %w : f32
          tgl.write %z, %y[%n] : f32, !tgl.tensor<[N], f32>
        }
      }
    })";
  InterpreterOptions options;
  options.keepTemps = true;
  InterpreterResult result = run(text, {vec({1, 2, 10.05})}, options, {2.0});
  expectOk(result);
  double rounded = roundToFloat(float(10.05f * 2) * float(10.05f * 2), DType::BF16);
  expectValues(result.outputs[0], {8, 32, 2 * rounded});
  ASSERT_EQ(result.temps.size(), 2u);
  EXPECT_EQ(result.temps[0].first, "p");
  expectValues(result.temps[0].second, {4, 16, rounded});
}

TEST_F(Interpreter, RememberedReductionsSeeNewData) {
  // The sum varies along no axis of the parallel, and what it sums changes between iterations.
  InterpreterResult result = run(R"(
    tgl.kernel @k(%y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "inout"}) sizes [N = 0 : 0] {
      %h = tgl.temp "h" : !tgl.tensor<[N], f32>
      tgl.for %t = 0 to 2 {
        tgl.parallel (%i = 0 to N) {
          %s = tgl.reduce sum (%k = 0 to N) -> f32 {
            %v = tgl.read %y[%k] : !tgl.tensor<[N], f32>
            tgl.yield %v : f32
          }
          %c = tgl.scan cumsum (%k = 0 to N) at [%i] -> f32 {
            %v = tgl.read %y[%k] : !tgl.tensor<[N], f32>
            tgl.yield %v : f32
          }
          %w = arith.subf %s, %c : f32
          tgl.write %w, %h[%i] : f32, !tgl.tensor<[N], f32>
        }
        tgl.parallel (%i = 0 to N) {
          %w = tgl.read %h[%i] : !tgl.tensor<[N], f32>
          tgl.write %w, %y[%i] : f32, !tgl.tensor<[N], f32>
        }
      }
    })",
                                 {vec({1, 2, 3})});
  expectOk(result);
  expectValues(result.outputs[0], {3, 0, 0}); // 1 2 3 -> 5 3 0 -> 3 0 0
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

TEST_F(Interpreter, SizesAndGuards) {
  llvm::StringRef text = R"(
    tgl.kernel @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[2*N], f32> {tgl.name = "w", tgl.role = "in"},
                  %y: !tgl.tensor<[P], f32> {tgl.name = "y", tgl.role = "out"})
        sizes [M = 0 : 0, N = 0 : 1, P = M floordiv N]
        guards [divides M, N : "M must be a multiple of N",
                inbounds d0 + 2, M for 0 to N : "x[i + 2] leaves x"] {
      %s = tgl.index M + 10*N + 100*P
      %t = arith.index_cast %s : index to i64
      %f = arith.sitofp %t : i64 to f32
      tgl.parallel (%p = 0 to P) {
        tgl.write %f, %y[%p] : f32, !tgl.tensor<[P], f32>
      }
    })";
  auto x = [](int64_t m, int64_t n) { return HostTensor(DType::F32, {m, n}); };
  auto w = [](int64_t n) { return HostTensor(DType::F32, {n}); };
  InterpreterResult result = run(text, {x(4, 2), w(4)});
  expectOk(result);
  expectValues(result.outputs[0], {224, 224});
  expectError(run(text, {x(5, 2), w(4)}), InterpreterError::Guard, "M must be a multiple of N");
  expectError(run(text, {x(2, 2), w(4)}), InterpreterError::Guard, "x[i + 2] leaves x");
  expectError(run(text, {x(4, 2), w(5)}), InterpreterError::Invalid,
              "dim 0 of 'w' is 5, expected 2*N = 4");
  expectError(run(text, {x(4, 0), w(0)}), InterpreterError::Invalid, "size 'P' = M//N divides");
  expectError(run(text, {x(4, 2)}), InterpreterError::Invalid, "expected 2 input tensors, found 1");
  expectError(run(text, {HostTensor(DType::F16, {4, 2}), w(4)}), InterpreterError::Invalid,
              "'x' is f16, expected f32");
  expectError(run(text, {w(4), w(4)}), InterpreterError::Invalid, "'x' has rank 1, expected 2");
  expectError(run(text, {x(4, 2), w(4)}, {}, {1.0}), InterpreterError::Invalid,
              "1 scalars too many");
  expectError(run(text, {x(4, 2), w(4)}, {}, {}, {{"M", 5}}), InterpreterError::Invalid,
              "size 'M' is 4, not 5");
}

TEST_F(Interpreter, LimitsEndARun) {
  InterpreterOptions options;
  options.maxSteps = 1000;
  InterpreterResult result = run(R"(
    tgl.kernel @k(%y: !tgl.tensor<[], f32> {tgl.name = "y", tgl.role = "out"}) {
      tgl.for %t = 0 to 1000000000000 {
      }
    })",
                                 {}, options);
  expectError(result, InterpreterError::Limit, "more than 1000 points");
  options = {};
  options.maxBytes = 1 << 20;
  result = run(R"(
    tgl.kernel @k(%y: !tgl.tensor<[], f32> {tgl.name = "y", tgl.role = "out"}) {
      %h = tgl.temp "h" : !tgl.tensor<[1000, 1000], f32>
    })",
               {}, options);
  expectError(result, InterpreterError::Limit, "temporaries take more than");
}

TEST_F(Interpreter, OverflowingSubscriptsAreReported) {
  InterpreterResult result =
      map("%r = tgl.read %x[4611686018427387904*%i] : !tgl.tensor<[N], f32>", vec({1, 2, 3}));
  expectError(result, InterpreterError::Arithmetic, "leaves 64 bits");
}

TEST_F(Interpreter, UnknownOpsAreReported) {
  InterpreterResult result = map(R"(%c = arith.constant dense<1.0> : vector<2xf32>
      %r = arith.negf %v : f32)",
                                 vec({1}));
  expectError(result, InterpreterError::Invalid, "'arith.constant' is not interpreted");
}

} // namespace
} // namespace tegula::test
