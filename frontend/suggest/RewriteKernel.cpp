//===- RewriteKernel.cpp - A kernel, read as other languages write -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/suggest/RewriteKernel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tegula::rewrite {

//===----------------------------------------------------------------------===//
// The head
//===----------------------------------------------------------------------===//

size_t KernelReader::closing(size_t open) const {
  for (size_t i = open + 1; i < tokens.size(); ++i)
    if (tokens[i].brackets == tokens[open].brackets && tokens[i].braces == tokens[open].braces)
      return i;
  return tokens.size();
}

size_t KernelReader::readParameters(size_t open, bool areOutputs) {
  size_t close = closing(open);
  for (size_t i = open + 1; i < close; ++i) {
    // NAME : [inout] TYPE [dims]
    if (tokens[i].kind != Token::Name || text(i + 1) != ":" ||
        tokens[i].brackets != tokens[open].brackets + 1)
      continue;
    StringRef name = text(i);
    size_t type = i + 2 + (text(i + 2) == "inout");
    while (text(type + 1) == ".")
      type += 2; // torch.float32
    Entity entity;
    entity.isOutput = areOutputs;
    entity.isDefined = !areOutputs;
    bool isTuple = text(type) == "int" || text(type) == "float" || text(type) == "bool";
    bool isOpaque = false;
    if (text(type + 1) == "[") {
      size_t last = closing(type + 1);
      if (last >= tokens.size())
        return last;
      entity.kind = isTuple ? Entity::Scalar : Entity::Tensor;
      size_t from = type + 2;
      for (size_t j = from; j <= last && !isTuple; ++j) {
        if (j != last && !(text(j) == "," && tokens[j].brackets == tokens[from].brackets))
          continue;
        StringRef extent = text(from, j);
        isOpaque |= extent == "...";
        if (!extent.empty())
          entity.dims.push_back({extent.str(), extent == "1", true, {}, "", false});
        // A dim is a size.
        if (j == from + 1 && tokens[from].kind == Token::Name && !environment.contains(extent))
          environment[extent].isSize = true;
        from = j + 1;
      }
      i = last;
    } else {
      isOpaque = !isTuple && text(type) != "" && !StringRef(text(type)).starts_with("f") &&
                 !StringRef(text(type)).starts_with("i") && text(type) != "bf16";
    }
    if (areOutputs)
      outputs.push_back(name.str());
    if (!isOpaque)
      environment[name] = std::move(entity);
  }
  return close;
}

/// The position of the body's first token.
size_t KernelReader::readHead() {
  size_t i = 2; // kernel NAME
  if (text(i) != "(")
    return tokens.size();
  i = readParameters(i, /*areOutputs=*/false) + 1;
  if (text(i) == "->") {
    ++i;
    if (text(i) == "(")
      i = readParameters(i, /*areOutputs=*/true) + 1;
  }
  // `where P = H - KH + 1, ...`
  for (; i < tokens.size() && text(i) != "{" && !(text(i) == ":" && tokens[i].brackets == 0); ++i)
    if (tokens[i].kind == Token::Name && text(i + 1) == "=")
      environment[text(i)].isSize = true;
  return i + 1;
}

void KernelReader::readLoopNames() {
  for (size_t i = bodyBegin; i + 1 < tokens.size(); ++i)
    if (tokens[i].brackets == 0 && isName(i + 1) && (text(i) == "for" || text(i) == "parallel") &&
        tokens[i].firstOnLine) {
      for (size_t j = i + 1; j < tokens.size() && text(j) != "{"; ++j)
        if (text(j + 1) == "in")
          loopNames.push_back(text(j).str());
    }
}

