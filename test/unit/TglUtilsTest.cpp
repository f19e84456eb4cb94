//===- TglUtilsTest.cpp - Expressions over values, axes, contractions -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "ir/tgl/Runs.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace {
class TglUtils : public ::testing::Test {
protected:
  TglUtils() : builder(&context) { context.loadDialect<TglDialect>(); }

  /// Parses the body of a private kernel over x, y: [M, N] f32 and t: [N] f32.
  Block &parse(llvm::StringRef body) {
    std::string text = R"(
      tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                            %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"},
                            %t: !tgl.tensor<[N], f32> {tgl.name = "t", tgl.role = "inout"}) {
      )" + body.str() + "}";
    module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    EXPECT_TRUE(bool(module)) << text;
    return (*module->getOps<KernelOp>().begin()).getBody().front();
  }

  template <typename Op> Op find(unsigned n = 0) {
    Op found;
    module->walk<WalkOrder::PreOrder>([&](Op op) {
      if (n-- == 0)
        found = op;
    });
    EXPECT_TRUE(bool(found));
    return found;
  }

  /// The op's first line in the kernel, and that all still verifies.
  std::string printed(Operation *op) {
    EXPECT_TRUE(succeeded(mlir::verify(*module)));
    std::string text;
    llvm::raw_string_ostream os(text);
    AsmState state(module->getOperation());
    op->print(os, state);
    return llvm::StringRef(text).split('\n').first.str();
  }

  std::string names(const AxisSet &axes) {
    std::string text;
    for (BlockArgument axis : axes) {
      Operation *op = axis.getOwner()->getParentOp();
      if (auto of = dyn_cast<AxesOp>(op))
        text += getAxisName(of, axis.getArgNumber());
      else
        text += "loop";
      text += ' ';
    }
    return text;
  }

  MLIRContext context;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
};

TEST_F(TglUtils, ValueExprsCombine) {
  parse("tgl.parallel (%i = 0 to M, %j = 0 to N) { }");
  auto op = find<ParallelOp>();
  Value i = op.getBody().getArgument(0), j = op.getBody().getArgument(1);
  ValueExpr sum = ValueExpr(i) + ValueExpr(j) * 2 + IndexExpr::symbol("M");
  EXPECT_EQ(sum.operands().size(), 2u);
  EXPECT_EQ(sum, ValueExpr(IndexExpr::symbol("M")) + j + i + j);
  // What cancels is no operand.
  EXPECT_EQ((sum - i).operands().size(), 1u);
  EXPECT_EQ((ValueExpr(i) - i).asConstant(), 0);
  EXPECT_EQ((ValueExpr(i) + 0).asValue(), i);
  EXPECT_FALSE((ValueExpr(i) + 1).asValue());
  // Simultaneous: i and j change places.
  ValueExpr swapped = (ValueExpr(i) + ValueExpr(j) * 2).substitute([&](Value v) {
    return std::optional<ValueExpr>(v == i ? j : i);
  });
  EXPECT_EQ(swapped, ValueExpr(j) + ValueExpr(i) * 2);
  EXPECT_EQ(ValueExpr::floorDiv(ValueExpr(i) * 4 + 3, 4), ValueExpr(i));
  EXPECT_EQ(ValueExpr::min(i, ValueExpr(i) + 1), ValueExpr(i));
  // One value given twice is one operand.
  EXPECT_EQ(ValueExpr(IndexExpr::dim(0) * IndexExpr::dim(1), ValueRange{i, i}),
            ValueExpr(i) * ValueExpr(i));
  EXPECT_EQ((ValueExpr(i) + IndexExpr::symbol("M")).substituteSizes([](llvm::StringRef) {
    return std::optional(IndexExpr(7));
  }),
            ValueExpr(i) + 7);
}

