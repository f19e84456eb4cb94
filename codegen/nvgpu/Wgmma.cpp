//===- Wgmma.cpp - Warpgroup-level matrix products (wgmma) ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/nvgpu/Wgmma.h"
#include "codegen/llvm/PtxVersion.h"

#include "llvm/ADT/Twine.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

void Wgmma::copyChunk(Value *to, Value *from, Value *exists) {
  constexpr unsigned bytes = 2 * WgmmaSharedLayout::chunk;
  SmallVector<Value *> operands{to, from};
  if (exists)
    operands.push_back(b.CreateSelect(exists, i32(bytes), i32(0)));
  b.CreateIntrinsic(b.getVoidTy(),
                    exists ? Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                           : Intrinsic::nvvm_cp_async_cg_shared_global_16,
                    operands);
}

Value *Wgmma::swizzledOffset(const WgmmaSharedLayout &tile, Value *line, Value *chunk,
                             unsigned term) {
  constexpr unsigned inLine =
      WgmmaSharedLayout::lineElements / WgmmaSharedLayout::chunk; // 8: a power of two
  Value *start = b.CreateShl(line, i32(7));
  if (!tile.kMajor) { // the panel, and the unit in it
    Value *panel = b.CreateLShr(chunk, i32(3));
    start =
        b.CreateAdd(start, b.CreateMul(panel, i32(tile.depth() * WgmmaSharedLayout::lineBytes)));
    chunk = b.CreateAnd(chunk, i32(inLine - 1));
  }
  Value *swizzled = b.CreateAdd(chunk, i32(term * tile.depth() / tile.chunkElements()));
  swizzled = b.CreateXor(swizzled, b.CreateAnd(line, i32(inLine - 1)));
  return b.CreateAdd(start, b.CreateShl(swizzled, i32(4)));
}

/// PTX ISA, "Matrix Descriptor Format": address, leading and stride offsets in 16 bytes at bits 0,
/// 16 and 32; the swizzle of 128 bytes is a 1 at bit 62. The stride is from eight lines to the next
/// eight. The leading offset is from panel to panel; where lines are along the sum there are none.
///
/// The matrix descriptor of one step. The fields that all steps share are computed first, so that a
/// step costs one addition to the lower half.
Value *Wgmma::descriptor(const WgmmaSharedLayout &tile, Value *address, Value *first, unsigned term,
                         unsigned step, unsigned bytes) {
  uint32_t stride = 8 * WgmmaSharedLayout::lineBytes,
           panel = tile.depth() * WgmmaSharedLayout::lineBytes;
  uint32_t leading = tile.kMajor ? 16 : panel;
  Value *offset = tile.kMajor ? b.CreateShl(first, i32(7))
                              : b.CreateMul(b.CreateLShr(first, i32(6)), i32(panel));
  bytes += tile.kMajor ? term * tile.depth() * tile.elementBytes + step * stepBytes
                       : step * stepDepth * WgmmaSharedLayout::lineBytes;
  Value *start = b.CreateLShr(b.CreateAnd(b.CreateAdd(address, offset), i32(0x3ffff)), i32(4));
  Value *low = b.CreateAdd(start, i32(leading / 16 << 16 | bytes / 16));
  uint64_t high = uint64_t(stride / 16) << 32 | uint64_t(1) << 62;
  return b.CreateOr(b.CreateZExt(low, b.getInt64Ty()), b.getInt64(high));
}

