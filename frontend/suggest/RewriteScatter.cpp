//===- RewriteScatter.cpp - PyTorch's scatters as equations -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `y = x.scatter_reduce(0, index, u, "amax")` is a definition of y and an equation over it:
// `y[i, d] = x[i, d]` and `y[index[j, d], d] max= u[j, d]`.
//
//===----------------------------------------------------------------------===//
#include "frontend/suggest/RewriteKernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace tegula::rewrite {

/// What an equation does with what meets, by PyTorch's word; empty where no equation does it.
static StringRef combineOf(const Node &reduce) {
  if (reduce.kind != Node::String)
    return "";
  return StringSwitch<StringRef>(reduce.text)
      .Cases({"sum", "add"}, "+=")
      .Case("amax", "max=")
      .Case("amin", "min=")
      .Default("");
}

std::optional<Rewriting> KernelReader::scattered(StringRef name, const CallForm &form) {
  Translator whole = makeTranslator();
  Result source = form.arguments.empty() ? Result() : whole.eval(*form.arguments[0]);
  if (!source || source->rank() == 0 || !source->loose.empty())
    return std::nullopt;
  std::vector<std::string> indices = whole.leftIndices(source->dims), left = indices;
  for (auto [index, dim] : zip_equal(left, source->dims))
    if (!environment.contains(name) && !dim.bare) {
      if (dim.extent.empty())
        return std::nullopt;
      index += " in " + dim.extent;
    }
  Rewriting result;
  std::string definition =
      name.str() + "[" + join(left, ", ") + "] = " + source->emit(indices).text;
  result.lines = whole.before;
  result.lines.push_back(definition);

  Translator each = makeTranslator();
  std::string combine = "=", value;
  std::vector<std::string> places;
  if (form.name == "index_put") {
    const Node *rows = form.argument(1, {"indices"}), *given = form.argument(2, {"values"});
    const Node *adds = form.argument(3, {"accumulate"});
    if (!rows || !given || rows->kind != Node::Sequence || rows->parts.size() > source->rank() ||
        (adds && adds->text != "True" && adds->text != "False"))
      return std::nullopt;
    combine = adds && adds->text == "True" ? "+=" : "=";
    Result values = each.eval(*given);
    std::vector<Value> subscripts;
    for (const NodePtr &row : rows->parts) {
      Result one = each.eval(*row);
      if (!one || one->rank() != 1)
        return std::nullopt;
      subscripts.push_back(*one);
    }
    size_t behind = source->rank() - subscripts.size();
    if (!values || (values->rank() != 1 + behind && values->rank() != 0))
      return std::nullopt;
    std::vector<Dim> dims{subscripts[0].dims[0]};
    dims.insert(dims.end(), source->dims.end() - behind, source->dims.end());
    std::vector<std::string> own = each.leftIndices(dims);
    for (const Value &subscript : subscripts)
      places.push_back(subscript.emit({own[0]}).text);
    places.insert(places.end(), own.begin() + 1, own.end());
    value = values->emit(values->rank() ? ArrayRef(own) : ArrayRef<std::string>()).text;
  } else {
    const Node *along = form.argument(1, {"dim"}), *rows = form.argument(2, {"index"});
    const Node *given = form.argument(3, {"src", "source", "value"}),
               *reduce = form.argument(4, {"reduce"});
    const Node *includes = form.argument(5, {"include_self"});
    std::optional<int64_t> dim = along ? each.integer(*along) : std::nullopt;
    int64_t rank = source->rank();
    bool isFill = form.name == "index_fill", isRow = isFill || form.name == "index_reduce";
    if (!dim || !rows || !given || *dim >= rank || *dim < -rank ||
        (includes && includes->text != "True"))
      return std::nullopt;
    size_t at = *dim < 0 ? *dim + rank : *dim;
    combine = isFill ? "=" : reduce ? combineOf(*reduce).str() : "";
    Result index = each.eval(*rows), values = each.eval(*given);
    if (combine.empty() || !index || !values || index->rank() != (isRow ? 1 : source->rank()) ||
        values->rank() != (isFill ? 0 : source->rank()))
      return std::nullopt;
    std::vector<Dim> dims = isRow ? source->dims : index->dims;
    dims[at] = index->dims[isRow ? 0 : at];
    std::vector<std::string> own = each.leftIndices(dims);
    places = own;
    places[at] = index->emit(isRow ? ArrayRef(own[at]) : ArrayRef(own)).text;
    value = values->emit(isFill ? ArrayRef<std::string>() : ArrayRef(own)).text;
  }
  if (whole.failed || each.failed)
    return std::nullopt;
  result.guessed |= whole.guessed || each.guessed;
  result.lines.insert(result.lines.begin(), each.before.begin(), each.before.end());
  result.lines.push_back(name.str() + "[" + join(places, ", ") + "] " + combine + " " + value);
  declare(name, source->dims);
  return result;
}

} // namespace tegula::rewrite
