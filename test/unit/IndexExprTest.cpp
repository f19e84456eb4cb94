//===- IndexExprTest.cpp - Integer expressions ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "symbolic/IndexExpr.h"
#include "gtest/gtest.h"
#include <bit>
#include <random>

using namespace tegula;

static IndexExpr parse(llvm::StringRef text) {
  std::optional<IndexExpr> expr = IndexExpr::parse(text);
  EXPECT_TRUE(expr) << text.str();
  return expr ? *expr : IndexExpr(-12345);
}

static std::optional<int64_t> evaluate(const IndexExpr &expr, llvm::ArrayRef<int64_t> dims) {
  return expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
    if (var.isSymbol() || var.position() >= dims.size())
      return std::nullopt;
    return dims[var.position()];
  });
}

TEST(IndexExpr, EqualPolynomialsAreEqual) {
  EXPECT_EQ(parse("(A + B)*2"), parse("2*B + 2*A"));
  EXPECT_EQ(parse("(A + B)*(A - B)"), parse("A*A - B*B"));
  EXPECT_EQ(parse("x % 4"), parse("x - 4*(x//4)"));
  EXPECT_EQ(parse("x - x"), IndexExpr(0));
  EXPECT_NE(parse("A*B"), parse("A + B"));
  EXPECT_EQ(hash_value(parse("A*B + 1")), hash_value(parse("1 + B*A")));
}

TEST(IndexExpr, PrintsTegula) {
  auto roundTrip = [](llvm::StringRef text) { return parse(text).str(); };
  EXPECT_EQ(roundTrip("3*C"), "3*C");
  EXPECT_EQ(roundTrip("(H + 2*pad - KH)//2 + 1"), "pad + (H - KH)//2 + 1");
  EXPECT_EQ(roundTrip("d0 + 4*d1 - 1"), "d0 + 4*d1 - 1");
  EXPECT_EQ(roundTrip("-d0 + M - 1"), "M - d0 - 1");
  EXPECT_EQ(roundTrip("-(x//4)"), "-(x//4)");
  EXPECT_EQ(roundTrip("-x//3"), "(-x)//3");
  EXPECT_EQ(roundTrip("M*(d0//N)"), "M*(d0//N)");
  EXPECT_EQ(roundTrip("min(M, d0 + 4)"), "min(M, d0 + 4)");
  EXPECT_EQ(roundTrip("where(a < b, c, d)"), "where(a + 1 <= b, c, d)");
  EXPECT_EQ(roundTrip("where(a != b, c, d)"), "where(b == a, d, c)");
  EXPECT_EQ(roundTrip("(a floordiv b) mod c"), "a//b - c*((a//b)//c)");
}

TEST(IndexExpr, SimplifiesDivision) {
  EXPECT_EQ(parse("(4*x + 3)//4"), parse("x"));
  EXPECT_EQ(parse("(4*x - 1)//4"), parse("x - 1"));
  EXPECT_EQ(parse("(6*x + 3)//4"), parse("x + (2*x + 3)//4"));
  EXPECT_EQ(parse("(x//2)//3"), parse("x//6"));
  EXPECT_EQ(parse("(x//2 + 1)//3"), parse("(x + 2)//6"));
  EXPECT_EQ(parse("(x % 4)//4"), IndexExpr(0));
  EXPECT_EQ(parse("x // -2"), parse("(-x)//2"));
  EXPECT_EQ(parse("-7//2"), IndexExpr(-4));
  EXPECT_EQ(parse("-7 % 3"), IndexExpr(2));
  EXPECT_NE(parse("(E*x)//E"), parse("x")); // E may be 0
  EXPECT_FALSE(parse("x//0").evaluate([](const IndexVar &) { return 1; }));
}

TEST(IndexExpr, SimplifiesExtremaAndConditionals) {
  EXPECT_EQ(parse("min(x + 1, x)"), parse("x"));
  EXPECT_EQ(parse("max(x + 1, min(x, x))"), parse("x + 1"));
  EXPECT_EQ(parse("min(a, min(b, a + 2))"), parse("min(b, a)"));
  EXPECT_EQ(parse("where(x <= x + 1, a, b)"), parse("a"));
  EXPECT_EQ(parse("where(2*x == 2*y + 1, a, b)"), parse("b"));
  EXPECT_EQ(parse("where(2*x <= 2*y + 1, a, b)"), parse("where(x <= y, a, b)"));
  EXPECT_EQ(parse("where(x == y, a, b)"), parse("where(y == x, a, b)"));
}

