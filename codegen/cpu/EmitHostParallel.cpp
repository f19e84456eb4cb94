//===- EmitHostParallel.cpp - Parallel loops over the points of a statement ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/HostAbi.h"
#include "codegen/cpu/HostEmitter.h"
#include "codegen/cpu/PackedGemm.h"
#include "ir/tgl/TglUtils.h"
#include <cstddef>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// Points of the vectorised axis that one number stands for: at most, long enough to amortise the
/// outlined call; at least, so that neighbours do not share cache lines and each walks along a
/// stretch of memory.
static constexpr int64_t maxLaneBlock = 4096, minLaneBlock = 128;
/// Parts of a reduction over the whole of a kernel, and their length in points. Both follow from
/// sizes alone: results must not depend on the number of threads.
static constexpr int64_t maxParts = 256, minPointsPerPart = 32768;

HostEmitter::Numbering HostEmitter::numberingOf(tgl::ParallelOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  Numbering result;
  result.lane = chooseLanes(axes);
  for (unsigned axis = 0; axis < op.getAxes().size(); ++axis) {
    if (result.lane && result.lane->axis == axis)
      continue;
    bool independent = true;
    for (mlir::Value own : op.getAxes())
      independent &= !lowOf(axes, axis).uses(own) && !highOf(axes, axis).uses(own);
    (independent ? result.outer : result.inner).push_back(axis);
  }
  if (result.lane) { // a lane axis whose bounds differ from point to point stays whole
    for (mlir::Value own : op.getAxes())
      if (lowOf(axes, result.lane->axis).uses(own) || highOf(axes, result.lane->axis).uses(own))
        return result;
    laneIsBlocked = true;
  }
  return result;
}

Value *HostEmitter::extent(tgl::AxesOp op, unsigned axis) {
  Value *difference = b.CreateSub(emitIndex(highOf(op, axis)), emitIndex(lowOf(op, axis)));
  return b.CreateBinaryIntrinsic(Intrinsic::smax, difference, i64(0));
}

void HostEmitter::emitOutlined(tgl::ParallelOp op) {
  std::optional<ContractionPlan> plan;
  if (options.vectorBytes)
    plan = planContraction(op);
  if (!plan)
    return emitPoints(op);
  PackedGemmEmitter contraction(*this, *plan);
  PackedGemmShape shape = contraction.emitShape(emitThreads(), i64(4));
  auto asProduct = [&] {
    outline(op, shape.units, contraction.emitCost(shape), shape.values(),
            [&](Value *begin, Value *end, ArrayRef<Value *> passed) {
              PackedGemmShape inside = PackedGemmShape::from(passed);
              Value *memory =
                  emitMemory(offsetof(HostRun, panels), contraction.emitScratchBytes(inside));
              emitLoop(
                  begin, end, i64(1), {},
                  [&](Value *unit, ArrayRef<Value *>) {
                    contraction.emitUnit(inside, unit, memory);
                    return SmallVector<Value *>();
                  },
                  "unit");
            });
  };
  Value *worthwhile = contraction.emitWorthwhile(shape);
  if (auto *known = dyn_cast<ConstantInt>(worthwhile))
    return known->isOne() ? asProduct() : emitPoints(op);
  emitIf(worthwhile, asProduct);
  emitIf(b.CreateNot(worthwhile), [&] { emitPoints(op); });
}

bool HostEmitter::emitInnerProduct(tgl::ParallelOp op) {
  std::optional<ContractionPlan> plan;
  if (options.vectorBytes)
    plan = planContraction(op);
  if (!plan)
    return false;
  PackedGemmEmitter contraction(*this, *plan);
  Value *one = i64(1);
  PackedGemmShape shape = contraction.emitShape(one, one);
  Value *worthwhile = contraction.emitWorthwhile(shape);
  emitIf(worthwhile, [&] {
    Value *memory = emitMemory(offsetof(HostRun, panels), contraction.emitScratchBytes(shape));
    emitLoop(
        i64(0), shape.units, one, {},
        [&](Value *unit, ArrayRef<Value *>) {
          contraction.emitUnit(shape, unit, memory);
          return SmallVector<Value *>();
        },
        "unit");
  });
  emitIf(b.CreateNot(worthwhile), [&] { Emitter::emitParallel(op); });
  return true;
}

Value *HostEmitter::emitThreads() {
  Value *threads =
      b.CreateLoad(b.getInt64Ty(), b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), hostRun,
                                                                offsetof(HostRun, threads)));
  return b.CreateBinaryIntrinsic(Intrinsic::smax, threads, i64(1));
}

