//===- FewRows.cpp - Plans tile loops of few rows -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/few_rows/plan/FewRows.h"

#include "ir/tgl/Invariance.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace tegula;
using mlir::BlockArgument;
using tgl::ReduceKind;
using tgl::ValueExpr;

/// Columns of accumulators that a thread has registers for, beside a second tile of them.
static constexpr int64_t maxColumns = 256;
/// Bits that are copied at a time.
static constexpr int64_t vectorBits = 128;
static constexpr int64_t warpRows = 16, maxRows = 64;

int64_t tegula::tileColumnsFor(int64_t points) {
  constexpr int64_t fewest = 16, line = 64;
  return points >= line ? alignTo(points, line)
                        : std::max<int64_t>(fewest, int64_t(PowerOf2Ceil(points)));
}

const FewRowsProduct *FewRowsPlan::productOf(tgl::ReduceOp reduce) const {
  const auto *found = llvm::find_if(
      products, [&](const FewRowsProduct &product) { return product.reduce == reduce; });
  return found == products.end() ? nullptr : found;
}

namespace {
/// Every method gives false, with a reason, where the nest is no such.
class Planner : MatcherBase {
public:
  explicit Planner(tgl::ParallelOp op) : op(op), axes(tgl::axesOfOp(op)) { plan.op = op; }

  Matched<FewRowsPlan> run() {
    if (find())
      return std::move(plan);
    if (!hasReason())
      fail(op, describe(op) + " has another form than a tile loop over products");
    why.isOther |= !plan.tiles;
    return std::move(why);
  }

private:
  FewRowsPlan plan;
  tgl::ParallelOp op;
  tgl::AxesOp axes;
  /// Points of a temporary's only dim; 0: of a tile.
  DenseMap<mlir::Value, int64_t> spaceOf;

  bool find() {
    if (op.getBody().getOps<tgl::TilesOp>().empty())
      return failAsOther(op, "there is no tile loop, nor a softmax that became one");
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      if (!tgl::plannedPoints(axes, {axis}) || tgl::getAxisRange(axes, axis).lo.asConstant() != 0)
        return fail(op,
                    "the size of " + namesOf(op.getBody().getArgument(axis)) +
                        " is not known when compiling",
                    "compile for known sizes (-d), as PyTorch calls and bench do");
    tgl::Accesses accesses = tgl::accessesOf(op);
    for (mlir::Value tensor : accesses.writes)
      if (accesses.reads.contains(tensor) && !isOwn(tensor))
        return fail(op, describeTensor(tensor) + " is read and written by the statement");
    for (mlir::Operation &inner : op.getBody().front())
      if (!takeOuter(&inner))
        return fail(&inner, reasonAgainst(&inner));
    if (plan.products.empty())
      return failAsOther(op, "the tile loop has no sum of products");
    if (!findRows())
      return fail(op, "how many rows share what the loop reads is not known when compiling");
    return llvm::all_of(plan.products,
                        [&](FewRowsProduct &product) { return checkFactors(product); });
  }

  static std::string reasonAgainst(mlir::Operation *inner) {
    return describe(inner) + " is nothing that a tile of rows computes beside its products";
  }

  bool isOwn(mlir::Value tensor) {
    auto temp = tensor.getDefiningOp<tgl::TempOp>();
    return temp && op->isProperAncestor(temp);
  }

  static bool isPlain(mlir::Operation *inner) {
    return inner->getNumRegions() == 0 && mlir::isMemoryEffectFree(inner);
  }

  /// Points of an op's only axis: from 0 on; 0 where they are the tile's.
  std::optional<int64_t> spaceOfAxis(mlir::Operation *nest) {
    tgl::AxesOp inner = tgl::axesOfOp(nest);
    if (inner.getAxes().size() != 1)
      return std::nullopt;
    tgl::AxisRange range = tgl::getAxisRange(inner, 0);
    if (auto tiles = nest->getParentOfType<tgl::TilesOp>();
        tiles && range.lo.asValue() == tiles.getTileLow())
      return range.hi.asValue() == tiles.getTileHigh() ? std::optional(int64_t(0)) : std::nullopt;
    std::optional<int64_t> extent = range.hi.asConstant();
    if (range.lo.asConstant() != 0 || !extent || *extent <= 0 || *extent > maxColumns)
      return std::nullopt;
    plan.maxColumns = std::max(plan.maxColumns, tileColumnsFor(*extent));
    return extent;
  }

