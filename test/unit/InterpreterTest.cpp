//===- InterpreterTest.cpp - What values, reductions and scans mean, executed ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InterpreterFixture.h"

namespace tegula::test {
namespace {

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

TEST_F(Interpreter, FloatArithmetic) {
  HostTensor x = vec({1.5, -2.5, 0.0, inf, nan});
  auto check = [&](llvm::StringRef op, std::vector<double> expected) {
    SCOPED_TRACE(op.str());
    InterpreterResult result =
        map("%c = arith.constant 2.0 : f32\n %r = " + op.str() + " %v, %c : f32", x);
    expectOk(result);
    expectValues(result.outputs[0], expected);
  };
  check("arith.addf", {3.5, -0.5, 2, inf, nan});
  check("arith.subf", {-0.5, -4.5, -2, inf, nan});
  check("arith.mulf", {3, -5, 0, inf, nan});
  check("arith.divf", {0.75, -1.25, 0, inf, nan});
  check("arith.remf", {1.5, -0.5, 0, nan, nan});
  check("arith.maximumf", {2, 2, 2, inf, nan});
  check("arith.minimumf", {1.5, -2.5, 0, 2, nan});
  check("arith.maxnumf", {2, 2, 2, inf, 2});
  check("math.powf", {2.25, 6.25, 0, inf, nan});
}

TEST_F(Interpreter, F32RoundsAfterEachOperation) {
  // 2^24 + 1 is no float; in double the 1 would survive.
  InterpreterResult result = map(R"(%c = arith.constant 16777216.0 : f32
      %s = arith.addf %v, %c : f32
      %r = arith.subf %s, %c : f32)",
                                 vec({1, 2}));
  expectOk(result);
  expectValues(result.outputs[0], {0, 2});
  result = map(R"(%c = arith.constant 16777216.0 : f64
      %s = arith.addf %v, %c : f64
      %r = arith.subf %s, %c : f64)",
               vec({1, 2}, DType::F64), "f64", "f64");
  expectValues(result.outputs[0], {1, 2});
}

TEST_F(Interpreter, IntegersWrap) {
  auto check = [&](llvm::StringRef op, double c, std::vector<double> x,
                   std::vector<double> expected) {
    SCOPED_TRACE(op.str());
    InterpreterResult result = map("%c = arith.constant " + std::to_string(int64_t(c)) +
                                       " : i32\n %r = " + op.str() + " %v, %c : i32",
                                   vec(x, DType::I32), "i32", "i32");
    expectOk(result);
    expectValues(result.outputs[0], expected);
  };
  check("arith.addi", 1, {2147483647, -5}, {-2147483648.0, -4});
  check("arith.muli", 65536, {65536, 3}, {0, 196608});
  check("arith.divsi", 3, {7, -7}, {2, -2});
  check("arith.remsi", 3, {7, -7}, {1, -1});
  check("arith.floordivsi", 3, {7, -7}, {2, -3});
  check("arith.ceildivsi", 3, {7, -7}, {3, -2});
  check("arith.divsi", -1, {-2147483648.0, 4}, {-2147483648.0, -4});
  check("arith.shrui", 28, {-1, 1}, {15, 0});
  check("arith.shrsi", 28, {-1, 1 << 30}, {-1, 4});
  check("arith.shli", 31, {1, 2}, {-2147483648.0, 0});
  check("arith.divui", 2, {-2, 5}, {2147483647, 2});
  check("arith.maxsi", 2, {-2, 5}, {2, 5});
  check("arith.minui", 2, {-2, 1}, {2, 1});
  check("arith.xori", 6, {3, -1}, {5, -7});
}

TEST_F(Interpreter, DivisionByZeroIsReported) {
  InterpreterResult result = map(R"(%c = arith.constant 0 : i32
      %r = arith.divsi %v, %c : i32)",
                                 vec({4}, DType::I32), "i32", "i32");
  expectError(result, InterpreterError::Arithmetic, "integer division by zero");
  expectValues(result.outputs[0], {0});
}

