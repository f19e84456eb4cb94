//===- EmitReduce.cpp - Reductions as LLVM IR --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/Emitter.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;
using tgl::ReduceKind;

static bool isArg(ReduceKind kind) {
  return kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin;
}

/// Type that is accumulated: of what the region yields.
static mlir::Type reducedType(tgl::ReduceOp op) {
  return op.getKind() == ReduceKind::Count ? op.getType() : op.getReduced().getType();
}

/// Positions of argmax and argmin are kept in half a word where that holds them: of all that is
/// done for a term they are most.
Type *Emitter::positionType(tgl::ReduceOp op) {
  std::optional<int64_t> high = highOf(cast<tgl::AxesOp>(op.getOperation()), 0).asConstant();
  bool isShort = high && *high >= 0 && *high <= std::numeric_limits<int32_t>::max();
  return isShort ? b.getInt32Ty() : b.getInt64Ty();
}

Emitter::Accumulator Emitter::initialAccumulator(tgl::ReduceOp op) {
  bool hasPosition = isArg(op.getKind());
  Accumulator initial = initialAccumulator(op.getKind(), typeOf(reducedType(op)),
                                           hasPosition ? positionType(op) : nullptr);
  if (initial.empty()) {
    fail(op, "this reduction is expanded before code generation");
    return {ConstantFP::get(typeOf(op.getType()), 0)};
  }
  return initial;
}

Emitter::Accumulator Emitter::initialAccumulator(ReduceKind kind, Type *type, Type *position) {
  auto number = [&](double real, int64_t integer) -> Constant * {
    return type->isFloatingPointTy() ? ConstantFP::get(type, real)
                                     : cast<Constant>(ConstantInt::getSigned(type, integer));
  };
  auto extreme = [&](bool lowest) -> Constant * {
    if (type->isFloatingPointTy())
      return ConstantFP::getInfinity(type, lowest);
    unsigned width = type->getIntegerBitWidth();
    return ConstantInt::get(type, lowest ? APInt::getSignedMinValue(width)
                                         : APInt::getSignedMaxValue(width));
  };
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Count:
    // -0.0 is the identity of addition, but over nothing a sum is +0.
    return {number(0, 0)};
  case ReduceKind::Prod:
    return {number(1, 1)};
  case ReduceKind::Max:
    return {extreme(true)};
  case ReduceKind::Min:
    return {extreme(false)};
  case ReduceKind::Any:
    return {b.getFalse()};
  case ReduceKind::All:
    return {b.getTrue()};
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin:
    return {extreme(kind == ReduceKind::ArgMax), Constant::getAllOnesValue(position)};
  case ReduceKind::Var:
    return {number(0, 0), number(0, 0), number(0, 0), number(0, 0)};
  default:
    return {};
  }
}

Emitter::Accumulator Emitter::combine(ReduceKind kind, const Accumulator &lhs,
                                      const Accumulator &rhs) {
  bool isFloat = lhs[0]->getType()->isFPOrFPVectorTy();
  auto extreme = [&](bool largest) {
    if (isFloat)
      return emitExtreme(largest ? Intrinsic::maximum : Intrinsic::minimum, lhs[0], rhs[0]);
    return b.CreateBinaryIntrinsic(largest ? Intrinsic::smax : Intrinsic::smin, lhs[0], rhs[0]);
  };
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Count:
    return {isFloat ? b.CreateFAdd(lhs[0], rhs[0]) : b.CreateAdd(lhs[0], rhs[0])};
  case ReduceKind::Prod:
    return {isFloat ? b.CreateFMul(lhs[0], rhs[0]) : b.CreateMul(lhs[0], rhs[0])};
  case ReduceKind::Max:
    return {extreme(true)};
  case ReduceKind::Min:
    return {extreme(false)};
  case ReduceKind::Any:
    return {b.CreateOr(lhs[0], rhs[0])};
  case ReduceKind::All:
    return {b.CreateAnd(lhs[0], rhs[0])};
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin: {
    // rhs wins if it is there and lhs is not, if it is better, or as good and earlier.
    Value *better = isBetter(kind, lhs[0], rhs[0]), *worse = isBetter(kind, rhs[0], lhs[0]);
    Value *equal = b.CreateNot(b.CreateOr(better, worse));
    Value *none = Constant::getAllOnesValue(lhs[1]->getType());
    Value *present = b.CreateICmpNE(rhs[1], none);
    Value *first = b.CreateICmpEQ(lhs[1], none);
    Value *earlier = b.CreateAnd(equal, b.CreateICmpSLT(rhs[1], lhs[1]));
    Value *take = b.CreateAnd(present, b.CreateOr(first, b.CreateOr(better, earlier)));
    return {b.CreateSelect(take, rhs[0], lhs[0]), b.CreateSelect(take, rhs[1], lhs[1])};
  }
  case ReduceKind::Var:
    return combineVariances(lhs, rhs);
  default:
    return lhs;
  }
}

