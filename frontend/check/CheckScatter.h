//===- CheckScatter.h - Equations that write where data say -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKSCATTER_H
#define TEGULA_FRONTEND_CHECK_CHECKSCATTER_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

struct LeftSide;

bool readsData(CheckContext &ctx, const Expr *value);
/// An equation with data in its subscripts: says how its points meet; false where that was
/// reported. `along`: the axes along which it runs; `bare`: those that the left side shows as
/// they are.
bool checkScatter(CheckContext &ctx, LeftSide &left, Stmt &out, const std::set<unsigned> &along,
                  std::set<unsigned> bare);
void checkDistinctNames(CheckContext &ctx, Frame &of);
/// What writes some elements of a tensor, as data say, needs a definition of all of it before.
bool requireDefinition(CheckContext &ctx, LeftSide &left, const Stmt &out);
/// What decides where, and whether, a statement writes.
void forEachOnAddress(CheckContext &ctx, const checked::Stmt &write,
                      llvm::function_ref<void(const checked::Expr *)> visit);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKSCATTER_H
