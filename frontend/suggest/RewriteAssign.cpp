//===- RewriteAssign.cpp - Assignments as equations --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/suggest/RewriteFunction.h"
#include "frontend/suggest/RewriteKernel.h"
#include "frontend/suggest/RewriteReduce.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tegula::rewrite {

//===----------------------------------------------------------------------===//
// One target
//===----------------------------------------------------------------------===//

/// A copy in which `from`, as a value, is called `to`.
static NodePtr copyRenamed(const Node &node, StringRef from, StringRef to) {
  auto copyOf = [&](const NodePtr &part) { return part ? copyRenamed(*part, from, to) : nullptr; };
  auto made = std::make_unique<Node>();
  made->kind = node.kind;
  made->text = node.kind == Node::Name && node.text == from ? to.str() : node.text;
  made->parenthesized = node.parenthesized;
  made->range = node.range;
  for (const NodePtr &part : node.parts)
    made->parts.push_back(copyOf(part));
  for (const auto &[keyword, given] : node.keywords)
    made->keywords.emplace_back(keyword, copyOf(given));
  for (const Item &item : node.items)
    made->items.push_back({item.index, copyOf(item.lo), copyOf(item.hi), copyOf(item.filter)});
  return made;
}

/// Edits that rename a value in the statements of tokens [begin, end).
void KernelReader::rename(StringRef from, StringRef to, size_t begin, size_t end,
                          std::vector<Edit> &edits) const {
  for (size_t i = begin; i < end; ++i) {
    if (tokens[i].kind != Token::Name || text(i) != from)
      continue;
    bool isMember = i > 0 && text(i - 1) == ".";
    bool isCallee = text(i + 1) == "(";
    bool isKeyword = text(i + 1) == "=" && tokens[i].brackets > 0;
    if (!isMember && !isCallee && !isKeyword)
      edits.push_back({{id, tokens[i].begin, tokens[i].end}, to.str()});
  }
}

/// An equation for the elements of a left side.
std::optional<Rewriting> KernelReader::elements(const Node &target, StringRef op,
                                                const Node &value) {
  if (op != "=" && op != ":=" && op != "+=")
    return std::nullopt;
  Translator translator = makeTranslator();
  auto bindAll = [&](auto &&bindAll, const Node &node) -> void {
    if (node.kind == Node::Name && !environment.contains(node.text))
      translator.bind(node.text);
    if (node.kind == Node::Binary || node.kind == Node::Unary || node.kind == Node::Sequence)
      for (const NodePtr &part : node.parts)
        bindAll(bindAll, *part);
  };
  for (const std::string &name : loopNames)
    translator.bind(name);
  for (const NodePtr &item : ArrayRef(target.parts).drop_front())
    bindAll(bindAll, *item);
  Result right = translator.eval(value);
  if (!right)
    return std::nullopt;
  std::optional<std::string> line =
      defineElements(translator, target, op == "+=" ? "+=" : "=", *right);
  if (!line)
    return std::nullopt;
  Rewriting result;
  result.lines = std::move(translator.before);
  result.lines.push_back(std::move(*line));
  result.guessed = translator.guessed;
  return result;
}

