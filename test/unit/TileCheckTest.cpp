//===- TileCheckTest.cpp - Results do not depend on tile sizes ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/verify/TileCheck.h"
#include "frontend/Check.h"
#include "frontend/OpenModule.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace tegula;

namespace {

struct Checked {
  SourceManager sources;
  std::unique_ptr<Diagnostics> diagnostics;
  std::unique_ptr<Module> module;
  std::unique_ptr<checked::Program> program;

  explicit Checked(std::string text) {
    uint32_t file = sources.add("test.tgl", std::move(text));
    diagnostics = std::make_unique<Diagnostics>(sources);
    module = openModule(sources, file, *diagnostics);
    program = check(*module, {}, *diagnostics);
  }
  std::string text() const {
    std::string result;
    llvm::raw_string_ostream os(result);
    diagnostics->printText(os, false);
    return result;
  }
  /// The source of the loop at fault.
  std::string loop() const {
    for (const Diagnostic &diagnostic : diagnostics->all())
      if (diagnostic.code == Code::TileDependent)
        return sources.text(diagnostic.span).str();
    return "";
  }
};

void expectIndependent(const char *text, unsigned statements = 1) {
  Checked checked(text);
  ASSERT_TRUE(checked.program) << checked.text();
  TileCheckResult result = checkTiles(*checked.program, *checked.diagnostics);
  EXPECT_EQ(result.statements, statements);
  EXPECT_EQ(result.compared, statements);
  EXPECT_FALSE(checked.diagnostics->hasErrors()) << checked.text();
}

std::string dependentLoop(const char *text) {
  Checked checked(text);
  EXPECT_FALSE(checked.program);
  unsigned count = llvm::count_if(checked.diagnostics->all(), [](const Diagnostic &d) {
    return d.code == Code::TileDependent;
  });
  EXPECT_EQ(count, 1u) << checked.text();
  return checked.loop();
}

TEST(TileCheck, Attention) {
  std::string text = R"(
kernel attention(q: f16[B, H, S, D], k: f16[B, H, T, D], v: f16[B, H, T, D], causal: bool = true) -> (o: f16[B, H, S, D]) {
  scale = rsqrt(D)
  parallel b in B, h in H, i in S, d in D {
    state m = -1e30
    state l = 0.0
    state acc = 0.0
    for j in tiles(T) {
      s = where(j >= i or not causal, scale * sum(q[b, h, i, e] * k[b, h, j, e] for e), -inf)
      m2 = maximum(m, max(s for j))
      p = exp(s - m2)
      r = exp(m - m2)
      l = l*r + sum(p for j)
      acc = acc*r + sum(f16(p) * v[b, h, j, d] for j)
      m = m2
    }
    o[b, h, i, d] = acc / maximum(l, 1e-20)
  }
})";
  expectIndependent(text.c_str());
  // A masked first tile makes -inf minus -inf.
  size_t start = text.find("-1e30");
  text.replace(start, 5, "-inf");
  EXPECT_NE(dependentLoop(text.c_str()), "");
}

TEST(TileCheck, Combination) {
  expectIndependent(R"(kernel k(x: f32[M, N]) -> (y: f32[M]) {
  parallel i in M {
    state s = 0.0
    for j in tiles(N) { s = s + sum(x[i, j] for j) }
    y[i] = s
  }
})");
  EXPECT_EQ(dependentLoop(R"(kernel k(x: f32[M, N]) -> (y: f32[M]) {
  parallel i in M {
    state s = 0.0
    for j in tiles(N) { s = s + max(x[i, j] for j) }
    y[i] = s
  }
})"),
            "for j in tiles(N) { s = s + max(x[i, j] for j) }");
  // The number of iterations.
  EXPECT_NE(dependentLoop(R"(kernel k(x: f32[M, N]) -> (y: f32[M]) {
  parallel i in M {
    state s = 0.0
    for j in tiles(N) { s = 0.5*s + sum(x[i, j] for j) }
    y[i] = s
  }
})"),
            "");
}

