//===- Invariance.cpp - What a choice may know of sizes -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/Invariance.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

Invariance Invariance::of(Operation *op) {
  Invariance result;
  auto kernel = dyn_cast<KernelOp>(op);
  if (!kernel)
    kernel = op->getParentOfType<KernelOp>();
  auto names = kernel ? kernel->getAttrOfType<ArrayAttr>("invariant") : nullptr;
  if (!names)
    return result;
  llvm::StringSet<> invariant;
  for (auto name : names.getAsRange<StringAttr>())
    invariant.insert(name.getValue());
  for (Attribute attr : kernel.getSizeAttrs()) // those that a derived one is made of come first
    if (auto size = cast<SizeAttr>(attr); invariant.contains(size.getName()))
      result.plans[size.getName()] =
          size.isBound() ? IndexExpr(plannedExtent) : result.planned(size.getDefinition());
  return result;
}

bool Invariance::mayDecide(const IndexExpr &expr) const {
  return llvm::all_of(expr.variables(), [&](const IndexVar &var) {
    return !var.isSymbol() || mayDecide(var.name());
  });
}

IndexExpr Invariance::planned(const IndexExpr &expr) const {
  return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    auto found = var.isSymbol() ? plans.find(var.name()) : plans.end();
    return found == plans.end() ? std::nullopt : std::optional(found->second);
  });
}

ValueExpr Invariance::planned(const ValueExpr &expr) const {
  return ValueExpr(planned(expr.expr()), expr.operands());
}

std::optional<int64_t> tgl::plannedPoints(AxesOp op, ArrayRef<unsigned> axes) {
  Invariance invariance = Invariance::of(op);
  int64_t points = 1;
  for (unsigned axis : axes) {
    AxisRange range = getAxisRange(op, axis);
    std::optional<int64_t> extent = invariance.planned(range.hi - range.lo).asConstant();
    if (!extent || llvm::MulOverflow(points, std::max<int64_t>(*extent, 0), points))
      return std::nullopt;
  }
  return points;
}

std::optional<int64_t> tgl::plannedPoints(AxesOp op) {
  return plannedPoints(op, llvm::to_vector(llvm::seq<unsigned>(0, op.getAxes().size())));
}
