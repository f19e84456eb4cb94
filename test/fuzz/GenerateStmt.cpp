//===- GenerateStmt.cpp - Random statements and kernels ---------------------------===//
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
  line(name + type + left(scope, value.text) + " = " + value.text);
  define(name, dimsOf(scope), value);
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
  Scope ranked = scope;
  Index rank{fresh("z"), {std::to_string(k), k}};
  std::string values = fresh("t"), indices = fresh("t"), subscripts;
  for (const Index &index : scope)
    subscripts += index.name + " in " + index.range.text + ", ";
  subscripts += rank.name;
  line(values + "[" + subscripts + "], " + indices + "[" + subscripts + "] = topk(" + value.text +
       " for " + over.name + " in " + over.range.text + ", k=" + std::to_string(k) + ")");
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
  Dim steps = random.chance(50) ? random.pick(sizes) : Dim{"3", 3};
  bool isReverse = random.chance(30);
  line("for t in " + steps.text + (isReverse ? ", reverse" : "") + " {");
  indent += 2;
  if (random.chance(50)) { // a fresh temporary of the iteration
    Scope inner = freshScope(1 + random.below(2));
    Value value = exact(inner, 1);
    std::string temporary = fresh("t");
    line(temporary + left(inner, value.text) + " = " + value.text);
    define(temporary, dimsOf(inner), value);
  }
  Value next = exact(scope, 2);
  std::string own;
  for (const Index &index : scope)
    own += (own.empty() ? "" : ", ") + index.name;
  line(name + "[" + own + "] = clamp(floor(" + next.text + " + " + name + "[" + own +
       "]), min=-8, max=8)");
  indent -= 2;
  line("}");
  Source kept = sources[visible];
  sources.resize(visible); // temporaries end with the loop
  sources.push_back(kept);
}

/// A tile loop with states of one and of two axes.
void Generator::tiles() {
  Scope scope = freshScope(2);
  Index i = scope[0], d = scope[1];
  Index j = freshIndex(scope);
  taken = {i.name, d.name, j.name};
  Scope over{i, j}, wide{i, d, j};
  Value s = varying(exact(over, 1), j);
  std::string a = fresh("a"), b = fresh("a"), m = fresh("a"), value = fresh("s"),
              square = fresh("s");
  Source inner{value, {}, s};
  Value factor = exact(wide, 0);
  std::string y = fresh("t"), z = fresh("t"), last = fresh("t");
  double count = std::max<int64_t>(j.range.value, 1);
  bool isCausal = i.range.text == j.range.text && random.chance(50);
  // Temporaries inside a block would be values, so results go to tensors through equations.
  line("parallel " + i.name + " in " + i.range.text + ", " + d.name + " in " + d.range.text + " {");
  indent += 2;
  line("state " + a + " = 0.0");
  line("state " + b + " = 0.0");
  line("state " + m + " = -1e30");
  line("for " + j.name + " in tiles(" + (isCausal ? "0:" + i.name + " + 1" : j.range.text) + ") {");
  indent += 2;
  line(value + " = " + s.text);
  line(square + " = " + value + "*0.5");
  line(m + " = maximum(" + m + ", max(" + value + " for " + j.name + "))");
  line(a + " = " + a + " + sum(" + square + " for " + j.name + ")");
  line(b + " = " + b + " + sum(" + value + "*" + factor.text + " for " + j.name + ")");
  indent -= 2;
  line("}");
  std::string out = fresh("y");
  Value sum = settle(add(multiply({"", Class::Float, s.bound * count, s.grain, 0},
                                  {"", Class::Float, factor.bound, factor.grain, 0}),
                         {"", Class::Float, 0.5 * s.bound * count + 1e30, s.grain + 1, 0}, "+"));
  // The maximum may still be -1e30, for an empty range: bounded where it is read.
  line(out + "[" + i.name + ", " + d.name + "] = " + a + " + " + b + " + clamp(" + m +
       ", min=-100, max=100)");
  indent -= 2;
  line("}");
  sum.bound = s.bound * count * (factor.bound + 0.5) + 100;
  sum.error = 0;
  sum.grain = s.grain + factor.grain + 1;
  sum = settle(sum);
  if (sum.error)
    sum.error = count * sum.bound * ulp;
  results +=
      (results.empty() ? "" : ", ") + out + ": f32[" + i.range.text + ", " + d.range.text + "]";
  outputs.push_back({out, "f32", {i.range.value, d.range.value}, 0, 0, false, sum.error});
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
  line("parallel " + i.name + " in " + i.range.text + ", " + d.name + " in " + d.range.text + " {");
  indent += 2;
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
  line(out + "[" + i.name + ", " + d.name + "] = " + acc + " / maximum(" + l + ", 1e-20)");
  indent -= 2;
  line("}");
  double count = std::max<int64_t>(j.range.value, 1);
  double error = 2 * v.bound * (2 * s.error + (count + 40) * ulp * 4) + v.error + 1e-6;
  results +=
      (results.empty() ? "" : ", ") + out + ": f32[" + i.range.text + ", " + d.range.text + "]";
  outputs.push_back({out, "f32", {i.range.value, d.range.value}, 0, 0, false, error});
}