TEST_F(Interpreter, Comparisons) {
  HostTensor x = vec({1, 2, 3, nan});
  auto check = [&](llvm::StringRef predicate, std::vector<double> expected) {
    SCOPED_TRACE(predicate.str());
    InterpreterResult result =
        map("%c = arith.constant 2.0 : f32\n %r = arith.cmpf " + predicate.str() + ", %v, %c : f32",
            x, "f32", "i1");
    expectOk(result);
    expectValues(result.outputs[0], expected);
  };
  check("oeq", {0, 1, 0, 0});
  check("une", {1, 0, 1, 1});
  check("one", {1, 0, 1, 0});
  check("olt", {1, 0, 0, 0});
  check("ult", {1, 0, 0, 1});
  check("ole", {1, 1, 0, 0});
  check("ogt", {0, 0, 1, 0});
  check("uge", {0, 1, 1, 1});
  check("ord", {1, 1, 1, 0});
  check("uno", {0, 0, 0, 1});
}

TEST_F(Interpreter, ElementaryFunctions) {
  std::vector<double> points = {0.3, -1.7, 2.5, 20};
  auto check = [&](llvm::StringRef op, double (*fn)(double)) {
    SCOPED_TRACE(op.str());
    std::vector<double> expected;
    for (double x : points)
      expected.push_back(float(fn(float(x))));
    InterpreterResult result = map("%r = math." + op.str() + " %v : f32", vec(points));
    expectOk(result);
    expectValues(result.outputs[0], expected);
  };
  check("exp", std::exp);
  check("exp2", std::exp2);
  check("expm1", std::expm1);
  check("log", std::log);
  check("log2", std::log2);
  check("log1p", std::log1p);
  check("sqrt", std::sqrt);
  check("sin", std::sin);
  check("cos", std::cos);
  check("tan", std::tan);
  check("tanh", std::tanh);
  check("erf", std::erf);
  check("absf", std::fabs);
  check("floor", std::floor);
  check("ceil", std::ceil);
  check("trunc", std::trunc);
  check("rsqrt", [](double x) { return 1 / std::sqrt(x); });
  InterpreterResult result = map("%r = math.roundeven %v : f32", vec({0.5, 1.5, 2.5, -0.5}));
  expectValues(result.outputs[0], {0, 2, 2, -0.0});
}

TEST_F(Interpreter, Conversions) {
  auto check = [&](llvm::StringRef target, llvm::StringRef compute, std::vector<double> x,
                   std::vector<double> expected) {
    SCOPED_TRACE(target.str());
    InterpreterResult result =
        map("%r = tgl.convert %v to " + target.str() + " : f32 -> " + compute.str(), vec(x), "f32",
            compute);
    expectOk(result);
    expectValues(result.outputs[0], expected);
  };
  check("f16", "f32", {1.0 + 1.0 / 4096, 70000, -1e-9}, {1, inf, 0});
  check("bf16", "f32", {1.00390625, 3e38}, {1, 3e38 > 0 ? roundToFloat(3e38, DType::BF16) : 0});
  check("f8E4M3FN", "f32", {464, 465, 0.0009765625}, {448, nan, 0});
  check("f8E5M2", "f32", {1e6, 1.2}, {inf, 1.25});
  check("i8", "i32", {2.7, -300, nan, 300}, {2, -128, 0, 127});
  check("i8 nearest", "i32", {2.5, 3.5, -2.6}, {2, 4, -3});
  check("ui4", "i32", {-1, 7.9, 16}, {0, 7, 15});
  check("i1", "i1", {0, 0.5, nan}, {0, 1, 1});
}

