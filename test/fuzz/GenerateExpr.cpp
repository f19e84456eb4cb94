//===- GenerateExpr.cpp - Random expressions --------------------------------------===//
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

uint64_t Random::next() { // splitmix64
  uint64_t z = (state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

//===----------------------------------------------------------------------===//
// Bounds and errors
//===----------------------------------------------------------------------===//

Value Generator::settle(Value value) {
  if (value.kind != Class::Float || !value.isExact())
    return value;
  if (value.grain > 20 || std::ldexp(value.bound, value.grain) > (1 << 23))
    value.error = value.bound * ulp;
  return value;
}

Value Generator::add(const Value &a, const Value &b, const char *op) {
  Value result;
  result.text = "(" + a.text + " " + op + " " + b.text + ")";
  result.kind = std::max({a.kind, b.kind, Class::Int});
  result.bound = a.bound + b.bound;
  result.grain = std::max(a.grain, b.grain);
  result.error = a.error + b.error;
  if (result.error)
    result.error += result.bound * ulp;
  return settle(result);
}

Value Generator::multiply(const Value &a, const Value &b) {
  Value result;
  result.text = a.text + "*" + b.text;
  result.kind = std::max({a.kind, b.kind, Class::Int});
  result.bound = a.bound * b.bound;
  result.grain = a.grain + b.grain;
  result.error = a.bound * b.error + b.bound * a.error + a.error * b.error;
  if (result.error)
    result.error += result.bound * ulp;
  return settle(result);
}

Value Generator::limited(Value value, double bound) {
  if (value.bound <= bound)
    return value;
  std::string limit = std::to_string(static_cast<int>(bound));
  value.text = "clamp(" + value.text + ", min=-" + limit + ", max=" + limit + ")";
  value.bound = bound;
  return value;
}

static bool mentions(const std::string &text, const std::string &name) {
  auto isPart = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    size_t end = at + name.size();
    if ((at == 0 || !isPart(text[at - 1])) && (end == text.size() || !isPart(text[end])))
      return true;
  }
  return false;
}

Value Generator::varying(Value value, const Index &index) {
  // Behind a constant condition, or modulo 1, it would not count.
  if (mentions(value.text, index.name) && value.text.find("where(") == std::string::npos &&
      value.text.find('%') == std::string::npos)
    return value;
  Value own;
  own.text = index.name;
  own.kind = Class::Int;
  own.bound = static_cast<double>(std::max<int64_t>(index.range.value, 1));
  return add(value, own, "+");
}

/// A continuous function with its Lipschitz constant where |x| <= 4.
Value Generator::elementary(Value x) {
  struct Function {
    const char *before, *after;
    double slope, bound;
  };
  static const std::vector<Function> functions = {{"exp(", ")", 55, 55},
                                                  {"exp2(", ")", 12, 16},
                                                  {"expm1(", ")", 55, 55},
                                                  {"log(abs(", ") + 1)", 1, 2},
                                                  {"log1p(abs(", "))", 1, 2},
                                                  {"log2(abs(", ") + 1)", 1.5, 3},
                                                  {"sqrt(abs(", ") + 1)", .5, 3},
                                                  {"rsqrt(abs(", ") + 1)", .5, 1},
                                                  {"sin(", ")", 1, 1},
                                                  {"cos(", ")", 1, 1},
                                                  {"tanh(", ")", 1, 1},
                                                  {"sigmoid(", ")", .25, 1},
                                                  {"erf(", ")", 1.2, 1},
                                                  {"erfc(", ")", 1.2, 2},
                                                  {"atan(", ")", 1, 1.6},
                                                  {"asin(0.2*(", "))", .4, 1},
                                                  {"acos(0.2*(", "))", .4, 3},
                                                  {"sinh(", ")", 28, 28},
                                                  {"cosh(", ")", 28, 28},
                                                  {"asinh(", ")", 1, 3},
                                                  {"acosh(abs(", ") + 2)", .6, 3},
                                                  {"atanh(0.2*(", "))", .6, 2},
                                                  {"log10(abs(", ") + 1)", .5, 1},
                                                  {"lgamma(abs(", ") + 1)", 2, 4},
                                                  {"digamma(abs(", ") + 1)", 2, 2},
                                                  {"erfinv(0.2*(", "))", 1, 1},
                                                  {"atan2(", ", 2)", .5, 2},
                                                  {"hypot(", ", 2)", 1, 5},
                                                  {"reciprocal(1 + abs(", "))", 1, 1},
                                                  {"silu(", ")", 1.2, 4},
                                                  {"gelu(", ")", 1.2, 4},
                                                  {"gelu_tanh(", ")", 1.2, 4},
                                                  {"mish(", ")", 1.2, 4},
                                                  {"softplus(", ")", 1, 5},
                                                  {"hardswish(", ")", 1.5, 4},
                                                  {"elu(", ")", 1, 4},
                                                  {"selu(", ")", 1.8, 5},
                                                  {"log_sigmoid(", ")", 1, 5},
                                                  {"softsign(", ")", 1, 1},
                                                  {"leaky_relu(", ", negative_slope=0.1)", 1, 4},
                                                  {"1.0 / (2 + abs(", "))", 1, 1},
                                                  {"nan_to_num(", ")", 1, 4},
                                                  {"nan_to_num(inf + abs(", "), 0, 2)", 0, 2},
                                                  {"pow(abs(", ") + 1, 1.5)", 4, 12}};
  x = limited(x, 4);
  const Function &function = random.pick(functions);
  Value result;
  result.text = std::string(function.before) + x.text + function.after;
  if (result.text.find(" / ") != std::string::npos)
    result.text = "(" + result.text + ")";
  result.bound = function.bound;
  result.error = function.slope * x.error + 8 * ulp * (function.bound + 4);
  return result;
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

/// A subscript for a dim; `mayLeave` where it may be outside.
std::string Generator::subscript(Scope &scope, const Dim &dim, bool &mayLeave, bool &mayDivide) {
  std::vector<Index *> same;
  for (Index &index : scope)
    if (index.range.text == dim.text)
      same.push_back(&index);
  if (!same.empty() && random.chance(85)) {
    Index &index = *random.pick(same);
    switch (random.below(13)) {
    case 12:
      mayLeave = mayDivide = true;
      return "(" + index.name + " + 1)/2";
    case 0:
      return dim.text + " - 1 - " + index.name;
    case 1:
      return index.name + " // 2";
    case 2:
      mayLeave = true;
      return index.name + (random.chance(50) ? " - 1" : " + 1");
    case 3:
      mayLeave = true;
      return "2*" + index.name + " - 1";
    default:
      return index.name;
    }
  }
  for (const Source &source : sources) // an integer tensor of subscripts for this dim
    if (source.isSubscript && source.value.bound < dim.value && source.dims.size() == 1 &&
        random.chance(30))
      for (Index &index : scope)
        if (index.range.text == source.dims[0].text) {
          return source.name + "[" + index.name + "]";
        }
  if (!scope.empty() && random.chance(70)) {
    const Index &index = random.pick(scope);
    switch (random.below(6)) {
    case 3: {
      static const std::vector<const char *> forms = {" & 1",  " ^ 1", " >> 1",
                                                      " << 1", " & 3", " | 1"};
      mayLeave = true;
      return index.name + random.pick(forms);
    }
    case 0:
      return index.name + " % " +
             (dim.text.size() > 1 && dim.text[0] != '(' ? "(" + dim.text + ")" : dim.text);
    case 1:
      return "clamp(" + index.name + ", min=0, max=" + dim.text + " - 1)";
    default:
      mayLeave = true;
      return index.name + (random.chance(50) ? " + 1" : " - 1");
    }
  }
  return random.chance(70) ? "0" : dim.text + " - 1";
}

Value Generator::read(Scope &scope, const Source &source) {
  Value result = source.value;
  result.text = source.name;
  if (source.dims.empty())
    return result;
  bool mayLeave = false, mayDivide = false;
  std::string subscripts, inside;
  for (const Dim &dim : source.dims) {
    // A group where the dim is a product of a size and 2.
    if (dim.text.rfind("2*", 0) == 0 && random.chance(60)) {
      for (Index &index : scope)
        if (index.range.text == dim.text.substr(2)) {
          subscripts += (subscripts.empty() ? "" : ", ") + std::string("(") +
                        (random.chance(50) ? "0" : "1") + ", " + index.name + ")";
          goto next;
        }
    }
    {
      bool leaves = false;
      std::string one = subscript(scope, dim, leaves, mayDivide);
      if (leaves)
        inside += (inside.empty() ? "" : " and ") + one + " >= 0 and " + one + " < " + dim.text;
      mayLeave |= leaves;
      subscripts += (subscripts.empty() ? "" : ", ") + one;
    }
  next:;
  }
  if (mayLeave && !mayDivide && random.chance(30)) { // a condition protects the read
    result.text = "where(" + inside + ", " + source.name + "[" + subscripts + "], " +
                  (result.kind == Class::Bool ? "true" : "0") + ")";
    return result;
  }
  if (mayLeave) {
    if (result.kind == Class::Bool)
      subscripts += ", fill=false";
    else
      subscripts += random.chance(70) ? ", fill=0" : ", fill=1";
    result.bound = std::max(result.bound, 1.0);
  }
  result.text += "[" + subscripts + "]";
  return result;
}

Value Generator::leaf(Scope &scope, Class kind) {
  std::vector<const Source *> fitting;
  for (const Source &source : sources)
    if (source.value.kind == kind && !source.isSubscript)
      fitting.push_back(&source);
  if (!fitting.empty() && random.chance(85))
    return read(scope, *random.pick(fitting));
  Value result;
  result.kind = kind;
  switch (kind) {
  case Class::Bool:
    result.text = random.chance(50) ? "true" : "false";
    break;
  case Class::Int:
    if (!scope.empty() && random.chance(60)) {
      const Index &index = random.pick(scope);
      result.text = index.name;
      result.bound = std::max<int64_t>(index.range.value, 1);
    } else if (random.chance(30)) {
      const Dim &size = random.pick(sizes);
      result.text = size.text;
      result.bound = std::max<int64_t>(size.value, 1);
    } else {
      result.bound = 1 + random.below(4);
      result.text = std::to_string(static_cast<int>(result.bound));
    }
    break;
  case Class::Float:
    result.bound = 0.5 * (1 + random.below(5));
    result.grain = 1;
    result.text = std::to_string(result.bound).substr(0, 3);
    break;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

Value Generator::expression(Scope &scope, Class kind, unsigned depth) {
  switch (kind) {
  case Class::Bool:
    return boolean(scope, depth);
  case Class::Int:
    return integer(scope, depth);
  case Class::Float:
    return floating(scope, depth);
  }
  return {};
}

Value Generator::exact(Scope &scope, unsigned depth) {
  for (unsigned tries = 0; tries < 4; ++tries) {
    Value value = floating(scope, depth);
    if (value.isExact())
      return value;
  }
  std::vector<const Source *> fitting;
  for (const Source &source : sources)
    if (source.value.kind == Class::Float && source.value.isExact())
      fitting.push_back(&source);
  if (!fitting.empty())
    return read(scope, *random.pick(fitting));
  Value value = leaf(scope, Class::Int);
  value.text = "(" + value.text + " * 0.5)";
  value.kind = Class::Float;
  value.grain = 1;
  return settle(value);
}

Value Generator::boolean(Scope &scope, unsigned depth) {
  Value result;
  result.kind = Class::Bool;
  static const std::vector<const char *> compares = {"<", "<=", ">", ">=", "==", "!="};
  switch (depth == 0 ? 0 : random.below(6)) {
  case 0: {
    if (random.chance(30))
      return leaf(scope, Class::Bool);
    Value a = leaf(scope, Class::Int), b = leaf(scope, Class::Int);
    result.text = "(" + a.text + " " + random.pick(compares) + " " + b.text + ")";
    return result;
  }
  case 1:
  case 2: {
    Value a = exact(scope, depth - 1), b = exact(scope, depth - 1);
    result.text = "(" + a.text + " " + random.pick(compares) + " " + b.text + ")";
    return result;
  }
  case 3:
    result.text = "(not " + boolean(scope, depth - 1).text + ")";
    return result;
  case 4: {
    Value a = boolean(scope, depth - 1), b = boolean(scope, depth - 1);
    static const std::vector<const char *> ops = {" and ", " or ", " & ", " | ", " ^ "};
    result.text = "(" + a.text + random.pick(ops) + b.text + ")";
    return result;
  }
  default:
    return reduction(scope, Class::Bool, depth);
  }
}

/// An operator on bits, a shift (by counts from below 0 to beyond the width too) or a power.
Value Generator::bits(Scope &scope, unsigned depth) {
  Value a = integer(scope, depth - 1), b = integer(scope, depth - 1), result;
  result.kind = Class::Int;
  // Of two's complement: a result has no more digits than its operands.
  auto digits = [](double bound) { return std::exp2(std::ceil(std::log2(bound + 1))); };
  double either = std::max(digits(a.bound), digits(b.bound));
  constexpr double most = 9.3e18;
  switch (random.below(8)) {
  case 0:
  case 1: {
    static const std::vector<const char *> ops = {" & ", " | ", " ^ "};
    result.text = "(" + a.text + random.pick(ops) + b.text + ")";
    result.bound = either;
    return result;
  }
  case 2: {
    static const std::vector<const char *> masks = {"1", "6", "15", "0xf0", "255", "-8", "0xffff"};
    std::string mask = random.pick(masks);
    result.text = "(" + a.text + " & " + mask + ")";
    result.bound = std::max(digits(a.bound), 65536.0);
    return result;
  }
  case 3:
    result.text = "(~" + a.text + ")";
    result.bound = a.bound + 1;
    return result;
  case 4:
  case 5: {
    static const std::vector<const char *> counts = {"0", "1", "3", "31", "32", "63", "64", "-1"};
    // A size or an index that is shifted far leaves the 64 bits of its formula.
    static const std::vector<const char *> few = {"0", "1", "3", "-1"};
    bool isLeft = random.chance(40);
    std::string count = random.chance(60) ? random.pick(isLeft ? few : counts) : b.text;
    result.text = "(" + a.text + (isLeft ? " << " : " >> ") + count + ")";
    result.bound = isLeft ? most : a.bound + 1;
    return result;
  }
  case 6: {
    static const std::vector<const char *> exponents = {"0", "2", "5", "(-1)"};
    std::string exponent = random.pick(exponents);
    if (exponent == "(-1)") // a number makes a float, data an integer
      exponent = b.text;
    result.text = "i64((" + a.text + ")**(" + exponent + "))";
    result.bound = most;
    return result;
  }
  default: { // unsigned numbers wrap, and come back as signed ones
    static const std::vector<const char *> ops = {" + ", " - ", "*",    " // ", " % ",
                                                  " & ", " ^ ", " >> ", " << "};
    bool isWide = random.chance(50);
    std::string type = isWide ? "u64(" : "u32(", op = random.pick(ops);
    std::string x = type + a.text + ")", y = type + b.text + ")";
    static const std::vector<const char *> functions = {"maximum(", "minimum("};
    std::string value =
        random.chance(70) ? x + op + y : std::string(random.pick(functions)) + x + ", " + y + ")";
    if (random.chance(20))
      value = x + random.pick(
                      std::vector<const char *>{" - 1", "*2654435769", " ^ 0x9e3779b9", " >> 13"});
    result.text = "i64(" + value + ")";
    result.bound = isWide ? most : std::exp2(32);
    return result;
  }
  }
}

Value Generator::integer(Scope &scope, unsigned depth) {
  if (depth == 0)
    return leaf(scope, Class::Int);
  if (random.chance(12))
    return bits(scope, depth);
  switch (random.below(10)) {
  case 0:
    return add(integer(scope, depth - 1), integer(scope, depth - 1), random.chance(50) ? "+" : "-");
  case 1:
    return multiply(integer(scope, depth - 1), integer(scope, depth - 1));
  case 2:
  case 3: { // a divisor of 0 gives 0
    Value a = integer(scope, depth - 1), b;
    bool isQuotient = random.chance(50);
    // Sizes and indices must not be 0 there, data may.
    std::vector<const Source *> data;
    for (const Source &source : sources)
      if (source.value.kind == Class::Int && !source.isSubscript && !source.dims.empty())
        data.push_back(&source);
    if (!data.empty() && random.chance(60)) {
      b = read(scope, *random.pick(data));
    } else {
      b.bound = 1 + random.below(4);
      b.text = std::to_string(static_cast<int>(b.bound));
    }
    a.text = "(" + a.text + (isQuotient ? " // " : " % ") + b.text + ")";
    a.bound = isQuotient ? a.bound : b.bound;
    return a;
  }
  case 4: {
    Value a = integer(scope, depth - 1), b = integer(scope, depth - 1);
    a.text = (random.chance(50) ? "maximum(" : "minimum(") + a.text + ", " + b.text + ")";
    a.bound = std::max(a.bound, b.bound);
    return a;
  }
  case 5: {
    Value c = boolean(scope, depth - 1), a = integer(scope, depth - 1),
          b = integer(scope, depth - 1);
    a.text = "where(" + c.text + ", " + a.text + ", " + b.text + ")";
    a.bound = std::max(a.bound, b.bound);
    return a;
  }
  case 6: {
    Value a = integer(scope, depth - 1);
    static const std::vector<const char *> unary = {"abs(", "sign(", "square(", "relu("};
    unsigned which = random.below(unary.size());
    a.text = unary[which] + a.text + ")";
    if (which == 2)
      a.bound *= a.bound;
    return a;
  }
  case 7:
    if (special)
      return leaf(scope, Class::Int);
    else {
      Value a = exact(scope, depth - 1);
      static const std::vector<const char *> to = {"i32(", "i64(", "quantize(", "u8(",
                                                   "i8(",  "u16(", "i16("};
      unsigned which = random.below(to.size());
      if (random.chance(40)) { // between integers they wrap, quantize saturates
        a = integer(scope, depth - 1);
        a.bound = which < 2 ? std::max(a.bound, std::exp2(31)) : 65536;
      }
      a.text = to[which] + a.text + (which == 2 ? ", i8)" : ")");
      a.kind = Class::Int;
      a.grain = 0;
      return a;
    }
  case 8:
    return reduction(scope, Class::Int, depth);
  default:
    return leaf(scope, Class::Int);
  }
}

Value Generator::floating(Scope &scope, unsigned depth) {
  if (depth == 0)
    return leaf(scope, Class::Float);
  switch (random.below(17)) {
  case 16: {
    Value result; // the same number everywhere; the normal one goes through log and cos
    bool isNormal = random.chance(50);
    Value key = leaf(scope, Class::Int);
    result.text = (isNormal ? "randn(7, " : "rand(7, ") + key.text + ")";
    result.bound = isNormal ? 9 : 1;
    result.error = isNormal ? 1e-5 : ulp;
    return result;
  }
  case 0:
  case 1:
    return add(floating(scope, depth - 1),
               expression(scope, random.chance(80) ? Class::Float : Class::Int, depth - 1),
               random.chance(50) ? "+" : "-");
  case 2:
  case 3: {
    Value a = limited(floating(scope, depth - 1), 64), b = limited(floating(scope, depth - 1), 64);
    return multiply(a, b);
  }
  case 4: {
    Value a = floating(scope, depth - 1), b = floating(scope, depth - 1);
    a.text = (random.chance(50) ? "maximum(" : "minimum(") + a.text + ", " + b.text + ")";
    a.bound = std::max(a.bound, b.bound);
    a.grain = std::max(a.grain, b.grain);
    a.error = std::max(a.error, b.error);
    return settle(a);
  }
  case 5: {
    Value c = boolean(scope, depth - 1), a = floating(scope, depth - 1),
          b = floating(scope, depth - 1);
    a.text = "where(" + c.text + ", " + a.text + ", " + b.text + ")";
    a.bound = std::max(a.bound, b.bound);
    a.grain = std::max(a.grain, b.grain);
    a.error = std::max(a.error, b.error);
    return settle(a);
  }
  case 6: {
    Value a = floating(scope, depth - 1);
    static const std::vector<const char *> unary = {"-", "abs(", "relu("};
    const char *op = random.pick(unary);
    a.text = op + a.text + (op[1] ? ")" : "");
    if (!op[1])
      a.text = "(" + a.text + ")";
    return a;
  }
  case 7: { // steps need exact values
    Value a = exact(scope, depth - 1);
    static const std::vector<const char *> unary = {"floor(", "ceil(", "round(", "trunc(", "sign("};
    a.text = random.pick(unary) + a.text + ")";
    a.bound += 1;
    a.grain = 0;
    return a;
  }
  case 8: {
    Value a = exact(scope, depth - 1);
    bool isHalf = random.chance(50);
    a.text = (isHalf ? "f16(" : "bf16(") + a.text + ")";
    return limited(a, 1 << 14);
  }
  case 9: {
    Value a = exact(scope, depth - 1), b = leaf(scope, Class::Int);
    b.bound = 1 + random.below(4);
    a.text = "(" + a.text + (random.chance(50) ? " // " : " % ") +
             std::to_string(static_cast<int>(b.bound)) + ")";
    a.bound += b.bound;
    return a;
  }
  case 10:
  case 11:
    return elementary(floating(scope, depth - 1));
  case 12:
    return leaf(scope, Class::Float);
  case 13: {
    Value a = limited(floating(scope, depth - 1), 16);
    bool isSquare = random.chance(60);
    a.text = isSquare ? "square(" + a.text + ")" : "(" + a.text + ")**3";
    unsigned power = isSquare ? 2 : 3;
    a.error = power * std::pow(a.bound + a.error, power - 1) * a.error;
    a.bound = std::pow(a.bound, power);
    a.grain *= power;
    if (a.error)
      a.error += a.bound * 2 * ulp;
    else if (std::ldexp(a.bound, a.grain) > (1 << 23))
      a.error = a.bound * 2 * ulp;
    return a;
  }
  default:
    return depth > 1 && random.chance(15) ? nestedReductions(scope)
                                          : reduction(scope, Class::Float, depth);
  }
}
