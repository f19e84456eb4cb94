//===- TileLoop.cpp - Rows that go through a tile loop together -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/plan/TileLoop.h"

#include "ir/tgl/Invariance.h"
#include "ir/tgl/TglShapes.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "strategies/tile_loop/plan/TileLoopBounds.h"
#include "strategies/tile_loop/plan/TileLoopMasks.h"
#include "target/DeviceFacts.h"
#include "target/TargetInfo.h"

using namespace llvm;
using namespace tegula;
using mlir::BlockArgument;
using tgl::ReduceKind;
using tgl::ValueExpr;

/// Columns of a fragment are eights; a product has up to 256, and a cluster four of them.
static constexpr int64_t fragmentColumns = 8, maxColumns = 256, maxParts = 4;
/// Elements of 16 bits that are copied at a time.
static constexpr int64_t vectorElements = 8;
static constexpr int64_t lineElements = 64;

namespace {
/// Every method gives false, with a reason, where the nest is no such.
class Planner : MatcherBase {
public:
  explicit Planner(tgl::ParallelOp op) : op(op), axes(tgl::axesOfOp(op)) { plan.op = op; }

  Matched<TileLoopPlan> run() {
    if (find())
      return std::move(plan);
    if (!hasReason())
      fail(op, describe(op) + " has another form than a tile loop over products");
    why.isOther |= !plan.tiles;
    return std::move(why);
  }

private:
  TileLoopPlan plan;

  bool find() {
    if (op.getBody().getOps<tgl::TilesOp>().empty())
      return failAsOther(op,
                         "there is neither a tile loop nor a softmax whose result is multiplied "
                         "by a tensor");
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      if (!tgl::plannedPoints(axes, {axis}) || !tgl::getAxisRange(axes, axis).lo.asConstant())
        return fail(op,
                    "the size of " + namesOf(op.getBody().getArgument(axis)) +
                        " is not known when compiling",
                    "compile for known sizes (-d), as PyTorch calls and bench do");
    tgl::Accesses accesses = tgl::accessesOf(op);
    for (mlir::Value tensor : accesses.writes)
      if (accesses.reads.contains(tensor) && !isOwn(tensor))
        return fail(op, describeTensor(tensor) + " is read and written by the statement");
    if (!takeBlock(op.getBody().front()))
      return false;
    if (plan.products.empty())
      return failAsOther(op, "the tile loop has no sum of products");
    if (!findRow())
      return fail(op,
                  "no index of " + describe(op) +
                      " varies one operand of the products alone: no rows share the other operand");
    for (TileLoopProduct &product : plan.products)
      if (!describeFactors(product))
        return false;
    if (variesAlongRows(plan.tiles.getLowExpr()) || variesAlongRows(plan.tiles.getHighExpr()))
      return fail(plan.tiles, "the bounds of the tile loop differ from row to row",
                  "let the loop take the range of all rows and fill scores outside a row's range "
                  "with -inf");
    plan.bounds = boundsOfTiles(plan);
    plan.masks = dataMasksOf(plan);
    return true;
  }

  tgl::ParallelOp op;
  tgl::AxesOp axes;
  /// Points of a temporary's only dim; 0: of a tile.
  DenseMap<mlir::Value, int64_t> spaceOf;

  bool isOwn(mlir::Value tensor) {
    auto temp = tensor.getDefiningOp<tgl::TempOp>();
    return temp && op->isProperAncestor(temp);
  }

  bool variesAlongRows(const ValueExpr &expr) {
    return any_of(expr.operands(), [&](mlir::Value value) {
      return tgl::axesOf(value).contains(axes.getAxes()[plan.row]);
    });
  }

  /// The points of an op's only axis: from 0 on, in eights; 0 where they are the tile's.
  std::optional<int64_t> spaceOfAxis(mlir::Operation *nest) {
    tgl::AxesOp inner = tgl::axesOfOp(nest);
    if (inner.getAxes().size() != 1)
      return std::nullopt;
    tgl::AxisRange range = tgl::getAxisRange(inner, 0);
    if (auto tiles = nest->getParentOfType<tgl::TilesOp>();
        tiles && range.lo.asValue() == tiles.getTileLow())
      return range.hi.asValue() == tiles.getTileHigh() ? std::optional(int64_t(0)) : std::nullopt;
    std::optional<int64_t> extent = range.hi.asConstant();
    if (range.lo.asConstant() != 0 || !extent || *extent % fragmentColumns || *extent <= 0 ||
        *extent > maxParts * maxColumns)
      return std::nullopt;
    plan.maxColumns = std::max(plan.maxColumns, *extent);
    return extent;
  }

