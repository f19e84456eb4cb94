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

#include "frontend/check/CheckRandom.h"
#include "frontend/check/CheckArguments.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckExpr.h"

using namespace tegula;
using namespace tegula::checked;

Value tegula::evalRandom(CheckContext &ctx, const ast::Expr &e) {
  if (!checkKeywords(ctx, e, {}))
    return {};
  Expr *random = makeExpr(ctx, Expr::Random, DType::F32, e.span);
  random->normal = e.name.name == "randn";
  bool failed = false;
  for (const ast::Argument &argument : e.arguments) {
    Value value = eval(ctx, *argument.value);
    if (value.isPoison()) {
      failed = true;
      continue;
    }
    if (isFloat(value.expr->type)) {
      ctx.report(Code::NotAnInteger, argument.value->span,
                 "'" + e.name.name + "' takes integers, got " + toString(typeAlone(value)));
      failed = true;
      continue;
    }
    random->operands.push_back(coerce(ctx, value, DType::I64));
  }
  if (e.arguments.empty()) {
    ctx.report(Code::MissingArgument, e.span,
               "'" + e.name.name + "' needs a seed, and the indices along which it varies: " +
                   e.name.name + "(seed, i, j)");
    return {};
  }
  return failed ? Value{} : strong(finishExpr(ctx, random));
}
