//===- FormSkinnyProducts.h - What a block computes of a product of few rows -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_TILE_FORMSKINNYPRODUCTS_H
#define TEGULA_PASSES_TILE_FORMSKINNYPRODUCTS_H

#include "strategies/skinny_product/plan/SkinnyProduct.h"

namespace tegula {

/// Makes the kernel of a statement, which moves into its region `otherwise`.
void formSkinnyProduct(const SkinnyProductPlan &plan, const SkinnyProductShape &shape);

} // namespace tegula

#endif // TEGULA_PASSES_TILE_FORMSKINNYPRODUCTS_H
