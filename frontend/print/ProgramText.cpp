//===- ProgramText.cpp - Parts of a checked program as text ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/print/ProgramText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tegula {

std::string textOf(const checked::Program &program, IndexExpr expr) {
  // The last of the sizes may use earlier ones.
  for (const checked::Size &size : llvm::reverse(program.sizes))
    if (size.isUnnamed)
      expr = expr.substitute([&](const IndexVar &var) {
        return var == IndexVar::symbol(size.name) ? std::optional(size.definition) : std::nullopt;
      });
  std::string result;
  raw_string_ostream os(result);
  expr.print(os, [&](raw_ostream &out, unsigned position) { out << program.vars[position].name; });
  return result;
}

std::string conditionOf(const checked::Program &program, const checked::Guard &guard) {
  auto text = [&](const IndexExpr &expr) { return textOf(program, expr); };
  std::string result;
  switch (guard.kind) {
  case checked::Guard::NonNegative:
    result = text(guard.lhs) + " >= 0";
    break;
  case checked::Guard::Zero:
    result = text(guard.lhs) + " == 0";
    break;
  case checked::Guard::NonZero:
    result = text(guard.lhs) + " != 0";
    break;
  case checked::Guard::Divides:
    result = text(guard.lhs) + " is a multiple of " + text(guard.rhs);
    break;
  case checked::Guard::InBounds:
    result = "0 <= " + text(guard.lhs) + " < " + text(guard.rhs);
    break;
  }
  for (auto [i, var] : enumerate(guard.vars))
    result += (i ? ", " : " for ") + var->name + " in " + text(var->lo) + ":" + text(var->hi);
  for (auto [i, condition] : enumerate(guard.conditions))
    result += (i ? " and " : " where ") + text(condition) + " >= 0";
  return result;
}

} // namespace tegula
