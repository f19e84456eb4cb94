//===- GenerateStmt.cpp - Random statements ---------------------------===//
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

//===----------------------------------------------------------------------===//
// Names and scopes
//===----------------------------------------------------------------------===//

Dim Generator::anyDim() {
  Dim dim = random.pick(sizes);
  if (random.chance(6))
    dim = {"2*" + dim.text, 2 * dim.value};
  return dim;
}

Index Generator::freshIndex(const Scope &scope, const Dim &range) {
  static const char *names[] = {"i", "j", "k", "l", "m", "n", "p", "q", "r", "u", "v", "w"};
  for (const char *name : names)
    if (std::none_of(scope.begin(), scope.end(),
                     [&](const Index &index) { return index.name == name; }) &&
        std::find(taken.begin(), taken.end(), name) == taken.end())
      return {name, range};
  return {fresh("z"), range};
}

/// Most indices range over a dim that some tensor has, so that they can subscript it bare.
Index Generator::freshIndex(const Scope &scope) {
  std::vector<Dim> dims;
  for (const Source &source : sources)
    dims.insert(dims.end(), source.dims.begin(), source.dims.end());
  return freshIndex(scope, !dims.empty() && random.chance(85) ? random.pick(dims) : anyDim());
}

Generator::Scope Generator::freshScope(unsigned rank) {
  Scope scope;
  while (scope.size() < rank) {
    Index index = freshIndex(scope);
    if (std::none_of(scope.begin(), scope.end(),
                     [&](const Index &other) { return other.range.text == index.range.text; }) ||
        random.chance(30))
      scope.push_back(index);
  }
  return scope;
}

std::vector<Dim> Generator::dimsOf(const Scope &scope) {
  std::vector<Dim> dims;
  for (const Index &index : scope)
    dims.push_back(index.range);
  return dims;
}

std::string Generator::left(const Scope &scope, const std::string &value) {
  std::string text;
  for (const Index &index : scope)
    text += (text.empty() ? "" : ", ") + item(index, value);
  return text.empty() ? "" : "[" + text + "]";
}

Source &Generator::define(std::string name, const std::vector<Dim> &dims, Value value) {
  value.text.clear();
  // It is part of the function in no case; `--observed` looks at what it sees.
  if (++defined % 4 == 0)
    line("print(" + name + ")");
  sources.push_back({std::move(name), dims, value});
  return sources.back();
}