TEST(TileCheck, CancellingTerms) {
  // Zero but for rounding.
  std::string text = R"(kernel k(x: f32[N]) -> (y: f32) {
  parallel i in 1 {
    state s = 0.0
    for j in tiles(N) { s = s + sum(0.001*x[0]*where(j < N // 2, 1, where(j >= N - N // 2, -1, 0)) for j) }
    y = s
  }
})";
  expectIndependent(text.c_str());
  // As small, and of the loop's making.
  size_t sum = text.find("sum(0.001");
  text.replace(sum, 9, "max(1e-9 ");
  EXPECT_NE(dependentLoop(text.c_str()), "");
}

TEST(TileCheck, NamesTheLoop) {
  EXPECT_EQ(dependentLoop(R"(kernel k(x: f32[M, N]) -> (y: f32[M]) {
  parallel i in M {
    state m = -inf
    for j in tiles(N) { m = maximum(m, max(x[i, j] for j)) }
    state s = 0.0
    for k in tiles(N) { s = s + prod(x[i, k] - m for k) }
    y[i] = s
  }
})"),
            "for k in tiles(N) { s = s + prod(x[i, k] - m for k) }");
}

TEST(TileCheck, RangesThatVary) {
  expectIndependent(R"(kernel k(x: f32[M, N]) -> (y: f32[M]) where L = minimum(M, N) {
  parallel i in L {
    state s = 0.0
    for j in tiles(i:N) { s = s + sum(x[i, j] for j) }
    y[i] = s
  }
  y[L + i] = 0.0 for i in M - L
})");
}

TEST(TileCheck, SeveralStatements) {
  expectIndependent(R"(kernel k(x: f32[M, K], w: f16[K, N]) -> (y: f32[M, N]) {
  h[i, j] = x[i, j] * 2
  parallel i in M, j in N {
    state acc = 0.0
    for k in tiles(K) { acc = acc + sum(h[i, k] * w[k, j] for k) }
    y[i, j] = acc
  }
})");
  EXPECT_NE(dependentLoop(R"(kernel inner(x: f32[M, N]) -> (y: f32[M]) {
  parallel i in M {
    state s = 0.0
    for j in tiles(N) { s = maximum(s, sum(x[i, j] for j)) }
    y[i] = s
  }
}
kernel outer(x: f32[M, N]) -> (y: f32[M]) {
  h[i, j] = 2 * x[i, j]
  y = inner(h)
})"),
            "");
}

TEST(TileCheck, InsideLoops) {
  EXPECT_NE(dependentLoop(R"(kernel inner(x: f32[M, N]) -> (y: f32[M]) {
  parallel i in M {
    state s = 0.0
    for j in tiles(N) { s = maximum(s, sum(x[i, j] for j)) }
    y[i] = s
  }
}
kernel outer(x: f32[T, M, N]) -> (y: f32[T, M]) {
  for t in T {
    a[i, j] = x[t, i, j]
    h = inner(a)
    y[t, i] = h[i]
  }
})"),
            "");
  expectIndependent(R"(kernel k(x: f32[T, M, N]) -> (y: f32[M]) {
  state h[i in M] = 0.0
  for t in T {
    parallel i in M {
      state s = h[i]
      for j in tiles(N) { s = s + sum(x[t, i, j] for j) }
      h[i] = s
    }
  }
  y[i] = h[i]
})");
}

TEST(TileCheck, LeavesTheProgramAsItWas) {
  Checked checked(R"(kernel k(x: f32[M, N]) -> (y: f32[M]) {
  parallel i in M {
    state s = 0.0
    for j in tiles(N) { s = s + sum(x[i, j] for j) }
    y[i] = s
  }
  schedule { tile j=64 }
})");
  ASSERT_TRUE(checked.program) << checked.text();
  const checked::Program &program = *checked.program;
  ASSERT_EQ(program.sizes.size(), 2u);
  EXPECT_TRUE(program.sizes[0].boundBy && program.sizes[1].boundBy);
  EXPECT_EQ(program.inputs.size(), 1u);
  EXPECT_EQ(program.outputs.size(), 1u);
  EXPECT_EQ(program.inputs[0]->kind, checked::Tensor::In);
  EXPECT_EQ(program.outputs[0]->kind, checked::Tensor::Out);
  EXPECT_EQ(program.schedule.size(), 1u);
  EXPECT_EQ(program.body.size(), 1u);
}

} // namespace
