//===- TileSums.cpp - The sums of a tile on tensor cores ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "ir/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// The products of the words `step` (i32) added to `partial`.
DeviceContraction::Sums DeviceContraction::multiplyWords(Product &product, Value *stage, Value *step,
                                                         ArrayRef<Value *> partial, Code code) {
  TensorCore core(b, product.row.type);
  bool isSingle = product.row.type == Multiplicand::TF32;
  unsigned columnsOf8 = 2 * columnBlocks;
  using Words = SmallVector<std::array<Value *, 4>>;
  struct Fragments {
    Words large, small;
  };
  auto load = [&](const Operand &operand, Value *first, unsigned blocks) {
    Value *base = b.CreateInBoundsGEP(b.getInt8Ty(), stage, i32(operand.offset));
    Fragments fragments;
    for (unsigned number = 0; number < blocks; ++number) {
      std::array<Value *, 4> words = core.loadBlock(operand.shared, base, lane, first, number, step), small;
      if (isSingle && !operand.how->isExact)
        for (unsigned n = 0; n < 4; ++n) {
          if (operand.how->parts == 1) {
            words[n] = core.round(words[n]);
            continue;
          }
          TensorCore::Parts parts =
              code == Code::Careful ? core.splitAny(words[n]) : core.split(words[n]);
          words[n] = parts.large;
          small[n] = parts.small;
        }
      fragments.large.push_back(words);
      fragments.small.push_back(small);
    }
    return fragments;
  };
  std::vector<std::array<Value *, 4>> sums(rowBlocks * columnsOf8);
  for (auto [number, sum] : enumerate(partial))
    sums[number / 4][number % 4] = sum;
  auto multiply = [&](const Words &rowWords, const Words &columnWords) {
    for (unsigned r = 0; r < rowBlocks; ++r)
      for (unsigned c = 0; c < columnsOf8; ++c) {
        const std::array<Value *, 4> &words = columnWords[c / 2];
        std::array<Value *, 4> &sum = sums[r * columnsOf8 + c];
        sum = core.multiply(rowWords[r], {words[c % 2], words[c % 2 + 2]}, sum);
      }
  };
  Fragments row = load(product.row, corner.row, rowBlocks);
  Fragments column = load(product.column, corner.column, columnBlocks);
  // Small products first: they are lost next to large sums.
  if (product.column.how->parts > 1)
    multiply(row.large, column.small);
  if (product.row.how->parts > 1)
    multiply(row.small, column.large);
  multiply(row.large, column.large);
  Sums result;
  for (const std::array<Value *, 4> &fragment : sums)
    append_range(result, fragment);
  return result;
}

/// One step's products added to `sums`, which belong to the warp's fragments: [row block][column block of
/// 8][4].
DeviceContraction::Sums DeviceContraction::multiplyStep(Product &product, Value *stage,
                                                        ArrayRef<Value *> sums, Code code) {
  bool keepsPartial = product.row.how->parts + product.column.how->parts > 2;
  Sums partial(sums);
  if (keepsPartial)
    partial.assign(sums.size(), ConstantFP::get(b.getFloatTy(), 0));
  if (code == Code::Careful) {
    e.nextLoopStays = true;
    partial = e.emitLoop(
        i64(0), i64(TensorCore::steps), i64(1), partial,
        [&](Value *step, ArrayRef<Value *> current) {
          return multiplyWords(product, stage, b.CreateTrunc(step, b.getInt32Ty()), current, code);
        },
        "words");
  } else {
    for (unsigned step = 0; step < TensorCore::steps; ++step)
      partial = multiplyWords(product, stage, i32(step), partial, code);
  }
  if (keepsPartial)
    for (auto [added, sum] : zip_equal(partial, sums))
      added = b.CreateFAdd(sum, added);
  return partial;
}