  /// The element of a temporary that belongs to the point of `axis`.
  template <typename Access> bool isOwnElement(Access access, BlockArgument axis, int64_t space) {
    auto subscripts = access.getSubscriptExprs();
    auto [known, isNew] = spaceOf.try_emplace(access.getTensor(), space);
    return axis && known->second == space && subscripts.size() == 1 && !access.getGuard() &&
           subscripts[0] == ValueExpr(mlir::Value(axis)) -
                                (space ? ValueExpr(int64_t(0))
                                       : ValueExpr(mlir::Value(plan.tiles.getTileLow())));
  }

  /// Elements of temporaries are those of the point, others are anywhere.
  bool takeAccess(mlir::Operation *inner, BlockArgument axis, int64_t space, bool mayStore) {
    if (auto read = dyn_cast<tgl::ReadOp>(inner))
      return !isOwn(read.getTensor()) || (!read.getFill() && isOwnElement(read, axis, space));
    auto write = dyn_cast<tgl::WriteOp>(inner);
    if (!write)
      return isPlain(inner);
    if (!isOwn(write.getTensor()))
      return mayStore;
    return !write.getCombine() && write.getValue().getType().isF32() &&
           isOwnElement(write, axis, space);
  }

  bool takeNest(tgl::ParallelOp nest, bool isInLoop) {
    std::optional<int64_t> space = spaceOfAxis(nest);
    if (!space)
      return fail(nest, describe(nest) + " runs over an index that is neither the tile's nor of a "
                                         "known size of at most 256");
    for (mlir::Operation &inner : nest.getBody().front()) {
      if (auto reduce = dyn_cast<tgl::ReduceOp>(inner)) {
        if (!isInLoop || !takeProduct(nest, reduce, *space))
          return fail(reduce, describe(reduce) + " adds up no products of two tensors over the "
                                                 "tile or over a dim of known size");
      } else if (!takeAccess(&inner, tgl::axesOfOp(nest).getAxes()[0], *space, !isInLoop)) {
        return false;
      }
    }
    return true;
  }

  /// The read that a factor is, an integer as f32.
  static tgl::ReadOp readOf(mlir::Value factor) {
    mlir::Operation *op = factor.getDefiningOp();
    if (op && isa<mlir::arith::SIToFPOp, mlir::arith::UIToFPOp>(op))
      op = op->getOperand(0).getDefiningOp();
    return dyn_cast_or_null<tgl::ReadOp>(op);
  }

  bool takeProduct(tgl::ParallelOp nest, tgl::ReduceOp reduce, int64_t space) {
    std::optional<int64_t> summed = spaceOfAxis(reduce);
    auto contraction = tgl::matchContraction(reduce);
    if (!summed || !contraction || reduce.getFilter() || !reduce.getType().isF32() ||
        (*summed == 0) == (space == 0) || contraction->factors.size() != 2)
      return false;
    for (mlir::Operation &inner : reduce.getBody().front())
      if (!takeAccess(&inner, tgl::axesOfOp(reduce).getAxes()[0], *summed, false))
        return false;
    FewRowsProduct product;
    product.reduce = reduce;
    product.nest = nest;
    product.reducesTile = *summed == 0;
    product.fixed = std::max(*summed, space);
    BlockArgument columns = tgl::axesOfOp(nest).getAxes()[0];
    for (const tgl::Contraction::Factor &factor : contraction->factors) {
      if (factor.axes.contains(columns)) {
        if (product.b || !(product.b = readOf(factor.value)))
          return false;
        product.bValue = factor.value;
      } else {
        product.aValue = factor.value;
        if (!product.reducesTile)
          product.a = readOf(factor.value);
      }
    }
    if (!product.b || !product.aValue || (!product.reducesTile && !product.a))
      return false;
    plan.products.push_back(product);
    return true;
  }

