//===- RewriteFunction.cpp - Named operators, losses, library calls ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/suggest/RewriteFunction.h"
#include "frontend/diagnostics/Inventions.h"
#include "frontend/suggest/RewriteReduce.h"
#include "frontend/suggest/RewriteValue.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace tegula::rewrite {

//===----------------------------------------------------------------------===//
// Choices, named operators, losses
//===----------------------------------------------------------------------===//

Result evalChoice(Translator &translator, const CallForm &form, bool &known) {
  StringRef name = form.name;
  StringRef op = StringSwitch<StringRef>(name)
                     .Cases({"add", "sum_"}, "+")
                     .Cases({"sub", "subtract"}, "-")
                     .Cases({"mul", "multiply"}, "*")
                     .Cases({"div", "divide", "true_divide"}, "/")
                     .Cases({"floor_divide", "floordiv"}, "//")
                     .Cases({"remainder", "mod"}, "%")
                     .Cases({"eq", "equal"}, "==")
                     .Cases({"ne", "not_equal"}, "!=")
                     .Cases({"lt", "less"}, "<")
                     .Cases({"le", "less_equal"}, "<=")
                     .Cases({"gt", "greater"}, ">")
                     .Cases({"ge", "greater_equal"}, ">=")
                     .Case("logical_and", "and")
                     .Case("logical_or", "or")
                     .Case("bitwise_and", "&")
                     .Case("bitwise_or", "|")
                     .Case("bitwise_xor", "^")
                     .Case("bitwise_left_shift", "<<")
                     .Case("bitwise_right_shift", ">>")
                     .Default("");
  auto operand = [&](size_t i) -> Result {
    return i < form.arguments.size() ? translator.eval(*form.arguments[i]) : std::nullopt;
  };
  if (!op.empty()) {
    known = true;
    Result a = operand(0), b = operand(1);
    if (!a || !b || form.arguments.size() != 2 || !form.call->keywords.empty())
      return std::nullopt;
    return translator.evalBinary(op, *a, *b);
  }
  if (name == "masked_fill" || name == "masked_fill_") {
    known = true;
    Result value = operand(0), mask = operand(1), fill = operand(2);
    return value && mask && fill ? translator.apply("where", {*mask, *fill, *value}) : std::nullopt;
  }
  if (name == "select" || name == "cond" || name == "ifelse") {
    known = true;
    Result mask = operand(0), yes = operand(1), no = operand(2);
    return mask && yes && no ? translator.apply("where", {*mask, *yes, *no}) : std::nullopt;
  }
  if (name == "tril" || name == "triu") {
    known = true;
    Result value = operand(0);
    const Node *given = form.argument(1, {"diagonal", "k"});
    std::optional<int64_t> diagonal =
        given ? translator.integer(*given) : std::optional<int64_t>(0);
    if (!value || value->rank() < 2 || !diagonal)
      return std::nullopt;
    std::vector<Dim> dims = value->dims;
    return translator.make(
        std::move(dims),
        [&translator, value = *value, below = name == "tril",
         diagonal = *diagonal](ArrayRef<std::string> indices) {
          std::string row = indices[indices.size() - 2], column = indices.back();
          translator.failed |= !isAlpha(row[0]) || !isAlpha(column[0]);
          if (diagonal)
            row += (diagonal < 0 ? " - " : " + ") + std::to_string(std::abs(diagonal));
          return Text{"where(" + column + (below ? " <= " : " >= ") + row + ", " +
                          translator.emitExactly(value, indices).text + ", 0)",
                      level::Atom};
        },
        value->loose);
  }
  if (name == "gelu") {
    const Node *mode = form.argument(1, {"approximate"});
    if (!mode || mode->kind != Node::String)
      return std::nullopt;
    known = true;
    Result value = operand(0);
    return value ? translator.apply(mode->text == "tanh" ? "gelu_tanh" : "gelu", {*value})
                 : std::nullopt;
  }
  if (name == "clamp_min" || name == "clamp_max") {
    known = true;
    Result value = operand(0), bound = operand(1);
    return value && bound
               ? translator.apply(name == "clamp_min" ? "maximum" : "minimum", {*value, *bound})
               : std::nullopt;
  }
  if (name == "log10" || name == "neg" || name == "erfc") {
    known = true;
    Result value = operand(0);
    if (!value)
      return std::nullopt;
    Value source = *value;
    return translator.make(
        source.dims,
        [&translator, source, name = name.str()](ArrayRef<std::string> indices) {
          Text inner = translator.emitAt(source, indices);
          if (name == "neg")
            return Text{"-" + Translator::wrapped(inner, level::Unary), level::Unary};
          if (name == "erfc")
            return Text{"1 - erf(" + inner.text + ")", level::Sum};
          return Text{"log(" + inner.text + ") * 0.4342944819032518", level::Product};
        },
        source.loose);
  }
  if (name == "logical_not") {
    known = true;
    Result value = operand(0);
    if (!value)
      return std::nullopt;
    Value source = *value;
    return translator.make(
        source.dims,
        [&translator, source](ArrayRef<std::string> indices) {
          return Text{"not " + Translator::wrapped(translator.emitAt(source, indices), level::Not),
                      level::Not};
        },
        source.loose);
  }
  return std::nullopt;
}

