//===- MmaMainloop.cpp - Mainloop of warp-level MMAs (mma.sync) -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/MmaMainloop.h"

#include "ir/tgl/TglUtils.h"
#include "strategies/contraction/lower/BlockScaling.h"

using namespace llvm;
using namespace tegula;

static KOrder ownOrder(tgl::ReduceOp reduce) {
  return {to_vector(seq<unsigned>(0, cast<tgl::AxesOp>(reduce.getOperation()).getAxes().size()))};
}

/// The product by warps. Where warpgroups have made a part of its sums, and those are made again
/// here, it is the same points: other blocks' parts have the others.
MmaProduct MmaMainloop::makeMmaProduct(unsigned number) {
  const ContractionProduct &planned = plan.products[number];
  std::optional<WgmmaProduct> wgmma;
  if (numbers.usesWgmma() && tile.splits > 1)
    wgmma = wgmmaLoads.makeWgmmaProduct(number);
  const ProductOperands *how = &products[number];
  if (wgmma && wgmma->kLoop.isReordered) { // neighbours in memory do not follow each other
    ProductOperands &evaluated = context.evaluatedOperands.try_emplace(number, *how).first->second;
    evaluated.a.staging = evaluated.b.staging = Staging::Values;
    how = &evaluated;
  }
  MmaProduct product;
  product.number = number;
  product.reduce = planned.reduce;
  MmaType type = how->type;
  unsigned elementBytes = bytesOf(type);
  product.operands = *how;
  auto operand = [&](const ContractionSide &side, const ContractionOperand &how,
                     const TileDim &group, unsigned offset) {
    bool kMajor = how.kMajor || isBytes(type);
    MmaOperand result{&side,  &how, &group, type, {kMajor, elementBytes, group.extent},
                      offset, 1,    0};
    if (how.staging == Staging::Vectors)
      result.vector = 16 / elementBytes;
    result.count = result.shared.bytes() / elementBytes / result.vector / numbers.threads();
    return result;
  };
  product.a = operand(planned.a, how->a, here.rows, 0);
  product.b = operand(planned.b, how->b, here.columns, product.a.shared.bytes());
  product.stages =
      product.copies() ? std::min(memory.stages(), memory.ringBytes() / product.stageBytes()) : 2;
  unsigned depth = product.a.shared.depth();
  if (wgmma)
    product.kLoop = indices.makeKLoop(product.reduce, depth, wgmma->kLoop.order,
                                      wgmma->a.shared.depth() * wgmma->substeps / depth);
  else
    product.kLoop = indices.makeKLoop(product.reduce, depth, ownOrder(product.reduce));
  return product;
}

/// The products of the words `step` (i32) added to `partial`. Careful code takes infinities and NaN
/// as IEEE 754 does.
MmaMainloop::Accumulators MmaMainloop::multiplyWords(MmaProduct &product, Value *stage, Value *step,
                                                     ArrayRef<Value *> partial, Path path) {
  Mma core(b, product.a.type);
  bool isSingle = product.a.type == MmaType::TF32;
  unsigned columnsOf8 = 2 * columnBlocks;
  using Words = SmallVector<std::array<Value *, 4>>;
  struct Fragments {
    Words large, small,
        largeForSmall; ///< the last is what the other side's small parts are multiplied with
  };
  bool hasTerms = product.a.how->terms + product.b.how->terms > 2;
  auto load = [&](const MmaOperand &operand, Value *first, unsigned blocks) {
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

/// The products of step `number` (i64) added to `accumulators`, which belong to the warp's
/// fragments: [row block][column block of 8][4].
MmaMainloop::Accumulators MmaMainloop::multiplyStep(MmaProduct &product, Value *number,
                                                    Value *stage, ArrayRef<Value *> accumulators,
                                                    Path path) {
  const ContractionProduct &planned = plan.products[product.number];
  // Of f8 some tensor cores keep few bits of what they add up.
  bool promotesAccumulators = product.a.how->terms + product.b.how->terms > 2 ||
                              product.a.type == MmaType::F8 || planned.scales;
  SmallVector<FragmentStep> places;
  for (unsigned n = 0; n < accumulators.size(); ++n)
    places.push_back(fragmentStep(tile, n));
  BlockScaling scaling(context, planned, product.kLoop, product.a.shared.depth(),
                       mmaAccumulatorAt(b, tile, here.corner, here.lane, 0), places);
  Accumulators scales = scaling.load(number);
  auto multiply = [&](ArrayRef<Value *> before,
                      function_ref<Accumulators(Accumulators partial)> body) {
    Accumulators partial =
        body(promotesAccumulators ? Accumulators(before.size(), ConstantFP::get(b.getFloatTy(), 0))
                                  : Accumulators(before));
    return promotesAccumulators ? scaling.promote(scales, 0, before, partial) : partial;
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

MmaMainloop::Accumulators MmaMainloop::mmaMainloop(MmaProduct &product, Path path) {
  unsigned stages = product.stages, ahead = stages - 1;
  bool copies = product.copies(), evaluated = mmaLoads.evaluates(product);
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
            mmaLoads.copyStep(product, indices.stepInKLoop(product.kLoop, number),
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
        mmaLoads.evaluateToStage(product, indices.stepInKLoop(product.kLoop, i64(0)),
                                 stageAt(i32(0)));
      else
        mmaLoads.storeStep(
            product, mmaLoads.evaluateStep(product, indices.stepInKLoop(product.kLoop, i64(0))),
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
            mmaLoads.copyStep(product, indices.stepInKLoop(product.kLoop, later),
                              stageAt(following(stage, ahead)), path);
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
            mmaLoads.evaluateToStage(product, indices.stepInKLoop(product.kLoop, next),
                                     stageAt(following(stage, 1)));
          });
        } else if (evaluated) {
          values = e.emitIfElse(isMore, [&] {
            return mmaLoads.evaluateStep(product, indices.stepInKLoop(product.kLoop, next));
          });
        }
        auto multiply = [&] { return multiplyStep(product, number, stageAt(stage), before, path); };
        Accumulators accumulators =
            start == 0 ? multiply()
                       : e.emitIfElse(b.CreateICmpSGE(number, i64(0)), multiply, before);
        if (!values.empty())
          mmaLoads.storeStep(product, values, stageAt(following(stage, 1)));
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

void MmaMainloop::storeAccumulators(ArrayRef<Value *> accumulators, unsigned base) {
  // Places are a constant from the first, which the optimiser does not see.
  TileCoord first = mmaAccumulatorAt(b, tile, here.corner, here.lane, 0);
  Value *place = here.accumulatorAddress(first.row, first.column, base);
  for (unsigned number = 0; number < accumulators.size(); number += 2) {
    FragmentStep step = fragmentStep(tile, number);
    unsigned further = step.down * memory.accumulatorsPitch() + step.right;
    storePair(accumulators[number], accumulators[number + 1],
              b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), place, further * 4));
  }
}
