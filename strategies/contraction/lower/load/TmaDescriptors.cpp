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
// A box is found by a TMA descriptor of 128 bytes. A block that stays for several tiles makes its
// own in the workspace, field by field (tensormap.replace); for others a launch before does so.
// Addresses are arguments of a launch, so whoever queues, captures or prepares launches needs to
// know nothing of maps.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/TmaDescriptors.h"

#include "codegen/nvgpu/TmaDescriptor.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

static constexpr unsigned tmaDescriptorBytes = TmaOperand::bytes;
static_assert(tmaDescriptorBytes == TmaDescriptor::bytes);

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
  here.setNumber(axes, plan.batch, /*collapses=*/false, i64(0));
  e.emitIf(b.CreateICmpEQ(here.thread, i32(0)), [&] {
    for (unsigned number = 0; number < products.size(); ++number) {
      WgmmaProduct product = wgmmaLoads.makeWgmmaProduct(number);
      for (const WgmmaOperand *operand : {&product.a, &product.b})
        makeTmaDescriptor(product, *operand);
    }
    TmaDescriptor::publish(b);
  });
}

void TmaDescriptors::makeTmaDescriptor(const WgmmaProduct &product, const WgmmaOperand &operand) {
  const TmaOperand &its = *operand.how->tma;
  bool ofRows = &operand == &product.a;
  Value *map = tmaDescriptorOf(product.number, ofRows), *inside = nullptr;
  Value *first = wgmmaLoads.addressAt(
      operand, wgmmaLoads.readOffset(product, operand, i64(0), i64(0), inside));
  std::array<unsigned, 2> box = tmaBoxOf(operand, ofRows);
  SmallVector<TmaDescriptor::Dim> dims;
  for (unsigned dim = 0; dim < its.extents.size(); ++dim) {
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
    dims.push_back(
        {extent, dim ? i64(its.strides[dim - 1]) : nullptr, dim < box.size() ? box[dim] : 1});
  }
  TmaDescriptor(b, map).write(first, dims, operand.shared.elementBytes);
}

/// Makes this thread's copies see maps as they are.
void TmaDescriptors::acquireTmaDescriptors() {
  for (unsigned number = 0; number < products.size(); ++number) {
    for (bool ofRows : {true, false})
      TmaDescriptor(b, tmaDescriptorOf(number, ofRows)).acquire();
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
  TmaDescriptor map(b, tmaDescriptorOf(which, ofRows));
  auto word = [&](Value *number) { return b.CreateTrunc(number, b.getInt32Ty()); };
  SmallVector<Value *> at{nullptr, nullptr};
  for (unsigned axis : its.batch)
    at.push_back(
        word(b.CreateSub(e.values.lookup(axes.getAxes()[axis]), e.emitIndex(e.lowOf(axes, axis)))));
  std::array<unsigned, 2> box = tmaBoxOf(operand, ofRows);
  unsigned lines = linesOfMap(operand, ofRows), boxes = operand.shared.kMajor ? 1 : lines / box[0],
           offset = operand.offset + part * lines * WgmmaSharedLayout::lineBytes;
  for (unsigned n = 0; n < boxes; ++n) {
    Value *to = b.CreateInBoundsGEP(b.getInt8Ty(), stage,
                                    i32(offset + n * box[1] * WgmmaSharedLayout::lineBytes));
    Value *line = b.CreateAdd(word(operand.group->first), i32(n * box[0]));
    at[0] = operand.shared.kMajor ? word(k) : line;
    at[1] = operand.shared.kMajor ? line : word(k);
    map.copyBox(to, at, barrier);
  }
}
