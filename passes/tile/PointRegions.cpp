//===- PointRegions.cpp - Regions that compute a point --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/tile/PointRegions.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/analysis/Nest.h"

using namespace mlir;
using namespace tegula;
using tgl::ValueExpr;

void tile::mapPackedAxes(OpBuilder &builder, tgl::AxesOp axes, ArrayRef<unsigned> packed,
                         Value number, IRMapping &inside) {
  ValueExpr rest(number);
  for (unsigned axis : llvm::reverse(packed)) {
    int64_t extent = *tgl::knownPoints(axes, {axis});
    bool isSlowest = axis == packed.front();
    ValueExpr own = isSlowest ? rest : ValueExpr::mod(rest, ValueExpr(extent));
    inside.map(axes.getAxes()[axis], tgl::materialize(builder, axes.getLoc(), own));
    if (!isSlowest)
      rest = ValueExpr::floorDiv(rest, ValueExpr(extent));
  }
}

Value tile::cloneValue(OpBuilder &builder, Value value, Operation *around, IRMapping &inside) {
  Operation *definition = value.getDefiningOp();
  if (inside.contains(value) || !definition || !around->isProperAncestor(definition))
    return inside.lookupOrDefault(value);
  for (Value operand : definition->getOperands())
    cloneValue(builder, operand, around, inside);
  builder.clone(*definition, inside);
  return inside.lookup(value);
}

void tile::finishPoint(Block &point) {
  for (Operation &op : llvm::make_early_inc_range(point))
    if (auto indexed = dyn_cast<tgl::IndexedOp>(op))
      foldIndices(indexed);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(point))) {
    bool isUnusedRead = isa<tgl::ReadOp>(op) && op.use_empty();
    if (isUnusedRead || isOpTriviallyDead(&op))
      op.erase();
  }
}

void tile::setPointNames(PointsOp points, ArrayRef<StringRef> names) {
  SmallVector<StringRef> all(names);
  all.resize(points.getPoint()->getNumArguments());
  points->setAttr("names", Builder(points.getContext()).getStrArrayAttr(all));
}
