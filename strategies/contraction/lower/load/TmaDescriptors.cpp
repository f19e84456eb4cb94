//===- TmaDescriptors.cpp - TMA descriptors and loads ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands that are copied as they are and whose strides allow it
// (strategies/contraction/plan/TmaOperand.h) come as boxes of their tensor, in the swizzle of 128
// bytes that wgmma reads (cp.async.bulk.tensor). What lies beyond the last line or point is 0.
//
// A box is found by a tensor map of 128 bytes. A block that stays for several tiles makes its own
// in the workspace, field by field (tensormap.replace); for others a launch before does so.
// Addresses are arguments of a launch, so whoever queues, captures or prepares launches needs to
// know nothing of maps.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/TmaDescriptors.h"

#include "codegen/llvm/PtxVersion.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

static constexpr unsigned tmaDescriptorBytes = TmaOperand::bytes;
/// ptxas of before PTX 8.5 takes strides in units of 16 bytes.
static constexpr unsigned minPtxVersion = 85;

Value *TmaDescriptors::tmaDescriptorOf(unsigned product, bool ofRows) {
  int64_t which = 2 * product + !ofRows;
  Value *start = e.emitSize(numbers.workspaceBytes() - numbers.tmaDescriptorsBytes());
  if (numbers.makesTmaDescriptors())
    start = b.CreateAdd(
        start, b.CreateMul(wide(here.block), i64(2 * products.size() * tmaDescriptorBytes)));
  return b.CreateInBoundsGEP(b.getInt8Ty(), context.workspace,
                             b.CreateAdd(start, i64(which * tmaDescriptorBytes)));
}

/// Lines of the operand's tile that come by one map: columns of products that share the tile lie
/// side by side.
unsigned TmaDescriptors::linesOfMap(const WgmmaOperand &operand, bool ofRows) const {
  return ofRows ? operand.shared.extent : operand.shared.extent / tile.joint;
}

/// A line of shared memory is one of the operand, or 64 neighbours of a panel.
std::array<unsigned, 2> TmaDescriptors::tmaBoxOf(const WgmmaOperand &operand, bool ofRows) const {
  unsigned inLine = WgmmaSharedLayout::lineBytes / operand.shared.elementBytes;
  return {inLine, operand.shared.kMajor ? linesOfMap(operand, ofRows) : operand.shared.depth()};
}

/// By one block of a launch before.
void TmaDescriptors::emitTmaDescriptors() {
  here.begin();
  context.split = i64(0);
  makeTmaDescriptors();
}

/// By the first thread.
void TmaDescriptors::makeTmaDescriptors() {
  needPtx(*b.GetInsertBlock()->getModule(), minPtxVersion);
  here.setNumber(axes, plan.batch, /*collapses=*/false, i64(0));
  e.emitIf(b.CreateICmpEQ(here.thread, i32(0)), [&] {
    for (unsigned number = 0; number < products.size(); ++number) {
      WgmmaProduct product = wgmmaLoads.makeWgmmaProduct(number);
      for (const WgmmaOperand *operand : {&product.a, &product.b})
        makeTmaDescriptor(product, *operand);
    }
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_fence_proxy_tensormap_generic_release_gpu, {});
  });
}

/// PTX ISA, "tensormap.replace": bytes or words of 16 bits (elements are only copied), no
/// interleaving, the swizzle of 128 bytes, zeros outside.
void TmaDescriptors::makeTmaDescriptor(const WgmmaProduct &product, const WgmmaOperand &operand) {
  const TmaOperand &its = *operand.how->tma;
  bool ofRows = &operand == &product.a;
  Value *map = tmaDescriptorOf(product.number, ofRows), *inside = nullptr;
  Value *first = wgmmaLoads.addressAt(
      operand, wgmmaLoads.readOffset(product, operand, i64(0), i64(0), inside));
  constexpr unsigned noInterleaving = 0, swizzleOf128 = 3, zeros = 0;
  for (unsigned n = 0; n < tmaDescriptorBytes / 8; ++n)
    b.CreateAlignedStore(i64(0), b.CreateInBoundsGEP(b.getInt8Ty(), map, i64(8 * n)), Align(8));
  auto replace = [&](Intrinsic::ID field, ArrayRef<Value *> values) {
    SmallVector<Value *> arguments{map};
    arguments.append(values.begin(), values.end());
    b.CreateIntrinsic(b.getVoidTy(), field, arguments);
  };
  replace(Intrinsic::nvvm_tensormap_replace_global_address,
          b.CreatePtrToInt(first, b.getInt64Ty()));
  replace(Intrinsic::nvvm_tensormap_replace_rank, i32(its.extents.size() - 1));
  std::array<unsigned, 2> box = tmaBoxOf(operand, ofRows);
  for (unsigned dim = 0; dim < its.extents.size(); ++dim) {
    replace(Intrinsic::nvvm_tensormap_replace_box_dim,
            {i32(dim), i32(dim < box.size() ? box[dim] : 1)});
    // Points of the sum and lines, neighbours first, then axes of the batch.
    SmallVector<unsigned> group;
    if (dim >= 2)
      group.push_back(its.batch[dim - 2]);
    else if ((dim == 1) == operand.how->kMajor)
      group = ofRows ? plan.rows : plan.columns;
    Value *extent =
        tgl::knownPoints(axes, group)
            ? i32(its.extents[dim])
            : b.CreateTrunc(e.emitSize(numbers.pointsOnHost(axes, group)), b.getInt32Ty());
    replace(Intrinsic::nvvm_tensormap_replace_global_dim, {i32(dim), extent});
    replace(Intrinsic::nvvm_tensormap_replace_element_stride, {i32(dim), i32(1)});
    if (dim > 0)
      replace(Intrinsic::nvvm_tensormap_replace_global_stride,
              {i32(dim - 1), i64(its.strides[dim - 1])});
  }
  replace(Intrinsic::nvvm_tensormap_replace_elemtype, i32(operand.shared.elementBytes - 1));
  replace(Intrinsic::nvvm_tensormap_replace_interleave_layout, i32(noInterleaving));
  replace(Intrinsic::nvvm_tensormap_replace_swizzle_mode, i32(swizzleOf128));
  replace(Intrinsic::nvvm_tensormap_replace_fill_mode, i32(zeros));
}

