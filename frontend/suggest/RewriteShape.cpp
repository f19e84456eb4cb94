//===- RewriteShape.cpp - Calls that change shapes, constants -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/suggest/RewriteShape.h"
#include "frontend/suggest/RewriteFunction.h"
#include "frontend/suggest/RewriteValue.h"
#include "frontend/suggest/RewriteViews.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace tegula::rewrite {

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Extents as texts: `(B, S, -1)`, `B, S, -1`.
static std::optional<std::vector<std::string>> shape(Translator &translator,
                                                     ArrayRef<const Node *> arguments) {
  std::vector<std::string> result;
  if (arguments.size() == 1 && arguments[0]->kind == Node::Sequence) {
    std::vector<const Node *> inner;
    for (const NodePtr &part : arguments[0]->parts)
      inner.push_back(part.get());
    return shape(translator, inner);
  }
  for (const Node *argument : arguments) {
    if (std::optional<int64_t> known = translator.integer(*argument)) {
      result.push_back(std::to_string(*known));
      continue;
    }
    std::optional<Text> one = translator.scalar(*argument);
    if (!one)
      return std::nullopt;
    result.push_back(one->level < level::Product ? "(" + one->text + ")" : one->text);
  }
  return result;
}

/// A dim given by position or name, from 0 on.
static std::optional<size_t> dimAt(Translator &translator, const CallForm &form, size_t position,
                                   ArrayRef<StringRef> names, size_t rank) {
  const Node *given = form.argument(position, names);
  std::optional<int64_t> dim = given ? translator.integer(*given) : std::nullopt;
  if (!dim || *dim < -int64_t(rank) || *dim >= int64_t(rank))
    return std::nullopt;
  return static_cast<size_t>(*dim < 0 ? *dim + int64_t(rank) : *dim);
}

/// transpose, permute, ...
static Result transposition(Translator &translator, const CallForm &form, const Result &value) {
  StringRef name = form.name;
  int64_t rank = int64_t(value->rank());
  ArrayRef<const Node *> others = ArrayRef(form.arguments).drop_front();

  if (name == "transpose" || name == "swapaxes" || name == "swapdims" || name == "t") {
    std::optional<size_t> a = rank == 2 ? std::optional<size_t>(0) : std::nullopt, b = 1;
    if (!others.empty() || !form.call->keywords.empty()) {
      a = dimAt(translator, form, 1, {"dim0", "axis0"}, value->rank());
      b = dimAt(translator, form, 2, {"dim1", "axis1"}, value->rank());
    }
    if (!a || !b || rank < 2)
      return std::nullopt;
    std::vector<int64_t> order;
    for (int64_t i = 0; i != rank; ++i)
      order.push_back(i);
    std::swap(order[*a], order[*b]);
    return permuted(translator, *value, order);
  }
  if (name == "permute") {
    std::vector<int64_t> order;
    if (others.size() == 1 || others.empty()) {
      const Node *given = form.argument(1, {"dims"});
      std::optional<std::vector<int64_t>> all = given ? translator.integers(*given) : std::nullopt;
      if (!all)
        return std::nullopt;
      order = *all;
    }
    for (const Node *one : others.size() > 1 ? others : ArrayRef<const Node *>()) {
      std::optional<int64_t> dim = translator.integer(*one);
      if (!dim)
        return std::nullopt;
      order.push_back(*dim);
    }
    return permuted(translator, *value, order);
  }
  return std::nullopt;
}

/// view, reshape, flatten.
static Result regrouping(Translator &translator, const CallForm &form, const Result &value) {
  StringRef name = form.name;
  int64_t rank = int64_t(value->rank());
  ArrayRef<const Node *> others = ArrayRef(form.arguments).drop_front();

  if (name == "view" || name == "reshape") {
    std::optional<std::vector<std::string>> to = shape(translator, others);
    return to ? shaped(translator, *value, *to) : std::nullopt;
  }
  if (name == "flatten") {
    size_t from = 0, last = size_t(std::max<int64_t>(rank - 1, 0));
    if (form.argument(1, {"start_dim"})) {
      std::optional<size_t> given = dimAt(translator, form, 1, {"start_dim"}, value->rank());
      if (!given)
        return std::nullopt;
      from = *given;
    }
    if (form.argument(2, {"end_dim"})) {
      std::optional<size_t> given = dimAt(translator, form, 2, {"end_dim"}, value->rank());
      if (!given)
        return std::nullopt;
      last = *given;
    }
    std::vector<std::string> to;
    for (size_t i = 0; i != value->rank(); ++i) {
      if (i >= from && i <= last) {
        if (i == from)
          to.push_back("-1");
      } else {
        to.push_back(value->dims[i].extent);
      }
    }
    return shaped(translator, *value, to);
  }
  return std::nullopt;
}

