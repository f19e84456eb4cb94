//===- InlineProducers.h - Inlines pointwise producers into their readers -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_FUSE_INLINEPRODUCERS_H
#define TEGULA_PASSES_FUSE_INLINEPRODUCERS_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// The value as reading it back from a tensor of this element type would give it.
mlir::Value roundToStorage(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                           mlir::Type elementType);

/// For statements of `block` that compute a temporary pointwise: every read of it is replaced by
/// the expression, where that is legal for all of them and costs little or nothing; with
/// `skinnyProducts` also where a product of few rows then unpacks a factor in registers
/// (strategies/skinny_product/plan). The statement and the temporary are then gone. Returns the
/// number of reads replaced.
unsigned inlineProducers(mlir::Block &block, bool skinnyProducts, Prover &prover);

} // namespace tegula

#endif // TEGULA_PASSES_FUSE_INLINEPRODUCERS_H
