//===- RewriteCall.cpp - PyTorch's functions as equations --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/diagnostics/Inventions.h"
#include "frontend/suggest/RewriteFunction.h"
#include "frontend/suggest/RewriteReduce.h"
#include "frontend/suggest/RewriteShape.h"
#include "frontend/suggest/RewriteValue.h"
#include "frontend/suggest/RewriteViews.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace tegula::rewrite {

static Result evalConversion(Translator &translator, const CallForm &form, bool &known);

//===----------------------------------------------------------------------===//
// Callee and arguments
//===----------------------------------------------------------------------===//

const Node *CallForm::keyword(StringRef name) const {
  for (const auto &[keyword, value] : call->keywords)
    if (keyword == name)
      return value.get();
  return nullptr;
}

const Node *CallForm::argument(size_t position, ArrayRef<StringRef> names) const {
  if (position < arguments.size())
    return arguments[position];
  for (StringRef name : names)
    if (const Node *given = keyword(name))
      return given;
  return nullptr;
}

std::optional<CallForm> Translator::callForm(const Node &node) {
  if (node.kind != Node::Call)
    return std::nullopt;
  CallForm form;
  form.call = &node;
  const Node *callee = node.parts[0].get();
  form.name = callee->text;
  if (callee->kind == Node::Member) {
    // `torch.nn.functional.relu(x)` and `x.relu()`.
    const Node *root = callee->parts[0].get();
    while (root->kind == Node::Member)
      root = root->parts[0].get();
    // A size may be called F, and has no methods.
    auto known = environment.find(root->text);
    bool isSize = known != environment.end() && known->second.isSize;
    bool isModule = root->kind == Node::Name && (known == environment.end() || isSize) &&
                    !active.count(root->text);
    if (isModule)
      form.module = root->text;
    else
      form.arguments.push_back(callee->parts[0].get());
  }
  for (const NodePtr &argument : ArrayRef(node.parts).drop_front())
    form.arguments.push_back(argument.get());
  return form;
}

bool isNone(const Node *node) {
  return node->kind == Node::Name &&
         StringSwitch<bool>(node->text).Cases({"None", "null", "nullptr"}, true).Default(false);
}

static bool isTrue(const Node *node) { return node->text == "True" || node->text == "true"; }

bool Translator::flag(const CallForm &form, ArrayRef<StringRef> names, bool fallback) {
  for (StringRef name : names)
    if (const Node *given = form.keyword(name))
      return isTrue(given);
  return fallback;
}

/// `dim=1`, `axis=(0, 2)`, or by position; `isGiven` and null: something that no one can read.
std::optional<std::vector<int64_t>> Translator::dimsArgument(const CallForm &form, size_t position,
                                                             size_t rank, bool &isGiven) {
  const Node *given = form.argument(position, {"dim", "axis", "dims", "axes"});
  isGiven = given && !isNone(given);
  if (!isGiven)
    return std::nullopt;
  std::optional<std::vector<int64_t>> dims = integers(*given);
  for (int64_t &dim : dims ? *dims : std::vector<int64_t>())
    if (dim < -int64_t(rank) || dim >= int64_t(rank))
      return std::nullopt;
  return dims;
}