  /// A part of the tile, which each row may have its own of.
  bool isInTile(tgl::ReduceOp reduce) {
    auto tiles = reduce->getParentOfType<tgl::TilesOp>();
    tgl::AxesOp own = tgl::axesOfOp(reduce);
    if (!tiles || own.getAxes().size() != 1)
      return false;
    tgl::AxisRange range = tgl::getAxisRange(own, 0);
    return ValueExpr::max(range.lo, mlir::Value(tiles.getTileLow())) == range.lo &&
           ValueExpr::min(range.hi, mlir::Value(tiles.getTileHigh())) == range.hi;
  }

  static bool isPlain(mlir::Operation *inner) {
    return inner->getNumRegions() == 0 && mlir::isMemoryEffectFree(inner);
  }

  /// The element of a temporary that belongs to the point of `axis`.
  template <typename Access> bool isOwnElement(Access access, BlockArgument axis, int64_t space) {
    if (!space && !plan.tiles)
      return false;
    auto subscripts = access.getSubscriptExprs();
    auto [known, isNew] = spaceOf.try_emplace(access.getTensor(), space);
    return axis && known->second == space && subscripts.size() == 1 && !access.getGuard() &&
           subscripts[0] == ValueExpr(mlir::Value(axis)) -
                                (space ? ValueExpr(int64_t(0))
                                       : ValueExpr(mlir::Value(plan.tiles.getTileLow())));
  }

  bool takeAccess(mlir::Operation *inner, BlockArgument axis, int64_t space) {
    if (auto read = dyn_cast<tgl::ReadOp>(inner)) {
      if (isOwn(read.getTensor()))
        return !read.getFill() && isOwnElement(read, axis, space);
      return !read.getChecked();
    }
    auto write = dyn_cast<tgl::WriteOp>(inner);
    if (!write || write.getCombine() || write.getChecked())
      return false;
    return isOwn(write.getTensor()) ? isOwnElement(write, axis, space) : true;
  }

  /// Why the tile loop cannot have the operation.
  static std::string reasonAgainst(mlir::Operation *inner) {
    auto read = dyn_cast<tgl::ReadOp>(inner);
    auto write = dyn_cast<tgl::WriteOp>(inner);
    if ((read && read.getChecked()) || (write && write.getChecked()))
      return describe(inner) + " is at a place that data gives";
    if (write && write.getCombine())
      return describe(inner) + " adds to what the tensor has";
    if (read || write)
      return describe(inner) + " is at another row, or at another point of the loop, than the one "
                               "that is computed";
    return describe(inner) + " is nothing that a tile loop over products can compute";
  }

  bool takeNest(tgl::ParallelOp nest) {
    std::optional<int64_t> space = spaceOfAxis(nest);
    if (!space)
      return fail(nest,
                  describe(nest) + " runs over an index that is neither the tile's nor of a "
                                   "known size (a multiple of 8, at most 1024)",
                  "compile for known sizes (-d)");
    for (mlir::Operation &inner : nest.getBody().front()) {
      if (auto reduce = dyn_cast<tgl::ReduceOp>(inner)) {
        if (!takeProduct(nest, reduce, *space))
          return fail(reduce, describe(reduce) +
                                  " adds up no products of two tensors over the tile "
                                  "or over a dim of known size (a multiple of 8, "
                                  "at most 1024)");
      } else if (!isPlain(&inner) &&
                 !takeAccess(&inner, tgl::axesOfOp(nest).getAxes()[0], *space)) {
        return fail(&inner, reasonAgainst(&inner));
      }
    }
    return true;
  }

