//===- DeviceReduce.cpp - Reductions by a team of threads -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/DeviceEmitter.h"

#include "codegen/simt/ClusterReduction.h"
#include "codegen/simt/ColumnSplit.h"
#include "codegen/simt/DataRanges.h"
#include "codegen/simt/NestShape.h"
#include "codegen/simt/RowCache.h"
#include "codegen/simt/WindowTiles.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// `first`, and reductions after it over the same points that can be computed where it stands: what
/// they read is then read once. Reductions with axes that depend on each other stay alone.
SmallVector<tgl::ReduceOp> DeviceEmitter::takeTogether(tgl::ReduceOp first) {
  SmallVector<tgl::ReduceOp> together{first};
  auto axes = cast<tgl::AxesOp>(first.getOperation());
  SmallVector<unsigned> box, rest;
  splitAxes(axes, box, rest);
  std::optional<LaneChoice> lane = chooseLanes(axes);
  if (!rest.empty())
    return together;
  DenseSet<mlir::Value> written;
  for (mlir::Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    auto reduce = dyn_cast<tgl::ReduceOp>(op);
    if (!reduce) {
      written.insert_range(tgl::accessesOf(op).writes);
      continue;
    }
    auto others = cast<tgl::AxesOp>(op);
    bool same = others.getAxes().size() == axes.getAxes().size();
    for (unsigned axis = 0; same && axis < axes.getAxes().size(); ++axis)
      same = (lowOf(axes, axis) - lowOf(others, axis)).asConstant() == 0 &&
             (highOf(axes, axis) - highOf(others, axis)).asConstant() == 0;
    if (!same || isEmpty(op))
      continue;
    std::optional<LaneChoice> otherLane = chooseLanes(others);
    same = lane.has_value() == otherLane.has_value() &&
           (!lane || (lane->axis == otherLane->axis && lane->width == otherLane->width));
    auto isKnown = [&](mlir::Value value) {
      mlir::Operation *definition = value.getDefiningOp();
      return !definition || definition->getBlock() != first->getBlock() ||
             definition->isBeforeInBlock(first);
    };
    op->walk([&](mlir::Operation *nested) {
      for (mlir::Value operand : nested->getOperands())
        same &= op->isAncestor(operand.getParentBlock()->getParentOp()) || isKnown(operand);
    });
    for (mlir::Value tensor : tgl::accessesOf(op).reads)
      same &= !written.contains(tensor);
    if (same)
      together.push_back(reduce);
  }
  return together;
}

/// A device distributes long sums to its threads. What a thread adds up alone has few terms as a
/// rule, such as a row of a sparse matrix whose length data say: it is no place for a nest of
/// loops.
Emitter::BlockedSum DeviceEmitter::blockedSumOf(tgl::ReduceOp op, unsigned axis) {
  BlockedSum parts = Emitter::blockedSumOf(op, axis);
  std::optional<int64_t> points = tgl::knownPoints(cast<tgl::AxesOp>(op.getOperation()), axis);
  if (op.getKind() != tgl::ReduceKind::Sum || !parts.levels)
    return parts;
  if (!points)
    return {1, 0, /*keepsError=*/true};
  constexpr int64_t terms = 256;
  return *points < 2 * terms ? BlockedSum() : BlockedSum{terms, 1, *points >= terms * terms};
}

