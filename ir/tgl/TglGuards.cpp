//===- TglGuards.cpp - Sizes and guards of a tgl.kernel -------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/tgl/Tgl.h"
#include "symbolic/Guards.h"

using namespace tegula;

static GuardSpec::Kind kindOf(tgl::GuardKind kind) {
  switch (kind) {
  case tgl::GuardKind::NonNegative:
    return GuardSpec::NonNegative;
  case tgl::GuardKind::Zero:
    return GuardSpec::Zero;
  case tgl::GuardKind::NonZero:
    return GuardSpec::NonZero;
  case tgl::GuardKind::Divides:
    return GuardSpec::Divides;
  case tgl::GuardKind::InBounds:
    return GuardSpec::InBounds;
  }
  llvm_unreachable("a guard of no kind");
}

void tegula::launchSpecs(tgl::KernelOp kernel, std::vector<SizeSpec> &sizes,
                         std::vector<GuardSpec> &guards) {
  for (mlir::Attribute attr : kernel.getSizeAttrs()) {
    auto size = mlir::cast<tgl::SizeAttr>(attr);
    SizeSpec spec;
    spec.name = size.getName().str();
    if (size.isBound())
      spec.boundBy = std::pair(unsigned(size.getArgument()), unsigned(size.getDimension()));
    else
      spec.definition = size.getDefinition();
    sizes.push_back(std::move(spec));
  }
  for (mlir::Attribute attr : kernel.getGuardAttrs()) {
    auto guard = mlir::cast<tgl::GuardAttr>(attr);
    GuardSpec spec;
    spec.kind = kindOf(guard.getKind());
    spec.lhs = guard.getLhs();
    spec.rhs = guard.getRhs();
    for (tgl::IndexExprAttr low : guard.getLows())
      spec.lows.push_back(low.getExpr());
    for (tgl::IndexExprAttr high : guard.getHighs())
      spec.highs.push_back(high.getExpr());
    for (tgl::IndexExprAttr condition : guard.getConditions())
      spec.conditions.push_back(condition.getExpr());
    spec.message = guard.getMessage().str();
    guards.push_back(std::move(spec));
  }
}
