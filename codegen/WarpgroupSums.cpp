//===- WarpgroupSums.cpp - The sums of a tile by warpgroups ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f32 values keep their accuracy (Ootomo and Yokota, arXiv 2203.03341): x * s = h + l with h the nearest
// number of f16 and l that of the rest, products hh, hl and lh. The power of two s puts the largest element of
// a row's (or column's) first step below 2^10: so all up to 64 times as large fit, and elements down to 2^-12
// of it keep 22 bits, smaller ones an error of 2^-34 of it. Tensor cores truncate what they add up: sums are
// kept for 64 points of the sum and added to f32 sums in registers.
//
// Where that does not hold a tile is computed again by sumUp: where a sum is not finite (an element too large,
// or itself not finite), and where a row's first step was 0 and all that came later is tiny.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// Exponent of the power of two below which scaling puts the largest element of the first step.
static constexpr int scaledExponent = 9;
/// Scaled lines whose largest element stays below this have lost bits.
static constexpr double smallestMaximum = 4;

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

unsigned DeviceContraction::linesBase() const {
  return sharedBytes() - (products.size() - 1) * sumsBytes() - 2 * 4 * (tile.rows + tile.columns);
}

/// Bits of a line's largest absolute value: `which` 0, of the first step; 1, of all.
Value *DeviceContraction::lineMaximum(unsigned which, Value *line) {
  Value *number = b.CreateAdd(line, i32(which * (tile.rows + tile.columns)));
  return sharedAt(b.CreateAdd(b.CreateShl(number, i32(2)), i32(linesBase())));
}

/// The power of two for a line; or one over it.
Value *DeviceContraction::scaleOf(Value *maximum, bool isInverse) {
  constexpr int bias = 127, mantissaBits = 23;
  Value *exponent = b.CreateLShr(maximum, i32(mantissaBits));
  exponent = b.CreateBinaryIntrinsic(Intrinsic::umax, exponent, i32(scaledExponent + 1));
  exponent = b.CreateBinaryIntrinsic(Intrinsic::umin, exponent, i32(2 * bias));
  exponent = b.CreateSelect(b.CreateICmpEQ(maximum, i32(0)), i32(bias + scaledExponent), exponent);
  Value *scale = isInverse ? b.CreateSub(exponent, i32(scaledExponent))
                           : b.CreateSub(i32(2 * bias + scaledExponent), exponent);
  return b.CreateBitCast(b.CreateShl(scale, i32(mantissaBits)), b.getFloatTy());
}

/// Enters the largest values of this thread's units.
void DeviceContraction::raiseMaxima(const PlaneProduct &product, ArrayRef<Value *> maxima, unsigned which) {
  SyncScope::ID scope = b.getContext().getOrInsertSyncScopeID("block");
  for (const PlaneOperand *operand : {&product.row, &product.column})
    for (unsigned index = 0; !operand->isCopied && index < operand->count; ++index) {
      Value *line = b.CreateAdd(unitOf(*operand, index).line, i32(operand->firstLine));
      b.CreateAtomicRMW(AtomicRMWInst::UMax, lineMaximum(which, line),
                        b.CreateBitCast(maxima.front(), b.getInt32Ty()), Align(4), AtomicOrdering::Monotonic,
                        scope);
      maxima = maxima.drop_front();
    }
}

Value *DeviceContraction::largestOf(Value *unit) {
  return b.CreateFPMaxReduce(b.CreateUnaryIntrinsic(Intrinsic::fabs, unit));
}

/// From the units of the first step, for each its scale.
SmallVector<Value *> DeviceContraction::findScales(const PlaneProduct &product, ArrayRef<Value *> units) {
  unsigned count = 2 * (tile.rows + tile.columns);
  for (unsigned first = 0; first < count; first += threads()) {
    auto clear = [&] {
      b.CreateAlignedStore(i32(0), lineMaximum(0, b.CreateAdd(thread, i32(first))), Align(4));
    };
    if (first + threads() <= count)
      clear();
    else
      e.emitIf(b.CreateICmpULT(thread, i32(count - first)), clear);
  }
  barrier();
  SmallVector<Value *> maxima, scales;
  for (Value *unit : units)
    maxima.push_back(largestOf(unit));
  raiseMaxima(product, maxima, 0);
  barrier();
  for (const PlaneOperand *operand : {&product.row, &product.column})
    for (unsigned index = 0; !operand->isCopied && index < operand->count; ++index) {
      Value *line = b.CreateAdd(unitOf(*operand, index).line, i32(operand->firstLine));
      scales.push_back(
          scaleOf(b.CreateAlignedLoad(b.getInt32Ty(), lineMaximum(0, line), Align(4)), /*isInverse=*/false));
    }
  return scales;
}

