//===- Match.h - Functions that are smooth although their parts are not ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_GRAD_MATCH_H
#define TEGULA_GRAD_MATCH_H

#include "grad/Builder.h"

namespace tegula::grad {

/// Whether two values are the same by their form. Those that bind indices are not compared.
bool areEqual(const Expr *a, const Expr *b);

/// The x of a node that is written as the library writes sigmoid(x); else null.
const Expr *matchSigmoid(const Expr *node);
const Expr *makeSigmoid(Builder &builder, const Expr *x);

/// max(x, 0) + log1p(exp(-|x|)), the same of -x, or min(x, 0) - log1p(exp(-|x|)).
struct SoftCorner {
  const Expr *x = nullptr; // null: none of them
  enum Form { Softplus, SoftplusOfNegated, LogSigmoid } form = Softplus;
};
SoftCorner matchSoftplus(const Expr *node);
/// The value with both parts of each of these side by side that other terms of a sum stand between.
const Expr *joinSoftCorners(Builder &builder, const Expr *value);

/// The x of tanh(softplus(x)) in the form that the library's mish has.
const Expr *matchTanhOfSoftplus(const Expr *node);

/// The x of any function of x that is recognised as a whole; else null.
const Expr *matchWhole(const Expr *node);

} // namespace tegula::grad

#endif // TEGULA_GRAD_MATCH_H