std::optional<Rewriting> KernelReader::assignment(const Node &target, StringRef op,
                                                  const Node &value, unsigned depth) {
  if (target.kind == Node::Subscript && target.parts[0]->kind == Node::Name) {
    std::optional<Rewriting> result = elements(target, op, value);
    // In blocks there is no place for temporaries.
    return result && depth > 1 && result->lines.size() > 1 ? std::nullopt : result;
  }
  if (target.kind != Node::Name)
    return std::nullopt;

  // `y += v` of an output, element by element.
  auto declared = environment.find(target.text);
  bool accumulates = op == "+=" && declared != environment.end() && declared->second.isOutput &&
                     !declared->second.isDefined && !declared->second.dims.empty();
  // `x *= 2` is `x = x * 2`.
  NodePtr source = copyRenamed(value, "", "");
  if (op != "=" && op != ":=" && !accumulates) {
    auto updated = std::make_unique<Node>();
    updated->kind = Node::Binary;
    updated->text = op.drop_back().str();
    updated->parts.push_back(copyRenamed(target, "", ""));
    updated->parts.push_back(std::move(source));
    source = std::move(updated);
  }
  Environment before = environment;
  std::string name = target.text;
  auto known = environment.find(name);
  bool isDefined = known != environment.end() && known->second.isDefined;
  Rewriting result;
  if (op != "=" && op != ":=" && !isDefined && !accumulates)
    return std::nullopt;
  Translator translator = makeTranslator();
  for (const std::string &loop : loopNames)
    translator.bind(loop);
  if (isDefined) {
    // Nothing is defined twice: each gets a name of its own. An output is the last of them.
    if (depth > 1 || known->second.kind == Entity::Index)
      return std::nullopt;
    std::string other = translator.freshName(name);
    result.guessed = known->second.isSize;
    if (known->second.isOutput) {
      rename(name, other, bodyBegin, current, result.others);
      source = copyRenamed(*source, name, other);
      Entity former = known->second;
      former.isOutput = false;
      known->second.isDefined = false;
      environment[other] = std::move(former);
    } else {
      rename(name, other, currentEnd, tokens.size(), result.others);
      name = other;
    }
  }

  std::optional<std::string> line;
  std::vector<Dim> dims;
  std::optional<CallForm> form = translator.callForm(*source);
  if (form && form->name == "stack" && depth == 1 && !form->arguments.empty() &&
      form->arguments[0]->kind == Node::Sequence && !isDefined)
    return stacked(translator, name, *form);
  bool scatters = form && (form->name == "scatter_reduce" || form->name == "index_put" ||
                           form->name == "index_fill" || form->name == "index_reduce");
  if (scatters && depth == 1 && !isDefined && !accumulates)
    return scattered(name, *form);
  // A call of a kernel stays one.
  if (form && depth == 1 && !accumulates &&
      (form->name.starts_with("cat") || form->name.starts_with("concat") ||
       kernelOf(translator, form->name)))
    if (auto call = evalKernel(translator, *source); call && call->second.size() == 1) {
      line = name + " = " + call->first;
      dims = call->second[0];
    }
  if (!line) {
    translator.before.clear();
    translator.guessed = false;
    Result right = translator.eval(*source);
    if (right && (depth == 1 || right->rank() == 0)) {
      line = define(translator, name, *right);
      dims = right->dims;
    }
  }
  if (!line || translator.failed || (depth > 1 && !translator.before.empty())) {
    environment = std::move(before);
    return std::nullopt;
  }
  if (accumulates)
    line->insert(line->find(" = ") + 1, "+");
  declare(name, dims);
  result.lines = std::move(translator.before);
  result.lines.push_back(std::move(*line));
  result.guessed |= translator.guessed;
  return result;
}

//===----------------------------------------------------------------------===//
// Several targets
//===----------------------------------------------------------------------===//

/// `y = torch.stack([a, b], dim=0)`: a piece for each.
std::optional<Rewriting> KernelReader::stacked(Translator &translator, StringRef name,
                                               const CallForm &form) {
  Rewriting result;
  const Node *given = form.argument(1, {"dim", "axis"});
  std::optional<int64_t> dim = given ? translator.integer(*given) : std::optional<int64_t>(0);
  std::vector<Dim> dims;
  for (auto [i, part] : enumerate(form.arguments[0]->parts)) {
    Translator each = makeTranslator();
    Result value = each.eval(*part);
    if (!value || !dim || !value->loose.empty())
      return std::nullopt;
    int64_t rank = int64_t(value->rank());
    int64_t at = *dim < 0 ? *dim + rank + 1 : *dim;
    if (at < 0 || at > rank)
      return std::nullopt;
    std::vector<std::string> indices = each.leftIndices(value->dims), left = indices;
    for (auto [index, d] : zip_equal(left, value->dims))
      if (!environment.contains(name) && !d.bare) {
        if (d.extent.empty())
          return std::nullopt;
        index += " in " + d.extent;
      }
    left.insert(left.begin() + at, std::to_string(i));
    std::string line = name.str() + "[" + join(left, ", ") + "] = " + value->emit(indices).text;
    if (each.failed)
      return std::nullopt;
    result.guessed |= each.guessed;
    result.lines.insert(result.lines.end(), each.before.begin(), each.before.end());
    result.lines.push_back(std::move(line));
    dims = value->dims;
    dims.insert(dims.begin() + at,
                Dim{std::to_string(form.arguments[0]->parts.size()), false, true, {}, "", false});
  }
  declare(name, dims);
  return result;
}