/// A long reduction of a thread alone, in steps of several terms, so that their loads are under way
/// together. Sums are added up in stretches, as everywhere.
Accumulator DeviceEmitter::emitColumn(tgl::ReduceOp op) {
  constexpr int64_t stretch = 256, shortAxis = 8;
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  unsigned innermost = op.getAxes().size() - 1;
  int64_t extent = *tgl::knownPoints(nest, innermost), step = lanes ? 4 : 8;
  if (extent < shortAxis)
    return Emitter::emitReduceNest(op);
  Value *low = emitIndex(lowOf(nest, innermost));
  auto initial = [&] {
    Accumulator start = initialAccumulator(*this, op);
    return lanes ? splatAccumulator(*this, op, std::move(start), lanes->width) : start;
  };
  auto terms = [&](Value *from, int64_t count, Accumulator accumulator) {
    checks.reportTogether([&] {
      for (int64_t term = 0; term < count; ++term) {
        values[op.getAxes()[innermost]] = b.CreateNSWAdd(low, b.CreateNSWAdd(from, i64(term)));
        accumulator = emitReducePoint(op, std::move(accumulator));
      }
    });
    return accumulator;
  };
  auto part = [&](Value *from, int64_t count) {
    int64_t whole = count - count % step;
    keepNextLoopRolled = true;
    SmallVector<Value *> sum = emitLoop(from, b.CreateNSWAdd(from, i64(whole)), i64(step),
                                        initial(), [&](Value *at, ArrayRef<Value *> now) {
                                          return SmallVector<Value *>(
                                              terms(at, step, Accumulator(now.begin(), now.end())));
                                        });
    return terms(b.CreateNSWAdd(from, i64(whole)), count % step,
                 Accumulator(sum.begin(), sum.end()));
  };
  SmallVector<unsigned> outer = to_vector(seq<unsigned>(0, innermost));
  // Line by line: what neighbouring threads take of a line of memory is then taken while it is in
  // the cache.
  keepNextLoopRolled = !outer.empty();
  return emitSerialReduce(op, outer, initial(), [&](Accumulator accumulator) {
    int64_t whole = extent - extent % stretch;
    keepNextLoopRolled = true;
    SmallVector<Value *> sum = emitLoop(
        i64(0), i64(whole), i64(stretch), accumulator, [&](Value *from, ArrayRef<Value *> now) {
          return SmallVector<Value *>(
              combine(*this, op, Accumulator(now.begin(), now.end()), part(from, stretch)));
        });
    accumulator.assign(sum.begin(), sum.end());
    return whole == extent ? accumulator
                           : combine(*this, op, accumulator, part(i64(whole), extent - whole));
  });
}

/// Windows and short columns of a thread are written out: addresses are constants apart then, and
/// loads under way together.
Accumulator DeviceEmitter::emitReduceNest(tgl::ReduceOp op) {
  constexpr int64_t longestWindow = 64;
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  std::optional<int64_t> points = tgl::knownPoints(nest);
  bool isPlain =
      all_of(op.getBody().front(), [](mlir::Operation &nested) { return !nested.getNumRegions(); });
  // Elementary functions are a dozen instructions each: written out often they only fill the
  // instruction cache.
  constexpr int64_t maxOperations = 1024;
  int64_t operations = 0;
  for (mlir::Operation &nested : op.getBody().front())
    operations += isa<mlir::math::MathDialect>(nested.getDialect()) ? 16 : 1;
  bool isSmall = points && *points * operations <= maxOperations;
  bool hasFill = false;
  op.walk([&](tgl::ReadOp read) { hasFill |= read.getFill() != nullptr; });
  bool isWindow = hasFill && !insideReads.empty(); // of which all is there
  // A few points of several dims: a loop for each dim would load them one after the other.
  constexpr int64_t fewPoints = 16, maxCheapOperations = 256;
  unsigned dims = 0;
  for (unsigned axis = 0; axis < op.getAxes().size(); ++axis)
    dims += tgl::knownPoints(nest, {axis}) != 1;
  bool isFew = points && dims > 1 && *points <= fewPoints &&
               *points * operations <= maxCheapOperations && !hasFill;
  if (inWindows)
    return windows->emitReduce(op);
  if (shape.columnSplit > 1)
    return columns->emitReduce(op);
  bool isUnrolled = unrolled.contains(op) || (isPlain && isSmall && *points <= longestWindow &&
                                              (isWindow || isFew || (!hasFill && lanes)));
  if (!perThread || !hasRowShape(nest))
    return Emitter::emitReduceNest(op);
  if (!isUnrolled) {
    bool isColumn = isPlain && !op.getAxes().empty() &&
                    tgl::knownPoints(nest, op.getAxes().size() - 1) && (!hasFill || isWindow) &&
                    (lanes || !chooseLanes(nest));
    return isColumn ? emitColumn(op) : Emitter::emitReduceNest(op);
  }
  SmallVector<unsigned> all = to_vector(seq<unsigned>(0, nest.getAxes().size()));
  Accumulator accumulator = initialAccumulator(*this, op);
  if (lanes)
    accumulator = splatAccumulator(*this, op, std::move(accumulator), lanes->width);
  checks.reportTogether([&] {
    for (int64_t point = 0; point < *points; ++point)
      setAxes(nest, all, i64(point), std::nullopt,
              [&] { accumulator = emitReducePoint(op, std::move(accumulator)); });
  });
  return accumulator;
}

