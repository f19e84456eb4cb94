//===- CheckTest.cpp - The checker against the catalogue ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Check.h"
#include "frontend/OpenModule.h"
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
    module = openModule(sources, file, diagnostics);
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

/// The checker does not say these: test/rejected/catalogue.test asks who does.
bool isOfAnotherCommand(llvm::StringRef code) { return code == "E0913"; }

TEST_P(Catalogue, WrongIsDiagnosed) {
  const CodeInfo &info = codeInfo(codeOf(GetParam()));
  if (isShortened(info.code) || isOfAnotherCommand(info.code))
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
    return Checked(std::string("kernel k(a: ") + a + "[M, N], b: " + b +
                   "[M, N]) -> (y: f64[M, N]) {\n" +
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
    return Checked(std::string("kernel k(x: f32[") + dim +
                   "], n: f32[N]) -> (y: f32[N + 3]) {\n  y[i] = x[" + subscript + "] + n[0]\n}\n");
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
  auto far =
      Checked("kernel k(x: f32[M], n: f32[N]) -> (y: f32[N]) {\n  y[i] = x[i + 2000] + n[i]\n}\n");
  EXPECT_FALSE(far.diagnostics.hasErrors()) << far.text();
}

TEST(CheckBounds, ConstantsMayBeNegative) {
  for (const char *subscript : {"i - s - M", "-s - 1", "-s*M - M + i", "i - P - M"}) {
    auto read = Checked(
        std::string("kernel k(x: f32[N], w: f32[M], s: int) -> (y: f32[M]) where P = s - M {\n"
                    "  y[i] = x[") +
        subscript + "] * w[i]\n}\n");
    EXPECT_FALSE(read.diagnostics.hasErrors()) << read.text();
  }
  auto sizes =
      Checked("kernel k(x: f32[N], w: f32[M]) -> (y: f32[M]) {\n  y[i] = x[i - M] * w[i]\n}\n");
  EXPECT_TRUE(sizes.has(Code::ReadOutOfBounds)) << sizes.text();
}

TEST(CheckBounds, PiecesThatAlwaysMeetAreAnError) {
  auto pieces = [](const char *start) {
    return Checked(
        std::string("kernel k(a: f32[N], b: f32[N]) -> (y: f32[2*N]) {\n  y[i] = a[i] for i in N\n"
                    "  y[") +
        start + " + i] = b[i] for i in N\n}\n");
  };
  EXPECT_FALSE(pieces("N").diagnostics.hasErrors()) << pieces("N").text();
  EXPECT_TRUE(pieces("N - 1").has(Code::Overlap)) << pieces("N - 1").text();
}

//===----------------------------------------------------------------------===//
// No statement is dropped
//===----------------------------------------------------------------------===//

TEST(CheckStatements, IndexAsTensorIsAnError) {
  for (const char *body : {"z[i, j] = i[i, j]*x[i, j]\n  y[i] = sum(z[i, j] for j)",
                           "y[i] = sum(j[i, j]*x[i, j] for j)", "y[i] = sum(p[i, p] for p)",
                           "y[i] = sum(i[i, q in 3] for q)", "y[i] = p[p, 0] + x[i, 0] for i",
                           "v[i, r], e[i, r] = topk(r[i, j] for j, k=2)\n  y[i] = v[i, 0]",
                           "v[i, r], e[i, r] = topk(j[i, j] for j, k=2)\n  y[i] = v[i, 0]",
                           "parallel i in M {\n    y[i] = sum(q[i, q] for q)\n  }",
                           "for t in M {\n    y[t] = sum(q[t, q] for q)\n  }",
                           "t[i] = max(x[i, j] for j) + t[i]\n  y[i] = t[i]", "y[i] = x[i, y[i]]",
                           "t[(g, e)] = e[(g, e)]\n  y[i] = x[i, 0]",
                           "state s[i in M] = s[i]\n  y[i] = s[i]", "y[i[i, j] % M] += 1.0"}) {
    Checked checked("kernel k(x: f32[M, N]) -> (y: f32[M]) {\n  " + std::string(body) + "\n}\n");
    EXPECT_TRUE(checked.diagnostics.hasErrors()) << body;
    EXPECT_EQ(checked.text().find("no message says why"), std::string::npos)
        << body << checked.text();
  }
  Checked checked("kernel k(x: f32[M, N]) -> (y: f32[M]) {\n  y[i] = sum(n[i, n] for n)\n}\n");
  EXPECT_TRUE(checked.has(Code::WrongKind)) << checked.text();
}

/// The axes of a reduction that reads the state it changes end; that such loops depend on the tile
/// is found by running them.
TEST(CheckTiles, StateReadInItsOwnReduction) {
  for (const char *body :
       {"l = l + sum(exp(x[i, j] - l) for j)",
        "m2 = maximum(m, max(l for j))\n      l = l*m2 + sum(x[i, j] for j)\n      m = m2",
        "l = l + sum(sum(x[i, j]*l + x[i, q] for q) for j)",
        "m = maximum(m, max(m + l + x[i, j] for j))\n      l = l + sum(m for j)",
        "l = l + sum(x[i, j]*sum((l + 1)*x[i, q] for q) for j)"}) {
    Checked checked("kernel k(x: f32[M, N]) -> (y: f32[M]) {\n  parallel i in M {\n    state m = "
                    "0.0\n    state l = 0.0\n"
                    "    for j in tiles(N) {\n      " +
                    std::string(body) + "\n    }\n    y[i] = l + m\n  }\n}\n");
    EXPECT_TRUE(checked.has(Code::TileDependent)) << body << checked.text();
  }
}

//===----------------------------------------------------------------------===//
// Ranges written in subscripts
//===----------------------------------------------------------------------===//

/// The bounds of all axes of the program with that name, `lo:hi`.
std::string rangesOf(const Checked &checked, llvm::StringRef name) {
  if (!checked.program)
    return "refused: " + checked.text();
  std::string result;
  llvm::raw_string_ostream os(result);
  for (const checked::Var &var : checked.program->vars)
    if (var.name == name)
      os << var.lo << ":" << var.hi << " ";
  return result;
}

TEST(CheckRange, InASubscriptIsTheIndexRange) {
  auto kernel = [](const char *body) {
    return Checked("kernel k(x: f32[M, 12], w: f32[5]) -> (y: f32[M]) {\n  " + std::string(body) +
                   "\n}\n");
  };
  EXPECT_EQ(rangesOf(kernel("y[i] = sum(x[i, j in 3] for j)"), "j"), "0:3 ");
  EXPECT_EQ(rangesOf(kernel("y[i] = sum(x[i, j in 1:4]*w[j] for j)"), "j"), "1:4 ");
  EXPECT_EQ(rangesOf(kernel("y[i] = sum(w[j]*x[i, j in 1:4] for j)"), "j"), "1:4 ")
      << "not the dim of 'w'";
  EXPECT_EQ(rangesOf(kernel("y[i] = sum(x[i, j in 20, fill=0] for j)"), "j"), "0:20 ");
  EXPECT_EQ(rangesOf(kernel("y[i] = sum(x[i, (1, e in 3)] for e)"), "e"), "0:3 ");
  EXPECT_EQ(rangesOf(kernel("y[i] = sum(x[i, (g, e in 4)] for g, e)"), "g"), "0:3 ") << "12/4";
  EXPECT_EQ(rangesOf(kernel("y[i] = f32(argmax(x[i, (2, e in 4)] for e))"), "e"), "0:4 ");
  EXPECT_EQ(rangesOf(kernel("t[a, b] = x[a, b in 2]\n  y[i] = t[i, 1]"), "b"), "0:2 ");
  EXPECT_EQ(rangesOf(kernel("t[a, b] = cumsum(x[a, b in 2], over=b)\n  y[i] = t[i, 1]"), "b"),
            "0:2 0:2 ");
  EXPECT_EQ(rangesOf(kernel("y[i] = sum(x[i, j in 3] for j in 3)"), "j"), "0:3 ")
      << "twice the same";
  EXPECT_EQ(rangesOf(kernel("y[i in M] = sum(x[i in M, j] for j)"), "i"), "0:M ");
  EXPECT_EQ(
      rangesOf(kernel("v[a, r], e[a, r] = topk(x[a, j in 4] for j, k=2)\n  y[i] = v[i, 0]"), "j"),
      "0:4 0:4 ");
}

TEST(CheckRange, ConflictsInSubscriptsAreErrors) {
  for (const char *body :
       {"y[i] = sum(x[i, j in 3]*w[j in 4] for j)", "y[i] = sum(x[i, j in 3] for j in 4)",
        "y[i] = sum(x[i, j in 1:3] for j in 3)", "y[i in M] = x[i in 3, 0]",
        "parallel i in M {\n    y[i] = x[i in 2, 0]\n  }",
        "for t in M {\n    y[t] = x[t in 2, 0]\n  }",
        "parallel i in M {\n    state s = 0.0\n    for j in tiles(12) { s = s + sum(x[i, j in 3] "
        "for j) }\n    y[i] = s\n  }",
        "y[i] = sum(x[i, (g, e in 4)] for g, e in 3)",
        "v[a, r in 1], e[a, r] = topk(x[a, j] for j, k=2)\n  y[i] = v[i, 0]"}) {
    Checked checked("kernel k(x: f32[M, 12], w: f32[5]) -> (y: f32[M]) {\n  " + std::string(body) +
                    "\n}\n");
    EXPECT_TRUE(checked.has(Code::RangeConflict)) << body << checked.text();
  }
  for (const char *read :
       {"x[i, j + 1 in 3]", "x[i, 2 in 3]", "x[i, M in 3]", "x[i, (1 in 2, j)]"}) {
    Checked checked("kernel k(x: f32[M, 12]) -> (y: f32[M]) {\n  y[i] = sum(" + std::string(read) +
                    " for j in 2)\n}\n");
    EXPECT_TRUE(checked.has(Code::WrongKind)) << read << checked.text();
    for (const Diagnostic &one : checked.diagnostics.all())
      EXPECT_TRUE(one.fixes.empty()) << "no edit drops the range: " << checked.text();
  }
  // 32*(N//32) is N where 32 divides N: that is what the launch asks.
  Checked group("kernel k(x: f32[M, N]) -> (c: f32[M, N//32]) {\n  c[m, g] = sum(x[m, (g, e in "
                "32)] for e)\n}\n");
  EXPECT_TRUE(group.has(Code::GuardAgree)) << group.text();
}

//===----------------------------------------------------------------------===//
// Reductions in subscripts on the left
//===----------------------------------------------------------------------===//

TEST(CheckLeft, ReductionsHaveIndicesOfTheirOwn) {
  for (const char *body :
       {"y[argmax(x[i, k] for k)] += 1.0 for i in M", "y[sum(n[r] for r) % N] += w[i] for i",
        "y[count(x[i, k] > 0.0 for k in N if k > 1) % N] += w[i] for i",
        "y[sum(n[r in 2] for r) % N] += w[i] for i in M"}) {
    Checked checked("kernel k(x: f32[M, N], n: i64[K], w: f32[M]) -> (y: f32[N]) {\n  " +
                    std::string(body) + "\n}\n");
    EXPECT_FALSE(checked.diagnostics.hasErrors()) << checked.text();
  }
}

/// A member that is a literal 0 stands on the left all the same.
TEST(CheckLeft, GroupsMayBeEmpty) {
  for (const char *kernel :
       {"k(x: f32[2, 0]) -> (y: f32[0]) {\n  y[(i, j)] = x[i, j]\n}\n",
        "k(x: f32[0, 0, 0]) -> (y: f32[0]) {\n  y[(i, j, k)] = x[i, j, k]\n}\n",
        "k(x: f32[0, 3, 4]) -> (y: f32[0]) {\n  y[(i, j, k)] = x[i, j, k]\n}\n"}) {
    Checked checked("kernel " + std::string(kernel));
    EXPECT_FALSE(checked.diagnostics.hasErrors()) << checked.text();
  }
}

/// Sizes defined by extrema of sizes: what one level costs is not doubled by the next.
TEST(CheckSizes, ExtremaNest) {
  for (auto [before, after] : {std::pair("relu(", ")"), std::pair("maximum(", " - 1, M)"),
                               std::pair("minimum(M, 2*", ")")}) {
    std::string size = "N";
    for (unsigned level = 0; level != 40; ++level)
      size = before + size + after;
    Checked checked("kernel k(x: f32[N], w: f32[M]) -> (y: f32[" + size +
                    "]) {\n  y[i] = x[i, fill=0] + w[0]*0.0\n}\n");
    EXPECT_FALSE(checked.diagnostics.hasErrors()) << checked.text();
  }
}

} // namespace
