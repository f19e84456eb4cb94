//===- GuardsText.cpp - Sizes and guards as text --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "symbolic/Guards.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace tegula;

namespace {
const char *const kindNames[] = {"nonneg", "zero", "nonzero", "divides", "inbounds"};

/// Splits at `separator` outside parentheses and quotes.
llvm::SmallVector<llvm::StringRef> splitOutside(llvm::StringRef text, llvm::StringRef separator) {
  llvm::SmallVector<llvm::StringRef> parts;
  int depth = 0;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"')
      quoted = !quoted;
    depth += (text[i] == '(') - (text[i] == ')');
    if (!quoted && depth == 0 && text.substr(i).starts_with(separator)) {
      parts.push_back(text.slice(start, i).trim());
      i += separator.size() - 1;
      start = i + 1;
    }
  }
  parts.push_back(text.substr(start).trim());
  return parts;
}

bool parseList(llvm::StringRef text, std::vector<IndexExpr> &out) {
  for (llvm::StringRef part : splitOutside(text, ","))
    if (std::optional<IndexExpr> expr = IndexExpr::parse(part))
      out.push_back(*expr);
    else
      return false;
  return true;
}

std::string quoted(llvm::StringRef text) {
  std::string result = "\"";
  for (char c : text)
    if (c == '\n')
      result += "\\n";
    else
      result += (c == '"' || c == '\\') ? std::string("\\") + c : std::string(1, c);
  return result + "\"";
}

/// Takes `: "..."` off the end.
bool takeMessage(llvm::StringRef &text, std::string &message) {
  size_t colon = text.find(" : \"");
  if (colon == llvm::StringRef::npos || !text.ends_with("\"") || text.size() < colon + 5)
    return false;
  llvm::StringRef body = text.substr(colon + 4).drop_back();
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '"')
      return false;
    if (body[i] != '\\') {
      message += body[i];
      continue;
    }
    if (++i == body.size())
      return false;
    message += body[i] == 'n' ? '\n' : body[i];
  }
  text = text.take_front(colon);
  return true;
}
} // namespace

std::string SizeSpec::str() const {
  return name + " = " +
         (boundBy ? std::to_string(boundBy->first) + " : " + std::to_string(boundBy->second)
                  : definition.str());
}

std::optional<SizeSpec> SizeSpec::parse(llvm::StringRef text) {
  auto [name, value] = text.split(" = ");
  name = name.trim();
  value = value.trim();
  if (name.empty() || value.empty())
    return std::nullopt;
  SizeSpec size;
  size.name = name.str();
  if (auto [argument, dim] = value.split(" : "); !dim.empty()) {
    size.boundBy.emplace();
    if (argument.trim().getAsInteger(10, size.boundBy->first) ||
        dim.trim().getAsInteger(10, size.boundBy->second))
      return std::nullopt;
    return size;
  }
  std::optional<IndexExpr> definition = IndexExpr::parse(value);
  if (!definition)
    return std::nullopt;
  size.definition = *definition;
  return size;
}

std::string GuardSpec::str() const {
  std::string text = std::string(kindNames[kind]) + " " + lhs.str();
  if (kind == Divides || kind == InBounds)
    text += ", " + rhs.str();
  for (auto [k, low, high] : llvm::enumerate(lows, highs))
    text += (k ? ", " : " for ") + low.str() + " to " + high.str();
  for (auto [k, condition] : llvm::enumerate(conditions))
    text += (k ? ", " : " given ") + condition.str();
  return text + " : " + quoted(message);
}

std::optional<GuardSpec> GuardSpec::parse(llvm::StringRef text) {
  GuardSpec guard;
  text = text.trim();
  if (!takeMessage(text, guard.message))
    return std::nullopt;
  auto [kindName, rest] = text.split(' ');
  const auto *found =
      llvm::find_if(kindNames, [&, name = kindName](const char *k) { return name == k; });
  if (found == std::end(kindNames))
    return std::nullopt;
  guard.kind = Kind(found - kindNames);
  auto conditionParts = splitOutside(rest, " given ");
  if (conditionParts.size() > 2 ||
      (conditionParts.size() == 2 && !parseList(conditionParts[1], guard.conditions)))
    return std::nullopt;
  auto boxParts = splitOutside(conditionParts[0], " for ");
  if (boxParts.size() > 2)
    return std::nullopt;
  if (boxParts.size() == 2)
    for (llvm::StringRef range : splitOutside(boxParts[1], ",")) {
      auto ends = splitOutside(range, " to ");
      if (ends.size() != 2 || !parseList(ends[0], guard.lows) || !parseList(ends[1], guard.highs))
        return std::nullopt;
    }
  std::vector<IndexExpr> sides;
  bool binary = guard.kind == Divides || guard.kind == InBounds;
  if (!parseList(boxParts[0], sides) || sides.size() != (binary ? 2u : 1u))
    return std::nullopt;
  guard.lhs = sides[0];
  if (binary)
    guard.rhs = sides[1];
  return guard;
}

std::string LaunchChecks::print(llvm::ArrayRef<SizeSpec> sizes, llvm::ArrayRef<GuardSpec> guards) {
  std::string text;
  for (const SizeSpec &size : sizes)
    text += "size " + size.str() + "\n";
  for (const GuardSpec &guard : guards)
    text += "guard " + guard.str() + "\n";
  return text;
}

bool LaunchChecks::parse(llvm::StringRef text, std::vector<SizeSpec> &sizes,
                         std::vector<GuardSpec> &guards) {
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n', -1, false);
  for (llvm::StringRef line : lines) {
    if (line.consume_front("size ")) {
      std::optional<SizeSpec> size = SizeSpec::parse(line);
      if (!size)
        return false;
      sizes.push_back(std::move(*size));
    } else if (line.consume_front("guard ")) {
      std::optional<GuardSpec> guard = GuardSpec::parse(line);
      if (!guard)
        return false;
      guards.push_back(std::move(*guard));
    } else {
      return false;
    }
  }
  return true;
}
