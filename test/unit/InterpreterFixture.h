//===- InterpreterFixture.h - Running textual IR in tests ------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TEST_INTERPRETERFIXTURE_H
#define TEGULA_TEST_INTERPRETERFIXTURE_H

#include "ir/interpreter/Interpreter.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

namespace tegula::test {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline HostTensor tensor(DType type, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<double> values) {
  HostTensor result(type, shape);
  EXPECT_EQ(result.numElements(), int64_t(values.size()));
  for (auto [n, value] : llvm::enumerate(values))
    result.set(int64_t(n), value);
  return result;
}
inline HostTensor vec(llvm::ArrayRef<double> values, DType type = DType::F32) {
  return tensor(type, {int64_t(values.size())}, values);
}

inline std::vector<double> values(const HostTensor &tensor) {
  std::vector<double> result;
  for (int64_t n = 0; n < tensor.numElements(); ++n)
    result.push_back(tensor.get(n));
  return result;
}

inline void expectValues(const HostTensor &tensor, llvm::ArrayRef<double> expected,
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
                          : out.contains('f')                         ? "f32"
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
    return run(replace(text, {{"IN", in}, {"OUT", out}, {"COMPUTE", compute}, {"BODY", body}}), {x},
               options);
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
    InterpreterResult result_ =
        run(replace(text, {{"RESULT", result}, {"FLAGS", flags}, {"IN", in}, {"COMPUTE", compute}}),
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

} // namespace tegula::test

#endif // TEGULA_TEST_INTERPRETERFIXTURE_H