TEST_F(TglUtils, IndexOpsAreLookedThrough) {
  Block &body = parse(R"(
    tgl.parallel (%i = 0 to M) {
      %two = arith.constant 2 : index
      %a = tgl.index %i + %two
      %b = tgl.index 3*%a - N
      %c = arith.index_cast %b : index to i64
      %d = arith.index_cast %c : i64 to index
      tgl.parallel (%j = 0 to %d) { }
    })");
  (void)body;
  auto outer = find<ParallelOp>();
  auto inner = find<ParallelOp>(1);
  ValueExpr bound = getAxisRange(cast<AxesOp>(inner.getOperation()), 0).hi;
  ValueExpr seen = getValueExpr(bound.asValue());
  EXPECT_EQ(seen, ValueExpr(outer.getBody().getArgument(0)) * 3 + 6 - IndexExpr::symbol("N"));
  builder.setInsertionPoint(inner);
  Value made = materialize(builder, inner.getLoc(), seen);
  EXPECT_EQ(printed(made.getDefiningOp()).substr(5), "tgl.index 3*%i - N + 6");
  EXPECT_EQ(materialize(builder, inner.getLoc(), outer.getBody().getArgument(0)),
            outer.getBody().getArgument(0));
}

TEST_F(TglUtils, RunsAreNeighboursThatShareAValue) {
  parse(R"(
    tgl.parallel (%i = 0 to M, %j = 0 to N) {
      %a = tgl.read %t[%j floordiv 8] : !tgl.tensor<[N], f32>
      %b = tgl.read %t[%j floordiv 32] : !tgl.tensor<[N], f32>
      %c = arith.addf %a, %b : f32
      %d = tgl.index 4*%j - 8*(%j floordiv 2)
      %e = tgl.read %t[%d] : !tgl.tensor<[N], f32>
      tgl.write %c, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
    })");
  auto nest = find<ParallelOp>();
  BlockArgument i = nest.getAxes()[0], j = nest.getAxes()[1];
  constexpr int64_t most = 64;
  auto run = [&](const ValueExpr &expr) { return runAlong(expr, j, most); };
  auto over = [](const ValueExpr &expr, int64_t by) { return ValueExpr::floorDiv(expr, by); };
  EXPECT_EQ(run(ValueExpr(i)), most);
  EXPECT_EQ(run(ValueExpr(j)), 1);
  EXPECT_EQ(run(over(j, 2)), 2);
  EXPECT_EQ(run(over(j, 128)), most);
  EXPECT_EQ(run(over(j, 96)), 32);
  EXPECT_EQ(run(over(ValueExpr(j) * 4, 32)), 8);
  EXPECT_EQ(run(over(j, 6)), 2);
  EXPECT_EQ(run(over(j, 3)), 1);
  EXPECT_EQ(run(over(ValueExpr(j) + 1, 4)), 1);
  EXPECT_EQ(run(over(ValueExpr(j) + ValueExpr(i) * 8, 8)), 8);
  EXPECT_EQ(run(over(ValueExpr(j) + ValueExpr(i) * 2, 8)), 2);
  EXPECT_EQ(run(ValueExpr::mod(j, 4)), 1);
  EXPECT_EQ(run(over(j, 4) + over(j, 16)), 4);
  // Through what values are computed from.
  Runs along(j, most), across(i, most);
  EXPECT_EQ(along.of(find<ReadOp>(0).getResult()), 8);
  EXPECT_EQ(along.of(find<ReadOp>(1).getResult()), 32);
  EXPECT_EQ(along.of(find<arith::AddFOp>().getResult()), 8);
  EXPECT_EQ(along.of(find<ReadOp>(2).getResult()), 1);
  EXPECT_EQ(across.of(find<ReadOp>(2).getResult()), most);
}

TEST_F(TglUtils, RangesSpeakOfValues) {
  parse(R"(
    tgl.parallel (%i = 0 to M, %j = %i to %i + N) {
      tgl.parallel (%k = %j to N, %l = %i + %k to M) { }
    })");
  auto outer = cast<AxesOp>(find<ParallelOp>().getOperation());
  auto inner = cast<AxesOp>(find<ParallelOp>(1).getOperation());
  Value i = outer.getAxes()[0], j = outer.getAxes()[1], k = inner.getAxes()[0];
  EXPECT_EQ(getAxisRange(outer, 1).lo, ValueExpr(i));
  EXPECT_EQ(getAxisRange(inner, 0).lo, ValueExpr(j));
  EXPECT_EQ(getRange(inner.getAxes()[1])->lo, ValueExpr(i) + k);
  // New bounds, with fewer and other operands; the others keep their meaning.
  setAxisRange(inner, 0, 0, ValueExpr(i) + 1);
  EXPECT_EQ(printed(inner), "tgl.parallel (%k = 0 to %i + 1, %l = %i + %k to M) {");
  setAxisRange(inner, 1, ValueExpr(k) * ValueExpr(k), ValueExpr(j));
  EXPECT_EQ(printed(inner), "tgl.parallel (%k = 0 to %i + 1, %l = %k*%k to %j) {");
}