static std::string typeName(const Node &node) {
  if (node.kind != Node::Name && node.kind != Node::Member)
    return "";
  StringRef name = node.text;
  bool own = StringSwitch<bool>(name)
                 .Cases({"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2"}, true)
                 .Cases({"i64", "i32", "i16", "i8", "i4", "bool"}, true)
                 .Cases({"u64", "u32", "u16", "u8", "u4"}, true)
                 .Default(false);
  if (own)
    return name.str();
  const Invention *known = findInvention(Invention::Type, name);
  return known ? known->replacement.str() : "";
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

bool Translator::isOwn(StringRef name) const {
  const ast::Kernel *kernel = kernelOf(*this, name);
  const ast::Fn *fn = module.findFn(name);
  return (kernel && !module.isLibrary(*kernel)) || (fn && !module.isLibrary(*fn));
}

StringRef Translator::ownName(StringRef name) const {
  const Invention *known = isOwn(name) ? nullptr : findInvention(Invention::Function, name);
  return known && !known->replacement.empty() ? known->replacement : name;
}

Builtin builtinOf(StringRef name) {
  enum { Unary, UnaryKeep, UnaryTest, Binary, Reduction, Scan, Special };
  auto kind = [&](int entry) {
    switch (entry) {
    case Unary:
    case UnaryKeep:
    case UnaryTest:
      return Builtin::Values1;
    case Binary:
      return Builtin::Values2;
    case Reduction:
      return Builtin::Reduction;
    case Scan:
      return Builtin::Scan;
    default:
      return name == "where" || name == "fma" ? Builtin::Values3
             : name == "clamp"                ? Builtin::Clamp
                                              : Builtin::Other;
    }
  };
#define TEGULA_BUILTIN(NAME, SIGNATURE, CLASS, DOC)                                                \
  if (name == #NAME)                                                                               \
    return kind(CLASS);
#include "dsl/Builtins.def"
  return Builtin::None;
}

Result Translator::evalCall(const Node &node) {
  const Node &callee = *node.parts[0];
  if (callee.kind == Node::Subscript) { // sum[j](x[i, j])
    std::vector<Item> items;
    for (const NodePtr &index : ArrayRef(callee.parts).drop_front()) {
      if (index->kind != Node::Name)
        return std::nullopt;
      items.push_back({index->text, nullptr, nullptr, nullptr});
    }
    if (callee.parts[0]->kind != Node::Name || node.parts.size() != 2)
      return std::nullopt;
    return evalComprehension(callee.parts[0]->text, *node.parts[1], items, node);
  }
  std::optional<CallForm> form = callForm(node);
  if (!form)
    return std::nullopt;
  if (!node.items.empty())
    return node.parts.size() == 2 ? evalComprehension(form->name, *node.parts[1], node.items, node)
                                  : std::nullopt;
  if (form->arguments.size() == 1 && form->arguments[0]->kind == Node::Comprehension)
    return evalComprehension(form->name, *form->arguments[0]->parts[0], form->arguments[0]->items,
                             node);
  // What the file itself defines hides everything else.
  bool isOwnCall =
      form->module.empty() && form->call->parts[0]->kind == Node::Name && isOwn(form->name);
  bool known = false;
  for (auto family : {evalConversion, evalShapeChange, evalConstruction, evalReduction, evalAlong,
                      evalProduct, evalChoice, evalLoss}) {
    if (isOwnCall)
      break;
    Result result = family(*this, *form, known);
    if (known)
      return result;
  }
  StringRef name = ownName(form->name);
  switch (isOwnCall || name == "cat" ? Builtin::None : builtinOf(name)) {
  case Builtin::Values1:
    return elementwise(name, *form, 1);
  case Builtin::Values2:
    return elementwise(name, *form, 2);
  case Builtin::Values3:
    return elementwise(name, *form, 3);
  case Builtin::Clamp:
    return elementwise(name, *form, form->arguments.size());
  case Builtin::Reduction:
  case Builtin::Scan:
  case Builtin::Other:
    return std::nullopt;
  case Builtin::None:
    break;
  }
  if (const ast::Fn *fn = module.findFn(name)) {
    size_t values = 0; // what has no default varies by element
    for (size_t i = 0; i != fn->params.size(); ++i)
      values += i >= fn->defaults.size() || !fn->defaults[i];
    return elementwise(name, *form, values);
  }
  auto call = evalKernel(*this, node);
  if (!call || call->second.size() != 1)
    return std::nullopt;
  std::string result = freshName("h");
  before.push_back(result + " = " + call->first);
  Entity entity;
  entity.kind = Entity::Tensor;
  entity.dims = call->second[0];
  environment[result] = entity;
  return tensorValue(result, entity.dims);
}

/// `relu(v)`, `leaky_relu(v, 0.2)`, `clamp(v, min=0)`: the first arguments vary, the rest are
/// options.
Result Translator::elementwise(StringRef name, const CallForm &form, size_t values) {
  std::vector<Value> operands;
  std::string rest;
  for (const Node *argument : form.arguments) {
    if (operands.size() < values && rest.empty()) {
      Result one = eval(*argument);
      if (!one)
        return std::nullopt;
      operands.push_back(std::move(*one));
      continue;
    }
    std::optional<std::string> constant = constantArgument(*argument);
    if (!constant)
      return std::nullopt;
    rest += ", " + *constant;
  }
  for (const auto &[keyword, value] : form.call->keywords) {
    if (const Invention *known = findInvention(Invention::Keyword, keyword);
        isNone(value.get()) || (known && known->isVoid()))
      continue;
    if (keyword == "input" && operands.empty()) {
      Result one = eval(*value);
      if (!one)
        return std::nullopt;
      operands.push_back(std::move(*one));
      continue;
    }
    std::optional<std::string> constant = constantArgument(*value);
    if (!constant)
      return std::nullopt;
    rest += ", " + keyword + "=" + *constant;
  }
  if (operands.empty() || operands.size() < std::min(values, size_t(2)))
    return std::nullopt;
  return apply(name, std::move(operands), rest);
}

std::optional<std::string> Translator::constantArgument(const Node &node) {
  if (node.kind == Node::Sequence) {
    std::string result;
    for (const NodePtr &part : node.parts) {
      std::optional<std::string> one = constantArgument(*part);
      if (!one)
        return std::nullopt;
      result += (result.empty() ? "" : ", ") + *one;
    }
    return node.parts.size() == 1 ? result : "(" + result + ")";
  }
  std::optional<Text> one = scalar(node);
  return one ? std::optional(one->text) : std::nullopt;
}

Result Translator::evalComprehension(StringRef name, const Node &body, ArrayRef<Item> items,
                                     const Node &call) {
  name = ownName(name);
  bool isReduction = builtinOf(name) == Builtin::Reduction;
  bool isScan = builtinOf(name) == Builtin::Scan;
  std::vector<std::string> names;
  std::set<std::string> outer = active;
  for (const Item &item : items) {
    names.push_back(item.index);
    if (environment.contains(item.index) || !active.insert(item.index).second)
      return std::nullopt;
  }
  Result value = eval(body);
  std::string over;
  bool plain = true;
  for (const Item &item : items) {
    over += (over.empty() ? "" : ", ") + item.index;
    std::optional<Text> lo = item.lo ? scalar(*item.lo) : std::nullopt;
    std::optional<Text> hi = item.hi ? scalar(*item.hi) : std::nullopt;
    std::optional<Text> filter = item.filter ? scalar(*item.filter) : std::nullopt;
    if (item.filter && !filter) { // on elements
      Result condition = eval(*item.filter);
      if (condition && condition->rank() == 0)
        filter = condition->emit({});
    }
    if ((item.lo && !lo) || (item.hi && !hi) || (item.filter && !filter))
      return std::nullopt;
    plain &= !hi && !filter;
    if (hi)
      over += " in " + (lo ? lo->text + ":" : "") + hi->text;
    if (filter)
      over += " if " + filter->text;
  }
  active = std::move(outer);
  if (!value || value->rank() != 0)
    return std::nullopt;
  std::string options;
  for (const auto &[keyword, given] : call.keywords) {
    std::optional<std::string> constant = constantArgument(*given);
    if (!constant)
      return std::nullopt;
    options += ", " + keyword + "=" + *constant;
  }
  Names loose = value->loose;
  for (const std::string &one : names)
    loose.remove(one);
  if (isScan && plain) {
    std::string index = names.size() == 1 ? names[0] : "(" + over + ")";
    loose.insert_range(names);
    return make(
        {},
        [name = name.str(), value = *value, index, options](ArrayRef<std::string>) {
          return Text{name + "(" + value.emit({}).text + ", over=" + index + options + ")",
                      level::Atom};
        },
        std::move(loose));
  }
  if (!isReduction)
    return std::nullopt;
  return make(
      {},
      [name = name.str(), value = *value, over, options](ArrayRef<std::string>) {
        return Text{name + "(" + value.emit({}).text + " for " + over + options + ")", level::Atom};
      },
      std::move(loose));
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

Result Translator::evalMember(const Node &node) {
  const Node &what = *node.parts[0];
  // `math.pi`, `torch.inf`, `torch.float32` (where a value stands it is none).
  if (what.kind == Node::Name && !environment.contains(what.text) && !active.count(what.text)) {
    Node name;
    name.kind = Node::Name;
    name.text = node.text;
    if (node.text == "e")
      return text("2.718281828459045");
    return environment.contains(node.text) ? std::nullopt : evalName(name);
  }
  if (node.text == "values" || node.text == "indices") {
    std::vector<Value> pair = evalPair(*this, what);
    return pair.size() == 2 ? Result(pair[node.text == "indices"]) : std::nullopt;
  }
  Result value = eval(what);
  if (!value)
    return std::nullopt;
  bool isTransposed = node.text == "T" || node.text == "mT" || node.text == "t";
  if (isTransposed && value->rank() == 2)
    return permuted(*this, *value, {1, 0});
  if (node.text == "mT" && value->rank() > 2) {
    std::vector<int64_t> order;
    for (size_t i = 0; i != value->rank(); ++i)
      order.push_back(int64_t(i));
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return permuted(*this, *value, order);
  }
  if (node.text == "data")
    return value;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static Result evalConversion(Translator &translator, const CallForm &form, bool &known) {
  StringRef name = form.name;
  if (StringSwitch<bool>(name)
          .Cases({"contiguous", "clone", "detach", "cuda", "cpu", "requires_grad_", "item"}, true)
          .Cases({"tensor", "as_tensor", "asarray", "array", "broadcast_to_same"}, true)
          .Default(false)) {
    known = true;
    return form.arguments.size() == 1 ? translator.eval(*form.arguments[0]) : std::nullopt;
  }
  if (form.arguments.size() == 1 && form.arguments[0]->kind == Node::String && name == "float") {
    known = true; // float("inf")
    StringRef word = form.arguments[0]->text;
    bool negative = word.consume_front("-");
    word.consume_front("+");
    if (!word.equals_insensitive("inf") && !word.equals_insensitive("infinity") &&
        !word.equals_insensitive("nan"))
      return std::nullopt;
    std::string constant = word.lower().substr(0, 3);
    return translator.text((negative ? "-" : "") + constant, negative ? level::Unary : level::Atom);
  }
  std::string type;
  bool byName =
      StringSwitch<bool>(name).Cases({"to", "type", "astype", "cast"}, true).Default(false);
  if (byName) {
    known = true;
    if (form.arguments.empty() || form.arguments.size() > 2)
      return std::nullopt;
    const Node *given = form.argument(1, {"dtype"});
    if (given)
      type = typeName(*given);
    if (given && type.empty() && given->kind != Node::String && given->text != "device")
      return std::nullopt;
    if (type.empty())
      return translator.eval(*form.arguments[0]); // another device
  } else if (form.arguments.size() == 1 && form.call->keywords.empty()) {
    Node callee;
    callee.kind = Node::Name;
    callee.text = form.name;
    // `int(v)` converts as Python's does.
    type = callee.kind == Node::Name && callee.text == "int" ? "int" : typeName(callee);
  }
  if (type.empty())
    return std::nullopt;
  known = true;
  Result value = translator.eval(*form.arguments[0]);
  return value ? translator.apply(type, {*value}) : std::nullopt;
}

} // namespace tegula::rewrite
