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
#include "strategies/tile_loop/lower/ScaledValues.h"

#include "codegen/math/LowerMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
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
std::optional<ScaledValues> tegula::withoutScale(IRBuilder<> &b, ArrayRef<Value *> values) {
  auto *first = dyn_cast<BinaryOperator>(values.front());
  if (!first || first->getOpcode() != Instruction::FMul || !first->getType()->isFloatTy())
    return std::nullopt;
  for (Value *scale : first->operands()) {
    ScaledValues result{{}, scale, 0};
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