/// A parallel block of values that vary along different axes.
void Generator::block() {
  Scope scope = freshScope(2);
  std::string out = fresh("y");
  line("parallel " + scope[0].name + " in " + scope[0].range.text + ", " + scope[1].name + " in " +
       scope[1].range.text + " {");
  indent += 2;
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
  line(out + "[" + scope[0].name + ", " + scope[1].name + "] = " + value.text);
  indent -= 2;
  line("}");
  sources.resize(visible);
  results += (results.empty() ? "" : ", ") + out + ": f32[" + scope[0].range.text + ", " +
             scope[1].range.text + "]";
  outputs.push_back(
      {out, "f32", {scope[0].range.value, scope[1].range.value}, 0, 0, false, value.error});
}

/// `y[ids[i], j] += e`, or a sum written as an accumulation.
void Generator::scatter() {
  const Source *ids = nullptr;
  for (const Source &source : sources)
    if (source.isSubscript && source.dims.size() == 1)
      ids = &source;
  Scope scope = freshScope(1);
  Dim dim;
  std::string subscript;
  for (const Dim &size : sizes)
    if (ids && ids->value.bound < size.value)
      dim = size;
  if (ids && !dim.text.empty() && random.chance(70)) {
    Index index = freshIndex(scope, ids->dims[0]);
    scope.push_back(index);
    subscript = ids->name + "[" + index.name + "]";
  } else {
    Index index = freshIndex(scope);
    scope.push_back(index);
    dim = index.range;
    subscript = index.name;
  }
  Value value = exact(scope, 1);
  double count = 1;
  for (const Index &index : scope)
    count *= std::max<int64_t>(index.range.value, 1);
  std::string out = fresh("y");
  std::string trailing = " for " + scope[1].name + " in " + scope[1].range.text;
  if (subscript == scope[1].name)
    trailing.clear();
  line(out + "[" + subscript + ", " + scope[0].name + "] += " + value.text + trailing);
  value.bound *= count;
  value = settle(value);
  results +=
      (results.empty() ? "" : ", ") + out + ": f32[" + dim.text + ", " + scope[0].range.text + "]";
  outputs.push_back(
      {out, "f32", {dim.value, scope[0].range.value}, 0, 0, false, value.error * count});
}

/// A kernel of the file, generated for the tensors that it is called on.
void Generator::call() {
  std::vector<const Source *> fitting;
  for (const Source &source : sources)
    if (!source.dims.empty() && source.value.kind == Class::Float && !source.isSubscript)
      fitting.push_back(&source);
  if (fitting.empty() || isHelper)
    return equation();
  Generator helper(random, special, kernels);
  helper.isHelper = true;
  std::string name = "k" + std::to_string(random.below(1000000)), arguments, parameters;
  std::map<std::string, std::string> names; // a dim here, its name in the helper
  for (unsigned count = 1 + random.below(2); count--;) {
    const Source &source = *random.pick(fitting);
    Source parameter{helper.fresh("a"), {}, source.value};
    std::string dims;
    for (const Dim &dim : source.dims) {
      auto [known, isNew] = names.try_emplace(dim.text, "D" + std::to_string(names.size()));
      if (isNew)
        helper.sizes.push_back({known->second, dim.value});
      parameter.dims.push_back({known->second, dim.value});
      dims += (dims.empty() ? "" : ", ") + known->second;
    }
    parameters += (parameters.empty() ? "" : ", ") + parameter.name + ": T" +
                  std::to_string(helper.sources.size()) + "[" + dims + "]";
    arguments += (arguments.empty() ? "" : ", ") + source.name;
    helper.sources.push_back(std::move(parameter));
  }
  if (random.chance(60))
    helper.equation();
  Scope scope = helper.freshScope(1 + random.below(2));
  Value value = helper.floating(scope, 2);
  std::string subscripts, dims;
  for (const Index &index : scope) {
    subscripts += (subscripts.empty() ? "" : ", ") + index.name;
    dims += (dims.empty() ? "" : ", ") + index.range.text;
  }
  helper.line("r[" + subscripts + "] = " + value.text);
  kernels += "kernel " + name + "(" + parameters + ") -> (r: f32[" + dims + "]) {\n" + helper.body +
             "}\n\n";
  std::string result = fresh("t");
  line(result + " = " + name + "(" + arguments + ")");
  std::vector<Dim> resultDims;
  for (const Index &index : scope) {
    Dim dim = index.range;
    bool isDouble = dim.text.rfind("2*", 0) == 0;
    std::string inner = isDouble ? dim.text.substr(2) : dim.text;
    for (const auto &[here, there] : names)
      if (there == inner)
        dim.text = !isDouble ? here : here.size() == 1 ? "2*" + here : "2*(" + here + ")";
    resultDims.push_back(dim);
  }
  define(result, resultDims, value);
}

