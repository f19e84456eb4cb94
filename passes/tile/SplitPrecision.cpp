//===- SplitPrecision.cpp - Products of f32 by terms of TF32 ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/tile/TilePasses.h"

using namespace mlir;
using namespace tegula;

namespace tegula {
#define GEN_PASS_DEF_SPLITPRECISIONPASS
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

/// The sum of the step's products alone, by terms, then added to the sum of the steps before.
static void split(tile::DotOp dot) {
  OpBuilder builder(dot);
  Location loc = dot.getLoc();
  auto a = dot.getA().getDefiningOp<tile::OperandOp>(),
       b = dot.getB().getDefiningOp<tile::OperandOp>();
  Value zero = tile::ZeroOp::create(builder, loc, dot.getType());
  Value step = tile::DotOp::create(builder, loc, a, b, zero, /*split=*/true);
  auto sum = tile::MapOp::create(builder, loc, dot.getType(),
                                 ValueRange{a.getSpans()[0], b.getSpans()[0]}, {dot.getC(), step});
  builder.setInsertionPointToStart(&sum.getBody().front());
  ValueRange parts = sum.getBody().getArguments().take_back(2);
  Value added = arith::AddFOp::create(builder, loc, parts[0], parts[1]);
  tile::YieldOp::create(builder, loc, added);
  dot.replaceAllUsesWith(sum.getResult());
  dot.erase();
}

namespace {
struct SplitPrecisionPass : Counted<tegula::impl::SplitPrecisionPassBase<SplitPrecisionPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    SmallVector<tile::DotOp> products;
    getOperation().walk([&](tile::DotOp dot) {
      if (dot.getA().getType().getElementType().isF32() && !dot.getSplit() &&
          dot.getA().getDefiningOp<tile::OperandOp>() &&
          dot.getB().getDefiningOp<tile::OperandOp>())
        products.push_back(dot);
    });
    for (tile::DotOp dot : products)
      split(dot);
    count("products split", products.size());
  }
};
} // namespace
