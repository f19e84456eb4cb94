//===- BF16Terms.cpp - Values of f32 as terms of bf16 -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/nvgpu/BF16Terms.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;

Value *tegula::upperHalves(IRBuilder<> &b, Value *first, Value *second) {
  constexpr uint32_t bytes = 0x7632; // 2 and 3 of each (PTX ISA, "prmt")
  Type *word = b.getInt32Ty();
  return b.CreateIntrinsic(
      word, Intrinsic::nvvm_prmt,
      {b.CreateBitCast(first, word), b.CreateBitCast(second, word), b.getInt32(bytes)});
}

Value *tegula::withoutUpperHalf(IRBuilder<> &b, Value *value) {
  Type *type = value->getType(), *words = type->getWithNewType(b.getInt32Ty());
  Value *kept = b.CreateAnd(b.CreateBitCast(value, words), ConstantInt::get(words, 0xffff0000));
  return b.CreateFSub(value, b.CreateBitCast(kept, type));
}