/// unsqueeze, squeeze, expand, ...: dims of size one.
static Result expansion(Translator &translator, const CallForm &form, const Result &value) {
  StringRef name = form.name;
  int64_t rank = int64_t(value->rank());
  ArrayRef<const Node *> others = ArrayRef(form.arguments).drop_front();

  if (name == "unsqueeze" || name == "expand_dims") {
    const Node *given = form.argument(1, {"dim", "axis"});
    std::optional<int64_t> dim = given ? translator.integer(*given) : std::nullopt;
    if (!dim || *dim < -rank - 1 || *dim > rank)
      return std::nullopt;
    size_t at = static_cast<size_t>(*dim < 0 ? *dim + rank + 1 : *dim);
    std::vector<Dim> dims = value->dims;
    dims.insert(dims.begin() + at, Dim{"1", true, true, {}, "", false});
    return translator.make(
        std::move(dims),
        [&translator, value = *value, at](ArrayRef<std::string> indices) {
          std::vector<std::string> inner(indices.begin(), indices.end());
          inner.erase(inner.begin() + at);
          return translator.emitExactly(value, inner);
        },
        value->loose);
  }
  if (name == "squeeze") {
    std::set<size_t> gone;
    if (form.argument(1, {"dim", "axis"})) {
      std::optional<size_t> dim = dimAt(translator, form, 1, {"dim", "axis"}, value->rank());
      if (!dim)
        return std::nullopt;
      if (value->dims[*dim].one)
        gone.insert(*dim);
      else if (!value->dims[*dim].extent.empty())
        return std::nullopt;
    } else {
      for (size_t i = 0; i != value->rank(); ++i)
        if (value->dims[i].one)
          gone.insert(i);
    }
    std::vector<Dim> dims;
    for (size_t i = 0; i != value->rank(); ++i)
      if (!gone.count(i))
        dims.push_back(value->dims[i]);
    return translator.make(
        std::move(dims),
        [&translator, value = *value, gone](ArrayRef<std::string> indices) {
          std::vector<std::string> inner;
          size_t at = 0;
          for (size_t i = 0; i != value.rank(); ++i)
            inner.push_back(gone.count(i) ? "0" : indices[at++]);
          return translator.emitExactly(value, inner);
        },
        value->loose);
  }
  if (name == "expand" || name == "broadcast_to" || name == "expand_as" || name == "view_as") {
    std::vector<std::string> to;
    if (name == "expand_as" || name == "view_as") {
      Result like = others.size() == 1 ? translator.eval(*others[0]) : std::nullopt;
      if (!like)
        return std::nullopt;
      for (const Dim &dim : like->dims)
        to.push_back(dim.extent);
      if (name == "view_as")
        return shaped(translator, *value, to);
    } else if (auto given = shape(translator, others)) {
      to = *given;
    } else {
      return std::nullopt;
    }
    if (to.size() < value->rank())
      return std::nullopt;
    std::vector<Dim> dims;
    size_t added = to.size() - value->rank();
    for (size_t i = 0; i != to.size(); ++i) {
      Dim dim = i < added ? Dim{"1", true, true, {}, "", false} : value->dims[i - added];
      if (dim.one && to[i] != "-1" && to[i] != "1")
        dim = {to[i], false, false, {}, "", false};
      dims.push_back(std::move(dim));
    }
    return translator.make(
        std::move(dims),
        [&translator, value = *value](ArrayRef<std::string> indices) {
          return translator.emitAt(value, indices);
        },
        value->loose);
  }
  return std::nullopt;
}

