//===- Contraction.cpp - Matrix products on the CPU ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/Contraction.h"
#include "codegen/HostAbi.h"
#include "ir/TglUtils.h"

using namespace llvm;
using tegula::tgl::ValueExpr;

namespace tegula {

/// Summed points of a block: a panel of columns (48 wide in f32) then about fills the first-level
/// cache.
static constexpr int64_t blockLength = 256;
/// Panels of a unit at most: its packed sides and accumulators then fit the second-level cache.
static constexpr int64_t mostRowPanels = 48, mostColumnPanels = 11;
static constexpr int64_t cacheLine = 64;

/// Rows or columns of a unit.
struct ContractionEmitter::Side {
  ArrayRef<unsigned> group; ///< axes of the statement
  bool isSingle;            ///< one axis, or axes that count as their last one
  unsigned panel;           ///< elements of a panel
  unsigned width;           ///< lanes when spread along its last axis
  SmallVector<llvm::Value *> lows, extents;
  llvm::Value *total = nullptr;
  llvm::Value *first = nullptr, *count = nullptr; ///< of the unit
  llvm::Value *tables = nullptr,
              *tableLength = nullptr; ///< values of each axis at the unit's elements
};

/// The summed axes of one product, in blocks of the outermost (or of all, where both sides
/// collapse).
struct ContractionEmitter::Sum {
  bool collapsed;
  SmallVector<llvm::Value *> lows, extents;
  llvm::Value *low, *high; ///< what blocks are cut from
  llvm::Value *inner;      ///< points for each step of that
  llvm::Value *step;       ///< of a block
};

/// Copies of ops are ops: methods of theirs are not const.
static tgl::AxesOp axesOfOp(mlir::Operation *op) { return cast<tgl::AxesOp>(op); }

ContractionEmitter::ContractionEmitter(Emitter &emitter, const ContractionPlan &plan)
    : e(emitter), b(emitter.b), plan(plan), axes(axesOfOp(tgl::ParallelOp(plan.op))),
      element(plan.element), elementBytes(element->isDoubleTy() ? 8 : 4),
      lanes(std::max(2u, emitter.options.vectorBytes / elementBytes)) {
  // 24 accumulators where there are 32 registers, 12 of 16 otherwise; the rest hold a row of
  // columns and a broadcast element.
  tileRows = emitter.options.vectorBytes >= 64 ? 8 : 4;
  tileVectors = 3;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value *ContractionEmitter::extentOf(tgl::AxesOp op, unsigned axis) {
  Value *difference = b.CreateSub(e.emitIndex(e.highOf(op, axis)), e.emitIndex(e.lowOf(op, axis)));
  return b.CreateBinaryIntrinsic(Intrinsic::smax, difference, i64(0));
}

Value *ContractionEmitter::product(ArrayRef<Value *> factors) {
  Value *result = i64(1);
  for (Value *factor : factors)
    result = b.CreateMul(result, factor);
  return result;
}

Value *ContractionEmitter::ceilDiv(Value *x, Value *y) {
  Value *divisor = b.CreateBinaryIntrinsic(Intrinsic::umax, y, i64(1));
  return b.CreateUDiv(b.CreateAdd(x, b.CreateSub(divisor, i64(1))), divisor);
}

Value *ContractionEmitter::minimum(Value *x, Value *y) {
  return b.CreateBinaryIntrinsic(Intrinsic::smin, x, y);
}

Value *ContractionEmitter::at(Value *base, Value *elements) {
  return b.CreateInBoundsGEP(element, base, elements);
}

ContractionEmitter::Sum ContractionEmitter::sumOf(const ContractionProduct &product) {
  tgl::AxesOp summed = axesOfOp(tgl::ReduceOp(product.reduce));
  Sum sum;
  sum.collapsed = product.row.collapsesSum && product.column.collapsesSum;
  for (unsigned k = 0; k < summed.getAxes().size(); ++k) {
    sum.lows.push_back(e.emitIndex(e.lowOf(summed, k)));
    sum.extents.push_back(extentOf(summed, k));
  }
  if (sum.collapsed && sum.extents.size() > 1) {
    sum.low = i64(0);
    sum.high = this->product(sum.extents);
    sum.inner = i64(1);
  } else {
    sum.low = sum.lows.front();
    sum.high = b.CreateAdd(sum.low, sum.extents.front());
    sum.inner = this->product(ArrayRef(sum.extents).drop_front());
  }
  Value *fitting =
      b.CreateUDiv(i64(blockLength), b.CreateBinaryIntrinsic(Intrinsic::umax, sum.inner, i64(1)));
  fitting = b.CreateBinaryIntrinsic(Intrinsic::umax, fitting, i64(1));
  // Blocks of about the same length.
  Value *extent = b.CreateSub(sum.high, sum.low);
  Value *blocks = b.CreateBinaryIntrinsic(Intrinsic::umax, ceilDiv(extent, fitting), i64(1));
  sum.step = b.CreateBinaryIntrinsic(Intrinsic::umax, ceilDiv(extent, blocks), i64(1));
  return sum;
}

ContractionShape ContractionEmitter::emitShape(Value *threads, Value *unitsEach) {
  ContractionShape shape;
  auto total = [&](ArrayRef<unsigned> group) {
    Value *result = i64(1);
    for (unsigned axis : group)
      result = b.CreateMul(result, extentOf(axes, axis));
    return result;
  };
  shape.rows = total(plan.rows);
  shape.columns = total(plan.columns);
  shape.batch = total(plan.batch);

  Value *longest = i64(0), *all = i64(0), *oneBlock = b.getTrue();
  for (const ContractionProduct &product : plan.products) {
    // Bounds that use batch axes are largest nowhere in particular: each unit has its own, so
    // memory is asked for where the unit knows it.
    Sum sum = sumOf(product);
    Value *extent = b.CreateSub(sum.high, sum.low);
    longest = b.CreateBinaryIntrinsic(Intrinsic::smax, longest,
                                      b.CreateMul(minimum(sum.step, extent), sum.inner));
    all = b.CreateAdd(all, b.CreateMul(extent, sum.inner));
    oneBlock = b.CreateAnd(oneBlock, b.CreateICmpSLE(extent, sum.step));
  }
  shape.longestSum = longest;
  shape.totalSum = all;

  // Units: as large as the cache allows, but several for each thread.
  Value *rowPanels = ceilDiv(shape.rows, i64(tileRows));
  Value *columnPanels = ceilDiv(shape.columns, i64(tileColumns()));
  Value *wanted = b.CreateMul(threads, unitsEach);
  auto divide = [&](Value *panels, Value *others, int64_t least, int64_t most, Value *&blocks) {
    Value *pieces = ceilDiv(wanted, others);
    Value *each = ceilDiv(panels, pieces);
    each = b.CreateBinaryIntrinsic(Intrinsic::smax, each, i64(least));
    each = minimum(each, i64(most));
    blocks = b.CreateBinaryIntrinsic(Intrinsic::umax, ceilDiv(panels, each), i64(1));
    return ceilDiv(panels, blocks);
  };
  Value *leastColumnBlocks = ceilDiv(columnPanels, i64(mostColumnPanels));
  shape.rowPanels = divide(rowPanels, b.CreateMul(shape.batch, leastColumnBlocks), 8, mostRowPanels,
                           shape.rowBlocks);
  shape.columnPanels = divide(columnPanels, b.CreateMul(shape.batch, shape.rowBlocks), 2,
                              mostColumnPanels, shape.columnBlocks);
  shape.units = b.CreateMul(shape.batch, b.CreateMul(shape.rowBlocks, shape.columnBlocks));
  Value *tiles = b.CreateMul(shape.rowPanels, shape.columnPanels);
  shape.tilesKept = plan.products.size() > 1 ? tiles : b.CreateSelect(oneBlock, i64(1), tiles);
  return shape;
}

Value *ContractionEmitter::emitWorthwhile(const ContractionShape &shape) {
  Value *enough = b.CreateICmpSGE(shape.rows, i64(4));
  enough = b.CreateAnd(enough, b.CreateICmpSGE(shape.columns, i64(lanes)));
  enough = b.CreateAnd(enough, b.CreateICmpSGE(shape.totalSum, i64(8)));
  Value *points =
      b.CreateMul(minimum(shape.rows, i64(1 << 20)), minimum(shape.columns, i64(1 << 20)));
  points = b.CreateMul(minimum(points, i64(1 << 20)), minimum(shape.totalSum, i64(1 << 20)));
  return b.CreateAnd(enough, b.CreateICmpSGE(points, i64(1 << 14)));
}

Value *ContractionEmitter::emitCost(const ContractionShape &shape) {
  Value *tiles = b.CreateMul(shape.rowPanels, shape.columnPanels);
  return b.CreateMul(b.CreateMul(tiles, i64(tileRows * tileVectors)), shape.totalSum);
}

Value *ContractionEmitter::emitScratchBytes(const ContractionShape &shape) {
  Value *length = b.CreateAdd(shape.longestSum, i64(lanes));
  Value *packed = b.CreateMul(b.CreateAdd(b.CreateMul(shape.rowPanels, i64(tileRows)),
                                          b.CreateMul(shape.columnPanels, i64(tileColumns()))),
                              length);
  Value *kept =
      b.CreateMul(shape.tilesKept, i64(int64_t(tileRows) * tileColumns() * plan.products.size()));
  Value *bytes = b.CreateMul(b.CreateAdd(packed, kept), i64(elementBytes));
  Value *tables = i64(0);
  if (plan.rows.size() > 1)
    tables = b.CreateAdd(
        tables, b.CreateMul(shape.rowPanels, i64(int64_t(tileRows) * plan.rows.size() * 8)));
  if (plan.columns.size() > 1)
    tables = b.CreateAdd(tables, b.CreateMul(shape.columnPanels, i64(int64_t(tileColumns()) *
                                                                     plan.columns.size() * 8)));
  return b.CreateAdd(b.CreateAdd(bytes, tables), i64(8 * cacheLine));
}

//===----------------------------------------------------------------------===//
// Elements of rows and columns
//===----------------------------------------------------------------------===//

/// The axes' values at every element of the unit, counted like a milometer.
void ContractionEmitter::fillTable(Side &side) {
  if (side.isSingle)
    return;
  unsigned rank = side.group.size();
  SmallVector<Value *> start;
  Value *rest = side.first;
  for (unsigned k = rank; k-- > 0;) {
    Value *extent = b.CreateBinaryIntrinsic(Intrinsic::umax, side.extents[k], i64(1));
    start.insert(start.begin(), k ? b.CreateURem(rest, extent) : rest);
    rest = b.CreateUDiv(rest, extent);
  }
  e.emitLoop(i64(0), side.count, i64(1), start, [&](Value *number, ArrayRef<Value *> digits) {
    SmallVector<Value *> next(digits.begin(), digits.end());
    Value *carry = b.getTrue();
    for (unsigned k = rank; k-- > 0;) {
      Value *place = b.CreateAdd(b.CreateMul(side.tableLength, i64(k)), number);
      b.CreateStore(b.CreateAdd(side.lows[k], digits[k]),
                    b.CreateInBoundsGEP(b.getInt64Ty(), side.tables, place));
      Value *following = b.CreateAdd(digits[k], b.CreateZExt(carry, b.getInt64Ty()));
      carry = b.CreateICmpEQ(following, side.extents[k]);
      next[k] = k ? b.CreateSelect(carry, i64(0), following) : following;
    }
    return next;
  });
}

/// Sets the axes to element `number` of the unit.
void ContractionEmitter::setElement(Side &side, Value *number) {
  for (auto [k, axis] : enumerate(side.group)) {
    Value *value;
    if (!side.isSingle) {
      Value *place = b.CreateAdd(b.CreateMul(side.tableLength, i64(k)), number);
      value = b.CreateLoad(b.getInt64Ty(), b.CreateInBoundsGEP(b.getInt64Ty(), side.tables, place));
    } else {
      value = side.lows[k];
      if (k + 1 == side.group.size())
        value = b.CreateAdd(value, b.CreateAdd(side.first, number));
    }
    e.values[axes.getAxes()[axis]] = value;
  }
}

/// Spreads `axis` = base + lane over lanes, of which [from, to) count; from null: 0.
void ContractionEmitter::spread(mlir::Value axis, unsigned width, Value *base, Value *from,
                                Value *to, function_ref<void()> body) {
  SmallVector<Constant *> wide, narrow;
  for (unsigned lane = 0; lane < width; ++lane) {
    wide.push_back(b.getInt64(lane));
    narrow.push_back(b.getInt32(lane));
  }
  auto bound = [&](Value *value) {
    return b.CreateVectorSplat(width, b.CreateTrunc(value, b.getInt32Ty()));
  };
  Value *numbers = ConstantVector::get(narrow);
  Value *mask = b.CreateICmpULT(numbers, bound(to));
  if (from)
    mask = b.CreateAnd(mask, b.CreateICmpUGE(numbers, bound(from)));
  e.lanes = Emitter::Lanes{axis, width, base, b.CreateAdd(base, i64(width - 1)), mask};
  e.values[axis] = b.CreateAdd(b.CreateVectorSplat(width, base), ConstantVector::get(wide));
  body();
  e.lanes.reset();
}

/// Spreads elements first, first + 1, ... of the unit over lanes. Where they lie on several
/// stretches of the last axis, `body` runs for each of these with a mask for the lanes on it.
void ContractionEmitter::withVector(Side &side, Value *first, unsigned width,
                                    function_ref<void()> body) {
  mlir::Value axis = axes.getAxes()[side.group.back()];
  Value *left = minimum(b.CreateSub(side.count, first), i64(width));
  if (side.isSingle) {
    setElement(side, first);
    Value *base = e.values[axis];
    return spread(axis, width, base, nullptr, left, body);
  }
  // for (lane = 0; lane < left; lane += run)
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *before = b.GetInsertBlock();
  BasicBlock *head = BasicBlock::Create(b.getContext(), "stretch", function);
  BasicBlock *done = BasicBlock::Create(b.getContext(), "stretches", function);
  b.CreateCondBr(b.CreateICmpSGT(left, i64(0)), head, done);
  b.SetInsertPoint(head);
  PHINode *lane = b.CreatePHI(b.getInt64Ty(), 2);
  lane->addIncoming(i64(0), before);
  setElement(side, b.CreateAdd(first, lane));
  Value *position = e.values[axis];
  Value *end = b.CreateAdd(side.lows.back(), side.extents.back());
  Value *next = minimum(left, b.CreateAdd(lane, b.CreateSub(end, position)));
  spread(axis, width, b.CreateSub(position, lane), lane, next, body);
  lane->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, left), head, done);
  b.SetInsertPoint(done);
}

