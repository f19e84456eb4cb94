//===- Signature.cpp - What a kernel's parameters are called ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/check/Signature.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace tegula {
namespace {

/// A whole number, perhaps the value of an expression.
std::optional<int64_t> parseInteger(StringRef text, Signature::NumberOf numberOf) {
  if (int64_t exact; !text.trim().getAsInteger(10, exact))
    return exact;
  std::optional<double> value = numberOf(text);
  if (!value || *value != std::floor(*value) || std::fabs(*value) > 0x1p53)
    return std::nullopt;
  return static_cast<int64_t>(*value);
}

/// A number for a scalar: digits are read as they stand, an expression is computed in f64.
std::optional<ScalarSetting> parseScalar(StringRef text, Signature::NumberOf numberOf) {
  text = text.trim();
  unsigned radix = text.contains_insensitive("0x") || text.contains_insensitive("0b") ? 0 : 10;
  if (int64_t exact; !text.getAsInteger(radix, exact))
    return exact;
  if (uint64_t exact; !text.getAsInteger(radix, exact))
    return exact;
  std::optional<double> value = numberOf(text);
  if (!value)
    return std::nullopt;
  if (*value == std::trunc(*value) && std::fabs(*value) <= 0x1p53)
    return static_cast<int64_t>(*value);
  return *value;
}

std::optional<bool> parseBool(StringRef text) {
  if (text == "true" || text == "True")
    return true;
  if (text == "false" || text == "False")
    return false;
  return std::nullopt;
}

/// `(2, 3)`, `[2, 3]`, `2` or `()`.
std::optional<std::vector<int64_t>> parseTuple(StringRef text, Signature::NumberOf numberOf) {
  text = text.trim();
  if (text.starts_with("(") || text.starts_with("["))
    text = text.drop_front().drop_back();
  std::vector<int64_t> values;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    if (part.trim().empty())
      continue;
    std::optional<int64_t> value = parseInteger(part.trim(), numberOf);
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

} // namespace

std::string Instance::key() const {
  std::string text;
  raw_string_ostream stream(text);
  for (const auto &[name, type] : options.types)
    stream << name << '=' << checked::toString(type) << ' ';
  stream << options.ellipsisRank.value_or(0) << ' ';
  for (const auto &[name, value] : options.constants) {
    stream << name << '=';
    std::visit(
        [&](const auto &held) {
          using Held = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<Held, std::vector<int64_t>>)
            interleaveComma(held, stream);
          else if constexpr (std::is_same_v<Held, double>)
            stream << bit_cast<uint64_t>(held);
          else
            stream << held;
        },
        value);
    stream << ' ';
  }
  interleaveComma(options.givenOptionals, stream);
  return text;
}

Signature::Signature(const ast::Kernel &kernel) {
  auto note = [&](const ast::Param &param) {
    for (const ast::Dim &dim : param.dims)
      hasEllipsis |= dim.ellipsis;
    StringRef type = param.type.name;
    if (!type.empty() && type[0] >= 'A' && type[0] <= 'Z' && !is_contained(genericTypes, type))
      genericTypes.push_back(type.str());
  };
  for (const ast::Param &param : kernel.params) {
    note(param);
    Parameter one;
    one.name = param.name.name;
    one.type = param.type.name;
    one.isOptional = param.defaultValue != nullptr;
    one.isInout = param.isInout;
    one.dims = param.dims.size();
    for (size_t i = 0; i < param.dims.size(); ++i)
      if (param.dims[i].ellipsis)
        one.ellipsisAt = i;
    bool isNumber = one.type == "int" || one.type == "float";
    one.kind = isNumber || (one.type == "bool" && !param.hasDims)
                   ? (param.hasDims ? Parameter::Tuple : Parameter::Constant)
               : param.hasDims ? Parameter::Tensor
                               : Parameter::Scalar;
    parameters.push_back(std::move(one));
  }
  for (const ast::Param &param : kernel.outputs)
    note(param);
}

