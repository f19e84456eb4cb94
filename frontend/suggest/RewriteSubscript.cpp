//===- RewriteSubscript.cpp - Subscripts and slices of tensors ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/suggest/RewriteSubscript.h"
#include "frontend/diagnostics/Inventions.h"
#include "frontend/suggest/RewriteReduce.h"
#include "frontend/suggest/RewriteValue.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace tegula::rewrite {

//===----------------------------------------------------------------------===//
// Subscripts
//===----------------------------------------------------------------------===//

static std::string sumOf(StringRef a, StringRef b) {
  if (a.empty() || a == "0")
    return b.str();
  if (b.starts_with("-"))
    return (a + " - " + b.drop_front()).str();
  return (a + " + " + b).str();
}

static std::string differenceOf(StringRef a, StringRef b) {
  int64_t x, y;
  if (!a.getAsInteger(10, x) && !b.getAsInteger(10, y))
    return std::to_string(x - y);
  if (b.empty() || b == "0")
    return a.str();
  return (a + " - " + (b.contains(' ') ? "(" + b.str() + ")" : b.str())).str();
}

namespace {
/// A dim of what is subscripted: an index of its own, a fixed text, or an index tensor's element.
struct Place {
  enum { Free, Fixed, Gather } kind = Free;
  std::string offset; // Free
  Result value;       // Fixed, Gather
  size_t result = 0;  // position in the result's dims
};
} // namespace

/// The subscripts of the read, given the indices of its result.
static std::vector<std::string> subscriptsAt(ArrayRef<Place> places,
                                             ArrayRef<std::string> indices) {
  std::vector<std::string> inner;
  for (const Place &place : places) {
    if (place.kind == Place::Fixed)
      inner.push_back(place.value->emit({}).text);
    else if (place.kind == Place::Gather)
      inner.push_back(place.value->emit(indices.slice(place.result, place.value->rank())).text);
    else
      inner.push_back(sumOf(place.offset, indices[place.result]));
  }
  return inner;
}

/// Index tensors side by side, `x[rows, columns]`, go together; false where they stand apart.
static bool joinGathered(const Value &value, std::vector<Dim> &dims,
                         std::optional<size_t> &gathered) {
  if (!gathered) {
    gathered = dims.size();
    dims.insert(dims.end(), value.dims.begin(), value.dims.end());
  } else {
    // `x[rows, columns]`: side by side, they go together.
    if (*gathered + value.rank() != dims.size())
      return false;
    for (size_t d = 0; d != value.rank(); ++d)
      dims[*gathered + d].bare |= value.dims[d].bare;
  }
  return true;
}

/// `x.shape[i]`, or one of the results of a call; nothing where the subscript is neither.
static std::optional<Result> evalPart(Translator &translator, const Node &node) {
  const Node &base = *node.parts[0];
  auto isShape = [](const Node &what) { return what.kind == Node::Member && what.text == "shape"; };
  if (isShape(base) && node.parts.size() == 2) {
    Result whole = translator.eval(*base.parts[0]);
    std::optional<int64_t> at = translator.integer(*node.parts[1]);
    if (!whole || !at)
      return Result();
    size_t position = static_cast<size_t>(*at < 0 ? *at + int64_t(whole->rank()) : *at);
    if (position >= whole->rank() || whole->dims[position].extent.empty())
      return Result();
    return translator.text(whole->dims[position].extent);
  }
  if (std::vector<Value> pair = evalPair(translator, base);
      !pair.empty() && node.parts.size() == 2) {
    std::optional<int64_t> which = translator.integer(*node.parts[1]);
    if (which && *which >= 0 && *which < int64_t(pair.size()))
      return pair[static_cast<size_t>(*which)];
    return Result();
  }
  return std::nullopt;
}

/// Where a slice of the dim begins and ends.
static std::optional<std::pair<std::string, std::string>>
sliceBounds(Translator &translator, const Node *lo, const Node *hi, const Dim &dim) {
  std::string from = "0", to = dim.extent;
  for (auto [bound, result] : {std::pair(lo, &from), std::pair(hi, &to)}) {
    if (!bound)
      continue;
    if (std::optional<int64_t> known = translator.integer(*bound); known && *known < 0) {
      if (dim.extent.empty())
        return std::nullopt;
      *result = dim.extent + " - " + std::to_string(-*known);
    } else if (std::optional<Text> bounded = translator.scalar(*bound)) {
      *result = bounded->text;
    } else {
      return std::nullopt;
    }
  }
  if (to.empty())
    return std::nullopt;
  return std::pair(from, to);
}

/// A group of subscripts, `(a, b)`; adds the names in it that nothing binds.
static Result groupOf(Translator &translator, const Node &item, Names &loose) {
  std::string group;
  for (const NodePtr &member : item.parts) {
    if (member->kind == Node::Name && !translator.active.count(member->text) &&
        !translator.environment.contains(member->text))
      loose.insert(member->text);
    else if (!translator.scalar(*member))
      return std::nullopt;
    group += (group.empty() ? "(" : ", ") +
             (member->kind == Node::Name ? member->text : translator.scalar(*member)->text);
  }
  return translator.text(group + ")");
}

