//===- TensorOperands.cpp - Describes the operands of a matrix product ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which type the tensor cores multiply, how many numbers a value becomes, and how its elements lie
// in memory: in vectors, along the sum or not, in windows, or computed.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/FactorRange.h"
#include "strategies/contraction/plan/TensorTile.h"

#include "ir/tgl/Invariance.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "passes/analysis/Nest.h"
#include "strategies/contraction/plan/WindowOperand.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// A read that gives 0 where its element does not exist, or has no such place.
static bool fillsWithZero(tgl::ReadOp read) {
  return !read.getFill() || matchPattern(read.getFill(), mlir::m_AnyZeroFloat()) ||
         matchPattern(read.getFill(), mlir::m_Zero());
}

/// Axes of one point replaced by it, but for `kept`.
static ValueExpr withoutSingleAxes(const ValueExpr &expr, mlir::Value kept) {
  return expr.substitute([&](mlir::Value value) -> std::optional<ValueExpr> {
    if (value == kept || !axesOpOf(value))
      return std::nullopt;
    ValueExpr low = lowOf(value);
    return low.asConstant() && (highOf(value) - low).asConstant() == 1 ? std::optional(low)
                                                                       : std::nullopt;
  });
}

/// Whether `count` elements from every multiple of `count` along the group's last axis are
/// neighbours that start at a multiple of `count`.
static bool isInVectors(tgl::ReadOp read, tgl::AxesOp owner, ArrayRef<unsigned> group,
                        bool collapsed, int64_t count) {
  if (read.getFill())
    return false;
  mlir::Value axis = owner.getAxes()[group.back()];
  ValueExpr offset =
      withoutSingleAxes(tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs()), axis);
  if (tgl::stepAlong(offset, axis) != 1)
    return false;
  std::optional<int64_t> low = tgl::getAxisRange(owner, group.back()).lo.asConstant();
  std::optional<int64_t> extent =
      tgl::knownPoints(owner, collapsed ? group : ArrayRef(group).take_back());
  if (!low || *low % count || !extent || *extent % count)
    return false;
  ValueExpr start = offset.substitute(axis, ValueExpr(int64_t(0)));
  return llvm::all_of(start.expr().terms(),
                      [&](const IndexExpr::Term &term) { return term.coefficient % count == 0; });
}

/// Whether the integer is one of at most 8 bits, with a sign or without.
static bool isByte(mlir::Value value) {
  if (auto read = value.getDefiningOp<tgl::ReadOp>()) {
    auto element = dyn_cast<mlir::IntegerType>(read.getTensorType().getElementType());
    return element && element.getWidth() <= 8 && !read.getFill();
  }
  mlir::Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<mlir::arith::ExtSIOp, mlir::arith::ExtUIOp, mlir::arith::TruncIOp>(op))
    return isByte(op->getOperand(0));
  mlir::APInt mask;
  return isa_and_nonnull<mlir::arith::AndIOp>(op) &&
         matchPattern(op->getOperand(1), mlir::m_ConstantInt(&mask)) && mask.isIntN(8);
}

/// Which numbers the factor's are: as stored, as rounded, or as a small integer.
static void describeNumbers(ContractionOperand &operand, mlir::Value factor) {
  mlir::Operation *op = factor.getDefiningOp();
  mlir::Type element;
  if (auto read = dyn_cast_or_null<tgl::ReadOp>(op)) {
    operand.read = read;
    if (fillsWithZero(read))
      element = read.getTensorType().getElementType();
  } else if (auto rounded = dyn_cast_or_null<tgl::ConvertOp>(op)) {
    element = rounded.getTarget(); // weights out of packed words, probabilities
  }
  operand.isByte = operand.read && element && isa<mlir::IntegerType>(element);
  bool isSmall = isa_and_nonnull<mlir::arith::SIToFPOp, mlir::arith::UIToFPOp>(op) &&
                 isByte(op->getOperand(0));
  bool isOfF8 = element && isF8(element);
  operand.fitsF16 = isSmall || isOfF8 || (element && element.isF16());
  operand.fitsBF16 = isSmall || isOfF8 || (element && element.isBF16());
}