/// `v[i], e[i] = max(x[i, j] for j)`: the value and its place are two equations.
std::optional<Rewriting> KernelReader::severalElements(ArrayRef<NodePtr> targets,
                                                       const Node &value) {
  if (targets.size() != 2 || value.kind != Node::Call || value.items.empty() ||
      value.parts[0]->kind != Node::Name)
    return std::nullopt;
  NodePtr place = copyRenamed(value, "", "");
  StringRef name = value.parts[0]->text;
  if (name != "max" && name != "min" && name != "sort")
    return std::nullopt;
  place->parts[0]->text = "arg" + name.str();
  std::optional<Rewriting> first = elements(*targets[0], "=", value);
  std::optional<Rewriting> second = elements(*targets[1], "=", *place);
  if (!first || !second)
    return std::nullopt;
  llvm::append_range(first->lines, second->lines);
  return first;
}

/// `v, i = torch.topk(x, k, dim=1)`
bool KernelReader::severalOfTopK(ArrayRef<NodePtr> targets, const CallForm &form,
                                 Translator &translator, Rewriting &result) {
  Result source = translator.eval(*form.arguments[0]);
  const Node *count = form.argument(1, {"k"}), *along = form.argument(2, {"dim"});
  std::optional<Text> k = count ? translator.scalar(*count) : std::nullopt;
  std::optional<int64_t> dim = along ? translator.integer(*along) : std::optional<int64_t>(-1);
  if (!source || !k || !dim || source->rank() == 0)
    return false;
  *dim += *dim < 0 ? int64_t(source->rank()) : 0;
  if (*dim < 0 || *dim >= int64_t(source->rank()))
    return false;
  std::vector<std::string> indices = translator.leftIndices(source->dims);
  std::string rank = translator.leftIndices({Dim()})[0];
  std::vector<std::string> left = indices;
  left[size_t(*dim)] = rank;
  std::string subscripts = "[" + join(left, ", ") + "]";
  std::vector<Dim> dims = source->dims;
  dims[size_t(*dim)] = {k->text, false, true, {}, "", false};
  result.lines.push_back(targets[0]->text + subscripts + ", " + targets[1]->text + subscripts +
                         " = topk(" + source->emit(indices).text + " for " + indices[size_t(*dim)] +
                         ", k=" + k->text + ")");
  for (const NodePtr &target : targets)
    declare(target->text, dims);
  return !translator.failed;
}

/// `q, k, v = x.chunk(3, dim=-1)`, and `split` and `unbind`
bool KernelReader::severalParts(ArrayRef<NodePtr> targets, const CallForm &form,
                                Translator &translator, Rewriting &result) {
  Result source = translator.eval(*form.arguments[0]);
  const Node *size = form.name == "unbind" ? nullptr : form.argument(1, {"chunks", "split_size"});
  const Node *along = form.argument(form.name == "unbind" ? 1 : 2, {"dim"});
  std::optional<int64_t> dim = along ? translator.integer(*along) : std::optional<int64_t>(0);
  if (!source || !dim || (form.name != "unbind" && !size) || source->rank() == 0)
    return false;
  *dim += *dim < 0 ? int64_t(source->rank()) : 0;
  if (*dim < 0 || *dim >= int64_t(source->rank()))
    return false;
  const Dim &whole = source->dims[size_t(*dim)];
  std::string offset = "0";
  std::optional<int64_t> chunks =
      form.name == "chunk" && size ? translator.integer(*size) : std::nullopt;
  if (form.name == "chunk" &&
      (!chunks || *chunks != int64_t(targets.size()) || whole.extent.empty()))
    return false;
  for (auto [i, target] : enumerate(targets)) {
    Value part = *source;
    std::string extent;
    if (form.name == "unbind") {
      offset = std::to_string(i);
    } else if (chunks) {
      int64_t known;
      std::string factor = std::to_string(*chunks) + "*";
      if (StringRef rest = whole.extent;
          rest.consume_front(factor) && !rest.contains_insensitive(" "))
        extent = rest.str(); // 3*C in 3 chunks
      else
        extent = !StringRef(whole.extent).getAsInteger(10, known)
                     ? std::to_string(known / *chunks)
                     : (StringRef(whole.extent).contains(' ') ? "(" + whole.extent + ")"
                                                              : whole.extent) +
                           "/" + std::to_string(*chunks);
    } else if (size->kind == Node::Sequence) {
      if (size->parts.size() != targets.size())
        return false;
      std::optional<Text> one = translator.scalar(*size->parts[i]);
      if (!one)
        return false;
      extent = one->text;
    } else if (std::optional<Text> one = translator.scalar(*size)) {
      extent = one->text;
    } else {
      return false;
    }
    std::string start = offset;
    if (chunks || (size && size->kind != Node::Sequence)) // a multiple of one size
      start = i == 0 ? "0" : i == 1 ? extent : std::to_string(i) + "*" + extent;
    if (form.name == "unbind")
      part.dims.erase(part.dims.begin() + *dim);
    else
      part.dims[size_t(*dim)] = {extent, false, false, {}, "", false};
    bool unbinds = form.name == "unbind";
    part.emit = [source = *source, at = size_t(*dim), start,
                 unbinds](ArrayRef<std::string> indices) {
      std::vector<std::string> inner(indices.begin(), indices.end());
      if (unbinds)
        inner.insert(inner.begin() + at, start);
      else if (start != "0")
        inner[at] = start + " + " + inner[at];
      return source.emit(inner);
    };
    Translator each = makeTranslator();
    std::optional<std::string> line = define(each, target->text, part);
    if (!line)
      return false;
    result.lines.push_back(*line);
    declare(target->text, part.dims);
    offset = offset == "0" ? extent : offset + " + " + extent;
  }
  return true;
}