DeviceContraction::Sums DeviceContraction::sumUp(Product &product, Code code) {
  unsigned stages = product.stages, ahead = stages - 1;
  bool copies = product.copies(), evaluated = evaluates(product);
  const Sum &sum = product.sum;
  auto stageAt = [&](Value *number) { return sharedAt(b.CreateMul(number, i32(product.stageBytes()))); };
  auto following = [&](Value *number, unsigned by) { // of the ring
    Value *next = b.CreateAdd(number, i32(by));
    return b.CreateSelect(b.CreateICmpUGE(next, i32(stages)), b.CreateSub(next, i32(stages)), next);
  };
  auto commit = [&] {
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_commit_group, {});
  };
  // Steps before the first only bring operands, so that the code that does exists once. Of a few steps the optimiser
  // makes code without loops, where what is to be brought is known; it must not begin earlier there.
  constexpr int64_t fewSteps = 8;
  std::optional<int64_t> points = tgl::knownPoints(cast<tgl::AxesOp>(product.reduce.getOperation()));
  bool isShort = code == Code::Quick && points && *points <= fewSteps * product.row.shared.depth();
  int64_t start = isShort ? 0 : copies ? -int64_t(ahead) : evaluated ? -1 : 0;
  if (isShort && copies) {
    e.nextLoopStays = true;
    e.emitLoop(
        i64(0), i64(ahead), i64(1), {},
        [&](Value *number, ArrayRef<Value *>) {
          e.emitIf(b.CreateICmpSLT(number, sum.steps), [&] {
            copyStep(product, stepInSum(number), stageAt(b.CreateTrunc(number, b.getInt32Ty())), code);
          });
          commit();
          return SmallVector<Value *>();
        },
        "ahead");
  }
  if (isShort && evaluated)
    e.emitIf(b.CreateICmpSLT(i64(0), sum.steps),
             [&] { storeStep(product, evaluateStep(product, stepInSum(i64(0))), stageAt(i32(0))); });
  SmallVector<Value *> carried(4 * rowBlocks * 2 * columnBlocks, ConstantFP::get(b.getFloatTy(), 0));
  carried.push_back(i32((start + stages) % stages)); // the stage
  Sums result = e.emitLoop(
      i64(start), sum.steps, i64(1), carried,
      [&](Value *number, ArrayRef<Value *> current) {
        Value *stage = current.back();
        if (copies)
          b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_wait_group, {i32(ahead - 1)});
        barrier(); // this step's tiles are there, those of the step before have been used
        if (copies) {
          Value *later = b.CreateAdd(number, i64(ahead));
          e.emitIf(b.CreateICmpSLT(later, sum.steps),
                   [&] { copyStep(product, stepInSum(later), stageAt(following(stage, ahead)), code); });
          commit();
        }
        Value *next = b.CreateAdd(number, i64(1));
        Value *isMore = b.CreateICmpSLT(next, sum.steps);
        if (start < 0)
          isMore = b.CreateAnd(b.CreateICmpSGE(next, i64(0)), isMore);
        SmallVector<Value *> values;
        if (evaluated && code == Code::Careful) {
          e.emitIf(isMore, [&] {
            evaluateToStage(product, stepInSum(next), stageAt(following(stage, 1)));
          });
        } else if (evaluated) {
          values = e.emitIfElse(isMore, [&] { return evaluateStep(product, stepInSum(next)); });
        }
        auto multiply = [&] { return multiplyStep(product, stageAt(stage), current.drop_back(), code); };
        Sums sums = start == 0 ? multiply()
                               : e.emitIfElse(b.CreateICmpSGE(number, i64(0)), multiply, current.drop_back());
        if (!values.empty())
          storeStep(product, values, stageAt(following(stage, 1)));
        sums.push_back(following(stage, 1));
        return sums;
      },
      "step");
  result.pop_back();
  if (copies)
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_wait_group, {i32(0)});
  return result;
}

/// A bit, the same for all threads of the block: whether a sum is not finite, or `orElse` holds in any thread.
Value *DeviceContraction::isAnyNotFinite(ArrayRef<Value *> sums, Value *orElse) {
  Value *zero = ConstantFP::get(b.getFloatTy(), 0), *all = zero;
  for (Value *sum : sums) // 0 unless there is an infinity or NaN
    all = b.CreateIntrinsic(b.getFloatTy(), Intrinsic::fma, {sum, zero, all});
  Value *own = b.CreateFCmpUNO(all, all);
  if (orElse)
    own = b.CreateOr(own, orElse);
  if (hasRoles())
    return b.CreateIntrinsic(b.getInt1Ty(), Intrinsic::nvvm_barrier_cta_red_or_aligned_count,
                             {i32(ownBarrier), i32(threads()), own});
  return b.CreateIntrinsic(b.getInt1Ty(), Intrinsic::nvvm_barrier_cta_red_or_aligned_all, {i32(0), own});
}

/// The sums of product `number` to their place in shared memory; other threads see them after a barrier.
/// Whether sumUpSafely asks if all sums are finite.
bool DeviceContraction::isChecked(unsigned number) const {
  const ProductOperands &how = products[number];
  return byWarpgroups() ? isSplit() : how.row.parts + how.column.parts > 2;
}

/// `afterCareful`: where they are not, or may not be, once they have been stored.
void DeviceContraction::sumUpSafely(unsigned number, function_ref<void()> afterCareful) {
  Product product = makeProduct(number);
  unsigned base = sumsBase(number);
  bool hasParts = product.row.how->parts + product.column.how->parts > 2;
  auto sumUpCarefully = [&] {
    Sums sums = sumUp(product, hasParts ? Code::Careful : Code::Quick);
    barrier(); // shared memory is free
    storeSums(sums, base);
  };
  Sums fast;
  Value *isUnsafe = nullptr;
  if (byWarpgroups()) {
    PlaneProduct planes = makePlaneProduct(number);
    note(planes);
    fast = hasRoles() ? consume(planes, isUnsafe) : sumUpByWarpgroups(planes);
  } else {
    note(product);
    if (!hasParts)
      return sumUpCarefully();
    fast = sumUp(product, Code::Quick);
    isUnsafe = isAnyNotFinite(fast);
  }
  auto storeFast = [&] { byWarpgroups() ? storeGroupSums(fast, base) : storeSums(fast, base); };
  if (!isUnsafe) {
    barrier();
    return storeFast();
  }
  e.emitIf(b.CreateNot(isUnsafe), storeFast);
  e.emitIf(isUnsafe, [&] {
    sumUpCarefully();
    if (!afterCareful)
      return;
    barrier();
    afterCareful();
  });
}
