//===- EmitReduce.cpp - Reductions as LLVM IR --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/Emitter.h"
#include "codegen/common/PeelInterior.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;
using tgl::ReduceKind;

/// Sums and variances, whose error would grow with the number of terms that one accumulator takes.
static bool isSum(tgl::ReduceOp op) {
  return op.getKind() == ReduceKind::Var ||
         (op.getKind() == ReduceKind::Sum && isa<mlir::FloatType>(op.getReduced().getType()));
}

/// Equal terms are rounded alike: few of them make a part. The terms of a variance are small
/// distances, and its parts cost a division each.
Emitter::BlockedSum Emitter::blockedSumOf(tgl::ReduceOp op, unsigned axis) {
  if (!isSum(op))
    return {};
  std::optional<int64_t> points = tgl::knownPoints(cast<tgl::AxesOp>(op.getOperation()), axis);
  bool isVariance = op.getKind() == ReduceKind::Var;
  int64_t terms = isVariance ? 256 : 32;
  if (points && *points < 2 * terms)
    return {};
  bool isLong = !points || *points >= 2 * terms * terms;
  return isVariance ? BlockedSum{terms, isLong ? 2u : 1u} : BlockedSum{terms, 1, isLong};
}

/// start plus part(iv) for iv = low, low + step, ..., as if what rounding takes from each sum were
/// kept (D. E. Knuth, The Art of Computer Programming 2, 4.2.2, theorem B).
Value *Emitter::emitExactSum(Value *low, Value *high, int64_t step, Value *start,
                             function_ref<Value *(Value *)> part) {
  Value *none = Constant::getNullValue(start->getType());
  SmallVector<Value *> sums =
      emitLoop(low, high, i64(step), {start, none}, [&](Value *iv, ArrayRef<Value *> carried) {
        Value *before = carried[0], *added = part(iv);
        Value *sum = b.CreateFAdd(before, added);
        Value *kept = b.CreateFSub(sum, before);
        Value *lost =
            b.CreateFAdd(b.CreateFSub(before, b.CreateFSub(sum, kept)), b.CreateFSub(added, kept));
        return SmallVector<Value *>{sum, b.CreateFAdd(carried[1], lost)};
      });
  // What is lost from infinity is no number.
  return b.CreateSelect(b.CreateFCmpORD(sums[1], sums[1]), b.CreateFAdd(sums[0], sums[1]), sums[0]);
}

Accumulator Emitter::emitBlockedSum(tgl::ReduceOp op, Value *low, Value *high, int64_t step,
                                    BlockedSum parts, Accumulator start,
                                    function_ref<Accumulator(Value *, Accumulator)> body) {
  int64_t span = step;
  for (unsigned level = 0; level < parts.levels; ++level)
    span *= parts.terms;
  auto zeros = [&] {
    Accumulator all;
    for (Value *element : start) // of a sum -0, which any number stays the same with
      all.push_back(op.getKind() == ReduceKind::Sum
                        ? ConstantFP::getNegativeZero(element->getType())
                        : Constant::getNullValue(element->getType()));
    return all;
  };
  auto part = [&](Value *iv) {
    if (!parts.levels)
      return body(iv, zeros());
    Value *end = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(iv, i64(span)), high);
    return emitBlockedSum(op, iv, end, step, {parts.terms, parts.levels - 1}, zeros(), body);
  };
  if (parts.keepsError)
    return {emitExactSum(low, high, span, start[0], [&](Value *iv) { return part(iv)[0]; })};
  SmallVector<Value *> results =
      emitLoop(low, high, i64(span), start, [&](Value *iv, ArrayRef<Value *> carried) {
        Accumulator before(carried.begin(), carried.end());
        return SmallVector<Value *>(parts.levels ? combine(*this, op, before, part(iv))
                                                 : body(iv, std::move(before)));
      });
  return Accumulator(results.begin(), results.end());
}

Accumulator Emitter::emitSerialReduce(tgl::ReduceOp op, ArrayRef<unsigned> order,
                                      Accumulator accumulator,
                                      function_ref<Accumulator(Accumulator)> innermost) {
  if (order.empty())
    return innermost(accumulator);
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  unsigned axis = order.front();
  Value *low = emitLow(axes, axis), *high = emitHigh(axes, axis);
  // What is inside of an axis is added up on its own, but where that is known to be short.
  constexpr int64_t longSum = 32;
  ArrayRef<unsigned> rest = order.drop_front();
  bool apart =
      isSum(op) && !rest.empty() && tgl::knownPoints(axes, rest).value_or(longSum) >= longSum;
  return emitBlockedSum(op, low, high, 1, blockedSumOf(op, axis), std::move(accumulator),
                        [&](Value *iv, Accumulator before) {
                          values[op.getAxes()[axis]] = iv;
                          if (!apart)
                            return emitSerialReduce(op, rest, std::move(before), innermost);
                          Accumulator zeros;
                          for (Value *element : before)
                            zeros.push_back(Constant::getNullValue(element->getType()));
                          return combine(*this, op, before,
                                         emitSerialReduce(op, rest, std::move(zeros), innermost));
                        });
}