/// How many vectors of a row that is walked once a thread of a team takes at a time, as far as
/// registers go.
unsigned DeviceEmitter::numbersAhead(ArrayRef<tgl::ReduceOp> together, unsigned width) {
  constexpr unsigned maxAhead = 4, maxOperations = 128;
  DenseSet<mlir::Value> tensors;
  unsigned bytes = 0, operations = 0;
  for (tgl::ReduceOp reduce : together)
    for (mlir::Operation &nested : reduce.getBody().front()) {
      if (nested.getNumRegions())
        return 1;
      operations += isa<mlir::math::MathDialect>(nested.getDialect()) ? 16 : 1;
      if (auto read = dyn_cast<tgl::ReadOp>(nested);
          read && tensors.insert(read.getTensor()).second)
        bytes += width *
                 storageType(read.getTensorType().getElementType())->getPrimitiveSizeInBits() / 8;
    }
  unsigned ahead = maxAhead;
  while (ahead > 1 &&
         (ahead * bytes * shape.threads > bytesAtOnce || ahead * operations > maxOperations))
    ahead /= 2;
  return ahead;
}

/// The read of a reduction that looks for the largest or smallest of elements of 16 bits as they
/// lie in memory. A team compares two of them by one instruction and widens what is left of them
/// (PTX ISA, "max": .NaN.f16x2 and .bf16x2). Null for other reductions.
static tgl::ReadOp readOfHalves(DeviceEmitter &e, tgl::ReduceOp op, const LaneChoice &lane) {
  constexpr unsigned minCapability = 80;
  bool isExtreme = op.getKind() == tgl::ReduceKind::Max || op.getKind() == tgl::ReduceKind::Min;
  auto read = op.getReduced().getDefiningOp<tgl::ReadOp>();
  if (!isExtreme || op.getFilter() || !read || read->getParentOp() != op || read.getFill() ||
      read.getGuard() || lane.width % 2 != 0 || e.options.target.capability < minCapability)
    return nullptr;
  mlir::Type element = read.getTensorType().getElementType();
  tgl::ValueExpr offset = tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs());
  bool isAlongLanes = tgl::stepAlong(offset, op.getAxes()[lane.axis]) == 1;
  return isAlongLanes && (element.isF16() || element.isBF16()) ? read : nullptr;
}

static Type *typeOfHalves(IRBuilder<> &b, tgl::ReadOp read, unsigned width) {
  bool isBF16 = read.getTensorType().getElementType().isBF16();
  return FixedVectorType::get(isBF16 ? b.getBFloatTy() : b.getHalfTy(), width);
}