  bool takeProduct(tgl::ParallelOp nest, tgl::ReduceOp reduce, int64_t space) {
    std::optional<int64_t> summed = spaceOfAxis(reduce);
    auto contraction = tgl::matchContraction(reduce);
    if (!summed || !contraction || reduce.getFilter() || !reduce.getType().isF32() ||
        (*summed == 0) == (space == 0) || contraction->factors.size() != 2)
      return false;
    for (mlir::Operation &inner : reduce.getBody().front())
      if (!isPlain(&inner) && (isa<tgl::WriteOp>(inner) ||
                               !takeAccess(&inner, tgl::axesOfOp(reduce).getAxes()[0], *summed)))
        return false;
    TileLoopProduct product;
    product.reduce = reduce;
    product.nest = nest;
    product.reducesTile = *summed == 0;
    product.fixed = std::max(*summed, space);
    BlockArgument columns = tgl::axesOfOp(nest).getAxes()[0];
    for (const tgl::Contraction::Factor &factor : contraction->factors) {
      if (factor.axes.contains(columns)) {
        if (product.b || !(product.b = factor.value.getDefiningOp<tgl::ReadOp>()))
          return false;
      } else if (product.reducesTile) {
        product.aValue = factor.value;
      } else {
        product.a = factor.value.getDefiningOp<tgl::ReadOp>();
      }
    }
    if (!product.b || (product.reducesTile ? !product.aValue : !product.a))
      return false;
    // The left factor is computed before the nest is.
    for (mlir::Operation &inner : reduce.getBody().front())
      if (product.reducesTile && &inner != product.b &&
          any_of(inner.getOperands(), [&](mlir::Value used) {
            return used.getParentBlock() == &nest.getBody().front();
          }))
        return false;
    plan.products.push_back(product);
    return true;
  }

  bool takeReduce(tgl::ReduceOp reduce) {
    static constexpr ReduceKind kinds[] = {ReduceKind::Sum,  ReduceKind::Prod, ReduceKind::Max,
                                           ReduceKind::Min,  ReduceKind::Any,  ReduceKind::All,
                                           ReduceKind::Count};
    std::optional<int64_t> space =
        isInTile(reduce) ? std::optional(int64_t(0)) : spaceOfAxis(reduce);
    if (!space || *space > maxColumns ||
        !is_contained(kinds, reduce.getKind())) // blocks that share columns add up products alone
      return fail(reduce, describe(reduce) +
                              " runs over an index that is neither the tile's nor of "
                              "a known size (a multiple of 8, at most 256)");
    for (mlir::Operation &inner : reduce.getBody().front())
      if (!isPlain(&inner) && (isa<tgl::WriteOp>(inner) ||
                               !takeAccess(&inner, tgl::axesOfOp(reduce).getAxes()[0], *space)))
        return fail(&inner, reasonAgainst(&inner));
    return true;
  }

  bool takeTiles(tgl::TilesOp tiles) {
    std::optional<int64_t> low = tiles.getLowExpr().asConstant(),
                           high = tiles.getHighExpr().asConstant();
    if (plan.tiles || tiles->getParentOp() != op)
      return fail(tiles, "there is more than one tile loop, or it stands in another loop");
    if (!low || !high || !tiles.getSize())
      return fail(tiles, "the bounds of the tile loop are not known when compiling",
                  "compile for known sizes (-d)");
    plan.tiles = tiles;
    plan.extent = std::max<int64_t>(0, *high - *low);
    return takeBlock(tiles.getBody().front());
  }

  bool takeBlock(mlir::Block &block) {
    for (mlir::Operation &inner : block) {
      bool fits = true;
      if (auto temp = dyn_cast<tgl::TempOp>(inner))
        fits = cast<tgl::TglTensorType>(temp.getTensor().getType()).getDims().size() == 1;
      else if (auto nest = dyn_cast<tgl::ParallelOp>(inner))
        fits = takeNest(nest);
      else if (auto reduce = dyn_cast<tgl::ReduceOp>(inner))
        fits = takeReduce(reduce);
      else if (auto tiles = dyn_cast<tgl::TilesOp>(inner))
        fits = takeTiles(tiles);
      else if (!isPlain(&inner))
        fits = takeAccess(&inner, BlockArgument(), 0);
      if (!fits)
        return fail(&inner, reasonAgainst(&inner));
    }
    return true;
  }

  /// The axis along which left factors vary and no right one does: the one with the most points,
  /// which fills tiles; of several the last. Others are axes of blocks.
  bool findRow() {
    std::optional<int64_t> most;
    for (BlockArgument axis : reverse(axes.getAxes())) {
      bool isRow = false, isFree = true;
      for (TileLoopProduct &product : plan.products) {
        isRow |= product.a && tgl::axesOf(product.a).contains(axis);
        isFree &= !tgl::axesOf(product.b).contains(axis);
      }
      std::optional<int64_t> points = tgl::knownPoints(axes, {axis.getArgNumber()});
      if (!points || !isRow || !isFree || (most && *points <= *most))
        continue;
      most = points;
      plan.row = axis.getArgNumber();
    }
    for (unsigned other = 0; other < axes.getAxes().size(); ++other)
      if (other != plan.row)
        plan.batch.push_back(other);
    return most.has_value();
  }