static ContractionOperand describeSide(const ContractionSide &side) {
  ContractionOperand operand;
  operand.kMajor = side.lanesAlongK;
  operand.terms = 2;
  if (side.factors.size() == 1)
    describeNumbers(operand, side.factors.front());
  operand.isExact = operand.fitsF16 || operand.fitsBF16 || operand.isByte;
  if (operand.isExact)
    operand.terms = 1;
  return operand;
}

/// Whether copies would wait for a subscript: what data chooses for a line, or for a tile, is found
/// once.
static bool changesInLine(mlir::Value subscript, const ContractionOperand &operand,
                          tgl::AxesOp summed, tgl::AxesOp axes, ArrayRef<unsigned> group) {
  return llvm::any_of(tgl::axesOf(subscript), [&](mlir::BlockArgument axis) {
    bool isOfGroup =
        axis.getOwner() == axes.getAxesBlock() && llvm::is_contained(group, axis.getArgNumber());
    return axis.getOwner() == summed.getAxesBlock() || (isOfGroup && !operand.kMajor);
  });
}

static void chooseStaging(ContractionOperand &operand, const ContractionSide &side, MmaType type,
                          tgl::AxesOp summed, tgl::AxesOp axes, ArrayRef<unsigned> group) {
  tgl::ReadOp read = operand.read;
  if (!read || read.getGuard() || !read.getExactExprs().empty() || read.getChecked() ||
      !fillsWithZero(read))
    return;
  mlir::Type element = read.getTensorType().getElementType();
  bool isSingle = type == MmaType::TF32;
  bool isOfType = isSingle        ? element.isF32()
                  : isBytes(type) ? element.getIntOrFloatBitWidth() == 8
                                  : element.isF16() || element.isBF16();
  if (!isOfType)
    return;
  if (llvm::any_of(side.slice, [&](mlir::Operation *op) {
        return op != read && isa<tgl::ReadOp>(op) &&
               changesInLine(op->getResult(0), operand, summed, axes, group);
      }))
    return;
  operand.isPlain = true;
  SmallVector<unsigned> sums = llvm::to_vector(llvm::seq<unsigned>(0, summed.getAxes().size()));
  int64_t count = 16 / bytesOf(type);
  bool vectors = operand.kMajor
                     ? isInVectors(read, summed, sums, side.collapsesSum, count)
                     : !isBytes(type) && isInVectors(read, axes, group, side.collapsesAxes, count);
  if (vectors) // tensor cores take bytes along the sum alone
    operand.staging = Staging::Vectors;
  else if (isSingle)
    operand.staging = Staging::Elements;
}

static bool isReadOfF8(const ContractionOperand &operand) {
  return operand.read && isF8(tgl::ReadOp(operand.read).getTensorType().getElementType());
}

/// The type of a product whose operands have one term each.
static MmaType exactType(const ContractionOperand &row, const ContractionOperand &column) {
  if (row.isByte && column.isByte)
    return MmaType::I8;
  if (isReadOfF8(row) && isReadOfF8(column))
    return MmaType::F8;
  if (row.fitsF16 && column.fitsF16)
    return MmaType::F16;
  return row.fitsBF16 && column.fitsBF16 ? MmaType::BF16 : MmaType::TF32;
}

