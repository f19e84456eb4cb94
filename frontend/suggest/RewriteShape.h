//===- RewriteShape.h - Calls that change shapes, constants -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_SUGGEST_REWRITESHAPE_H
#define TEGULA_FRONTEND_SUGGEST_REWRITESHAPE_H

#include "frontend/suggest/RewriteValue.h"

namespace tegula::rewrite {

Result evalShapeChange(Translator &translator, const CallForm &form, bool &known);
Result evalConstruction(Translator &translator, const CallForm &form, bool &known);

} // namespace tegula::rewrite

#endif // TEGULA_FRONTEND_SUGGEST_REWRITESHAPE_H
