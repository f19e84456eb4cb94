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

void Generator::beginBlock(const Scope &scope) {
  std::string binders;
  for (const Index &index : scope)
    binders += (binders.empty() ? "" : ", ") + index.name + " in " + index.range.text;
  line("parallel " + binders + " {");
  indent += 2;
}

/// A block's values leave it through an equation.
void Generator::endBlock(const Scope &scope, const std::string &out, const std::string &value,
                         double tolerance) {
  std::string subscripts;
  for (const Index &index : scope)
    subscripts += (subscripts.empty() ? "" : ", ") + index.name;
  line(out + "[" + subscripts + "] = " + value);
  indent -= 2;
  line("}");
  addOutput(out, "f32", dimsOf(scope), tolerance);
}

/// A parallel block of values that vary along different axes.
void Generator::block() {
  Scope scope = freshScope(2);
  std::string out = fresh("y");
  beginBlock(scope);
  taken = {scope[0].name, scope[1].name};
  size_t visible = sources.size();
  for (unsigned count = 1 + random.below(3); count--;) {
    Scope part = random.chance(40) ? Scope{scope[0]} : random.chance(40) ? Scope{scope[1]} : scope;
    Value value = floating(part, 2);
    std::string name = fresh("s");
    line(name + " = " + value.text);
    define(name, {}, value); // read without subscripts
  }
  Value value = floating(scope, 1);
  for (size_t k = visible; k < sources.size(); ++k) {
    Value other = sources[k].value;
    other.text = sources[k].name;
    value = add(value, other, "+");
  }
  endBlock(scope, out, value.text, value.error);
  sources.resize(visible);
}

/// Steps in order at each point of a block.
void Generator::steps() {
  if (special)
    return equation();
  Scope scope = freshScope(2);
  taken = {scope[0].name, scope[1].name};
  std::string h = fresh("a"), g = fresh("a"), out = fresh("y"), value = fresh("s");
  Dim count = random.chance(70) ? random.pick(sizes) : Dim{"3", 3};
  Scope one{scope[0]}, reading = scope;
  reading.push_back({"t", count});
  Value start = exact(scope, 1), other = exact(one, 1), step = exact(reading, 1);
  beginBlock(scope);
  line("state " + h + " = clamp(floor(" + start.text + "), min=-8, max=8)");
  line("state " + g + " = clamp(floor(" + other.text + "), min=-8, max=8)");
  line("for t in " + count.text + (random.chance(30) ? ", reverse" : "") + " {");
  indent += 2;
  line(value + " = " + step.text);
  line(h + " = clamp(floor(" + h + "*0.5 + " + value + " + " + g + "), min=-8, max=8)");
  line(g + " = clamp(floor(" + g + "*0.5) + t, min=-8, max=8)");
  indent -= 2;
  line("}");
  endBlock(scope, out, h + " + " + g, 0);
}

/// A tile loop with states of one and of two axes.
void Generator::tiles() {
  Scope scope = freshScope(2);
  Index i = scope[0], d = scope[1];
  Index j = freshIndex(scope);
  taken = {i.name, d.name, j.name};
  Scope over{i, j}, wide{i, d, j};
  Value s = varying(exact(over, 1), j), factor = exact(wide, 0);
  std::string a = fresh("a"), b = fresh("a"), m = fresh("a"), value = fresh("s"), half = fresh("s"),
              out = fresh("y");
  bool isCausal = i.range.text == j.range.text && random.chance(50);
  beginBlock(scope);
  line("state " + a + " = 0.0");
  line("state " + b + " = 0.0");
  line("state " + m + " = -1e30");
  line("for " + j.name + " in tiles(" + (isCausal ? "0:" + i.name + " + 1" : j.range.text) + ") {");
  indent += 2;
  line(value + " = " + s.text);
  line(half + " = " + value + "*0.5");
  line(m + " = maximum(" + m + ", max(" + value + " for " + j.name + "))");
  line(a + " = " + a + " + sum(" + half + " for " + j.name + ")");
  line(b + " = " + b + " + sum(" + value + "*" + factor.text + " for " + j.name + ")");
  indent -= 2;
  line("}");
  double count = std::max<double>(static_cast<double>(j.range.value), 1);
  Value sum;
  sum.bound = s.bound * count * (factor.bound + 0.5) + 100;
  sum.grain = s.grain + factor.grain + 1;
  sum = settle(sum);
  // The maximum may still be -1e30, for an empty range: bounded where it is read.
  endBlock(scope, out, a + " + " + b + " + clamp(" + m + ", min=-100, max=100)", count * sum.error);
}

/// Online softmax over tiles, masked at random.
void Generator::attention() {
  Scope scope = freshScope(2);
  Index i = scope[0], d = scope[1];
  Index j = freshIndex(scope);
  taken = {i.name, d.name, j.name};
  Scope over{i, j}, weighted{j, d};
  Value s = varying(limited(floating(over, 2), 8), j), v = limited(floating(weighted, 1), 8);
  std::string mask = random.chance(50) ? boolean(over, 0).text : "";
  std::string out = fresh("y");
  beginBlock(scope);
  std::string m = fresh("a"), l = fresh("a"), acc = fresh("a"), score = fresh("s"),
              next = fresh("s"), p = fresh("s"), r = fresh("s");
  line("state " + m + " = -1e30");
  line("state " + l + " = 0.0");
  line("state " + acc + " = 0.0");
  line("for " + j.name + " in tiles(" + j.range.text + ") {");
  indent += 2;
  line(score + " = " + (mask.empty() ? s.text : "where(" + mask + ", " + s.text + ", -inf)"));
  line(next + " = maximum(" + m + ", max(" + score + " for " + j.name + "))");
  line(p + " = exp(" + score + " - " + next + ")");
  line(r + " = exp(" + m + " - " + next + ")");
  line(l + " = " + l + "*" + r + " + sum(" + p + " for " + j.name + ")");
  line(acc + " = " + acc + "*" + r + " + sum(" + p + "*" + v.text + " for " + j.name + ")");
  line(m + " = " + next);
  indent -= 2;
  line("}");
  double count = std::max<int64_t>(j.range.value, 1);
  double error = 2 * v.bound * (2 * s.error + (count + 40) * ulp * 4) + v.error + 1e-6;
  endBlock(scope, out, acc + " / maximum(" + l + ", 1e-20)", error);
}
