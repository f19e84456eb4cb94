//===- RewriteValue.cpp - Whole-tensor expressions as elements ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/suggest/RewriteValue.h"
#include "frontend/suggest/RewriteReduce.h"
#include "frontend/suggest/RewriteSubscript.h"

#include "frontend/diagnostics/Inventions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace tegula::rewrite {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string Translator::index(std::set<std::string> &taken, bool isLeft) {
  StringRef letters = isLeft ? "ijklmnpqrstuvw" : "klmnpqrstuvwij";
  auto isFree = [&](const std::string &name) {
    return !taken.count(name) && !active.count(name) && !environment.contains(name);
  };
  for (char letter : letters)
    if (std::string name(1, letter); isFree(name)) {
      taken.insert(name);
      return name;
    }
  for (unsigned i = 0;; ++i)
    if (std::string name = "i" + std::to_string(i); isFree(name)) {
      taken.insert(name);
      return name;
    }
}

std::vector<std::string> Translator::leftIndices(ArrayRef<Dim> dims) {
  std::vector<std::string> result;
  std::set<std::string> taken;
  for (const Dim &dim : dims) {
    if (dim.parts.empty()) {
      bool isFree = !dim.hint.empty() && !taken.count(dim.hint) && !active.count(dim.hint) &&
                    !environment.contains(dim.hint);
      // The names of later dims are kept for them.
      std::set<std::string> kept = taken;
      for (const Dim &other : dims)
        if (!other.hint.empty())
          kept.insert(other.hint);
      std::string name = isFree ? dim.hint : index(kept, /*isLeft=*/true);
      taken.insert(name);
      result.push_back(std::move(name));
      continue;
    }
    std::string group;
    for (size_t i = 0; i != dim.parts.size(); ++i)
      group += (i ? ", " : "(") + index(taken, /*isLeft=*/true);
    result.push_back(group + ")");
  }
  active.insert(taken.begin(), taken.end());
  return result;
}

std::string Translator::freshName(StringRef wish) {
  StringRef base = wish.rtrim("0123456789");
  std::string name = base.str();
  for (unsigned i = 2; environment.contains(name) || active.count(name) || reserved.contains(name);
       ++i)
    name = base.str() + std::to_string(i);
  return name;
}

//===----------------------------------------------------------------------===//
// Making and writing values
//===----------------------------------------------------------------------===//

Result Translator::make(std::vector<Dim> dims, Emit emit, Names loose) {
  return Value{std::move(dims), std::move(emit), "", std::move(loose)};
}

Result Translator::text(std::string text, int level) {
  return make({},
              [text = std::move(text), level](ArrayRef<std::string>) { return Text{text, level}; });
}

Value Translator::tensorValue(StringRef name, ArrayRef<Dim> dims) {
  Value result;
  result.dims.assign(dims.begin(), dims.end());
  result.tensor = name.str();
  result.emit = [name = name.str(), dims = result.dims](ArrayRef<std::string> indices) {
    std::string subscripts;
    for (size_t i = 0; i != dims.size(); ++i)
      if (!dims[i].absent)
        subscripts += (subscripts.empty() ? "[" : ", ") + (dims[i].one ? "0" : indices[i]);
    return Text{name + subscripts + (subscripts.empty() ? "" : "]"), level::Atom};
  };
  return result;
}

std::string Translator::wrapped(const Text &text, int level) {
  return text.level < level ? "(" + text.text + ")" : text.text;
}

