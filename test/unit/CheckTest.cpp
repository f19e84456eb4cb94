//===- CheckTest.cpp - The checker against the catalogue ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Check.h"
#include "frontend/Module.h"
#include "gtest/gtest.h"

using namespace tegula;

namespace {

struct Checked {
  SourceManager sources;
  Diagnostics diagnostics{sources};
  std::unique_ptr<Module> module;
  std::unique_ptr<checked::Program> program; // of the last kernel

  explicit Checked(std::string text, const InstanceOptions &options = {}) {
    uint32_t file = sources.add("test.tgl", std::move(text));
    module = std::make_unique<Module>(sources, file, diagnostics);
    if (diagnostics.hasErrors())
      return;
    for (const auto &kernel : module->file().kernels) {
      InstanceOptions each = options;
      each.kernel = kernel->name.name;
      each.remarks = true;
      program = check(*module, each, diagnostics);
    }
  }
  bool has(Code code) const {
    return llvm::any_of(diagnostics.all(), [&](const Diagnostic &one) { return one.code == code; });
  }
  std::string text() const {
    std::string result;
    llvm::raw_string_ostream os(result);
    diagnostics.printText(os, /*color=*/false);
    return result;
  }
};

Code codeOf(llvm::StringRef code) {
  for (const CodeInfo &info : allCodes())
    if (info.code == code)
      return static_cast<Code>(&info - allCodes().data());
  ADD_FAILURE() << "no code " << code.str();
  return Code::SyntaxError;
}

class Catalogue : public testing::TestWithParam<std::string> {};

/// The texts of these are shortened in the catalogue.
bool isShortened(llvm::StringRef code) { return code == "E0105" || code == "E0107"; }

TEST_P(Catalogue, WrongIsDiagnosed) {
  const CodeInfo &info = codeInfo(codeOf(GetParam()));
  if (isShortened(info.code))
    return;
  // The entry is chosen by name on the command line; no text alone shows it.
  Checked checked(info.wrong.str());
  EXPECT_TRUE(checked.has(codeOf(GetParam()))) << info.wrong.str() << checked.text();
  // No cascades: one mistake, one kind of message.
  for (const Diagnostic &one : checked.diagnostics.all())
    EXPECT_EQ(one.code, codeOf(GetParam())) << info.wrong.str() << checked.text();
}

TEST_P(Catalogue, RightIsClean) {
  const CodeInfo &info = codeInfo(codeOf(GetParam()));
  Checked checked(info.right.str());
  EXPECT_FALSE(checked.diagnostics.hasErrors()) << info.right.str() << checked.text();
  EXPECT_FALSE(checked.has(codeOf(GetParam()))) << info.right.str() << checked.text();
}

std::vector<std::string> codes() {
  std::vector<std::string> result;
  for (const CodeInfo &info : allCodes())
    result.push_back(info.code.str());
  return result;
}

INSTANTIATE_TEST_SUITE_P(Codes, Catalogue, testing::ValuesIn(codes()),
                         [](const auto &info) { return info.param; });

//===----------------------------------------------------------------------===//
// Nothing to reduce, mixed floats
//===----------------------------------------------------------------------===//

TEST(CheckReduce, FalseFilterOverNoValueIsAnError) {
  for (const char *reduction : {"argmax(x[k] for k if c)", "max(n[k] for k if c)"}) {
    std::string text = std::string("kernel k(x: f32[N], n: i32[N], c: bool = false) -> (y: f32) {\n"
                                   "  y = f32(") +
                       reduction + ")\n}\n";
    EXPECT_TRUE(Checked(text).has(Code::EmptyReduction)) << Checked(text).text();
    // Where another constant excludes it, nobody asks for its value.
    std::string excluded = text;
    excluded.replace(excluded.find("f32(" + std::string(reduction)), 4, "where(c, f32(");
    excluded.replace(excluded.rfind(")\n}"), 1, "), 0)");
    EXPECT_FALSE(Checked(excluded).diagnostics.hasErrors()) << excluded << Checked(excluded).text();
  }
}

TEST(CheckCall, CatTakesFloatsOfTwoTypes) {
  auto cat = [](const char *a, const char *b) {
    return Checked(std::string("kernel k(a: ") + a + "[M, N], b: " + b + "[M, N]) -> (y: f64[M, N]) {\n" +
                   "  h = cat(a, b, dim=0)\n  y[i, j] = h[i, j]\n}\n");
  };
  EXPECT_FALSE(cat("f32", "f64").diagnostics.hasErrors()) << cat("f32", "f64").text();
  auto result = cat("bf16", "f64");
  ASSERT_TRUE(result.program) << result.text();
  for (const checked::Tensor &tensor : result.program->tensors)
    if (tensor.name == "h" || tensor.name == "cat")
      EXPECT_EQ(tensor.type, checked::DType::BF16) << "the first one's type";
  EXPECT_TRUE(cat("f32", "i32").has(Code::ArgumentKind)) << cat("f32", "i32").text();
  EXPECT_TRUE(cat("i32", "i64").has(Code::ArgumentKind)) << cat("i32", "i64").text();
}

//===----------------------------------------------------------------------===//
// What fails at every size tried
//===----------------------------------------------------------------------===//

TEST(CheckBounds, FailingAtEverySizeTriedIsAnError) {
  auto read = [](const char *subscript, const char *dim = "N + 3") {
    return Checked(std::string("kernel k(x: f32[") + dim + "], n: f32[N]) -> (y: f32[N + 3]) {\n  y[i] = x[" +
                   subscript + "] + n[0]\n}\n");
  };
  // The ends are inside, the middle never is, and no corner of the domain shows it.
  auto middle = read("N + 2 + i*(N + 2 - i)");
  EXPECT_TRUE(middle.has(Code::ReadOutOfBounds)) << middle.text();
  EXPECT_NE(middle.text().find("at every size tried"), std::string::npos) << middle.text();
  // Large numbers may need large sizes: the launch decides.
  for (const char *subscript : {"(i*1000 + 3000) % 4096", "i + 2000"}) {
    auto large = read(subscript, "N");
    EXPECT_FALSE(large.diagnostics.hasErrors() && std::string(subscript) != "i + 2000")
        << large.text();
  }
  auto far = Checked("kernel k(x: f32[M], n: f32[N]) -> (y: f32[N]) {\n  y[i] = x[i + 2000] + n[i]\n}\n");
  EXPECT_FALSE(far.diagnostics.hasErrors()) << far.text();
}

TEST(CheckBounds, ConstantsMayBeNegative) {
  for (const char *subscript : {"i - s - M", "-s - 1", "-s*M - M + i", "i - P - M"}) {
    auto read = Checked(std::string("kernel k(x: f32[N], w: f32[M], s: int) -> (y: f32[M]) where P = s - M {\n"
                                    "  y[i] = x[") +
                        subscript + "] * w[i]\n}\n");
    EXPECT_FALSE(read.diagnostics.hasErrors()) << read.text();
  }
  auto sizes = Checked("kernel k(x: f32[N], w: f32[M]) -> (y: f32[M]) {\n  y[i] = x[i - M] * w[i]\n}\n");
  EXPECT_TRUE(sizes.has(Code::ReadOutOfBounds)) << sizes.text();
}

TEST(CheckBounds, PiecesThatAlwaysMeetAreAnError) {
  auto pieces = [](const char *start) {
    return Checked(std::string("kernel k(a: f32[N], b: f32[N]) -> (y: f32[2*N]) {\n  y[i] = a[i] for i in N\n"
                               "  y[") +
                   start + " + i] = b[i] for i in N\n}\n");
  };
  EXPECT_FALSE(pieces("N").diagnostics.hasErrors()) << pieces("N").text();
  EXPECT_TRUE(pieces("N - 1").has(Code::Overlap)) << pieces("N - 1").text();
}

} // namespace
