//===- Inventions.cpp - Names and forms of other languages -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/diagnostics/Inventions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace tegula {

static const Invention table[] = {
#define TEGULA_INVENTION(KIND, NAME, REPLACEMENT, REWRITE)                                         \
  {Invention::KIND, NAME, REPLACEMENT, REWRITE},
#include "dsl/Inventions.def"
};

ArrayRef<Invention> allInventions() { return table; }

std::string Invention::advice() const {
  if (!rewrite.empty())
    return rewrite.str();
  return ("write '" + replacement + "'").str();
}

const Invention *findInvention(Invention::Kind kind, StringRef name) {
  // Looked at only where a program is wrong already.
  const Invention *found = llvm::find_if(
      table, [&](const Invention &entry) { return entry.kind == kind && entry.name == name; });
  return found == std::end(table) ? nullptr : found;
}

static StringRef kindName(Invention::Kind kind) {
  switch (kind) {
  case Invention::Type:
    return "type";
  case Invention::Function:
    return "function";
  case Invention::Keyword:
    return "keyword";
  case Invention::Value:
    return "name";
  case Invention::Member:
    return "member";
  case Invention::Statement:
    return "statement";
  }
  llvm_unreachable("all kinds are named");
}

bool reportInvention(Diagnostics &diagnostics, Invention::Kind kind, StringRef name, Span span) {
  const Invention *entry = findInvention(kind, name);
  if (!entry)
    return false;
  std::string message =
      ("there is no " + kindName(kind) + " '" + name + "': " + entry->advice()).str();
  auto report = diagnostics.report(Code::InventedName, span, std::move(message));
  if (!entry->replacement.empty())
    report.fix(("write '" + entry->replacement + "'").str(), {{span, entry->replacement.str()}},
               Applicability::Safe);
  return true;
}

} // namespace tegula