TEST_F(TglUtils, AxesComeAndGo) {
  parse(R"(
    tgl.parallel (%i = 0 to M) {
      %s = tgl.scan cumsum (%k = 0 to %i + 1) at [%i] -> f32 {
        %v = tgl.read %t[%k] : !tgl.tensor<[N], f32>
        tgl.yield %v : f32
      }
      tgl.parallel (%a = 0 to N, %b = %a to %i) {
        %v = tgl.read %x[%i, %b] : !tgl.tensor<[M, N], f32>
      }
    })");
  auto outer = cast<AxesOp>(find<ParallelOp>().getOperation());
  auto inner = cast<AxesOp>(find<ParallelOp>(1).getOperation());
  BlockArgument c = insertAxis(outer, 1, {"c", 0, ValueExpr(outer.getAxes()[0])});
  EXPECT_EQ(c.getArgNumber(), 1u);
  EXPECT_EQ(printed(outer), "tgl.parallel (%i = 0 to M, %c = 0 to %i) {");
  EXPECT_EQ(printed(find<ScanOp>()).substr(5),
            "tgl.scan cumsum (%k = 0 to %i + 1) at [%i] -> f32 {");
  // %b must not use %a any more before %a can go.
  setAxisRange(inner, 1, c, ValueExpr(outer.getAxes()[0]));
  eraseAxis(inner, 0);
  EXPECT_EQ(printed(inner), "tgl.parallel (%b = %c to %i) {");
  EXPECT_EQ(printed(find<ReadOp>(1)).substr(5), "tgl.read %x[%i, %b] : !tgl.tensor<[M, N], f32>");
  insertAxis(inner, 0, {"", 1, 2});
  EXPECT_EQ(getAxisName(inner, 0), "");
  EXPECT_EQ(getAxisName(inner, 1), "b");
  EXPECT_TRUE(succeeded(mlir::verify(*module)));
}

TEST_F(TglUtils, UsesAreReplacedByExpressions) {
  parse(R"(
    tgl.parallel (%i = 0 to M, %j = %i to N) {
      %v = tgl.read %x[%i, %j + %i] : !tgl.tensor<[M, N], f32>
      %k = arith.index_cast %j : index to i64
      tgl.parallel (%l = %j to 2*%j) { }
    })");
  auto outer = cast<AxesOp>(find<ParallelOp>().getOperation());
  Value i = outer.getAxes()[0], j = outer.getAxes()[1];
  replaceAllUsesWithExpr(builder, j, ValueExpr(i) * 3 + 1);
  EXPECT_TRUE(j.use_empty());
  EXPECT_EQ(printed(find<ReadOp>()).substr(5),
            "tgl.read %x[%i, 4*%i + 1] : !tgl.tensor<[M, N], f32>");
  EXPECT_EQ(printed(find<ParallelOp>(1)), "tgl.parallel (%l = 3*%i + 1 to 6*%i + 2) {");
  EXPECT_EQ(getValueExpr(find<arith::IndexCastOp>().getIn()), ValueExpr(i) * 3 + 1);
}