TEST(IndexExpr, OverflowIsSticky) {
  IndexExpr big = parse("9223372036854775807");
  EXPECT_FALSE(big.isOverflow());
  EXPECT_TRUE((big + 1).isOverflow());
  EXPECT_TRUE((big * parse("2*x")).isOverflow());
  EXPECT_TRUE(IndexExpr::floorDiv(big + 1, 2).isOverflow());
  EXPECT_TRUE(IndexExpr::min(big + 1, 2).isOverflow());
  EXPECT_EQ((big + 1).str(), "overflow");
  EXPECT_EQ(parse("overflow"), big + 1);
  EXPECT_NE(big + 1, IndexExpr(0));
  EXPECT_FALSE(evaluate(big * IndexExpr::dim(0), {2}));
  EXPECT_EQ(evaluate(parse("4611686018427387904*d0 - 4611686018427387904*d1"), {3, 2}), int64_t(1)
                                                                                            << 62);
  IndexExpr wide = 0;
  for (int i = 0; i < 100; ++i)
    wide = wide + IndexExpr::dim(i);
  EXPECT_FALSE(wide.isOverflow());
  EXPECT_TRUE((wide * wide).isOverflow()); // too many terms
}

TEST(IndexExpr, NamesThatCouldBeMistakenAreQuoted) {
  for (llvm::StringRef name : {"d0", "min", "overflow", "a.b", "x\"y", "back\\slash"}) {
    IndexExpr expr = IndexExpr::symbol(name) + 1;
    EXPECT_EQ(parse(expr.str()), expr) << expr.str();
    EXPECT_FALSE(expr.str().starts_with(name)) << expr.str();
  }
  EXPECT_EQ(IndexExpr::symbol("d0x").str(), "d0x");
}

TEST(IndexExpr, ComputesInDoublesAsPythonDoes) {
  using Step = IndexExpr::FloatStep;
  using Op = IndexExpr::FloatOp;
  auto apply = [](Op op) { return std::pair(Step::Apply, IndexExpr(int64_t(op))); };
  auto number = [](double value) {
    return std::pair(Step::Number, IndexExpr(std::bit_cast<int64_t>(value)));
  };
  auto push = [](IndexExpr value) { return std::pair(Step::Push, std::move(value)); };
  IndexExpr n = IndexExpr::symbol("N"), e = IndexExpr::symbol("E");
  IndexExpr size = IndexExpr::ofFloats(
      {number(1.1), push(n), apply(Op::Mul), push(e), apply(Op::FloorDiv), apply(Op::Trunc)});
  auto at = [](const IndexExpr &expr, int64_t n, int64_t e) {
    return expr.evaluate([&](const IndexVar &var) { return var.name() == "N" ? n : e; });
  };
  EXPECT_EQ(at(size, 100, 5), 22);
  EXPECT_EQ(at(size, 30, 11), 3) << "1.1*30 is 33.0";
  EXPECT_EQ(at(size, 1, 0), std::nullopt);
  EXPECT_EQ(at(size, INT64_MAX, 1), std::nullopt) << "beyond 2^53";
  EXPECT_EQ(size.str(), "int(trunc(((1.1*N)//E)))");
  std::string text;
  llvm::raw_string_ostream stream(text);
  size.print(stream, [](llvm::raw_ostream &, unsigned) {}, IndexExpr::Syntax::IR);
  EXPECT_EQ(IndexExpr::parse(text), size) << text;
  EXPECT_EQ(size.substitute([](const IndexVar &var) -> std::optional<IndexExpr> {
    return var.name() == "N" ? 100 : 5;
  }),
            IndexExpr(22));
  EXPECT_TRUE(IndexExpr::ofFloats({number(0.5), push(3), apply(Op::Mul)}).isOverflow());
  EXPECT_EQ(at(IndexExpr::ofFloats({number(0.5), push(n), apply(Op::Mul)}), 3, 0), std::nullopt);
  // Python's: -7.5 // 2 is -4, round(2.5) is 2.
  EXPECT_EQ(IndexExpr::ofFloats({number(-7.5), push(2), apply(Op::FloorDiv)}), IndexExpr(-4));
  EXPECT_EQ(IndexExpr::ofFloats({number(2.5), apply(Op::Round)}), IndexExpr(2));
}

TEST(IndexExpr, RejectsBadText) {
  for (llvm::StringRef text : {"", "1 +", "(1", "a b", "min(1", "min", "where(a, b, c)", "1e5", "$",
                               "99999999999999999999", "d99999999999", "a /b", "\"\"", "\"a"})
    EXPECT_FALSE(IndexExpr::parse(text)) << text.str();
  EXPECT_FALSE(IndexExpr::parse(std::string(100000, '(')));
  EXPECT_TRUE(IndexExpr::parse(std::string(100000, '-') + "1"));
}

