//===- EmitIndex.cpp - Integer expressions as LLVM IR -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ScalarEmitter.h"

using namespace llvm;
using namespace tegula;

/// Whether the floored remainder differs from the truncated one: inexact, and signs differ.
static Value *needsCorrection(IRBuilder<> &b, Value *remainder, Value *divisor) {
  Value *zero = Constant::getNullValue(remainder->getType());
  return b.CreateAnd(b.CreateICmpNE(remainder, zero),
                     b.CreateICmpSLT(b.CreateXor(remainder, divisor), zero));
}

/// `lhs` over `divisor` by `divide`, without a trap. Where the divisor is 0, a condition around the
/// division excludes its result, which may be anything.
static Value *divideSafely(IRBuilder<> &b, Value *lhs, Value *divisor, Divisor kind,
                           Value *byMinusOne, function_ref<Value *(Value *)> divide) {
  if (isa<Constant>(divisor) || kind == Divisor::Safe)
    return divide(divisor);
  auto constant = [&](int64_t value) { return ConstantInt::getSigned(divisor->getType(), value); };
  if (kind == Divisor::Size) // no dividend is so small that -1 overflows
    return divide(b.CreateSelect(b.CreateICmpEQ(divisor, constant(0)), constant(1), divisor));
  // Of 0 and -1, and of nothing else, one more is 0 or 1.
  Value *traps = b.CreateICmpULT(b.CreateAdd(divisor, constant(1)), constant(2));
  Value *result = divide(b.CreateSelect(traps, constant(1), divisor));
  return b.CreateSelect(b.CreateICmpEQ(divisor, constant(-1)), byMinusOne, result);
}

Value *ScalarEmitter::divisorOfPoints(Value *divisor) {
  if (!lanes || !lanes->mask || !isVector(divisor) || isa<Constant>(divisor))
    return divisor;
  return b.CreateSelect(lanes->mask, divisor, ConstantInt::get(divisor->getType(), 1));
}

Value *ScalarEmitter::emitFloorDiv(Value *lhs, Value *rhs, Divisor kind) {
  Value *operands[] = {lhs, rhs};
  align(operands);
  if (kind == Divisor::Safe)
    operands[1] = divisorOfPoints(operands[1]);
  return divideSafely(
      b, operands[0], operands[1], kind, b.CreateNeg(operands[0]), [&](Value *divisor) {
        Value *quotient = b.CreateSDiv(operands[0], divisor);
        Value *remainder = b.CreateSRem(operands[0], divisor);
        // sext of true is -1
        return b.CreateAdd(
            quotient, b.CreateSExt(needsCorrection(b, remainder, divisor), quotient->getType()));
      });
}

Value *ScalarEmitter::emitMod(Value *lhs, Value *rhs, Divisor kind) {
  Value *operands[] = {lhs, rhs};
  align(operands);
  Value *zero = Constant::getNullValue(operands[0]->getType());
  return divideSafely(b, operands[0], operands[1], kind, zero, [&](Value *divisor) {
    Value *remainder = b.CreateSRem(operands[0], divisor);
    return b.CreateSelect(needsCorrection(b, remainder, divisor), b.CreateAdd(remainder, divisor),
                          remainder);
  });
}

/// How late a term's last variable comes into being: sizes first, then operands, which stand in the
/// order of their loops. Sums start with what inner loops do not change, so that LLVM can move it
/// out.
static unsigned lateness(const IndexExpr::Term &term) {
  unsigned result = 0;
  auto visit = [&](const IndexVar &var) {
    result = std::max(result, var.isSymbol() ? 1 : 2 + var.position());
  };
  for (const auto &[atom, power] : term.factors) {
    if (atom->kind == IndexExpr::AtomKind::Variable)
      visit(atom->var);
    for (const IndexExpr &operand : atom->operands)
      for (const IndexVar &var : operand.variables())
        visit(var);
  }
  return result;
}