  /// Whether vectors from multiples of their length along the axis are neighbours from a multiple
  /// of it on.
  static bool isInVectors(tgl::ReadOp read, mlir::Value axis, std::optional<int64_t> low,
                          int64_t extent) {
    ValueExpr offset = tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs());
    if (!low || *low % vectorElements || extent % vectorElements ||
        tgl::stepAlong(offset, axis) != 1)
      return false;
    return all_of(
        offset.substitute(axis, ValueExpr(int64_t(0))).expr().terms(),
        [](const IndexExpr::Term &term) { return term.coefficient % vectorElements == 0; });
  }

  /// Planes are made of vectors of the whole tensor, which are counted in 32 bits.
  static bool canSplit(tgl::ReadOp read) {
    std::optional<int64_t> elements = tgl::knownElements(read.getTensor());
    return elements && *elements % vectorElements == 0 && isInt<31>(*elements);
  }

  static bool isBare(tgl::ReadOp read) {
    return !read.getGuard() && !read.getFill() && read.getExactExprs().empty() &&
           !read.getChecked();
  }

  /// The left factor has one term where it is rounded to the right factor's type, or is an element
  /// of a temporary of that type. Other left factors have f32's accuracy and so two terms, beside
  /// one of bf16 three.
  bool findLeft(TileLoopProduct &product, mlir::Type element) {
    tgl::ReduceOp reduce = product.reduce;
    mlir::Operation *def = product.aValue.getDefiningOp();
    if (!def || !reduce->isProperAncestor(def) || !product.aValue.getType().isF32())
      return false;
    auto convert = dyn_cast<tgl::ConvertOp>(def);
    auto read = dyn_cast<tgl::ReadOp>(def);
    if (convert && convert.getTarget() == element && convert.getValue().getType().isF32())
      product.aValue = convert.getValue();
    else if (!read || !isOwn(read.getTensor()) || read.getTensorType().getElementType() != element)
      (element.isBF16() ? product.leftTerms : product.terms) =
          element.isBF16() ? device::bf16Terms : 2;
    return true;
  }

  bool isSplitWell(TileLoopProduct &product) {
    if (product.terms == 1)
      return true;
    product.isBF16 = false;
    return canSplit(product.b) && (!product.a || canSplit(product.a));
  }

  bool describeFactors(TileLoopProduct &product) {
    mlir::Type element = product.b.getTensorType().getElementType();
    if (!(element.isBF16() || element.isF16() || element.isF32()))
      return fail(product.b,
                  describeTensor(product.b.getTensor()) +
                      " is of another type than f16, bf16 or f32",
                  "convert it before, as a tensor of its own");
    if (!isBare(product.b) || isOwn(product.b.getTensor()))
      return fail(product.b,
                  describe(product.b) + " has a fill or a condition, or is computed in the loop");
    product.isBF16 = element.isBF16();
    product.terms = element.isF32() ? 2 : 1;
    BlockArgument summed = tgl::axesOfOp(product.reduce).getAxes()[0],
                  columns = tgl::axesOfOp(product.nest).getAxes()[0];
    tgl::AxisRange rows = tgl::getAxisRange(axes, plan.row);
    std::optional<int64_t> low = plan.tiles.getLowExpr().asConstant();
    auto find = [&](tgl::ReadOp read, BlockArgument own, std::optional<int64_t> ownLow,
                    int64_t ownExtent, bool &kMajor) {
      kMajor = isInVectors(read, summed, product.reducesTile ? low : 0,
                           product.reducesTile ? plan.extent : product.fixed);
      return kMajor || isInVectors(read, own, ownLow, ownExtent);
    };
    if (!find(product.b, columns, product.reducesTile ? 0 : low,
              product.reducesTile ? product.fixed : plan.extent, product.bKMajor))
      return fail(product.b, "elements of " + describeTensor(product.b.getTensor()) +
                                 " are not read in runs of 8 that start at multiples of 8 (places "
                                 "that data gives, odd sizes or offsets)");
    if (product.reducesTile)
      return (findLeft(product, element) && isSplitWell(product)) ||
             fail(product.reduce, "a factor of " + describe(product.reduce) +
                                      " is not of f32, or its tensor has more than 2^31 elements");
    if (!isBare(product.a) || isOwn(product.a.getTensor()))
      return fail(product.a,
                  describe(product.a) + " has a fill or a condition, or is computed in the loop");
    if (product.a.getTensorType().getElementType() != element)
      return fail(product.a,
                  describeTensor(product.a.getTensor()) + " and " +
                      describeTensor(product.b.getTensor()) + " are of different types",
                  "convert one of them before, as a tensor of its own");
    tgl::AxisSet varies = tgl::axesOf(product.a);
    if (varies.contains(plan.tiles.getTileLow()) || varies.contains(plan.tiles.getTileHigh()))
      return fail(product.a, describe(product.a) + " differs from tile to tile");
    return (isSplitWell(product) && find(product.a, axes.getAxes()[plan.row], rows.lo.asConstant(),
                                         *tgl::knownPoints(axes, {plan.row}), product.aKMajor)) ||
           fail(product.a, "elements of " + describeTensor(product.a.getTensor()) +
                               " are not read in runs of 8 that start at multiples of 8 (places "
                               "that data gives, odd sizes or offsets)");
  }
};
} // namespace

