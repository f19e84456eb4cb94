//===- CheckRange.h - Ranges of indices -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKRANGE_H
#define TEGULA_FRONTEND_CHECK_CHECKRANGE_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

struct Extent {
  IndexExpr size;
  Span span;
  std::string from; // `x`
  bool isGroup = false;
  std::vector<ExactDivision> exact;
  std::optional<IndexExpr> lo;
};

std::optional<std::pair<IndexExpr, IndexExpr>> evalRange(CheckContext &ctx, const ast::Range &range,
                                                         llvm::StringRef index,
                                                         Code code = Code::NotAnInteger);
const Var *newVar(CheckContext &ctx, Var::Kind kind, llvm::StringRef name, IndexExpr lo,
                  IndexExpr hi, Span span);
/// Defines an index name in `scope`; false (reported) where it is visible already.
bool defineIndex(CheckContext &ctx, Scope &scope, const ast::Ident &name, const Var *var);
/// Whether the name is free (else reported); `advise` may add an edit to the report.
bool checkIndexName(CheckContext &ctx, const ast::Ident &name,
                    llvm::function_ref<void(Report &)> advise = {});
void collectExtents(CheckContext &ctx, const ast::Subscript &subscript, const IndexExpr &dim,
                    llvm::StringRef tensor, llvm::StringRef index, bool isOffset,
                    llvm::SmallVectorImpl<Extent> &extents);
/// The range that the dims subscripted bare in `bodies` give; nothing where there are none.
std::optional<std::pair<IndexExpr, IndexExpr>> inferRange(CheckContext &ctx, llvm::StringRef index,
                                                          llvm::ArrayRef<const ast::Expr *> bodies,
                                                          Span span);
/// Whether a name stands in the text of an expression, other than as an index of an inner
/// reduction.
bool mentions(const ast::Expr &e, llvm::StringRef name);
/// Whether an expression reads something that was defined wrongly.
bool readsPoison(CheckContext &ctx, const ast::Expr &e);
/// `form` shows where a range may stand, as SIZE. `takesRange`: ` in SIZE` may follow where the
/// index stands.
void rangeUnknown(CheckContext &ctx, const ast::Ident &index, llvm::StringRef form,
                  llvm::ArrayRef<const ast::Expr *> bodies, bool takesRange);
/// The range that is written where the index subscripts a read, `x[i, j in 3]` [4.2, 6.1].
const ast::Range *writtenRange(llvm::StringRef index, llvm::ArrayRef<const ast::Expr *> bodies);
/// Whether the index of the subscript has the range that is written there, if one is; else
/// reported.
bool requireWrittenRange(CheckContext &ctx, const ast::Subscript &subscript);
bool bindItems(CheckContext &ctx, llvm::ArrayRef<ast::ForItem> items,
               llvm::ArrayRef<const ast::Expr *> bodies, Scope &scope,
               llvm::SmallVectorImpl<const Var *> &vars, llvm::StringRef form);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKRANGE_H