void DeviceEmitter::emitReduce(tgl::ReduceOp op) {
  if (reducedBefore.contains(op))
    return;
  if (perThread) {
    // The same code may be emitted again where less can be walked together.
    for (tgl::ReduceOp other : takeTogether(op))
      reducedBefore.erase(other);
    SmallVector<tgl::ReduceOp> together = columnsTogether(*this, op);
    if (together.size() == 1)
      return Emitter::emitReduce(op);
    emitColumnsTogether(*this, together);
    reducedBefore.insert_range(ArrayRef(together).drop_front());
    return;
  }
  perThread = true;
  SmallVector<tgl::ReduceOp> together = takeTogether(op);
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  SmallVector<unsigned> box, rest;
  splitAxes(axes, box, rest);
  std::optional<LaneChoice> lane = rows->laneOf(axes);
  if (lane && !is_contained(box, lane->axis))
    lane.reset();
  SmallVector<Value *> start;
  for (tgl::ReduceOp each : together) {
    Accumulator initial = initialAccumulator(*this, each);
    if (tgl::ReadOp halves = lane ? readOfHalves(*this, each, *lane) : nullptr)
      initial = {ConstantFP::getInfinity(typeOfHalves(b, halves, lane->width),
                                         each.getKind() == tgl::ReduceKind::Max)};
    else if (lane)
      initial = splatAccumulator(*this, each, std::move(initial), lane->width);
    start.append(initial);
  }
  /// The part of all accumulators that belongs to each reduction, in order.
  auto forEach = [&](ArrayRef<Value *> all, function_ref<void(tgl::ReduceOp, Accumulator)> visit) {
    for (tgl::ReduceOp each : together) {
      size_t parts = initialAccumulator(*this, each).size();
      visit(each, Accumulator(all.take_front(parts)));
      all = all.drop_front(parts);
    }
  };
  auto body = [&](Value *number, Value *exists, ArrayRef<Value *> carried) {
    SmallVector<Value *> results;
    forEach(carried, [&](tgl::ReduceOp each, Accumulator before) {
      setAxes(cast<tgl::AxesOp>(each.getOperation()), box, number, lane, [&] {
        results.append(emitSerialReduce(each, rest, before, [&](Accumulator inner) {
          tgl::ReadOp halves = lane ? readOfHalves(*this, each, *lane) : nullptr;
          if (!halves)
            return emitReducePoint(each, std::move(inner));
          emitBlock(each.getBody().front());
          Value *raw = b.CreateBitCast(loaded.lookup(halves.getResult()).second,
                                       typeOfHalves(b, halves, lane->width));
          if (lanes->mask)
            raw = b.CreateSelect(
                lanes->mask, raw,
                ConstantFP::getInfinity(raw->getType(), each.getKind() == tgl::ReduceKind::Max));
          return tegula::combine(*this, each, inner, {raw});
        }));
      });
    });
    if (exists)
      for (auto [value, kept] : zip_equal(results, carried))
        value = b.CreateSelect(exists, value, kept);
    return results;
  };
  SmallVector<tgl::AxesOp> nests;
  bool isRow = false;
  for (tgl::ReduceOp each : together) {
    nests.push_back(cast<tgl::AxesOp>(each.getOperation()));
    isRow |= rows->holds(each);
  }
  SmallVector<Value *> partial =
      isRow ? rows->distribute(nests, lane, start, body)
      : isDataRange(op) && !lane
          ? distributeRange(*this, together, countOf(axes, box), start, numbersAhead(together, 1),
                            body)
          : distribute(countOf(axes, box, lane), start, body,
                       rest.empty() ? numbersAhead(together, lane ? lane->width : 1) : 1);
  perThread = false;
  forEach(partial, [&](tgl::ReduceOp each, Accumulator own) {
    if (lane)
      own = combineLanes(*this, each, own, lane->width);
    if (lane && readOfHalves(*this, each, *lane))
      own = {b.CreateFPExt(own[0], b.getFloatTy())};
    values[each.getResult()] =
        resultOf(*this, each, combineCluster(each, combineTeam(each, std::move(own))));
  });
  reducedBefore.insert_range(ArrayRef(together).drop_front());
}

