//===- RefFile.cpp - References and what to run them on ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/reference/RefFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace tegula::bench {
namespace {

/// A recursive-descent evaluator; `/` is real division.
class Evaluator {
public:
  Evaluator(StringRef text, const std::function<std::optional<double>(StringRef)> &valueOf,
            std::string &error)
      : rest(text), valueOf(valueOf), error(error) {}

  std::optional<double> all() {
    std::optional<double> value = sum();
    rest = rest.ltrim();
    if (value && !rest.empty())
      return fail("expected an operator before '" + rest + "'");
    return value;
  }

private:
  std::optional<double> fail(const Twine &why) {
    error = why.str();
    return std::nullopt;
  }

  char accept(StringRef operators) {
    rest = rest.ltrim();
    if (rest.empty() || !operators.contains(rest[0]))
      return 0;
    char found = rest[0];
    rest = rest.drop_front();
    return found;
  }

  std::optional<double> sum() {
    std::optional<double> left = product();
    while (left)
      if (char op = accept("+-")) {
        std::optional<double> right = product();
        if (!right)
          return right;
        *left += op == '+' ? *right : -*right;
      } else {
        return left;
      }
    return left;
  }

  std::optional<double> product() {
    std::optional<double> left = atom();
    while (left)
      if (char op = accept("*/")) {
        std::optional<double> right = atom();
        if (!right)
          return right;
        *left = op == '*' ? *left * *right : *left / *right;
      } else {
        return left;
      }
    return left;
  }

  std::optional<double> atom() {
    if (++depth > 100)
      return fail("the expression is nested too deeply");
    std::optional<double> value = atomAtDepth();
    --depth;
    return value;
  }

  std::optional<double> atomAtDepth() {
    if (accept("-")) {
      std::optional<double> value = atom();
      return value ? std::optional(-*value) : value;
    }
    if (accept("(")) {
      std::optional<double> value = sum();
      return !value || accept(")") ? value : fail("expected ')'");
    }
    rest = rest.ltrim();
    StringRef name = rest.take_while([](char c) { return isAlnum(c) || c == '_' || c == '.'; });
    // The exponent's sign: 1e-5.
    if (!name.empty() && isDigit(name[0]) && name.ends_with_insensitive("e") &&
        rest.size() > name.size() && StringRef("+-").contains(rest[name.size()]))
      name = rest.take_front(name.size() + 1 +
                             rest.drop_front(name.size() + 1).take_while(isDigit).size());
    rest = rest.drop_front(name.size());
    double number;
    if (!name.empty() && (isDigit(name[0]) || name[0] == '.')) {
      if (name.getAsDouble(number))
        return fail("'" + name + "' is no number");
      return number;
    }
    if (name.empty())
      return fail("expected a number or a name");
    std::optional<double> value = valueOf(name);
    return value ? value : fail("'" + name + "' has no value here");
  }

  StringRef rest;
  const std::function<std::optional<double>(StringRef)> &valueOf;
  std::string &error;
  unsigned depth = 0;
};

struct Distribution {
  InputSpec::Kind kind;
  const char *name;
  unsigned arguments;
};
constexpr Distribution distributions[] = {
    {InputSpec::Normal, "normal", 2},     {InputSpec::Uniform, "uniform", 2},
    {InputSpec::Integers, "integers", 2}, {InputSpec::Coin, "coin", 1},
    {InputSpec::Sign, "sign", 0},         {InputSpec::Constant, "constant", 1}};

/// Cuts at the commas that stand outside parentheses.
SmallVector<StringRef> splitList(StringRef text) {
  SmallVector<StringRef> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' || text[i] == '[';
    depth -= text[i] == ')' || text[i] == ']';
    if (text[i] == ',' && depth == 0) {
      parts.push_back(text.slice(begin, i).trim());
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin).trim());
  return parts;
}

bool parseInput(StringRef text, InputSpec &spec, std::string &error) {
  auto [name, call] = text.split('=');
  auto [function, arguments] = call.trim().split('(');
  spec.name = name.trim().str();
  const Distribution *found =
      find_if(distributions, [&](const Distribution &d) { return function.trim() == d.name; });
  if (spec.name.empty() || found == std::end(distributions) || !arguments.consume_back(")")) {
    error =
        "expected `name = distribution(...)`, the distribution being normal, uniform, integers, "
        "coin, sign or constant";
    return false;
  }
  spec.kind = found->kind;
  if (!arguments.trim().empty())
    for (StringRef argument : splitList(arguments))
      spec.arguments.push_back(argument.str());
  if (spec.arguments.size() == found->arguments)
    return true;
  error = (Twine(found->name) + " takes " + Twine(found->arguments) + " arguments").str();
  return false;
}

/// A bijection that mixes every bit into every other (the finaliser of SplitMix64).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// 0 <= u < 1, 53 bits.
double unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

} // namespace

std::string Case::text() const {
  std::string text;
  raw_string_ostream stream(text);
  interleave(
      values, stream, [&](const auto &value) { stream << value.first << '=' << value.second; },
      ", ");
  return text;
}