std::vector<Dim> Translator::broadcast(ArrayRef<const Value *> values) {
  size_t rank = 0;
  for (const Value *value : values)
    rank = std::max(rank, value->rank());
  std::vector<Dim> dims(rank, Dim{"1", true, true, {}, "", false});
  for (const Value *value : values)
    for (size_t i = 0; i != value->rank(); ++i) {
      Dim &to = dims[rank - value->rank() + i];
      const Dim &from = value->dims[i];
      if (from.one)
        continue;
      if (to.one) {
        to = from;
        continue;
      }
      // Sizes that need not agree: broadcasting from the right is not what was meant.
      failed |= !to.extent.empty() && !from.extent.empty() && to.extent != from.extent && to.bare &&
                from.bare;
      if (to.extent.empty() || (!to.bare && from.bare))
        to.extent = from.extent;
      if (to.hint.empty())
        to.hint = from.hint;
      to.bare |= from.bare;
      if (to.parts.empty())
        to.parts = from.parts;
    }
  return dims;
}

/// The value at the last of the indices, as broadcasting has it.
Text Translator::emitAt(const Value &value, ArrayRef<std::string> indices) {
  return value.emit(indices.take_back(value.rank()));
}

Text Translator::emitExactly(const Value &value, ArrayRef<std::string> indices) {
  if (indices.size() != value.rank())
    failed = true;
  return failed ? Text{"", level::Atom} : value.emit(indices);
}

/// Defines a temporary in front of the statement.
Result Translator::hoist(const Value &value) {
  if (!value.tensor.empty())
    return value;
  if (value.rank() == 0)
    return std::nullopt;
  std::string name = freshName("h");
  std::set<std::string> outer = active;
  std::vector<std::string> indices = leftIndices(value.dims);
  std::string left = name;
  for (size_t i = 0; i != indices.size(); ++i) {
    left += (i ? ", " : "[") + indices[i];
    if (value.dims[i].bare && !value.dims[i].one)
      continue;
    if (value.dims[i].extent.empty())
      return std::nullopt;
    left += " in " + value.dims[i].extent;
  }
  before.push_back(left + "] = " + emitExactly(value, indices).text);
  active = std::move(outer);
  Entity entity;
  entity.kind = Entity::Tensor;
  entity.dims = value.dims;
  for (Dim &dim : entity.dims) {
    dim.bare = true;
    dim.parts.clear();
  }
  environment[name] = entity;
  return tensorValue(name, entity.dims);
}

//===----------------------------------------------------------------------===//
// Integers and sizes
//===----------------------------------------------------------------------===//

std::optional<int64_t> Translator::integer(const Node &node) {
  if (node.kind == Node::Unary && node.text == "-") {
    std::optional<int64_t> value = integer(*node.parts[0]);
    return value ? std::optional(-*value) : std::nullopt;
  }
  int64_t result;
  if (node.kind != Node::Number || StringRef(node.text).getAsInteger(10, result))
    return std::nullopt;
  return result;
}

std::optional<std::vector<int64_t>> Translator::integers(const Node &node) {
  std::vector<int64_t> result;
  if (node.kind != Node::Sequence) {
    if (std::optional<int64_t> one = integer(node))
      return std::vector<int64_t>{*one};
    return std::nullopt;
  }
  for (const NodePtr &part : node.parts) {
    std::optional<int64_t> one = integer(*part);
    if (!one)
      return std::nullopt;
    result.push_back(*one);
  }
  return result;
}

