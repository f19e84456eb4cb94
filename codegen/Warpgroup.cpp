//===- Warpgroup.cpp - Matrix products of four warps ----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/Warpgroup.h"
#include "codegen/Ptx.h"

#include "llvm/ADT/Twine.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

void Warpgroup::copyUnit(Value *to, Value *from, Value *exists) {
  constexpr unsigned bytes = 2 * PlaneTile::unit;
  SmallVector<Value *> operands{to, from};
  if (exists)
    operands.push_back(b.CreateSelect(exists, i32(bytes), i32(0)));
  b.CreateIntrinsic(b.getVoidTy(),
                    exists ? Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                           : Intrinsic::nvvm_cp_async_cg_shared_global_16,
                    operands);
}

Value *Warpgroup::place(const PlaneTile &tile, Value *line, Value *unit, unsigned plane) {
  constexpr unsigned inLine = PlaneTile::lineElements / PlaneTile::unit; // 8: a power of two
  Value *start = b.CreateShl(line, i32(7));
  if (!tile.alongSum) { // the panel, and the unit in it
    Value *panel = b.CreateLShr(unit, i32(3));
    start = b.CreateAdd(start, b.CreateMul(panel, i32(tile.depth() * PlaneTile::lineBytes)));
    unit = b.CreateAnd(unit, i32(inLine - 1));
  }
  Value *chunk = b.CreateAdd(unit, i32(plane * tile.depth() / tile.unitElements()));
  chunk = b.CreateXor(chunk, b.CreateAnd(line, i32(inLine - 1)));
  return b.CreateAdd(start, b.CreateShl(chunk, i32(4)));
}

/// PTX ISA, "Matrix Descriptor Format": address, leading and stride offsets in 16 bytes at bits 0, 16 and 32;
/// the swizzle of 128 bytes is a 1 at bit 62. The stride is from eight lines to the next eight. The leading
/// offset is from panel to panel; where lines are along the sum there are none.
///
/// What is the same for all steps comes first, so that a step costs one addition to the lower half.
Value *Warpgroup::descriptor(const PlaneTile &tile, Value *address, Value *first, unsigned plane,
                             unsigned step, unsigned bytes) {
  uint32_t stride = 8 * PlaneTile::lineBytes, panel = tile.depth() * PlaneTile::lineBytes;
  uint32_t leading = tile.alongSum ? 16 : panel;
  Value *offset = tile.alongSum ? b.CreateShl(first, i32(7)) : b.CreateMul(b.CreateLShr(first, i32(6)), i32(panel));
  bytes += tile.alongSum ? plane * tile.depth() * tile.elementBytes + step * stepBytes
                         : step * stepDepth * PlaneTile::lineBytes;
  Value *start = b.CreateLShr(b.CreateAnd(b.CreateAdd(address, offset), i32(0x3ffff)), i32(4));
  Value *low = b.CreateAdd(start, i32(leading / 16 << 16 | bytes / 16));
  uint64_t high = uint64_t(stride / 16) << 32 | uint64_t(1) << 62;
  return b.CreateOr(b.CreateZExt(low, b.getInt64Ty()), b.getInt64(high));
}