void Emitter::emitReduce(tgl::ReduceOp op) {
  SmallVector<mlir::Operation *> free;
  Value *interior = insideReads.empty() ? emitPeeledInterior(*this, op, free) : nullptr;
  if (!interior) {
    values[op.getResult()] = resultOf(*this, op, emitReduceNest(op));
    return;
  }
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *inside = BasicBlock::Create(module.getContext(), "inside", function);
  BasicBlock *border = BasicBlock::Create(module.getContext(), "border", function);
  BasicBlock *after = BasicBlock::Create(module.getContext(), "endwindow", function);
  b.CreateCondBr(interior, inside, border);
  ++conditions;
  b.SetInsertPoint(inside);
  insideReads.insert_range(free);
  Value *unchecked = resultOf(*this, op, emitReduceNest(op));
  insideReads.clear();
  BasicBlock *insideEnd = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(border);
  Value *checked = resultOf(*this, op, emitReduceNest(op));
  BasicBlock *borderEnd = b.GetInsertBlock();
  b.CreateBr(after);
  --conditions;
  b.SetInsertPoint(after);
  PHINode *result = b.CreatePHI(checked->getType(), 2);
  result->addIncoming(unchecked, insideEnd);
  result->addIncoming(checked, borderEnd);
  values[op.getResult()] = result;
}

Accumulator Emitter::emitReduceNest(tgl::ReduceOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  Accumulator accumulator = initialAccumulator(*this, op);
  SmallVector<unsigned> order = to_vector(seq<unsigned>(0, op.getAxes().size()));
  std::optional<LaneChoice> choice;
  if (!lanes)
    choice = chooseLanes(axes);
  if (choice) {
    llvm::erase(order, choice->axis);
    accumulator = splatAccumulator(*this, op, std::move(accumulator), choice->width);
    accumulator = emitSerialReduce(op, order, accumulator, [&](Accumulator inner) {
      return emitLaneReduce(op, *choice, std::move(inner));
    });
    accumulator = combineLanes(*this, op, accumulator, choice->width);
  } else {
    // Inside lanes of an outer axis the accumulator is a vector if the body's value is.
    if (lanes)
      accumulator = splatAccumulator(*this, op, std::move(accumulator), lanes->width);
    accumulator = emitSerialReduce(op, order, accumulator, [&](Accumulator inner) {
      return emitReducePoint(op, std::move(inner));
    });
  }
  return accumulator;
}

/// One axis in vectors: `unroll` independent accumulators, in blocks whose sums are added up on
/// their own, so that the error of a long sum grows with its square root of a square root and not
/// with its length.
Accumulator Emitter::emitLaneReduce(tgl::ReduceOp op, const LaneChoice &choice, Accumulator outer) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  mlir::Value axis = op.getAxes()[choice.axis];
  unsigned width = choice.width, unroll = choice.unroll, step = width * unroll;
  constexpr int64_t blockSteps = 64;
  Value *low = emitLow(axes, choice.axis), *high = emitHigh(axes, choice.axis);
  Value *full = emitFullEnd(low, high, step);

  Accumulator identity = splatAccumulator(*this, op, initialAccumulator(*this, op), width);
  unsigned parts = identity.size();

  int64_t block = int64_t(step) * blockSteps;
  BlockedSum longRows = blockedSumOf(op, choice.axis); // blocks are parts already
  longRows = {256, longRows.levels > 1 ? 1u : 0u, longRows.keepsError};
  Accumulator blocks =
      emitBlockedSum(op, low, full, block, longRows, outer, [&](Value *begin, Accumulator sum) {
        Value *end = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(begin, i64(block)), full);
        SmallVector<Value *> inits;
        for (unsigned i = 0; i < unroll; ++i)
          inits.append(identity.begin(), identity.end());
        SmallVector<Value *> partial =
            emitLoop(begin, end, i64(step), inits, [&](Value *iv, ArrayRef<Value *> carried) {
              SmallVector<Value *> next;
              for (unsigned i = 0; i < unroll; ++i) {
                withLanes(axis, width, b.CreateAdd(iv, i64(i * width)), nullptr, [&] {
                  Accumulator one(carried.begin() + i * parts, carried.begin() + (i + 1) * parts);
                  next.append(emitReducePoint(op, std::move(one)));
                });
              }
              return next;
            });
        SmallVector<Accumulator> list;
        for (unsigned i = 0; i < unroll; ++i)
          list.emplace_back(partial.begin() + i * parts, partial.begin() + (i + 1) * parts);
        for (unsigned half = unroll / 2; half; half /= 2)
          for (unsigned i = 0; i < half; ++i)
            list[i] = combine(*this, op, list[i], list[i + half]);
        return combine(*this, op, sum, list[0]);
      });
  // What is left, in single vectors of which the last may have missing lanes.
  SmallVector<Value *> rest =
      emitLoop(full, high, i64(width), blocks, [&](Value *iv, ArrayRef<Value *> carried) {
        SmallVector<Value *> next;
        withLanes(axis, width, iv, high, [&] {
          next = SmallVector<Value *>(
              emitReducePoint(op, Accumulator(carried.begin(), carried.end())));
        });
        return next;
      });
  return Accumulator(rest.begin(), rest.end());
}

Accumulator Emitter::emitReducePoint(tgl::ReduceOp op, Accumulator accumulator) {
  emitBlock(op.getBody().front());
  return failed() ? accumulator : addPoint(*this, op, std::move(accumulator));
}
