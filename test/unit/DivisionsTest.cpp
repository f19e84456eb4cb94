//===- DivisionsTest.cpp - Divisions in 32 or 64 bits ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/HostTarget.h"
#include "codegen/cpu/Jit.h"
#include "codegen/llvm/BypassDivisions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include "gtest/gtest.h"
#include <array>

using namespace llvm;
using namespace tegula;

namespace {

/// `void f(i64 x, i64 y, ptr results)`: what `body` makes of both, after the pass.
struct Divisions {
  LLVMContext context;
  std::unique_ptr<Module> module = std::make_unique<Module>("divisions", context);
  Function *function;

  explicit Divisions(function_ref<void(IRBuilder<> &, Value *x, Value *y, Value *results)> body) {
    IRBuilder<> b(context);
    auto *type =
        FunctionType::get(b.getVoidTy(), {b.getInt64Ty(), b.getInt64Ty(), b.getPtrTy()}, false);
    function = Function::Create(type, GlobalValue::ExternalLinkage, "f", *module);
    b.SetInsertPoint(BasicBlock::Create(context, "entry", function));
    body(b, function->getArg(0), function->getArg(1), function->getArg(2));
    b.CreateRetVoid();
    FunctionAnalysisManager analyses;
    BypassDivisionsPass().run(*function, analyses);
    EXPECT_FALSE(verifyModule(*module, &errs()));
  }

  unsigned count(unsigned bits) const {
    return llvm::count_if(instructions(*function), [&](const Instruction &instruction) {
      return instruction.isIntDivRem() && instruction.getType()->isIntegerTy(bits);
    });
  }

  using Code = void (*)(int64_t, int64_t, int64_t *);
  Code compile() {
    const HostTarget &target = HostTarget::get();
    std::unique_ptr<TargetMachine> machine = target.createMachine();
    applyTarget(*module, target, *machine);
    loaded = cantFail(LoadedCode::load(emitObject(*module, *machine)));
    return reinterpret_cast<Code>(cantFail(loaded->lookup("f")));
  }
  std::unique_ptr<LoadedCode> loaded;
};

void storeTo(IRBuilder<> &b, Value *results, ArrayRef<Value *> values) {
  for (auto [index, value] : enumerate(values))
    b.CreateStore(value, b.CreateConstGEP1_64(b.getInt64Ty(), results, index));
}

TEST(BypassDivisions, AreTheSameWhateverFits) {
  Divisions divisions([](IRBuilder<> &b, Value *x, Value *y, Value *results) {
    Value *signedQuotient = b.CreateSDiv(x, y), *quotient = b.CreateUDiv(x, y);
    // The remainder of a quotient by the same number stands in the block after the first division.
    Value *again = b.CreateURem(quotient, y);
    storeTo(b, results, {quotient, b.CreateURem(x, y), signedQuotient, b.CreateSRem(x, y), again});
  });
  EXPECT_EQ(divisions.count(64), 3u); // one for each pair of numbers and sign
  EXPECT_EQ(divisions.count(32), 3u);
  Divisions::Code code = divisions.compile();
  constexpr int64_t most = std::numeric_limits<int64_t>::max(),
                    least = std::numeric_limits<int64_t>::min();
  const int64_t numbers[] = {
      0,          1,          2,          7,           127,         1000003,
      0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x100000001, 0x123456789abcdef,
      most,       least,      -1,         -7,          -0x80000000, -0x100000000};
  for (int64_t x : numbers)
    for (int64_t y : numbers) {
      if (y == 0 || (x == least && y == -1))
        continue;
      std::array<int64_t, 5> found{};
      code(x, y, found.data());
      uint64_t quotient = uint64_t(x) / uint64_t(y);
      std::array<int64_t, 5> expected{int64_t(quotient), int64_t(uint64_t(x) % uint64_t(y)), x / y,
                                      x % y, int64_t(quotient % uint64_t(y))};
      EXPECT_EQ(found, expected) << x << " and " << y;
    }
}

TEST(BypassDivisions, AskNothingThatIsKnown) {
  Divisions known([](IRBuilder<> &b, Value *x, Value *y, Value *results) {
    Value *small = b.CreateAnd(x, b.getInt64(0xffffffff)),
          *smaller = b.CreateZExt(b.CreateTrunc(y, b.getInt16Ty()), b.getInt64Ty());
    storeTo(b, results, {b.CreateUDiv(small, smaller), b.CreateSRem(smaller, small)});
  });
  EXPECT_EQ(known.count(64), 0u);
  EXPECT_EQ(known.count(32), 2u);
  EXPECT_EQ(known.function->size(), 1u); // blocks
  Divisions constant([](IRBuilder<> &b, Value *x, Value *, Value *results) {
    storeTo(b, results,
            {b.CreateUDiv(x, b.getInt64(12)),
             b.CreateSRem(x, b.getInt64(7))}); // become multiplications
  });
  EXPECT_EQ(constant.count(64), 2u);
  EXPECT_EQ(constant.count(32), 0u);
}

} // namespace
