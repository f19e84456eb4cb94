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
static void accumulate(Generator &generator) {
  const Source *ids = nullptr;
  for (const Source &source : generator.sources)
    if (source.isSubscript && source.dims.size() == 1)
      ids = &source;
  Generator::Scope scope = generator.freshScope(1);
  Dim dim;
  std::string subscript;
  for (const Dim &size : generator.sizes)
    if (ids && ids->value.bound < size.value)
      dim = size;
  if (ids && !dim.text.empty() && generator.random.chance(70)) {
    Index index = generator.freshIndex(scope, ids->dims[0]);
    scope.push_back(index);
    subscript = ids->name + "[" + index.name + "]";
  } else {
    Index index = generator.freshIndex(scope);
    scope.push_back(index);
    dim = index.range;
    subscript = index.name;
  }
  Value value = generator.exact(scope, 1);
  double count = 1;
  for (const Index &index : scope)
    count *= std::max<int64_t>(index.range.value, 1);
  std::string out = generator.fresh("y");
  std::string trailing = " for " + scope[1].name + " in " + scope[1].range.text;
  if (subscript == scope[1].name)
    trailing.clear();
  generator.line(out + "[" + subscript + ", " + scope[0].name + "] += " + value.text + trailing);
  value.bound *= count;
  value = Generator::settle(value);
  generator.addOutput(out, "f32", {dim, scope[0].range}, value.error * count);
}

/// A subscript from data for a dim of `dim`, along a new index and perhaps along `other`.
static bool rows(Generator &generator, Generator::Rows &rows, const Index &other) {
  std::vector<const Source *> fitting;
  for (const Source &source : generator.sources)
    if (source.value.kind == Class::Int && !source.isInout &&
        (source.dims.size() == 1 || source.dims.size() == 2) &&
        (source.dims.size() == 1 || source.dims[1].text == other.range.text))
      fitting.push_back(&source);
  bool mayPermute = !generator.isHelper && generator.indent == 2;
  if (mayPermute && generator.random.chance(25)) {
    rows.index = generator.freshIndex({other}, rows.dim);
    std::string name = generator.fresh("t");
    generator.line(name + "[" + rows.index.name + " in " + rows.dim.text + "] = " + rows.dim.text +
                   " - 1 - " + rows.index.name);
    Value value;
    value.kind = Class::Int;
    value.bound = static_cast<double>(std::max<int64_t>(rows.dim.value, 1));
    generator.define(name, {rows.dim}, value);
    if (generator.random.chance(70))
      generator.opening += "  distinct " + name + "\n";
    rows.text = name + "[" + rows.index.name + "]";
    return true;
  }
  if (fitting.empty())
    return false;
  const Source source = *generator.random.pick(fitting);
  rows.index = generator.freshIndex({other}, source.dims[0]);
  rows.text = source.name + "[" + rows.index.name +
              (source.dims.size() == 2 ? ", " + other.name : "") + "]";
  bool isInside = source.isSubscript && source.value.bound < static_cast<double>(rows.dim.value);
  if (isInside && generator.random.chance(80))
    return true;
  if (rows.dim.value < 1)
    return false;
  if (generator.random.chance(95)) // else some leave the dim, and are reported
    rows.text += " % " + (rows.dim.text.find_first_of("+*-") == std::string::npos
                              ? rows.dim.text
                              : "(" + rows.dim.text + ")");
  return true;
}

