//===- GenerateReduce.cpp - Random reductions and scans ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GenerateImpl.h"
#include <algorithm>
#include <cmath>

using namespace tegula::fuzz;

/// Behind a place where some read in `text` subscripts the index bare, or as a member of a group;
/// npos where none does. Generated reads do so only for its range.
static size_t barePlace(const std::string &text, const std::string &name, bool inGroup) {
  std::string brackets;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    // `x[(g, e)]`: a group's bracket stands where a subscript begins.
    bool isGroup = c == '(' && at && (text[at - 1] == '[' || text[at - 1] == ' ') &&
                   !brackets.empty() && brackets.back() == '[';
    if (c == '[' || c == '(')
      brackets += isGroup ? 'g' : c;
    else if (c == ']' || c == ')')
      brackets.pop_back();
    bool begins = c == '[' || c == '(' || (c == ' ' && at && text[at - 1] == ',');
    if (!begins || brackets.empty() || brackets.back() != (inGroup ? 'g' : '['))
      continue;
    size_t end = at + 1 + name.size();
    if (text.compare(at + 1, name.size(), name) == 0 && end < text.size() &&
        (text[end] == ',' || text[end] == (inGroup ? ')' : ']')))
      return end;
  }
  return std::string::npos;
}

bool Generator::isBare(const std::string &text, const std::string &name) {
  return barePlace(text, name, /*inGroup=*/false) != std::string::npos;
}

static bool hasRange(const std::string &text, const std::string &name) {
  return text.find("[" + name + " in ") != std::string::npos ||
         text.find(", " + name + " in ") != std::string::npos ||
         text.find("(" + name + " in ") != std::string::npos;
}

std::string Generator::item(const Index &index, const std::string &value) {
  bool isKnown = isBare(value, index.name) || hasRange(value, index.name);
  if (isKnown && random.chance(60))
    return index.name;
  return index.name + " in " + index.range.text;
}

bool Generator::writeRange(std::string &value, const std::string &index, const std::string &range) {
  if (hasRange(value, index)) // of another index that had the name
    return false;
  size_t place = barePlace(value, index, /*inGroup=*/random.chance(50));
  if (place == std::string::npos)
    place = barePlace(value, index, /*inGroup=*/false);
  if (place == std::string::npos)
    return false;
  value.insert(place, " in " + range);
  return true;
}

Value Generator::reduced(Value value, const std::string &name, double count) {
  double bound = value.bound, error = value.error;
  if (name == "sum") {
    value.bound = bound * count;
    value.error = error ? count * (error + value.bound * ulp) : 0;
    value = settle(value);
    if (error == 0 && value.error)
      value.error *= count;
  } else if (name == "mean") {
    value.error = error + (count + 2) * bound * ulp;
  }
  return value;
}

/// `mean(mean(mean(v[i] + x[i, a] for a)*x[i, b] for b)*x[i, c] for c)`: alike at each level, over
/// axes of the same range or of another tensor.
Value Generator::nestedReductions(Scope &outer) {
  // Tensors whose dims but the last have indices of the scope, and those subscripts.
  std::vector<std::pair<const Source *, std::string>> fitting;
  for (const Source &source : sources) {
    std::string row;
    bool fits =
        source.value.kind == Class::Float && !source.dims.empty() && source.dims.back().value > 0;
    for (size_t dim = 0; fits && dim + 1 < source.dims.size(); ++dim) {
      auto index = std::find_if(outer.begin(), outer.end(), [&](const Index &candidate) {
        return candidate.range.text == source.dims[dim].text;
      });
      fits = index != outer.end();
      if (fits)
        row += index->name + ", ";
    }
    if (fits)
      fitting.push_back({&source, row});
  }
  if (fitting.empty())
    return reduction(outer, Class::Float, 2);
  auto chosen = random.pick(fitting);
  unsigned levels = 3 + random.below(3);
  std::string usual = random.chance(60) ? "mean" : "sum";
  static const std::vector<std::string> others = {"sum", "mean", "max", "min"};
  Scope scope = outer;
  Value result = leaf(outer, Class::Float);
  for (unsigned level = 0; level < levels; ++level) {
    if (random.chance(20))
      chosen = random.pick(fitting);
    const auto &[source, row] = chosen;
    Index index = freshIndex(scope, source->dims.back());
    scope.push_back(index);
    Value factor = source->value;
    factor.text = source->name + "[" + row + index.name + "]";
    factor = limited(factor, 2);
    result = limited(level ? multiply(result, factor) : add(result, factor, "+"), 64);
    std::string name = random.chance(70) ? usual : random.pick(others);
    result = reduced(result, name, static_cast<double>(index.range.value));
    result.text = name + "(" + result.text + " for " + item(index, result.text) + ")";
    result.kind = Class::Float;
  }
  return result;
}

