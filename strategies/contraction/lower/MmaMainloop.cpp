//===- MmaMainloop.cpp - Mainloop of warp-level MMAs (mma.sync) -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/DeviceContraction.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// The products of the words `step` (i32) added to `partial`. Careful code takes infinities and NaN
/// as IEEE 754 does.
DeviceContraction::Accumulators DeviceContraction::multiplyWords(Product &product, Value *stage,
                                                                 Value *step,
                                                                 ArrayRef<Value *> partial,
                                                                 Path path) {
  Mma core(b, product.a.type);
  bool isSingle = product.a.type == MmaType::TF32;
  unsigned columnsOf8 = 2 * columnBlocks;
  using Words = SmallVector<std::array<Value *, 4>>;
  struct Fragments {
    Words large, small,
        largeForSmall; ///< the last is what the other side's small parts are multiplied with
  };
  bool hasTerms = product.a.how->terms + product.b.how->terms > 2;
  auto load = [&](const Operand &operand, Value *first, unsigned blocks) {
    Value *base = b.CreateInBoundsGEP(b.getInt8Ty(), stage, i32(operand.offset));
    Fragments fragments;
    for (unsigned number = 0; number < blocks; ++number) {
      std::array<Value *, 4> words = core.loadBlock(operand.shared, base, here.lane, first, number,
                                                    step),
                             small, largeForSmall = words;
      bool areSplit = operand.how->terms > 1, isExactPath = path == Path::Exact;
      for (unsigned n = 0; n < 4; ++n) {
        if (areSplit && isExactPath) {
          Mma::AnyTerms terms = core.splitAny(words[n]);
          words[n] = terms.large;
          small[n] = terms.small;
          largeForSmall[n] = terms.largeForSmall;
          continue;
        }
        if (areSplit) {
          Mma::Terms terms = core.split(words[n]);
          words[n] = terms.large;
          small[n] = terms.small;
        } else if (isSingle && !operand.how->isExact) {
          words[n] = core.round(words[n]);
        }
        largeForSmall[n] = hasTerms && isExactPath ? core.finiteOrZero(words[n]) : words[n];
      }
      fragments.large.push_back(words);
      fragments.small.push_back(small);
      fragments.largeForSmall.push_back(largeForSmall);
    }
    return fragments;
  };
  std::vector<std::array<Value *, 4>> accumulators(rowBlocks * columnsOf8);
  for (auto [number, sum] : enumerate(partial))
    accumulators[number / 4][number % 4] = sum;
  auto multiply = [&](const Words &aWords, const Words &bWords) {
    for (unsigned r = 0; r < rowBlocks; ++r)
      for (unsigned c = 0; c < columnsOf8; ++c) {
        const std::array<Value *, 4> &words = bWords[c / 2];
        std::array<Value *, 4> &sum = accumulators[r * columnsOf8 + c];
        SmallVector<Value *> ofColumn{words[c % 2], words[c % 2 + 2]};
        sum = isBytes(product.a.type)
                  ? core.multiplyBytes(aWords[r], ofColumn, sum, product.operands)
                  : core.multiply(aWords[r], ofColumn, sum);
      }
  };
  Fragments row = load(product.a, here.corner.row, rowBlocks);
  Fragments column = load(product.b, here.corner.column, columnBlocks);
  // Small products first: they are lost next to large sums.
  if (product.b.how->terms > 1)
    multiply(row.largeForSmall, column.small);
  if (product.a.how->terms > 1)
    multiply(row.small, column.largeForSmall);
  multiply(row.large, column.large);
  Accumulators result;
  for (const std::array<Value *, 4> &fragment : accumulators)
    append_range(result, fragment);
  return result;
}

/// One step's products added to `accumulators`, which belong to the warp's fragments: [row
/// block][column block of 8][4].
DeviceContraction::Accumulators DeviceContraction::multiplyStep(Product &product, Value *stage,
                                                                ArrayRef<Value *> accumulators,
                                                                Path path) {
  // Of f8 some tensor cores keep few bits of what they add up.
  bool promotesAccumulators =
      product.a.how->terms + product.b.how->terms > 2 || product.a.type == MmaType::F8;
  auto multiply = [&](ArrayRef<Value *> before,
                      function_ref<Accumulators(Accumulators partial)> body) {
    Accumulators partial =
        body(promotesAccumulators ? Accumulators(before.size(), ConstantFP::get(b.getFloatTy(), 0))
                                  : Accumulators(before));
    if (promotesAccumulators)
      for (auto [added, sum] : zip_equal(partial, before))
        added = b.CreateFAdd(sum, added);
    return partial;
  };
  if (path == Path::Fast)
    return multiply(accumulators, [&](Accumulators partial) {
      for (unsigned step = 0; step < Mma::steps; ++step)
        partial = multiplyWords(product, stage, i32(step), partial, path);
      return partial;
    });
  e.keepNextLoopRolled = true;
  return e.emitLoop(
      i64(0), i64(Mma::steps), i64(1), accumulators,
      [&](Value *step, ArrayRef<Value *> before) {
        return multiply(before, [&](Accumulators partial) {
          return multiplyWords(product, stage, b.CreateTrunc(step, b.getInt32Ty()), partial, path);
        });
      },
      "words");
}

