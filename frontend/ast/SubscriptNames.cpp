//===- SubscriptNames.cpp - Names that subscript the reads of an expression -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/ast/SubscriptNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace tegula::ast;

namespace {
class Walk {
public:
  explicit Walk(llvm::function_ref<void(const Subscript &, const Ident *)> visit) : visit(visit) {}

  /// `inside`: the subscript that the expression is a part of.
  void expr(const Expr &e, const Subscript *inside) {
    size_t before = bound.size();
    for (const ForItem &item : e.items)
      bound.push_back(item.index.name);
    if (e.kind == Expr::Name && inside && !isBound(e.name.name))
      visit(*inside, &e.name);
    for (const ExprPtr &operand : e.operands)
      if (operand)
        expr(*operand, inside);
    for (const Subscript &one : e.subscripts)
      subscript(one);
    for (const Argument &argument : e.arguments)
      expr(*argument.value, inside);
    for (const ForItem &item : e.items) {
      range(item.range, inside);
      if (item.filter)
        expr(*item.filter, inside);
    }
    bound.truncate(before);
  }

private:
  void subscript(const Subscript &one) {
    if (one.kind == Subscript::Ellipsis && !isBound(""))
      visit(one, nullptr);
    if (one.expr)
      expr(*one.expr, &one);
    for (const Subscript &member : one.members)
      subscript(member);
    range(one.range, &one);
  }
  void range(const std::optional<Range> &range, const Subscript *inside) {
    if (range && range->lo)
      expr(*range->lo, inside);
    if (range && range->hi)
      expr(*range->hi, inside);
  }
  bool isBound(llvm::StringRef name) const { return llvm::is_contained(bound, name); }

  llvm::function_ref<void(const Subscript &, const Ident *)> visit;
  llvm::SmallVector<llvm::StringRef> bound; // "" is `...`
};
} // namespace

void tegula::ast::forEachSubscriptName(
    const Expr &expr, llvm::function_ref<void(const Subscript &, const Ident *)> visit) {
  Walk(visit).expr(expr, nullptr);
}