void HostEmitter::emitPoints(tgl::ParallelOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  laneIsBlocked = false;
  Numbering numbering = numberingOf(op);
  bool blocked = laneIsBlocked;

  // The caller: numbers of points, the frame, the call.
  Value *count = i64(1), *laneBlock = nullptr;
  for (unsigned axis : numbering.outer)
    count = b.CreateMul(count, extent(axes, axis));
  Value *cost = emitWork(op.getBody().front(), op);
  for (unsigned axis : numbering.inner)
    cost = b.CreateMul(cost, estimateExtent(axes, axis, op));
  if (numbering.lane) {
    Value *length = blocked ? extent(axes, numbering.lane->axis)
                            : estimateExtent(axes, numbering.lane->axis, op);
    if (blocked) {
      laneBlock = emitLaneBlock(count, length);
      count = b.CreateMul(
          count, b.CreateUDiv(b.CreateAdd(length, b.CreateSub(laneBlock, i64(1))), laneBlock));
      length = b.CreateBinaryIntrinsic(Intrinsic::smin, length, laneBlock);
    }
    cost = b.CreateAdd(b.CreateSDiv(b.CreateMul(cost, length), i64(numbering.lane->width)), i64(1));
  }
  SmallVector<Value *> extra;
  if (blocked)
    extra.push_back(laneBlock);
  outline(op, count, cost, extra, [&](Value *begin, Value *end, ArrayRef<Value *> passed) {
    allocateScratch(op);
    emitNumbers(op, numbering, blocked ? passed[0] : nullptr, begin, end);
  });
}

Value *HostEmitter::emitLaneBlock(Value *others, Value *length) {
  Value *wanted = b.CreateMul(emitThreads(), i64(2));
  Value *most = b.CreateBinaryIntrinsic(Intrinsic::smax, others, i64(1));
  Value *pieces = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateUDiv(wanted, most), i64(1));
  Value *block = b.CreateUDiv(length, pieces);
  block = b.CreateAnd(b.CreateAdd(block, i64(minLaneBlock - 1)), i64(-minLaneBlock));
  block = b.CreateBinaryIntrinsic(Intrinsic::smax, block, i64(minLaneBlock));
  return b.CreateBinaryIntrinsic(Intrinsic::smin, block, i64(maxLaneBlock));
}

bool HostEmitter::emitParallelReduction(tgl::ReduceOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  if (!options.vectorBytes || options.checked || op.getAxes().empty())
    return false;
  bool single = op.getAxes().size() == 1;
  Value *low = emitIndex(lowOf(axes, 0)), *high = emitIndex(highOf(axes, 0)), *inner = i64(1);
  for (unsigned axis = 1; axis < op.getAxes().size(); ++axis)
    inner = b.CreateMul(inner, estimateExtent(axes, axis, op));
  Value *length = extent(axes, 0);
  auto ceilDiv = [&](Value *value, Value *by) {
    return b.CreateUDiv(b.CreateAdd(value, b.CreateSub(by, i64(1))), by);
  };
  inner = b.CreateBinaryIntrinsic(Intrinsic::smax, inner, i64(1));
  Value *part = b.CreateBinaryIntrinsic(Intrinsic::smax, ceilDiv(i64(minPointsPerPart), inner),
                                        ceilDiv(length, i64(maxParts)));
  if (single) // whole vectors, so that parts begin on the same lanes
    part = b.CreateAnd(b.CreateAdd(part, i64(1023)), i64(-1024));
  Value *count = ceilDiv(length, part);

  Accumulator identity = initialAccumulator(*this, op);
  SmallVector<Type *> types;
  for (Value *element : identity)
    types.push_back(element->getType());
  StructType *partType = StructType::get(module.getContext(), types);
  Value *results;
  {
    IRBuilder<>::InsertPointGuard guard(b);
    b.SetInsertPoint(entry, entry->getFirstInsertionPt());
    results = b.CreateAlloca(ArrayType::get(partType, maxParts));
  }
  Value *cost = b.CreateMul(b.CreateMul(part, inner), emitWork(op.getBody().front(), op));
  cost = b.CreateUDiv(cost, i64(std::max(1u, options.vectorBytes / 4)));
  outline(op, count, cost, {results, low, high, part},
          [&](Value *begin, Value *end, ArrayRef<Value *> passed) {
            emitLoop(begin, end, i64(1), {}, [&](Value *number, ArrayRef<Value *>) {
              Value *first = b.CreateAdd(passed[1], b.CreateMul(number, passed[3]));
              Value *last = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(first, passed[3]),
                                                    passed[2]);
              axisSlice = AxisSlice{op.getAxes()[0], first, last};
              Accumulator sum = emitReduceNest(op);
              axisSlice.reset();
              Value *slot = b.CreateInBoundsGEP(partType, passed[0], number);
              for (auto [k, element] : enumerate(sum))
                b.CreateStore(element, b.CreateStructGEP(partType, slot, k));
              return SmallVector<Value *>();
            });
          });
  auto partAt = [&](Value *number) {
    Value *slot = b.CreateInBoundsGEP(partType, results, number);
    Accumulator one;
    for (auto [k, type] : enumerate(types))
      one.push_back(b.CreateLoad(type, b.CreateStructGEP(partType, slot, k)));
    return one;
  };
  if (op.getKind() == tgl::ReduceKind::Sum && isa<mlir::FloatType>(op.getReduced().getType())) {
    Value *sum = emitExactSum(i64(0), count, 1, identity[0],
                              [&](Value *number) { return partAt(number)[0]; });
    values[op.getResult()] = resultOf(*this, op, {sum});
    return true;
  }
  SmallVector<Value *> total =
      emitLoop(i64(0), count, i64(1), identity, [&](Value *number, ArrayRef<Value *> carried) {
        return SmallVector<Value *>(
            combine(*this, op, Accumulator(carried.begin(), carried.end()), partAt(number)));
      });
  values[op.getResult()] = resultOf(*this, op, Accumulator(total.begin(), total.end()));
  return true;
}

