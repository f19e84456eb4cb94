//===- GenerateBlock.cpp - Random parallel blocks and tile loops -------------------- ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GenerateImpl.h"
#include <algorithm>
#include <cmath>

using namespace tegula::fuzz;

static void beginBlock(Generator &generator, const Generator::Scope &scope) {
  std::string binders;
  for (const Index &index : scope)
    binders += (binders.empty() ? "" : ", ") + index.name + " in " + index.range.text;
  generator.line("parallel " + binders + " {");
  generator.indent += 2;
}

/// A block's values leave it through an equation.
static void endBlock(Generator &generator, const Generator::Scope &scope, const std::string &out,
                     const std::string &value, double tolerance) {
  std::string subscripts;
  for (const Index &index : scope)
    subscripts += (subscripts.empty() ? "" : ", ") + index.name;
  generator.line(out + "[" + subscripts + "] = " + value);
  generator.indent -= 2;
  generator.line("}");
  generator.addOutput(out, "f32", Generator::dimsOf(scope), tolerance);
}

/// A parallel block of values that vary along different axes.
void tegula::fuzz::block(Generator &generator) {
  Generator::Scope scope = generator.freshScope(2);
  std::string out = generator.fresh("y");
  beginBlock(generator, scope);
  generator.taken = {scope[0].name, scope[1].name};
  size_t visible = generator.sources.size();
  for (unsigned count = 1 + generator.random.below(3); count--;) {
    Generator::Scope part = generator.random.chance(40)   ? Generator::Scope{scope[0]}
                            : generator.random.chance(40) ? Generator::Scope{scope[1]}
                                                          : scope;
    Value value = generator.floating(part, 2);
    std::string name = generator.fresh("s");
    generator.line(name + " = " + value.text);
    generator.define(name, {}, value); // read without subscripts
  }
  Value value = generator.floating(scope, 1);
  for (size_t k = visible; k < generator.sources.size(); ++k) {
    Value other = generator.sources[k].value;
    other.text = generator.sources[k].name;
    value = Generator::add(value, other, "+");
  }
  endBlock(generator, scope, out, value.text, value.error);
  generator.sources.resize(visible);
}

/// Steps in order at each point of a block.
void tegula::fuzz::steps(Generator &generator) {
  if (generator.special)
    return generator.equation();
  Generator::Scope scope = generator.freshScope(2);
  generator.taken = {scope[0].name, scope[1].name};
  std::string h = generator.fresh("a"), g = generator.fresh("a"), out = generator.fresh("y"),
              value = generator.fresh("s");
  Dim count = generator.random.chance(70) ? generator.random.pick(generator.sizes) : Dim{"3", 3};
  Generator::Scope one{scope[0]}, reading = scope;
  reading.push_back({"t", count});
  Value start = generator.exact(scope, 1), other = generator.exact(one, 1),
        step = generator.exact(reading, 1);
  beginBlock(generator, scope);
  generator.line("state " + h + " = clamp(floor(" + start.text + "), min=-8, max=8)");
  generator.line("state " + g + " = clamp(floor(" + other.text + "), min=-8, max=8)");
  generator.line("for t in " + count.text + (generator.random.chance(30) ? ", reverse" : "") +
                 " {");
  generator.indent += 2;
  generator.line(value + " = " + step.text);
  generator.line(h + " = clamp(floor(" + h + "*0.5 + " + value + " + " + g + "), min=-8, max=8)");
  generator.line(g + " = clamp(floor(" + g + "*0.5) + t, min=-8, max=8)");
  generator.indent -= 2;
  generator.line("}");
  endBlock(generator, scope, out, h + " + " + g, 0);
}

