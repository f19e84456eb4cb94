//===- InterpreterTest.cpp - What each op means, executed ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/Interpreter.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <random>

using namespace tegula;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

HostTensor tensor(DType type, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<double> values) {
  HostTensor result(type, shape);
  EXPECT_EQ(result.numElements(), int64_t(values.size()));
  for (auto [n, value] : llvm::enumerate(values))
    result.set(int64_t(n), value);
  return result;
}
HostTensor vec(llvm::ArrayRef<double> values, DType type = DType::F32) {
  return tensor(type, {int64_t(values.size())}, values);
}

std::vector<double> values(const HostTensor &tensor) {
  std::vector<double> result;
  for (int64_t n = 0; n < tensor.numElements(); ++n)
    result.push_back(tensor.get(n));
  return result;
}

void expectValues(const HostTensor &tensor, llvm::ArrayRef<double> expected,
                  double tolerance = 0) {
  std::vector<double> found = values(tensor);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t n = 0; n < found.size(); ++n) {
    if (std::isnan(expected[n]))
      EXPECT_TRUE(std::isnan(found[n])) << "element " << n << " is " << found[n];
    else if (tolerance == 0 || std::isinf(expected[n]))
      EXPECT_EQ(found[n], expected[n]) << "element " << n;
    else
      EXPECT_NEAR(found[n], expected[n], tolerance * std::max(1.0, std::fabs(expected[n])))
          << "element " << n;
  }
}

class Interpreter : public ::testing::Test {
protected:
  Interpreter() { context.loadDialect<tgl::TglDialect>(); }

  /// Runs the last kernel of the text.
  InterpreterResult run(llvm::StringRef text, llvm::ArrayRef<HostTensor> inputs,
                        const InterpreterOptions &options = {},
                        llvm::ArrayRef<InterpreterScalar> scalars = {},
                        const llvm::StringMap<int64_t> &sizes = {}) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
    EXPECT_TRUE(bool(module)) << text.str();
    if (!module)
      return {};
    tgl::KernelOp last;
    for (auto kernel : module->getOps<tgl::KernelOp>())
      last = kernel;
    return interpret(last, inputs, sizes, scalars, options);
  }

  /// y[i] = body(x[i]), which uses %v and defines %r. `in` and `out` are element types of IR.
  InterpreterResult map(llvm::StringRef body, const HostTensor &x, llvm::StringRef in = "f32",
                        llvm::StringRef out = "f32", const InterpreterOptions &options = {}) {
    std::string compute = out == "f64" || out == "i64" || out == "i1" ? out.str()
                          : out.contains('f')                        ? "f32"
                                                                     : "i32";
    std::string text = R"(
      tgl.kernel @k(%x: !tgl.tensor<[N], IN> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[N], OUT> {tgl.name = "y", tgl.role = "out"})
          sizes [N = 0 : 0] {
        tgl.parallel (%i = 0 to N) {
          %v = tgl.read %x[%i] : !tgl.tensor<[N], IN>
          BODY
          tgl.write %r, %y[%i] : COMPUTE, !tgl.tensor<[N], OUT>
        }
      })";
    return run(replace(text, {{"IN", in}, {"OUT", out}, {"COMPUTE", compute}, {"BODY", body}}),
               {x}, options);
  }

  /// y = reduction of x, all of it; `flags` such as "var unbiased".
  HostTensor reduce(llvm::StringRef flags, const HostTensor &x, llvm::StringRef in = "f32",
                    llvm::StringRef compute = "f32", llvm::StringRef result = "f32") {
    std::string text = R"(
      tgl.kernel @k(%x: !tgl.tensor<[N], IN> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[], RESULT> {tgl.name = "y", tgl.role = "out"})
          sizes [N = 0 : 0] {
        %r = tgl.reduce FLAGS (%i = 0 to N) -> RESULT {
          %v = tgl.read %x[%i] : !tgl.tensor<[N], IN>
          tgl.yield %v : COMPUTE
        }
        tgl.write %r, %y[] : RESULT, !tgl.tensor<[], RESULT>
      })";
    InterpreterResult result_ = run(
        replace(text, {{"RESULT", result}, {"FLAGS", flags}, {"IN", in}, {"COMPUTE", compute}}),
        {x});
    expectOk(result_);
    return result_.outputs.empty() ? HostTensor(DType::F32, {}) : result_.outputs[0];
  }

  /// y[j] = scan of x at j.
  HostTensor scan(llvm::StringRef flags, const HostTensor &x, llvm::StringRef result = "f32",
                  llvm::StringRef in = "f32") {
    std::string text = R"(
      tgl.kernel @k(%x: !tgl.tensor<[N], IN> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[N], RESULT> {tgl.name = "y", tgl.role = "out"})
          sizes [N = 0 : 0] {
        tgl.parallel (%j = 0 to N) {
          %r = tgl.scan FLAGS (%i = 0 to N) at [%j] -> RESULT {
            %v = tgl.read %x[%i] : !tgl.tensor<[N], IN>
            tgl.yield %v : IN
          }
          tgl.write %r, %y[%j] : RESULT, !tgl.tensor<[N], RESULT>
        }
      })";
    InterpreterResult result_ =
        run(replace(text, {{"RESULT", result}, {"FLAGS", flags}, {"IN", in}}), {x});
    expectOk(result_);
    return result_.outputs.empty() ? HostTensor(DType::F32, {0}) : result_.outputs[0];
  }

  static std::string replace(std::string text,
                             llvm::ArrayRef<std::pair<llvm::StringRef, llvm::StringRef>> words) {
    for (auto [from, to] : words)
      for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to.str());
    return text;
  }

  static void expectOk(const InterpreterResult &result) {
    for (const InterpreterError &error : result.errors)
      ADD_FAILURE() << error.message;
  }

  static void expectError(const InterpreterResult &result, InterpreterError::Kind kind,
                          llvm::StringRef message) {
    for (const InterpreterError &error : result.errors)
      if (error.kind == kind && llvm::StringRef(error.message).contains(message))
        return;
    ADD_FAILURE() << "no error of kind " << kind << " with '" << message.str() << "'; found "
                  << result.errors.size()
                  << (result.errors.empty() ? "" : ": " + result.errors[0].message);
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

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
    InterpreterResult result =
        map("%c = arith.constant " + std::to_string(int64_t(c)) + " : i32\n %r = " + op.str() +
                " %v, %c : i32",
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
    InterpreterResult result = map("%c = arith.constant 2.0 : f32\n %r = arith.cmpf " +
                                       predicate.str() + ", %v, %c : f32",
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
    InterpreterResult result = map("%r = tgl.convert %v to " + target.str() + " : f32 -> " +
                                       compute.str(),
                                   vec(x), "f32", compute);
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
  expectError(run(text, {x(4, 2), w(4)}, {}, {1.0}), InterpreterError::Invalid, "1 scalars too many");
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