/// An expression whose names may be indices that nothing binds yet, which it adds.
static Result evalLoose(Translator &translator, const Node &item, Names &loose) {
  std::vector<std::string> added;
  auto addNames = [&](auto &&addNames, const Node &part) -> void {
    if (part.kind == Node::Name && !translator.environment.contains(part.text) &&
        !translator.active.count(part.text) && !findInvention(Invention::Value, part.text)) {
      translator.active.insert(part.text);
      added.push_back(part.text);
    }
    if (part.kind == Node::Binary || part.kind == Node::Unary)
      for (const NodePtr &inner : part.parts)
        addNames(addNames, *inner);
  };
  addNames(addNames, item);
  Result value = translator.eval(item);
  for (const std::string &name : added) {
    translator.active.erase(name);
    loose.insert(name);
  }
  return value;
}

/// `, fill=v` of a read of a tensor itself; empty where it has none.
static std::optional<std::string> fillOf(Translator &translator, const Node &node,
                                         const Value &whole) {
  std::string fill;
  if (node.keywords.size() > 1)
    return std::nullopt;
  for (const auto &[keyword, value] : node.keywords) {
    std::optional<Text> given = translator.scalar(*value);
    if (keyword != "fill" || !given || whole.tensor.empty())
      return std::nullopt;
    fill = ", fill=" + given->text;
  }
  return fill;
}

Result evalSubscript(Translator &translator, const Node &node) {
  const Node &base = *node.parts[0];
  if (std::optional<Result> part = evalPart(translator, node))
    return *part;
  Result whole = translator.eval(base);
  if (!whole || whole->rank() == 0)
    return std::nullopt;

  std::vector<Place> places;
  std::vector<Dim> dims;
  Names loose;
  size_t given = 0;
  for (const NodePtr &item : ArrayRef(node.parts).drop_front())
    given += item->kind != Node::Ellipsis && !(item->kind == Node::Name && item->text == "None");
  if (given > whole->rank())
    return std::nullopt;
  auto addFree = [&] {
    Place place;
    place.result = dims.size();
    dims.push_back(whole->dims[places.size()]);
    places.push_back(std::move(place));
  };
  std::optional<size_t> gathered;
  for (const NodePtr &item : ArrayRef(node.parts).drop_front()) {
    if (item->kind == Node::Ellipsis) {
      for (size_t i = given; i < whole->rank(); ++i)
        addFree();
      given = whole->rank();
      continue;
    }
    if (item->kind == Node::Name && item->text == "None") {
      dims.push_back({"1", true, true, {}, "", false});
      continue;
    }
    const Dim &dim = whole->dims[places.size()];
    if (item->kind == Node::Slice) {
      const Node *lo = item->parts[0].get(), *hi = item->parts[1].get();
      addFree();
      Dim &made = dims.back();
      if (!lo && !hi)
        continue;
      auto bounds = sliceBounds(translator, lo, hi, dim);
      if (!bounds)
        return std::nullopt;
      const auto &[from, to] = *bounds;
      made.extent = differenceOf(to, from);
      made.bare = false;
      made.parts.clear();
      places.back().offset = from;
      if (made.extent == "1") {
        made.one = true;
        places.back().kind = Place::Fixed;
        places.back().value = translator.text(from);
      }
      continue;
    }
    // A written range stays where it stands, in a read of a tensor itself.
    if (!item->range.empty() && (item->kind != Node::Name || whole->tensor.empty() ||
                                 translator.environment.contains(item->text)))
      return std::nullopt;
    Place place;
    if (item->kind == Node::Name && !translator.environment.contains(item->text) &&
        !findInvention(Invention::Value, item->text)) {
      // An index that stands on the left, or that a reduction takes.
      if (!translator.active.count(item->text))
        loose.insert(item->text);
      place.kind = Place::Fixed;
      place.value =
          translator.text(item->range.empty() ? item->text : item->text + " in " + item->range);
      places.push_back(std::move(place));
      continue;
    }
    if (item->kind == Node::Sequence) { // a group
      place.kind = Place::Fixed;
      place.value = groupOf(translator, *item, loose);
      if (!place.value)
        return std::nullopt;
      places.push_back(std::move(place));
      continue;
    }
    if (std::optional<int64_t> known = translator.integer(*item); known && *known < 0) {
      if (dim.extent.empty())
        return std::nullopt;
      place.value = translator.text(dim.extent + " - " + std::to_string(-*known), level::Sum);
    } else {
      // `p + r - 1`: its names may all be indices that nothing binds yet.
      place.value = evalLoose(translator, *item, loose);
    }
    if (!place.value)
      return std::nullopt;
    loose.insert_range(place.value->loose);
    place.kind = place.value->rank() ? Place::Gather : Place::Fixed;
    if (place.kind == Place::Gather) {
      if (!joinGathered(*place.value, dims, gathered))
        return std::nullopt;
      place.result = *gathered;
    }
    places.push_back(std::move(place));
  }
  while (places.size() < whole->rank())
    addFree();

  std::optional<std::string> fill = fillOf(translator, node, *whole);
  if (!fill)
    return std::nullopt;
  return translator.make(
      std::move(dims),
      [&translator, whole = *whole, places, fill = *fill](ArrayRef<std::string> indices) {
        std::vector<std::string> inner = subscriptsAt(places, indices);
        Text read = translator.emitExactly(whole, inner);
        if (!fill.empty() && !read.text.empty()) // what failed has no text
          read.text.insert(read.text.size() - 1, fill);
        return read;
      },
      std::move(loose));
}

} // namespace tegula::rewrite
