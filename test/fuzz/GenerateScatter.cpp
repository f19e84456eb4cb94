//===- GenerateScatter.cpp - Random writes where data say ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `y[ids[j], d] = e` and its relatives `+=`, `max=` and `min=`, over a definition, into outputs,
// temporaries, states and inouts, with and without filters, loops, blocks and `distinct`. All that
// meets is exact.
//
//===----------------------------------------------------------------------===//
#include "GenerateImpl.h"
#include <algorithm>

using namespace tegula::fuzz;

/// `y[ids[i], j] += e` from nothing, or a sum written as an accumulation.
void Generator::accumulate() {
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
  addOutput(out, "f32", {dim, scope[0].range}, value.error * count);
}

/// A subscript from data for a dim of `dim`, along a new index and perhaps along `other`.
bool Generator::rows(Rows &rows, const Index &other) {
  std::vector<const Source *> fitting;
  for (const Source &source : sources)
    if (source.value.kind == Class::Int && !source.isInout &&
        (source.dims.size() == 1 || source.dims.size() == 2) &&
        (source.dims.size() == 1 || source.dims[1].text == other.range.text))
      fitting.push_back(&source);
  bool mayPermute = !isHelper && indent == 2;
  if (mayPermute && random.chance(25)) {
    rows.index = freshIndex({other}, rows.dim);
    std::string name = fresh("t");
    line(name + "[" + rows.index.name + " in " + rows.dim.text + "] = " + rows.dim.text +
         " - 1 - " + rows.index.name);
    Value value;
    value.kind = Class::Int;
    value.bound = static_cast<double>(std::max<int64_t>(rows.dim.value, 1));
    define(name, {rows.dim}, value);
    if (random.chance(70))
      opening += "  distinct " + name + "\n";
    rows.text = name + "[" + rows.index.name + "]";
    return true;
  }
  if (fitting.empty())
    return false;
  const Source source = *random.pick(fitting);
  rows.index = freshIndex({other}, source.dims[0]);
  rows.text = source.name + "[" + rows.index.name +
              (source.dims.size() == 2 ? ", " + other.name : "") + "]";
  bool isInside = source.isSubscript && source.value.bound < static_cast<double>(rows.dim.value);
  if (isInside && random.chance(80))
    return true;
  if (rows.dim.value < 1)
    return false;
  if (random.chance(95)) // else some leave the dim, and are reported
    rows.text += " % " + (rows.dim.text.find_first_of("+*-") == std::string::npos
                              ? rows.dim.text
                              : "(" + rows.dim.text + ")");
  return true;
}

/// An element of a class and type that a scatter may write.
Value Generator::element(Scope scope, Class kind) {
  return kind == Class::Float ? exact(scope, 1)
         : kind == Class::Int ? integer(scope, 1)
                              : boolean(scope, 1);
}

/// What a write scatters to: its elements have values before.
struct Generator::Scatter {
  enum Where { Output, Temporary, State, Inout } where = Output;
  std::string type, name;
  Class kind = Class::Float;
  Index column;
  Rows row;
  double bound = 8;

  /// Values of inouts and states stay small.
  std::string stored(const Value &value) const {
    return where == Inout || where == State ? "clamp(floor(" + value.text + "), min=-8, max=8)"
                                            : value.text;
  }
};

/// Writes the definition of the target's elements, unless it is `old`, an inout.
void Generator::defineScatterTarget(Scatter &at, const Source *old) {
  using enum Scatter::Where;
  Scatter::Where where = at.where;
  std::string &type = at.type, &name = at.name;
  Class kind = at.kind;
  Index &d = at.column;
  Rows &row = at.row;
  double &bound = at.bound;
  if (where == Inout) {
    name = old->name;
    row.dim = old->dims[0];
    d = freshIndex({}, old->dims[1]);
  } else {
    d = freshIndex(Scope());
    row.dim = anyDim();
    Index first = freshIndex({d}, row.dim);
    Value start = element({first, d}, kind);
    if (kind == Class::Float)
      start = limited(start, 64);
    name = fresh(where == Output ? "y" : where == State ? "h" : "t");
    std::string left = where == Output ? "[" + first.name + ", " + d.name + "]"
                                       : "[" + first.name + " in " + row.dim.text + ", " + d.name +
                                             " in " + d.range.text + "]";
    std::string typed = where == Temporary ? ": " + type : "";
    line((where == State ? "state " : "") + name + typed + left + " = " + at.stored(start));
    bound = where == State ? 8 : start.bound;
  }
}

