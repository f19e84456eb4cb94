//===- FragmentValues.cpp - Values in the MMA accumulator layout ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/lower/FragmentValues.h"
#include "strategies/tile_loop/lower/ScaledValues.h"
#include "strategies/tile_loop/lower/TileLoopProducts.h"

#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/analysis/Nest.h"
#include "strategies/tile_loop/plan/TileLoopMasks.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace tegula;
using namespace llvm::PatternMatch;
using tgl::ValueExpr;

FragmentValues::FragmentValues(TileLoopBlock &block, TileLoopProducts &products)
    : c(block), e(block.e), b(block.b), products(products) {}

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

TileLoopBlock::Fragment FragmentValues::fragmentOf(mlir::Value value) {
  auto found = c.fragments.find(value);
  return found != c.fragments.end() ? found->second : Fragment{false, false, {e.valueOf(value)}};
}

/// At a point, of two rows and the columns of a thread.
void FragmentValues::setOperands(mlir::Operation *op, unsigned row, unsigned column) {
  for (mlir::Value used : valuesUsedBy(op))
    if (auto found = c.fragments.find(used); found != c.fragments.end())
      e.values[used] = found->second.at(row, column);
}

/// `body` at each point of a thread that a value varies along.
TileLoopBlock::Fragment
FragmentValues::forPoints(bool rows, bool columns, const Scope *scope,
                          function_ref<Value *(unsigned row, unsigned column)> body) {
  Fragment result{rows, columns, {}};
  unsigned numRows = rows ? 2 : 1, numColumns = columns ? scope->own() : 1;
  result.values.resize(numRows * numColumns);
  for (unsigned column = 0; column < numColumns; ++column)
    for (unsigned row = 0; row < numRows; ++row)
      result.values[result.indexOf(row, column)] = body(row, column);
  return result;
}

/// All points of a fragment.
TileLoopBlock::Fragment FragmentValues::full(const Fragment &value, const Scope &scope) {
  return forPoints(true, true, &scope,
                   [&](unsigned row, unsigned column) { return value.at(row, column); });
}

/// exp of elements as the hardware has it: 2^(x log2 e), whose relative error is that of the
/// product, |x| 2^-24, and 2^-22 of the power. Sums and numbers of 16 bits are what becomes of
/// elements.
Value *FragmentValues::emitPoint(mlir::Operation *op, bool isElement) {
  if (isElement && isa<mlir::math::ExpOp>(op) && op->getResult(0).getType().isF32()) {
    Value *scaled =
        b.CreateFMul(e.valueOf(op->getOperand(0)), ConstantFP::get(b.getFloatTy(), numbers::log2e));
    return b.CreateIntrinsic(b.getFloatTy(), Intrinsic::nvvm_ex2_approx_ftz, {scaled});
  }
  e.emitOp(op);
  return op->getNumResults() ? e.valueOf(op->getResult(0)) : nullptr;
}

void FragmentValues::emitFragment(mlir::Operation *op, const Scope *scope) {
  bool rows = false, columns = false;
  for (mlir::Value used : valuesUsedBy(op))
    if (auto found = c.fragments.find(used); found != c.fragments.end()) {
      rows |= found->second.rows;
      columns |= found->second.columns;
    }
  if (!rows && !columns)
    return e.emitOp(op);
  Fragment result = forPoints(rows, columns, scope, [&](unsigned row, unsigned column) {
    setOperands(op, row, column);
    return emitPoint(op, rows && columns);
  });
  if (op->getNumResults())
    c.fragments[op->getResult(0)] = result;
}

