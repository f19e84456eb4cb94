//===- PackedGemmTile.cpp - The register-tiled micro-kernel of CPU matrix products ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/PackedGemm.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;

namespace tegula {

/// `turn(tile, to)`: the tile [count][lanes] turned around to [lanes][count], rows `stride`
/// elements apart. One function for all packing of a module: shuffles are what takes longest to
/// compile.
///
/// A perfect shuffle of all elements (first half and second half interleaved) rotates the bits of
/// an element's number by one: as many of them as `count` has bits bring the rows' bits to the end.
Function *PackedGemmEmitter::turnKernel(unsigned count, unsigned stride) {
  std::string name = ("tegula.turn." + Twine(element->isDoubleTy() ? "f64." : "f32.") +
                      Twine(count) + "x" + Twine(lanes) + "." + Twine(stride))
                         .str();
  if (Function *existing = e.module.getFunction(name))
    return existing;
  IRBuilder<> m(b.getContext());
  auto *signature = FunctionType::get(m.getVoidTy(), {m.getPtrTy(), m.getPtrTy()}, false);
  auto *function = Function::Create(signature, GlobalValue::InternalLinkage, name, e.module);
  function->addFnAttr(Attribute::NoInline);
  function->addFnAttr(Attribute::NoUnwind);
  for (unsigned k : {0u, 1u})
    function->addParamAttr(k, Attribute::NoAlias);
  m.SetInsertPoint(BasicBlock::Create(b.getContext(), "entry", function));
  auto place = [&](unsigned argument, int64_t elements) {
    return m.CreateConstInBoundsGEP1_64(element, function->getArg(argument), elements);
  };
  auto *type = FixedVectorType::get(element, lanes);
  SmallVector<Value *> vectors;
  for (unsigned row = 0; row < count; ++row)
    vectors.push_back(m.CreateAlignedLoad(type, place(0, int64_t(row) * lanes), Align(cacheLine)));
  for (unsigned round = 1; round < count; round *= 2) {
    SmallVector<Value *> next;
    for (unsigned row = 0; row < count; ++row) {
      SmallVector<int> pattern;
      for (unsigned lane = 0; lane < lanes; ++lane)
        pattern.push_back((row % 2) * (lanes / 2) + lane / 2 + (lane % 2) * lanes);
      next.push_back(
          m.CreateShuffleVector(vectors[row / 2], vectors[row / 2 + count / 2], pattern));
    }
    vectors = std::move(next);
  }
  assert((stride == count || count == lanes) && "a vector is a row of the turned tile, or several");
  int64_t step = stride == count ? lanes : stride;
  for (auto [k, vector] : enumerate(vectors))
    m.CreateAlignedStore(vector, place(1, int64_t(k) * step), Align(elementBytes));
  m.CreateRetVoid();
  return function;
}

/// `micro(rows, columns, tile, length, accumulate)`: adds the product of two packed panels to a
/// tile, or sets it. A panel's sum starts at 0 and is added once: what a sum of thousands loses
/// grows with the length of a panel and the number of panels, not with their product.
Function *PackedGemmEmitter::microKernel() {
  std::string name = ("tegula.tile." + Twine(element->isDoubleTy() ? "f64." : "f32.") +
                      Twine(tileRows) + "x" + Twine(tileColumns()))
                         .str();
  if (Function *existing = e.module.getFunction(name))
    return existing;
  LLVMContext &context = b.getContext();
  IRBuilder<> m(context);
  Type *ptr = m.getPtrTy();
  auto *type =
      FunctionType::get(m.getVoidTy(), {ptr, ptr, ptr, m.getInt64Ty(), m.getInt1Ty()}, false);
  auto *function = Function::Create(type, GlobalValue::InternalLinkage, name, e.module);
  function->addFnAttr(Attribute::NoInline);
  function->addFnAttr(Attribute::NoUnwind);
  for (unsigned k : {0u, 1u, 2u})
    function->addParamAttr(k, Attribute::NoAlias);
  Value *rows = function->getArg(0), *columns = function->getArg(1), *tile = function->getArg(2);
  auto *entry = BasicBlock::Create(context, "entry", function);
  auto *loop = BasicBlock::Create(context, "loop", function);
  auto *done = BasicBlock::Create(context, "done", function);
  auto *old = BasicBlock::Create(context, "old", function);
  auto *store = BasicBlock::Create(context, "store", function);
  auto *vector = FixedVectorType::get(element, lanes);
  auto tileAt = [&](unsigned k) { return m.CreateConstInBoundsGEP1_64(vector, tile, k); };
  unsigned count = tileRows * tileVectors;

  m.SetInsertPoint(entry);
  Constant *zero = Constant::getNullValue(vector);
  m.CreateCondBr(m.CreateICmpSGT(function->getArg(3), m.getInt64(0)), loop, done);
  m.SetInsertPoint(loop);
  PHINode *k = m.CreatePHI(m.getInt64Ty(), 2);
  k->addIncoming(m.getInt64(0), entry);
  SmallVector<PHINode *> sums;
  for (unsigned n = 0; n < count; ++n) {
    sums.push_back(m.CreatePHI(vector, 2));
    sums.back()->addIncoming(zero, entry);
  }
  Value *column = m.CreateInBoundsGEP(vector, columns, m.CreateMul(k, m.getInt64(tileVectors)));
  SmallVector<Value *> line;
  for (unsigned v = 0; v < tileVectors; ++v)
    line.push_back(m.CreateAlignedLoad(vector, m.CreateConstInBoundsGEP1_64(vector, column, v),
                                       Align(cacheLine)));
  Value *row = m.CreateInBoundsGEP(element, rows, m.CreateMul(k, m.getInt64(tileRows)));
  for (unsigned r = 0; r < tileRows; ++r) {
    Value *one = m.CreateAlignedLoad(element, m.CreateConstInBoundsGEP1_64(element, row, r),
                                     Align(elementBytes));
    Value *wide = m.CreateVectorSplat(lanes, one);
    for (unsigned v = 0; v < tileVectors; ++v) {
      PHINode *sum = sums[r * tileVectors + v];
      sum->addIncoming(m.CreateIntrinsic(vector, Intrinsic::fmuladd, {wide, line[v], sum}), loop);
    }
  }
  Value *next = m.CreateAdd(k, m.getInt64(1), "", true, true);
  k->addIncoming(next, loop);
  m.CreateCondBr(m.CreateICmpEQ(next, function->getArg(3)), done, loop);
  m.SetInsertPoint(done);
  SmallVector<Value *> results;
  for (unsigned n = 0; n < count; ++n) {
    PHINode *result = m.CreatePHI(vector, 2);
    result->addIncoming(zero, entry);
    result->addIncoming(sums[n]->getIncomingValueForBlock(loop), loop);
    results.push_back(result);
  }
  m.CreateCondBr(function->getArg(4), old, store);
  m.SetInsertPoint(old);
  SmallVector<Value *> added;
  for (unsigned n = 0; n < count; ++n)
    added.push_back(
        m.CreateFAdd(results[n], m.CreateAlignedLoad(vector, tileAt(n), Align(cacheLine))));
  m.CreateBr(store);
  m.SetInsertPoint(store);
  SmallVector<PHINode *> stored;
  for (unsigned n = 0; n < count; ++n) {
    stored.push_back(m.CreatePHI(vector, 2));
    stored.back()->addIncoming(results[n], done);
    stored.back()->addIncoming(added[n], old);
  }
  for (unsigned n = 0; n < count; ++n)
    m.CreateAlignedStore(stored[n], tileAt(n), Align(cacheLine));
  m.CreateRetVoid();
  return function;
}

} // namespace tegula