/// flip, roll, repeat_interleave.
static Result movement(Translator &translator, const CallForm &form, const Result &value) {
  StringRef name = form.name;
  int64_t rank = int64_t(value->rank());

  if (name == "flip" || name == "roll") {
    bool isGiven = false;
    size_t position = name == "flip" ? 1 : 2;
    std::optional<std::vector<int64_t>> which =
        translator.dimsArgument(form, position, value->rank(), isGiven);
    std::string shift;
    if (name == "roll") {
      const Node *given = form.argument(1, {"shifts", "shift"});
      std::optional<Text> amount = given ? translator.scalar(*given) : std::nullopt;
      if (!amount || !which || which->size() != 1)
        return std::nullopt;
      shift = Translator::wrapped(*amount, level::Product);
    }
    if (!which)
      return std::nullopt;
    std::set<size_t> turned;
    std::vector<Dim> dims = value->dims;
    for (int64_t dim : *which) {
      size_t at = static_cast<size_t>(dim < 0 ? dim + rank : dim);
      if (dims[at].extent.empty() || !dims[at].parts.empty())
        return std::nullopt;
      dims[at].bare = false;
      turned.insert(at);
    }
    return translator.make(
        dims,
        [&translator, value = *value, turned, shift](ArrayRef<std::string> indices) {
          std::vector<std::string> inner(indices.begin(), indices.end());
          for (size_t at : turned) {
            const std::string &extent = value.dims[at].extent;
            translator.failed |= StringRef(inner[at]).contains(',');
            std::string size = StringRef(extent).contains(' ') ? "(" + extent + ")" : extent;
            inner[at] = shift.empty() ? size + " - 1 - " + inner[at]
                                      : "(" + inner[at] + " - " + shift + ") % " + size;
          }
          return translator.emitExactly(value, inner);
        },
        value->loose);
  }
  if (name == "repeat_interleave") {
    std::optional<size_t> dim = dimAt(translator, form, 2, {"dim"}, value->rank());
    const Node *given = form.argument(1, {"repeats"});
    std::optional<Text> times = given ? translator.scalar(*given) : std::nullopt;
    if (!dim || !times || value->dims[*dim].extent.empty())
      return std::nullopt;
    std::string factor = Translator::wrapped(*times, level::Atom);
    std::vector<Dim> dims = value->dims;
    dims[*dim].extent = factor + "*" + dims[*dim].extent;
    dims[*dim].bare = false;
    return translator.make(
        dims,
        [&translator, value = *value, dim = *dim, factor](ArrayRef<std::string> indices) {
          std::vector<std::string> inner(indices.begin(), indices.end());
          inner[dim] = inner[dim] + " // " + factor;
          return translator.emitExactly(value, inner);
        },
        value->loose);
  }
  return std::nullopt;
}

/// size, len, numel.
static Result extent(Translator &translator, const CallForm &form, const Result &value) {
  StringRef name = form.name;
  int64_t rank = int64_t(value->rank());

  if (name == "size" || name == "len") {
    std::optional<size_t> dim = name == "len" && rank
                                    ? std::optional<size_t>(0)
                                    : dimAt(translator, form, 1, {"dim"}, value->rank());
    if (!dim || value->dims[*dim].extent.empty())
      return std::nullopt;
    return translator.text(value->dims[*dim].extent);
  }
  if (name == "numel") {
    std::string product;
    for (const Dim &dim : value->dims) {
      if (dim.extent.empty())
        return std::nullopt;
      product += (product.empty() ? "" : "*") +
                 (StringRef(dim.extent).contains(' ') ? "(" + dim.extent + ")" : dim.extent);
    }
    return translator.text(product.empty() ? "1" : product, level::Product);
  }
  return std::nullopt;
}

/// F.pad(x, (left, right, top, bottom), value=0): reads with a fill.
static Result padding(Translator &translator, const CallForm &form, const Result &value) {
  const Node *given = form.argument(1, {"pad"});
  const Node *filling = form.argument(3, {"value"}), *mode = form.argument(2, {"mode"});
  if (!given || given->kind != Node::Sequence || given->parts.size() % 2 ||
      given->parts.size() / 2 > value->rank() || (mode && mode->text != "constant"))
    return std::nullopt;
  std::optional<Text> fill =
      filling ? translator.scalar(*filling) : std::optional(Text{"0", level::Atom});
  Result whole = translator.hoist(*value);
  if (!fill || !whole)
    return std::nullopt;
  std::vector<std::string> offsets(value->rank());
  std::vector<Dim> dims = value->dims;
  for (size_t i = 0; i * 2 != given->parts.size(); ++i) {
    size_t at = value->rank() - 1 - i;
    std::optional<Text> lo = translator.scalar(*given->parts[2 * i]),
                        hi = translator.scalar(*given->parts[2 * i + 1]);
    if (!lo || !hi || dims[at].extent.empty())
      return std::nullopt;
    offsets[at] = lo->text == "0" ? "" : Translator::wrapped(*lo, level::Product);
    int64_t a, b;
    bool numbers =
        !StringRef(lo->text).getAsInteger(10, a) && !StringRef(hi->text).getAsInteger(10, b);
    std::string more = numbers ? std::to_string(a + b) : lo->text + " + " + hi->text;
    dims[at] = {dims[at].extent + " + " + more, false, false, {}, "", false};
  }
  return translator.make(
      std::move(dims),
      [tensor = whole->tensor, offsets, fill = *fill](ArrayRef<std::string> indices) {
        std::string read = tensor + "[";
        for (size_t i = 0; i != offsets.size(); ++i)
          read += (i ? ", " : "") + indices[i] + (offsets[i].empty() ? "" : " - " + offsets[i]);
        return Text{read + ", fill=" + fill.text + "]", level::Atom};
      },
      value->loose);
}

