//===- RowTiles.cpp - Rows that go through a tile loop together -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/RowTiles.h"

#include "ir/TglUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/DeviceFacts.h"
#include "passes/RowTileBounds.h"

using namespace llvm;
using namespace tegula;
using mlir::BlockArgument;
using tgl::ReduceKind;
using tgl::ValueExpr;

static constexpr StringRef attributeName = "row_tile";
/// Columns of a fragment are eights; a product has up to 256, and a cluster four of them.
static constexpr int64_t fragmentColumns = 8, mostColumns = 256, mostParts = 4;
/// Elements of 16 bits that are copied at a time.
static constexpr int64_t vectorElements = 8;
static constexpr int64_t lineElements = 64;

static tgl::AxesOp axesOfOp(mlir::Operation *op) { return cast<tgl::AxesOp>(op); }

std::optional<int64_t> tegula::elementsOf(mlir::Value tensor) {
  int64_t elements = 1;
  for (tgl::IndexExprAttr dim : cast<tgl::TglTensorType>(tensor.getType()).getDims()) {
    std::optional<int64_t> extent = dim.getExpr().asConstant();
    if (!extent || MulOverflow(elements, *extent, elements))
      return std::nullopt;
  }
  return elements;
}

namespace {
/// Every method gives false where the nest is no such.
class Planner {
public:
  explicit Planner(tgl::ParallelOp op) : op(op), axes(axesOfOp(op)) { plan.op = op; }

  bool run() {
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      if (!tgl::knownPoints(axes, {axis}) || !tgl::getAxisRange(axes, axis).lo.asConstant())
        return false;
    tgl::Accesses accesses = tgl::accessesOf(op);
    for (mlir::Value tensor : accesses.writes)
      if (accesses.reads.contains(tensor) && !isOwn(tensor))
        return false;
    if (!takeBlock(op.getBody().front()) || plan.products.empty() || !findRow())
      return false;
    for (RowProduct &product : plan.products)
      if (!describe(product))
        return false;
    if (variesAlongRows(plan.tiles.getLowExpr()) || variesAlongRows(plan.tiles.getHighExpr()))
      return false;
    plan.bounds = boundsOfTiles(plan);
    return true;
  }

  RowTilePlan plan;

private:
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
    tgl::AxesOp inner = axesOfOp(nest);
    if (inner.getAxes().size() != 1)
      return std::nullopt;
    tgl::AxisRange range = tgl::getAxisRange(inner, 0);
    if (auto tiles = nest->getParentOfType<tgl::TilesOp>();
        tiles && range.lo.asValue() == tiles.getTileLow())
      return range.hi.asValue() == tiles.getTileHigh() ? std::optional(int64_t(0)) : std::nullopt;
    std::optional<int64_t> extent = range.hi.asConstant();
    if (range.lo.asConstant() != 0 || !extent || *extent % fragmentColumns || *extent <= 0 ||
        *extent > mostParts * mostColumns)
      return std::nullopt;
    plan.mostColumns = std::max(plan.mostColumns, *extent);
    return extent;
  }