/// Whether the right number is better than the left one: nan is best.
Value *Emitter::isBetter(ReduceKind kind, Value *lhs, Value *rhs) {
  bool largest = kind == ReduceKind::ArgMax;
  if (!lhs->getType()->isFPOrFPVectorTy())
    return largest ? b.CreateICmpSGT(rhs, lhs) : b.CreateICmpSLT(rhs, lhs);
  Value *beats = largest ? b.CreateFCmpUGT(rhs, lhs) : b.CreateFCmpULT(rhs, lhs); // or one is nan
  return b.CreateAnd(beats, b.CreateFCmpORD(lhs, lhs));
}

/// The next point of an argmax or argmin, which is later than all that the accumulator has seen.
Emitter::Accumulator Emitter::takeNext(ReduceKind kind, Accumulator accumulator, Accumulator point,
                                       Value *counts) {
  for (auto [element, before] : zip_equal(point, accumulator)) {
    Value *operands[] = {element, before};
    align(operands);
    element = operands[0];
    before = operands[1];
  }
  Value *first =
      b.CreateICmpEQ(accumulator[1], Constant::getAllOnesValue(accumulator[1]->getType()));
  Value *take = emitAnd(counts, b.CreateOr(first, isBetter(kind, accumulator[0], point[0])));
  for (auto [element, before] : zip_equal(point, accumulator)) {
    Value *operands[] = {take, element, before};
    align(operands);
    before = b.CreateSelect(operands[0], operands[1], operands[2]);
  }
  return accumulator;
}

Emitter::Accumulator Emitter::emitReducePoint(tgl::ReduceOp op, Accumulator accumulator) {
  emitBlock(op.getBody().front());
  if (failed())
    return accumulator;
  Value *value = valueOf(op.getReduced());
  if (op.getKind() == ReduceKind::Count) {
    Type *type = typeOf(op.getType());
    value =
        b.CreateZExt(value, isVector(value) ? VectorType::get(type, lanes->width, false) : type);
  }
  Accumulator point = {value};
  if (isArg(op.getKind())) {
    Value *position = valueOf(op.getAxes()[0]);
    Type *type = positionType(op);
    point.push_back(b.CreateTrunc(position, position->getType()->getWithNewType(type)));
  }
  if (op.getKind() == ReduceKind::Var) // one term, which is its own mean
    point = {ConstantFP::get(typeOf(op.getType()), 1), value,
             Constant::getNullValue(value->getType()), Constant::getNullValue(value->getType())};
  // Points that the filter leaves out, and lanes of this reduction's own axis that do not exist, do
  // not count. (Lanes of an axis outside compute something that nobody stores.)
  Value *counts = op.getFilter() ? valueOf(op.getFilter()) : nullptr;
  if (lanes && lanes->mask && is_contained(op.getAxes(), lanes->axis))
    counts = emitAnd(counts, lanes->mask);
  if (isArg(op.getKind()))
    return takeNext(op.getKind(), accumulator, std::move(point), counts);
  if (counts) {
    Accumulator identity = initialAccumulator(op);
    for (auto [element, neutral] : zip_equal(point, identity)) {
      Value *operands[] = {counts, element, neutral};
      align(operands);
      element = b.CreateSelect(operands[0], operands[1], operands[2]);
    }
  }
  for (auto [element, sum] : zip_equal(point, accumulator)) {
    Value *operands[] = {element, sum};
    align(operands);
    element = operands[0];
    sum = operands[1];
  }
  return combine(op, accumulator, point);
}

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

Emitter::Accumulator Emitter::emitBlockedSum(tgl::ReduceOp op, Value *low, Value *high,
                                             int64_t step, BlockedSum parts, Accumulator start,
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
        return SmallVector<Value *>(parts.levels ? combine(op, before, part(iv))
                                                 : body(iv, std::move(before)));
      });
  return Accumulator(results.begin(), results.end());
}