Matched<SmallVector<ProductOperands>> tegula::describeOperands(const ContractionPlan &plan,
                                                               tgl::PointsOf *pointsOf) {
  bool isInteger = plan.element.isInteger(32);
  if (!plan.element.isF32() && !isInteger)
    return Mismatch{"the sums are of f64, which tensor cores do not add up here", "", plan.op};
  SmallVector<ProductOperands> result;
  tgl::AxesOp axes = tgl::axesOfOp(tgl::ParallelOp(plan.op));
  for (const ContractionProduct &product : plan.products) {
    tgl::ReduceOp reduce = product.reduce;
    ProductOperands operands{MmaType::TF32, describeSide(product.a), describeSide(product.b)};
    if (operands.a.terms == 1 && operands.b.terms == 1)
      operands.type = exactType(operands.a, operands.b);
    else if (isInteger)
      return Mismatch{
          "the factors are not read from tensors of i8 or u8, or are read with a fill other than 0",
          "", product.reduce};
    auto precision = reduce->getAttrOfType<mlir::StringAttr>(precisionAttrName);
    operands.isRounded = precision && precision != "f32";
    if (operands.isRounded)
      operands.a.terms = operands.b.terms = 1;
    tgl::AxesOp summed = tgl::axesOfOp(reduce);
    chooseStaging(operands.a, product.a, operands.type, summed, axes, plan.rows);
    chooseStaging(operands.b, product.b, operands.type, summed, axes, plan.columns);
    auto map = [&](ContractionOperand &operand, const ContractionSide &side,
                   ArrayRef<unsigned> lines) {
      if (operand.staging == Staging::Vectors && operands.type != MmaType::TF32)
        operand.tma =
            planTmaOperand(plan, reduce, side, lines, operand.read, operand.kMajor, pointsOf);
    };
    map(operands.a, product.a, plan.rows);
    map(operands.b, product.b, plan.columns);
    result.push_back(operands);
  }
  return result;
}

Matched<TensorProduct> tegula::matchTensorProduct(tgl::ParallelOp op) {
  Matched<ContractionPlan> plan = planContraction(op, /*byVectors=*/false);
  if (!plan)
    return plan.mismatch();
  Matched<SmallVector<ProductOperands>> operands = describeOperands(*plan);
  if (!operands)
    return operands.mismatch();
  return TensorProduct{std::move(*plan), std::move(*operands)};
}

/// Whether eight points of the sum, from a multiple of eight, are a run along its last axis: their
/// places then have all but a step in common. Single ones of f32 cost the threads that stage them
/// more than products by warps.
static bool hasChannelVectors(const ContractionSide &side, tgl::AxesOp summed) {
  constexpr int64_t run = 8;
  int64_t last = summed.getAxes().size() - 1, longAxes = 0;
  for (unsigned axis = 0; axis < summed.getAxes().size(); ++axis)
    longAxes += tgl::knownPoints(summed, {axis}) != 1;
  std::optional<int64_t> extent = tgl::knownPoints(summed, {unsigned(last)});
  return side.collapsesSum || longAxes <= 1 || (extent && *extent % run == 0);
}

/// Whether the dim, which is not a number, is not 0 where the statement has points: it is the
/// extent of an axis, or a multiple of such.
static bool isNonZeroWherePointsAre(const IndexExpr &dim, tgl::AxesOp axes) {
  auto isExtent = [&](const IndexExpr &expr) {
    return llvm::any_of(llvm::seq<unsigned>(0, axes.getAxes().size()), [&](unsigned axis) {
      tgl::AxisRange range = tgl::getAxisRange(axes, axis);
      return range.hi - range.lo == ValueExpr(expr);
    });
  };
  return isExtent(dim) || (dim.terms().size() == 1 && dim.terms().front().coefficient > 0 &&
                           llvm::all_of(dim.variables(), [&](const IndexVar &var) {
                             return var.isSymbol() && isExtent(IndexExpr::symbol(var.name()));
                           }));
}

