//===- CheckLeft.h - Left sides of equations --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKLEFT_H
#define TEGULA_FRONTEND_CHECK_CHECKLEFT_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

struct LeftSide {
  struct Sub {
    const ast::Subscript *ast = nullptr;
    bool isIndex = false; // one new index, `name`
    ast::Ident name;
    std::optional<IndexExpr> ellipsisDim; // one of the dims of `...`
    /// The size that a temporary needs along it, where it is an index or a group of them.
    std::optional<IndexExpr> extent;
  };

  explicit LeftSide(Scope *outside) : scope(Scope::Equation, outside) {}
  /// The tensor's dims are given, not made by its equations.
  bool isDeclared() const {
    return info && !isState && info->tensor->kind != checked::Tensor::Temp;
  }

  const ast::Stmt *stmt = nullptr;
  const ast::Target *target = nullptr;
  llvm::ArrayRef<ast::ForItem> trailing; // of the statement
  /// How a range is written, up to the index: `y[i] = ... for `; empty: as of an equation.
  std::string rangeForm;
  TensorInfo *info = nullptr; // null: a new temporary or state
  bool isState = false, accumulate = false;
  ast::Stmt::Combine combine = ast::Stmt::Combine::Add;
  /// Writes into what has values already, where data say: it does not make its tensor larger.
  bool isUpdate = false;
  Span valueSpan;
  llvm::SmallVector<const ast::Expr *> bodies; // where ranges are inferred from
  std::vector<std::pair<ast::Ident, std::pair<IndexExpr, IndexExpr>>> presets;
  Scope scope;
  std::vector<Sub> subs;
  std::vector<Subscript> values;
  std::vector<const checked::Var *> vars;
};

bool expandLeft(CheckContext &ctx, LeftSide &left);
bool bindLeftIndices(CheckContext &ctx, LeftSide &left);
bool evalLeft(CheckContext &ctx, LeftSide &left);
bool checkLeftBounds(CheckContext &ctx, LeftSide &left, Stmt &out);
bool sizeTemporary(CheckContext &ctx, LeftSide &left);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKLEFT_H