Matched<TileLoopPlan> tegula::planTileLoop(tgl::ParallelOp op) { return Planner(op).run(); }

//===----------------------------------------------------------------------===//
// The shape of a block
//===----------------------------------------------------------------------===//

mlir::Attribute TileLoopShape::toAttribute(mlir::MLIRContext *context) const {
  mlir::Builder builder(context);
  SmallVector<int64_t> shape{rows(), columns};
  if (clusterBlocks > 1)
    shape.push_back(clusterBlocks);
  return builder.getDenseI64ArrayAttr(shape);
}

std::optional<TileLoopShape> TileLoopShape::of(tgl::ParallelOp op) {
  auto shape = op->getAttrOfType<mlir::DenseI64ArrayAttr>(attributeName);
  if (!shape || shape.size() < 2 || shape.size() > 3)
    return std::nullopt;
  return TileLoopShape{shape[0] / 64, shape[1], shape.size() == 3 ? shape[2] : 1};
}

bool tegula::splitsSum(const TileLoopProduct &product, const TileLoopShape &tile) {
  return product.a && tile.isShared(product.fixed);
}

int64_t TileLoopShape::blockShare(int64_t points) const {
  return points > maxColumns ? alignTo(divideCeil(points, clusterBlocks), fragmentColumns) : points;
}

static const int64_t maxSharedBytes = TargetInfo::gpu(90, true).sharedBytes;

/// The place of a right factor's element, by the tile's axis and the other one of the product.
static ValueExpr placeInTile(const TileLoopProduct &product, mlir::Value ofTile,
                             mlir::Value other) {
  tgl::ReadOp read = product.b;
  mlir::Value summed = tgl::axesOfOp(product.reduce).getAxes()[0],
              columns = tgl::axesOfOp(product.nest).getAxes()[0];
  return tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs())
      .substitute([&](mlir::Value used) -> std::optional<ValueExpr> {
        if (used != summed && used != columns)
          return std::nullopt;
        return ValueExpr((used == summed) == product.reducesTile ? ofTile : other);
      });
}

/// Lines of either are the same where they run along the axis that is not the tile's: rows of a
/// block of 64 points of the sum, or 64 points of the sum by panels of rows.
static bool shareTiles(const TileLoopProduct &one, const TileLoopProduct &other,
                       const TileLoopShape &tile) {
  if (tgl::ReadOp(one.b).getTensor() != tgl::ReadOp(other.b).getTensor() || one.terms > 1 ||
      other.terms > 1 || one.fixed != other.fixed || tile.isShared(one.fixed))
    return false;
  bool sameLines = one.reducesTile == other.reducesTile
                       ? one.bKMajor == other.bKMajor
                       : one.bKMajor != one.reducesTile && other.bKMajor != other.reducesTile &&
                             tile.columns == lineElements;
  mlir::Value ofTile = tgl::axesOfOp(one.reducesTile ? one.reduce : one.nest).getAxes()[0],
              fixed = tgl::axesOfOp(one.reducesTile ? one.nest : one.reduce).getAxes()[0];
  return sameLines && placeInTile(one, ofTile, fixed) == placeInTile(other, ofTile, fixed);
}

