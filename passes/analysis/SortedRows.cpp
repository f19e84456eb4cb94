//===- SortedRows.cpp - What of sorted rows is read -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/SortedRows.h"

#include "ir/tgl/TglUtils.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

std::optional<IndexExpr> tegula::elementsRead(SortOp op) {
  std::optional<IndexExpr> most;
  for (Value tensor : {op.getValues(), op.getPositions()}) {
    if (!tensor.getDefiningOp<TempOp>())
      return std::nullopt;
    for (Operation *user : tensor.getUsers()) {
      auto read = dyn_cast<ReadOp>(user);
      if (!read) {
        if (isa<WriteOp>(user) || user == op)
          continue; // what is sorted
        return std::nullopt;
      }
      auto axis = dyn_cast_or_null<BlockArgument>(read.getSubscriptExprs().back().asValue());
      auto owner = axis ? dyn_cast<AxesOp>(axis.getOwner()->getParentOp()) : AxesOp();
      if (!owner)
        return std::nullopt;
      ValueExpr high = getAxisRange(owner, axis.getArgNumber()).hi;
      if (!high.operands().empty())
        return std::nullopt;
      most = most ? IndexExpr::max(*most, high.expr()) : high.expr();
    }
  }
  return most;
}
