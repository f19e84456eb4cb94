//===- GenerateKernel.cpp - Random calls and whole programs ------------------------ ===//
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

/// A product of two tensors of storage types, such as bytes, which no kernel of the library takes
/// together; false where there are none.
bool Generator::narrowProduct() {
  std::vector<std::pair<const Source *, const Source *>> pairs;
  for (const Source &a : sources)
    for (const Source &b : sources) {
      bool areNumbers = a.value.kind == b.value.kind && a.value.kind != Class::Bool;
      if (areNumbers && a.isNarrow && b.isNarrow && a.dims.size() == 2 && b.dims.size() == 2 &&
          a.dims[1].text == b.dims[1].text)
        pairs.push_back({&a, &b});
    }
  if (pairs.empty())
    return false;
  auto [first, second] = random.pick(pairs);
  Source a = *first, b = *second;
  std::string name = fresh("t"), i = fresh("i"), j = fresh("j"), k = fresh("k");
  line(name + "[" + i + ", " + j + "] = sum(" + a.name + "[" + i + ", " + k + "]*" + b.name + "[" +
       j + ", " + k + "] for " + k + ")");
  Value value = multiply(a.value, b.value);
  double count = std::max<double>(static_cast<double>(a.dims[1].value), 1), error = value.error;
  value.bound *= count;
  value.error = error ? count * (error + value.bound * ulp) : 0;
  value = settle(value);
  value.error *= count;
  define(name, {a.dims[0], b.dims[0]}, value);
  return true;
}