  /// A reduction of the tile's values, for each row.
  bool takeReduce(tgl::ReduceOp reduce) {
    static constexpr ReduceKind kinds[] = {ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max,
                                           ReduceKind::Min};
    std::optional<int64_t> space = spaceOfAxis(reduce);
    if (space != 0 || !is_contained(kinds, reduce.getKind()) || reduce.getFilter() ||
        !reduce.getType().isF32() || !reduce.getReduced().getType().isF32())
      return fail(reduce, describe(reduce) + " is no sum, product, max or min over the tile");
    return llvm::all_of(reduce.getBody().front(), [&](mlir::Operation &inner) {
      return takeAccess(&inner, tgl::axesOfOp(reduce).getAxes()[0], 0, false);
    });
  }

  /// What stands before, in and after the loop, outside of nests.
  bool takeOuter(mlir::Operation *inner) {
    bool isInLoop = isa<tgl::TilesOp>(inner->getParentOp());
    if (auto temp = dyn_cast<tgl::TempOp>(inner)) {
      auto type = cast<tgl::TglTensorType>(temp.getTensor().getType());
      return type.getDims().size() == 1 && type.getElementType().isF32();
    }
    if (auto nest = dyn_cast<tgl::ParallelOp>(inner))
      return takeNest(nest, isInLoop);
    if (auto reduce = dyn_cast<tgl::ReduceOp>(inner))
      return isInLoop && takeReduce(reduce);
    if (auto tiles = dyn_cast<tgl::TilesOp>(inner))
      return !isInLoop && takeTiles(tiles);
    return takeAccess(inner, {}, 0, !isInLoop);
  }

  bool takeTiles(tgl::TilesOp tiles) {
    if (plan.tiles)
      return fail(tiles, "there is more than one tile loop");
    if (!tiles.getSize())
      return false;
    for (mlir::Value init : tiles.getInits())
      if (!init.getType().isF32())
        return fail(tiles, "the tile loop carries another type than f32");
    plan.tiles = tiles;
    for (mlir::Operation &inner : tiles.getBody().front())
      if (!takeOuter(&inner))
        return fail(&inner, reasonAgainst(&inner));
    return true;
  }

  /// Axes that neither right factors nor the loop's bounds vary along.
  bool findRows() {
    tgl::AxisSet used;
    for (const FewRowsProduct &product : plan.products)
      used.insert_range(tgl::axesOf(tgl::ReadOp(product.b).getResult()));
    for (const ValueExpr &bound : {plan.tiles.getLowExpr(), plan.tiles.getHighExpr()})
      for (mlir::Value value : bound.operands())
        used.insert_range(tgl::axesOf(value));
    SmallVector<unsigned> others;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      (used.contains(axes.getAxes()[axis]) ? others : plan.rows).push_back(axis);
    plan.blocks = tgl::plannedPoints(axes, others);
    plan.hasInvariantBlocks = plan.blocks && !tgl::knownPoints(axes, others);
    std::optional<int64_t> rows = tgl::knownPoints(axes, plan.rows);
    plan.numRows = rows.value_or(0);
    return rows.has_value();
  }

  /// Whether vectors along the axis are neighbours from a multiple of their length on, wherever
  /// other indices are, data among them.
  static bool isInVectors(tgl::ReadOp read, BlockArgument axis, int64_t extent,
                          int64_t vectorElements) {
    ValueExpr offset = tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs());
    return extent % vectorElements == 0 && tgl::stepAlong(offset, axis) == 1 &&
           all_of(
               offset.substitute(axis, ValueExpr(int64_t(0))).expr().terms(),
               [&](const IndexExpr::Term &term) { return term.coefficient % vectorElements == 0; });
  }

  /// The type of 16 bits of which both factors are numbers. Of a left factor that the program does
  /// not round, terms are.
  bool chooseElement(FewRowsProduct &product) {
    mlir::Type left, right = tgl::ReadOp(product.b).getTensorType().getElementType();
    if (product.a)
      left = tgl::ReadOp(product.a).getTensorType().getElementType();
    else if (auto convert = product.aValue.getDefiningOp<tgl::ConvertOp>())
      left = convert.getTarget();
    auto isShort = [](mlir::Type type) { return type && (type.isBF16() || type.isF16()); };
    if (!isShort(right) && !isByte(right))
      return fail(product.b,
                  describeTensor(tgl::ReadOp(product.b).getTensor()) +
                      " is neither f16 nor bf16 nor of 8 bits",
                  "convert it before, as a tensor of its own");
    bool isExact = left && (isByte(left) || (isShort(left) && (left == right || isByte(right))));
    product.element = isShort(right)             ? right
                      : isExact && isShort(left) ? left
                                                 : mlir::BFloat16Type::get(op.getContext());
    if (isExact)
      return true;
    if (product.a)
      return fail(product.a,
                  describeTensor(tgl::ReadOp(product.a).getTensor()) + " and " +
                      describeTensor(tgl::ReadOp(product.b).getTensor()) +
                      " are of different types",
                  "convert one of them before, as a tensor of its own");
    product.isWide = true;
    // Terms of f16 do not reach as far as f32.
    return product.element.isBF16() ||
           fail(product.reduce,
                "a factor of " + describe(product.reduce) + " is not rounded to the other's type",
                "convert it to the type of " + describeTensor(tgl::ReadOp(product.b).getTensor()));
  }