unsigned tegula::tileOwner(const TileLoopPlan &plan, const TileLoopShape &tile, unsigned number) {
  for (unsigned first = 0; first < number; ++first)
    if (shareTiles(plan.products[first], plan.products[number], tile))
      return first;
  return number;
}

bool tegula::isWarpSpecialized(const TileLoopPlan &plan, const TileLoopShape &tile) {
  constexpr unsigned maxTiles = 2; // of which barriers are left for
  unsigned tiles = 0;
  for (unsigned number = 0; number < plan.products.size(); ++number)
    tiles += tileOwner(plan, tile, number) == number;
  return tile.warpgroups == 2 && tiles <= maxTiles;
}

static int64_t bytesWith(const TileLoopPlan &plan, const TileLoopShape &tile, int64_t rowStages) {
  int64_t bytes = 0;
  for (auto [number, product] : enumerate(plan.products)) {
    int64_t fixed = alignTo(tile.blockShare(product.fixed), lineElements);
    if (tileOwner(plan, tile, number) == number)
      bytes += 2 * 2 * product.terms * fixed * tile.columns;
    if (product.a)
      bytes += rowStages * 2 * product.terms * fixed * tile.rows();
  }
  return bytes;
}

int64_t tegula::rowStagesOf(const TileLoopPlan &plan, const TileLoopShape &tile) {
  return isWarpSpecialized(plan, tile) && tile.clusterBlocks == 1 &&
                 bytesWith(plan, tile, 2) <= maxSharedBytes
             ? 2
             : 1;
}

static int64_t bytesOfRounds(const TileLoopShape &tile, int64_t rounds) {
  return 64 * tile.columns / rounds * sizeof(float);
}

/// Shared memory for parts of sums from other blocks.
static int64_t exchangeBytes(const TileLoopPlan &plan, const TileLoopShape &tile, int64_t rounds) {
  bool isNeeded = any_of(plan.products,
                         [&](const TileLoopProduct &product) { return splitsSum(product, tile); });
  int64_t places = isNeeded ? tile.exchanges() * tile.warpgroups : 0;
  return places * (bytesOfRounds(tile, rounds) + TileLoopShape::exchangeState);
}

int64_t tegula::roundsOf(const TileLoopPlan &plan, const TileLoopShape &tile) {
  int64_t rounds = 1;
  while (rounds < tile.columns / fragmentColumns &&
         bytesWith(plan, tile, 1) + exchangeBytes(plan, tile, rounds) > maxSharedBytes)
    rounds *= 2;
  return rounds;
}

int64_t tegula::bytesOfRound(const TileLoopPlan &plan, const TileLoopShape &tile) {
  return bytesOfRounds(tile, roundsOf(plan, tile));
}

int64_t tegula::sharedBytesOf(const TileLoopPlan &plan, const TileLoopShape &tile) {
  return bytesWith(plan, tile, rowStagesOf(plan, tile)) +
         exchangeBytes(plan, tile, roundsOf(plan, tile));
}

llvm::SetVector<mlir::Value> tegula::splitPrecisionTensors(const TileLoopPlan &plan) {
  llvm::SetVector<mlir::Value> tensors;
  for (const TileLoopProduct &product : plan.products)
    if (product.terms > 1)
      for (tgl::ReadOp read : {product.a, product.b})
        if (read)
          tensors.insert(read.getTensor());
  return tensors;
}

/// Whether sums of some product are added up tile by tile.
static bool addsTiles(const TileLoopPlan &plan) {
  return any_of(plan.products, [](const TileLoopProduct &product) { return product.addsTiles(); });
}

/// Whether a thread's registers have room for the sums in the loop, of products of planes of so
/// many columns at a time.
static bool hasRegisters(const TileLoopPlan &plan, const TileLoopShape &tile, int64_t columns) {
  // Accumulators leave some of 255 registers to addresses and numbers of rows; where operands are
  // split, some of 224. Sums of several products of the tile's points are there together, and words
  // of two of their values for each product with them.
  int64_t words =
      count_if(plan.products, [](const TileLoopProduct &product) { return product.reducesTile; });
  int64_t scores = plan.products.size() - words;
  const int64_t maxRegisters = addsTiles(plan) ? 180 : scores > 1 ? 224 : 200;
  int64_t registers = std::max(tile.columns, tile.columns / 4 * (2 * scores + words));
  for (tgl::TempOp temp :
       tgl::ParallelOp(plan.op).getBody().front().getOps<tgl::TempOp>()) { // that the loop carries
    auto type = cast<tgl::TglTensorType>(temp.getTensor().getType());
    registers += tile.blockShare(type.getDims()[0].getExpr().asConstant().value_or(maxColumns)) / 2;
  }
  // Products of planes are summed up by themselves, and the left factor is in registers twice.
  int64_t accumulators = 0;
  for (const TileLoopProduct &product : plan.products)
    if (product.addsTiles() && product.reducesTile)
      accumulators = std::max(accumulators, std::min(columns, tile.blockShare(product.fixed)) / 2);
  return registers + accumulators <= maxRegisters;
}

