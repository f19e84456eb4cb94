//===- RewriteReduce.cpp - Reductions, scans and contractions ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/suggest/RewriteReduce.h"
#include "frontend/suggest/RewriteFunction.h"
#include "frontend/suggest/RewriteValue.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <map>

using namespace llvm;

namespace tegula::rewrite {

//===----------------------------------------------------------------------===//
// Reductions, scans and contractions
//===----------------------------------------------------------------------===//

static bool isIdentifier(StringRef text) {
  return !text.empty() && (isAlpha(text[0]) || text[0] == '_') &&
         all_of(text, [](char c) { return isAlnum(c) || c == '_'; });
}

Result reduce(Translator &translator, StringRef name, const Value &value,
              std::optional<std::vector<int64_t>> dims, bool keep, StringRef options) {
  if (value.rank() == 0) {
    // `mean(x[n, c])`: over what no one else binds.
    if (value.loose.empty() || dims)
      return std::nullopt;
    translator.guessed = true;
    std::string over = join(value.loose, ", ");
    return translator.make({}, [value, name = name.str(), over,
                                options = options.str()](ArrayRef<std::string>) {
      return Text{name + "(" + value.emit({}).text + " for " + over + options + ")", level::Atom};
    });
  }
  std::set<size_t> which;
  for (size_t i = 0; i != value.rank() && !dims; ++i)
    which.insert(i);
  for (int64_t dim : dims.value_or(std::vector<int64_t>())) {
    dim += dim < 0 ? int64_t(value.rank()) : 0;
    if (dim < 0 || dim >= int64_t(value.rank()))
      return std::nullopt;
    which.insert(static_cast<size_t>(dim));
  }
  std::vector<Dim> kept;
  for (size_t i = 0; i != value.rank(); ++i)
    if (!which.count(i))
      kept.push_back(value.dims[i]);
    else if (keep)
      kept.push_back({"1", true, true, {}, "", false});
  return translator.make(
      std::move(kept),
      [&translator, value, which, keep, name = name.str(),
       options = options.str()](ArrayRef<std::string> indices) {
        std::vector<std::string> inner;
        std::string over;
        std::set<std::string> taken, outer = translator.active;
        size_t at = 0;
        for (size_t i = 0; i != value.rank(); ++i) {
          const Dim &dim = value.dims[i];
          if (!which.count(i)) {
            inner.push_back(indices[at++]);
            continue;
          }
          at += keep;
          if (dim.one) {
            inner.push_back("0");
            continue;
          }
          std::string group;
          size_t count = std::max<size_t>(1, dim.parts.size());
          for (size_t part = 0; part != count; ++part) {
            std::string fresh = translator.index(taken, /*isLeft=*/false);
            over += (over.empty() ? "" : ", ") + fresh;
            group += (part ? ", " : "") + fresh;
            if (dim.bare)
              continue;
            std::string extent = dim.parts.empty() ? dim.extent : dim.parts[part];
            translator.failed |= extent.empty();
            over += " in " + extent;
          }
          inner.push_back(count > 1 ? "(" + group + ")" : group);
        }
        translator.active.insert(taken.begin(), taken.end());
        std::string body = translator.emitExactly(value, inner).text;
        translator.active = std::move(outer);
        return Text{over.empty() ? body : name + "(" + body + " for " + over + options + ")",
                    level::Atom};
      },
      value.loose);
}

static Result along(Translator &translator, StringRef name, const Value &value, int64_t dim,
                    StringRef options = "") {
  dim += dim < 0 ? int64_t(value.rank()) : 0;
  if (dim < 0 || dim >= int64_t(value.rank()))
    return std::nullopt;
  return translator.make(
      value.dims,
      [&translator, value, name = name.str(), dim = static_cast<size_t>(dim),
       options = options.str()](ArrayRef<std::string> indices) {
        const std::string &over = indices[dim];
        // Along an index alone: x[2*i] has none.
        translator.failed |= !isIdentifier(over) && over.find('(') != 0;
        return Text{name + "(" + translator.emitExactly(value, indices).text + ", over=" + over +
                        options + ")",
                    level::Atom};
      },
      value.loose);
}

Result matmul(Translator &translator, const Value &a, const Value &b) {
  if (a.rank() == 0 || b.rank() == 0)
    return std::nullopt;
  // Batch dims broadcast; then rows of a, columns of b.
  Value rows = a, columns = b;
  rows.dims.resize(a.rank() > 2 ? a.rank() - 2 : 0);
  columns.dims.resize(b.rank() > 2 ? b.rank() - 2 : 0);
  std::vector<Dim> dims = translator.broadcast({&rows, &columns});
  size_t batch = dims.size();
  if (a.rank() > 1)
    dims.push_back(a.dims[a.rank() - 2]);
  if (b.rank() > 1)
    dims.push_back(b.dims.back());
  Names loose = a.loose;
  loose.insert_range(b.loose);
  const Dim &ka = a.dims.back(), &kb = b.dims[b.rank() > 1 ? b.rank() - 2 : 0];
  bool bare = ka.bare || kb.bare;
  std::string extent = ka.extent.empty() ? kb.extent : ka.extent;
  return translator.make(
      std::move(dims),
      [&translator, a, b, batch, bare, extent](ArrayRef<std::string> indices) {
        std::set<std::string> taken, outer = translator.active;
        std::string k = translator.index(taken, /*isLeft=*/false);
        translator.active.insert(k);
        auto inner = [&](const Value &value, bool isLeft) {
          size_t own = value.rank() > 2 ? value.rank() - 2 : 0;
          std::vector<std::string> result;
          for (const std::string &one : indices.take_front(batch).take_back(own))
            result.push_back(one);
          size_t free = batch + (!isLeft && a.rank() > 1);
          if (value.rank() == 1)
            result.push_back(k);
          else if (isLeft)
            result.insert(result.end(), {indices[free], k});
          else
            result.insert(result.end(), {k, indices[free]});
          return result;
        };
        std::string left =
            Translator::wrapped(translator.emitExactly(a, inner(a, true)), level::Product);
        std::string right =
            Translator::wrapped(translator.emitExactly(b, inner(b, false)), level::Product + 1);
        translator.active = std::move(outer);
        translator.failed |= !bare && extent.empty();
        return Text{"sum(" + left + " * " + right + " for " + k + (bare ? "" : " in " + extent) +
                        ")",
                    level::Atom};
      },
      std::move(loose));
}

static Result einsum(Translator &translator, StringRef spec, ArrayRef<Value> operands) {
  std::string compact;
  for (char c : spec)
    if (!isSpace(c))
      compact += c;
  if (StringRef(compact).contains('.'))
    return std::nullopt;
  auto [lefts, right] = StringRef(compact).split("->");
  SmallVector<StringRef> terms;
  lefts.split(terms, ',');
  if (terms.size() != operands.size())
    return std::nullopt;
  std::string output = right.str();
  if (!StringRef(compact).contains("->")) { // letters that stand once, in order of the alphabet
    for (char letter : lefts)
      if (isAlpha(letter) && lefts.count(letter) == 1)
        output += letter;
    llvm::sort(output);
  }
  std::map<char, Dim> letters;
  std::string reduced;
  Names loose;
  for (auto [term, operand] : zip_equal(terms, operands)) {
    if (term.size() != operand.rank())
      return std::nullopt;
    loose.insert_range(operand.loose);
    for (auto [letter, dim] : zip_equal(term, operand.dims)) {
      auto [at, isNew] = letters.try_emplace(letter, dim);
      at->second.bare |= dim.bare;
      if (isNew && !StringRef(output).contains(letter))
        reduced += letter;
    }
  }
  std::vector<Dim> dims;
  for (char letter : output) {
    if (!letters.count(letter))
      return std::nullopt;
    dims.push_back(letters[letter]);
  }
  std::vector<std::string> texts;
  for (StringRef term : terms)
    texts.push_back(term.str());
  return translator.make(
      std::move(dims),
      [&translator, operands = operands.vec(), texts, output, reduced,
       letters](ArrayRef<std::string> indices) {
        std::map<char, std::string> names;
        std::set<std::string> taken, outer = translator.active;
        std::string over;
        for (auto [i, letter] : enumerate(output))
          names[letter] = indices[i];
        for (char letter : reduced) {
          names[letter] = translator.index(taken, /*isLeft=*/false);
          const Dim &dim = letters.at(letter);
          translator.failed |= !dim.bare && dim.extent.empty();
          over +=
              (over.empty() ? "" : ", ") + names[letter] + (dim.bare ? "" : " in " + dim.extent);
        }
        translator.active.insert(taken.begin(), taken.end());
        std::string product;
        for (auto [text, operand] : zip_equal(texts, operands)) {
          std::vector<std::string> inner;
          for (char letter : text)
            inner.push_back(names[letter]);
          product +=
              (product.empty() ? "" : " * ") +
              Translator::wrapped(translator.emitExactly(operand, inner), level::Product + 1);
        }
        translator.active = std::move(outer);
        if (over.empty())
          return Text{product, operands.size() > 1 ? level::Product : level::Sum};
        return Text{"sum(" + product + " for " + over + ")", level::Atom};
      },
      std::move(loose));
}

static bool isNumpy(StringRef module) {
  return StringSwitch<bool>(module).Cases({"np", "numpy", "jnp", "jax"}, true).Default(false);
}

Result evalReduction(Translator &translator, const CallForm &form, bool &known) {
  StringRef name = translator.ownName(form.name);
  bool isNorm = name == "norm", isStd = name == "std", isNormalize = name == "normalize";
  if (builtinOf(name) != Builtin::Reduction && !isNorm && !isStd && !isNormalize)
    return std::nullopt;
  if (form.arguments.empty())
    return std::nullopt;
  known = true;
  // `max(a, b)` of two values.
  if ((name == "max" || name == "min") && form.arguments.size() == 2 &&
      !translator.integer(*form.arguments[1]) && form.arguments[1]->kind != Node::Sequence)
    return translator.elementwise(name == "max" ? "maximum" : "minimum", form, 2);
  Result value = translator.eval(*form.arguments[0]);
  if (!value)
    return std::nullopt;
  if ((name == "max" || name == "min") && form.arguments.size() == 2 &&
      (form.module.empty() && form.call->parts[0]->kind == Node::Name))
    return translator.elementwise(name == "max" ? "maximum" : "minimum", form, 2);
  bool isGiven = false;
  size_t position = isNorm || isNormalize ? 2 : 1;
  std::optional<std::vector<int64_t>> dims =
      translator.dimsArgument(form, position, value->rank(), isGiven);
  if (isGiven && !dims)
    return std::nullopt;
  bool keep = translator.flag(form, {"keepdim", "keepdims"}, false);
  if (isNorm || isNormalize) {
    const Node *order = form.argument(1, {"p", "ord"});
    if (order && translator.integer(*order) != 2 && order->text != "2.0" && order->text != "fro")
      return std::nullopt;
    if (isNormalize && !dims)
      dims = std::vector<int64_t>{1};
    Result square = translator.apply("square", {*value});
    Result sum =
        square ? reduce(translator, "sum", *square, dims, keep || isNormalize) : std::nullopt;
    Result root = sum ? translator.apply("sqrt", {*sum}) : std::nullopt;
    if (!root || isNorm)
      return root;
    const Node *given = form.keyword("eps");
    std::optional<Text> eps =
        given ? translator.scalar(*given) : std::optional(Text{"1e-12", level::Atom});
    Result least = eps ? translator.text(eps->text) : std::nullopt;
    Result divisor = least ? translator.apply("maximum", {*root, *least}) : std::nullopt;
    return divisor ? translator.evalBinary("/", *value, *divisor) : std::nullopt;
  }
  std::string options;
  if (name == "var" || isStd) {
    bool unbiased = !isNumpy(form.module) && form.module != "tl";
    unbiased = translator.flag(form, {"unbiased"}, unbiased);
    for (StringRef keyword : {"correction", "ddof"})
      if (const Node *given = form.keyword(keyword))
        unbiased = translator.integer(*given) != 0;
    // A bare `var(x)` is this language's.
    if (form.module.empty() && form.call->parts[0]->kind == Node::Name &&
        !form.keyword("unbiased") && !form.keyword("correction"))
      unbiased = false;
    if (unbiased)
      options = ", unbiased=true";
  }
  Result result = reduce(translator, isStd ? "var" : name, *value, dims, keep, options);
  return result && isStd ? translator.apply("sqrt", {*result}) : result;
}

std::vector<Value> evalPair(Translator &translator, const Node &node) {
  std::optional<CallForm> form = translator.callForm(node);
  if (!form || form->arguments.empty())
    return {};
  StringRef name = form->name;
  bool isExtremum = name == "max" || name == "min", isSort = name == "sort";
  bool isRunning = name == "cummax" || name == "cummin";
  if (!isExtremum && !isSort && !isRunning)
    return {};
  Result value = translator.eval(*form->arguments[0]);
  if (!value || value->rank() == 0)
    return {};
  bool isGiven = false;
  std::optional<std::vector<int64_t>> dims =
      translator.dimsArgument(*form, 1, value->rank(), isGiven);
  if (isSort && !isGiven)
    dims = std::vector<int64_t>{-1};
  if (!dims || dims->size() != 1 || isRunning)
    return {};
  Result first, second;
  if (isExtremum) {
    bool keep = translator.flag(*form, {"keepdim", "keepdims"}, false);
    first = reduce(translator, name, *value, dims, keep);
    second = reduce(translator, name == "max" ? "argmax" : "argmin", *value, dims, keep);
  } else {
    std::string options = translator.flag(*form, {"descending"}, false) ? ", descending=true" : "";
    first = along(translator, "sort", *value, (*dims)[0], options);
    second = along(translator, "argsort", *value, (*dims)[0], options);
  }
  if (!first || !second)
    return {};
  return {*first, *second};
}

Result evalAlong(Translator &translator, const CallForm &form, bool &known) {
  StringRef name = translator.ownName(form.name);
  bool isSoftmin = name == "softmin";
  if ((builtinOf(name) != Builtin::Scan && !isSoftmin) || name == "recurrence" ||
      form.arguments.empty())
    return std::nullopt;
  if (form.keyword("over"))
    return std::nullopt; // this language's own
  known = true;
  Result value = translator.eval(*form.arguments[0]);
  bool isGiven = false;
  std::optional<std::vector<int64_t>> dims =
      value ? translator.dimsArgument(form, 1, value->rank(), isGiven) : std::nullopt;
  if (!value || (isGiven && !dims))
    return std::nullopt;
  if (!dims) {
    bool hasDefault = name == "sort" || name == "argsort" || value->rank() == 1;
    if (!hasDefault && !isNumpy(form.module) && name != "softmax" && name != "log_softmax")
      return std::nullopt;
    translator.guessed |= !hasDefault;
    dims = std::vector<int64_t>{-1};
  }
  if (dims->size() != 1)
    return std::nullopt;
  std::string options = translator.flag(form, {"descending"}, false) ? ", descending=true" : "";
  if (isSoftmin) {
    Value source = *value;
    Result negated = translator.make(
        source.dims,
        [&translator, source](ArrayRef<std::string> indices) {
          return Text{"-" + Translator::wrapped(translator.emitAt(source, indices), level::Unary),
                      level::Unary};
        },
        source.loose);
    return along(translator, "softmax", *negated, (*dims)[0]);
  }
  return along(translator, name, *value, (*dims)[0], options);
}

Result evalProduct(Translator &translator, const CallForm &form, bool &known) {
  StringRef name = form.name;
  if (name == "einsum" && !form.arguments.empty() && form.arguments[0]->kind == Node::String) {
    known = true;
    std::vector<Value> operands;
    for (const Node *argument : ArrayRef(form.arguments).drop_front()) {
      Result one = translator.eval(*argument);
      if (!one)
        return std::nullopt;
      operands.push_back(std::move(*one));
    }
    return einsum(translator, form.arguments[0]->text, operands);
  }
  bool isProduct =
      StringSwitch<bool>(name).Cases({"matmul", "mm", "bmm", "dot", "mv"}, true).Default(false);
  if ((!isProduct && name != "outer") || form.arguments.size() < 2 ||
      (form.module.empty() && kernelOf(translator, name) &&
       !translator.module.isLibrary(*kernelOf(translator, name))))
    return std::nullopt;
  Result a = translator.eval(*form.arguments[0]),
         b = a ? translator.eval(*form.arguments[1]) : std::nullopt;
  if (!b)
    return std::nullopt;
  known = true;
  if (name == "outer")
    return einsum(translator, "i,j->ij", {*a, *b});
  return matmul(translator, *a, *b);
}

} // namespace tegula::rewrite
