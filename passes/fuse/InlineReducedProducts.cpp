//===- InlineReducedProducts.cpp - Products computed where they are reduced -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Outline.h"
#include "strategies/product_reduction/plan/ProductReduction.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_INLINEREDUCEDPRODUCTSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// A place that something else reads is another product of its own: at most one of so many.
static constexpr int64_t columnsOfOtherRead = 16;

namespace {
/// A statement that stores a product, or what is computed of it, in a temporary of f32, and who
/// reads it.
struct StoredProduct {
  ParallelOp statement;
  TempOp temp;
  WriteOp write;
  SmallVector<ReduceOp> reduces; ///< over its columns
  SmallVector<ReadOp> others;    ///< reads outside of them, of a product alone

  bool isPlain() const { return isa<ReduceOp>(WriteOp(write).getValue().getDefiningOp()); }
};
} // namespace

/// Points at which the op runs; nothing where data or sizes decide.
static std::optional<int64_t> pointsAround(Operation *op) {
  int64_t points = 1;
  for (Operation *around = op->getParentOp(); !isa<KernelOp>(around);
       around = around->getParentOp()) {
    auto axes = dyn_cast<AxesOp>(around);
    std::optional<int64_t> own = axes ? knownPoints(axes) : std::nullopt;
    if (!own || llvm::MulOverflow(points, *own, points))
      return std::nullopt;
  }
  return points;
}

/// Whether the element that is read is as the statement wrote it, not one that may not exist.
static bool isPlain(ReadOp read) {
  return !read.getFill() && !read.getGuard() && read.getExactExprs().empty();
}

/// The statement's write, where it stores what it computes of one sum at each point, in the order
/// of its axes.
static WriteOp writeOfProduct(ParallelOp statement) {
  WriteOp write;
  ReduceOp sum;
  for (Operation &op : statement.getBody().front()) {
    if (auto one = dyn_cast<WriteOp>(op)) {
      if (write || one.getCombine() || one.getGuard() || one.getChecked())
        return {};
      write = one;
    } else if (auto one = dyn_cast<ReduceOp>(op); one && !sum) {
      sum = one;
    } else if (op.getNumRegions()) {
      return {};
    }
  }
  if (!write || !write.getValue().getDefiningOp() || !sum || sum.getKind() != ReduceKind::Sum ||
      !sum.getType().isF32())
    return {};
  SmallVector<ValueExpr> subscripts = write.getSubscriptExprs();
  if (subscripts.size() != statement.getAxes().size())
    return {};
  for (auto [subscript, axis] : llvm::zip_equal(subscripts, statement.getAxes()))
    if ((subscript - ValueExpr(Value(axis))).asConstant() != 0)
      return {};
  return write;
}

/// Whether nothing behind the statement changes what it reads.
static bool staysComputable(ParallelOp statement) {
  llvm::SetVector<Value> reads = accessesOf(statement).reads;
  for (Operation *after = statement->getNextNode(); after; after = after->getNextNode())
    for (Value tensor : accessesOf(after).writes)
      if (reads.contains(tensor))
        return false;
  return true;
}

/// The axes of the product that data chooses a point of, where the read is checked.
static SmallVector<BlockArgument> axesChosenByData(ReadOp read, ParallelOp statement) {
  SmallVector<BlockArgument> chosen;
  if (read.getChecked())
    for (auto [axis, subscript] : llvm::zip_equal(statement.getAxes(), read.getSubscriptExprs()))
      if (llvm::any_of(subscript.operands(), [](Value value) { return value.getDefiningOp(); }))
        chosen.push_back(axis);
  return chosen;
}

/// Whether reads of factors, checked, report what the read of the product does: each axis that data
/// chooses a point of subscripts a factor that every sum reads, in a dim that is as long.
static bool canCheckFactors(ReadOp read, ParallelOp statement, ReduceOp sum) {
  std::optional<int64_t> terms = knownPoints(cast<AxesOp>(sum.getOperation()));
  auto factors = sum.getBody().getOps<ReadOp>();
  return llvm::all_of(axesChosenByData(read, statement), [&](BlockArgument axis) {
    IndexExprAttr length = read.getTensorType().getDims()[axis.getArgNumber()];
    return terms && *terms > 0 && !sum.getFilter() && llvm::any_of(factors, [&](ReadOp factor) {
             return isPlain(factor) &&
                    llvm::any_of(llvm::zip_equal(factor.getSubscriptExprs(),
                                                 factor.getTensorType().getDims()),
                                 [&](auto place) {
                                   auto [subscript, dim] = place;
                                   return subscript.asValue() == axis && dim == length;
                                 });
           });
  });
}

/// Whether the reduction takes the read's value over columns, in a statement of its own axes. Of
/// sums tgl-sum-before-product makes fewer products.
static bool reducesColumns(ReduceOp reduce) {
  return reduce && isa<ParallelOp>(reduce->getParentOp()) &&
         llvm::is_contained({ReduceKind::LogSumExp, ReduceKind::Max, ReduceKind::Min,
                             ReduceKind::ArgMax, ReduceKind::ArgMin},
                            reduce.getKind());
}