DeviceContraction::Accumulators DeviceContraction::mmaMainloop(Product &product, Path path) {
  unsigned stages = product.stages, ahead = stages - 1;
  bool copies = product.copies(), evaluated = evaluates(product);
  const KLoop &sum = product.kLoop;
  auto stageAt = [&](Value *number) {
    return here.sharedAt(b.CreateMul(number, i32(product.stageBytes())));
  };
  auto following = [&](Value *number, unsigned by) { // of the ring
    Value *next = b.CreateAdd(number, i32(by));
    return b.CreateSelect(b.CreateICmpUGE(next, i32(stages)), b.CreateSub(next, i32(stages)), next);
  };
  // Steps before the first only bring operands, so that the code that does exists once. Of a few
  // steps the optimiser makes code without loops, where what is to be brought is known; it must not
  // begin earlier there.
  constexpr int64_t fewSteps = 8;
  std::optional<int64_t> points =
      tgl::knownPoints(cast<tgl::AxesOp>(product.reduce.getOperation()));
  bool isShort = path == Path::Fast && points && *points <= fewSteps * product.a.shared.depth();
  int64_t start = isShort ? 0 : copies ? -int64_t(ahead) : evaluated ? -1 : 0;
  SmallVector<Value *> ofStages(copies ? ahead : 0,
                                async::noCopies(b)); // copies under way, of the next stage first
  auto commit = [&](ArrayRef<Value *> before) {
    SmallVector<Value *> after(before.drop_front());
    after.push_back(async::commitCopies(b));
    return after;
  };
  if (isShort && copies) {
    e.keepNextLoopRolled = true;
    ofStages = e.emitLoop(
        i64(0), i64(ahead), i64(1), ofStages,
        [&](Value *number, ArrayRef<Value *> before) {
          e.emitIf(b.CreateICmpSLT(number, sum.steps), [&] {
            copyStep(product, stepInKLoop(product.kLoop, number),
                     stageAt(b.CreateTrunc(number, b.getInt32Ty())), path);
          });
          return commit(before);
        },
        "ahead");
  }
  // Bytes of a step would take a register each.
  bool inLoops = path == Path::Exact || isBytes(product.a.type);
  if (isShort && evaluated)
    e.emitIf(b.CreateICmpSLT(i64(0), sum.steps), [&] {
      if (inLoops)
        evaluateToStage(product, stepInKLoop(product.kLoop, i64(0)), stageAt(i32(0)));
      else
        storeStep(product, evaluateStep(product, stepInKLoop(product.kLoop, i64(0))),
                  stageAt(i32(0)));
    });
  SmallVector<Value *> carried(4 * rowBlocks * 2 * columnBlocks, zeroAccumulator());
  unsigned numAccumulators = carried.size(), numCopies = ofStages.size();
  carried.append(ofStages);
  carried.push_back(i32((start + stages) % stages)); // the stage
  Accumulators result = e.emitLoop(
      i64(start), sum.steps, i64(1), carried,
      [&](Value *number, ArrayRef<Value *> current) {
        Value *stage = current.back();
        ArrayRef<Value *> before = current.take_front(numAccumulators);
        SmallVector<Value *> ofStages(current.slice(numAccumulators, numCopies));
        if (copies)
          async::awaitCopies(b, ofStages.front());
        barrier(); // this step's tiles are there, those of the step before have been used
        if (copies) {
          Value *later = b.CreateAdd(number, i64(ahead));
          e.emitIf(b.CreateICmpSLT(later, sum.steps), [&] {
            copyStep(product, stepInKLoop(product.kLoop, later), stageAt(following(stage, ahead)),
                     path);
          });
          ofStages = commit(ofStages);
        }
        Value *next = b.CreateAdd(number, i64(1));
        Value *isMore = b.CreateICmpSLT(next, sum.steps);
        if (start < 0)
          isMore = b.CreateAnd(b.CreateICmpSGE(next, i64(0)), isMore);
        SmallVector<Value *> values;
        if (evaluated && inLoops) {
          e.emitIf(isMore, [&] {
            evaluateToStage(product, stepInKLoop(product.kLoop, next),
                            stageAt(following(stage, 1)));
          });
        } else if (evaluated) {
          values = e.emitIfElse(
              isMore, [&] { return evaluateStep(product, stepInKLoop(product.kLoop, next)); });
        }
        auto multiply = [&] { return multiplyStep(product, stageAt(stage), before, path); };
        Accumulators accumulators =
            start == 0 ? multiply()
                       : e.emitIfElse(b.CreateICmpSGE(number, i64(0)), multiply, before);
        if (!values.empty())
          storeStep(product, values, stageAt(following(stage, 1)));
        accumulators.append(ofStages);
        accumulators.push_back(following(stage, 1));
        return accumulators;
      },
      "step");
  if (copies)
    async::awaitAllCopies(b);
  result.resize(numAccumulators);
  return result;
}