TEST_F(TglUtils, ValuesKnowWhatTheyVaryAlong) {
  parse(R"(
    %zero = arith.constant 0.0 : f32
    tgl.parallel (%i = 0 to M, %j = 0 to N) {
      %a = tgl.read %t[%j] : !tgl.tensor<[N], f32>
      %s = tgl.reduce sum (%k = 0 to %i) -> f32 {
        %b = tgl.read %x[0, %k] : !tgl.tensor<[M, N], f32>
        tgl.yield %b : f32
      }
      %p = tgl.reduce sum (%k = 0 to N) -> f32 {
        %b = tgl.read %x[0, %k] : !tgl.tensor<[M, N], f32>
        %c = arith.addf %b, %a : f32
        tgl.yield %c : f32
      }
      %h = tgl.temp "h" : !tgl.tensor<[], f32>
      %r = tgl.read %h[] : !tgl.tensor<[], f32>
      %l = tgl.for %t0 = 0 to N iter (%acc = %zero : f32) {
        %d = arith.addf %acc, %s : f32
        tgl.yield %d : f32
      }
    })");
  auto resultOf = [&](Operation *op) { return op->getResult(0); };
  EXPECT_EQ(names(axesOf(resultOf(find<ReadOp>()))), "j ");
  EXPECT_EQ(names(axesOf(resultOf(find<ReduceOp>()))), "i ");
  EXPECT_EQ(names(axesOf(resultOf(find<ReduceOp>(1)))), "j ");
  EXPECT_EQ(names(axesOf(find<ReduceOp>(1).getReduced())), "k j ");
  EXPECT_EQ(names(axesOf(resultOf(find<ReadOp>(3)))), "i j ");
  auto loop = find<ForOp>();
  EXPECT_EQ(names(axesOf(loop.getIterArgs()[0])), "loop i ");
  EXPECT_EQ(names(axesOf(resultOf(loop))), "i ");
  EXPECT_EQ(names(axesUsedBy(find<ParallelOp>())), "");
  EXPECT_TRUE(isPrivate(find<TempOp>()));
}

TEST_F(TglUtils, AccessesOfOps) {
  Block &body = parse(R"(
    %h = tgl.temp "h" : !tgl.tensor<[N], f32>
    tgl.parallel (%j = 0 to N) {
      %a = tgl.read %x[0, %j] : !tgl.tensor<[M, N], f32>
      tgl.write %a, %h[%j] : f32, !tgl.tensor<[N], f32>
      tgl.write add %a, %t[%j] : f32, !tgl.tensor<[N], f32>
    })");
  Accesses accesses = accessesOf(find<ParallelOp>());
  Value x = body.getArgument(0), t = body.getArgument(2), h = find<TempOp>().getTensor();
  EXPECT_EQ(accesses.reads.getArrayRef(), llvm::ArrayRef<Value>({x, t}));
  EXPECT_EQ(accesses.writes.getArrayRef(), llvm::ArrayRef<Value>({h, t}));
}

TEST_F(TglUtils, ContractionsAreSumsOfProducts) {
  parse(R"(
    tgl.parallel (%i = 0 to M, %j = 0 to M) {
      %s = tgl.reduce sum (%k = 0 to N) -> f32 {
        %a = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
        %b = tgl.read %x[%j, %k] : !tgl.tensor<[M, N], f32>
        %c = tgl.read %t[%k] : !tgl.tensor<[N], f32>
        %bc = math.exp %b : f32
        %d = arith.mulf %a, %bc : f32
        %e = arith.mulf %d, %c : f32
        tgl.yield %e : f32
      }
      %p = tgl.reduce sum (%k = 0 to N) -> f32 {
        %a = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
        %d = arith.mulf %a, %s : f32
        tgl.yield %d : f32
      }
      %q = tgl.reduce max (%k = 0 to N) -> f32 {
        %a = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
        %d = arith.mulf %a, %a : f32
        tgl.yield %d : f32
      }
    })");
  std::optional<Contraction> found = matchContraction(find<ReduceOp>());
  ASSERT_TRUE(found);
  ASSERT_EQ(found->factors.size(), 3u);
  EXPECT_EQ(names(found->factors[0].axes), "i k ");
  EXPECT_EQ(names(found->factors[1].axes), "j k ");
  EXPECT_TRUE(found->factors[1].value.getDefiningOp<math::ExpOp>());
  EXPECT_EQ(names(found->factors[2].axes), "k ");
  EXPECT_FALSE(matchContraction(find<ReduceOp>(1))); // one factor varies along k
  EXPECT_FALSE(matchContraction(find<ReduceOp>(2)));
}