/// Kernels of the library whose results are easy to bound.
void Generator::library() {
  if (!isHelper && random.chance(40) && narrowProduct())
    return;
  std::vector<std::pair<const Source *, const Source *>> products, joins;
  bool isTransposed = random.chance(50);
  for (const Source &a : sources)
    for (const Source &b : sources) {
      bool isFloat = a.value.kind == Class::Float && b.value.kind == Class::Float;
      if (!isFloat || a.isNarrow || b.isNarrow || a.dims.size() != 2 || b.dims.size() != 2)
        continue;
      if (a.dims[1].text == b.dims[isTransposed ? 1 : 0].text)
        products.push_back({&a, &b});
      if (a.dims[1].text == b.dims[1].text)
        joins.push_back({&a, &b});
    }
  if (isHelper || (products.empty() && joins.empty()))
    return equation();
  std::string name = fresh("t");
  bool isJoin = products.empty() || (!joins.empty() && random.chance(30));
  const auto [first, second] = random.pick(isJoin ? joins : products);
  Source a = *first, b = *second;
  Value value;
  std::vector<Dim> dims;
  if (isJoin) {
    line(name + " = cat(" + a.name + ", " + b.name + ", dim=0)");
    value.bound = std::max(a.value.bound, b.value.bound);
    value.grain = std::max(a.value.grain, b.value.grain);
    value.error = std::max(a.value.error, b.value.error);
    dims = {
        {"(" + a.dims[0].text + " + " + b.dims[0].text + ")", a.dims[0].value + b.dims[0].value},
        a.dims[1]};
    if (value.error) // in f64; the result may be f32
      value.error += value.bound * ulp;
    value = settle(value);
  } else {
    line(name + (isTransposed ? " = linear(" : " = matmul(") + a.name + ", " + b.name + ")");
    double count = std::max<double>(static_cast<double>(a.dims[1].value), 1);
    value = multiply(a.value, b.value);
    double error = value.error;
    value.bound *= count;
    value.error = error ? count * (error + value.bound * ulp) : 0;
    value = settle(value);
    value.error *= count;
    dims = {a.dims[0], b.dims[isTransposed ? 0 : 1]};
  }
  define(name, dims, value);
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

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Mostly the bare size; else a dim that is linear in it.
Dim Generator::boundDim(const Dim &size) {
  if (!random.chance(12))
    return size;
  int64_t offset = random.below(3);
  if (random.chance(40))
    return {"(" + size.text + " + " + std::to_string(offset) + ")", size.value + offset};
  if (random.chance(50))
    return {"2*" + size.text, 2 * size.value};
  return {"(" + std::to_string(offset) + " + 3*" + size.text + ")", 3 * size.value + offset};
}

void Generator::generateEntry(GeneratedProgram &program) {
  static const char *names[] = {"M", "N", "K", "L"};
  unsigned count = 2 + random.below(3);
  for (unsigned k = 0; k < count; ++k)
    sizes.push_back({names[k], 1 + static_cast<int64_t>(random.below(random.chance(20) ? 19 : 6))});
  if (random.chance(8)) // every stage must agree on what a launch refuses
    sizes[random.below(count)].value = 0;

  static const std::vector<const char *> types = {
      "f32", "f32", "f32", "f32", "f32", "f16", "bf16", "f64",  "f8e4m3", "f8e5m2",
      "i64", "i32", "i16", "i8",  "u8",  "i4",  "u4",   "bool", "u16",    "u32"};
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
    if (k > 0 && source.value.kind == Class::Float && random.chance(25)) {
      input.isInout = source.isInout = true;
      source.value.bound = 8;
      input.type = type = random.chance(70)   ? "f32"
                          : random.chance(50) ? "f16"
                                              : "bf16"; // hold what updates write
    }
    source.isNarrow = type != "f32" && type != "f64" && type != "u32";
    unsigned rank = random.chance(10) ? 0 : 1 + random.below(3);
    for (unsigned d = 0; d < rank || k * 3 + d < std::min(count, 3 * (k + 1)); ++d) {
      // The first tensors show every size bare or in a formula, which binds it.
      Dim dim = k * 3 + d < count ? boundDim(sizes[k * 3 + d]) : anyDim();
      source.dims.push_back(dim);
      input.shape.push_back(dim.value);
      dims += (dims.empty() ? "" : ", ") + dim.text;
    }
    parameters += (parameters.empty() ? "" : ", ") + source.name +
                  (input.isInout ? ": inout " : ": ") + type + "[" + dims + "]";
    inputs.push_back(input);
    if (input.isInout)
      outputs.push_back(input);
    sources.push_back(source);
  }
  for (unsigned extra = random.below(3); extra-- > 1;) { // run-time scalars
    bool isFloat = random.chance(60);
    Source source{fresh("p"), {}, {}};
    source.value.kind = isFloat ? Class::Float : Class::Int;
    source.value.bound = 3;
    source.value.grain = isFloat ? 1 : 0;
    static const std::vector<const char *> integers = {"i32", "i64", "i8", "u8", "u16", "u32"};
    static const std::vector<const char *> floats = {"f32", "f64", "f16", "bf16"};
    scalars.push_back({source.name, isFloat ? random.pick(floats) : random.pick(integers),
                       isFloat ? 0.5 * random.below(7) : static_cast<double>(random.below(4))});
    parameters += ", " + source.name + ": " + scalars.back().type;
    sources.push_back(source);
  }
  if (random.chance(50)) { // subscripts
    Dim length = random.pick(sizes), target = random.pick(sizes);
    Source source{fresh("ids"), {length}, {}, true};
    source.value.kind = Class::Int;
    source.value.bound = static_cast<double>(std::max<int64_t>(target.value - 1, 0));
    std::string type = random.chance(50) ? "i64" : "i32";
    inputs.push_back(
        {source.name, type, {length.value}, 0, std::max<int64_t>(target.value - 1, 0)});
    parameters += ", " + source.name + ": " + type + "[" + length.text + "]";
    sources.push_back(source);
  }

  for (unsigned statements = 1 + random.below(5); statements--;)
    statement();
  output();
  if (random.chance(30))
    output();
  program.text = kernels + "kernel entry(" + parameters + ") -> (" + results + ") {\n" + opening +
                 body + "}\n";
  for (const Dim &size : sizes)
    program.sizes.push_back({size.text, size.value});
  program.inputs = inputs;
  program.scalars = scalars;
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