Value *ScalarEmitter::emitExpr(const IndexExpr &expr,
                               function_ref<Value *(const IndexVar &)> variable) {
  SmallVector<const IndexExpr::Term *> order;
  for (const IndexExpr::Term &term : expr.terms())
    order.push_back(&term);
  stable_sort(order, [](const IndexExpr::Term *lhs, const IndexExpr::Term *rhs) {
    return lateness(*lhs) < lateness(*rhs);
  });
  Value *sum = nullptr;
  for (const IndexExpr::Term *term : order) {
    Value *product = nullptr;
    auto multiply = [&](Value *factor) {
      if (!product) {
        product = factor;
        return;
      }
      Value *operands[] = {product, factor};
      align(operands);
      product = b.CreateMul(operands[0], operands[1]);
    };
    for (const auto &[atom, power] : term->factors) {
      Value *factor = emitAtom(*atom, variable);
      for (unsigned i = 0; i < power; ++i)
        multiply(factor);
    }
    if (!product || term->coefficient != 1)
      multiply(i64(term->coefficient));
    if (!sum) {
      sum = product;
      continue;
    }
    Value *operands[] = {sum, product};
    align(operands);
    sum = b.CreateAdd(operands[0], operands[1]);
  }
  return sum ? sum : i64(0);
}

Value *ScalarEmitter::emitAtom(const IndexExpr::Atom &atom,
                               function_ref<Value *(const IndexVar &)> variable) {
  if (atom.kind == IndexExpr::AtomKind::Variable)
    return variable(atom.var);
  SmallVector<Value *, 4> operands;
  for (const IndexExpr &operand : atom.operands)
    operands.push_back(emitExpr(operand, variable));
  align(operands);
  switch (atom.kind) {
  case IndexExpr::AtomKind::Variable:
    break;
  case IndexExpr::AtomKind::FloorDiv:
    return emitFloorDiv(operands[0], operands[1],
                        llvm::all_of(atom.operands[1].variables(),
                                     [](const IndexVar &var) { return var.isSymbol(); })
                            ? Divisor::Size
                            : Divisor::Any);
  case IndexExpr::AtomKind::Min:
  case IndexExpr::AtomKind::Max: {
    Intrinsic::ID id = atom.kind == IndexExpr::AtomKind::Min ? Intrinsic::smin : Intrinsic::smax;
    Value *result = operands[0];
    for (Value *operand : ArrayRef(operands).drop_front())
      result = b.CreateBinaryIntrinsic(id, result, operand);
    return result;
  }
  case IndexExpr::AtomKind::Select: {
    static constexpr CmpInst::Predicate predicates[] = {CmpInst::ICMP_EQ, CmpInst::ICMP_NE,
                                                        CmpInst::ICMP_SLT, CmpInst::ICMP_SLE};
    Value *condition =
        b.CreateICmp(predicates[static_cast<unsigned>(atom.cmp)], operands[0], operands[1]);
    return b.CreateSelect(condition, operands[2], operands[3]);
  }
  case IndexExpr::AtomKind::Float:
    llvm_unreachable("sizes that are computed in f64 have names");
  }
  llvm_unreachable("all kinds of atoms are handled");
}

Value *ScalarEmitter::emitIndex(const tgl::ValueExpr &expr) {
  return emitExpr(expr.expr(), [&](const IndexVar &var) -> Value * {
    return var.isSymbol() ? sizeOf(var.name()) : valueOf(expr.operands()[var.position()]);
  });
}

Value *ScalarEmitter::emitIndexAtLaneZero(const tgl::ValueExpr &expr) {
  return emitExpr(expr.expr(), [&](const IndexVar &var) -> Value * {
    if (var.isSymbol())
      return sizeOf(var.name());
    mlir::Value operand = expr.operands()[var.position()];
    return lanes && operand == lanes->axis ? lanes->base : valueOf(operand);
  });
}
