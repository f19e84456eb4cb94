//===- CheckNames.h - Names that mean nothing, or too much ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKNAMES_H
#define TEGULA_FRONTEND_CHECK_CHECKNAMES_H

#include "frontend/check/CheckContext.h"
#include "frontend/diagnostics/Inventions.h"

namespace tegula {
inline namespace checker {

void requireDistinctNames(CheckContext &ctx);
std::vector<llvm::StringRef> visibleNames(CheckContext &ctx);
void unknownName(CheckContext &ctx, const ast::Ident &name, bool isCall);
void unknownFunction(CheckContext &ctx, const ast::Ident &name, Code code);
/// Where a statement further down defines `name`, if one does.
std::optional<Span> definedLater(CheckContext &ctx, llvm::StringRef name);
bool reportDefinedLater(CheckContext &ctx, const ast::Ident &name);
/// Reports a name or keyword that other languages have; false where it is none.
bool reportInvention(CheckContext &ctx, llvm::StringRef name, Span span, Invention::Kind kind);
std::string describe(const Entity &entity);
bool isReserved(llvm::StringRef name);
/// Names that statements with syntax errors define are not reported again.
void loseNames(CheckContext &ctx, Frame &of);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKNAMES_H