TEST_F(Interpreter, StorageFormats) {
  // Writing rounds or wraps to the element type, reading widens.
  std::vector<double> x = {-130, 1.75, 0.1, 3};
  auto floats = [&](llvm::StringRef ir, DType type) {
    InterpreterResult result = map("%r = arith.addf %v, %v : f32", vec(x), "f32", ir);
    expectOk(result);
    std::vector<double> expected;
    for (double value : x)
      expected.push_back(roundToFloat(2 * float(value), type));
    EXPECT_EQ(result.outputs[0].dtype, type);
    expectValues(result.outputs[0], expected);
    // And back, through the same format.
    InterpreterResult back = map("%r = arith.addf %v, %v : f32", result.outputs[0], ir, "f32");
    for (double &value : expected)
      value *= 2;
    expectValues(back.outputs[0], expected);
  };
  floats("f16", DType::F16);
  floats("bf16", DType::BF16);
  floats("f8E4M3FN", DType::F8E4M3);
  floats("f8E5M2", DType::F8E5M2);
  auto integers = [&](llvm::StringRef ir, DType type) {
    std::vector<double> ints = {-130, 9, 7, 255, -8};
    InterpreterResult result = map("%r = arith.ori %v, %v : i32", vec(ints, DType::I32), "i32", ir);
    expectOk(result);
    std::vector<double> expected;
    for (double value : ints)
      expected.push_back(double(wrap(int64_t(value), type)));
    expectValues(result.outputs[0], expected);
    InterpreterResult back = map("%r = arith.ori %v, %v : i32", result.outputs[0], ir, "i32");
    expectValues(back.outputs[0], expected);
  };
  integers("i16", DType::I16);
  integers("i8", DType::I8);
  integers("ui8", DType::U8);
  integers("i4", DType::I4);
  integers("ui4", DType::U4);
}

TEST_F(Interpreter, RandomNumbersAreTheDocumentedOnes) {
  InterpreterResult result = map(R"(%k = arith.extsi %v : i32 to i64
      %seed = arith.constant 7 : i64
      %r = tgl.random uniform %seed, %k -> f32)",
                                 vec({0, 1, -1}, DType::I32), "i32", "f32");
  expectOk(result);
  // docs/random.md, evaluated independently.
  auto splitmix = [](uint64_t z) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  };
  std::vector<double> expected;
  for (int64_t k : {0, 1, -1})
    expected.push_back(double((splitmix(splitmix(7) ^ uint64_t(k)) >> 41) * 2 + 1) / 16777216);
  expectValues(result.outputs[0], expected);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

TEST_F(Interpreter, Reductions) {
  HostTensor x = vec({3, -1, 4, 1, -5, 9, 2, 6});
  expectValues(reduce("sum", x), {19});
  expectValues(reduce("prod", x), {6480});
  expectValues(reduce("max", x), {9});
  expectValues(reduce("min", x), {-5});
  expectValues(reduce("mean", x), {2.375});
  expectValues(reduce("var", x), {(173 - 8 * 2.375 * 2.375) / 8}, 1e-6);
  expectValues(reduce("var unbiased", x), {(173 - 8 * 2.375 * 2.375) / 7}, 1e-6);
  double logsumexp = 0;
  for (double value : values(x))
    logsumexp += std::exp(value);
  expectValues(reduce("logsumexp", x), {std::log(logsumexp)}, 1e-6);
  expectValues(reduce("argmax", x, "f32", "f32", "i64"), {5});
  expectValues(reduce("argmin", x, "f32", "f32", "i64"), {4});
}

TEST_F(Interpreter, ReductionsOverNothing) {
  HostTensor none = vec({});
  expectValues(reduce("sum", none), {0});
  expectValues(reduce("prod", none), {1});
  expectValues(reduce("max", none), {-inf});
  expectValues(reduce("min", none), {inf});
  expectValues(reduce("mean", none), {nan});
  expectValues(reduce("var", none), {nan});
  expectValues(reduce("var unbiased", vec({4})), {nan});
  expectValues(reduce("var", vec({4})), {0});
  expectValues(reduce("logsumexp", none), {-inf});
  HostTensor noBools = vec({}, DType::Bool);
  expectValues(reduce("any", noBools, "i1", "i1", "i1"), {0});
  expectValues(reduce("all", noBools, "i1", "i1", "i1"), {1});
  expectValues(reduce("count", noBools, "i1", "i1", "i64"), {0});
}

