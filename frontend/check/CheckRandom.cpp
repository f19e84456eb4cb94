//===- CheckRandom.cpp - Random numbers -------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `rand` and `randn`: numbers that depend on their integer arguments alone: a seed, and the indices
// along which they vary.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/Checker.h"

using namespace tegula;
using namespace tegula::checked;

Value Checker::evalRandom(const ast::Expr &e) {
  if (!checkKeywords(e, {}))
    return {};
  Expr *random = make(Expr::Random, DType::F32, e.span);
  random->normal = e.name.name == "randn";
  bool failed = false;
  for (const ast::Argument &argument : e.arguments) {
    Value value = eval(*argument.value);
    if (value.isPoison()) {
      failed = true;
      continue;
    }
    if (isFloat(value.expr->type)) {
      report(Code::NotAnInteger, argument.value->span,
             "'" + e.name.name + "' takes integers, got " + toString(typeAlone(value)));
      failed = true;
      continue;
    }
    random->operands.push_back(coerce(value, DType::I64));
  }
  if (e.arguments.empty()) {
    report(Code::MissingArgument, e.span,
           "'" + e.name.name + "' needs a seed, and the indices along which it varies: " +
               e.name.name + "(seed, i, j)");
    return {};
  }
  return failed ? Value{} : strong(finish(random));
}