void Generator::statement() {
  taken.clear();
  switch (random.below(16)) {
  case 0:
    return pieces();
  case 1:
    return topk();
  case 2:
    return scalar();
  case 3:
    return loop();
  case 4:
    return isHelper ? equation() : tiles();
  case 5:
    return isHelper ? equation() : attention();
  case 6:
    return isHelper ? equation() : block();
  case 7:
    return isHelper ? equation() : scatter();
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
  std::string name = fresh("y"), type, subscripts, dims;
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
  std::vector<int64_t> shape;
  for (const Index &index : scope) {
    subscripts += (subscripts.empty() ? "" : ", ") + index.name;
    dims += (dims.empty() ? "" : ", ") + index.range.text;
    shape.push_back(index.range.value);
  }
  bool isScalar = scope.empty();
  line(name + (isScalar ? "" : "[" + subscripts + "]") + " = " + value.text);
  results +=
      (results.empty() ? "" : ", ") + name + ": " + type + (isScalar ? "" : "[" + dims + "]");
  outputs.push_back({name, type, shape, 0, 0, false, tolerance});
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

void Generator::generateEntry(GeneratedProgram &program) {
  static const char *names[] = {"M", "N", "K", "L"};
  unsigned count = 2 + random.below(3);
  for (unsigned k = 0; k < count; ++k)
    sizes.push_back({names[k], 1 + static_cast<int64_t>(random.below(random.chance(20) ? 19 : 6))});

  static const std::vector<const char *> types = {"f32",  "f32", "f32",    "f32",    "f32", "f16",
                                                  "bf16", "f64", "f8e4m3", "f8e5m2", "i64", "i32",
                                                  "i16",  "i8",  "u8",     "i4",     "u4",  "bool"};
  unsigned tensors = 2 + random.below(3);
  for (unsigned k = 0; k < tensors || k * 3 < count; ++k) {
    std::string type = k == 0 ? "f32" : random.pick(types), dims;
    Source source{fresh("x"), {}, {}};
    GeneratedTensor input{source.name, type, {}, -4, 4, special};
    char first = type[0];
    source.value.bound = 4;
    if (type == "bool") {
      source.value.kind = Class::Bool;
      input.lo = 0, input.hi = 1;
    } else if (first == 'i' || first == 'u') {
      source.value.kind = Class::Int;
      if (first == 'u')
        input.lo = 0;
    } else {
      source.value.grain = 1;
    }
    unsigned rank = random.chance(10) ? 0 : 1 + random.below(3);
    for (unsigned d = 0; d < rank || k * 3 + d < std::min(count, 3 * (k + 1)); ++d) {
      // The first tensors show every size bare, which binds it.
      Dim dim = k * 3 + d < count ? sizes[k * 3 + d] : anyDim();
      source.dims.push_back(dim);
      input.shape.push_back(dim.value);
      dims += (dims.empty() ? "" : ", ") + dim.text;
    }
    parameters += (parameters.empty() ? "" : ", ") + source.name + ": " + type +
                  (source.dims.empty() ? (type == "f32" ? "[]" : "[]") : "[" + dims + "]");
    inputs.push_back(input);
    sources.push_back(source);
  }
  if (random.chance(50)) { // subscripts
    Dim length = random.pick(sizes), target = random.pick(sizes);
    Source source{fresh("ids"), {length}, {}, true};
    source.value.kind = Class::Int;
    source.value.bound = static_cast<double>(target.value - 1);
    std::string type = random.chance(50) ? "i64" : "i32";
    inputs.push_back({source.name, type, {length.value}, 0, target.value - 1, false});
    parameters += ", " + source.name + ": " + type + "[" + length.text + "]";
    sources.push_back(source);
  }

  for (unsigned statements = 1 + random.below(5); statements--;)
    statement();
  output();
  if (random.chance(30))
    output();
  program.text =
      kernels + "kernel entry(" + parameters + ") -> (" + results + ") {\n" + body + "}\n";
  for (const Dim &size : sizes)
    program.sizes.push_back({size.text, size.value});
  program.inputs = inputs;
  program.outputs = outputs;
}

GeneratedProgram tegula::fuzz::generateProgram(uint64_t seed) {
  Random random(seed);
  GeneratedProgram program;
  std::string kernels;
  Generator generator(random, /*special=*/random.chance(10), kernels);
  generator.generateEntry(program);
  return program;
}