/// A tile loop with states of one and of two axes.
void tegula::fuzz::tiles(Generator &generator) {
  Generator::Scope scope = generator.freshScope(2);
  Index i = scope[0], d = scope[1];
  Index j = generator.freshIndex(scope);
  generator.taken = {i.name, d.name, j.name};
  Generator::Scope over{i, j}, wide{i, d, j};
  Value s = Generator::varying(generator.exact(over, 1), j), factor = generator.exact(wide, 0);
  std::string a = generator.fresh("a"), b = generator.fresh("a"), m = generator.fresh("a"),
              value = generator.fresh("s"), half = generator.fresh("s"), out = generator.fresh("y");
  bool isCausal = i.range.text == j.range.text && generator.random.chance(50);
  beginBlock(generator, scope);
  generator.line("state " + a + " = 0.0");
  generator.line("state " + b + " = 0.0");
  generator.line("state " + m + " = -1e30");
  generator.line("for " + j.name + " in tiles(" +
                 (isCausal ? "0:" + i.name + " + 1" : j.range.text) + ") {");
  generator.indent += 2;
  generator.line(value + " = " + s.text);
  generator.line(half + " = " + value + "*0.5");
  generator.line(m + " = maximum(" + m + ", max(" + value + " for " + j.name + "))");
  generator.line(a + " = " + a + " + sum(" + half + " for " + j.name + ")");
  generator.line(b + " = " + b + " + sum(" + value + "*" + factor.text + " for " + j.name + ")");
  generator.indent -= 2;
  generator.line("}");
  double count = std::max<double>(static_cast<double>(j.range.value), 1);
  Value sum;
  sum.bound = s.bound * count * (factor.bound + 0.5) + 100;
  sum.grain = s.grain + factor.grain + 1;
  sum = Generator::settle(sum);
  // The maximum may still be -1e30, for an empty range: bounded where it is read.
  endBlock(generator, scope, out, a + " + " + b + " + clamp(" + m + ", min=-100, max=100)",
           count * sum.error);
}

/// Online softmax over tiles, masked at random.
void tegula::fuzz::attention(Generator &generator) {
  Generator::Scope scope = generator.freshScope(2);
  Index i = scope[0], d = scope[1];
  Index j = generator.freshIndex(scope);
  generator.taken = {i.name, d.name, j.name};
  Generator::Scope over{i, j}, weighted{j, d};
  Value s = Generator::varying(generator.limited(generator.floating(over, 2), 8), j),
        v = generator.limited(generator.floating(weighted, 1), 8);
  std::string mask = generator.random.chance(50) ? generator.boolean(over, 0).text : "";
  std::string out = generator.fresh("y");
  beginBlock(generator, scope);
  std::string m = generator.fresh("a"), l = generator.fresh("a"), acc = generator.fresh("a"),
              score = generator.fresh("s"), next = generator.fresh("s"), p = generator.fresh("s"),
              r = generator.fresh("s");
  generator.line("state " + m + " = -1e30");
  generator.line("state " + l + " = 0.0");
  generator.line("state " + acc + " = 0.0");
  generator.line("for " + j.name + " in tiles(" + j.range.text + ") {");
  generator.indent += 2;
  generator.line(score + " = " +
                 (mask.empty() ? s.text : "where(" + mask + ", " + s.text + ", -inf)"));
  generator.line(next + " = maximum(" + m + ", max(" + score + " for " + j.name + "))");
  generator.line(p + " = exp(" + score + " - " + next + ")");
  generator.line(r + " = exp(" + m + " - " + next + ")");
  generator.line(l + " = " + l + "*" + r + " + sum(" + p + " for " + j.name + ")");
  generator.line(acc + " = " + acc + "*" + r + " + sum(" + p + "*" + v.text + " for " + j.name +
                 ")");
  generator.line(m + " = " + next);
  generator.indent -= 2;
  generator.line("}");
  double count = std::max<int64_t>(j.range.value, 1);
  double error = 2 * v.bound * (2 * s.error + (count + 40) * ulp * 4) + v.error + 1e-6;
  endBlock(generator, scope, out, acc + " / maximum(" + l + ", 1e-20)", error);
}