/// An element of a class and type that a scatter may write.
static Value element(Generator &generator, Generator::Scope scope, Class kind) {
  return kind == Class::Float ? generator.exact(scope, 1)
         : kind == Class::Int ? generator.integer(scope, 1)
                              : generator.boolean(scope, 1);
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
static void defineScatterTarget(Generator &generator, Generator::Scatter &at, const Source *old) {
  using enum Generator::Scatter::Where;
  Generator::Scatter::Where where = at.where;
  std::string &type = at.type, &name = at.name;
  Class kind = at.kind;
  Index &d = at.column;
  Generator::Rows &row = at.row;
  double &bound = at.bound;
  if (where == Inout) {
    name = old->name;
    row.dim = old->dims[0];
    d = generator.freshIndex({}, old->dims[1]);
  } else {
    d = generator.freshIndex(Generator::Scope());
    row.dim = generator.anyDim();
    Index first = generator.freshIndex({d}, row.dim);
    Value start = element(generator, {first, d}, kind);
    if (kind == Class::Float)
      start = generator.limited(start, 64);
    name = generator.fresh(where == Output ? "y" : where == State ? "h" : "t");
    std::string left = where == Output ? "[" + first.name + ", " + d.name + "]"
                                       : "[" + first.name + " in " + row.dim.text + ", " + d.name +
                                             " in " + d.range.text + "]";
    std::string typed = where == Temporary ? ": " + type : "";
    generator.line((where == State ? "state " : "") + name + typed + left + " = " +
                   at.stored(start));
    bound = where == State ? 8 : start.bound;
  }
}

/// Notes what the target holds after the writes, as an output or a source of later statements.
static void addScatterResult(Generator &generator, const Generator::Scatter &at,
                             const std::string &combine, const Value &value) {
  using enum Generator::Scatter::Where;
  Generator::Scatter::Where where = at.where;
  const std::string &type = at.type, &name = at.name;
  Class kind = at.kind;
  const Index &d = at.column;
  const Generator::Rows &row = at.row;
  double bound = at.bound;
  double count =
      3.0 * std::max<int64_t>(row.index.range.value, 1) * std::max<int64_t>(d.range.value, 1);
  Value result = value;
  result.kind = kind;
  result.grain = std::max(value.grain, 1);
  result.bound = combine == "+=" ? bound + count * value.bound : std::max(bound, value.bound);
  if (where == Output) {
    double tolerance = Generator::settle(result).error * count;
    if (tolerance && (type == "f16" || type == "bf16"))
      tolerance += result.bound / 128;
    return generator.addOutput(name, type, {row.dim, d.range}, tolerance);
  }
  if (where == Inout)
    return;
  if (where == State)
    result.bound = 8, result.grain = 0;
  if (type == "i8")
    result.bound = 128;
  if (kind == Class::Int && type != "i64" && type != "i8")
    result.bound = 2147483648.;
  generator.define(name, {row.dim, d.range}, Generator::settle(result)).isNarrow =
      type != "f32" && type != "f64";
}

void tegula::fuzz::scatter(Generator &generator) {
  if (generator.random.chance(25))
    return accumulate(generator);
  using enum Generator::Scatter::Where;
  Generator::Scatter at;
  Generator::Scatter::Where &where = at.where;
  where = static_cast<Generator::Scatter::Where>(generator.random.below(4));
  const Source *old = nullptr;
  for (const Source &source : generator.sources)
    if (source.isInout && source.dims.size() == 2)
      old = &source;
  if (where == Inout && !old)
    where = Output;
  if (where == State && generator.special)
    where = Temporary;

  // The target, whose elements are all defined.
  static const std::vector<std::string> types = {"f32",  "f32", "f32", "f64", "f16",
                                                 "bf16", "i64", "i32", "i8",  "bool"};
  std::string &type = at.type, &name = at.name;
  type = where == Inout || where == State ? "f32" : generator.random.pick(types);
  Class &kind = at.kind;
  kind = type == "bool" ? Class::Bool : type[0] == 'i' ? Class::Int : Class::Float;
  Index &d = at.column;
  Generator::Rows &row = at.row;
  defineScatterTarget(generator, at, old);

  std::string end;
  bool inLoop = generator.random.chance(20) && where != Temporary;
  Index step{"t", {"3", 3}};
  if (!rows(generator, row, d)) {
    if (where == Output)
      generator.addOutput(name, type, {row.dim, d.range}, 0);
    return;
  }
  Generator::Scope scope{row.index, d};
  static const std::vector<std::string> combines = {"=", "=", "+=", "max=", "min="};
  std::string combine = generator.random.pick(combines);
  if (kind == Class::Bool && combine == "+=")
    combine = "=";
  if (inLoop) {
    generator.line("for t in 3 {");
    generator.indent += 2;
    scope.push_back(step);
  }
  bool inBlock = generator.random.chance(20);
  Value value = element(generator, scope, kind);
  if (kind == Class::Float)
    value = generator.limited(value, 64);
  if (kind != Class::Bool && generator.random.chance(80))
    value = Generator::varying(value, row.index);
  if (where == Inout && inBlock) {
    // A point of a block reads what no other one writes: what lies in its own row.
    if (generator.random.chance(50)) {
      row.index = generator.freshIndex({d}, row.dim);
      row.text = row.index.name;
      value.text = name + "[" + row.text + ", " + d.range.text + " - 1 - " + d.name + "]";
      value.bound = 8, value.grain = 0, value.error = 0;
    } else {
      inBlock = value.text.find(name + "[") == std::string::npos;
    }
  }
  std::string filter;
  if (generator.random.chance(25)) {
    Generator::Scope one{row.index};
    filter = " if " + generator.boolean(one, 0).text;
  }
  std::string target = name + "[" + row.text + ", " + d.name + "]";
  if (inBlock) {
    generator.line("parallel " + row.index.name + " in " + row.index.range.text + " {");
    generator.indent += 2;
    generator.line(target + " " + combine + " " + at.stored(value));
    if (combine != "=" && generator.random.chance(30)) { // what meets in one way
      Value other = element(generator, scope, kind);
      if (kind == Class::Float)
        other = generator.limited(other, 64);
      if (where != Inout || other.text.find(name + "[") == std::string::npos) {
        generator.line(target + " " + combine + " " + at.stored(other));
        value.bound += other.bound;
        value.error += other.error;
        value.grain = std::max(value.grain, other.grain);
      }
    }
    generator.indent -= 2;
    generator.line("}");
  } else {
    generator.line(target + " " + combine + " " + at.stored(value) + " for " + row.index.name +
                   " in " + row.index.range.text + filter);
  }
  if (combine == "+=" && (where == Inout || where == State)) {
    std::string element =
        name + "[" + generator.freshIndex({d}, row.dim).name + ", " + d.name + "]";
    generator.line(element + " = clamp(" + element + ", min=-8, max=8)");
  }
  if (inLoop) {
    generator.indent -= 2;
    generator.line("}");
  }
  addScatterResult(generator, at, combine, value);
}