/// Whether one of the lines that this thread looks at had a first step of 0 and is tiny.
Value *DeviceContraction::anyLineTooSmall() {
  Value *any = b.getFalse();
  unsigned count = tile.rows + tile.columns;
  for (unsigned first = 0; first < count; first += threads()) {
    Value *line = b.CreateAdd(thread, i32(first));
    line = b.CreateBinaryIntrinsic(Intrinsic::umin, line, i32(count - 1));
    Value *start = b.CreateAlignedLoad(b.getInt32Ty(), lineMaximum(0, line), Align(4));
    Value *whole = b.CreateAlignedLoad(b.getFloatTy(), lineMaximum(1, line), Align(4));
    Value *scaled = b.CreateFMul(whole, scaleOf(start, /*isInverse=*/false));
    Value *isSmall = b.CreateFCmpOLT(scaled, ConstantFP::get(b.getFloatTy(), smallestMaximum));
    Value *isZero = b.CreateFCmpOEQ(whole, ConstantFP::get(b.getFloatTy(), 0));
    any = b.CreateOr(any, b.CreateAnd(isSmall, b.CreateNot(isZero)));
  }
  return any;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Row and column of the tile of this thread's sum `number`.
void DeviceContraction::placeOfGroupSum(unsigned number, Value *&row, Value *&column) {
  unsigned across = tile.columns / groupColumns();
  Value *group = b.CreateLShr(thread, i32(7)), *warp = b.CreateAnd(b.CreateLShr(thread, i32(5)), i32(3));
  row = b.CreateMul(b.CreateUDiv(group, i32(across)), i32(Warpgroup::rows));
  row = b.CreateAdd(row, b.CreateAdd(b.CreateShl(warp, i32(4)), b.CreateLShr(lane, i32(2))));
  row = b.CreateAdd(row, i32(number / 2 % 2 * 8));
  column = b.CreateMul(b.CreateURem(group, i32(across)), i32(groupColumns()));
  column = b.CreateAdd(column, b.CreateShl(b.CreateAnd(lane, i32(3)), i32(1)));
  column = b.CreateAdd(column, i32(number / 4 * 8 + number % 2));
}

void DeviceContraction::storeGroupSums(ArrayRef<Value *> sums, unsigned base) {
  for (unsigned number = 0; number < sums.size(); number += 2) {
    Value *row, *column;
    placeOfGroupSum(number, row, column);
    storePair(sums[number], sums[number + 1], row, column, base);
  }
}

/// Starts the products of a stage, `sums` (none: 0) added.
DeviceContraction::Sums DeviceContraction::multiplyPlanes(const PlaneProduct &product, Value *stage,
                                                          ArrayRef<Value *> sums) {
  Warpgroup warps(b, product.type == Multiplicand::BF16);
  unsigned across = tile.columns / groupColumns();
  Value *group = b.CreateLShr(thread, i32(7));
  Value *firstRow = b.CreateMul(b.CreateUDiv(group, i32(across)), i32(Warpgroup::rows));
  Value *firstColumn = b.CreateMul(b.CreateURem(group, i32(across)), i32(groupColumns()));
  Value *address = b.CreatePtrToInt(stage, b.getInt32Ty());
  warps.begin();
  Sums result(sums.begin(), sums.end());
  auto multiply = [&](unsigned step, unsigned rowPlane, unsigned columnPlane) {
    const PlaneTile &row = product.row.shared, &column = product.column.shared;
    Value *rowOperand = warps.descriptor(row, b.CreateAdd(address, i32(product.row.offset)), firstRow,
                                         rowPlane, step);
    Value *columnOperand = warps.descriptor(column, b.CreateAdd(address, i32(product.column.offset)),
                                            firstColumn, columnPlane, step);
    result = warps.multiply(result, groupColumns(), rowOperand, row.alongSum, columnOperand, column.alongSum);
  };
  for (unsigned step = 0; step < product.row.shared.depth() / Warpgroup::stepDepth; ++step) {
    // Small products first: they are lost next to large sums.
    if (product.column.planes > 1)
      multiply(step, 0, 1);
    if (product.row.planes > 1)
      multiply(step, 1, 0);
    multiply(step, 0, 0);
  }
  warps.commit();
  return result;
}

/// `isUnsafe`, where it is set: a bit, the same for all threads: the sums are not to be used. Otherwise
/// shared memory is free for sums after a barrier.
DeviceContraction::Sums DeviceContraction::sumUpByWarpgroups(const PlaneProduct &product, Value *&isUnsafe) {
  Warpgroup warps(b, product.type == Multiplicand::BF16);
  unsigned stages = PlaneProduct::stages, ahead = stages - 2;
  bool copies = product.copies(), evaluates = product.evaluates(), promotes = product.substeps > 1;
  Value *total = b.CreateMul(product.sum.steps, i64(product.substeps));
  Value *firstStep = b.CreateMul(product.sum.firstStep, i64(product.substeps));
  auto stageAt = [&](Value *number) { return sharedAt(b.CreateMul(number, i32(product.stageBytes()))); };
  auto following = [&](Value *number, unsigned by) { // of the ring
    return b.CreateAnd(b.CreateAdd(number, i32(by)), i32(stages - 1));
  };
  auto copy = [&](Value *number, Value *stage) {
    e.emitIf(b.CreateICmpSLT(number, total),
             [&] { copyUnits(product, b.CreateAdd(firstStep, number), stageAt(stage)); });
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_commit_group, {});
  };
  auto load = [&](Value *number, ArrayRef<Value *> otherwise) {
    SmallVector<Value *> units;
    BasicBlock *before = b.GetInsertBlock(), *end = nullptr;
    e.emitIf(b.CreateICmpSLT(number, total), [&] {
      units = loadUnits(product, b.CreateAdd(firstStep, number));
      end = b.GetInsertBlock();
    });
    for (auto [unit, other] : zip_equal(units, otherwise)) {
      PHINode *either = b.CreatePHI(unit->getType(), 2);
      either->addIncoming(other, before);
      either->addIncoming(unit, end);
      unit = either;
    }
    return units;
  };

  if (copies)
    for (unsigned number = 0; number < ahead; ++number)
      copy(i64(number), i32(number));
  SmallVector<Value *> units, scales, maxima;
  if (evaluates) {
    units = loadUnits(product, firstStep); // there is at least one step
    if (product.isScaled()) {
      scales = findScales(product, units);
      for (Value *unit : units)
        maxima.push_back(largestOf(unit));
    }
    storeUnits(product, units, scales, stageAt(i32(0)));
    warps.publish();
    units = load(i64(1), units);
  }

  // Carried: the stage; sums; the next step's units; the lines' largest values so far.
  unsigned numSums = groupColumns() / 2, numUnits = units.size(), numMaxima = maxima.size();
  SmallVector<Value *> carried{i32(0)};
  carried.append(numSums, ConstantFP::get(b.getFloatTy(), 0));
  carried.append(units);
  carried.append(maxima);
  SmallVector<Value *> last = e.emitLoop(
      i64(0), product.sum.steps, i64(1), carried,
      [&](Value *step, ArrayRef<Value *> current) {
        Value *stage = current.front();
        Sums sums(current.slice(1, numSums)), partial;
        SmallVector<Value *> units(current.slice(1 + numSums, numUnits));
        SmallVector<Value *> maxima(current.take_back(numMaxima));
        for (unsigned substep = 0; substep < product.substeps; ++substep) {
          Value *number = b.CreateAdd(b.CreateMul(step, i64(product.substeps)), i64(substep));
          if (copies) {
            b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_wait_group, {i32(ahead - 1)});
            warps.publish();
          }
          barrier(); // this step's tiles are there; those of two steps before have been multiplied
          if (promotes)
            partial = multiplyPlanes(product, stageAt(stage), partial);
          else
            sums = multiplyPlanes(product, stageAt(stage), sums);
          if (copies)
            copy(b.CreateAdd(number, i64(ahead)), following(stage, ahead));
          if (evaluates) {
            // The fence waits for loads that are under way: it comes before the next.
            e.emitIf(b.CreateICmpSLT(b.CreateAdd(number, i64(1)), total), [&] {
              storeUnits(product, units, scales, stageAt(following(stage, 1)));
              warps.publish();
            });
            for (auto [unit, maximum] : zip(units, maxima))
              maximum = b.CreateMaxNum(maximum, largestOf(unit));
            units = load(b.CreateAdd(number, i64(2)), units);
          }
          stage = following(stage, 1);
          if (!promotes || substep + 1 < product.substeps) {
            warps.waitForAllBut(1);
            continue;
          }
          partial = warps.wait(partial);
          for (auto [sum, added] : zip_equal(sums, partial))
            sum = b.CreateFAdd(sum, added);
        }
        SmallVector<Value *> next{stage};
        next.append(sums);
        next.append(units);
        next.append(maxima);
        return next;
      },
      "step");
  if (copies)
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_wait_group, {i32(0)});
  Sums sums(ArrayRef(last).slice(1, numSums));
  if (!promotes)
    sums = warps.wait(sums);
  if (!product.isScaled())
    return sums;

  raiseMaxima(product, ArrayRef(last).take_back(numMaxima), 1);
  barrier();
  Value *tooSmall = anyLineTooSmall();
  for (auto [n, sum] : enumerate(sums)) {
    Value *row, *column;
    placeOfGroupSum(n, row, column);
    for (Value *line : {row, b.CreateAdd(column, i32(product.column.firstLine))})
      sum = b.CreateFMul(sum, scaleOf(b.CreateAlignedLoad(b.getInt32Ty(), lineMaximum(0, line), Align(4)),
                                      /*isInverse=*/true));
  }
  isUnsafe = isAnyNotFinite(sums, tooSmall);
  return sums;
}