void KernelReader::declare(StringRef name, ArrayRef<Dim> dims) {
  Entity entity;
  entity.kind = dims.empty() ? Entity::Scalar : Entity::Tensor;
  entity.isOutput = is_contained(outputs, name);
  for (const Dim &dim : dims)
    entity.dims.push_back({dim.extent, dim.one, true, {}, dim.hint, isAbsent(name, dim)});
  environment[name] = std::move(entity);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

std::vector<Statement> KernelReader::read() {
  std::vector<Statement> statements;
  for (size_t i = 0; i != tokens.size(); ++i)
    if (tokens[i].kind == Token::Name)
      names.insert(text(i));
  bodyBegin = readHead();
  readLoopNames();
  auto continues = [&](size_t i) { // the line before goes on
    StringRef last = text(i - 1);
    bool ends = tokens[i - 1].kind != Token::Op || last == ")" || last == "]" || last == "...";
    StringRef here = text(i);
    return !ends || here == "(" || here == "[" || here == "-" || here == "+" || here == ".";
  };
  auto isHead = [&](size_t i) {
    return text(i) == "for" || text(i) == "parallel" || text(i) == "if" || text(i) == "while";
  };
  constexpr size_t longest = 2000; // tokens
  for (size_t i = bodyBegin; i < tokens.size();) {
    StringRef word = text(i);
    if (word == "}" || word == "{" || word == ";" || word == ":") {
      ++i;
      continue;
    }
    size_t end = i + 1;
    for (; end < tokens.size(); ++end) {
      StringRef next = text(end);
      if (next == "}" || (next == "{" && tokens[end].brackets == 0))
        break;
      if (next == ";" && tokens[end].brackets == 0)
        break;
      if (isHead(i) && next == ":" && tokens[end].brackets == 0 &&
          (end + 1 == tokens.size() || tokens[end + 1].firstOnLine))
        break;
      if (tokens[end].firstOnLine && tokens[end].brackets == 0 && !continues(end))
        break;
    }
    if (std::optional<Statement> choice = isHead(i) ? chosen(i) : std::nullopt) {
      i = choice->end;
      statements.push_back(std::move(*choice));
      continue;
    }
    if (end - i < longest) {
      current = i;
      currentEnd = end;
      absent.clear();
      statements.push_back({i, end, statement(i, end, tokens[i].braces)});
      if (statements.back().rewriting)
        statements.back().rewriting->absent = absent;
    }
    i = end;
  }
  return statements;
}

/// What is known of the names that a statement defines, whether or not its right side makes sense.
/// The extent of the dim that an index subscripts bare somewhere in an expression.
std::string KernelReader::extentOf(StringRef index, const Node &node) const {
  if (node.kind == Node::Subscript && node.parts[0]->kind == Node::Name) {
    auto known = environment.find(node.parts[0]->text);
    if (known != environment.end() && known->second.dims.size() + 1 == node.parts.size())
      for (auto [item, dim] : zip_equal(ArrayRef(node.parts).drop_front(), known->second.dims))
        if (item->kind == Node::Name && item->text == index && !dim.extent.empty())
          return dim.extent;
  }
  for (const NodePtr &part : node.parts)
    if (std::string found = part ? extentOf(index, *part) : ""; !found.empty())
      return found;
  return "";
}

void KernelReader::noteTargets(size_t begin, size_t end) {
  size_t assign = begin;
  if (begin >= end)
    return;
  while (assign < end && !(tokens[assign].brackets == tokens[begin].brackets &&
                           (text(assign) == "=" || text(assign) == "+=")))
    ++assign;
  if (assign == end)
    return;
  for (const NodePtr &target : parseTargets(file, tokens.slice(begin, assign - begin))) {
    bool isElement = target->kind == Node::Subscript && target->parts[0]->kind == Node::Name;
    if (!isElement)
      continue;
    StringRef name = target->parts[0]->text;
    auto [at, isNew] = environment.try_emplace(name);
    at->second.isDefined = true;
    if (!isNew)
      continue;
    at->second.kind = Entity::Tensor;
    NodePtr value = parseExpression(file, tokens.slice(assign + 1, end - assign - 1));
    for (const NodePtr &item : ArrayRef(target->parts).drop_front()) {
      Dim dim{item->range, item->range == "1", true, {}, "", false};
      if (item->kind == Node::Name) {
        dim.hint = item->text;
        if (dim.extent.empty() && value)
          dim.extent = extentOf(item->text, *value);
      }
      at->second.dims.push_back(std::move(dim));
    }
  }
}

std::optional<Rewriting> KernelReader::statement(size_t begin, size_t end, unsigned depth) {
  StringRef word = text(begin);
  if (word == "for")
    return loopHead(begin, end);
  if (word == "return")
    return returned(begin, end);
  size_t from = begin + (word == "state" && isName(begin + 1));
  size_t assign = from;
  auto isAssign = [&](StringRef op) {
    return op == "=" || op == ":=" || op == "+=" || op == "-=" || op == "*=" || op == "/=";
  };
  while (assign < end &&
         !(tokens[assign].brackets == tokens[begin].brackets && isAssign(text(assign))))
    ++assign;
  if (assign == end || assign == from)
    return std::nullopt;
  // `h: f16[i, j] = ...` keeps its type, and its form.
  std::vector<NodePtr> targets = parseTargets(file, tokens.slice(from, assign - from));
  NodePtr value = parseExpression(file, tokens.slice(assign + 1, end - assign - 1));
  std::optional<Rewriting> result;
  if (!targets.empty() && value)
    result = targets.size() > 1 ? several(targets, *value)
                                : assignment(*targets[0], text(assign), *value, depth);
  noteTargets(from, end);
  if (result && from != begin && result->lines.size() == 1)
    result->lines[0] = "state " + result->lines[0];
  return result;
}

/// `if c { y[i] = a } else { y[i] = b }`, also as Python writes it: one equation with `where`.
std::optional<Statement> KernelReader::chosen(size_t begin) {
  if (text(begin) != "if")
    return std::nullopt;
  size_t at = begin;
  // From a word to the block's opening, then one assignment.
  auto head = [&]() -> std::pair<size_t, size_t> {
    size_t from = ++at;
    while (at < tokens.size() && text(at) != "{" && text(at) != ":")
      ++at;
    return {from, at++};
  };
  auto block = [&](bool braces) -> std::optional<std::pair<size_t, size_t>> {
    size_t from = at;
    while (at < tokens.size() && text(at) != "}" && text(at) != ";" &&
           (at == from || !tokens[at].firstOnLine))
      ++at;
    size_t end = at;
    if (braces) {
      at += text(at) == ";";
      if (text(at) != "}")
        return std::nullopt;
      ++at;
    }
    return std::pair(from, end);
  };
  auto [from, to] = head();
  if (to >= tokens.size())
    return std::nullopt;
  bool braces = text(to) == "{";
  auto yes = block(braces);
  if (!yes || text(at) != "else")
    return std::nullopt;
  auto [otherFrom, otherTo] = head();
  if (otherFrom != otherTo || otherTo >= tokens.size())
    return std::nullopt;
  auto no = block(braces);
  if (!no)
    return std::nullopt;
  auto assignOf = [&](std::pair<size_t, size_t> part) {
    size_t i = part.first;
    while (i < part.second &&
           !(text(i) == "=" && tokens[i].brackets == tokens[part.first].brackets))
      ++i;
    return i;
  };
  size_t a = assignOf(*yes), b = assignOf(*no);
  if (a == yes->second || b == no->second || text(yes->first, a) != text(no->first, b))
    return std::nullopt;
  // As if it had been written `T = a if c else b`.
  NodePtr condition = parseExpression(file, tokens.slice(from, to - from));
  NodePtr first = parseExpression(file, tokens.slice(a + 1, yes->second - a - 1));
  NodePtr second = parseExpression(file, tokens.slice(b + 1, no->second - b - 1));
  std::vector<NodePtr> targets = parseTargets(file, tokens.slice(yes->first, a - yes->first));
  if (!condition || !first || !second || targets.size() != 1)
    return std::nullopt;
  Node choice;
  choice.kind = Node::Ternary;
  choice.parts.push_back(std::move(condition));
  choice.parts.push_back(std::move(first));
  choice.parts.push_back(std::move(second));
  current = begin;
  currentEnd = at;
  Statement result{begin, at, assignment(*targets[0], "=", choice, tokens[begin].braces)};
  noteTargets(yes->first, yes->second);
  return result.rewriting ? std::optional(std::move(result)) : std::nullopt;
}

/// `for t in range(T)`.
std::optional<Rewriting> KernelReader::loopHead(size_t begin, size_t end) {
  if (end < begin + 5)
    return std::nullopt;
  if (!isName(begin + 1) || text(begin + 2) != "in" ||
      (text(begin + 3) != "range" && text(begin + 3) != "arange") || text(begin + 4) != "(")
    return std::nullopt;
  NodePtr call = parseExpression(file, tokens.slice(begin + 3, end - begin - 3));
  if (!call || call->kind != Node::Call || call->parts.size() < 2 || call->parts.size() > 3 ||
      !call->keywords.empty())
    return std::nullopt;
  Translator translator = makeTranslator();
  for (const std::string &name : loopNames)
    translator.bind(name);
  std::string range;
  for (const NodePtr &bound : ArrayRef(call->parts).drop_front()) {
    std::optional<Text> one = translator.scalar(*bound);
    if (!one)
      return std::nullopt;
    range += (range.empty() ? "" : ":") + one->text;
  }
  Rewriting result;
  result.lines.push_back(("for " + text(begin + 1) + " in " + range).str());
  return result;
}

/// `return y` of an output goes; `return e` defines the one output.
std::optional<Rewriting> KernelReader::returned(size_t begin, size_t end) {
  NodePtr value = parseExpression(file, tokens.slice(begin + 1, end - begin - 1));
  if (!value || tokens[begin].braces > 1)
    return std::nullopt;
  std::vector<std::string> names;
  if (value->kind == Node::Name)
    names.push_back(value->text);
  else if (value->kind == Node::Sequence)
    for (const NodePtr &part : value->parts)
      names.push_back(part->kind == Node::Name ? part->text : "");
  if (!names.empty() && names == outputs)
    return Rewriting();
  if (outputs.size() != 1)
    return std::nullopt;
  Node target;
  target.kind = Node::Name;
  target.text = outputs[0];
  return assignment(target, "=", *value, 1);
}

std::optional<std::string> KernelReader::define(Translator &translator, StringRef name,
                                                const Value &value) {
  auto declared = environment.find(name);
  bool isDeclared = declared != environment.end() && declared->second.kind == Entity::Tensor;
  if (value.rank() == 0) {
    if (!value.loose.empty())
      return std::nullopt;
    std::string left = name.str(), result = value.emit({}).text;
    if (isDeclared && !declared->second.dims.empty()) {
      // A number for all of an output.
      std::vector<std::string> all;
      bool single = true;
      for (const Dim &dim : declared->second.dims)
        single &= dim.one;
      for (const std::string &one : translator.leftIndices(declared->second.dims))
        all.push_back(single ? "0" : one);
      left += "[" + join(all, ", ") + "]";
      translator.guessed |= !single;
    }
    return translator.failed ? std::nullopt : std::optional(left + " = " + result);
  }
  if (isDeclared && declared->second.dims.size() != value.rank())
    return std::nullopt;
  std::vector<std::string> indices = translator.leftIndices(value.dims);
  std::string left;
  for (auto [i, dim] : enumerate(value.dims)) {
    if (!isDeclared && isAbsent(name, dim)) {
      absent.insert(name.str());
      continue; // values broadcast by name
    }
    left += left.empty() ? "[" : ", ";
    if (isDeclared || (dim.bare && !dim.one)) {
      left += indices[i];
      continue;
    }
    if (!dim.parts.empty()) {
      // A group's members each have their own.
      SmallVector<StringRef> members;
      StringRef(indices[i]).drop_front().drop_back().split(members, ", ");
      for (auto [j, member] : enumerate(members)) {
        if (dim.parts[j].empty())
          return std::nullopt;
        left += ((j ? ", " : "(") + member + " in " + dim.parts[j]).str();
      }
      left += ")";
      continue;
    }
    if (dim.extent.empty())
      return std::nullopt;
    left += indices[i] + " in " + dim.extent;
  }
  Text right = value.emit(indices);
  if (translator.failed || !value.loose.empty())
    return std::nullopt;
  return name.str() + left + (left.empty() ? " = " : "] = ") + right.text;
}

/// `y[i, j] = v`, `y[:, 0] = v`.
std::optional<std::string> KernelReader::defineElements(Translator &translator, const Node &target,
                                                        StringRef op, const Value &value) {
  std::string left = target.parts[0]->text;
  std::vector<Dim> free;
  for (const NodePtr &item : ArrayRef(target.parts).drop_front())
    if (item->kind == Node::Slice) {
      if (item->parts[0] || item->parts[1])
        return std::nullopt;
      free.push_back({});
    }
  std::vector<std::string> fresh = translator.leftIndices(free), all;
  size_t at = 0;
  for (const NodePtr &item : ArrayRef(target.parts).drop_front()) {
    std::string one;
    if (item->kind == Node::Slice) {
      one = fresh[at++];
    } else if (item->kind == Node::Name) {
      // An index with the name of a tensor: what it subscripts on the right is not known.
      auto known = environment.find(item->text);
      if (known != environment.end() && known->second.kind == Entity::Tensor &&
          !known->second.dims.empty())
        return std::nullopt;
      one = item->text;
    } else if (item->kind == Node::Sequence) {
      for (const NodePtr &member : item->parts)
        one += (one.empty() ? "(" : ", ") + member->text;
      one += ")";
    } else if (std::optional<Text> fixed = translator.scalar(*item)) {
      one = fixed->text;
    } else {
      return std::nullopt;
    }
    all.push_back(one);
    left += (all.size() > 1 ? ", " : "[") + one + (item->range.empty() ? "" : " in " + item->range);
  }
  // Without slices a whole tensor on the right is meant at the indices of the left.
  ArrayRef<std::string> indices = free.empty() ? ArrayRef(all) : ArrayRef(fresh);
  if (free.empty() && value.rank()) {
    translator.guessed |= value.rank() != all.size();
    for (const NodePtr &item : ArrayRef(target.parts).drop_front())
      if (item->kind != Node::Name)
        return std::nullopt;
  }
  if (value.rank() > indices.size() || !value.loose.empty())
    return std::nullopt;
  std::vector<std::string> chosen(indices.end() - value.rank(), indices.end());
  auto declared = environment.find(target.parts[0]->text);
  if (free.empty() && declared != environment.end() && declared->second.dims.size() == all.size()) {
    ArrayRef<Dim> dims = declared->second.dims;
    auto fits = [](const Dim &to, const Dim &from) {
      return from.one || from.extent.empty() || to.extent.empty() || from.extent == to.extent;
    };
    bool rightmost = true;
    for (auto [to, from] : zip_equal(dims.take_back(value.rank()), value.dims))
      rightmost &= fits(to, from);
    if (!rightmost) {
      // `y[i, j] = x[i, j] + b` of b: f32[M]: the dim says which index is meant.
      chosen.clear();
      for (const Dim &from : value.dims) {
        auto same = [&](const Dim &to) { return !to.extent.empty() && to.extent == from.extent; };
        if (count_if(dims, same) != 1)
          return std::nullopt;
        chosen.push_back(all[size_t(find_if(dims, same) - dims.begin())]);
      }
      translator.guessed = true;
    }
  }
  Text right = value.emit(chosen);
  if (translator.failed)
    return std::nullopt;
  return left + "] " + op.str() + " " + right.text;
}

} // namespace tegula::rewrite