/// PTX ISA, "Matrix Descriptor Format", no swizzle: core matrices of eight rows of 16 bytes; the
/// leading offset is to that of the next points of the sum, the stride to that of the next eight
/// rows.
Value *Wgmma::coreDescriptor(Value *address, Value *offsets, unsigned bytes) {
  constexpr uint64_t coreBytes = 128;
  Value *start = b.CreateLShr(b.CreateAnd(address, i32(0x3ffff)), i32(4));
  Value *low = b.CreateAdd(b.CreateAdd(start, offsets), i32(bytes / 16));
  return b.CreateOr(b.CreateZExt(low, b.getInt64Ty()), b.getInt64(coreBytes / 16 << 32));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Inline PTX with `count` sums as its results, $0 and on, and `accumulators`, if any, in the same
/// registers.
static CallInst *callOnAccumulators(IRBuilder<> &b, Type *accumulatorType, const std::string &text,
                                    const std::string &inputs, ArrayRef<Value *> operands,
                                    ArrayRef<Value *> accumulators, unsigned count) {
  std::string constraints;
  for (unsigned n = 0; n < count; ++n)
    constraints += accumulatorType->isFloatTy() ? "=f," : "=r,";
  constraints += inputs;
  SmallVector<Value *> all(operands.begin(), operands.end());
  for (auto [n, sum] : enumerate(accumulators)) {
    constraints += "," + std::to_string(n);
    all.push_back(sum);
  }
  constraints += ",~{memory}";
  SmallVector<Type *> types;
  for (Value *value : all)
    types.push_back(value->getType());
  auto *result = StructType::get(b.getContext(), SmallVector<Type *>(count, accumulatorType));
  auto *type = FunctionType::get(result, types, false);
  CallInst *call =
      b.CreateCall(InlineAsm::get(type, text, constraints, /*hasSideEffects=*/true), all);
  call->setConvergent();
  return call;
}

Wgmma::Accumulators Wgmma::product(const std::string &text, const std::string &inputs,
                                   ArrayRef<Value *> operands, ArrayRef<Value *> accumulators,
                                   unsigned count) {
  CallInst *call =
      callOnAccumulators(b, accumulatorType(), text, inputs, operands, accumulators, count);
  Accumulators values;
  for (unsigned n = 0; n < count; ++n)
    values.push_back(b.CreateExtractValue(call, n));
  return values;
}

/// The name of the instruction that multiplies by so many columns.
std::string Wgmma::nameOf(unsigned columns) const {
  return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) +
         (areBytes ? "k32." : "k16.") + (areIntegers() ? "s32." : "f32.") + aType + "." + bType;
}

Wgmma::Accumulators Wgmma::multiply(ArrayRef<Value *> accumulators, unsigned columns,
                                    Value *aDescriptor, bool aKMajor, Value *bDescriptor,
                                    bool bKMajor) {
  unsigned count = columns / 2;
  std::string registers;
  for (unsigned n = 0; n < count; ++n)
    registers += (n ? ", $" : "$") + std::to_string(n);
  auto number = [&](unsigned n) { return "$" + std::to_string(count + n); };
  std::string text = "{ .reg .pred p; setp.ne.b32 p, " + number(2) + ", 0; " + nameOf(columns) +
                     " {" + registers + "}, " + number(0) + ", " + number(1) + ", p";
  if (areBytes) {
    assert(aKMajor && bKMajor && "bytes are not transposed");
    if (areIntegers() && aType != bType)
      needPtx(*b.GetInsertBlock()->getModule(), 84);
    text += areIntegers() ? "; }" : ", 1, 1; }"; // signs are floats'
    return product(text, "l,l,n", {aDescriptor, bDescriptor, i32(!accumulators.empty())},
                   accumulators, count);
  }
  text += ", 1, 1, " + number(3) + ", " + number(4) + "; }";
  return product(
      text, "l,l,n,n,n",
      {aDescriptor, bDescriptor, i32(!accumulators.empty()), i32(!aKMajor), i32(!bKMajor)},
      accumulators, count);
}

Wgmma::Accumulators Wgmma::multiplyWords(ArrayRef<Value *> accumulators, unsigned columns,
                                         ArrayRef<Value *> aWords, Value *bDescriptor,
                                         bool bKMajor) {
  assert(!areBytes && "words are two numbers of 16 bits");
  unsigned count = columns / 2;
  std::string registers;
  for (unsigned n = 0; n < count; ++n)
    registers += (n ? ", $" : "$") + std::to_string(n);
  auto number = [&](unsigned n) { return "$" + std::to_string(count + n); };
  std::string text = "{ .reg .pred p; setp.ne.b32 p, " + number(5) + ", 0; " + nameOf(columns) +
                     " {" + registers + "}, {" + number(0) + ", " + number(1) + ", " + number(2) +
                     ", " + number(3) + "}, " + number(4) + ", p, 1, 1, " + number(6) + "; }";
  SmallVector<Value *> operands(aWords.begin(), aWords.end());
  operands.append({bDescriptor, i32(!accumulators.empty()), i32(!bKMajor)});
  return product(text, "r,r,r,r,l,n,n", operands, accumulators, count);
}

CallInst *tegula::waitTyingAccumulators(IRBuilder<> &b, ArrayRef<Value *> accumulators,
                                        unsigned groups) {
  return callOnAccumulators(b, accumulators.front()->getType(),
                            "wgmma.wait_group.sync.aligned $" +
                                std::to_string(accumulators.size()) + ";",
                            "n", {b.getInt32(groups)}, accumulators, accumulators.size());
}