void HostEmitter::emitNumbers(tgl::ParallelOp op, const Numbering &numbering, Value *laneBlock,
                              Value *begin, Value *end) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  shadow.beginPoints();
  emitLoop(begin, end, i64(1), {}, [&](Value *number, ArrayRef<Value *>) {
    Value *rest = number;
    auto digit = [&](Value *size) {
      Value *value = b.CreateURem(rest, size);
      rest = b.CreateUDiv(rest, size);
      return value;
    };
    Value *block = nullptr;
    if (laneBlock) {
      Value *length = extent(axes, numbering.lane->axis);
      Value *blocks = b.CreateUDiv(b.CreateAdd(length, b.CreateSub(laneBlock, i64(1))), laneBlock);
      block = b.CreateMul(digit(blocks), laneBlock);
    }
    for (unsigned axis : reverse(numbering.outer))
      values[op.getAxes()[axis]] =
          b.CreateAdd(digit(extent(axes, axis)), emitIndex(lowOf(axes, axis)));
    emitNest(axes, numbering.inner, [&] {
      if (!numbering.lane) {
        shadow.beginPoint();
        return emitBlock(op.getBody().front());
      }
      Value *low = emitIndex(lowOf(axes, numbering.lane->axis));
      Value *high = emitIndex(highOf(axes, numbering.lane->axis));
      if (block) {
        low = b.CreateAdd(low, block);
        high = b.CreateBinaryIntrinsic(Intrinsic::smin, high, b.CreateAdd(low, laneBlock));
      }
      emitLaneRange(op, *numbering.lane, low, high);
    });
    return SmallVector<Value *>();
  });
  shadow.endPoints();
}

Value *HostEmitter::estimateExtent(tgl::AxesOp op, unsigned axis, mlir::Operation *statement) {
  auto known = [&](const ValueExpr &expr) {
    return none_of(expr.operands(), [&](mlir::Value value) {
      return statement->getRegion(0).isAncestor(value.getParentRegion());
    });
  };
  if (known(lowOf(op, axis)) && known(highOf(op, axis)))
    return extent(op, axis);
  return i64(16);
}

Value *HostEmitter::emitWork(mlir::Block &block, mlir::Operation *statement) {
  int64_t plain = 0;
  Value *loops = i64(0);
  for (mlir::Operation &op : block) {
    if (op.getNumRegions() == 0) {
      ++plain;
      continue;
    }
    Value *inside = emitWork(op.getRegion(0).front(), statement);
    if (auto axes = dyn_cast<tgl::AxesOp>(op)) {
      for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
        inside = b.CreateMul(inside, estimateExtent(axes, axis, statement));
    } else {
      inside = b.CreateMul(inside, i64(16));
    }
    loops = b.CreateAdd(loops, inside);
  }
  return b.CreateAdd(loops, i64(plain));
}
