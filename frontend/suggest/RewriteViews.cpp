//===- RewriteViews.cpp - A value under other dims ----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A view has the elements of a value with their dims in another order, split or joined, whatever
// call asked for it (RewriteShape.cpp): an index of the view becomes indices of the value.
//
//===----------------------------------------------------------------------===//
#include "frontend/suggest/RewriteViews.h"
#include "frontend/suggest/RewriteValue.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tegula::rewrite {

Result permuted(Translator &translator, const Value &value, ArrayRef<int64_t> order) {
  if (order.size() != value.rank())
    return std::nullopt;
  std::vector<size_t> from(value.rank());
  std::set<size_t> seen;
  std::vector<Dim> dims;
  for (auto [i, one] : enumerate(order)) {
    int64_t dim = one < 0 ? one + int64_t(value.rank()) : one;
    if (dim < 0 || dim >= int64_t(value.rank()) || !seen.insert(size_t(dim)).second)
      return std::nullopt;
    dims.push_back(value.dims[size_t(dim)]);
    from[size_t(dim)] = i;
  }
  return translator.make(
      std::move(dims),
      [&translator, value, from](ArrayRef<std::string> indices) {
        std::vector<std::string> inner;
        for (size_t at : from)
          inner.push_back(indices[at]);
        return translator.emitExactly(value, inner);
      },
      value.loose);
}

/// Groups: equal dims at both ends stay, and what is between is one dim split or several joined.
Result shaped(Translator &translator, const Value &value, ArrayRef<std::string> to) {
  size_t front = 0, back = 0, rank = value.rank();
  auto isSame = [&](size_t i, size_t j) {
    return !value.dims[i].extent.empty() && value.dims[i].extent == to[j];
  };
  while (front < rank && front < to.size() && isSame(front, front))
    ++front;
  while (front + back < rank && front + back < to.size() &&
         isSame(rank - 1 - back, to.size() - 1 - back))
    ++back;
  size_t old = rank - front - back, made = to.size() - front - back;
  std::vector<Dim> dims(value.dims.begin(), value.dims.begin() + front);
  if (old == 1 && made >= 1) {
    const Dim &whole = value.dims[front];
    if (!whole.parts.empty())
      return std::nullopt;
    std::string others;
    int64_t product = 1, known;
    for (size_t i = 0; i != made; ++i)
      if (to[front + i] != "-1") {
        others += (others.empty() ? "" : "*") + to[front + i];
        product = StringRef(to[front + i]).getAsInteger(10, known) ? 0 : product * known;
      }
    int64_t extent = 0;
    bool isNumber = !StringRef(whole.extent).getAsInteger(10, extent);
    bool inferred = is_contained(to.slice(front, made), "-1");
    if (!inferred && isNumber && product && product != extent)
      return std::nullopt;
    if (!inferred && (!isNumber || !product) && others != whole.extent)
      translator.guessed = true; // the launch checks it
    for (size_t i = 0; i != made; ++i) {
      Dim dim{to[front + i], false, false, {}, "", false};
      if (dim.extent == "-1") {
        if (made == 1)
          dim = whole;
        else if (whole.extent.empty())
          dim.extent = "";
        else if (isNumber && product)
          dim.extent = std::to_string(extent / product);
        else
          dim.extent =
              whole.extent + "/" + (StringRef(others).contains('*') ? "(" + others + ")" : others);
        // The one range of a group that is inferred.
        dim.bare = true;
      }
      dims.push_back(std::move(dim));
    }
  } else if (made == 1 && old > 1) {
    Dim dim{"", false, true, {}, "", false};
    for (size_t i = 0; i != old; ++i) {
      const Dim &part = value.dims[front + i];
      if (!part.parts.empty() || part.one)
        return std::nullopt;
      dim.parts.push_back(part.extent);
      dim.extent += (i ? "*" : "") +
                    (StringRef(part.extent).contains(' ') ? "(" + part.extent + ")" : part.extent);
      dim.bare &= part.bare;
    }
    if (to[front] != "-1")
      dim.extent = to[front];
    dims.push_back(std::move(dim));
  } else if (old != 0 || made != 0) {
    return std::nullopt;
  }
  dims.insert(dims.end(), value.dims.end() - back, value.dims.end());
  return translator.make(
      std::move(dims),
      [&translator, value, front, back, old, made](ArrayRef<std::string> indices) {
        std::vector<std::string> inner(indices.begin(), indices.begin() + front);
        if (old == 1 && made > 1) {
          std::string group;
          for (size_t i = 0; i != made; ++i)
            group += (i ? ", " : "(") + indices[front + i];
          inner.push_back(group + ")");
        } else if (old > 1) {
          // The left side has as many members.
          SmallVector<StringRef> members;
          StringRef group = indices[front];
          if (group.starts_with("(") && group.ends_with(")"))
            group.drop_front().drop_back().split(members, ", ");
          translator.failed |= members.size() != old;
          for (StringRef member : members)
            inner.push_back(member.str());
        } else {
          for (size_t i = 0; i != made; ++i)
            inner.push_back(indices[front + i]);
        }
        inner.insert(inner.end(), indices.end() - back, indices.end());
        return translator.emitExactly(value, inner);
      },
      value.loose);
}

} // namespace tegula::rewrite