static std::optional<StoredProduct> matchStored(ParallelOp statement) {
  StoredProduct product;
  product.statement = statement;
  product.write = writeOfProduct(statement);
  if (!product.write)
    return std::nullopt;
  product.temp = product.write.getTensor().getDefiningOp<TempOp>();
  if (!product.temp || !product.write.getTensorType().getElementType().isF32())
    return std::nullopt;
  std::optional<int64_t> points = knownPoints(cast<AxesOp>(statement.getOperation()));
  for (Operation *user : product.temp.getTensor().getUsers()) {
    if (user == product.write)
      continue;
    auto read = dyn_cast<ReadOp>(user);
    if (!read || !isPlain(read) || !points)
      return std::nullopt;
    auto reduce = dyn_cast<ReduceOp>(read->getParentOp());
    if (reducesColumns(reduce) && !read.getChecked() &&
        !llvm::is_contained(product.reduces, reduce)) {
      product.reduces.push_back(reduce);
      continue;
    }
    std::optional<int64_t> others = pointsAround(read);
    if (!others || *others > *points / columnsOfOtherRead || !product.isPlain() ||
        !canCheckFactors(read, statement, product.write.getValue().getDefiningOp<ReduceOp>()))
      return std::nullopt;
    product.others.push_back(read);
  }
  if (product.reduces.empty() || !staysComputable(statement))
    return std::nullopt;
  return product;
}

/// Computes the element where it is read; the value. A subscript that data chooses is
/// checked where the factors are read.
static Value inlineAt(ReadOp read, const StoredProduct &product) {
  OpBuilder builder(read);
  IRMapping map;
  ParallelOp statement = product.statement;
  for (auto [axis, subscript] : llvm::zip_equal(statement.getAxes(), read.getSubscriptExprs()))
    map.map(axis, materialize(builder, read.getLoc(), subscript));
  SmallVector<Value> chosen;
  for (BlockArgument axis : axesChosenByData(read, statement))
    chosen.push_back(map.lookup(axis));
  for (Operation &op : statement.getBody().front()) {
    if (isa<WriteOp>(op))
      continue;
    Operation *copy = builder.clone(op, map);
    if (std::optional<StringRef> checked = read.getChecked())
      copy->walk([&](ReadOp factor) {
        if (llvm::any_of(factor.getIndices(),
                         [&](Value index) { return llvm::is_contained(chosen, index); }))
          factor.setChecked(*checked);
      });
  }
  WriteOp write = product.write;
  Value value = map.lookup(write.getValue());
  read.replaceAllUsesWith(value);
  read.erase();
  return value;
}

/// Whether the op stands in a `parallel` of the block's own.
static bool isStatementOf(Operation *op, Operation *kernel) {
  while (op && op->getParentOp() != kernel)
    op = op->getParentOp();
  return isa_and_nonnull<ParallelOp>(op);
}

static void cleanUp(ParallelOp statement) {
  statement.walk([](IndexedOp op) { foldIndices(op); });
  statement.walk([](Block *block) { eraseUnusedOps(*block); });
}

namespace {
struct InlineReducedProductsPass
    : Counted<tegula::impl::InlineReducedProductsPassBase<InlineReducedProductsPass>> {
  using Base = Counted<tegula::impl::InlineReducedProductsPassBase<InlineReducedProductsPass>>;
  using Base::Base;

  void runOnOperation() override {
    FailureOr<TargetInfo> machine = parseTarget(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    Prover prover(sizeFacts(getOperation()));
    while (inlineOne(*machine, prover))
      count("products inlined");
  }

  bool inlineOne(const TargetInfo &machine, Prover &prover) {
    SmallVector<ParallelOp> statements(getOperation().getBody().getOps<ParallelOp>());
    return llvm::any_of(statements, [&](ParallelOp statement) {
      std::optional<StoredProduct> product = matchStored(statement);
      return product && inlineProduct(*product, machine, prover);
    });
  }

  /// A sum that something else reads gets a statement over its own axes, whose points are summed by
  /// teams.
  static void inlineOther(ReadOp read, const StoredProduct &product, Prover &prover) {
    Operation *place = read;
    while (place->getParentOp() != ParallelOp(product.statement)->getParentOp())
      place = place->getParentOp();
    auto sum = inlineAt(read, product).getDefiningOp<ReduceOp>();
    cleanUp(cast<ParallelOp>(place));
    std::optional<Outline> where = outlineTo(place, sum, valuesUsedBy(sum).getArrayRef());
    if (where)
      storeOutlined(sum, *where, "term", prover, /*tileSize=*/64);
    cleanUp(cast<ParallelOp>(place));
  }

  bool inlineProduct(StoredProduct &product, const TargetInfo &machine, Prover &prover) {
    llvm::SetVector<Operation *> users;
    for (ReduceOp reduce : product.reduces)
      users.insert(reduce->getParentOp());
    Operation *block = product.statement->getParentOp();
    if (!llvm::all_of(users, [&](Operation *user) { return user->getParentOp() == block; }) ||
        !llvm::all_of(product.others, [&](ReadOp read) { return isStatementOf(read, block); }))
      return false;
    // Copies, which stay where the strategy can reduce the product in all of them.
    SmallVector<ParallelOp> copies;
    bool pays = true;
    for (Operation *user : users) {
      auto copy = cast<ParallelOp>(OpBuilder(user).clone(*user));
      copies.push_back(copy);
      SmallVector<ReadOp> reads;
      copy.walk([&](ReadOp read) {
        if (read.getTensor() == product.temp.getTensor())
          reads.push_back(read);
      });
      for (ReadOp read : reads)
        inlineAt(read, product);
      cleanUp(copy);
      Matched<ProductReductionPlan> plan = planProductReduction(copy);
      pays &= plan && beatsStoredProduct(*plan, machine, tensorTile);
    }
    if (!pays) {
      for (ParallelOp copy : copies)
        copy.erase();
      return false;
    }
    for (ReadOp read : product.others)
      if (llvm::none_of(users, [&](Operation *user) { return user->isAncestor(read); }))
        inlineOther(read, product, prover);
    for (Operation *user : users)
      user->erase();
    product.statement.erase();
    product.temp.erase();
    return true;
  }
};
} // namespace