/// Several names on the left.
std::optional<Rewriting> KernelReader::several(ArrayRef<NodePtr> targets, const Node &value) {
  if (llvm::all_of(targets, [](const NodePtr &one) { return one->kind == Node::Subscript; }))
    return severalElements(targets, value);
  for (const NodePtr &target : targets)
    if (target->kind != Node::Name)
      return std::nullopt;
  Translator translator = makeTranslator();
  for (const std::string &loop : loopNames)
    translator.bind(loop);
  Rewriting result;
  auto finish = [&]() -> std::optional<Rewriting> {
    result.lines.insert(result.lines.begin(), translator.before.begin(), translator.before.end());
    result.guessed = translator.guessed;
    return result;
  };
  // B, S, D = x.shape
  bool isShape = value.kind == Node::Member && value.text == "shape";
  bool isSize = value.kind == Node::Call && value.parts.size() == 1 &&
                value.parts[0]->kind == Node::Member && value.parts[0]->text == "size";
  if (isShape || isSize) {
    Result whole = translator.eval(isShape ? *value.parts[0] : *value.parts[0]->parts[0]);
    if (!whole || whole->rank() != targets.size())
      return std::nullopt;
    for (auto [target, dim] : zip_equal(targets, whole->dims)) {
      if (dim.extent.empty())
        return std::nullopt;
      if (target->text == dim.extent || target->text == "_")
        continue;
      if (environment.contains(target->text))
        return std::nullopt;
      environment[target->text] = Entity{};
      result.lines.push_back(target->text + " = " + dim.extent);
    }
    return finish();
  }
  std::optional<CallForm> form = translator.callForm(value);
  if (form && form->name == "topk" && targets.size() == 2 && !form->arguments.empty()) {
    return severalOfTopK(targets, *form, translator, result) ? finish() : std::nullopt;
  }
  bool isChunk = form && (form->name == "chunk" || form->name == "split" || form->name == "unbind");
  if (isChunk && !form->arguments.empty()) {
    return severalParts(targets, *form, translator, result) ? finish() : std::nullopt;
  }
  if (std::vector<Value> pair = evalPair(translator, value); pair.size() == targets.size()) {
    for (auto [target, one] : zip_equal(targets, pair)) {
      if (target->text == "_")
        continue;
      Translator each = makeTranslator();
      std::optional<std::string> line = define(each, target->text, one);
      if (!line)
        return std::nullopt;
      result.lines.push_back(*line);
      declare(target->text, one.dims);
    }
    return finish();
  }
  if (auto call = evalKernel(translator, value); call && call->second.size() == targets.size()) {
    std::string left;
    for (auto [target, dims] : zip_equal(targets, call->second)) {
      left += (left.empty() ? "" : ", ") + target->text;
      declare(target->text, dims);
    }
    result.lines.push_back(left + " = " + call->first);
    return finish();
  }
  return std::nullopt;
}

} // namespace tegula::rewrite