Value Generator::reduction(Scope &outer, Class kind, unsigned depth) {
  Scope scope = outer;
  unsigned rank = random.chance(80) ? 1 : 2;
  double count = 1;
  for (unsigned k = 0; k < rank; ++k) {
    scope.push_back(freshIndex(scope));
    count *= std::max<int64_t>(scope.back().range.value, 1);
  }
  std::string name, option;
  Value result;
  auto names = [&](std::vector<const char *> from) { name = random.pick(from); };
  switch (kind) {
  case Class::Bool:
    result = boolean(scope, depth - 1);
    names({"any", "all"});
    break;
  case Class::Int:
    if (random.chance(25)) {
      result = boolean(scope, depth - 1);
      name = "count";
      result.bound = count;
      result.kind = Class::Int;
    } else if (random.chance(25) && rank == 1) {
      result = exact(scope, depth - 1);
      names({"argmax", "argmin"});
      result.bound = count;
      result.kind = Class::Int;
    } else {
      result = integer(scope, depth - 1);
      names({"sum", "max", "min", "prod"});
      if (name == "sum")
        result.bound *= count;
      if (name == "prod")
        result.bound = std::pow(result.bound, count);
    }
    break;
  case Class::Float: {
    result = floating(scope, depth - 1);
    names({"sum", "sum", "sum", "max", "min", "mean", "var", "prod", "logsumexp"});
    double bound = result.bound, error = result.error;
    if (name == "var" || name == "logsumexp") {
      Value small = limited(result, 64);
      result.text = small.text;
      bound = small.bound;
    }
    if (name == "prod") {
      result = limited(result, 2);
      bound = result.bound;
      result.bound = std::pow(std::max(bound, 1.0), count);
      result.grain *= static_cast<int>(std::min(count, 64.0));
      result.error = error * count * result.bound;
      if (error)
        result.error += count * result.bound * ulp;
      result = settle(result);
    } else if (name == "sum" || name == "mean") {
      result = reduced(result, name, count);
    } else if (name == "var") {
      result.bound = bound * bound;
      result.error = 4 * bound * error + 4 * count * bound * bound * ulp;
      if (random.chance(30) && count > 1 && rank == 1) {
        option = ", unbiased=true";
        result.bound *= 2, result.error *= 2;
      }
    } else if (name == "logsumexp") {
      result.bound = bound + 6;
      result.error = error + (count + 8) * (bound + 6) * ulp;
    }
    result.kind = Class::Float;
    break;
  }
  }
  std::string items;
  bool mayBeEmpty = name == "sum" || name == "any" || name == "all" || name == "count";
  for (size_t k = outer.size(); k < scope.size(); ++k) {
    Index &index = scope[k];
    std::string text = item(index, result.text);
    // A part of the range, where no group needs the whole of it.
    bool isInGroup = result.text.find(", " + index.name + ")") != std::string::npos;
    if (!mayBeEmpty && name != "var" && rank == 1 && !isInGroup && index.range.value >= 2 &&
        random.chance(15)) {
      text = index.name + " in " +
             (random.chance(70) ? "1:" + index.range.text
                                : index.range.text + " - 2:" + index.range.text);
    } else if (mayBeEmpty && rank == 1 && !isInGroup && random.chance(15)) {
      const Index *other = nullptr;
      for (const Index &candidate : outer)
        if (candidate.range.text == index.range.text)
          other = &candidate;
      std::string range = other ? "0:" + other->name + " + 1" : "1:" + index.range.text;
      // Where the index subscripts a read, or behind `for`.
      bool isWritten = random.chance(40) && writeRange(result.text, index.name, range);
      text = index.name + (isWritten ? "" : " in " + range);
    } else if (random.chance(15) && writeRange(result.text, index.name, index.range.text)) {
      text = index.name + (random.chance(80) ? "" : " in " + index.range.text);
    } else if (mayBeEmpty && random.chance(15)) {
      Value filter = boolean(scope, 0);
      text = index.name + " in " + index.range.text + " if " + filter.text;
    }
    items += (items.empty() ? "" : ", ") + text;
  }
  result.text = name + "(" + result.text + " for " + items + option + ")";
  return result;
}