const Signature::Parameter *Signature::find(StringRef name) const {
  auto found = find_if(parameters, [&](const Parameter &one) { return name == one.name; });
  return found == parameters.end() ? nullptr : &*found;
}

std::string Signature::howToGive(const Parameter &parameter) {
  const char *value = parameter.type == "bool"                        ? "true"
                      : parameter.type.find("f") != std::string::npos ? "1.0"
                                                                      : "1";
  return "'" + parameter.name + "': -p " + parameter.name + "=" + value;
}

const Signature::Parameter *Signature::missing(const InstanceOptions &options) const {
  auto found = find_if(parameters, [&](const Parameter &one) {
    bool isConstant = one.kind == Parameter::Constant || one.kind == Parameter::Tuple;
    return isConstant && !one.isOptional && !options.constants.contains(one.name);
  });
  return found == parameters.end() ? nullptr : &*found;
}

std::optional<double> Signature::parseLiteral(StringRef text) {
  text = text.trim();
  bool isNegative = text.consume_front("-");
  double value;
  if (text == "inf")
    value = INFINITY;
  else if (text == "nan")
    value = NAN;
  else if (text == "pi")
    value = M_PI;
  else if (text.empty() || !(isDigit(text.front()) || text.front() == '.') ||
           text.getAsDouble(value))
    return std::nullopt;
  return isNegative ? -value : value;
}

bool Signature::sort(const Settings &settings, Instance &instance, std::string &error,
                     NumberOf numberOf) const {
  for (const auto &[name, text] : settings) {
    auto fail = [&, &name = name, &text = text](const char *expected) {
      error = name + " takes " + expected + ", got '" + text + "'";
      return false;
    };
    if (name == "...") {
      std::optional<std::vector<int64_t>> dims = parseTuple(text, numberOf);
      if (!dims || any_of(*dims, [](int64_t dim) { return dim < 0; }))
        return fail("a tuple of sizes");
      instance.ellipsis = *dims;
      instance.options.ellipsisRank = dims->size();
      continue;
    }
    if (is_contained(genericTypes, name)) {
      std::optional<checked::DType> type = checked::parseDType(text);
      if (!type)
        return fail("a type such as f32");
      instance.options.types[name] = *type;
      continue;
    }
    const Parameter *parameter = find(name);
    if (!parameter) {
      std::optional<int64_t> size = parseInteger(text, numberOf);
      if (!size || *size < 0)
        return fail("a size of 0 or more");
      instance.sizes[name] = *size;
      continue;
    }
    switch (parameter->kind) {
    case Parameter::Tensor:
      error = "'" + name + "' is a tensor, which takes no value here";
      return false;
    case Parameter::Scalar: {
      std::optional<bool> truth = parseBool(text);
      std::optional<ScalarSetting> value =
          truth ? std::optional<ScalarSetting>(int64_t(*truth)) : parseScalar(text, numberOf);
      if (!value)
        return fail("a number");
      instance.scalars[name] = *value;
      if (parameter->isOptional)
        instance.options.givenOptionals.push_back(name);
      break;
    }
    case Parameter::Tuple: {
      std::optional<std::vector<int64_t>> values = parseTuple(text, numberOf);
      if (!values || values->empty())
        return fail("an integer or a tuple of them");
      if (values->size() == 1)
        instance.options.constants[name] = values->front();
      else
        instance.options.constants[name] = *values;
      break;
    }
    case Parameter::Constant:
      if (parameter->type == "bool") {
        std::optional<bool> truth = parseBool(text);
        if (!truth)
          return fail("true or false");
        instance.options.constants[name] = *truth;
      } else if (parameter->type == "int") {
        std::optional<int64_t> value = parseInteger(text, numberOf);
        if (!value)
          return fail("an integer");
        instance.options.constants[name] = *value;
      } else {
        std::optional<double> value = numberOf(text);
        if (!value)
          return fail("a number");
        instance.options.constants[name] = *value;
      }
    }
  }
  return true;
}

} // namespace tegula
