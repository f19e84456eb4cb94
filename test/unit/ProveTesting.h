//===- ProveTesting.h - Problems for the prover as text -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Facts: `P = (H - KH)//2 + 1; H >= KH; C % G; signed pad; N != 0; M == 2*N`.
// Domains: `d0 in N; d1 in 0:d0 + 1; d0 >= 2*d1`.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TEST_UNIT_PROVETESTING_H
#define TEGULA_TEST_UNIT_PROVETESTING_H

#include "symbolic/Prove.h"
#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>
#include <ostream>

namespace tegula {

inline IndexExpr ix(llvm::StringRef text) {
  std::optional<IndexExpr> expr = IndexExpr::parse(text);
  if (!expr)
    ADD_FAILURE() << "not an expression: " << text.str();
  return expr.value_or(IndexExpr(0));
}

inline std::optional<Condition> parseCondition(llvm::StringRef text) {
  auto split = [&](llvm::StringRef op) { return text.split(op); };
  if (text.contains(">="))
    return Condition::lessEqual(ix(split(">=").second), ix(split(">=").first));
  if (text.contains("<="))
    return Condition::lessEqual(ix(split("<=").first), ix(split("<=").second));
  if (text.contains("!="))
    return Condition::nonZero(ix(split("!=").first) - ix(split("!=").second));
  if (text.contains("=="))
    return Condition::equal(ix(split("==").first), ix(split("==").second));
  if (text.contains("%"))
    return Condition::divides(ix(split("%").first), ix(split("%").second));
  if (text.contains("<"))
    return Condition::lessThan(ix(split("<").first), ix(split("<").second));
  return std::nullopt;
}

inline SizeFacts factsOf(llvm::StringRef text) {
  SizeFacts facts;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ';', -1, false);
  for (llvm::StringRef part : parts) {
    part = part.trim();
    if (part.consume_front("signed "))
      facts.signedSymbols.push_back(part.str());
    else if (std::optional<Condition> condition = parseCondition(part))
      facts.facts.push_back(*condition);
    else if (auto [name, definition] = part.split('='); !definition.empty())
      facts.definitions.push_back({name.trim().str(), ix(definition)});
    else if (!part.empty())
      ADD_FAILURE() << "not a fact: " << part.str();
  }
  return facts;
}

inline Domain domainOf(llvm::StringRef text) {
  Domain domain;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ';', -1, false);
  for (llvm::StringRef part : parts) {
    part = part.trim();
    if (part.empty())
      continue;
    if (auto [name, range] = part.split(" in "); !range.empty()) {
      unsigned position = 0;
      name.trim().drop_front().getAsInteger(10, position);
      auto [lo, hi] = range.split(':');
      if (hi.empty())
        domain.add(position, 0, ix(lo));
      else
        domain.add(position, ix(lo), ix(hi));
    } else if (std::optional<Condition> condition = parseCondition(part)) {
      domain.conditions.push_back(*condition);
    } else {
      ADD_FAILURE() << "not a domain: " << part.str();
    }
  }
  return domain;
}

/// `d0 in N; d1 in C -> d0, d1 + C`. Commas inside parentheses do not separate.
inline Image imageOf(llvm::StringRef text) {
  auto [domain, subscripts] = text.split("->");
  Image image;
  image.domain = domainOf(domain);
  int depth = 0;
  std::string current;
  for (char c : (subscripts + ",").str()) {
    depth += (c == '(') - (c == ')');
    if (c == ',' && depth == 0) {
      if (!llvm::StringRef(current).trim().empty())
        image.subscripts.push_back(ix(current));
      current.clear();
    } else {
      current += c;
    }
  }
  return image;
}

inline const char *name(Verdict verdict) {
  switch (verdict) {
  case Verdict::Proved:
    return "Proved";
  case Verdict::Refuted:
    return "Refuted";
  case Verdict::Depends:
    return "Depends";
  case Verdict::Unknown:
    return "Unknown";
  }
  return "?";
}
inline std::ostream &operator<<(std::ostream &os, Verdict verdict) { return os << name(verdict); }

inline std::string describe(const Outcome &outcome) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << name(outcome.verdict);
  if (outcome.counterexample) {
    os << " at";
    for (const auto &[size, value] : outcome.counterexample->sizes)
      os << " " << size << "=" << value;
    for (const auto &[position, value] : outcome.counterexample->point)
      os << " d" << position << "=" << value;
    os << ": " << outcome.counterexample->value << " of " << outcome.counterexample->bound;
  }
  for (const Condition &condition : outcome.suffices)
    os << (outcome.necessary ? " iff " : " if ") << condition.str();
  return text;
}

} // namespace tegula

#endif // TEGULA_TEST_UNIT_PROVETESTING_H