std::optional<Text> Translator::scalar(const Node &node) {
  Result value = eval(node);
  if (!value || value->rank() != 0 || !value->loose.empty())
    return std::nullopt;
  return value->emit({});
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

Result Translator::eval(const Node &node) {
  Result result;
  switch (node.kind) {
  case Node::Number:
    return text(node.text);
  case Node::Name:
    return evalName(node);
  case Node::Unary:
    result = evalUnary(node);
    break;
  case Node::Binary: {
    Result a = eval(*node.parts[0]), b = a ? eval(*node.parts[1]) : std::nullopt;
    if (b)
      result = evalBinary(node.text, *a, *b);
    break;
  }
  case Node::Ternary: {
    std::vector<Value> values;
    for (const NodePtr &part : node.parts) {
      Result one = eval(*part);
      if (!one)
        return std::nullopt;
      values.push_back(std::move(*one));
    }
    return apply("where", std::move(values));
  }
  case Node::Call:
    return evalCall(node);
  case Node::Member:
    return evalMember(node);
  case Node::Subscript:
    return evalSubscript(*this, node);
  case Node::String:
  case Node::Slice:
  case Node::Ellipsis:
  case Node::Sequence:
  case Node::Comprehension:
    return std::nullopt;
  }
  // Brackets as they were written.
  if (result && node.parenthesized) {
    Emit inner = result->emit;
    result->emit = [inner](ArrayRef<std::string> indices) {
      Text text = inner(indices);
      return text.level == level::Atom ? text : Text{"(" + text.text + ")", level::Atom};
    };
  }
  return result;
}

Result Translator::evalName(const Node &node) {
  auto found = environment.find(node.text);
  if (found != environment.end()) {
    if (found->second.kind == Entity::Tensor)
      return found->second.isDefined ? Result(tensorValue(node.text, found->second.dims))
                                     : std::nullopt;
    return text(node.text);
  }
  if (active.count(node.text))
    return text(node.text);
  if (const Invention *known = findInvention(Invention::Value, node.text);
      known && !known->replacement.empty())
    return text(known->replacement.str());
  if (StringSwitch<bool>(node.text)
          .Cases({"inf", "nan", "pi", "true", "false"}, true)
          .Default(false))
    return text(node.text);
  return std::nullopt;
}

static int levelOf(StringRef op) {
  return StringSwitch<int>(op)
      .Case("or", level::Or)
      .Case("and", level::And)
      .Cases({"<", "<=", ">", ">=", "==", "!="}, level::Compare)
      .Case("|", level::BitOr)
      .Case("^", level::BitXor)
      .Case("&", level::BitAnd)
      .Cases({"<<", ">>"}, level::Shift)
      .Cases({"+", "-"}, level::Sum)
      .Cases({"*", "/", "//", "%"}, level::Product)
      .Default(level::Power);
}

Result Translator::evalBinary(StringRef op, const Value &a, const Value &b) {
  if (op == "@")
    return matmul(*this, a, b);
  int level = levelOf(op);
  Names loose = a.loose;
  loose.insert_range(b.loose);
  return make(
      broadcast({&a, &b}),
      [this, a, b, op = op.str(), level](ArrayRef<std::string> indices) {
        bool power = level == level::Power;
        std::string left = wrapped(emitAt(a, indices), power ? level + 1 : level);
        std::string right = wrapped(emitAt(b, indices), power ? int(level::Unary) : level + 1);
        StringRef space = power ? "" : " ";
        return Text{(left + space + op + space + right).str(), level};
      },
      std::move(loose));
}

Result Translator::evalUnary(const Node &node) {
  Result value = eval(*node.parts[0]);
  if (!value)
    return std::nullopt;
  bool isNot = node.text == "not";
  std::string op = isNot ? "not " : node.text;
  int level = isNot ? level::Not : level::Unary;
  return make(
      value->dims,
      [this, value = *value, op, level](ArrayRef<std::string> indices) {
        return Text{op + wrapped(emitAt(value, indices), level), level};
      },
      value->loose);
}

Result Translator::apply(StringRef name, std::vector<Value> values, StringRef rest) {
  std::vector<const Value *> pointers;
  Names loose;
  for (const Value &value : values) {
    pointers.push_back(&value);
    loose.insert_range(value.loose);
  }
  std::vector<Dim> dims = broadcast(pointers);
  return make(
      std::move(dims),
      [this, name = name.str(), values = std::move(values),
       rest = rest.str()](ArrayRef<std::string> indices) {
        std::string call = name + "(";
        for (size_t i = 0; i != values.size(); ++i)
          call += (i ? ", " : "") + emitAt(values[i], indices).text;
        return Text{call + rest + ")", level::Atom};
      },
      std::move(loose));
}

} // namespace tegula::rewrite
