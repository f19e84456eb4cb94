//===- CheckSuggest.h - Edits that mend a program ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKSUGGEST_H
#define TEGULA_FRONTEND_CHECK_CHECKSUGGEST_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

struct LeftSide;

void adviseKeyword(CheckContext &ctx, Report &record, const ast::Ident &keyword,
                   llvm::ArrayRef<llvm::StringRef> names);
/// Renames an index of a reduction, in its text, to one that is free.
void suggestIndexName(CheckContext &ctx, Report &record, const ast::Ident &index,
                      llvm::ArrayRef<ast::ForItem> items, llvm::ArrayRef<const ast::Expr *> bodies);
/// `x[i, j]`, with letters for indices.
std::string elementText(llvm::StringRef name, size_t rank);
/// Renames an index in the statement around it.
void suggestIndexName(CheckContext &ctx, Report &record, const ast::Ident &index);
void suggestFloor(CheckContext &ctx, Report &record, Span quotient);
void suggestAccumulation(CheckContext &ctx, Report &record, const LeftSide &left);
void suggestOneDim(CheckContext &ctx, Report &record, const IndexExpr &a, const IndexExpr &b);
void suggestResult(CheckContext &ctx, Report &record, const ast::Expr &call,
                   const ast::Kernel *kernel);
void suggestOver(Report &record, const ast::Expr &scan, llvm::ArrayRef<const ast::Expr *> values);
std::pair<std::string, std::string> writtenOut(const ast::Stmt &stmt);
void suggestState(Report record, const Entity &entity, const ast::Stmt &stmt);
/// Once all reads are known: the declarations that prove them.
void suggestDims(CheckContext &ctx);
void suggestInout(CheckContext &ctx, Report &record, const TensorInfo &info);
/// Writes `name` in front of a call without place, makes elements of a result, ...
void suggestInsertion(Report &record, llvm::StringRef message, Span span, llvm::StringRef text,
                      Applicability applicability = Applicability::Maybe);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKSUGGEST_H
