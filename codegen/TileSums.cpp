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

/// The products of the words `step` (i32) added to `partial`. Careful code takes infinities and NaN as IEEE 754 does.
DeviceContraction::Sums DeviceContraction::multiplyWords(Product &product, Value *stage, Value *step, ArrayRef<Value *> partial,
                                                         Code code) {
  TensorCore core(b, product.row.type);
  bool isSingle = product.row.type == Multiplicand::TF32;
  unsigned columnsOf8 = 2 * columnBlocks;
  using Words = SmallVector<std::array<Value *, 4>>;
  struct Fragments {
    Words large, small, largeForSmall; ///< the last is what the other side's small parts are multiplied with
  };
  bool hasParts = product.row.how->parts + product.column.how->parts > 2;
  auto load = [&](const Operand &operand, Value *first, unsigned blocks) {
    Value *base = b.CreateInBoundsGEP(b.getInt8Ty(), stage, i32(operand.offset));
    Fragments fragments;
    for (unsigned number = 0; number < blocks; ++number) {
      std::array<Value *, 4> words = core.loadBlock(operand.shared, base, here.lane, first, number, step), small,
                             largeForSmall = words;
      bool areSplit = operand.how->parts > 1, isCareful = code == Code::Careful;
      for (unsigned n = 0; n < 4; ++n) {
        if (areSplit && isCareful) {
          TensorCore::AnyParts parts = core.splitAny(words[n]);
          words[n] = parts.large;
          small[n] = parts.small;
          largeForSmall[n] = parts.largeForSmall;
          continue;
        }
        if (areSplit) {
          TensorCore::Parts parts = core.split(words[n]);
          words[n] = parts.large;
          small[n] = parts.small;
        } else if (isSingle && !operand.how->isExact) {
          words[n] = core.round(words[n]);
        }
        largeForSmall[n] = hasParts && isCareful ? core.finiteOrZero(words[n]) : words[n];
      }
      fragments.large.push_back(words);
      fragments.small.push_back(small);
      fragments.largeForSmall.push_back(largeForSmall);
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
        SmallVector<Value *> ofColumn{words[c % 2], words[c % 2 + 2]};
        sum = isBytes(product.row.type) ? core.multiplyBytes(rowWords[r], ofColumn, sum, product.operands)
                                        : core.multiply(rowWords[r], ofColumn, sum);
      }
  };
  Fragments row = load(product.row, here.corner.row, rowBlocks);
  Fragments column = load(product.column, here.corner.column, columnBlocks);
  // Small products first: they are lost next to large sums.
  if (product.column.how->parts > 1)
    multiply(row.largeForSmall, column.small);
  if (product.row.how->parts > 1)
    multiply(row.small, column.largeForSmall);
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
  // Of f8 some tensor cores keep few bits of what they add up.
  bool keepsPartial = product.row.how->parts + product.column.how->parts > 2 || product.row.type == Multiplicand::F8;
  auto multiply = [&](ArrayRef<Value *> before, function_ref<Sums(Sums partial)> body) {
    Sums partial = body(keepsPartial ? Sums(before.size(), ConstantFP::get(b.getFloatTy(), 0)) : Sums(before));
    if (keepsPartial)
      for (auto [added, sum] : zip_equal(partial, before))
        added = b.CreateFAdd(sum, added);
    return partial;
  };
  if (code == Code::Quick)
    return multiply(sums, [&](Sums partial) {
      for (unsigned step = 0; step < TensorCore::steps; ++step)
        partial = multiplyWords(product, stage, i32(step), partial, code);
      return partial;
    });
  e.nextLoopStays = true;
  return e.emitLoop(
      i64(0), i64(TensorCore::steps), i64(1), sums,
      [&](Value *step, ArrayRef<Value *> before) {
        return multiply(before, [&](Sums partial) {
          return multiplyWords(product, stage, b.CreateTrunc(step, b.getInt32Ty()), partial, code);
        });
      },
      "words");
}

