//===- EmitIREqual.cpp - Values that are computed alike -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIREqual.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::emit;

bool tegula::emit::areAlike(const Expr *a, const Expr *b, const Comparison &how) {
  if (!a || !b || (how.isOfOneStatement && a == b))
    return a == b;
  if (!how.isOfOneStatement) {
    a = a->kind == Expr::Let ? a->let->value : a;
    b = b->kind == Expr::Let ? b->let->value : b;
  }
  if (a->kind != b->kind || a->type != b->type || a->operands.size() != b->operands.size() ||
      !all_of(zip(a->operands, b->operands), [&](const auto &each) {
        return areAlike(std::get<0>(each), std::get<1>(each), how);
      }))
    return false;
  switch (a->kind) {
  case Expr::Constant:
    return a->intValue == b->intValue &&
           bit_cast<uint64_t>(a->floatValue) == bit_cast<uint64_t>(b->floatValue);
  case Expr::Index:
    return how.isSameIndex(a->index, b->index);
  case Expr::Scalar:
    return a->scalar == b->scalar;
  case Expr::Read:
    return a->tensor == b->tensor && how.isSameTensor(a->tensor) && !a->fill && !b->fill &&
           !a->guard && !b->guard && a->exact.empty() && b->exact.empty() &&
           a->subscripts.size() == b->subscripts.size() &&
           all_of(zip(a->subscripts, b->subscripts), [&](const auto &each) {
             return how.isSameIndex(std::get<0>(each), std::get<1>(each));
           });
  case Expr::Unary:
    return a->unary == b->unary;
  case Expr::Binary:
    return a->binary == b->binary;
  case Expr::Convert:
  case Expr::Quantize:
    return a->target == b->target;
  case Expr::Where:
  case Expr::Widen:
    return true;
  default:
    return false;
  }
}