/// A bit, the same for all threads of the block: whether a sum is not finite, or `orElse` holds in
/// any thread.
Value *DeviceContraction::isAnyNotFinite(ArrayRef<Value *> accumulators, Value *orElse) {
  // 0 unless there is an infinity or NaN; of every fourth, so that they do not wait for each other.
  Value *zero = ConstantFP::get(b.getFloatTy(), 0), *parts[] = {zero, zero, zero, zero};
  for (auto [number, sum] : enumerate(accumulators))
    parts[number % 4] =
        b.CreateIntrinsic(b.getFloatTy(), Intrinsic::fma, {sum, zero, parts[number % 4]});
  Value *all = b.CreateFAdd(b.CreateFAdd(parts[0], parts[1]), b.CreateFAdd(parts[2], parts[3]));
  Value *own = b.CreateFCmpUNO(all, all);
  if (orElse)
    own = b.CreateOr(own, orElse);
  return flagsPerThread ? own : isAny(own);
}

/// Whether it is true for any of the threads that the code is for, which meet.
Value *DeviceContraction::isAny(Value *own) {
  if (isWarpSpecialized())
    return b.CreateIntrinsic(b.getInt1Ty(), Intrinsic::nvvm_barrier_cta_red_or_aligned_count,
                             {i32(consumerBarrier), i32(threads()), own});
  return b.CreateIntrinsic(b.getInt1Ty(), Intrinsic::nvvm_barrier_cta_red_or_aligned_all,
                           {i32(0), own});
}

/// The sums of product `number` to their place in shared memory; other threads see them after a
/// barrier. Whether emitCheckedMainloop asks if all sums are finite.
bool DeviceContraction::isChecked(unsigned number) const {
  const ProductOperands &how = products[number];
  return usesWgmma() ? usesSplitPrecision() : how.a.terms + how.b.terms > 2;
}

/// `afterExact`: where they are not, or may not be, once they have been stored.
void DeviceContraction::emitCheckedMainloop(unsigned number, function_ref<void()> afterExact) {
  Product product = makeMmaProduct(number);
  unsigned base = here.accumulatorsBase(number);
  bool hasTerms = product.a.how->terms + product.b.how->terms > 2;
  // Shared memory is free once all have summed up.
  auto emitPath = [&](Path path) {
    Accumulators accumulators = mmaMainloop(product, path);
    barrier();
    return accumulators;
  };
  auto recompute = [&] {
    barrier();
    afterExact();
  };
  if (!usesWgmma()) {
    note(product);
    if (!hasTerms)
      return storeAccumulators(emitPath(Path::Fast), base);
    Accumulators accumulators = mmaMainloop(product, Path::Fast);
    Value *isInaccurate = isAnyNotFinite(accumulators); // waits for all
    storeAccumulators(
        e.emitIfElse(isInaccurate, [&] { return emitPath(Path::Exact); }, accumulators), base);
    if (afterExact)
      e.emitIf(isInaccurate, recompute);
    return;
  }
  WgmmaProduct wgmma = makeWgmmaProduct(number);
  note(wgmma);
  AccuracyFlags flags;
  Accumulators fast = isWarpSpecialized() ? consume(wgmma, flags) : wgmmaMainloop(wgmma);
  if (!flags.isInaccurate) {
    barrier();
    return storeWgmmaAccumulators(fast, base);
  }
  e.emitIf(b.CreateNot(flags.isInaccurate), [&] {
    storeWgmmaAccumulators(fast, base);
    recomputeFlagged(wgmma, flags, base);
  });
  e.emitIf(flags.isInaccurate, [&] {
    storeAccumulators(emitPath(Path::Exact), base);
    if (afterExact)
      recompute();
  });
}
