//===- PrepackedCost.cpp - What prepacking operands costs ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/PrepackedCost.h"

#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "strategies/contraction/plan/WindowOperand.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// The most bytes of operands that are prepacked in lines, which may hold an element more than
/// once.
static constexpr double maxPrepackedBytes = 1 << 30;
/// The most bytes of prepacked windows for a byte of their tensor: channels that only fill a vector
/// are waste.
static constexpr double maxPrepackedShare = 4;

static bool haveNeighbours(const ContractionPlan &plan, const WindowOperand &window,
                           tgl::ReadOp read) {
  ValueExpr subscript = read.getSubscriptExprs()[window.pixelDims.back()];
  return tgl::stepAlong(subscript,
                        tgl::axesOfOp(tgl::ParallelOp(plan.op)).getAxes()[plan.columns.back()]) ==
         1;
}

PrepackedCost tegula::prepackedCost(const ContractionPlan &plan, ArrayRef<ProductOperands> products,
                                    double rows, double columns) {
  PrepackedCost cost;
  double ofLines = 0;
  for (auto [product, operands] : llvm::zip_equal(plan.products, products)) {
    auto summed = tgl::axesOfOp(tgl::ReduceOp(product.reduce));
    PrepackedProduct prepacked = planPrepackedProduct(operands, product.reduce);
    double points = prepacked.order.points(summed);
    if (prepacked.a || prepacked.b) {
      // Blocks take steps of 64 points. Of the taps of 32 points that are copied at a time all but
      // the first take 2 clocks (convolutions of 8 and 16 channels on an H200).
      points = alignTo(prepacked.order.points(summed), 64);
      cost.clocksOfLine += points / 32 * 2 * (std::max(32.0 / prepacked.order.padded, 1.0) - 1);
    }
    if (prepacked.b)
      cost.areNeighbours |= haveNeighbours(plan, *prepacked.b, operands.b.read);
    cost.points += points * operands.multiplications();
    auto addSide = [&](const ContractionOperand &operand,
                       const std::optional<WindowOperand> &window, double lines) {
      double single = bytesOf(operands.type),
             terms = isBytes(operands.type) ? 1 : 2.0 * operand.terms;
      if (!window) {
        cost.bytes += lines * points * (single + terms);
        ofLines += lines * points * terms;
        return;
      }
      double own = double(window->images) * window->pixels * window->channels * single;
      double kept = window->keptElements() * terms;
      cost.bytes += own + kept;
      cost.isAllowed &= kept <= maxPrepackedShare * own;
    };
    addSide(operands.a, prepacked.a, rows * shareOfMatrices(plan, operands.a));
    addSide(operands.b, prepacked.b, columns * shareOfMatrices(plan, operands.b));
  }
  cost.isAllowed &= ofLines <= maxPrepackedBytes;
  return cost;
}

std::optional<HaloCost> tegula::haloCost(const ContractionPlan &plan,
                                         ArrayRef<ProductOperands> products, int64_t columns) {
  if (plan.products.size() != 1)
    return std::nullopt;
  const ProductOperands &operands = products.front();
  tgl::ReduceOp reduce = plan.products.front().reduce;
  PrepackedProduct prepacked = planPrepackedProduct(operands, reduce);
  if (!prepacked.b)
    return std::nullopt;
  std::optional<HaloTile> halo = planHaloTile(
      *prepacked.b, operands.b.read, reduce, tgl::axesOfOp(tgl::ParallelOp(plan.op)), plan.columns);
  if (!halo)
    return std::nullopt;
  // Tiles of f32 whose accumulators are not finite are computed again.
  bool usesSplitPrecision = operands.type == MmaType::TF32;
  int64_t terms = usesSplitPrecision ? std::max(operands.a.terms, operands.b.terms) : 1;
  std::optional<KOrder> order =
      groupChannels(prepacked.order, *halo, 64 / terms, columns, usesSplitPrecision);
  if (!order)
    return std::nullopt;
  return HaloCost{double(order->points(tgl::axesOfOp(reduce))) * operands.multiplications(),
                  halo->images * halo->pixels};
}