  /// f8, i8 and u8.
  static bool isByte(mlir::Type type) {
    return isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(type) || type.isInteger(8);
  }

  bool checkFactors(FewRowsProduct &product) {
    tgl::ReadOp b = product.b;
    if (!chooseElement(product))
      return false;
    if (b.getFill() || isOwn(b.getTensor()) || !b.getExactExprs().empty())
      return fail(b, describe(b) + " has a fill, or is computed in the loop");
    // Lines in memory run along the axis that is not the tile's, both of keys and of values.
    BlockArgument line = product.reducesTile ? tgl::axesOfOp(product.nest).getAxes()[0]
                                             : tgl::axesOfOp(product.reduce).getAxes()[0];
    int64_t vector = vectorBits / b.getTensorType().getElementType().getIntOrFloatBitWidth();
    if (!isInVectors(b, line, product.fixed, vector))
      return fail(b, "elements of " + describeTensor(b.getTensor()) + " are not read in runs of " +
                         std::to_string(vector) + " that start at multiples of that");
    auto variesAlongLine = [&](mlir::Value value) {
      return value && tgl::axesOf(value).contains(line);
    };
    if (variesAlongLine(b.getGuard()) || any_of(b.getIndices(), [&](mlir::Value index) {
          return index != line && variesAlongLine(index);
        }))
      return fail(b, describe(b) + " is read at a place or under a condition that varies along " +
                         namesOf(line));
    if (product.reducesTile)
      return product.aValue.getType().isF32();
    tgl::ReadOp a = product.a;
    if (a.getFill() || a.getGuard() || a.getChecked() || isOwn(a.getTensor()))
      return fail(a, describe(a) + " has a fill or a condition, or is computed in the loop");
    tgl::AxisSet varies = tgl::axesOf(a.getResult());
    return (!varies.contains(plan.tiles.getTileLow()) &&
            !varies.contains(plan.tiles.getTileHigh())) ||
           fail(a, describe(a) + " differs from tile to tile");
  }
};
} // namespace

Matched<FewRowsPlan> tegula::planFewRows(tgl::ParallelOp op) { return Planner(op).run(); }

//===----------------------------------------------------------------------===//
// The shape of a block
//===----------------------------------------------------------------------===//

std::string FewRowsShape::name() const { return (Twine(rows) + "x" + Twine(columns)).str(); }

mlir::Attribute FewRowsShape::toAttribute(mlir::MLIRContext *context) const {
  return mlir::DenseI64ArrayAttr::get(context, {rows, columns});
}

std::optional<FewRowsShape> FewRowsShape::of(tgl::ParallelOp op) {
  auto shape = op->getAttrOfType<mlir::DenseI64ArrayAttr>(attributeName);
  if (!shape || shape.size() != 2)
    return std::nullopt;
  return FewRowsShape{shape[0], shape[1]};
}

Matched<FewRowsShape> tegula::chooseFewRowsShape(const FewRowsPlan &plan) {
  if (plan.numRows > maxRows)
    return Mismatch{std::to_string(plan.numRows) + " rows share what the loop reads: more than " +
                        std::to_string(maxRows),
                    "", plan.op};
  if (plan.numRows < 1 || !plan.blocks || *plan.blocks < 1)
    return Mismatch{"there are no rows", "", plan.op};
  // As many bytes of keys in each turn, whatever their length.
  constexpr int64_t shortLine = 64;
  return FewRowsShape{int64_t(alignTo(plan.numRows, warpRows)),
                      plan.maxColumns <= shortLine ? 64 : 32};
}
