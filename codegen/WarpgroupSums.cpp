//===- WarpgroupSums.cpp - The sums of a tile by warpgroups ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step's products are under way while the copies of a later one are, and while elements of the next are
// loaded and stored. Sums of values of f32 are WarpgroupRoles.cpp's.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

void DeviceContraction::storeGroupSums(ArrayRef<Value *> sums, unsigned base) {
  // Places are a constant from the first, which the optimiser does not see.
  TilePlace first = groupSum(b, tile, here.thread, here.lane, i32(0));
  Value *inGroup = b.CreateSub(first.column, groupCorner(b, tile, here.thread).column);
  Value *place = here.sumPlace(first.row, b.CreateAdd(here.placedCorner(), inGroup), base);
  for (unsigned number = 0; number < sums.size(); number += 2) {
    unsigned further = number / 2 % 2 * 8 * sumsPitch() + number / 4 * 8;
    storePair(sums[number], sums[number + 1], b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), place, further * 4));
  }
}

Warpgroup DeviceContraction::warpgroupOf(const PlaneProduct &product) {
  if (isBytes(product.type))
    return Warpgroup(b, nameOfByte(*product.row.how), nameOfByte(*product.column.how));
  return Warpgroup(b, product.type == Multiplicand::BF16);
}

DeviceContraction::Sums DeviceContraction::multiplyPlanes(const PlaneProduct &product, Value *stage,
                                                          ArrayRef<Value *> sums) {
  return multiplyPlanes(product, stage, sums, 0, groupColumns(tile));
}

void DeviceContraction::forPlanes(const PlaneProduct &product,
                                  function_ref<void(unsigned rowPlane, unsigned columnPlane)> multiply) {
  // Small products first: what is cut off is as small as the sum so far.
  if (product.column.planes > 1)
    multiply(0, 1);
  if (product.row.planes > 1)
    multiply(1, 0);
  multiply(0, 0);
}

/// Starts the products of a stage, `sums` (none: 0) added.
DeviceContraction::Sums DeviceContraction::multiplyPlanes(const PlaneProduct &product, Value *stage,
                                                          ArrayRef<Value *> sums, unsigned firstColumn,
                                                          unsigned columns) {
  Warpgroup warps = warpgroupOf(product);
  TilePlace first = groupCorner(b, tile, here.thread);
  Value *address = b.CreatePtrToInt(stage, b.getInt32Ty());
  Sums result(sums.begin(), sums.end());
  auto multiply = [&](unsigned step, unsigned rowPlane, unsigned columnPlane) {
    const PlaneTile &row = product.row.shared, &column = product.column.shared;
    Value *rowOperand = warps.descriptor(row, b.CreateAdd(address, i32(product.row.offset)), first.row,
                                         rowPlane, step);
    Value *columnOperand = warps.descriptor(column, b.CreateAdd(address, i32(product.column.offset)),
                                            first.column, columnPlane, step, firstColumn * PlaneTile::lineBytes);
    result = warps.multiply(result, columns, rowOperand, row.alongSum, columnOperand, column.alongSum);
  };
  unsigned steps = PlaneTile::lineBytes / product.row.shared.planes / Warpgroup::stepBytes;
  auto multiplyAll = [&](unsigned rowPlane, unsigned columnPlane) {
    for (unsigned step = 0; step < steps; ++step)
      multiply(step, rowPlane, columnPlane);
  };
  forPlanes(product, multiplyAll);
  async::commitProducts(b);
  return result;
}

/// Of 16-bit numbers; shared memory is free for sums after a barrier.
DeviceContraction::Sums DeviceContraction::sumUpByWarpgroups(const PlaneProduct &product) {
  Warpgroup warps(b, product.type == Multiplicand::BF16);
  unsigned ahead = ringStages() - 2;
  bool copies = product.copies(), evaluates = product.evaluates();
  Value *total = product.sum.steps;
  auto copy = [&](Value *number, Value *stage) {
    e.emitIf(b.CreateICmpSLT(number, total),
             [&] { copyUnits(product, stepInSum(product.sum, number), planeStage(product, stage)); });
    return async::commitCopies(b);
  };
  SmallVector<Value *> ofStages; // copies under way, of the next stage first
  for (unsigned number = 0; copies && number < ahead; ++number)
    ofStages.push_back(copy(i64(number), i32(number)));
  SmallVector<Value *> units;
  if (evaluates) {
    units = loadUnits(product, stepInSum(product.sum, i64(0))); // there is at least one step
    storeUnits(product, units, {}, planeStage(product, i32(0)));
    async::publish(b);
    units = loadNext(product, i64(1));
  }

  // Carried: the stage; sums; copies; the next step's units.
  unsigned numSums = groupColumns(tile) / 2, numCopies = ofStages.size(), numUnits = units.size();
  SmallVector<Value *> carried{i32(0)};
  carried.append(numSums, ConstantFP::get(b.getFloatTy(), 0));
  carried.append(ofStages);
  carried.append(units);
  SmallVector<Value *> last = e.emitLoop(
      i64(0), total, i64(1), carried,
      [&](Value *number, ArrayRef<Value *> current) {
        Value *stage = current.front();
        ArrayRef<Value *> before = current.slice(1, numSums);
        SmallVector<Value *> ofStages(current.slice(1 + numSums, numCopies)), units(current.take_back(numUnits));
        if (copies) {
          async::awaitCopies(b, ofStages.front());
          async::publish(b);
        }
        barrier(); // this step's tiles are there; those of two steps before have been multiplied
        Sums sums = multiplyPlanes(product, planeStage(product, stage), before);
        if (copies) {
          ofStages.erase(ofStages.begin());
          ofStages.push_back(copy(b.CreateAdd(number, i64(ahead)), followingStage(stage, ahead)));
        }
        if (evaluates) {
          e.emitIf(b.CreateICmpSLT(b.CreateAdd(number, i64(1)), total), [&] {
            storeUnits(product, units, {}, planeStage(product, followingStage(stage, 1)));
            async::publish(b);
          });
          units = loadNext(product, b.CreateAdd(number, i64(2)));
        }
        async::awaitProducts(b, before.front());
        SmallVector<Value *> next{followingStage(stage, 1)};
        next.append(sums);
        next.append(ofStages);
        next.append(units);
        return next;
      },
      "step");
  if (copies)
    async::awaitAllCopies(b);
  return async::readProducts(b, ArrayRef(last).slice(1, numSums));
}