Result evalShapeChange(Translator &translator, const CallForm &form, bool &known) {
  using Method = Result (*)(Translator &, const CallForm &, const Result &);
  Method method = StringSwitch<Method>(form.name)
                      .Cases({"transpose", "permute", "t", "swapaxes", "swapdims"}, transposition)
                      .Cases({"view", "reshape", "flatten"}, regrouping)
                      .Cases({"squeeze", "unsqueeze", "expand_dims", "expand"}, expansion)
                      .Cases({"expand_as", "view_as", "broadcast_to"}, expansion)
                      .Cases({"flip", "roll", "repeat_interleave"}, movement)
                      .Cases({"size", "numel", "len"}, extent)
                      .Case("pad", padding)
                      .Default(nullptr);
  // A file's own kernel of that name is meant.
  if (!method || form.arguments.empty() || (form.module.empty() && kernelOf(translator, form.name)))
    return std::nullopt;
  known = true;
  Result value = translator.eval(*form.arguments[0]);
  return value ? method(translator, form, value) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Constants and ranges
//===----------------------------------------------------------------------===//

Result evalConstruction(Translator &translator, const CallForm &form, bool &known) {
  StringRef name = form.name;
  bool isLike = name.ends_with("_like");
  StringRef kind = isLike ? name.drop_back(5) : name;
  std::string value =
      StringSwitch<std::string>(kind).Case("zeros", "0.0").Case("ones", "1.0").Default("");
  if (value.empty() && kind != "full" && name != "arange" && name != "eye")
    return std::nullopt;
  known = true;
  if (form.arguments.empty())
    return std::nullopt;
  if (kind == "full") {
    const Node *given = form.argument(1, {"fill_value"});
    std::optional<Text> fill = given ? translator.scalar(*given) : std::nullopt;
    if (!fill)
      return std::nullopt;
    value = fill->text;
  }
  std::vector<Dim> dims;
  if (isLike) {
    Result like = translator.eval(*form.arguments[0]);
    if (!like)
      return std::nullopt;
    dims = like->dims;
    for (Dim &dim : dims)
      dim.bare = dim.one;
  } else {
    ArrayRef<const Node *> sizes = form.arguments;
    if (name == "arange" && sizes.size() == 2 && translator.integer(*sizes[0]) == 0)
      sizes = sizes.drop_front();
    if (kind == "full" || name == "arange" || name == "eye")
      sizes = sizes.take_front(name == "arange" ? sizes.size() : 1);
    std::optional<std::vector<std::string>> extents = shape(translator, sizes);
    if (!extents || ((name == "arange" || name == "eye") && extents->size() != 1))
      return std::nullopt;
    for (std::string &extent : *extents)
      dims.push_back({extent, extent == "1", false, {}, "", false});
    if (name == "eye")
      dims.push_back(dims[0]);
  }
  if (name == "arange")
    return translator.make(std::move(dims), [](ArrayRef<std::string> indices) {
      return Text{indices[0], level::Atom};
    });
  if (name == "eye")
    return translator.make(std::move(dims), [](ArrayRef<std::string> indices) {
      return Text{"where(" + indices[0] + " == " + indices[1] + ", 1.0, 0.0)", level::Atom};
    });
  return translator.make(std::move(dims),
                         [value](ArrayRef<std::string>) { return Text{value, level::Unary}; });
}

} // namespace tegula::rewrite
