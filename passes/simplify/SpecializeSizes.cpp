//===- SpecializeSizes.cpp - Sizes that are known become constants -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/Invariance.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SPECIALIZESIZESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {
struct SpecializeSizesPass : Counted<tegula::impl::SpecializeSizesPassBase<SpecializeSizesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    Invariance invariance = Invariance::of(kernel);
    llvm::StringMap<int64_t> known;
    for (const std::string &text : sizes) {
      auto [name, number] = StringRef(text).split('=');
      int64_t value;
      if (name.empty() || number.getAsInteger(10, value)) {
        kernel.emitError() << "expected NAME=NUMBER, got '" << text << "'";
        return signalPassFailure();
      }
      if (invariance.mayDecide(name))
        known[name] = value;
    }
    if (known.empty())
      return markAllAnalysesPreserved();

    auto specialize = [&](const IndexExpr &expr) {
      return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
        auto found = var.isSymbol() ? known.find(var.name()) : known.end();
        return found == known.end() ? std::nullopt : std::optional<IndexExpr>(found->second);
      });
    };
    // Derived sizes follow from those before them.
    for (Attribute attr : kernel.getSizeAttrs())
      if (auto size = cast<SizeAttr>(attr); !size.isBound())
        if (std::optional<int64_t> value = specialize(size.getDefinition()).asConstant())
          known.try_emplace(size.getName(), *value);

    AttrTypeReplacer replacer;
    replacer.addReplacement([&](IndexExprAttr attr) -> std::optional<Attribute> {
      IndexExpr expr = specialize(attr.getExpr());
      if (expr == attr.getExpr())
        return std::nullopt;
      count("expressions made simpler");
      return IndexExprAttr::get(&getContext(), expr);
    });
    // The kernel's own attributes, its sizes and guards, are about launches and stay as they are.
    for (BlockArgument argument : kernel.getBody().getArguments())
      argument.setType(replacer.replace(argument.getType()));
    kernel.setFunctionType(cast<FunctionType>(replacer.replace(Type(kernel.getFunctionType()))));
    kernel.getBody().walk([&](Operation *op) {
      replacer.replaceElementsIn(op, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                 /*replaceTypes=*/true);
      if (auto indexed = dyn_cast<IndexedOp>(op)) // operands that no expression uses any more
        rewriteExprs(indexed, [](const ValueExpr &expr) { return expr; });
    });
  }
};
} // namespace