/// Whether there is a first element, from which those that do not exist are read.
static bool hasElements(const ContractionPlan &plan, const ContractionOperand &operand) {
  if (!operand.isPlain)
    return true;
  tgl::Invariance invariance = tgl::Invariance::of(tgl::ParallelOp(plan.op));
  tgl::AxesOp axes = tgl::axesOfOp(tgl::ParallelOp(plan.op));
  return llvm::all_of(tgl::ReadOp(operand.read).getTensorType().getDims(),
                      [&](tgl::IndexExprAttr dim) {
                        std::optional<int64_t> extent = dim.getExpr().asConstant();
                        if (!extent && isNonZeroWherePointsAre(dim.getExpr(), axes))
                          extent = invariance.planned(dim.getExpr()).asConstant();
                        return extent && *extent > 0;
                      });
}

/// Whether terms of f16 do not hold the side's elements: tiles of which one does not fit its term
/// are computed again, and slowly.
static bool isSpread(const ContractionSide &side, tgl::ReduceOp reduce) {
  SmallVector<mlir::BlockArgument> along(reduce.getAxes());
  return llvm::any_of(side.factors,
                      [&](mlir::Value factor) { return isMultipleOfPower(factor, along); });
}

/// Elements that do not exist are read from their tensor's first place, so there must be one; and a
/// block has something to add up.
bool tegula::canUseWgmma(const ContractionPlan &plan, ArrayRef<ProductOperands> products,
                         bool prepacked) {
  bool isSingle = products.front().type == MmaType::TF32, areBytes = isBytes(products.front().type);
  return llvm::all_of(llvm::zip_equal(plan.products, products), [&](auto both) {
    auto &[product, operands] = both;
    std::optional<int64_t> points = tgl::knownPoints(tgl::axesOfOp(tgl::ReduceOp(product.reduce)));
    if (isSingle != (operands.type == MmaType::TF32) || areBytes != isBytes(operands.type))
      return false; // one division of labour for all
    bool areVectors =
        operands.a.staging == Staging::Vectors && operands.b.staging == Staging::Vectors;
    if (areBytes && !prepacked && !areVectors)
      return false; // copied as they are, or brought into order before
    tgl::AxesOp summed = tgl::axesOfOp(tgl::ReduceOp(product.reduce));
    bool isOrdered = prepacked && planPrepackedProduct(operands, product.reduce).order.padded;
    if (isSingle && (isSpread(product.a, product.reduce) || isSpread(product.b, product.reduce)))
      return false;
    if (isSingle && !isOrdered &&
        !(hasChannelVectors(product.a, summed) && hasChannelVectors(product.b, summed)))
      return false;
    return points && *points > 0 && hasElements(plan, operands.a) && hasElements(plan, operands.b);
  });
}

bool tegula::canUseBF16Terms(const ContractionPlan &plan, ArrayRef<ProductOperands> products) {
  return llvm::all_of(llvm::zip_equal(plan.products, products), [&](auto both) {
    auto &[product, operands] = both;
    std::optional<int64_t> points = tgl::knownPoints(tgl::axesOfOp(tgl::ReduceOp(product.reduce)));
    const ContractionOperand &exact = operands.a.isExact ? operands.a : operands.b,
                             &other = operands.a.isExact ? operands.b : operands.a;
    return operands.type == MmaType::TF32 && !operands.isRounded && !product.scales &&
           exact.fitsBF16 && !other.isExact && points && *points > 0 &&
           hasElements(plan, operands.a) && hasElements(plan, operands.b);
  });
}

SmallVector<ProductOperands> tegula::operandsOfBF16Terms(const ContractionPlan &plan,
                                                         ArrayRef<ProductOperands> products) {
  SmallVector<ProductOperands> result(products);
  tgl::AxesOp axes = tgl::axesOfOp(tgl::ParallelOp(plan.op));
  for (auto [product, operands] : llvm::zip_equal(plan.products, result)) {
    operands.type = MmaType::BF16;
    bool isRow = operands.a.isExact;
    chooseStaging(isRow ? operands.a : operands.b, isRow ? product.a : product.b, MmaType::BF16,
                  tgl::axesOfOp(tgl::ReduceOp(product.reduce)), axes,
                  isRow ? plan.rows : plan.columns);
  }
  return result;
}