DeviceContraction::Sums DeviceContraction::sumUp(Product &product, Code code) {
  unsigned stages = product.stages, ahead = stages - 1;
  bool copies = product.copies(), evaluated = evaluates(product);
  const Sum &sum = product.sum;
  auto stageAt = [&](Value *number) { return here.sharedAt(b.CreateMul(number, i32(product.stageBytes()))); };
  auto following = [&](Value *number, unsigned by) { // of the ring
    Value *next = b.CreateAdd(number, i32(by));
    return b.CreateSelect(b.CreateICmpUGE(next, i32(stages)), b.CreateSub(next, i32(stages)), next);
  };
  // Steps before the first only bring operands, so that the code that does exists once. Of a few steps the optimiser
  // makes code without loops, where what is to be brought is known; it must not begin earlier there.
  constexpr int64_t fewSteps = 8;
  std::optional<int64_t> points = tgl::knownPoints(cast<tgl::AxesOp>(product.reduce.getOperation()));
  bool isShort = code == Code::Quick && points && *points <= fewSteps * product.row.shared.depth();
  int64_t start = isShort ? 0 : copies ? -int64_t(ahead) : evaluated ? -1 : 0;
  SmallVector<Value *> ofStages(copies ? ahead : 0, async::noCopies(b)); // copies under way, of the next stage first
  auto commit = [&](ArrayRef<Value *> before) {
    SmallVector<Value *> after(before.drop_front());
    after.push_back(async::commitCopies(b));
    return after;
  };
  if (isShort && copies) {
    e.nextLoopStays = true;
    ofStages = e.emitLoop(
        i64(0), i64(ahead), i64(1), ofStages,
        [&](Value *number, ArrayRef<Value *> before) {
          e.emitIf(b.CreateICmpSLT(number, sum.steps), [&] {
            copyStep(product, stepInSum(product.sum, number), stageAt(b.CreateTrunc(number, b.getInt32Ty())), code);
          });
          return commit(before);
        },
        "ahead");
  }
  // Bytes of a step would take a register each.
  bool inLoops = code == Code::Careful || isBytes(product.row.type);
  if (isShort && evaluated)
    e.emitIf(b.CreateICmpSLT(i64(0), sum.steps), [&] {
      if (inLoops)
        evaluateToStage(product, stepInSum(product.sum, i64(0)), stageAt(i32(0)));
      else
        storeStep(product, evaluateStep(product, stepInSum(product.sum, i64(0))), stageAt(i32(0)));
    });
  SmallVector<Value *> carried(4 * rowBlocks * 2 * columnBlocks, zeroSum());
  unsigned numSums = carried.size(), numCopies = ofStages.size();
  carried.append(ofStages);
  carried.push_back(i32((start + stages) % stages)); // the stage
  Sums result = e.emitLoop(
      i64(start), sum.steps, i64(1), carried,
      [&](Value *number, ArrayRef<Value *> current) {
        Value *stage = current.back();
        ArrayRef<Value *> before = current.take_front(numSums);
        SmallVector<Value *> ofStages(current.slice(numSums, numCopies));
        if (copies)
          async::awaitCopies(b, ofStages.front());
        barrier(); // this step's tiles are there, those of the step before have been used
        if (copies) {
          Value *later = b.CreateAdd(number, i64(ahead));
          e.emitIf(b.CreateICmpSLT(later, sum.steps),
                   [&] { copyStep(product, stepInSum(product.sum, later), stageAt(following(stage, ahead)), code); });
          ofStages = commit(ofStages);
        }
        Value *next = b.CreateAdd(number, i64(1));
        Value *isMore = b.CreateICmpSLT(next, sum.steps);
        if (start < 0)
          isMore = b.CreateAnd(b.CreateICmpSGE(next, i64(0)), isMore);
        SmallVector<Value *> values;
        if (evaluated && inLoops) {
          e.emitIf(isMore, [&] {
            evaluateToStage(product, stepInSum(product.sum, next), stageAt(following(stage, 1)));
          });
        } else if (evaluated) {
          values = e.emitIfElse(isMore, [&] { return evaluateStep(product, stepInSum(product.sum, next)); });
        }
        auto multiply = [&] { return multiplyStep(product, stageAt(stage), before, code); };
        Sums sums = start == 0 ? multiply()
                               : e.emitIfElse(b.CreateICmpSGE(number, i64(0)), multiply, before);
        if (!values.empty())
          storeStep(product, values, stageAt(following(stage, 1)));
        sums.append(ofStages);
        sums.push_back(following(stage, 1));
        return sums;
      },
      "step");
  if (copies)
    async::awaitAllCopies(b);
  result.resize(numSums);
  return result;
}

/// A bit, the same for all threads of the block: whether a sum is not finite, or `orElse` holds in any thread.
Value *DeviceContraction::isAnyNotFinite(ArrayRef<Value *> sums, Value *orElse) {
  // 0 unless there is an infinity or NaN; of every fourth, so that they do not wait for each other.
  Value *zero = ConstantFP::get(b.getFloatTy(), 0), *parts[] = {zero, zero, zero, zero};
  for (auto [number, sum] : enumerate(sums))
    parts[number % 4] = b.CreateIntrinsic(b.getFloatTy(), Intrinsic::fma, {sum, zero, parts[number % 4]});
  Value *all = b.CreateFAdd(b.CreateFAdd(parts[0], parts[1]), b.CreateFAdd(parts[2], parts[3]));
  Value *own = b.CreateFCmpUNO(all, all);
  if (orElse)
    own = b.CreateOr(own, orElse);
  return marksAlone ? own : isAny(own);
}

/// Whether it is true for any of the threads that the code is for, which meet.
Value *DeviceContraction::isAny(Value *own) {
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
  unsigned base = here.sumsBase(number);
  bool hasParts = product.row.how->parts + product.column.how->parts > 2;
  // Shared memory is free once all have summed up.
  auto sumUpAlone = [&](Code code) {
    Sums sums = sumUp(product, code);
    barrier();
    return sums;
  };
  auto mend = [&] {
    barrier();
    afterCareful();
  };
  if (!byWarpgroups()) {
    note(product);
    if (!hasParts)
      return storeSums(sumUpAlone(Code::Quick), base);
    Sums sums = sumUp(product, Code::Quick);
    Value *isUnsafe = isAnyNotFinite(sums); // waits for all
    storeSums(e.emitIfElse(isUnsafe, [&] { return sumUpAlone(Code::Careful); }, sums), base);
    if (afterCareful)
      e.emitIf(isUnsafe, mend);
    return;
  }
  PlaneProduct planes = makePlaneProduct(number);
  note(planes);
  Doubts doubts;
  Sums fast = hasRoles() ? consume(planes, doubts) : sumUpByWarpgroups(planes);
  if (!doubts.isUnsafe) {
    barrier();
    return storeGroupSums(fast, base);
  }
  e.emitIf(b.CreateNot(doubts.isUnsafe), [&] {
    storeGroupSums(fast, base);
    mendLoneSums(planes, doubts, base);
  });
  e.emitIf(doubts.isUnsafe, [&] {
    storeSums(sumUpAlone(Code::Careful), base);
    if (afterCareful)
      mend();
  });
}