TEST_F(TglUtils, BuildersMakeWhatTheParserReads) {
  Block &body = parse("");
  builder.setInsertionPointToEnd(&body);
  Location loc = builder.getUnknownLoc();
  IndexExpr m = IndexExpr::symbol("M"), n = IndexExpr::symbol("N");
  auto parallel = ParallelOp::create(builder, loc,
                                     llvm::ArrayRef<AxisSpec>{{"i", 0, m}, {"j", 0, n}}, "blocks");
  Value i = parallel.getBody().getArgument(0), j = parallel.getBody().getArgument(1);
  setAxisRange(cast<AxesOp>(parallel.getOperation()), 1, i, n);
  builder.setInsertionPointToEnd(&parallel.getBody().front());
  auto f32 = builder.getF32Type();
  Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
  auto reduce = ReduceOp::create(builder, loc, f32, ReduceKind::Sum,
                                 llvm::ArrayRef<AxisSpec>{{"k", 0, ValueExpr(j) + 1}});
  auto scan = ScanOp::create(builder, loc, f32, ScanKind::CumSum,
                             llvm::ArrayRef<AxisSpec>{{"l", 0, n}}, llvm::ArrayRef<ValueExpr>{j});
  auto loop = ForOp::create(builder, loc, llvm::ArrayRef<llvm::StringRef>{"r"}, 0, ValueExpr(i),
                            ValueRange{zero}, true);
  auto tiles = TilesOp::create(builder, loc, llvm::ArrayRef<llvm::StringRef>{"u", "acc"}, 0, n,
                               ValueRange{zero}, 4);
  WriteOp::create(builder, loc, tiles.getResult(0), body.getArgument(1),
                  llvm::ArrayRef<ValueExpr>{i, ValueExpr(j) - i});
  for (Region *region : {&reduce.getBody(), &scan.getBody(), &loop.getBody(), &tiles.getBody()}) {
    builder.setInsertionPointToEnd(&region->front());
    Value v =
        ReadOp::create(builder, loc, body.getArgument(0),
                       llvm::ArrayRef<ValueExpr>{i, ValueExpr::floorDiv(region->getArgument(0), 2)},
                       zero, Value(), {{region->getArgument(0), 2}});
    YieldOp::create(builder, loc, v);
  }
  ASSERT_TRUE(succeeded(mlir::verify(*module)));
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  EXPECT_NE(
      text.find("tgl.parallel (%i = 0 to M, %j = %i to N) attributes {mapping = \"blocks\"} {"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("tgl.reduce sum (%k = 0 to %j + 1) -> f32 {"), std::string::npos) << text;
  EXPECT_NE(text.find("tgl.scan cumsum (%l = 0 to N) at [%j] -> f32 {"), std::string::npos) << text;
  EXPECT_NE(text.find("tgl.for %r = 0 to %i reverse iter ("), std::string::npos) << text;
  EXPECT_NE(text.find("tgl.tiles (%u_lo, %u_hi) = 0 to N size 4 iter (%acc = "), std::string::npos)
      << text;
  EXPECT_NE(text.find("%x[%i, %r floordiv 2] exact (%r by 2) fill"), std::string::npos) << text;
  auto again = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  ASSERT_TRUE(bool(again));
  std::string second;
  llvm::raw_string_ostream os2(second);
  again->print(os2);
  EXPECT_EQ(text, second);
}

TEST_F(TglUtils, IndexOpFolds) {
  parse(R"(
    %two = arith.constant 2 : index
    %a = tgl.index %two*%two + 1
    %b = tgl.index M
    %c = tgl.index %b)");
  auto fold = [&](unsigned n) {
    llvm::SmallVector<OpFoldResult> results;
    llvm::SmallVector<Attribute> operands;
    IndexOp op = find<IndexOp>(n);
    for (Value operand : op.getIndices()) {
      auto constant = operand.getDefiningOp<arith::ConstantOp>();
      operands.push_back(constant ? constant.getValue() : Attribute());
    }
    EXPECT_EQ(succeeded(op->fold(operands, results)), n != 1);
    return results.empty() ? OpFoldResult() : results[0];
  };
  EXPECT_EQ(cast<IntegerAttr>(cast<Attribute>(fold(0))).getInt(), 5);
  fold(1);
  EXPECT_EQ(cast<Value>(fold(2)), find<IndexOp>(1).getResult());
}
} // namespace
