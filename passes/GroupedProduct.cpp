//===- GroupedProduct.cpp - Products with a factor that data chooses -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/GroupedProduct.h"

#include "passes/Nest.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// Rows of a group, on average, and products in all from where on the launches that sort rows are paid for.
static constexpr int64_t fewestRows = 16, leastWork = 1 << 22;

static std::optional<int64_t> extentOf(BlockArgument axis) {
  if (!axesOpOf(axis) || lowOf(axis).asConstant() != 0)
    return std::nullopt;
  return highOf(axis).asConstant();
}

/// Products that the sum adds up at all points of its statement.
static std::optional<int64_t> workOf(ReduceOp reduce) {
  int64_t work = 1;
  for (Operation *around = reduce; around; around = around->getParentOp())
    if (auto axes = dyn_cast<AxesOp>(around)) {
      std::optional<int64_t> points = knownPoints(axes);
      if (!points || llvm::MulOverflow(work, *points, work))
        return std::nullopt;
    }
  return work;
}

/// The read as a matrix that data chooses, for rows that are not summed over, with columns of its own.
static std::optional<GroupedProduct> matchChosen(ReduceOp reduce, const Contraction::Factor &factor) {
  auto read = factor.value.getDefiningOp<ReadOp>();
  if (!read)
    return std::nullopt;
  for (auto [subscript, dim] : llvm::zip_equal(read.getSubscriptExprs(), read.getTensorType().getDims())) {
    Value key = subscript.asValue();
    std::optional<int64_t> groups = dim.getExpr().asConstant();
    if (!key || isa<BlockArgument>(key) || !groups || *groups < 1)
      continue;
    GroupedProduct product{read, key, axesOf(key), 1, *groups};
    auto isSummed = [&](BlockArgument axis) { return axis.getOwner()->getParentOp() == reduce; };
    if (product.rows.empty() || llvm::any_of(product.rows, isSummed))
      continue;
    if (llvm::all_of(factor.axes, [&](BlockArgument axis) { return isSummed(axis) || product.rows.contains(axis); }))
      continue; // a row that data chooses
    for (BlockArgument axis : product.rows) {
      std::optional<int64_t> extent = extentOf(axis);
      if (!extent || llvm::MulOverflow(product.numRows, *extent, product.numRows))
        return std::nullopt;
    }
    return product;
  }
  return std::nullopt;
}

std::optional<GroupedProduct> tegula::matchGroupedProduct(ReduceOp reduce) {
  std::optional<Contraction> contraction = matchContraction(reduce);
  if (!contraction || reduce.getFilter() || !reduce.getType().isF32())
    return std::nullopt;
  std::optional<GroupedProduct> found;
  for (const Contraction::Factor &factor : contraction->factors) {
    std::optional<GroupedProduct> product = matchChosen(reduce, factor);
    if (product && found)
      return std::nullopt; // two matrices for a row
    if (product)
      found = product;
  }
  std::optional<int64_t> work = workOf(reduce);
  if (!found || !work || *work < leastWork || found->numRows / found->groups < fewestRows ||
      found->numRows > std::numeric_limits<int32_t>::max() / 2)
    return std::nullopt;
  return found;
}

bool tegula::computedAlike(Value first, Value second) {
  if (first == second)
    return true;
  Operation *one = first.getDefiningOp(), *other = second.getDefiningOp();
  if (!one || !other || one->getNumRegions() || one->getName() != other->getName() ||
      one->getAttrDictionary() != other->getAttrDictionary() || one->getNumOperands() != other->getNumOperands() ||
      cast<OpResult>(first).getResultNumber() != cast<OpResult>(second).getResultNumber())
    return false;
  return llvm::all_of(llvm::zip_equal(one->getOperands(), other->getOperands()),
                      [](auto both) { return computedAlike(std::get<0>(both), std::get<1>(both)); });
}