/// Quotients by a value of rows: with the nearest number to its reciprocal, and one correction,
/// which gives the nearest number to each (Markstein) but where that, or the correction, is too
/// small to be a normal number.
void FragmentValues::divideByRows(mlir::arith::DivFOp op, const Scope &scope) {
  Fragment dividends = fragmentOf(op.getLhs()), divisors = fragmentOf(op.getRhs());
  Type *type = b.getFloatTy();
  Fragment inverses = forPoints(true, false, &scope, [&](unsigned row, unsigned) {
    return b.CreateFDiv(ConstantFP::get(type, 1), divisors.at(row, 0));
  });
  c.fragments[op.getResult()] = forPoints(true, true, &scope, [&](unsigned row, unsigned column) {
    Value *dividend = dividends.at(row, column), *divisor = divisors.at(row, 0),
          *inverse = inverses.at(row, 0);
    Value *first = b.CreateFMul(dividend, inverse);
    Value *rest = b.CreateIntrinsic(type, Intrinsic::fma, {b.CreateFNeg(first), divisor, dividend});
    Value *second = b.CreateIntrinsic(type, Intrinsic::fma, {rest, inverse, first});
    return b.CreateSelect(b.CreateFCmpORD(second, second), second, first); // infinities
  });
}

/// Writes to a tensor of the kernel, for the rows that exist. The first of the four threads of a
/// row writes a value that varies along rows alone.
void FragmentValues::emitWrite(tgl::WriteOp op, const Scope *scope) {
  unsigned numColumns = scope ? scope->own() : 1;
  for (unsigned row = 0; row < 2; ++row) {
    auto write = [&] {
      for (unsigned column = 0; column < numColumns; ++column) {
        auto one = [&] {
          setOperands(op, row, column);
          e.emitOp(op);
        };
        if (scope && scope->ragged)
          e.emitIf(b.CreateICmpSLT(scope->numbers[column], scope->high), one);
        else
          one();
      }
    };
    Value *condition = c.rowExists[row];
    if (c.tile.clusterBlocks > 1 &&
        !(scope && scope->isSplitAcrossCluster)) // all blocks of the cluster have the same
      condition = e.emitAnd(condition, b.CreateICmpEQ(c.clusterRank, c.i32(0)));
    if (!scope)
      condition = e.emitAnd(condition, b.CreateICmpEQ(b.CreateAnd(c.lane, c.i32(3)), c.i32(0)));
    if (condition)
      e.emitIf(condition, write);
    else
      write();
  }
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// The columns of a nest with one axis.
TileLoopBlock::Scope FragmentValues::enter(mlir::Operation *nest) {
  auto own = cast<tgl::AxesOp>(nest);
  std::optional<int64_t> known = tgl::knownPoints(own, {0});
  Scope scope{own.getAxes()[0], unsigned(known.value_or(c.tile.columns))};
  Value *low = c.i64(0);
  if (!tgl::getAxisRange(own, 0).lo.asConstant()) { // of the tile, or a part of it
    scope.isTile = true;
    scope.columns = c.tile.columns;
    low = e.values[tgl::TilesOp(c.plan.tiles).getTileLow()];
    scope.high = c.tilesEnd;
    if (c.plan.extent % c.tile.columns)
      scope.ragged = b.CreateICmpSGT(b.CreateAdd(low, c.i64(c.tile.columns)), c.tilesEnd);
  } else if (c.tile.isShared(scope.columns)) {
    int64_t all = scope.columns;
    scope.isSplitAcrossCluster = true;
    scope.columns = c.tile.blockShare(all);
    low = c.lowOfRank(all);
    scope.high = c.i64(all);
    if (all % scope.columns)
      scope.ragged = b.CreateICmpSGT(b.CreateAdd(low, c.i64(scope.columns)), scope.high);
  }
  Value *first = c.wide(b.CreateShl(b.CreateAnd(c.lane, c.i32(3)), c.i32(1)));
  Fragment axis{false, true, {}};
  for (unsigned column = 0; column < scope.own(); ++column) {
    Value *position = b.CreateAdd(first, c.i64(column / 2 * 8 + column % 2));
    Value *number = b.CreateAdd(low, position);
    scope.numbers.push_back(number);
    // Columns past the end are computed from the last one.
    if (scope.ragged)
      number = b.CreateBinaryIntrinsic(Intrinsic::smin, number, b.CreateSub(scope.high, c.i64(1)));
    axis.values.push_back(number);
  }
  c.fragments[scope.axis] = axis;
  return scope;
}

/// `otherwise` at columns that do not exist.
void FragmentValues::keepExisting(Values &values, const Scope &scope, Value *otherwise) {
  if (!scope.ragged)
    return;
  c.choose(scope.ragged, values, [&] {
    Fragment all{true, true, values};
    return forPoints(true, true, &scope,
                     [&](unsigned row, unsigned column) {
                       Value *exists = b.CreateICmpSLT(scope.numbers[column], scope.high);
                       return b.CreateSelect(exists, all.at(row, column), otherwise);
                     })
        .values;
  });
}

/// Whether a reduction has bounds of its own in the tile.
bool FragmentValues::isSplitAcrossCluster(tgl::ReduceOp op) {
  tgl::AxisRange range = tgl::getAxisRange(cast<tgl::AxesOp>(op.getOperation()), 0);
  tgl::TilesOp tiles = c.plan.tiles;
  return !range.lo.asConstant() &&
         !(range.lo.asValue() == tiles.getTileLow() && range.hi.asValue() == tiles.getTileHigh());
}

/// `otherwise` at what a row's bounds leave out.
void FragmentValues::keepInBounds(Values &values, const Scope &scope, tgl::ReduceOp op,
                                  Value *otherwise) {
  tgl::AxisRange range = tgl::getAxisRange(cast<tgl::AxesOp>(op.getOperation()), 0);
  tgl::TilesOp tiles = c.plan.tiles;
  Values lows, highs;
  Value *isPartial = scope.ragged ? scope.ragged : b.getFalse();
  for (unsigned row = 0; row < 2; ++row) {
    setOperands(op, row, 0);
    lows.push_back(e.emitIndex(range.lo));
    highs.push_back(e.emitIndex(range.hi));
    isPartial = b.CreateOr(isPartial, b.CreateICmpSGT(lows.back(), e.values[tiles.getTileLow()]));
    isPartial = b.CreateOr(isPartial, b.CreateICmpSLT(highs.back(), e.values[tiles.getTileHigh()]));
  }
  c.choose(isPartial, values, [&] {
    Fragment all{true, true, values};
    return forPoints(true, true, &scope,
                     [&](unsigned row, unsigned column) {
                       Value *number = scope.numbers[column];
                       Value *exists = b.CreateAnd(b.CreateICmpSGE(number, lows[row]),
                                                   b.CreateICmpSLT(number, highs[row]));
                       return b.CreateSelect(exists, all.at(row, column), otherwise);
                     })
        .values;
  });
}

/// A `where` over rows and columns: its condition is computed in tiles alone where it does not hold
/// throughout.
void FragmentValues::emitMasked(mlir::arith::SelectOp op, const Scope &scope,
                                ArrayRef<Comparison> mask) {
  Value *isPartial = nullptr;
  for (const Comparison &comparison : mask) {
    bool grows = tgl::stepAlong(comparison.expr, scope.axis).value_or(0) >= 0;
    e.values[scope.axis] =
        grows ? e.values[tgl::TilesOp(c.plan.tiles).getTileLow()]
              : b.CreateSub(e.values[tgl::TilesOp(c.plan.tiles).getTileHigh()], c.i64(1));
    Value *fails = b.CreateICmpSLT(c.atRow(comparison.expr, /*wantsLargest=*/false), c.i64(0));
    isPartial = isPartial ? b.CreateOr(isPartial, fails) : fails;
  }
  emitWhere(
      op, scope, isPartial, [] {},
      [&](unsigned row, unsigned column) {
        e.values[c.rowAxis] = c.fragments[c.rowAxis].at(row, column);
        e.values[scope.axis] = c.fragments[scope.axis].at(row, column);
        Value *holds = nullptr;
        for (const Comparison &comparison : mask)
          holds = e.emitAnd(holds, b.CreateICmpSGE(e.emitIndex(comparison.expr), c.i64(0)));
        return holds;
      });
}

/// A `where` that takes its first side but in tiles that are partial: there `begin` is emitted, and
/// `holds` at each point.
void FragmentValues::emitWhere(mlir::arith::SelectOp op, const Scope &scope, Value *isPartial,
                               function_ref<void()> begin,
                               function_ref<Value *(unsigned row, unsigned column)> holds) {
  Fragment kept = full(fragmentOf(op.getTrueValue()), scope),
           other = fragmentOf(op.getFalseValue());
  // An infinite value is infinite before it is scaled, too.
  std::optional<ScaledValues> scaled;
  if (all_of(other.values, [](Value *value) { return match(value, m_Inf()); }))
    scaled = withoutScale(b, kept.values);
  if (scaled)
    kept.values = scaled->values;
  c.choose(isPartial, kept.values, [&] {
    begin();
    Fragment own = kept;
    return forPoints(true, true, &scope,
                     [&](unsigned row, unsigned column) {
                       Value *isKept = holds(row, column);
                       return b.CreateSelect(isKept, own.at(row, column), other.at(row, column));
                     })
        .values;
  });
  if (scaled)
    for (Value *&value : kept.values)
      value = b.CreateFMul(value, scaled->scale);
  c.fragments[op.getResult()] = kept;
}

/// Operations of which masks alone are made are emitted where a mask is evaluated.
void FragmentValues::skipMaskOps(tgl::ParallelOp nest) {
  for (const TileLoopPlan::DataMask &mask : c.plan.masks) {
    if (mask.axis.getOwner() != &nest.getBody().front())
      continue;
    SetVector<mlir::Operation *> slice = *MaskAnalysis(c.plan, mask.axis).sliceOf(mask.condition);
    for (mlir::Operation *op : reverse(slice))
      if (op->getBlock() == mask.axis.getOwner() &&
          all_of(op->getUsers(), [&](mlir::Operation *user) {
            return c.skipped.contains(user) ||
                   (isa<mlir::arith::SelectOp>(user) && op->getResult(0) == mask.condition &&
                    user->getOperand(1) != mask.condition && user->getOperand(2) != mask.condition);
          }))
        c.skipped.insert(op);
  }
}

/// A `where` whose condition is a mask that data decides.
bool FragmentValues::emitDataMask(mlir::arith::SelectOp op, const Scope &scope) {
  auto found = find_if(c.plan.masks, [&](const TileLoopPlan::DataMask &mask) {
    return mask.condition == op.getCondition();
  });
  if (found == c.plan.masks.end())
    return false;
  auto [low, high] = c.throughout[found - c.plan.masks.begin()];
  tgl::TilesOp tiles = c.plan.tiles;
  Value *isPartial = b.CreateOr(b.CreateICmpSLT(e.values[tiles.getTileLow()], low),
                                b.CreateICmpSGT(e.values[tiles.getTileHigh()], high));
  // What is computed in the branch is not there behind it.
  DenseMap<mlir::Value, Fragment> before = c.fragments;
  auto values = e.values;
  SetVector<mlir::Operation *> slice = *MaskAnalysis(c.plan, found->axis).sliceOf(found->condition);
  emitWhere(
      op, scope, isPartial,
      [&] {
        for (mlir::Operation *one : slice)
          if (one->getBlock() == found->axis.getOwner())
            emitFragment(one, &scope);
      },
      [&](unsigned row, unsigned column) { return fragmentOf(found->condition).at(row, column); });
  Fragment result = c.fragments[op.getResult()];
  c.fragments = std::move(before);
  e.values = std::move(values);
  c.fragments[op.getResult()] = result;
  return true;
}

/// Writes to a private temporary, and rounds elements to its type. Where products alone read the
/// temporary, they round its elements themselves, and it keeps them unrounded.
void FragmentValues::store(tgl::WriteOp op, const Scope &scope) {
  mlir::Type element = op.getTensorType().getElementType();
  bool isLeft = all_of(op.getTensor().getUsers(), [&](mlir::Operation *user) {
    return isa<tgl::WriteOp>(user) || any_of(c.plan.products, [&](const TileLoopProduct &product) {
             auto read = dyn_cast<tgl::ReadOp>(user);
             return read && product.terms == 1 && product.aValue == read.getResult() &&
                    read->hasOneUse();
           });
  });
  mlir::Value value = op.getValue();
  auto convert = value.getDefiningOp<tgl::ConvertOp>();
  if (isLeft && convert && convert.getTarget() == element &&
      c.fragments.contains(convert.getValue()))
    value = convert.getValue();
  Fragment all = full(fragmentOf(value), scope);
  if (!isLeft)
    for (Value *&one : all.values)
      one = e.decode(e.encode(one, element), element);
  c.elements[op.getTensor()] = all;
}

/// An operation of a nest or a reduction.
void FragmentValues::emitInner(mlir::Operation *op, const Scope &scope) {
  if (isa<tgl::YieldOp>(op) || c.skipped.contains(op))
    return;
  if (auto read = dyn_cast<tgl::ReadOp>(op); read && c.elements.contains(read.getTensor())) {
    products.settle(read.getTensor());
    c.fragments[read.getResult()] = c.elements[read.getTensor()];
    return;
  }
  if (auto write = dyn_cast<tgl::WriteOp>(op)) {
    auto temp = write.getTensor().getDefiningOp<tgl::TempOp>();
    if (temp && c.plan.op->isProperAncestor(temp))
      store(write, scope);
    else
      emitWrite(write, &scope);
    return;
  }
  if (auto reduce = dyn_cast<tgl::ReduceOp>(op))
    return products.emitProduct(reduce, scope);
  if (auto select = dyn_cast<mlir::arith::SelectOp>(op); select && scope.isTile)
    if (auto mask = affineMask(select.getCondition(), scope.axis, c.rowAxis);
        mask && !mask->empty())
      return emitMasked(select, scope, *mask);
  if (auto select = dyn_cast<mlir::arith::SelectOp>(op);
      select && scope.isTile && emitDataMask(select, scope))
    return;
  if (auto division = dyn_cast<mlir::arith::DivFOp>(op);
      division && op->getResult(0).getType().isF32() && !fragmentOf(division.getRhs()).columns &&
      fragmentOf(division.getLhs()).columns)
    return divideByRows(division, scope);
  if (emitShiftedExp(op, scope))
    return;
  emitFragment(op, &scope);
}

void FragmentValues::emitNest(tgl::ParallelOp op) {
  products.prepareWords(op);
  skipMaskOps(op);
  Scope scope = enter(op);
  for (mlir::Operation &inner : op.getBody().front())
    emitInner(&inner, scope);
}

/// Pairs of a thread's columns, pairs of those, and so on; then the four threads of a row.
void FragmentValues::emitReduce(tgl::ReduceOp op) {
  Scope scope = enter(op);
  for (mlir::Operation &inner : op.getBody().front())
    emitInner(&inner, scope);
  Accumulator neutral = initialAccumulator(e, op);
  Fragment points = full(fragmentOf(op.getReduced()), scope);
  if (op.getKind() == tgl::ReduceKind::Count)
    for (Value *&value : points.values)
      value = b.CreateZExt(value, neutral[0]->getType());
  if (op.getFilter()) {
    Fragment counts = fragmentOf(op.getFilter()), all = points;
    points = forPoints(true, true, &scope, [&](unsigned row, unsigned column) {
      return b.CreateSelect(counts.at(row, column), all.at(row, column), neutral[0]);
    });
  }
  if (isSplitAcrossCluster(op))
    keepInBounds(points.values, scope, op, neutral[0]);
  else
    keepExisting(points.values, scope, neutral[0]);
  // Rounding keeps order: the largest product with a number above 0 is that of the largest.
  bool isExtreme = op.getKind() == tgl::ReduceKind::Max || op.getKind() == tgl::ReduceKind::Min;
  std::optional<ScaledValues> scaled = isExtreme ? withoutScale(b, points.values) : std::nullopt;
  if (scaled)
    points.values = scaled->values;
  Fragment result = forPoints(true, false, &scope, [&](unsigned row, unsigned) {
    Values own;
    for (unsigned column = 0; column < scope.own(); ++column)
      own.push_back(points.at(row, column));
    while (own.size() > 1) {
      Values half;
      for (unsigned n = 0; n + 1 < own.size(); n += 2)
        half.push_back(combine(e, op, {own[n]}, {own[n + 1]})[0]);
      if (own.size() % 2)
        half.push_back(own.back());
      own = half;
    }
    Accumulator combined = e.combineWarp(op, {own[0]}, 4);
    if (scaled)
      combined[0] = b.CreateFMul(combined[0], scaled->scale);
    return resultOf(e, op, combined);
  });
  c.fragments[op.getResult()] = result;
}

/// The size of a row's shift from which on a product with log2 e, rounded, may be off by more
/// than 2.
static constexpr int largeShift = 25;

/// The power of two that brings a large number (f32) to 2^largeShift or less.
static Value *powerThatShrinks(IRBuilder<> &b, Value *size) {
  constexpr int bias = 127, mantissaBits = 23;
  Value *exponent = b.CreateLShr(b.CreateBitCast(size, b.getInt32Ty()), b.getInt32(mantissaBits));
  return b.CreateBitCast(b.CreateShl(b.CreateSub(b.getInt32(2 * bias + largeShift - 1), exponent),
                                     b.getInt32(mantissaBits)),
                         b.getFloatTy());
}

/// exp(c x - m) with m of rows alone, which a softmax is made of: 2^(x (c log2 e) - m log2 e) takes
/// one multiplication and addition. It adds errors of |c x| 2^-23 and |m| 2^-24, those of numbers
/// of f32 of their size.
///
/// For a large m, such as the -1e9 or -1e30 that a mask writes, those errors would turn e^0 into 0
/// or infinity. Numbers of that size are equal or at least 2 apart, so 2^(x - m), which is exact,
/// takes the place of e^(x - m). A product c x differs from m, into which it was rounded, by at
/// most m's rounding error. A power of two scales both so that this error is below 1; the result is
/// 0 for values that are farther from m.
bool FragmentValues::emitShiftedExp(mlir::Operation *op, const Scope &scope) {
  auto shift = op->getOperand(0).getDefiningOp<mlir::arith::SubFOp>();
  if (!isa<mlir::math::ExpOp>(op) || !shift || !shift.getType().isF32())
    return false;
  Fragment elements = fragmentOf(shift.getLhs()), shifts = fragmentOf(shift.getRhs());
  if (!elements.rows || !elements.columns || !shifts.rows || shifts.columns)
    return false;
  double factor = 1;
  if (std::optional<ScaledValues> scaled = withoutScale(b, elements.values)) {
    elements.values = scaled->values;
    factor = scaled->factor;
  }
  Type *type = b.getFloatTy();
  Values factors, offsets;
  for (unsigned row = 0; row < 2; ++row) {
    Value *own = shifts.at(row, 0), *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, own);
    Value *isSmall = b.CreateFCmpOLT(size, ConstantFP::get(type, std::ldexp(1.0, largeShift)));
    Value *large = factor == 1 ? ConstantFP::get(type, 1) : powerThatShrinks(b, size);
    factors.push_back(b.CreateSelect(isSmall, ConstantFP::get(type, factor * numbers::log2e),
                                     b.CreateFMul(large, ConstantFP::get(type, factor))));
    offsets.push_back(b.CreateFNeg(
        b.CreateFMul(own, b.CreateSelect(isSmall, ConstantFP::get(type, numbers::log2e), large))));
  }
  c.fragments[op->getResult(0)] = forPoints(true, true, &scope, [&](unsigned row, unsigned column) {
    Value *power = b.CreateIntrinsic(type, Intrinsic::fma,
                                     {elements.at(row, column), factors[row], offsets[row]});
    return b.CreateIntrinsic(type, Intrinsic::nvvm_ex2_approx_ftz, {power});
  });
  return true;
}
