//===- RowRanges.cpp - Ranges of rows, as masks of one loop ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/RowRanges.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

std::optional<int64_t> tegula::pointsOfElements(const RowChain &chain) {
  std::optional<int64_t> points;
  for (const auto &[tensor, definition] : chain.inlined) {
    auto axes = cast<AxesOp>(ParallelOp(definition.statement).getOperation());
    for (BlockArgument axis : axes.getAxes()) {
      ValueExpr place = chain.placed(ValueExpr(Value(axis)));
      if (!place.uses(chain.sumAxis()))
        continue;
      AxisRange range = getAxisRange(axes, axis.getArgNumber());
      std::optional<int64_t> own = range.hi.asConstant();
      if (!(place == ValueExpr(chain.sumAxis())) || range.lo.asConstant() != 0 || !own ||
          (points && *points != *own))
        return std::nullopt;
      points = own;
    }
  }
  return points;
}

bool tegula::rangeVariesAlong(const RowChain &chain, BlockArgument axis) {
  return llvm::any_of(std::array{chain.range.lo, chain.range.hi}, [&](const ValueExpr &end) {
    return llvm::any_of(end.operands(), [&](Value used) { return axesOf(used).contains(axis); });
  });
}

/// Whether all that the term has beside a power are roundings, which leave 0 as it is.
static bool isPowerAlone(const ChainTerm &term) {
  return term.score && llvm::all_of(term.steps, [](const ChainTerm::Step &step) {
           return !step.op || isa<ConvertOp>(step.op);
         });
}

static bool isElementOf(const ValueExpr &expr, const RowChain &chain) {
  return llvm::any_of(expr.operands(), [&](Value used) { return chain.isElement(used); });
}

std::optional<Mismatch> tegula::whyNotMasked(const RowChain &chain) {
  std::optional<int64_t> points = pointsOfElements(chain);
  ReduceOp sum = chain.sum;
  if (!points)
    return Mismatch{"the range of " + describe(sum) +
                        " comes from data, and not all of what it is made of has the same points",
                    "", sum};
  auto isMasked = [&](Operation *reduce) {
    auto terms = chain.sums.find(reduce);
    return terms != chain.sums.end()
               ? isPowerAlone(terms->second)
               : ReduceOp(cast<ReduceOp>(reduce)).getKind() == ReduceKind::Max;
  };
  bool fits = isPowerAlone(chain.term) && llvm::all_of(chain.needed, isMasked);
  // The right factor is read at all points, not at those of a row's range alone.
  sum.walk([&](ReadOp read) {
    if (chain.definitionOf(read) || read.getFill())
      return;
    for (auto [dim, subscript] :
         llvm::zip_equal(read.getTensorType().getDims(), read.getSubscriptExprs())) {
      std::optional<int64_t> size = dim.getExpr().asConstant();
      bool isWhole = subscript.asValue() == chain.sumAxis() && size && *size >= *points;
      fits &= isWhole || !isElementOf(subscript, chain);
    }
  });
  if (!fits)
    return Mismatch{"the range of " + describe(sum) +
                        " comes from data, and terms outside of it would be more than 0",
                    "", sum};
  return std::nullopt;
}

/// Computes the value of the product's statement here.
static void copyValue(OpBuilder &b, Value value, ParallelOp product, IRMapping &at) {
  Operation *op = value.getDefiningOp();
  if (!op || at.contains(value) || !product->isProperAncestor(op))
    return;
  for (Value used : op->getOperands())
    copyValue(b, used, product, at);
  b.clone(*op, at);
}

ValueExpr StoredEnds::here(const ValueExpr &end) {
  for (Value used : end.operands())
    copyValue(builder, used, chain.product, at);
  return end.substitute(
      [&](Value used) { return std::optional(ValueExpr(at.lookupOrDefault(used))); });
}