/// The factors' product at the current axes, one element for each lane.
Value *ContractionEmitter::evaluate(const ContractionSide &side) {
  for (mlir::Operation *op : side.slice)
    e.emitOp(op);
  Value *result = nullptr;
  for (mlir::Value factor : side.factors) {
    Value *value = e.splat(e.valueOf(factor));
    result = result ? b.CreateFMul(result, value) : value;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// Sets the summed axes to all points of the block [begin, end) in order; with `withLast` false all
/// but the last axis, `position` being that of the first point along it. `collapsed`: the last axis
/// counts for all.
void ContractionEmitter::forSum(const ContractionProduct &product, const Sum &sum, Value *begin,
                                Value *end, bool collapsed, bool withLast,
                                function_ref<void(Value *position)> body) {
  tgl::AxesOp summed = axesOfOp(tgl::ReduceOp(product.reduce));
  unsigned rank = summed.getAxes().size();
  if (collapsed || rank == 1) {
    for (unsigned k = 0; k + 1 < rank; ++k)
      e.values[summed.getAxes()[k]] = sum.lows[k];
    // As numbers of points: the block of a single axis starts at the axis's value, of several at 0.
    Value *first = begin, *last = end;
    if (rank > 1 && !sum.collapsed) {
      first = b.CreateMul(b.CreateSub(begin, sum.low), sum.inner);
      last = b.CreateMul(b.CreateSub(end, sum.low), sum.inner);
    }
    if (!withLast) {
      e.values[summed.getAxes().back()] = first;
      return body(i64(0));
    }
    e.emitLoop(first, last, i64(1), {}, [&](Value *k, ArrayRef<Value *>) {
      e.values[summed.getAxes().back()] = k;
      body(b.CreateSub(k, first));
      return SmallVector<Value *>();
    });
    return;
  }
  std::function<void(unsigned, Value *)> nest = [&](unsigned axis, Value *position) {
    if (axis == rank)
      return body(position);
    Value *low = axis ? sum.lows[axis] : begin;
    Value *high = axis ? b.CreateAdd(sum.lows[axis], sum.extents[axis]) : end;
    if (axis + 1 == rank && !withLast) {
      e.values[summed.getAxes()[axis]] = low;
      return body(b.CreateMul(position, sum.extents[axis]));
    }
    Value *before = axis ? b.CreateMul(position, sum.extents[axis]) : position;
    e.emitLoop(low, high, i64(1), {}, [&](Value *k, ArrayRef<Value *>) {
      e.values[summed.getAxes()[axis]] = k;
      nest(axis + 1, b.CreateAdd(before, b.CreateSub(k, low)));
      return SmallVector<Value *>();
    });
  };
  nest(0, i64(0));
}

/// Panels [position][panel] of all elements of the unit.
void ContractionEmitter::pack(Side &side, const ContractionProduct &product,
                              const ContractionSide &factors, const Sum &sum, Value *begin,
                              Value *end, Value *panels, Value *panelLength) {
  Value *count = ceilDiv(side.count, i64(side.panel));
  e.emitLoop(
      i64(0), count, i64(1), {},
      [&](Value *number, ArrayRef<Value *>) {
        Value *panel = at(panels, b.CreateMul(number, b.CreateMul(panelLength, i64(side.panel))));
        Value *first = b.CreateMul(number, i64(side.panel));
        unsigned group = std::min(side.panel, lanes);
        e.nextLoopStays = true; // copies of all of this would gain nothing
        e.emitLoop(
            i64(0), i64(side.panel / group), i64(1), {}, [&](Value *part, ArrayRef<Value *>) {
              Value *offset = b.CreateMul(part, i64(group));
              Value *start = b.CreateAdd(first, offset);
              e.emitIf(b.CreateICmpSLT(start, side.count), [&] {
                if (factors.lanesAlongSum)
                  packAlongSum(side, product, factors, sum, begin, end, at(panel, offset), start,
                               group);
                else
                  packAlongAxes(side, product, factors, sum, begin, end, at(panel, offset), start);
              });
              return SmallVector<Value *>();
            });
        return SmallVector<Value *>();
      },
      "panel");
}

/// Lanes along rows (columns): each vector goes to the panel as it is.
void ContractionEmitter::packAlongAxes(Side &side, const ContractionProduct &product,
                                       const ContractionSide &factors, const Sum &sum, Value *begin,
                                       Value *end, Value *panel, Value *first) {
  unsigned width = std::min(side.panel, lanes);
  withVector(side, first, width, [&] {
    forSum(product, sum, begin, end, factors.collapsesSum, true, [&](Value *position) {
      Value *vector = evaluate(factors);
      Value *to = at(panel, b.CreateMul(position, i64(side.panel)));
      b.CreateMaskedStore(vector, to, Align(elementBytes), e.lanes->mask);
    });
  });
}

/// Lanes along the sum: a tile of `group` rows (columns) at a time is turned around. What a run
/// leaves beyond its end the next one overwrites; panels have room for the last.
void ContractionEmitter::packAlongSum(Side &side, const ContractionProduct &product,
                                      const ContractionSide &factors, const Sum &sum, Value *begin,
                                      Value *end, Value *panel, Value *first, unsigned group) {
  tgl::AxesOp summed = axesOfOp(tgl::ReduceOp(product.reduce));
  mlir::Value axis = summed.getAxes().back();
  unsigned rank = summed.getAxes().size();
  bool oneRun = factors.collapsesSum || rank == 1;
  // Memory of the function, whose entry block runs once.
  IRBuilder<> entry(&b.GetInsertBlock()->getParent()->getEntryBlock(),
                    b.GetInsertBlock()->getParent()->getEntryBlock().getFirstInsertionPt());
  AllocaInst *tile = entry.CreateAlloca(ArrayType::get(element, group * lanes), nullptr, "tile");
  tile->setAlignment(Align(cacheLine));
  forSum(product, sum, begin, end, factors.collapsesSum, false, [&](Value *position) {
    Value *base = e.values[axis];
    Value *length = sum.extents.back();
    if (oneRun)
      length = b.CreateMul(b.CreateSub(end, begin), sum.inner);
    e.emitLoop(i64(0), length, i64(lanes), {}, [&](Value *k, ArrayRef<Value *>) {
      e.nextLoopStays = true;
      e.emitLoop(i64(0), i64(group), i64(1), {}, [&](Value *row, ArrayRef<Value *>) {
        // Beyond the last row (column) it is repeated: nobody looks at the result.
        setElement(side, minimum(b.CreateAdd(first, row), b.CreateSub(side.count, i64(1))));
        Value *left = minimum(b.CreateSub(length, k), i64(lanes));
        spread(axis, lanes, b.CreateAdd(base, k), nullptr, left, [&] {
          b.CreateAlignedStore(evaluate(factors), at(tile, b.CreateMul(row, i64(lanes))),
                               Align(cacheLine));
        });
        return SmallVector<Value *>();
      });
      b.CreateCall(turnKernel(group, side.panel),
                   {tile, at(panel, b.CreateMul(b.CreateAdd(position, k), i64(side.panel)))});
      return SmallVector<Value *>();
    });
  });
}

/// `turn(tile, to)`: the tile [count][lanes] turned around to [lanes][count], rows `stride` elements apart. One
/// function for all packing of a module: shuffles are what takes longest to compile.
///
/// A perfect shuffle of all elements (first half and second half interleaved) rotates the bits of
/// an element's number by one: as many of them as `count` has bits bring the rows' bits to the end.
Function *ContractionEmitter::turnKernel(unsigned count, unsigned stride) {
  std::string name = ("tegula.turn." + Twine(element->isDoubleTy() ? "f64." : "f32.") + Twine(count) + "x" +
                      Twine(lanes) + "." + Twine(stride))
                         .str();
  if (Function *existing = e.module.getFunction(name))
    return existing;
  IRBuilder<> m(b.getContext());
  auto *signature = FunctionType::get(m.getVoidTy(), {m.getPtrTy(), m.getPtrTy()}, false);
  auto *function = Function::Create(signature, GlobalValue::InternalLinkage, name, e.module);
  function->addFnAttr(Attribute::NoInline);
  function->addFnAttr(Attribute::NoUnwind);
  for (unsigned k : {0u, 1u})
    function->addParamAttr(k, Attribute::NoAlias);
  m.SetInsertPoint(BasicBlock::Create(b.getContext(), "entry", function));
  auto place = [&](unsigned argument, int64_t elements) {
    return m.CreateConstInBoundsGEP1_64(element, function->getArg(argument), elements);
  };
  auto *type = FixedVectorType::get(element, lanes);
  SmallVector<Value *> vectors;
  for (unsigned row = 0; row < count; ++row)
    vectors.push_back(m.CreateAlignedLoad(type, place(0, int64_t(row) * lanes), Align(cacheLine)));
  for (unsigned round = 1; round < count; round *= 2) {
    SmallVector<Value *> next;
    for (unsigned row = 0; row < count; ++row) {
      SmallVector<int> pattern;
      for (unsigned lane = 0; lane < lanes; ++lane)
        pattern.push_back((row % 2) * (lanes / 2) + lane / 2 + (lane % 2) * lanes);
      next.push_back(m.CreateShuffleVector(vectors[row / 2], vectors[row / 2 + count / 2], pattern));
    }
    vectors = std::move(next);
  }
  assert((stride == count || count == lanes) && "a vector is a row of the turned tile, or several");
  int64_t step = stride == count ? lanes : stride;
  for (auto [k, vector] : enumerate(vectors))
    m.CreateAlignedStore(vector, place(1, int64_t(k) * step), Align(elementBytes));
  m.CreateRetVoid();
  return function;
}

//===----------------------------------------------------------------------===//
// The tile in registers
//===----------------------------------------------------------------------===//

/// `micro(rows, columns, tile, length, accumulate)`: adds the product of two packed panels to a
/// tile, or sets it.
Function *ContractionEmitter::microKernel() {
  std::string name = ("tegula.tile." + Twine(element->isDoubleTy() ? "f64." : "f32.") +
                      Twine(tileRows) + "x" + Twine(tileColumns()))
                         .str();
  if (Function *existing = e.module.getFunction(name))
    return existing;
  LLVMContext &context = b.getContext();
  IRBuilder<> m(context);
  Type *ptr = m.getPtrTy();
  auto *type =
      FunctionType::get(m.getVoidTy(), {ptr, ptr, ptr, m.getInt64Ty(), m.getInt1Ty()}, false);
  auto *function = Function::Create(type, GlobalValue::InternalLinkage, name, e.module);
  function->addFnAttr(Attribute::NoInline);
  function->addFnAttr(Attribute::NoUnwind);
  for (unsigned k : {0u, 1u, 2u})
    function->addParamAttr(k, Attribute::NoAlias);
  Value *rows = function->getArg(0), *columns = function->getArg(1), *tile = function->getArg(2);
  auto *entry = BasicBlock::Create(context, "entry", function);
  auto *old = BasicBlock::Create(context, "old", function);
  auto *head = BasicBlock::Create(context, "head", function);
  auto *loop = BasicBlock::Create(context, "loop", function);
  auto *done = BasicBlock::Create(context, "done", function);
  auto *vector = FixedVectorType::get(element, lanes);
  auto tileAt = [&](unsigned k) { return m.CreateConstInBoundsGEP1_64(vector, tile, k); };
  unsigned count = tileRows * tileVectors;

  m.SetInsertPoint(entry);
  m.CreateCondBr(function->getArg(4), old, head);
  m.SetInsertPoint(old);
  SmallVector<Value *> previous;
  for (unsigned k = 0; k < count; ++k)
    previous.push_back(m.CreateAlignedLoad(vector, tileAt(k), Align(cacheLine)));
  m.CreateBr(head);
  m.SetInsertPoint(head);
  SmallVector<Value *> start;
  for (unsigned k = 0; k < count; ++k) {
    PHINode *phi = m.CreatePHI(vector, 2);
    phi->addIncoming(Constant::getNullValue(vector), entry);
    phi->addIncoming(previous[k], old);
    start.push_back(phi);
  }
  m.CreateCondBr(m.CreateICmpSGT(function->getArg(3), m.getInt64(0)), loop, done);
  m.SetInsertPoint(loop);
  PHINode *k = m.CreatePHI(m.getInt64Ty(), 2);
  k->addIncoming(m.getInt64(0), head);
  SmallVector<PHINode *> sums;
  for (unsigned n = 0; n < count; ++n) {
    sums.push_back(m.CreatePHI(vector, 2));
    sums.back()->addIncoming(start[n], head);
  }
  Value *column = m.CreateInBoundsGEP(vector, columns, m.CreateMul(k, m.getInt64(tileVectors)));
  SmallVector<Value *> line;
  for (unsigned v = 0; v < tileVectors; ++v)
    line.push_back(m.CreateAlignedLoad(vector, m.CreateConstInBoundsGEP1_64(vector, column, v),
                                       Align(cacheLine)));
  Value *row = m.CreateInBoundsGEP(element, rows, m.CreateMul(k, m.getInt64(tileRows)));
  for (unsigned r = 0; r < tileRows; ++r) {
    Value *one = m.CreateAlignedLoad(element, m.CreateConstInBoundsGEP1_64(element, row, r),
                                     Align(elementBytes));
    Value *wide = m.CreateVectorSplat(lanes, one);
    for (unsigned v = 0; v < tileVectors; ++v) {
      PHINode *sum = sums[r * tileVectors + v];
      sum->addIncoming(m.CreateIntrinsic(vector, Intrinsic::fmuladd, {wide, line[v], sum}), loop);
    }
  }
  Value *next = m.CreateAdd(k, m.getInt64(1), "", true, true);
  k->addIncoming(next, loop);
  m.CreateCondBr(m.CreateICmpEQ(next, function->getArg(3)), done, loop);
  m.SetInsertPoint(done);
  for (unsigned n = 0; n < count; ++n) {
    PHINode *result = m.CreatePHI(vector, 2);
    result->addIncoming(start[n], head);
    result->addIncoming(sums[n]->getIncomingValueForBlock(loop), loop);
    start[n] = result;
  }
  for (unsigned n = 0; n < count; ++n)
    m.CreateAlignedStore(start[n], tileAt(n), Align(cacheLine));
  m.CreateRetVoid();
  return function;
}

/// The rest of the statement at the points of one tile.
void ContractionEmitter::emitRest(Side &row, Side &column, Value *rowPanel, Value *columnPanel,
                                  ArrayRef<Value *> tiles) {
  Value *firstRow = b.CreateMul(rowPanel, i64(tileRows));
  Value *numRows = minimum(i64(tileRows), b.CreateSub(row.count, firstRow));
  Value *firstColumn = b.CreateMul(columnPanel, i64(tileColumns()));
  Value *numVectors =
      minimum(i64(tileVectors), ceilDiv(b.CreateSub(column.count, firstColumn), i64(lanes)));
  auto *vector = FixedVectorType::get(element, lanes);
  e.emitLoop(
      i64(0), numRows, i64(1), {},
      [&](Value *r, ArrayRef<Value *>) {
        setElement(row, b.CreateAdd(firstRow, r));
        e.emitLoop(i64(0), numVectors, i64(1), {}, [&](Value *v, ArrayRef<Value *>) {
          Value *place = b.CreateAdd(b.CreateMul(r, i64(tileVectors)), v);
          SmallVector<Value *> sums;
          for (Value *tile : tiles)
            sums.push_back(b.CreateAlignedLoad(vector, b.CreateInBoundsGEP(vector, tile, place),
                                               Align(cacheLine)));
          withVector(column, b.CreateAdd(firstColumn, b.CreateMul(v, i64(lanes))), lanes, [&] {
            for (auto [product, sum] : zip_equal(plan.products, sums))
              e.values[tgl::ReduceOp(product.reduce).getResult()] = sum;
            for (mlir::Operation *op : plan.rest)
              e.emitOp(op);
          });
          return SmallVector<Value *>();
        });
        return SmallVector<Value *>();
      },
      "row");
}

//===----------------------------------------------------------------------===//
// A unit
//===----------------------------------------------------------------------===//

void ContractionEmitter::emitUnit(const ContractionShape &shape, Value *unit, Value *scratch) {
  // Where: rows change fastest, so that what follows on this thread finds its columns in the cache.
  Value *rowBlock = b.CreateURem(unit, shape.rowBlocks);
  Value *rest = b.CreateUDiv(unit, shape.rowBlocks);
  Value *columnBlock = b.CreateURem(rest, shape.columnBlocks);
  rest = b.CreateUDiv(rest, shape.columnBlocks);
  for (unsigned axis : reverse(plan.batch)) {
    Value *extent = b.CreateBinaryIntrinsic(Intrinsic::umax, extentOf(axes, axis), i64(1));
    e.values[axes.getAxes()[axis]] =
        b.CreateAdd(e.emitIndex(e.lowOf(axes, axis)), b.CreateURem(rest, extent));
    rest = b.CreateUDiv(rest, extent);
  }

  // Memory, in pieces that start on cache lines.
  auto take = [&](Value *bytes) {
    Value *piece = scratch;
    Value *rounded = b.CreateAnd(b.CreateAdd(bytes, i64(cacheLine - 1)), i64(-cacheLine));
    scratch = b.CreateInBoundsGEP(b.getInt8Ty(), scratch, rounded);
    return piece;
  };
  auto makeSide = [&](ArrayRef<unsigned> group, bool collapsed, unsigned panel, Value *total,
                      Value *panels, Value *block) {
    Side side;
    side.group = group;
    side.isSingle = group.size() == 1 || collapsed;
    side.panel = panel;
    side.width = std::min(panel, lanes);
    for (unsigned axis : group) {
      side.lows.push_back(e.emitIndex(e.lowOf(axes, axis)));
      side.extents.push_back(extentOf(axes, axis));
    }
    side.total = total;
    Value *most = b.CreateMul(panels, i64(panel));
    side.first = b.CreateMul(block, most);
    side.count = minimum(most, b.CreateSub(total, side.first));
    if (!side.isSingle) {
      side.tableLength = most;
      side.tables = take(b.CreateMul(most, i64(8 * group.size())));
    }
    return side;
  };
  bool rowsCollapse = plan.restCollapsesRows, columnsCollapse = plan.restCollapsesColumns;
  for (const ContractionProduct &product : plan.products) {
    rowsCollapse &= product.row.collapsesAxes;
    columnsCollapse &= product.column.collapsesAxes;
  }
  Side row = makeSide(plan.rows, rowsCollapse, tileRows, shape.rows, shape.rowPanels, rowBlock);
  Side column = makeSide(plan.columns, columnsCollapse, tileColumns(), shape.columns,
                         shape.columnPanels, columnBlock);
  fillTable(row);
  fillTable(column);

  Value *panelLength = b.CreateAdd(shape.longestSum, i64(lanes));
  Value *packedRows = take(b.CreateMul(b.CreateMul(shape.rowPanels, panelLength),
                                       i64(int64_t(tileRows) * elementBytes)));
  Value *packedColumns = take(b.CreateMul(b.CreateMul(shape.columnPanels, panelLength),
                                          i64(int64_t(tileColumns()) * elementBytes)));
  int64_t tileElements = int64_t(tileRows) * tileColumns();
  SmallVector<Value *> kept;
  for (size_t k = 0; k < plan.products.size(); ++k)
    kept.push_back(take(b.CreateMul(shape.tilesKept, i64(tileElements * elementBytes))));
  Value *tileStride =
      b.CreateSelect(b.CreateICmpEQ(shape.tilesKept, i64(1)), i64(0), i64(tileElements));

  Value *rowPanels = ceilDiv(row.count, i64(tileRows)),
        *columnPanels = ceilDiv(column.count, i64(tileColumns()));
  Function *micro = microKernel();
  for (auto [number, product] : enumerate(plan.products)) {
    bool isLast = number + 1 == plan.products.size();
    Sum sum = sumOf(product);
    // At least one block, so that sums over nothing are set as well.
    Value *extent = b.CreateSub(sum.high, sum.low);
    Value *limit = b.CreateAdd(sum.low, b.CreateBinaryIntrinsic(Intrinsic::smax, extent, i64(1)));
    Value *tiles = kept[number];
    e.emitLoop(
        sum.low, limit, sum.step, {},
        [&](Value *begin, ArrayRef<Value *>) {
          Value *end = minimum(b.CreateAdd(begin, sum.step), sum.high);
          Value *length = b.CreateMul(b.CreateSub(end, begin), sum.inner);
          pack(column, product, product.column, sum, begin, end, packedColumns, panelLength);
          pack(row, product, product.row, sum, begin, end, packedRows, panelLength);
          Value *accumulate = b.CreateICmpNE(begin, sum.low);
          e.emitLoop(
              i64(0), columnPanels, i64(1), {},
              [&](Value *c, ArrayRef<Value *>) {
                e.emitLoop(
                    i64(0), rowPanels, i64(1), {},
                    [&](Value *r, ArrayRef<Value *>) {
                      Value *index = b.CreateAdd(b.CreateMul(c, shape.rowPanels), r);
                      auto tileOf = [&](Value *memory) {
                        return at(memory, b.CreateMul(index, tileStride));
                      };
                      b.CreateCall(
                          micro,
                          {at(packedRows, b.CreateMul(r, b.CreateMul(panelLength, i64(tileRows)))),
                           at(packedColumns,
                              b.CreateMul(c, b.CreateMul(panelLength, i64(tileColumns())))),
                           tileOf(tiles), length, accumulate});
                      if (isLast)
                        e.emitIf(b.CreateICmpSGE(end, sum.high), [&] {
                          SmallVector<Value *> all;
                          for (Value *memory : kept)
                            all.push_back(tileOf(memory));
                          emitRest(row, column, r, c, all);
                        });
                      return SmallVector<Value *>();
                    },
                    "rows");
                return SmallVector<Value *>();
              },
              "columns");
          return SmallVector<Value *>();
        },
        "block");
  }
}

} // namespace tegula
