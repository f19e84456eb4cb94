//===- BypassDivisions.cpp - Divisions of small numbers in 32 bits ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GPU divides 64 bits in some seventy instructions, 32 bits in a quarter of that. Where sizes are
// known, divisors are constants and there is nothing to do; code for all sizes divides numbers of
// points by sizes, all of which nearly always fit 32 bits. Quotient and remainder of the same
// numbers share one division.
//
//===----------------------------------------------------------------------===//
#include "codegen/llvm/BypassDivisions.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;
using namespace tegula;

static constexpr unsigned shortBits = 32;

namespace {
/// Divisions of a block by the same numbers, the first of them first.
struct Division {
  SmallVector<BinaryOperator *, 2> users;
  Value *dividend() const { return users.front()->getOperand(0); }
  Value *divisor() const { return users.front()->getOperand(1); }
  bool isSigned() const {
    return users.front()->getOpcode() == Instruction::SDiv ||
           users.front()->getOpcode() == Instruction::SRem;
  }
};

struct Results {
  Value *quotient = nullptr, *remainder = nullptr;
};
} // namespace

static bool isQuotient(const BinaryOperator *op) {
  return op->getOpcode() == Instruction::UDiv || op->getOpcode() == Instruction::SDiv;
}

static std::vector<Division> findDivisions(Function &function) {
  std::vector<Division> found;
  for (BasicBlock &block : function) {
    MapVector<std::tuple<Value *, Value *, unsigned>, Division> own;
    for (Instruction &instruction : block) {
      auto *op = dyn_cast<BinaryOperator>(&instruction);
      if (!op || !op->isIntDivRem() || !op->getType()->isIntegerTy(64) ||
          isa<Constant>(op->getOperand(1)))
        continue;
      bool isSigned = op->getOpcode() == Instruction::SDiv || op->getOpcode() == Instruction::SRem;
      own[{op->getOperand(0), op->getOperand(1), isSigned}].users.push_back(op);
    }
    for (auto &[key, division] : own)
      found.push_back(std::move(division));
  }
  return found;
}

/// What is asked of a division, with one instruction that divides. Numbers that fit are not
/// negative.
static Results divide(IRBuilder<> &b, const Division &division, bool isShort) {
  Value *dividend = division.dividend(), *divisor = division.divisor();
  if (isShort) {
    dividend = b.CreateTrunc(dividend, b.getInt32Ty());
    divisor = b.CreateTrunc(divisor, b.getInt32Ty());
  }
  bool isSigned = division.isSigned() && !isShort;
  bool hasQuotient = any_of(division.users, isQuotient);
  bool hasRemainder = !all_of(division.users, isQuotient);
  Results results;
  if (hasQuotient) {
    results.quotient = isSigned ? b.CreateSDiv(dividend, divisor) : b.CreateUDiv(dividend, divisor);
    if (hasRemainder)
      results.remainder = b.CreateSub(dividend, b.CreateMul(results.quotient, divisor));
  } else {
    results.remainder =
        isSigned ? b.CreateSRem(dividend, divisor) : b.CreateURem(dividend, divisor);
  }
  for (Value **value : {&results.quotient, &results.remainder})
    if (*value && isShort)
      *value = b.CreateZExt(*value, b.getInt64Ty());
  return results;
}

static void replace(Division &division, const Results &results) {
  for (BinaryOperator *op : division.users) {
    Value *value = isQuotient(op) ? results.quotient : results.remainder;
    value->takeName(op);
    op->replaceAllUsesWith(value);
    op->eraseFromParent();
  }
}

static bool fitsFor(Value *value, const Instruction *place) {
  const DataLayout &layout = place->getModule()->getDataLayout();
  return computeKnownBits(value, SimplifyQuery(layout, place)).countMaxActiveBits() <= shortBits;
}

static void bypass(Division &division) {
  BinaryOperator *place = division.users.front();
  IRBuilder<> b(place);
  if (fitsFor(division.dividend(), place) && fitsFor(division.divisor(), place))
    return replace(division, divide(b, division, /*isShort=*/true));
  Value *high = b.CreateLShr(b.CreateOr(division.dividend(), division.divisor()), shortBits);
  Value *fits = b.CreateICmpEQ(high, b.getInt64(0), "fits");
  Instruction *shortEnd, *longEnd;
  SplitBlockAndInsertIfThenElse(fits, place->getIterator(), &shortEnd, &longEnd);
  b.SetInsertPoint(shortEnd);
  Results small = divide(b, division, /*isShort=*/true);
  b.SetInsertPoint(longEnd);
  Results large = divide(b, division, /*isShort=*/false);
  b.SetInsertPoint(place->getParent(), place->getParent()->begin());
  auto either = [&](Value *ifSmall, Value *ifLarge) -> Value * {
    if (!ifSmall)
      return nullptr;
    PHINode *phi = b.CreatePHI(b.getInt64Ty(), 2);
    phi->addIncoming(ifSmall, shortEnd->getParent());
    phi->addIncoming(ifLarge, longEnd->getParent());
    return phi;
  };
  replace(division,
          {either(small.quotient, large.quotient), either(small.remainder, large.remainder)});
}

PreservedAnalyses BypassDivisionsPass::run(Function &function, FunctionAnalysisManager &) {
  std::vector<Division> divisions = findDivisions(function);
  if (divisions.empty())
    return PreservedAnalyses::all();
  // Code generation bypasses divisions as well, again and without being asked, but not where code
  // is to be short.
  function.addFnAttr(Attribute::OptimizeForSize);
  OptPassGate &gate = function.getContext().getOptPassGate();
  if (gate.isEnabled() && !gate.shouldRunPass("bypass-divisions", function.getName()))
    return PreservedAnalyses::all();
  for (Division &division : divisions)
    bypass(division);
  return PreservedAnalyses::none();
}
