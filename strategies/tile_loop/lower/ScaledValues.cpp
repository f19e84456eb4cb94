//===- ScaledValues.cpp - Scale factors that rows share -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A softmax multiplies its sums of products with a constant, looks for the largest, and takes the
// power of each element's distance to it: s = c x, m = max(s), exp(s - m). Of these two
// multiplications and a subtraction per element one instruction is left: the largest x is found,
// and the constant joins that of the power.
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/lower/FusedTileLoop.h"

#include "codegen/math/LowerMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace llvm::PatternMatch;

/// The number that a value made of constants alone is.
static Constant *foldConstants(llvm::Value *value, const DataLayout &layout) {
  if (auto *constant = dyn_cast<Constant>(value))
    return constant;
  auto *instruction = dyn_cast<Instruction>(value);
  if (!instruction || isa<PHINode>(instruction) || instruction->mayReadOrWriteMemory())
    return nullptr;
  SmallVector<Constant *> operands;
  for (Value *operand : instruction->operands()) {
    operands.push_back(foldConstants(operand, layout));
    if (!operands.back())
      return nullptr;
  }
  auto *call = dyn_cast<CallInst>(instruction);
  auto *number = call ? dyn_cast<ConstantFP>(operands[0]) : nullptr;
  if (number && number->getType()->isDoubleTy() &&
      call->getCalledFunction() ==
          getMathFunction(*call->getModule(), MathFunction::Rsqrt, number->getType()))
    return ConstantFP::get(number->getType(),
                           1 / std::sqrt(number->getValueAPF().convertToDouble()));
  return ConstantFoldInstOperands(instruction, operands, layout);
}

/// Divides all values by a factor that they share: a constant above 0 that is neither tiny nor
/// huge.
std::optional<FusedTileLoop::Scaled> FusedTileLoop::withoutScale(ArrayRef<Value *> values) {
  auto *first = dyn_cast<BinaryOperator>(values.front());
  if (!first || first->getOpcode() != Instruction::FMul || !first->getType()->isFloatTy())
    return std::nullopt;
  for (Value *scale : first->operands()) {
    Scaled result{{}, scale, 0};
    for (Value *value : values) {
      Value *other = nullptr;
      if (match(value, m_c_FMul(m_Specific(scale), m_Value(other))))
        result.values.push_back(other);
    }
    const DataLayout &layout = b.GetInsertBlock()->getModule()->getDataLayout();
    auto *number = result.values.size() == values.size()
                       ? dyn_cast_or_null<ConstantFP>(foldConstants(scale, layout))
                       : nullptr;
    if (!number)
      continue;
    result.factor = number->getValueAPF().convertToFloat();
    constexpr double largest = 0x1p60;
    if (result.factor > 1 / largest && result.factor < largest)
      return result;
  }
  return std::nullopt;
}

/// The size of a row's shift from which on a product with log2 e, rounded, may be off by more
/// than 2.
static constexpr int largeShift = 25;

/// The power of two that brings a large number (f32) to 2^largeShift or less.
Value *FusedTileLoop::powerThatShrinks(Value *size) {
  constexpr int bias = 127, mantissaBits = 23;
  Value *exponent = b.CreateLShr(b.CreateBitCast(size, b.getInt32Ty()), i32(mantissaBits));
  return b.CreateBitCast(
      b.CreateShl(b.CreateSub(i32(2 * bias + largeShift - 1), exponent), i32(mantissaBits)),
      b.getFloatTy());
}

/// exp(c x - m) with m of rows alone, which a softmax is made of: 2^(x (c log2 e) - m log2 e) takes
/// one multiplication and addition. It adds errors of |c x| 2^-23 and |m| 2^-24, those of numbers
/// of f32 of their size.
///
/// For a large m, such as the -1e9 or -1e30 that a mask writes, those errors would turn e^0 into 0
/// or infinity. Numbers of that size are equal or at least 2 apart, so 2^(x - m), which is exact,
/// takes the place of e^(x - m). A product c x differs from m, into which it was rounded, by at
/// most m's rounding error. A power of two scales both so that this error is below 1; the result is
/// 0 for values that are farther from m.
bool FusedTileLoop::emitShiftedExp(mlir::Operation *op, const Scope &scope) {
  auto shift = op->getOperand(0).getDefiningOp<mlir::arith::SubFOp>();
  if (!isa<mlir::math::ExpOp>(op) || !shift || !shift.getType().isF32())
    return false;
  Fragment elements = fragmentOf(shift.getLhs()), shifts = fragmentOf(shift.getRhs());
  if (!elements.rows || !elements.columns || !shifts.rows || shifts.columns)
    return false;
  double factor = 1;
  if (std::optional<Scaled> scaled = withoutScale(elements.values)) {
    elements.values = scaled->values;
    factor = scaled->factor;
  }
  Type *type = b.getFloatTy();
  Values factors, offsets;
  for (unsigned row = 0; row < 2; ++row) {
    Value *own = shifts.at(row, 0), *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, own);
    Value *isSmall = b.CreateFCmpOLT(size, ConstantFP::get(type, std::ldexp(1.0, largeShift)));
    Value *large = factor == 1 ? ConstantFP::get(type, 1) : powerThatShrinks(size);
    factors.push_back(b.CreateSelect(isSmall, ConstantFP::get(type, factor * numbers::log2e),
                                     b.CreateFMul(large, ConstantFP::get(type, factor))));
    offsets.push_back(b.CreateFNeg(
        b.CreateFMul(own, b.CreateSelect(isSmall, ConstantFP::get(type, numbers::log2e), large))));
  }
  fragments[op->getResult(0)] = forPoints(true, true, &scope, [&](unsigned row, unsigned column) {
    Value *power = b.CreateIntrinsic(type, Intrinsic::fma,
                                     {elements.at(row, column), factors[row], offsets[row]});
    return b.CreateIntrinsic(type, Intrinsic::nvvm_ex2_approx_ftz, {power});
  });
  return true;
}