/// The value of another thread of the warp, by one of the shuffles of 32 bits.
Value *DeviceEmitter::shuffle(Value *value, Intrinsic::ID id, Value *lane, unsigned clamp) {
  Type *type = value->getType();
  unsigned bits = type->getPrimitiveSizeInBits();
  auto word = [&](Value *one) {
    return b.CreateIntrinsic(b.getInt32Ty(), id, {b.getInt32(-1), one, lane, b.getInt32(clamp)});
  };
  if (bits == 64) {
    Value *whole = b.CreateBitCast(value, b.getInt64Ty());
    Value *low = word(b.CreateTrunc(whole, b.getInt32Ty()));
    Value *high = word(b.CreateTrunc(b.CreateLShr(whole, 32), b.getInt32Ty()));
    whole = b.CreateOr(b.CreateZExt(low, b.getInt64Ty()),
                       b.CreateShl(b.CreateZExt(high, b.getInt64Ty()), 32));
    return b.CreateBitCast(whole, type);
  }
  if (bits == 32)
    return b.CreateBitCast(word(b.CreateBitCast(value, b.getInt32Ty())), type);
  assert(type->isIntegerTy() && "accumulators are i1, or have 32 or 64 bits");
  return b.CreateTrunc(word(b.CreateZExt(value, b.getInt32Ty())), type);
}

/// Neighbouring threads, then pairs of them, and so on: all get the result.
Accumulator DeviceEmitter::combineWarp(tgl::ReduceKind kind, Accumulator accumulator,
                                       unsigned threads) {
  for (unsigned distance = 1; distance < threads; distance *= 2) {
    Accumulator other;
    for (Value *element : accumulator)
      other.push_back(
          shuffle(element, Intrinsic::nvvm_shfl_sync_bfly_i32, b.getInt32(distance), warp - 1));
    accumulator = combine(*this, kind, accumulator, other);
  }
  return accumulator;
}

Accumulator DeviceEmitter::combineTeam(tgl::ReduceOp op, Accumulator accumulator) {
  accumulator = combineWarp(op, std::move(accumulator), std::min(shape.team, warp));
  unsigned warps = shape.team / warp;
  if (warps <= 1)
    return accumulator;
  // Slots of a reduction that a loop runs again are still being read.
  for (mlir::Operation *around = op->getParentOp(); around != statement;
       around = around->getParentOp())
    if (isa<tgl::ForOp, tgl::TilesOp, tgl::ParallelOp>(around)) {
      barrier();
      break;
    }
  SmallVector<std::pair<GlobalVariable *, Type *>> slots;
  Value *number = b.CreateUDiv(thread, i64(warp)), *inWarp = b.CreateURem(thread, i64(warp));
  // A block of a cluster may go on to its next row when others of its threads have yet to read this
  // one's slots.
  bool hasTurns = rowPhase && shape.cluster > 1;
  Value *set = hasTurns ? b.CreateNSWMul(b.CreateAnd(rowPhase, i64(1)), i64(warps)) : i64(0);
  auto slot = [&](GlobalVariable *array, Value *index) {
    return b.CreateInBoundsGEP(b.getInt64Ty(), array, b.CreateNSWAdd(set, index));
  };
  for (Value *element : accumulator)
    slots.push_back(
        {shared(ArrayType::get(b.getInt64Ty(), hasTurns ? 2 * warps : warps), "exchange"),
         element->getType()->isIntegerTy(1) ? b.getInt8Ty() : element->getType()});
  emitIf(b.CreateICmpEQ(inWarp, i64(0)), [&] {
    for (auto [element, place] : zip_equal(accumulator, slots))
      b.CreateStore(element->getType()->isIntegerTy(1) ? b.CreateZExt(element, b.getInt8Ty())
                                                       : element,
                    slot(place.first, number));
  });
  barrier();
  Value *mine = b.CreateURem(inWarp, i64(warps));
  for (auto [element, place] : zip_equal(accumulator, slots)) {
    bool isBit = element->getType()->isIntegerTy(1);
    element = b.CreateLoad(place.second, slot(place.first, mine));
    if (isBit)
      element = b.CreateTrunc(element, b.getInt1Ty());
  }
  return combineWarp(op, std::move(accumulator), warps);
}

Accumulator DeviceEmitter::combineCluster(tgl::ReduceOp op, Accumulator accumulator) {
  return shape.cluster == 1 ? accumulator : clusters->combine(op, std::move(accumulator));
}