/// Losses with another reduction than the mean.
Result evalLoss(Translator &translator, const CallForm &form, bool &known) {
  const Node *reduction = form.keyword("reduction");
  bool isSquare = form.name == "mse_loss", isAbsolute = form.name == "l1_loss";
  if (!reduction || reduction->kind != Node::String || reduction->text == "mean" ||
      (!isSquare && !isAbsolute) || form.arguments.size() != 2)
    return std::nullopt;
  known = true;
  Result a = translator.eval(*form.arguments[0]),
         b = a ? translator.eval(*form.arguments[1]) : std::nullopt;
  Result difference = b ? translator.evalBinary("-", *a, *b) : std::nullopt;
  Result each =
      difference ? translator.apply(isSquare ? "square" : "abs", {*difference}) : std::nullopt;
  if (!each || reduction->text == "none")
    return each;
  return reduction->text == "sum" ? reduce(translator, "sum", *each, std::nullopt, false)
                                  : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

const ast::Kernel *kernelOf(const Translator &translator, StringRef name) {
  return translator.module.findKernel(name, /*fromLibrary=*/name == translator.self);
}

/// Half of each of the kernel's sizes, for a stride of 1.
static std::string samePadding(const StringMap<std::string> &bound) {
  std::vector<std::string> halves;
  for (StringRef name : {"KL", "KD", "KH", "KW"}) {
    std::string size = bound.lookup(name);
    int64_t known;
    if (size.empty())
      continue;
    if (StringRef(size).getAsInteger(10, known))
      halves.push_back((StringRef(size).contains(' ') ? "(" + size + ")" : size) + "//2");
    else if (known % 2 == 0)
      return "";
    else
      halves.push_back(std::to_string(known / 2));
  }
  bool equal = llvm::all_of(halves, [&](const std::string &half) { return half == halves[0]; });
  if (halves.size() <= 1 || equal)
    return halves.empty() ? "" : halves[0];
  return "(" + join(halves, ", ") + ")";
}

static bool isTensor(const ast::Param &param) {
  return param.hasDims && param.type.name != "int" && param.type.name != "float" &&
         param.type.name != "bool";
}

/// `torch.cat([a, b], dim=1)` as a call of this language, with its dims.
static std::optional<std::pair<std::string, std::vector<std::vector<Dim>>>>
evalCat(Translator &translator, const CallForm &form) {
  // torch.cat([a, b], dim=1)
  std::vector<const Node *> joined = form.arguments;
  const Node *given = form.keyword("dim") ? form.keyword("dim") : form.keyword("axis");
  if (!joined.empty() && joined[0]->kind == Node::Sequence) {
    if (joined.size() == 2)
      given = joined[1];
    std::vector<const Node *> inner;
    for (const NodePtr &part : joined[0]->parts)
      inner.push_back(part.get());
    joined = inner;
  }
  std::string call = "cat(";
  std::vector<Dim> dims;
  std::optional<int64_t> dim = given ? translator.integer(*given) : std::optional<int64_t>(0);
  for (const Node *one : joined) {
    Result value = translator.eval(*one);
    Result whole = value ? translator.hoist(*value) : std::nullopt;
    if (!whole || !dim)
      return std::nullopt;
    if (dims.empty()) {
      dims = whole->dims;
      *dim += *dim < 0 ? int64_t(dims.size()) : 0;
      if (*dim < 0 || *dim >= int64_t(dims.size()))
        return std::nullopt;
    } else if (whole->rank() == dims.size()) {
      std::string &sum = dims[size_t(*dim)].extent;
      const std::string &more = whole->dims[size_t(*dim)].extent;
      int64_t a, b;
      bool known = !StringRef(sum).getAsInteger(10, a) && !StringRef(more).getAsInteger(10, b);
      sum = known ? std::to_string(a + b) : "";
    } else {
      return std::nullopt;
    }
    call += whole->tensor + ", ";
  }
  if (dims.empty())
    return std::nullopt;
  return std::pair(call + "dim=" + std::to_string(*dim) + ")", std::vector<std::vector<Dim>>{dims});
}

std::optional<std::pair<std::string, std::vector<std::vector<Dim>>>>
evalKernel(Translator &translator, const Node &node) {
  std::optional<CallForm> form = translator.callForm(node);
  if (!form || !node.items.empty())
    return std::nullopt;
  StringRef name = translator.ownName(form->name);
  if (name == "cat") {
    return evalCat(translator, *form);
  }
  const ast::Kernel *kernel = kernelOf(translator, name);
  if (!kernel)
    return std::nullopt;

  StringMap<std::string> bound; // dims of the kernel by what was given
  std::vector<Dim> ellipsis;
  bool hasEllipsis = false;
  std::string arguments;
  bool leftOut = false; // later arguments need their names
  auto pass = [&](const ast::Param &param, const Node &given, bool byName) -> bool {
    if (isNone(&given)) {
      leftOut = true;
      return true;
    }
    std::string argument;
    if (isTensor(param)) {
      Result value = translator.eval(given);
      Result whole = value ? translator.hoist(*value) : std::nullopt;
      if (!whole)
        return false;
      argument = whole->tensor;
      size_t after = 0, at = 0;
      for (const ast::Dim &dim : param.dims)
        after += !dim.ellipsis;
      if (whole->rank() < after)
        return false;
      for (const ast::Dim &dim : param.dims) {
        if (dim.ellipsis) {
          size_t run = whole->rank() - after;
          if (hasEllipsis && run != ellipsis.size())
            return false; // one run for all: what broadcasts is an equation
          if (!hasEllipsis)
            ellipsis.assign(whole->dims.begin() + at, whole->dims.begin() + at + run);
          hasEllipsis = true;
          at += run;
          continue;
        }
        if (dim.expr->kind == ast::Expr::Name)
          bound.try_emplace(dim.expr->name.name, whole->dims[at].extent);
        ++at;
      }
    } else if (given.kind == Node::String && param.name.name == "padding") {
      if (given.text == "same")
        argument = samePadding(bound);
      else if (given.text == "valid")
        argument = "0";
      if (argument.empty())
        return false;
    } else if (std::optional<std::string> constant = translator.constantArgument(given)) {
      argument = *constant;
    } else if (given.kind == Node::Subscript && given.parts[0]->kind == Node::Member &&
               given.parts[0]->text == "shape") {
      return false;
    } else {
      return false;
    }
    arguments += (arguments.empty() ? "" : ", ") +
                 (byName || leftOut ? param.name.name + "=" : std::string()) + argument;
    return true;
  };
  for (auto [i, given] : enumerate(form->arguments))
    if (i >= kernel->params.size() || !pass(kernel->params[i], *given, false))
      return std::nullopt;
  for (const auto &[keyword, given] : node.keywords) {
    const ast::Param *param = nullptr;
    for (const ast::Param &one : kernel->params)
      if (one.name.name == keyword)
        param = &one;
    if (!param) {
      const Invention *known = findInvention(Invention::Keyword, keyword);
      bool isMean = keyword == "reduction" && given->kind == Node::String &&
                    (given->text == "mean" || given->text == "batchmean");
      // The one dim that there is.
      std::optional<int64_t> dim = keyword == "dim" ? translator.integer(*given) : std::nullopt;
      if (name == "cosine_similarity" && (dim == 1 || dim == -1))
        continue;
      bool isZero = given->kind == Node::Number && StringRef(given->text).trim("0.").empty();
      if (isNone(given.get()) || isMean || (known && known->isVoid()) || isZero ||
          given->text == "False" || given->text == "false")
        continue;
      return std::nullopt;
    }
    if (!pass(*param, *given, true))
      return std::nullopt;
  }
  std::vector<std::vector<Dim>> results;
  for (const ast::Param &output : kernel->outputs) {
    std::vector<Dim> dims;
    for (const ast::Dim &dim : output.dims) {
      if (dim.ellipsis) {
        dims.insert(dims.end(), ellipsis.begin(), ellipsis.end());
        continue;
      }
      Dim made;
      if (dim.expr->kind == ast::Expr::Name)
        made.extent = bound.lookup(dim.expr->name.name);
      else if (dim.expr->kind == ast::Expr::Integer)
        made.extent = std::to_string(dim.expr->intValue);
      dims.push_back(std::move(made));
    }
    results.push_back(std::move(dims));
  }
  return std::pair(name.str() + "(" + arguments + ")", std::move(results));
}

} // namespace tegula::rewrite
