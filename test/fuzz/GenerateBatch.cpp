//===- GenerateBatch.cpp - Random programs whose rows are computed alone ------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program is a chain of steps on rows of a batch of M: each sums, scans, multiplies or normalises
// what the one before gave, and reads nothing of other rows. Its numbers are no exact ones: bits
// tell in which order they were added.
//
//===----------------------------------------------------------------------===//
#include "Generate.h"
#include "GenerateImpl.h"

using namespace tegula::fuzz;

namespace {

/// One program under construction. `h[m, k]` is what a step begins with.
class BatchGenerator {
public:
  explicit BatchGenerator(uint64_t seed) : random(seed * 0x9E3779B97F4A7C15ull + 77) {}

  GeneratedProgram generate() {
    size("M", pick<int64_t>({1, 2, 3, 5, 9, 17, 33, 40, 70}));
    size("K", pick<int64_t>({3, 8, 30, 32, 63, 64, 100, 128, 257, 600}));
    width = {"K", program.sizes.back().second};
    if (random.chance(15))
      attention();
    else
      rows();
    program.text =
        "kernel batch(" + parameters + ") -> (" + results + ") {\n  invariant M\n" + body + "}\n";
    return std::move(program);
  }

private:
  struct Width {
    std::string text;
    int64_t value;
  };

  template <typename T> T pick(const std::vector<T> &from) { return random.pick(from); }
  std::string floatType() { return pick<std::string>({"f32", "f32", "f16", "bf16"}); }

  void size(const std::string &name, int64_t value) { program.sizes.push_back({name, value}); }
  void parameter(const std::string &text) { parameters += (parameters.empty() ? "" : ", ") + text; }
  void line(const std::string &text) { body += "  " + text + "\n"; }
  std::string fresh(const char *prefix) { return prefix + std::to_string(counter++); }

  void rows() {
    input();
    for (unsigned steps = 1 + random.below(4); steps--;)
      step();
    output();
  }

  /// The batch is the first dim, the last, or between others.
  void input() {
    std::string type = floatType();
    switch (random.below(4)) {
    case 0:
      parameter("x: " + type + "[K, M]");
      line("h[m, k] = x[k, m]");
      break;
    case 1:
      parameter("x: " + type + "[2, M, K]");
      line("h[m, k] = x[0, m, k] + 0.5*x[1, m, k]");
      break;
    default:
      parameter("x: " + type + "[M, K]");
      line("h[m, k] = 1.5*x[m, k]");
    }
    value = "h";
  }

  void step() {
    switch (random.below(8)) {
    case 0:
      return map();
    case 1:
      return normalise();
    case 2:
      return define("softmax(" + own() + ", over=k)");
    case 3:
    case 4:
      return multiply();
    case 5:
      return define("cumsum(0.1*" + own() + ", over=k" + pick<std::string>({"", ", reverse=true"}) +
                    ")");
    case 6:
      return window();
    default:
      return recurrence();
    }
  }

  std::string own() { return value + "[m, k]"; }

  void define(const std::string &expression) {
    std::string next = fresh("h");
    std::string type = random.chance(25) ? ": " + pick<std::string>({"f16", "bf16"}) : "";
    line(next + type + "[m, k] = " + expression);
    value = next;
  }

  void map() {
    std::string scale = fresh("g");
    parameter(scale + ": f32[" + width.text + "]");
    define(pick<std::string>({"tanh", "gelu", "silu", "sigmoid"}) + "(" + own() + "*" + scale +
           "[k])");
  }

  void normalise() {
    std::string mean = fresh("s"), scale = fresh("s");
    line(mean + "[m] = mean(" + own() + " for k)");
    line(scale + "[m] = " +
         pick<std::string>({"var(" + own() + " for k)", "sum(" + own() + "*" + own() + " for k)",
                            "max(abs(" + own() + ") for k)"}));
    define("(" + own() + " - " + mean + "[m])*rsqrt(" + scale + "[m] + 0.1)");
  }

  void multiply() {
    std::string weight = fresh("w"), type = floatType();
    Width next{fresh("N"), pick<int64_t>({1, 7, 16, 40, 64, 130})};
    bool isTransposed = random.chance(50);
    parameter(weight + ": " + type + "[" + (isTransposed ? next.text : width.text) + ", " +
              (isTransposed ? width.text : next.text) + "]");
    size(next.text, next.value);
    std::string left = own();
    if (type != "f32" && random.chance(70)) { // tensor cores
      std::string rounded = fresh("h");
      line(rounded + ": " + type + "[m, k] = " + left);
      left = rounded + "[m, k]";
    }
    std::string result = fresh("h");
    line(result + "[m, n] = 0.1*sum(" + left + "*" + weight + (isTransposed ? "[n, k]" : "[k, n]") +
         " for k)");
    width = next;
    value = result;
  }

  void window() {
    std::string weight = fresh("w");
    parameter(weight + ": f32[3]");
    define("sum(" + value + "[m, k + q - 1, fill=0]*" + weight + "[q] for q) for k in " +
           width.text);
  }

  void recurrence() { define("recurrence(0.9, 0.1*" + own() + ", over=k)"); }

  void output() {
    results = "y: f32[M, " + width.text + "]";
    line("y[m, k] = " + own());
    if (random.chance(60)) {
      results += ", r: f32[M]";
      line("r[m] = " + pick<std::string>({"sum", "logsumexp", "mean"}) + "(" + own() + " for k)");
    }
    if (random.chance(30)) { // sums by data
      results += ", c: f32[M, 5]";
      line("c[m, k % 5] += " + own());
    }
  }

  void attention() {
    std::string type = pick<std::string>({"bf16", "f16"});
    std::string S = std::to_string(pick<int64_t>({16, 48, 64, 100})),
                T = std::to_string(pick<int64_t>({16, 33, 64, 130})),
                E = pick<std::string>({"16", "64"});
    program.sizes.pop_back(); // K
    parameter("q: " + type + "[M, " + S + ", " + E + "]");
    parameter("k: " + type + "[M, " + T + ", " + E + "]");
    parameter("v: " + type + "[M, " + T + ", " + E + "]");
    std::string score = random.chance(50) ? "s[m, i, j]" : "where(j <= i, s[m, i, j], -inf)";
    line("s[m, i, j] = sum(q[m, i, e]*k[m, j, e] for e)/4");
    line("p[m, i, j] = softmax(" + score + ", over=j)");
    line("o[m, i, d] = sum(" + type + "(p[m, i, j])*v[m, j, d] for j)");
    results = "o: f32[M, " + S + ", " + E + "]";
  }

  Random random;
  GeneratedProgram program;
  std::string parameters, results, body, value;
  Width width;
  unsigned counter = 0;
};
} // namespace

GeneratedProgram tegula::fuzz::generateBatchProgram(uint64_t seed) {
  return BatchGenerator(seed).generate();
}