const RefFunction *RefFile::find(StringRef kernel) const {
  for (const RefFunction &function : functions)
    if (kernel == function.name)
      return &function;
  for (const RefFunction &function : functions)
    if (function.name == "ref")
      return &function;
  return functions.size() == 1 ? &functions.front() : nullptr;
}

bool parseSettings(StringRef text, std::vector<std::pair<std::string, std::string>> &settings,
                   std::string &error) {
  if (text.trim().empty())
    return true;
  for (StringRef part : splitList(text)) {
    auto [name, value] = part.split('=');
    if (name.trim().empty() || value.trim().empty()) {
      error = ("expected `NAME=VALUE`, found '" + part + "'").str();
      return false;
    }
    settings.emplace_back(name.trim().str(), value.trim().str());
  }
  return true;
}

std::optional<RefFile> parseRefFile(StringRef text, std::string &error) {
  RefFile file;
  RefFunction next;
  unsigned number = 0;
  auto fail = [&](const Twine &why) {
    error = ("line " + Twine(number) + ": " + why).str();
    return std::nullopt;
  };
  for (StringRef rest = text; !rest.empty();) {
    StringRef line;
    std::tie(line, rest) = rest.split('\n');
    line = line.rtrim('\r');
    ++number;
    StringRef comment = line.trim();
    if (comment.consume_front("#")) {
      comment = comment.trim();
      std::string why;
      if (comment == "exact") {
        next.exact = true;
      } else if (comment.consume_front("wrt:")) {
        for (StringRef name : splitList(comment))
          next.wrt.push_back(name.str());
      } else if (comment.starts_with("check:") || comment.starts_with("bench:")) {
        Case one;
        one.timed = comment.starts_with("bench:");
        one.line = number;
        if (!parseSettings(comment.drop_front(6), one.values, why))
          return fail(why);
        next.cases.push_back(std::move(one));
      } else if (comment.consume_front("input:")) {
        InputSpec spec;
        if (!parseInput(comment, spec, why))
          return fail(why);
        next.inputs.push_back(std::move(spec));
      }
    } else if (line.starts_with("def ")) {
      next.name = line.drop_front(4).take_until([](char c) { return c == '('; }).trim().str();
      file.functions.push_back(std::move(next));
      next = RefFunction();
    }
    bool import = line.starts_with("import ") || line.starts_with("from ");
    file.source += (import ? "" : line).str() + "\n";
  }
  if (file.functions.empty()) {
    error = "there is no `def` in it";
    return std::nullopt;
  }
  return file;
}

std::optional<double> evaluate(StringRef expression,
                               const std::function<std::optional<double>(StringRef)> &valueOf,
                               std::string &error) {
  return Evaluator(expression, valueOf, error).all();
}

std::optional<double> evaluateConstant(StringRef expression) {
  std::string error;
  return evaluate(
      expression,
      [](StringRef name) -> std::optional<double> {
        if (name == "inf")
          return INFINITY;
        if (name == "pi")
          return M_PI;
        return std::nullopt;
      },
      error);
}

bool fill(Tensor &tensor, StringRef name, const InputSpec *spec, uint64_t seed,
          const std::function<std::optional<double>(StringRef)> &valueOf, std::string &error) {
  bool floating = isFloat(tensor.dtype()), boolean = tensor.dtype() == DType::Bool;
  InputSpec::Kind kind = spec       ? spec->kind
                         : floating ? InputSpec::Normal
                         : boolean  ? InputSpec::Coin
                                    : InputSpec::Integers;
  double a = kind == InputSpec::Coin ? 0.5 : 0, b = floating ? 1 : 4;
  if (spec) {
    double *slots[] = {&a, &b};
    for (auto [slot, argument] : zip(slots, spec->arguments)) {
      std::optional<double> value = evaluate(argument, valueOf, error);
      if (!value)
        return false;
      *slot = *value;
    }
  }
  if (kind == InputSpec::Integers && !(a < b) && tensor.elements()) {
    error = ("integers(" + Twine(int64_t(a)) + ", " + Twine(int64_t(b)) + ") for '" + name +
             "' are none")
                .str();
    return false;
  }

  uint64_t key = mix(seed);
  for (char c : name)
    key = mix(key ^ static_cast<unsigned char>(c));
  std::vector<double> values(tensor.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t bits = mix(key + i);
    switch (kind) {
    case InputSpec::Normal: {
      // Box and Muller: two numbers of each pair of random ones.
      uint64_t pair = mix(key + (i & ~size_t(1)));
      double radius = std::sqrt(-2 * std::log(1 - unit(pair))), angle = 2 * M_PI * unit(mix(pair));
      values[i] = a + b * radius * (i & 1 ? std::sin(angle) : std::cos(angle));
      break;
    }
    case InputSpec::Uniform:
      values[i] = a + (b - a) * unit(bits);
      break;
    case InputSpec::Integers:
      values[i] = a + std::floor((b - a) * unit(bits));
      break;
    case InputSpec::Coin:
      values[i] = unit(bits) < a;
      break;
    case InputSpec::Sign:
      values[i] = bits & 1 ? 1 : -1;
      break;
    case InputSpec::Constant:
      values[i] = a;
    }
  }
  tensor.store(values);
  return true;
}

} // namespace tegula::bench