/// A panel of a right factor in shared memory.
static constexpr int64_t minColumnsAtOnce = 64;

int64_t tegula::columnsAtOnce(const TileLoopPlan &plan, const TileLoopShape &tile,
                              const TileLoopProduct &product) {
  int64_t all = tile.blockShare(product.fixed);
  return !product.addsTiles() || hasRegisters(plan, tile, all) ? all : minColumnsAtOnce;
}

/// Blocks of clusters of so many.
static SmallVector<TileLoopShape> rankWithClusters(const TileLoopPlan &plan,
                                                   int64_t clusterBlocks) {
  tgl::AxesOp axes = tgl::axesOfOp(tgl::ParallelOp(plan.op));
  int64_t rows = *tgl::knownPoints(axes, {plan.row}), batch = *tgl::plannedPoints(axes, plan.batch);
  int64_t warpgroups =
      divideCeil(rows, 128) * batch * clusterBlocks >= device::multiprocessors && rows > 64 ? 2 : 1;
  SmallVector<TileLoopShape> ranked;
  for (int64_t groups : {warpgroups, 3 - warpgroups}) {
    // Warp-specialised blocks first.
    for (bool isSpecialized : {true, false})
      for (int64_t columns : {128, 64}) {
        TileLoopShape tile{groups, columns, clusterBlocks};
        if (isWarpSpecialized(plan, tile) != isSpecialized || (addsTiles(plan) && columns > 64))
          continue;
        if (hasRegisters(plan, tile, minColumnsAtOnce) &&
            sharedBytesOf(plan, tile) <= maxSharedBytes)
          ranked.push_back(tile);
      }
    if (ranked.empty()) // the other number is not worth it
      break;
  }
  return ranked;
}

SmallVector<TileLoopShape> tegula::rankTileLoopShapes(const TileLoopPlan &plan, Mismatch *why) {
  auto none = [&](const Twine &reason) {
    if (why)
      *why = {reason.str(), "", plan.op, false};
    return SmallVector<TileLoopShape>();
  };
  constexpr int64_t fewest = 16;
  tgl::AxesOp axes = tgl::axesOfOp(tgl::ParallelOp(plan.op));
  int64_t rows = *tgl::knownPoints(axes, {plan.row});
  std::optional<int64_t> batch = tgl::plannedPoints(axes, plan.batch);
  if (!tgl::Invariance::of(tgl::ParallelOp(plan.op)).isFree()) {
    if (!splitPrecisionTensors(plan).empty())
      return none("the accuracy check of f32 computes all rows again, and what a row is may not "
                  "depend on others where a size is invariant");
    if (!plan.masks.empty() && !tgl::knownPoints(axes, plan.batch))
      return none("ranges of columns that data masks are kept for a number of rows that is known");
  }
  if (rows < fewest || plan.extent < fewest || !batch || *batch == 0)
    return none(Twine(rows) + " rows walk " + Twine(plan.extent) + " points: fewer than " +
                Twine(fewest) + " of either, so a thread for a row is as fast");
  if (rows < 64 &&
      !splitPrecisionTensors(plan)
           .empty()) // so few read each factor little more often than splitting it does
    return none(Twine(rows) + " rows of f32: fewer than 64, so splitting the operands for tensor "
                              "cores takes as long as it saves");
  int64_t largest = plan.maxColumns > maxColumns ? maxParts : 1;
  for (int64_t clusterBlocks = 1; clusterBlocks <= largest; clusterBlocks *= 2)
    if (TileLoopShape{1, 64, clusterBlocks}.blockShare(plan.maxColumns) <= maxColumns)
      if (SmallVector<TileLoopShape> ranked = rankWithClusters(plan, clusterBlocks);
          !ranked.empty())
        return ranked;
  return none("the sums and operands of a tile fit neither into registers nor into shared memory");
}