TEST_F(Interpreter, ReductionsOfBooleans) {
  HostTensor some = vec({0, 1, 1}, DType::Bool), every = vec({1, 1}, DType::Bool);
  expectValues(reduce("any", some, "i1", "i1", "i1"), {1});
  expectValues(reduce("all", some, "i1", "i1", "i1"), {0});
  expectValues(reduce("all", every, "i1", "i1", "i1"), {1});
  expectValues(reduce("count", some, "i1", "i1", "i64"), {2});
}

TEST_F(Interpreter, ReductionsPropagateNaN) {
  HostTensor x = vec({3, nan, 9, nan});
  for (llvm::StringRef kind : {"sum", "prod", "max", "min", "mean", "var", "logsumexp"}) {
    SCOPED_TRACE(kind.str());
    expectValues(reduce(kind, x), {nan});
  }
  expectValues(reduce("argmax", x, "f32", "f32", "i64"), {1});
  expectValues(reduce("argmin", x, "f32", "f32", "i64"), {1});
  expectValues(reduce("max", vec({-inf, -inf})), {-inf});
  expectValues(reduce("logsumexp", vec({-inf, -inf})), {-inf});
  expectValues(reduce("logsumexp", vec({1, inf, 2})), {inf});
  expectValues(reduce("logsumexp", vec({-inf, 2, -inf})), {2});
  expectValues(reduce("logsumexp", vec({1000, 1000})), {1000 + std::log(2.0)}, 1e-6);
  expectValues(reduce("sum", vec({inf, -inf})), {nan});
}

TEST_F(Interpreter, FirstOfEqualsWins) {
  expectValues(reduce("argmax", vec({1, 5, 5, 2}), "f32", "f32", "i64"), {1});
  expectValues(reduce("argmin", vec({3, 1, 5, 1}), "f32", "f32", "i64"), {1});
  expectValues(reduce("argmax", vec({0.0, -0.0, 0.0}), "f32", "f32", "i64"), {0});
}

TEST_F(Interpreter, IntegerReductionsWrapInTheirType) {
  HostTensor x = vec({2147483647, 1, 1}, DType::I32);
  expectValues(reduce("sum", x, "i32", "i32", "i32"), {-2147483647});
  expectValues(reduce("prod", vec({65536, 65536}, DType::I32), "i32", "i32", "i32"), {0});
  expectValues(reduce("max", x, "i32", "i32", "i32"), {2147483647});
  expectValues(reduce("min", vec({-3, 4}, DType::I64), "i64", "i64", "i64"), {-3});
}

TEST_F(Interpreter, F32SumsAccumulateWide) {
  std::vector<double> many(10001, 1.0);
  many[0] = 16777216;
  expectValues(reduce("sum", vec(many)), {16787216});
}

TEST_F(Interpreter, MaximumOfNoIntegersIsAnError) {
  InterpreterResult result = run(R"(
    tgl.kernel @k(%x: !tgl.tensor<[N], i32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[], i32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
      %r = tgl.reduce max (%i = 0 to N) -> i32 {
        %v = tgl.read %x[%i] : !tgl.tensor<[N], i32>
        tgl.yield %v : i32
      }
      tgl.write %r, %y[] : i32, !tgl.tensor<[], i32>
    })",
                                 {vec({}, DType::I32)});
  expectError(result, InterpreterError::Arithmetic, "of no integers");
}

TEST_F(Interpreter, FiltersAndTriangles) {
  InterpreterResult result = run(R"(
    tgl.kernel @k(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"},
                  %z: !tgl.tensor<[], f32> {tgl.name = "z", tgl.role = "out"}) sizes [N = 0 : 0] {
      %zero = arith.constant 0.0 : f32
      tgl.parallel (%i = 0 to N) {
        %r = tgl.reduce sum filtered (%j = 0 to %i + 1) -> f32 {
          %v = tgl.read %x[%j] : !tgl.tensor<[N], f32>
          %c = arith.cmpf ogt, %v, %zero : f32
          tgl.yield %v, %c : f32, i1
        }
        tgl.write %r, %y[%i] : f32, !tgl.tensor<[N], f32>
      }
      %n = tgl.reduce count (%a = 0 to N, %b = %a to N, %c = %b to %a + %b) -> i64 {
        %true = arith.constant true
        tgl.yield %true : i1
      }
      %f = arith.sitofp %n : i64 to f32
      tgl.write %f, %z[] : f32, !tgl.tensor<[], f32>
    })",
                                 {vec({1, -2, 3, -4})});
  expectOk(result);
  expectValues(result.outputs[0], {1, 1, 4, 4});
  // The inner extent is a: 0*4 + 1*3 + 2*2 + 3*1.
  expectValues(result.outputs[1], {10});
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

