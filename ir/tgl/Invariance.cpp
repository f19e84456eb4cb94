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
  auto given = kernel->getAttrOfType<DictionaryAttr>(classesName);
  for (Attribute attr : kernel.getSizeAttrs()) { // those that a derived one is made of come first
    auto size = cast<SizeAttr>(attr);
    StringRef name = size.getName();
    if (!invariant.contains(name))
      continue;
    auto own = given ? given.getAs<IntegerAttr>(name) : IntegerAttr();
    result.plans[name] =
        size.isBound() ? IndexExpr(plannedExtent) : result.planned(size.getDefinition());
    result.leasts[name] = size.isBound() ? IndexExpr(1) : result.least(size.getDefinition());
    if (given)
      result.classes[name] = own              ? IndexExpr(own.getInt())
                             : size.isBound() ? IndexExpr(plannedExtent)
                                              : result.expected(size.getDefinition());
  }
  return result;
}

int64_t Invariance::classOf(int64_t extent) {
  constexpr uint64_t fewest = 16, most = 4096;
  return std::clamp(llvm::PowerOf2Ceil(std::max<int64_t>(extent, 1)), fewest, most);
}

bool Invariance::mayDecide(const IndexExpr &expr) const {
  return llvm::all_of(expr.variables(), [&](const IndexVar &var) {
    return !var.isSymbol() || mayDecide(var.name());
  });
}

/// Sizes that `values` has are what it says.
static IndexExpr substituteSizes(const IndexExpr &expr, const llvm::StringMap<IndexExpr> &values) {
  return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    auto found = var.isSymbol() ? values.find(var.name()) : values.end();
    return found == values.end() ? std::nullopt : std::optional(found->second);
  });
}

IndexExpr Invariance::planned(const IndexExpr &expr) const { return substituteSizes(expr, plans); }

ValueExpr Invariance::planned(const ValueExpr &expr) const {
  return ValueExpr(planned(expr.expr()), expr.operands());
}

IndexExpr Invariance::expected(const IndexExpr &expr) const {
  return substituteSizes(expr, hasClasses() ? classes : plans);
}

IndexExpr Invariance::least(const IndexExpr &expr) const { return substituteSizes(expr, leasts); }

/// The product of the axes' extents, with sizes as `replace` has them.
static std::optional<int64_t> pointsOf(AxesOp op, ArrayRef<unsigned> axes,
                                       IndexExpr (Invariance::*replace)(const IndexExpr &) const) {
  Invariance invariance = Invariance::of(op);
  int64_t points = 1;
  for (unsigned axis : axes) {
    AxisRange range = getAxisRange(op, axis);
    ValueExpr size = range.hi - range.lo;
    std::optional<int64_t> extent =
        ValueExpr((invariance.*replace)(size.expr()), size.operands()).asConstant();
    if (!extent || llvm::MulOverflow(points, std::max<int64_t>(*extent, 0), points))
      return std::nullopt;
  }
  return points;
}

std::optional<int64_t> tgl::plannedPoints(AxesOp op, ArrayRef<unsigned> axes) {
  return pointsOf(op, axes, &Invariance::planned);
}

std::optional<int64_t> tgl::plannedPoints(AxesOp op) {
  return plannedPoints(op, llvm::to_vector(llvm::seq<unsigned>(0, op.getAxes().size())));
}

std::optional<int64_t> tgl::expectedPoints(AxesOp op, ArrayRef<unsigned> axes) {
  return pointsOf(op, axes, &Invariance::expected);
}

std::optional<int64_t> tgl::leastPoints(AxesOp op, ArrayRef<unsigned> axes) {
  return pointsOf(op, axes, &Invariance::least);
}