/// Makes this thread's copies see maps as they are.
void TmaDescriptors::acquireTmaDescriptors() {
  for (unsigned number = 0; number < products.size(); ++number) {
    for (bool ofRows : {true, false}) {
      auto *type = FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false);
      InlineAsm *fence = InlineAsm::get(
          type, "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l,~{memory}",
          /*hasSideEffects=*/true);
      b.CreateCall(fence, b.CreateAddrSpaceCast(tmaDescriptorOf(number, ofRows), b.getPtrTy()));
    }
  }
}

void TmaDescriptors::loadStage(const WgmmaProduct &product, Value *number, Value *stage,
                               Value *barrier) {
  int64_t depth = product.a.shared.depth();
  if (!tile.accumulated) {
    Value *k = b.CreateMul(number, i64(depth));
    loadTma(product.a, product.number, /*ofRows=*/true, 0, k, stage, barrier);
    for (unsigned part = 0; part < tile.joint; ++part)
      loadTma(product.b, product.number + part, /*ofRows=*/false, part, k, stage, barrier);
    return;
  }
  Value *first = i64(0);
  for (unsigned which = 0; which < products.size(); ++which) {
    Value *end = b.CreateAdd(first, wgmmaLoads.stepsOf(plan.products[which], depth));
    Value *isOwn = b.CreateAnd(b.CreateICmpSGE(number, first), b.CreateICmpSLT(number, end));
    e.emitIf(isOwn, [&] {
      Value *k = b.CreateMul(b.CreateSub(number, first), i64(depth));
      loadTma(product.a, which, /*ofRows=*/true, 0, k, stage, barrier);
      loadTma(product.b, which, /*ofRows=*/false, 0, k, stage, barrier);
    });
    first = end;
  }
}

/// Starts the copies of the part of the operand's tile that comes by the map of `which` product's
/// side, whose first point of the sum is `k` (i64).
void TmaDescriptors::loadTma(const WgmmaOperand &operand, unsigned which, bool ofRows,
                             unsigned part, Value *k, Value *stage, Value *barrier) {
  const TmaOperand &its = *(ofRows ? products[which].a : products[which].b).tma;
  Value *map = tmaDescriptorOf(which, ofRows);
  auto word = [&](Value *number) { return b.CreateTrunc(number, b.getInt32Ty()); };
  std::string numbers;
  SmallVector<Value *> arguments{nullptr, b.CreateAddrSpaceCast(map, b.getPtrTy()), nullptr,
                                 nullptr};
  for (unsigned axis : its.batch)
    arguments.push_back(
        word(b.CreateSub(e.values.lookup(axes.getAxes()[axis]), e.emitIndex(e.lowOf(axes, axis)))));
  arguments.push_back(b.CreatePtrToInt(barrier, b.getInt32Ty()));
  unsigned rank = its.extents.size();
  std::string text = "cp.async.bulk.tensor." + std::to_string(rank) +
                     "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {",
              constraints = "r,l";
  for (unsigned dim = 0; dim < rank; ++dim) {
    text += (dim ? ", $" : "$") + std::to_string(2 + dim);
    constraints += ",r";
  }
  text += "}], [$" + std::to_string(2 + rank) + "];";
  constraints += ",r,~{memory}";
  SmallVector<Type *> types(arguments.size(), b.getInt32Ty());
  types[1] = b.getPtrTy();
  InlineAsm *copy =
      InlineAsm::get(FunctionType::get(b.getVoidTy(), types, false), text, constraints,
                     /*hasSideEffects=*/true);
  std::array<unsigned, 2> box = tmaBoxOf(operand, ofRows);
  unsigned lines = linesOfMap(operand, ofRows), boxes = operand.shared.kMajor ? 1 : lines / box[0],
           offset = operand.offset + part * lines * WgmmaSharedLayout::lineBytes;
  for (unsigned n = 0; n < boxes; ++n) {
    Value *to = b.CreateInBoundsGEP(b.getInt8Ty(), stage,
                                    i32(offset + n * box[1] * WgmmaSharedLayout::lineBytes));
    Value *line = b.CreateAdd(word(operand.group->first), i32(n * box[0]));
    arguments[0] = b.CreatePtrToInt(to, b.getInt32Ty());
    arguments[2] = operand.shared.kMajor ? word(k) : line;
    arguments[3] = operand.shared.kMajor ? line : word(k);
    b.CreateCall(copy, arguments);
  }
}