TEST_F(Interpreter, CumulativeScans) {
  HostTensor x = vec({3, -1, 4, 1});
  expectValues(scan("cumsum", x), {3, 2, 6, 7});
  expectValues(scan("cumsum exclusive", x), {0, 3, 2, 6});
  expectValues(scan("cumsum reverse", x), {7, 4, 5, 1});
  expectValues(scan("cumsum reverse exclusive", x), {4, 5, 1, 0});
  expectValues(scan("cumprod", x), {3, -3, -12, -12});
  expectValues(scan("cumprod exclusive", x), {1, 3, -3, -12});
  expectValues(scan("cummax", x), {3, 3, 4, 4});
  expectValues(scan("cummax exclusive", x), {-inf, 3, 3, 4});
  expectValues(scan("cummin", x), {3, -1, -1, -1});
  expectValues(scan("cummin exclusive reverse", x), {-1, 1, 1, inf});
  expectValues(scan("cummax", vec({1, nan, 5})), {1, nan, nan});
  HostTensor ints = vec({2147483647, 1, -7}, DType::I32);
  expectValues(scan("cumsum", ints, "i32", "i32"), {2147483647, -2147483648.0, 2147483641});
  expectValues(scan("cummax", vec({-3, -5, -1}, DType::I32), "i32", "i32"), {-3, -3, -1});
}

TEST_F(Interpreter, Softmax) {
  HostTensor x = vec({1, 2, 3});
  double sum = std::exp(1.) + std::exp(2.) + std::exp(3.);
  expectValues(scan("softmax", x), {std::exp(1.) / sum, std::exp(2.) / sum, std::exp(3.) / sum},
               1e-7);
  expectValues(scan("log_softmax", x), {1 - std::log(sum), 2 - std::log(sum), 3 - std::log(sum)},
               1e-7);
  expectValues(scan("softmax", vec({1000, -inf, 1000})), {0.5, 0, 0.5});
  expectValues(scan("softmax", vec({-inf, -inf})), {nan, nan});
  expectValues(scan("softmax", vec({1, nan})), {nan, nan});
  InterpreterResult result = run(R"(
    tgl.kernel @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
        sizes [M = 0 : 0, N = 0 : 1] {
      tgl.parallel (%i = 0 to M, %j = 0 to N) {
        %r = tgl.scan softmax (%k = 0 to M, %l = 0 to N) at [%i, %j] -> f32 {
          %v = tgl.read %x[%k, %l] : !tgl.tensor<[M, N], f32>
          tgl.yield %v : f32
        }
        tgl.write %r, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
      }
    })",
                                 {tensor(DType::F32, {2, 2}, {0, 0, 0, std::log(5.0)})});
  expectOk(result);
  expectValues(result.outputs[0], {0.125, 0.125, 0.125, 0.625}, 1e-7);
}

TEST_F(Interpreter, Sorting) {
  HostTensor x = vec({3, 1, nan, 1, -inf});
  expectValues(scan("sort", x), {-inf, 1, 1, 3, nan});
  expectValues(scan("argsort", x, "i64"), {4, 1, 3, 0, 2});
  expectValues(scan("sort descending", x), {nan, 3, 1, 1, -inf});
  expectValues(scan("argsort descending", x, "i64"), {2, 0, 1, 3, 4});
  expectValues(scan("topk_value", x), {nan, 3, 1, 1, -inf});
  expectValues(scan("topk_index", x, "i64"), {2, 0, 1, 3, 4});
  // Stability: -0 and 0 are equal.
  expectValues(scan("argsort", vec({0.0, -0.0, 0.0}), "i64"), {0, 1, 2});
  expectValues(scan("sort", vec({5, -3, 4}, DType::I64), "i64", "i64"), {-3, 4, 5});
}