TEST(IndexExpr, Substitutes) {
  IndexExpr expr = parse("d0*d0 + d1//d0 + min(d0, M)");
  IndexExpr swapped = expr.substitute([](const IndexVar &var) -> std::optional<IndexExpr> {
    if (var.isSymbol())
      return std::nullopt;
    return IndexExpr::dim(1 - var.position());
  });
  EXPECT_EQ(swapped, parse("d1*d1 + d0//d1 + min(M, d1)"));
  EXPECT_EQ(expr.substitute([](const IndexVar &var) { return IndexExpr(4); }), IndexExpr(21));
}

TEST(IndexExpr, KnowsItsVariables) {
  IndexExpr expr = parse("min(d3, N)*M + d0");
  llvm::SmallVector<IndexVar> vars = expr.variables();
  ASSERT_EQ(vars.size(), 4u);
  EXPECT_EQ(vars[0], IndexVar::dim(0));
  EXPECT_EQ(vars[1], IndexVar::dim(3));
  EXPECT_EQ(vars[2], IndexVar::symbol("M"));
  EXPECT_FALSE(expr.isSize());
  EXPECT_TRUE(parse("3*M + N//2").isSize());
  EXPECT_EQ(parse("d7").asVariable(), IndexVar::dim(7));
  EXPECT_FALSE(parse("2*d7").asVariable());
}

namespace {
/// Builds random expressions beside a direct evaluation of what was written.
struct Generator {
  std::mt19937_64 random;
  llvm::ArrayRef<int64_t> dims;

  int64_t pick(int64_t lo, int64_t hi) { return lo + int64_t(random() % uint64_t(hi - lo + 1)); }

  std::pair<IndexExpr, std::optional<int64_t>> make(unsigned depth) {
    if (depth == 0 || pick(0, 5) == 0) {
      if (pick(0, 1)) {
        int64_t value = pick(-7, 7);
        return {IndexExpr(value), value};
      }
      unsigned dim = unsigned(pick(0, int64_t(dims.size()) - 1));
      return {IndexExpr::dim(dim), dims[dim]};
    }
    auto [a, x] = make(depth - 1);
    auto [b, y] = make(depth - 1);
    auto both = [&](auto fn) -> std::optional<int64_t> {
      if (!x || !y)
        return std::nullopt;
      return fn(*x, *y);
    };
    switch (pick(0, 7)) {
    case 0:
      return {a + b, both([](int64_t p, int64_t q) { return p + q; })};
    case 1:
      return {a - b, both([](int64_t p, int64_t q) { return p - q; })};
    case 2:
      return {a * b, both([](int64_t p, int64_t q) { return p * q; })};
    case 3:
      return {IndexExpr::min(a, b), both([](int64_t p, int64_t q) { return std::min(p, q); })};
    case 4:
      return {IndexExpr::max(a, b), both([](int64_t p, int64_t q) { return std::max(p, q); })};
    case 5:
    case 6: {
      int64_t divisor = pick(1, 6);
      auto floored = [&](int64_t p) {
        return p >= 0 ? p / divisor : -((-p + divisor - 1) / divisor);
      };
      if (pick(0, 1))
        return {IndexExpr::floorDiv(a, divisor),
                both([&](int64_t p, int64_t) { return floored(p); })};
      return {IndexExpr::mod(a, divisor),
              both([&](int64_t p, int64_t) { return p - divisor * floored(p); })};
    }
    default: {
      auto cmp = IndexExpr::Cmp(pick(0, 3));
      auto [c, z] = make(depth - 1);
      if (!z)
        return {a, x};
      int64_t last = *z;
      auto value = both([&](int64_t p, int64_t q) {
        bool holds = cmp == IndexExpr::Cmp::EQ   ? p == q
                     : cmp == IndexExpr::Cmp::NE ? p != q
                     : cmp == IndexExpr::Cmp::LT ? p < q
                                                 : p <= q;
        return holds ? last : p;
      });
      return {IndexExpr::select(cmp, a, b, c, a), value};
    }
    }
  }
};
} // namespace

TEST(IndexExpr, SimplificationKeepsValues) {
  for (unsigned seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 random(seed);
    llvm::SmallVector<int64_t> dims;
    for (int i = 0; i < 3; ++i)
      dims.push_back(int64_t(random() % 41) - 20);
    auto [expr, value] = Generator{random, dims}.make(4);
    if (expr.isOverflow() || !value)
      continue;
    ASSERT_EQ(evaluate(expr, dims), value) << "seed " << seed << ": " << expr.str();
    ASSERT_EQ(parse(expr.str()), expr) << expr.str();
    ASSERT_EQ(parse(expr.str()).str(), expr.str());
  }
}