/// PTX ISA, "Matrix Descriptor Format", no swizzle: core matrices of eight rows of 16 bytes; the leading offset is to
/// that of the next points of the sum, the stride to that of the next eight rows.
Value *Warpgroup::coreDescriptor(Value *address, Value *offsets, unsigned bytes) {
  constexpr uint64_t coreBytes = 128;
  Value *start = b.CreateLShr(b.CreateAnd(address, i32(0x3ffff)), i32(4));
  Value *low = b.CreateAdd(b.CreateAdd(start, offsets), i32(bytes / 16));
  return b.CreateOr(b.CreateZExt(low, b.getInt64Ty()), b.getInt64(coreBytes / 16 << 32));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Inline PTX with `count` sums as its results, $0 and on, and `sums`, if any, in the same registers.
static CallInst *callOnSums(IRBuilder<> &b, Type *sumType, const std::string &text, const std::string &inputs,
                            ArrayRef<Value *> operands, ArrayRef<Value *> sums, unsigned count) {
  std::string constraints;
  for (unsigned n = 0; n < count; ++n)
    constraints += sumType->isFloatTy() ? "=f," : "=r,";
  constraints += inputs;
  SmallVector<Value *> all(operands.begin(), operands.end());
  for (auto [n, sum] : enumerate(sums)) {
    constraints += "," + std::to_string(n);
    all.push_back(sum);
  }
  constraints += ",~{memory}";
  SmallVector<Type *> types;
  for (Value *value : all)
    types.push_back(value->getType());
  auto *result = StructType::get(b.getContext(), SmallVector<Type *>(count, sumType));
  auto *type = FunctionType::get(result, types, false);
  CallInst *call = b.CreateCall(InlineAsm::get(type, text, constraints, /*hasSideEffects=*/true), all);
  call->setConvergent();
  return call;
}

Warpgroup::Sums Warpgroup::product(const std::string &text, const std::string &inputs, ArrayRef<Value *> operands,
                                   ArrayRef<Value *> sums, unsigned count) {
  CallInst *call = callOnSums(b, sumType(), text, inputs, operands, sums, count);
  Sums values;
  for (unsigned n = 0; n < count; ++n)
    values.push_back(b.CreateExtractValue(call, n));
  return values;
}

/// Of the instruction for so many columns.
std::string Warpgroup::nameOf(unsigned columns) const {
  return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) + (areBytes ? "k32." : "k16.") +
         (areIntegers() ? "s32." : "f32.") + rowType + "." + columnType;
}

Warpgroup::Sums Warpgroup::multiply(ArrayRef<Value *> sums, unsigned columns, Value *rowOperand,
                                    bool rowsAlongSum, Value *columnOperand, bool columnsAlongSum) {
  unsigned count = columns / 2;
  std::string registers;
  for (unsigned n = 0; n < count; ++n)
    registers += (n ? ", $" : "$") + std::to_string(n);
  auto number = [&](unsigned n) { return "$" + std::to_string(count + n); };
  std::string text = "{ .reg .pred p; setp.ne.b32 p, " + number(2) + ", 0; " + nameOf(columns) + " {" + registers +
                     "}, " + number(0) + ", " + number(1) + ", p";
  if (areBytes) {
    assert(rowsAlongSum && columnsAlongSum && "bytes are not transposed");
    if (areIntegers() && rowType != columnType)
      needPtx(*b.GetInsertBlock()->getModule(), 84);
    text += areIntegers() ? "; }" : ", 1, 1; }"; // signs are floats'
    return product(text, "l,l,n", {rowOperand, columnOperand, i32(!sums.empty())}, sums, count);
  }
  text += ", 1, 1, " + number(3) + ", " + number(4) + "; }";
  return product(text, "l,l,n,n,n",
                 {rowOperand, columnOperand, i32(!sums.empty()), i32(!rowsAlongSum), i32(!columnsAlongSum)},
                 sums, count);
}

Warpgroup::Sums Warpgroup::multiplyWords(ArrayRef<Value *> sums, unsigned columns, ArrayRef<Value *> rowWords,
                                         Value *columnOperand, bool columnsAlongSum) {
  assert(!areBytes && "words are two numbers of 16 bits");
  unsigned count = columns / 2;
  std::string registers;
  for (unsigned n = 0; n < count; ++n)
    registers += (n ? ", $" : "$") + std::to_string(n);
  auto number = [&](unsigned n) { return "$" + std::to_string(count + n); };
  std::string text = "{ .reg .pred p; setp.ne.b32 p, " + number(5) + ", 0; " + nameOf(columns) + " {" + registers +
                     "}, {" + number(0) + ", " + number(1) + ", " + number(2) + ", " + number(3) + "}, " +
                     number(4) + ", p, 1, 1, " + number(6) + "; }";
  SmallVector<Value *> operands(rowWords.begin(), rowWords.end());
  operands.append({columnOperand, i32(!sums.empty()), i32(!columnsAlongSum)});
  return product(text, "r,r,r,r,l,n,n", operands, sums, count);
}

CallInst *tegula::waitWithSums(IRBuilder<> &b, ArrayRef<Value *> sums, unsigned groups) {
  return callOnSums(b, sums.front()->getType(), "wgmma.wait_group.sync.aligned $" + std::to_string(sums.size()) + ";", "n",
                    {b.getInt32(groups)}, sums, sums.size());
}