  /// A part of the tile, which each row may have its own of.
  bool isInTile(tgl::ReduceOp reduce) {
    auto tiles = reduce->getParentOfType<tgl::TilesOp>();
    tgl::AxesOp own = axesOfOp(reduce);
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

  bool takeNest(tgl::ParallelOp nest) {
    std::optional<int64_t> space = spaceOfAxis(nest);
    if (!space)
      return false;
    for (mlir::Operation &inner : nest.getBody().front()) {
      if (auto reduce = dyn_cast<tgl::ReduceOp>(inner)) {
        if (!takeProduct(nest, reduce, *space))
          return false;
      } else if (!isPlain(&inner) && !takeAccess(&inner, axesOfOp(nest).getAxes()[0], *space)) {
        return false;
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
      if (!isPlain(&inner) &&
          (isa<tgl::WriteOp>(inner) || !takeAccess(&inner, axesOfOp(reduce).getAxes()[0], *summed)))
        return false;
    RowProduct product;
    product.reduce = reduce;
    product.nest = nest;
    product.sumsTile = *summed == 0;
    product.fixed = std::max(*summed, space);
    BlockArgument columns = axesOfOp(nest).getAxes()[0];
    for (const tgl::Contraction::Factor &factor : contraction->factors) {
      if (factor.axes.contains(columns)) {
        if (product.column || !(product.column = factor.value.getDefiningOp<tgl::ReadOp>()))
          return false;
      } else if (product.sumsTile) {
        product.left = factor.value;
      } else {
        product.row = factor.value.getDefiningOp<tgl::ReadOp>();
      }
    }
    if (!product.column || (product.sumsTile ? !product.left : !product.row))
      return false;
    // The left factor is computed before the nest is.
    for (mlir::Operation &inner : reduce.getBody().front())
      if (product.sumsTile && &inner != product.column &&
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
    if (!space || *space > mostColumns || !is_contained(kinds, reduce.getKind()))
      return false; // blocks that share columns add up products alone
    for (mlir::Operation &inner : reduce.getBody().front())
      if (!isPlain(&inner) &&
          (isa<tgl::WriteOp>(inner) || !takeAccess(&inner, axesOfOp(reduce).getAxes()[0], *space)))
        return false;
    return true;
  }

  bool takeTiles(tgl::TilesOp tiles) {
    std::optional<int64_t> low = tiles.getLowExpr().asConstant(),
                           high = tiles.getHighExpr().asConstant();
    if (plan.tiles || tiles->getParentOp() != op || !low || !high || !tiles.getSize())
      return false;
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
        return false;
    }
    return true;
  }

  /// The last axis along which left factors vary and no right one does.
  bool findRow() {
    for (BlockArgument axis : reverse(axes.getAxes())) {
      bool isRow = false, isFree = true;
      for (RowProduct &product : plan.products) {
        isRow |= product.row && tgl::axesOf(product.row).contains(axis);
        isFree &= !tgl::axesOf(product.column).contains(axis);
      }
      if (!isRow || !isFree)
        continue;
      plan.row = axis.getArgNumber();
      for (unsigned other = 0; other < axes.getAxes().size(); ++other)
        if (other != plan.row)
          plan.batch.push_back(other);
      return true;
    }
    return false;
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
    std::optional<int64_t> elements = elementsOf(read.getTensor());
    return elements && *elements % vectorElements == 0 && isInt<31>(*elements);
  }

  static bool isBare(tgl::ReadOp read) {
    return !read.getGuard() && !read.getFill() && read.getExactExprs().empty() &&
           !read.getChecked();
  }

  /// What is rounded to the right factor's type, or has been: elements of a temporary of that type. All else has the
  /// accuracy of f32, and so two planes.
  bool findLeft(RowProduct &product, mlir::Type element) {
    tgl::ReduceOp reduce = product.reduce;
    mlir::Operation *def = product.left.getDefiningOp();
    if (!def || !reduce->isProperAncestor(def) || !product.left.getType().isF32())
      return false;
    auto convert = dyn_cast<tgl::ConvertOp>(def);
    auto read = dyn_cast<tgl::ReadOp>(def);
    if (convert && convert.getTarget() == element && convert.getValue().getType().isF32())
      product.left = convert.getValue();
    else if (!read || !isOwn(read.getTensor()) || read.getTensorType().getElementType() != element)
      product.planes = 2;
    return true;
  }

  bool isSplitWell(RowProduct &product) {
    if (product.planes == 1)
      return true;
    product.isBrain = false;
    return canSplit(product.column) && (!product.row || canSplit(product.row));
  }

  bool describe(RowProduct &product) {
    mlir::Type element = product.column.getTensorType().getElementType();
    if (!(element.isBF16() || element.isF16() || element.isF32()) || !isBare(product.column) ||
        isOwn(product.column.getTensor()))
      return false;
    product.isBrain = element.isBF16();
    product.planes = element.isF32() ? 2 : 1;
    BlockArgument summed = axesOfOp(product.reduce).getAxes()[0],
                  columns = axesOfOp(product.nest).getAxes()[0];
    tgl::AxisRange rows = tgl::getAxisRange(axes, plan.row);
    std::optional<int64_t> low = plan.tiles.getLowExpr().asConstant();
    auto find = [&](tgl::ReadOp read, BlockArgument own, std::optional<int64_t> ownLow,
                    int64_t ownExtent, bool &alongSum) {
      alongSum = isInVectors(read, summed, product.sumsTile ? low : 0,
                             product.sumsTile ? plan.extent : product.fixed);
      return alongSum || isInVectors(read, own, ownLow, ownExtent);
    };
    if (!find(product.column, columns, product.sumsTile ? 0 : low,
              product.sumsTile ? product.fixed : plan.extent, product.columnAlongSum))
      return false;
    if (product.sumsTile)
      return findLeft(product, element) && isSplitWell(product);
    if (!isBare(product.row) || isOwn(product.row.getTensor()) ||
        product.row.getTensorType().getElementType() != element)
      return false;
    tgl::AxisSet varies = tgl::axesOf(product.row);
    if (varies.contains(plan.tiles.getTileLow()) || varies.contains(plan.tiles.getTileHigh()))
      return false;
    return isSplitWell(product) && find(product.row, axes.getAxes()[plan.row], rows.lo.asConstant(),
                                        *tgl::knownPoints(axes, {plan.row}), product.rowAlongSum);
  }
};
} // namespace

std::optional<RowTilePlan> tegula::planRowTiles(tgl::ParallelOp op) {
  Planner planner(op);
  if (!planner.run())
    return std::nullopt;
  return std::move(planner.plan);
}

//===----------------------------------------------------------------------===//
// The shape of a block
//===----------------------------------------------------------------------===//

mlir::Attribute RowTile::toAttribute(mlir::MLIRContext *context) const {
  mlir::Builder builder(context);
  SmallVector<int64_t> shape{rows(), columns};
  if (parts > 1)
    shape.push_back(parts);
  return builder.getDenseI64ArrayAttr(shape);
}

std::optional<RowTile> RowTile::of(tgl::ParallelOp op) {
  auto shape = op->getAttrOfType<mlir::DenseI64ArrayAttr>(attributeName);
  if (!shape || shape.size() < 2 || shape.size() > 3)
    return std::nullopt;
  return RowTile{shape[0] / 64, shape[1], shape.size() == 3 ? shape[2] : 1};
}

bool tegula::sharesSum(const RowProduct &product, const RowTile &tile) {
  return product.row && tile.isShared(product.fixed);
}

int64_t RowTile::partOf(int64_t points) const {
  return points > mostColumns ? alignTo(divideCeil(points, parts), fragmentColumns) : points;
}

static constexpr int64_t mostShared = device::sharedBytes(90);

bool tegula::hasRoles(const RowTilePlan &plan, const RowTile &tile) {
  constexpr size_t mostProducts = 2; // of which barriers are left for
  return tile.warpgroups == 2 && plan.products.size() <= mostProducts;
}

static int64_t bytesWith(const RowTilePlan &plan, const RowTile &tile, int64_t rowStages) {
  int64_t bytes = 0;
  for (const RowProduct &product : plan.products) {
    int64_t fixed = alignTo(tile.partOf(product.fixed), lineElements);
    bytes += 2 * 2 * product.planes * fixed * tile.columns;
    if (product.row)
      bytes += rowStages * 2 * product.planes * fixed * tile.rows();
  }
  return bytes;
}

int64_t tegula::rowStagesOf(const RowTilePlan &plan, const RowTile &tile) {
  return hasRoles(plan, tile) && tile.parts == 1 && bytesWith(plan, tile, 2) <= mostShared ? 2 : 1;
}

static int64_t bytesOfRounds(const RowTile &tile, int64_t rounds) { return 64 * tile.columns / rounds * sizeof(float); }

/// Shared memory for parts of sums from other blocks.
static int64_t exchangeBytes(const RowTilePlan &plan, const RowTile &tile, int64_t rounds) {
  bool isNeeded = any_of(plan.products, [&](const RowProduct &product) { return sharesSum(product, tile); });
  int64_t places = isNeeded ? tile.exchanges() * tile.warpgroups : 0;
  return places * (bytesOfRounds(tile, rounds) + RowTile::exchangeState);
}

int64_t tegula::roundsOf(const RowTilePlan &plan, const RowTile &tile) {
  int64_t rounds = 1;
  while (rounds < tile.columns / fragmentColumns && bytesWith(plan, tile, 1) + exchangeBytes(plan, tile, rounds) > mostShared)
    rounds *= 2;
  return rounds;
}

int64_t tegula::bytesOfRound(const RowTilePlan &plan, const RowTile &tile) {
  return bytesOfRounds(tile, roundsOf(plan, tile));
}

int64_t tegula::sharedBytesOf(const RowTilePlan &plan, const RowTile &tile) {
  return bytesWith(plan, tile, rowStagesOf(plan, tile)) + exchangeBytes(plan, tile, roundsOf(plan, tile));
}

llvm::SetVector<mlir::Value> tegula::splitTensors(const RowTilePlan &plan) {
  llvm::SetVector<mlir::Value> tensors;
  for (const RowProduct &product : plan.products)
    if (product.planes > 1)
      for (tgl::ReadOp read : {product.row, product.column})
        if (read)
          tensors.insert(read.getTensor());
  return tensors;
}

/// Whether a thread's registers have room for the sums in the loop, of products of planes of so many columns at a time.
static bool hasRegisters(const RowTilePlan &plan, const RowTile &tile, int64_t columns) {
  // Of 255 registers the sums in the loop leave some to places and numbers of rows; where factors are split, of 224.
  const int64_t mostRegisters = splitTensors(plan).empty() ? 200 : 180;
  int64_t registers = tile.columns;
  for (tgl::TempOp temp : tgl::ParallelOp(plan.op).getBody().front().getOps<tgl::TempOp>()) { // that the loop carries
    auto type = cast<tgl::TglTensorType>(temp.getTensor().getType());
    registers += tile.partOf(type.getDims()[0].getExpr().asConstant().value_or(mostColumns)) / 2;
  }
  // Products of planes are summed up by themselves, and the left factor is in registers twice.
  int64_t sums = 0;
  for (const RowProduct &product : plan.products)
    if (product.planes > 1 && product.sumsTile)
      sums = std::max(sums, std::min(columns, tile.partOf(product.fixed)) / 2);
  return registers + sums <= mostRegisters;
}

/// A panel of a right factor in shared memory.
static constexpr int64_t fewestAtOnce = 64;

int64_t tegula::columnsAtOnce(const RowTilePlan &plan, const RowTile &tile, const RowProduct &product) {
  int64_t all = tile.partOf(product.fixed);
  return product.planes == 1 || hasRegisters(plan, tile, all) ? all : fewestAtOnce;
}

/// Blocks of clusters of so many.
static SmallVector<RowTile> rankWithParts(const RowTilePlan &plan, int64_t parts) {
  bool isSplit = !splitTensors(plan).empty();
  tgl::AxesOp axes = axesOfOp(tgl::ParallelOp(plan.op));
  int64_t rows = *tgl::knownPoints(axes, {plan.row}), batch = *tgl::knownPoints(axes, plan.batch);
  int64_t warpgroups = divideCeil(rows, 128) * batch * parts >= device::multiprocessors && rows > 64 ? 2 : 1;
  SmallVector<RowTile> ranked;
  for (int64_t groups : {warpgroups, 3 - warpgroups}) {
    for (int64_t columns : {128, 64}) {
      RowTile tile{groups, columns, parts};
      if (isSplit && columns > 64)
        continue;
      if (hasRegisters(plan, tile, fewestAtOnce) && sharedBytesOf(plan, tile) <= mostShared)
        ranked.push_back(tile);
    }
    if (ranked.empty()) // the other number is not worth it
      break;
  }
  return ranked;
}

SmallVector<RowTile> tegula::rankRowTiles(const RowTilePlan &plan) {
  constexpr int64_t fewest = 16;
  tgl::AxesOp axes = axesOfOp(tgl::ParallelOp(plan.op));
  int64_t rows = *tgl::knownPoints(axes, {plan.row});
  std::optional<int64_t> batch = tgl::knownPoints(axes, plan.batch);
  if (rows < fewest || plan.extent < fewest || !batch || *batch == 0)
    return {};
  if (rows < 64 && !splitTensors(plan).empty()) // so few read each factor little more often than splitting it does
    return {};
  int64_t largest = plan.mostColumns > mostColumns ? mostParts : 1;
  for (int64_t parts = 1; parts <= largest; parts *= 2)
    if (RowTile{1, 64, parts}.partOf(plan.mostColumns) <= mostColumns)
      if (SmallVector<RowTile> ranked = rankWithParts(plan, parts); !ranked.empty())
        return ranked;
  return {};
}
