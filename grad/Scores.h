//===- Scores.h - Softmax of products, without the matrix of scores ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In attention the scores q k^T are larger than all that they are made of. Their softmax is written
// as exp(s - lse) with one lse a row, and what is as large as they are stands, as far as it goes,
// where it is used: a compiler then has no need to keep it in memory.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_GRAD_SCORES_H
#define TEGULA_GRAD_SCORES_H

#include "grad/Derive.h"

namespace tegula::grad {

/// Whether the equation is a softmax along one axis of values that sums of products give, each
/// factor of which lacks an axis that the product has.
bool isSoftmaxOfProducts(const Builder &builder, llvm::ArrayRef<Equation> program,
                         const Equation &equation);

/// The only equation that reads p = softmax(...), where its result is linear in p and has no other
/// term: then the sum of p*dL/dp along the softmax's axis is that of y*dL/dy over `rest`.
struct LinearUse {
  const Equation *equation = nullptr;
  Replacement rows; // its indices that are rows of p, by p's own
  llvm::SmallVector<const checked::Var *> rest;
};
std::optional<LinearUse> findLinearUse(Builder &builder, llvm::ArrayRef<Equation> program,
                                       const Equation &softmax);

/// Rewrites softmaxes of products in the equations that are computed again, and values of their
/// size. Where such a value is a factor of a sum beside a tensor of one of the types `shortTypes`,
/// it is rounded to that, as the adjoints of autograd are.
void leaveScoresUnstored(Builder &builder, Derivation &derivation,
                         llvm::ArrayRef<checked::DType> shortTypes);

} // namespace tegula::grad

#endif // TEGULA_GRAD_SCORES_H