Value Generator::scan(Scope &scope, const Index &over, unsigned depth) {
  double count = std::max<int64_t>(over.range.value, 1);
  static const std::vector<const char *> names = {"cumsum",  "cumsum",    "cummax",  "cummin",
                                                  "softmax", "sort",      "argsort", "log_softmax",
                                                  "cumprod", "recurrence"};
  std::string name = random.pick(names), options;
  Value value;
  if (name == "argsort" || (name == "sort" && special))
    value = exact(scope, depth);
  else if (random.chance(25) && (name == "cummax" || name == "cummin" || name == "sort"))
    value = integer(scope, depth);
  else
    value = floating(scope, depth);
  if (name != "recurrence")
    value = varying(value, over);
  std::string argument = value.text;
  if (name == "cumsum") {
    double error = value.error;
    value.bound *= count;
    value.error = error ? count * (error + value.bound * ulp) : 0;
    value = settle(value);
    value.error *= count;
  } else if (name == "cumprod") {
    value = limited(value, 2);
    argument = value.text;
    double bound = std::pow(std::max(value.bound, 1.0), count), error = value.error;
    value.bound = bound;
    value.grain *= static_cast<int>(std::min(count, 64.0));
    value.error = error ? count * bound * (error + ulp) : 0;
    value = settle(value);
    value.error *= count;
  } else if (name == "softmax" || name == "log_softmax") {
    value = limited(value, 32);
    argument = value.text;
    bool isLog = name == "log_softmax";
    value.error = 2 * value.error + (count + 80) * (isLog ? 2 * value.bound + 6 : 1) * ulp;
    value.bound = isLog ? 2 * value.bound + 6 : 1;
  } else if (name == "recurrence") {
    Value factor = limited(floating(scope, depth > 0 ? depth - 1 : 0), 1);
    double bound = count * (value.bound + 1);
    value.error = count * (value.error + bound * factor.error + 2 * bound * ulp);
    value.bound = bound;
    argument = factor.text + ", " + argument;
    if (random.chance(40))
      options += ", init=1.0";
  } else if (name == "argsort") {
    value.kind = Class::Int;
    value.bound = count;
    value.grain = 0;
  }
  if ((name == "sort" || name == "argsort") && random.chance(50))
    options += ", descending=true";
  bool isCumulative = name.rfind("cum", 0) == 0;
  if ((isCumulative || name == "recurrence") && random.chance(30))
    options += ", reverse=true";
  if ((name == "cumsum" || name == "cumprod") && random.chance(30))
    options += ", exclusive=true";
  value.text = name + "(" + argument + ", over=" + over.name + options + ")";
  return value;
}