/// A storage type after the name of an exact temporary, which rounds it.
std::string Generator::typed(Value &value) {
  if (value.kind == Class::Float && value.isExact() && random.chance(20)) {
    value = limited(value, 1 << 14);
    return random.chance(50) ? ": f16" : ": bf16";
  }
  if (value.kind == Class::Int && random.chance(15)) {
    static const std::vector<std::pair<const char *, double>> types = {
        {": i32", 2147483648.}, {": i16", 32768}, {": i8", 128}};
    const auto &[type, bound] = random.pick(types);
    value.bound = bound;
    return type;
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void Generator::equation() {
  if (random.chance(8)) { // two indices for one dim
    Scope scope{freshIndex({}, random.pick(sizes))};
    scope.push_back(freshIndex(scope, {"2", 2}));
    scope.push_back(freshIndex(scope, random.pick(sizes)));
    Value value = floating(scope, 1);
    std::string name = fresh("t");
    line(name + "[" + scope[0].name + " in " + scope[0].range.text + ", (" + scope[1].name +
         " in 2, " + scope[2].name + " in " + scope[2].range.text + ")] = " + value.text);
    define(name, {scope[0].range, {"2*" + scope[2].range.text, 2 * scope[2].range.value}}, value);
    return;
  }
  Scope scope = freshScope(1 + random.below(3));
  std::string name = fresh("t");
  Value value;
  bool isScan = random.chance(20);
  if (isScan) {
    value = scan(scope, random.pick(scope), 1);
  } else {
    unsigned kind = random.below(10);
    value = expression(scope, kind < 7 ? Class::Float : kind < 9 ? Class::Int : Class::Bool, 2);
  }
  std::string type = typed(value);
  if (random.chance(15)) {
    const Index &index = random.pick(scope);
    writeRange(value.text, index.name, index.range.text);
  }
  line(name + type + left(scope, value.text) + " = " + value.text);
  define(name, dimsOf(scope), value).isNarrow = !type.empty();
}

/// Two pieces along the first dim, of sizes A and B.
void Generator::pieces() {
  Scope rest = freshScope(random.below(2));
  Scope scope = rest;
  Index first = freshIndex(scope, random.pick(sizes));
  scope.insert(scope.begin(), first);
  Value a = expression(scope, Class::Float, 1);
  Dim low = first.range;
  std::string name = fresh("t"), others;
  for (const Index &index : rest)
    others += ", " + index.name + " in " + index.range.text;
  line(name + "[" + first.name + " in " + low.text + others + "] = " + a.text);
  Dim high = random.pick(sizes);
  scope = rest;
  Index second = freshIndex(scope, high);
  scope.insert(scope.begin(), second);
  Value b = expression(scope, Class::Float, 1);
  if (random.chance(50))
    line(name + "[" + low.text + " + " + second.name + others + "] = " + b.text + " for " +
         second.name + " in " + high.text);
  else
    line(name + "[" + low.text + " + (" + high.text + " - 1 - " + second.name + ")" + others +
         "] = " + b.text + " for " + second.name + " in " + high.text);
  a.bound = std::max(a.bound, b.bound);
  a.grain = std::max(a.grain, b.grain);
  a.error = std::max(a.error, b.error);
  std::vector<Dim> dims = dimsOf(rest);
  dims.insert(dims.begin(), {"(" + low.text + " + " + high.text + ")", low.value + high.value});
  define(name, dims, settle(a));
}

void Generator::topk() {
  Scope scope = freshScope(random.below(2));
  Scope inner = scope;
  Index over = freshIndex(inner);
  if (over.range.value < 1)
    return;
  inner.push_back(over);
  Value value = varying(exact(inner, 1), over);
  for (const Index &index : scope) // an index that the value lacks would be a second rank
    value = varying(value, index);
  value = settle(value);
  int64_t k = 1 + random.below(static_cast<unsigned>(over.range.value));
  // A part of the range, where no group needs the whole of it.
  bool isInGroup = value.text.find(", " + over.name + ")") != std::string::npos;
  int64_t low = random.chance(40) && !isInGroup
                    ? random.below(static_cast<unsigned>(over.range.value - k + 1))
                    : 0;
  Scope ranked = scope;
  Index rank{fresh("z"), {std::to_string(k), k}};
  std::string values = fresh("t"), indices = fresh("t"), subscripts;
  for (const Index &index : scope)
    subscripts += index.name + " in " + index.range.text + ", ";
  subscripts += rank.name;
  line(values + "[" + subscripts + "], " + indices + "[" + subscripts + "] = topk(" + value.text +
       " for " + over.name + " in " + (low ? std::to_string(low) + ":" : "") + over.range.text +
       ", k=" + std::to_string(k) + ")");
  ranked.push_back(rank);
  define(values, dimsOf(ranked), value);
  Value index;
  index.kind = Class::Int;
  index.bound = static_cast<double>(over.range.value);
  define(indices, dimsOf(ranked), index);
}

void Generator::scalar() {
  Scope none;
  Value value = random.chance(50)
                    ? reduction(none, random.chance(70) ? Class::Float : Class::Int, 2)
                    : integer(none, 1);
  std::string name = fresh("s");
  line(name + " = " + value.text);
  define(name, {}, value);
}

/// A sequential loop over a tensor state. The state stays a small integer: its error would grow.
void Generator::loop() {
  if (special)
    return equation();
  Scope scope = freshScope(1 + random.below(2));
  std::string name = fresh("h");
  Value start = exact(scope, 1);
  start.grain = 0;
  line("state " + name + left(scope, start.text) + " = clamp(floor(" + start.text +
       "), min=-8, max=8)");
  Value state;
  state.bound = 8;
  size_t visible = sources.size();
  define(name, dimsOf(scope), state);
  Dim steps = random.chance(70) ? random.pick(sizes) : Dim{"3", 3};
  bool isReverse = random.chance(30), isKept = !isHelper && random.chance(40);
  line("for t in " + steps.text + (isReverse ? ", reverse" : "") + " {");
  indent += 2;
  Index step{"t", steps};
  if (random.chance(50)) { // a fresh temporary of the iteration
    Scope inner = freshScope(1 + random.below(2)), reading = inner;
    reading.push_back(step);
    Value value = exact(reading, 1);
    std::string temporary = fresh("t");
    line(temporary + left(inner, value.text) + " = " + value.text);
    define(temporary, dimsOf(inner), value);
  }
  Scope reading = scope;
  reading.push_back(step);
  Value next = exact(reading, 2);
  std::string own;
  for (const Index &index : scope) {
    own += (own.empty() ? "" : ", ") + index.name;
  }
  line(name + "[" + own + "] = clamp(floor(" + next.text + " + " + name + "[" + own +
       "]), min=-8, max=8)");
  if (isKept) { // one slice of an output in each iteration
    std::string out = fresh("y");
    line(out + "[t, " + own + "] = " + name + "[" + own + "]*2");
    std::vector<Dim> dims = dimsOf(scope);
    dims.insert(dims.begin(), steps);
    addOutput(out, "f32", dims, 0);
  }
  indent -= 2;
  line("}");
  Source kept = sources[visible];
  sources.resize(visible); // temporaries end with the loop
  sources.push_back(kept);
}

/// An `inout` tensor from its old elements, at the same or at other points.
void Generator::update() {
  std::vector<const Source *> fitting;
  for (const Source &source : sources)
    if (source.isInout)
      fitting.push_back(&source);
  if (fitting.empty() || special)
    return equation();
  const Source target = *random.pick(fitting);
  Scope scope;
  std::string own, mirrored;
  for (const Dim &dim : target.dims) {
    scope.push_back(freshIndex(scope, dim));
    const std::string &name = scope.back().name;
    own += (own.empty() ? "" : ", ") + name;
    mirrored +=
        (mirrored.empty() ? "" : ", ") + (random.chance(50) ? dim.text + " - 1 - " + name : name);
  }
  Value value = exact(scope, 1);
  line(target.name + "[" + own + "] = clamp(floor(" + value.text + " + " + target.name + "[" +
       (random.chance(50) ? own : mirrored) + "]), min=-8, max=8)");
}

/// `y[argmax(e for k)] += v for i`, `y[count(e for k), j] += v for i`.
void Generator::scatterByReduction() {
  if (special)
    return equation();
  Scope scope = freshScope(1 + random.below(2)), inner = scope;
  inner.push_back(freshIndex(inner));
  Index over = inner.back();
  if (over.range.value < 1)
    return equation();
  bool isCount = random.chance(50);
  Value chosen = isCount ? boolean(inner, 1) : exact(inner, 1);
  std::string range =
      over.name +
      (isBare(chosen.text, over.name) && random.chance(50) ? "" : " in " + over.range.text);
  std::string subscript = (isCount             ? "count("
                           : random.chance(50) ? "argmax("
                                               : "argmin(") +
                          chosen.text + " for " + range + ")";
  Dim dim = over.range;
  if (isCount)
    dim = {over.range.text + " + 1", over.range.value + 1};
  Value value = exact(scope, 1);
  double count = 1;
  for (const Index &index : scope)
    count *= std::max<int64_t>(index.range.value, 1);
  std::string out = fresh("y"), items;
  for (const Index &index : scope)
    items += (items.empty() ? " for " : ", ") + index.name + " in " + index.range.text;
  line(out + "[" + subscript + "] += " + value.text + items);
  value.bound *= count;
  value = settle(value);
  addOutput(out, "f32", {dim}, value.error * count);
}

/// `c[i] = cumsum(where(p, 1, 0), over=i); y[c[i] - 1] = v for i if p`: what meets the condition,
/// close together; or under another condition, where several may meet.
void Generator::compaction() {
  if (special)
    return equation();
  Scope scope = freshScope(random.below(2));
  Index over = freshIndex(scope);
  scope.push_back(over);
  if (over.range.value < 1)
    return equation();
  bool isExclusive = random.chance(30), isOther = random.chance(30);
  std::string condition = boolean(scope, 1).text;
  Value asIs;
  asIs.text = condition;
  if (varying(asIs, over).text != condition) // it may not vary
    condition = over.name + " % 3 != " + std::to_string(random.below(3));
  std::string guard = isOther ? boolean(scope, 1).text : condition;
  std::string count = fresh("t"), out = fresh("y"), bare, ranged, items, rows;
  for (const Index &index : scope) {
    bare += (bare.empty() ? "" : ", ") + index.name;
    ranged += (ranged.empty() ? "" : ", ") + index.name + " in " + index.range.text;
    if (index.name != over.name)
      rows += index.name + ", ";
  }
  line(count + "[" + ranged + "] = cumsum(" +
       (random.chance(50) ? "where(" + condition + ", 1, 0)" : "i32(" + condition + ")") +
       ", over=" + over.name + (isExclusive ? ", exclusive=true" : "") + ")");
  line(out + "[" + ranged + "] = 0.0");
  std::string at = count + "[" + bare + "]";
  Value value = settle(exact(scope, 1));
  if (isOther)
    guard = "(" + guard + ") and " + at + " > 0";
  line(out + "[" + rows + at + (isExclusive && !isOther ? "" : " - 1") + "] = " + value.text +
       " for " + ranged + " if " + guard);
  addOutput(out, "f32", dimsOf(scope), value.error);
}

void Generator::statement() {
  taken.clear();
  switch (random.below(20)) {
  case 16:
    return isHelper ? equation() : steps(*this);
  case 17:
  case 18:
    return isHelper ? equation() : update();
  case 19:
    return library();
  case 0:
    return pieces();
  case 1:
    return topk();
  case 2:
    return scalar();
  case 3:
    return loop();
  case 4:
    return isHelper ? equation() : tiles(*this);
  case 5:
    return isHelper ? equation() : attention(*this);
  case 6:
    return isHelper ? equation() : block(*this);
  case 7:
    return isHelper            ? equation()
           : random.chance(25) ? scatterByReduction()
           : random.chance(20) ? compaction()
                               : scatter(*this);
  case 8:
  case 9:
    return call();
  default:
    return equation();
  }
}

void Generator::output() {
  taken.clear();
  Scope scope = freshScope(random.below(4));
  unsigned choice = random.below(10);
  Class kind = choice < 7 ? Class::Float : choice < 9 ? Class::Int : Class::Bool;
  Value value = random.chance(15) && !scope.empty() && kind == Class::Float
                    ? scan(scope, random.pick(scope), 1)
                    : expression(scope, kind, 2);
  std::string name = fresh("y"), type;
  double tolerance = value.error;
  switch (value.kind) {
  case Class::Bool:
    type = "bool";
    break;
  case Class::Int:
    type = random.chance(70) ? "i64" : random.chance(50) ? "i32" : "i8";
    break;
  case Class::Float: {
    unsigned which = random.below(10);
    type = which < 7 ? "f32" : which == 7 ? "f64" : which == 8 ? "f16" : "bf16";
    // Two values on both sides of a rounding boundary end a whole step apart.
    if (tolerance && (type == "f16" || type == "bf16"))
      tolerance += value.bound * (type == "f16" ? 1.0 / 1024 : 1.0 / 128);
    break;
  }
  }
  std::string subscripts;
  for (const Index &index : scope)
    subscripts += (subscripts.empty() ? "" : ", ") + index.name;
  line(name + (scope.empty() ? "" : "[" + subscripts + "]") + " = " + value.text);
  addOutput(name, type, dimsOf(scope), tolerance);
}

void Generator::addOutput(const std::string &name, const std::string &type,
                          const std::vector<Dim> &dims, double tolerance) {
  GeneratedTensor output{name, type, {}};
  output.tolerance = tolerance;
  std::string text;
  for (const Dim &dim : dims) {
    output.shape.push_back(dim.value);
    text += (text.empty() ? "" : ", ") + dim.text;
  }
  results += (results.empty() ? "" : ", ") + name + ": " + type;
  if (!dims.empty())
    results += "[" + text + "]";
  outputs.push_back(std::move(output));
}