Emitter::Accumulator Emitter::emitSerialReduce(tgl::ReduceOp op, ArrayRef<unsigned> order,
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
                          return combine(op, before,
                                         emitSerialReduce(op, rest, std::move(zeros), innermost));
                        });
}

void Emitter::emitReduce(tgl::ReduceOp op) {
  SmallVector<mlir::Operation *> free;
  Value *interior = insideReads.empty() ? emitPeeledInterior(op, free) : nullptr;
  if (!interior) {
    values[op.getResult()] = resultOf(op, emitReduceNest(op));
    return;
  }
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *inside = BasicBlock::Create(module.getContext(), "inside", function);
  BasicBlock *border = BasicBlock::Create(module.getContext(), "border", function);
  BasicBlock *after = BasicBlock::Create(module.getContext(), "endwindow", function);
  b.CreateCondBr(interior, inside, border);
  b.SetInsertPoint(inside);
  insideReads.insert_range(free);
  Value *unchecked = resultOf(op, emitReduceNest(op));
  insideReads.clear();
  BasicBlock *insideEnd = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(border);
  Value *checked = resultOf(op, emitReduceNest(op));
  BasicBlock *borderEnd = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  PHINode *result = b.CreatePHI(checked->getType(), 2);
  result->addIncoming(unchecked, insideEnd);
  result->addIncoming(checked, borderEnd);
  values[op.getResult()] = result;
}

Emitter::Accumulator Emitter::emitReduceNest(tgl::ReduceOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  Accumulator accumulator = initialAccumulator(op);
  SmallVector<unsigned> order = to_vector(seq<unsigned>(0, op.getAxes().size()));
  std::optional<LaneChoice> choice;
  if (!lanes)
    choice = chooseLanes(axes);
  if (choice) {
    llvm::erase(order, choice->axis);
    accumulator = splatAccumulator(op, std::move(accumulator), choice->width);
    accumulator = emitSerialReduce(op, order, accumulator, [&](Accumulator inner) {
      return emitLaneReduce(op, *choice, std::move(inner));
    });
    accumulator = combineLanes(op, accumulator, choice->width);
  } else {
    // Inside lanes of an outer axis the accumulator is a vector if the body's value is.
    if (lanes)
      accumulator = splatAccumulator(op, std::move(accumulator), lanes->width);
    accumulator = emitSerialReduce(op, order, accumulator, [&](Accumulator inner) {
      return emitReducePoint(op, std::move(inner));
    });
  }
  return accumulator;
}

/// Vectors are halved until one lane is left: a fixed, pairwise order.
Emitter::Accumulator Emitter::combineLanes(tgl::ReduceOp op, Accumulator accumulator,
                                           unsigned width) {
  for (unsigned half = width / 2; half; half /= 2) {
    SmallVector<int> lower, upper;
    for (unsigned lane = 0; lane < half; ++lane) {
      lower.push_back(lane);
      upper.push_back(lane + half);
    }
    Accumulator left, right;
    for (Value *element : accumulator) {
      left.push_back(isVector(element) ? b.CreateShuffleVector(element, lower) : element);
      right.push_back(isVector(element) ? b.CreateShuffleVector(element, upper) : element);
    }
    accumulator = combine(op, left, right);
  }
  for (Value *&element : accumulator)
    if (isVector(element))
      element = b.CreateExtractElement(element, uint64_t(0));
  return accumulator;
}

/// One axis in vectors: `unroll` independent accumulators, in blocks whose sums are added up on
/// their own, so that the error of a long sum grows with its square root of a square root and not
/// with its length.
Emitter::Accumulator Emitter::emitLaneReduce(tgl::ReduceOp op, const LaneChoice &choice,
                                             Accumulator outer) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  mlir::Value axis = op.getAxes()[choice.axis];
  unsigned width = choice.width, unroll = choice.unroll, step = width * unroll;
  constexpr int64_t blockSteps = 64;
  Value *low = emitLow(axes, choice.axis), *high = emitHigh(axes, choice.axis);
  Value *full = emitFullEnd(low, high, step);

  Accumulator identity = splatAccumulator(op, initialAccumulator(op), width);
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
            list[i] = combine(op, list[i], list[i + half]);
        return combine(op, sum, list[0]);
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
