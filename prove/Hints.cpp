//===- Hints.cpp - What programs say of the data that tell them apart ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Draw.h"
#include "prove/EvaluateImpl.h"
#include "symbolic/Guards.h"
#include <cmath>

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;

/// Whether subscripts or ranges of an operation depend on one of the values.
static bool leadsTo(Operation *op, const ValueSet &values) {
  auto any = [&](ValueRange indices) {
    return llvm::any_of(indices, [&](Value value) { return values.contains(value); });
  };
  if (auto read = dyn_cast<tgl::ReadOp>(op))
    return any(read.getIndices());
  if (auto write = dyn_cast<tgl::WriteOp>(op))
    return any(write.getIndices());
  if (auto loop = dyn_cast<tgl::ForOp>(op))
    return any(loop.getIndices());
  if (auto loop = dyn_cast<tgl::TilesOp>(op))
    return any(loop.getIndices());
  if (auto axes = dyn_cast<tgl::AxesOp>(op))
    return any(axes.getIndices());
  return false;
}

static void addConstant(Hints &hints, arith::ConstantOp constant) {
  constexpr double farFrom = 100, farthest = 1e30;
  if (auto integer = dyn_cast<IntegerAttr>(constant.getValue())) {
    if (integer.getValue().getBitWidth() > 1)
      hints.integers.push_back(integer.getValue().getSExtValue());
    return;
  }
  auto number = dyn_cast<FloatAttr>(constant.getValue());
  double value = number ? number.getValueAsDouble() : 0;
  if (!std::isfinite(value) || std::fabs(value) > farthest)
    return;
  auto &list = std::fabs(value) > farFrom ? hints.farConstants : hints.constants;
  list.push_back({value, number && number.getType().isF64()});
}

template <typename T, typename Less> static void makeUnique(std::vector<T> &list, Less isLess) {
  llvm::sort(list, isLess);
  list.erase(
      std::unique(list.begin(), list.end(), [&](const T &a, const T &b) { return !isLess(a, b); }),
      list.end());
}

/// Constants in an expression; those outside of min, max and comparisons where `takesAll`.
static void addBorders(const IndexExpr &expr, bool takesAll, std::set<int64_t> &borders) {
  for (const IndexExpr::Term &term : expr.terms()) {
    if (term.factors.empty() && takesAll)
      borders.insert(std::abs(term.coefficient));
    for (const auto &[atom, power] : term.factors) {
      bool compares = atom->kind == IndexExpr::AtomKind::Min ||
                      atom->kind == IndexExpr::AtomKind::Max ||
                      atom->kind == IndexExpr::AtomKind::Select;
      if (atom->kind != IndexExpr::AtomKind::Float)
        for (const IndexExpr &operand : atom->operands)
          addBorders(operand, takesAll || compares, borders);
    }
  }
}

/// The integer constants that a value is made of by casts and sums.
static void addBorders(Value value, const ValueSet &data, std::set<int64_t> &borders) {
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op)) {
    if (auto integer = dyn_cast<IntegerAttr>(constant.getValue()))
      borders.insert(std::abs(integer.getValue().getSExtValue()));
  } else if (auto index = dyn_cast_or_null<tgl::IndexOp>(op)) {
    addBorders(cast<tgl::IndexExprAttr>(index.getExpr()).getExpr(), true, borders);
  } else if (isa_and_nonnull<arith::IndexCastOp, arith::AddIOp, arith::SubIOp, arith::ExtSIOp,
                             arith::TruncIOp, tgl::ConvertOp>(op)) {
    for (Value operand : op->getOperands())
      addBorders(operand, data, borders);
  }
}

std::set<int64_t> tegula::prove::bordersOf(tgl::KernelOp kernel) {
  std::set<int64_t> borders;
  Coverage coverage;
  const ValueSet &data = coverage.dataOf(kernel);
  std::vector<SizeSpec> sizeSpecs;
  std::vector<GuardSpec> guardSpecs;
  launchSpecs(kernel, sizeSpecs, guardSpecs);
  for (const SizeSpec &spec : sizeSpecs)
    addBorders(spec.definition, false, borders);
  for (const GuardSpec &guard : guardSpecs)
    if (guard.kind == GuardSpec::NonNegative)
      addBorders(guard.lhs, true, borders);
  kernel->getParentOfType<ModuleOp>().walk([&](Operation *op) {
    op->getAttrDictionary().walk(
        [&](tgl::IndexExprAttr expr) { addBorders(expr.getExpr(), false, borders); });
    bool compares =
        isa<arith::CmpIOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp>(op);
    if (compares &&
        llvm::none_of(op->getOperands(), [&](Value value) { return data.contains(value); }))
      for (Value operand : op->getOperands())
        addBorders(operand, data, borders);
  });
  return borders;
}

Hints tegula::prove::hintsOf(llvm::ArrayRef<tgl::KernelOp> kernels) {
  Hints hints;
  for (tgl::KernelOp kernel : kernels) {
    if (!kernel)
      continue;
    auto module = kernel->getParentOfType<ModuleOp>();
    module.walk([&](arith::ConstantOp constant) { addConstant(hints, constant); });
    size_t read = 0;
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      if (kernel.getArgRole(i) == "out")
        continue;
      if (hints.leads.size() <= read)
        hints.leads.push_back(false);
      BlockArgument argument = kernel.getBody().getArgument(i);
      auto tensor = dyn_cast<tgl::TglTensorType>(argument.getType());
      if (!isa<FloatType>(tensor ? tensor.getElementType() : argument.getType())) {
        ValueSet values = spread(module, ValueSet{argument});
        module.walk([&](Operation *op) {
          if (leadsTo(op, values))
            hints.leads[read] = true;
        });
      }
      ++read;
    }
  }
  auto isLess = [](const Hints::Constant &a, const Hints::Constant &b) {
    return std::pair(a.value, a.isDouble) < std::pair(b.value, b.isDouble);
  };
  makeUnique(hints.constants, isLess);
  makeUnique(hints.farConstants, isLess);
  makeUnique(hints.integers, std::less<>());
  return hints;
}
