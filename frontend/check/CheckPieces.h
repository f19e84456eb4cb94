//===- CheckPieces.h - Pieces and coverage ----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKPIECES_H
#define TEGULA_FRONTEND_CHECK_CHECKPIECES_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

struct LeftSide;

bool checkInjective(CheckContext &ctx, LeftSide &left, Stmt &out);
bool addPiece(CheckContext &ctx, LeftSide &left, Stmt &out);
/// The elements that a read touches lie in what one piece defined.
bool isDefinedBy(CheckContext &ctx, const Piece &piece, llvm::ArrayRef<IndexExpr> subscripts);
/// All elements of the tensor have a value from here on, or that is reported.
void requireCovered(CheckContext &ctx, TensorInfo &info, Span readSpan, bool atEnd);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKPIECES_H