TEST_F(Interpreter, SortsRowsInPlace) {
  llvm::StringRef text = R"(
    tgl.kernel @k(%y: !tgl.tensor<[M, N], f16> {tgl.name = "y", tgl.role = "inout"},
                  %p: !tgl.tensor<[M, N], i64> {tgl.name = "p", tgl.role = "inout"})
        sizes [M = 0 : 0, N = 0 : 1] {
      tgl.parallel (%i = 0 to M) {
        tgl.sort %y, %p[%i] ORDER : !tgl.tensor<[M, N], f16>, !tgl.tensor<[M, N], i64>
      }
    })";
  HostTensor y = tensor(DType::F16, {2, 3}, {3, nan, 1, 2, 1, 2});
  HostTensor p = tensor(DType::I64, {2, 3}, {10, 11, 12, 20, 21, 22});
  InterpreterResult result = run(replace(text.str(), {{"ORDER", ""}}), {y, p});
  expectOk(result);
  expectValues(result.outputs[0], {1, 3, nan, 1, 2, 2});
  expectValues(result.outputs[1], {12, 10, 11, 21, 20, 22});
  result = run(replace(text.str(), {{"ORDER", "descending"}}), {y, p});
  expectOk(result);
  expectValues(result.outputs[0], {nan, 3, 1, 2, 2, 1});
  expectValues(result.outputs[1], {11, 10, 12, 20, 22, 21});
}

TEST_F(Interpreter, Recurrence) {
  llvm::StringRef text = R"(
    tgl.kernel @k(%a: !tgl.tensor<[N], f32> {tgl.name = "a", tgl.role = "in"},
                  %b: !tgl.tensor<[N], f32> {tgl.name = "b", tgl.role = "in"},
                  %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"},
                  %h0: f32 {tgl.name = "h0", tgl.role = "scalar"}) sizes [N = 0 : 0] {
      tgl.parallel (%j = 0 to N) {
        %r = tgl.scan recurrence FLAGS (%t = 0 to N) at [%j] INIT -> f32 {
          %p = tgl.read %a[%t] : !tgl.tensor<[N], f32>
          %q = tgl.read %b[%t] : !tgl.tensor<[N], f32>
          tgl.yield %p, %q : f32, f32
        }
        tgl.write %r, %y[%j] : f32, !tgl.tensor<[N], f32>
      }
    })";
  HostTensor a = vec({2, 3, 4}), b = vec({1, 1, 1});
  auto with = [&](llvm::StringRef flags, llvm::StringRef init) {
    InterpreterResult result =
        run(replace(text.str(), {{"FLAGS", flags}, {"INIT", init}}), {a, b}, {}, {10.0});
    expectOk(result);
    return result.outputs[0];
  };
  expectValues(with("", ""), {1, 4, 17});
  expectValues(with("", "init %h0"), {21, 64, 257});
  expectValues(with("reverse", "init %h0"), {2 * (3 * 41 + 1) + 1, 3 * 41 + 1, 41});
}

TEST_F(Interpreter, PositionsOutsideAScanAreReported) {
  InterpreterResult result = run(R"(
    tgl.kernel @k(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
      tgl.parallel (%j = 0 to N) {
        %r = tgl.scan cumsum (%t = 0 to N - 1) at [%j] -> f32 {
          %p = tgl.read %x[%t] : !tgl.tensor<[N], f32>
          tgl.yield %p : f32
        }
        tgl.write %r, %y[%j] : f32, !tgl.tensor<[N], f32>
      }
    })",
                                 {vec({1, 2, 3})});
  expectError(result, InterpreterError::OutOfBounds, "position [2] is outside the scanned range");
}

} // namespace
} // namespace tegula::test
