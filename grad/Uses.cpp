//===- Uses.cpp - What equations use ---------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/Derive.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

namespace {
class Collector {
public:
  Collector(const Builder &b, UsedNames &used) : b(b), used(used) {}

  void index(const IndexExpr &expr) {
    for (const IndexVar &at : expr.variables()) {
      if (at.isSymbol())
        symbol(at.name());
      else if (b.var(at.position()).kind == Var::Data)
        value(b.var(at.position()).data);
    }
  }

  void symbol(StringRef name) {
    if (!used.symbols.insert(name).second)
      return;
    for (const Size &size : b.program.sizes)
      if (size.name == name && !size.boundBy && !size.isOpen)
        index(size.definition);
  }

  void var(const Var &one) {
    index(one.lo);
    index(one.hi);
  }

  void value(const Expr *at) {
    if (!seen.insert(at).second)
      return;
    if (at->kind == Expr::Scalar)
      used.scalars.insert(at->scalar);
    if (at->kind == Expr::Read) {
      used.tensors.insert(at->tensor);
      for (const IndexExpr &dim : at->tensor->dims)
        index(dim);
    }
    if (at->kind == Expr::Index)
      index(at->index);
    for (const IndexExpr &subscript : at->subscripts)
      index(subscript);
    for (const auto &[numerator, denominator] : at->exact) {
      index(numerator);
      index(denominator);
    }
    for (const Var *bound : at->vars)
      var(*bound);
    Builder::forParts(at, [&](const Expr *part) { value(part); });
  }

  void equation(const Equation &one) {
    if (one.loop) {
      var(*one.loop->var);
      for (const Equation &step : one.loop->body)
        equation(step);
      return;
    }
    value(one.value);
    if (one.guard)
      value(one.guard);
    for (const IndexExpr &subscript : one.subscripts)
      index(subscript);
    for (const Var *axis : one.vars)
      var(*axis);
    for (const IndexExpr &dim : one.target->dims)
      index(dim);
  }

private:
  const Builder &b;
  UsedNames &used;
  DenseSet<const Expr *> seen;
};
} // namespace

UsedNames usedNames(const Builder &builder, const Derivation &derivation) {
  UsedNames used;
  Collector collector(builder, used);
  for (const auto *part : {&derivation.forward, &derivation.backward})
    for (const Equation &equation : *part)
      collector.equation(equation);
  return used;
}

} // namespace tegula::grad