void Generator::scatter() {
  if (random.chance(25))
    return accumulate();
  using enum Scatter::Where;
  Scatter at;
  Scatter::Where &where = at.where;
  where = static_cast<Scatter::Where>(random.below(4));
  const Source *old = nullptr;
  for (const Source &source : sources)
    if (source.isInout && source.dims.size() == 2)
      old = &source;
  if (where == Inout && !old)
    where = Output;
  if (where == State && special)
    where = Temporary;

  // The target, whose elements are all defined.
  static const std::vector<std::string> types = {"f32",  "f32", "f32", "f64", "f16",
                                                 "bf16", "i64", "i32", "i8",  "bool"};
  std::string &type = at.type, &name = at.name;
  type = where == Inout || where == State ? "f32" : random.pick(types);
  Class &kind = at.kind;
  kind = type == "bool" ? Class::Bool : type[0] == 'i' ? Class::Int : Class::Float;
  Index &d = at.column;
  Rows &row = at.row;
  double &bound = at.bound;
  defineScatterTarget(at, old);

  std::string end;
  bool inLoop = random.chance(20) && where != Temporary;
  Index step{"t", {"3", 3}};
  if (!rows(row, d)) {
    if (where == Output)
      addOutput(name, type, {row.dim, d.range}, 0);
    return;
  }
  Scope scope{row.index, d};
  static const std::vector<std::string> combines = {"=", "=", "+=", "max=", "min="};
  std::string combine = random.pick(combines);
  if (kind == Class::Bool && combine == "+=")
    combine = "=";
  if (inLoop) {
    line("for t in 3 {");
    indent += 2;
    scope.push_back(step);
  }
  bool inBlock = random.chance(20);
  Value value = element(scope, kind);
  if (kind == Class::Float)
    value = limited(value, 64);
  if (kind != Class::Bool && random.chance(80))
    value = varying(value, row.index);
  if (where == Inout && inBlock) {
    // A point of a block reads what no other one writes: what lies in its own row.
    if (random.chance(50)) {
      row.index = freshIndex({d}, row.dim);
      row.text = row.index.name;
      value.text = name + "[" + row.text + ", " + d.range.text + " - 1 - " + d.name + "]";
      value.bound = 8, value.grain = 0, value.error = 0;
    } else {
      inBlock = value.text.find(name + "[") == std::string::npos;
    }
  }
  std::string filter;
  if (random.chance(25)) {
    Scope one{row.index};
    filter = " if " + boolean(one, 0).text;
  }
  std::string target = name + "[" + row.text + ", " + d.name + "]";
  if (inBlock) {
    line("parallel " + row.index.name + " in " + row.index.range.text + " {");
    indent += 2;
    line(target + " " + combine + " " + at.stored(value));
    if (combine != "=" && random.chance(30)) { // what meets in one way
      Value other = element(scope, kind);
      if (kind == Class::Float)
        other = limited(other, 64);
      if (where != Inout || other.text.find(name + "[") == std::string::npos) {
        line(target + " " + combine + " " + at.stored(other));
        value.bound += other.bound;
        value.error += other.error;
        value.grain = std::max(value.grain, other.grain);
      }
    }
    indent -= 2;
    line("}");
  } else {
    line(target + " " + combine + " " + at.stored(value) + " for " + row.index.name + " in " +
         row.index.range.text + filter);
  }
  if (combine == "+=" && (where == Inout || where == State)) {
    std::string element = name + "[" + freshIndex({d}, row.dim).name + ", " + d.name + "]";
    line(element + " = clamp(" + element + ", min=-8, max=8)");
  }
  if (inLoop) {
    indent -= 2;
    line("}");
  }
  double count =
      3.0 * std::max<int64_t>(row.index.range.value, 1) * std::max<int64_t>(d.range.value, 1);
  Value result = value;
  result.kind = kind;
  result.grain = std::max(value.grain, 1);
  result.bound = combine == "+=" ? bound + count * value.bound : std::max(bound, value.bound);
  if (where == Output) {
    double tolerance = settle(result).error * count;
    if (tolerance && (type == "f16" || type == "bf16"))
      tolerance += result.bound / 128;
    return addOutput(name, type, {row.dim, d.range}, tolerance);
  }
  if (where == Inout)
    return;
  if (where == State)
    result.bound = 8, result.grain = 0;
  if (type == "i8")
    result.bound = 128;
  if (kind == Class::Int && type != "i64" && type != "i8")
    result.bound = 2147483648.;
  define(name, {row.dim, d.range}, settle(result)).isNarrow = type != "f32" && type != "f64";
}