ValueExpr StoredEnds::stored(const ValueExpr &end, StringRef name) {
  ParallelOp product = chain.product;
  if (llvm::all_of(end.operands(), llvm::IsaPred<BlockArgument>))
    return end;
  SmallVector<Attribute> dims;
  SmallVector<ValueExpr> ownPlace, place;
  for (Value axis : axes) {
    auto argument = cast<BlockArgument>(axis);
    AxisRange range = getAxisRange(cast<AxesOp>(product.getOperation()), argument.getArgNumber());
    dims.push_back(IndexExprAttr::get(builder.getContext(), range.hi.expr()));
    ownPlace.push_back(ValueExpr(at.lookup(axis)));
    place.push_back(ValueExpr(axis));
  }
  auto type = TglTensorType::get(builder.getContext(),
                                 llvm::map_to_vector(dims, llvm::CastTo<IndexExprAttr>),
                                 builder.getI64Type());
  OpBuilder outer(rows);
  auto temp = TempOp::create(outer, loc, type, name);
  made.push_back(temp);
  Value wide = arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                          materialize(builder, loc, here(end)));
  WriteOp::create(builder, loc, wide, temp.getTensor(), ownPlace);
  OpBuilder inside = OpBuilder::atBlockBegin(&product.getBody().front());
  auto read = ReadOp::create(inside, loc, temp.getTensor(), place);
  auto index = arith::IndexCastOp::create(inside, loc, inside.getIndexType(), read.getResult());
  made.push_back(read);
  made.push_back(index);
  return ValueExpr(index.getResult());
}

StoredEnds::StoredEnds(RowChain &chain, int64_t points, bool keep)
    : chain(chain), builder(chain.product), loc(chain.checkedAt.value_or(chain.product.getLoc())) {
  for (BlockArgument axis : chain.product.getAxes())
    if (rangeVariesAlong(chain, axis))
      axes.push_back(axis);
  rows = copyAxes(builder, loc, axes, at);
  made.push_back(rows);
  builder.setInsertionPointToEnd(&rows.getBody().front());
  if (chain.checked) {
    auto size = IndexExprAttr::get(builder.getContext(), IndexExpr(points));
    auto type = TglTensorType::get(builder.getContext(), {size}, builder.getI8Type());
    OpBuilder outer(rows);
    auto inside = TempOp::create(outer, loc, type, "inside");
    made.insert(made.begin(), inside);
    ValueExpr low = here(chain.range.lo), high = here(chain.range.hi);
    Value isAny =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                              materialize(builder, loc, low), materialize(builder, loc, high));
    Value mark = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(1));
    for (const ValueExpr &place : {low, high - ValueExpr(int64_t(1))})
      WriteOp::create(builder, loc, mark, inside.getTensor(), {place}, isAny, ReduceKind::Any,
                      chain.checked.getValue());
  }
  if (keep)
    chain.range = {stored(chain.range.lo, "low"), stored(chain.range.hi, "high")};
  if (rows.getBody().front().empty())
    undo();
}

void StoredEnds::undo() {
  if (made.empty())
    return;
  rows.erase();
  for (Operation *op : llvm::reverse(made))
    if (op != rows)
      op->erase();
  made.clear();
}

static bool hasPoints(ReduceOp reduce) {
  std::optional<int64_t> points = knownPoints(cast<AxesOp>(reduce.getOperation()));
  return points && *points > 0;
}

/// Whether an element is computed from a read that is outside of its tensor wherever the element
/// does not exist.
static bool reportsItself(const RowChain &chain, int64_t points) {
  return llvm::any_of(chain.inlined, [&](const auto &entry) {
    return llvm::any_of(
        ParallelOp(entry.second.statement).getBody().template getOps<ReduceOp>(),
        [&](ReduceOp reduce) {
          return llvm::any_of(reduce.getBody().template getOps<ReadOp>(), [&](ReadOp read) {
            return !read.getFill() && !read.getGuard() && !chain.definitionOf(read) &&
                   !reduce.getFilter() && hasPoints(reduce) &&
                   llvm::any_of(
                       llvm::zip_equal(read.getTensorType().getDims(), read.getSubscriptExprs()),
                       [&](const auto &pair) {
                         auto [dim, subscript] = pair;
                         return chain.placed(subscript) == ValueExpr(chain.sumAxis()) &&
                                dim.getExpr().asConstant() == points;
                       });
          });
        });
  });
}

std::optional<Mismatch> tegula::reportEnds(RowChain &chain) {
  if (!chain.checked)
    return std::nullopt;
  std::optional<int64_t> points = pointsOfElements(chain);
  if (!points)
    return Mismatch{"the range of " + describe(chain.sum) +
                        " comes from data, and not all of what it is made of has the same points",
                    "", chain.sum};
  if (!reportsItself(chain, *points))
    StoredEnds(chain, *points, /*keep=*/false);
  return std::nullopt;
}
