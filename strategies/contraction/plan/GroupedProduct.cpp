//===- GroupedProduct.cpp - Matches grouped matrix products ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/GroupedProduct.h"

#include "mlir/IR/IRMapping.h"
#include "passes/analysis/SameValue.h"
#include "strategies/contraction/plan/TensorTile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// Elements of one of the matrices; nothing where sizes are not known.
static std::optional<int64_t> elementsOfMatrix(const GroupedProduct &product) {
  int64_t elements = 1;
  for (IndexExprAttr dim : ReadOp(product.chosen).getTensorType().getDims()) {
    std::optional<int64_t> extent = dim.getExpr().asConstant();
    if (!extent || llvm::MulOverflow(elements, *extent, elements))
      return std::nullopt;
  }
  return elements / product.groups;
}

/// Whether the launches that sort rows are paid for: there are many rows of each group, and work,
/// or rows would read matrices again that are more than those launches take the time of. Matrices
/// of f32 are split into terms first, which is as much as reading them three times.
static bool paysForSorting(const GroupedProduct &product, int64_t work) {
  constexpr int64_t manyRows = 16, fewRows = 2, minWork = 1 << 22;
  constexpr int64_t bytesOfLaunches = 64 << 20, termBits = 16;
  int64_t rowsOfGroup = product.numRows / product.groups;
  if (rowsOfGroup >= manyRows)
    return work >= minWork;
  int64_t bits = ReadOp(product.chosen).getTensorType().getElementType().getIntOrFloatBitWidth();
  std::optional<int64_t> elements = elementsOfMatrix(product);
  return rowsOfGroup >= fewRows && elements && bits <= termBits &&
         *elements >= bytesOfLaunches * 8 / bits / (product.numRows - product.groups);
}

static std::optional<int64_t> extentOf(BlockArgument axis) {
  if (!axesOpOf(axis) || lowOf(axis).asConstant() != 0)
    return std::nullopt;
  return highOf(axis).asConstant();
}

/// Products that the sum adds up at all points of its statement.
static std::optional<int64_t> workOf(ReduceOp reduce) {
  int64_t work = 1;
  for (Operation *around = reduce; around; around = around->getParentOp())
    if (auto axes = dyn_cast<AxesOp>(around)) {
      std::optional<int64_t> points = knownPoints(axes);
      if (!points || llvm::MulOverflow(work, *points, work))
        return std::nullopt;
    }
  return work;
}

/// The read as a matrix that data chooses, with columns of its own.
static std::optional<GroupedProduct> matchChosen(ReduceOp reduce, const Contraction::Factor &factor,
                                                 bool summed) {
  auto read = factor.value.getDefiningOp<ReadOp>();
  if (!read || read.getFill() ||
      read.getGuard()) // what takes the place of a missing matrix is no group's
    return std::nullopt;
  for (auto [subscript, dim] :
       llvm::zip_equal(read.getSubscriptExprs(), read.getTensorType().getDims())) {
    Value key = subscript.asValue();
    std::optional<int64_t> groups = dim.getExpr().asConstant();
    if (!key || isa<BlockArgument>(key) || !groups || *groups < 1)
      continue;
    GroupedProduct product{read, key, axesOf(key), 1, *groups};
    auto isSummed = [&](BlockArgument axis) { return axis.getOwner()->getParentOp() == reduce; };
    if (product.rows.empty() || llvm::any_of(product.rows, isSummed) != summed ||
        llvm::all_of(cast<AxesOp>(reduce.getOperation()).getAxes(),
                     [&](BlockArgument axis) { return product.rows.contains(axis); }))
      continue;
    if (llvm::all_of(factor.axes, [&](BlockArgument axis) {
          return isSummed(axis) || product.rows.contains(axis);
        }))
      continue; // a row that data chooses
    for (BlockArgument axis : product.rows) {
      std::optional<int64_t> extent = extentOf(axis);
      if (!extent || llvm::MulOverflow(product.numRows, *extent, product.numRows))
        return std::nullopt;
    }
    return product;
  }
  return std::nullopt;
}

std::optional<GroupedProduct> tegula::matchGroupedProduct(ReduceOp reduce, bool summed) {
  std::optional<Contraction> contraction = matchContraction(reduce);
  if (!contraction || reduce.getFilter() || !reduce.getType().isF32())
    return std::nullopt;
  std::optional<GroupedProduct> found;
  for (const Contraction::Factor &factor : contraction->factors) {
    std::optional<GroupedProduct> product = matchChosen(reduce, factor, summed);
    if (product && found)
      return std::nullopt; // two matrices for a row
    if (product)
      found = product;
  }
  std::optional<int64_t> work = workOf(reduce);
  if (!found || !work || !paysForSorting(*found, *work) ||
      found->numRows > std::numeric_limits<int32_t>::max() / 2)
    return std::nullopt;
  return found;
}

bool tegula::computedAlike(Value first, Value second) {
  if (first == second)
    return true;
  Operation *one = first.getDefiningOp(), *other = second.getDefiningOp();
  if (!one || !other || one->getNumRegions() || one->getName() != other->getName() ||
      makesMemory(one) || one->getAttrDictionary() != other->getAttrDictionary() ||
      one->getNumOperands() != other->getNumOperands() ||
      cast<OpResult>(first).getResultNumber() != cast<OpResult>(second).getResultNumber())
    return false;
  return llvm::all_of(llvm::zip_equal(one->getOperands(), other->getOperands()), [](auto both) {
    return computedAlike(std::get<0>(both), std::get<1>(both));
  });
}

//===----------------------------------------------------------------------===//
// Sums over the matrices of a row
//===----------------------------------------------------------------------===//

/// Copies what `value` is computed by inside of `around`, but for what `map` has.
static Value copySlice(OpBuilder &builder, IRMapping &map, Value value, Operation *around) {
  Operation *definition = value.getDefiningOp();
  if (map.contains(value) || !definition || !around->isProperAncestor(definition))
    return map.lookupOrDefault(value);
  for (Value operand : valuesUsedBy(definition))
    copySlice(builder, map, operand, around);
  return builder.clone(*definition, map)->getResult(cast<OpResult>(value).getResultNumber());
}

/// A sum over copies of the axes of the factors' product, times `also`.
static ReduceOp sumOfProduct(OpBuilder &builder, ReduceOp like, ArrayRef<BlockArgument> axes,
                             IRMapping map, ArrayRef<Value> factors, Operation *around,
                             llvm::function_ref<Value(OpBuilder &, IRMapping &)> also) {
  Location loc = like.getLoc();
  SmallVector<AxisSpec> specs;
  for (BlockArgument axis : axes)
    specs.push_back(getAxisSpec(cast<AxesOp>(like.getOperation()), axis.getArgNumber()));
  auto sum = ReduceOp::create(builder, loc, like.getType(), ReduceKind::Sum, specs);
  if (Attribute precision = like->getAttr(precisionAttrName))
    sum->setAttr(precisionAttrName, precision);
  Block &body = sum.getBody().front();
  if (!body.empty())
    body.back().erase();
  OpBuilder inside = OpBuilder::atBlockEnd(&body);
  for (auto [axis, own] : llvm::zip_equal(axes, sum.getAxes()))
    map.map(axis, own);
  Value product = also ? also(inside, map) : Value();
  for (Value factor : factors) {
    Value value = copySlice(inside, map, factor, around);
    product =
        product ? arith::MulFOp::create(inside, loc, product, value, arith::FastMathFlags::contract)
                      .getResult()
                : value;
  }
  YieldOp::create(inside, loc, SmallVector<Value>{product});
  return sum;
}

static bool splitSum(ParallelOp statement, ReduceOp reduce) {
  constexpr int64_t maxParts = int64_t(1) << 31;
  std::optional<GroupedProduct> product = matchGroupedProduct(reduce, /*summed=*/true);
  auto axes = cast<AxesOp>(statement.getOperation()), summed = cast<AxesOp>(reduce.getOperation());
  if (!product)
    return false;
  SmallVector<BlockArgument> outer, inner;
  for (BlockArgument axis : summed.getAxes()) {
    if (!extentOf(axis))
      return false;
    (product->rows.contains(axis) ? outer : inner).push_back(axis);
  }
  SmallVector<Value> ofOuter, ofInner, points;
  std::optional<Contraction> contraction = matchContraction(reduce);
  for (const Contraction::Factor &factor : contraction->factors) {
    bool isInner =
        llvm::any_of(inner, [&](BlockArgument axis) { return factor.axes.contains(axis); });
    (isInner ? ofInner : ofOuter).push_back(factor.value);
  }
  // part[n, j, m]: neighbours of the result stay neighbours
  llvm::append_range(points, axes.getAxes());
  points.insert(points.end() - !points.empty(), outer.begin(), outer.end());
  int64_t parts = 1;
  SmallVector<IndexExprAttr> dims;
  for (Value point : points) {
    std::optional<int64_t> extent = extentOf(cast<BlockArgument>(point));
    if (!extent || llvm::MulOverflow(parts, *extent, parts) || parts > maxParts)
      return false;
    dims.push_back(IndexExprAttr::get(statement.getContext(), *extent));
  }
  Location loc = reduce.getLoc();
  auto launch = statement->getParentOfType<LaunchOp>();
  OpBuilder front(launch ? launch.getOperation() : statement.getOperation()), before(statement),
      own(reduce);
  Value part = TempOp::create(
      front, loc, TglTensorType::get(statement.getContext(), dims, reduce.getType()), "part");
  auto placeOf = [&](const IRMapping &map) {
    return llvm::map_to_vector(points,
                               [&](Value point) { return ValueExpr(map.lookupOrDefault(point)); });
  };
  IRMapping map;
  ParallelOp first = copyAxes(before, loc, points, map);
  OpBuilder inside = OpBuilder::atBlockEnd(&first.getBody().front());
  ReduceOp its = sumOfProduct(inside, reduce, inner, map, ofInner, statement, nullptr);
  WriteOp::create(inside, loc, its.getResult(), part, placeOf(map));
  ReduceOp sum = sumOfProduct(own, reduce, outer, IRMapping(), ofOuter, reduce,
                              [&](OpBuilder &b, IRMapping &at) {
                                return ReadOp::create(b, loc, part, placeOf(at)).getResult();
                              });
  reduce.getResult().replaceAllUsesWith(sum.getResult());
  reduce.erase();
  return true;
}

unsigned tegula::splitGroupedSums(ParallelOp statement) {
  unsigned split = 0;
  for (ReduceOp reduce : llvm::make_early_inc_range(statement.getBody().getOps<ReduceOp>()))
    split += splitSum(statement, reduce);
  return split;
}

//===----------------------------------------------------------------------===//
// Tiles that share a matrix
//===----------------------------------------------------------------------===//

std::optional<ChosenMatrix> tegula::chosenMatrix(const ContractionPlan &plan,
                                                 const ContractionOperand &operand) {
  if (!operand.isPlain || ReadOp(operand.read).getFill())
    return std::nullopt;
  ReadOp read = operand.read;
  AxesOp axes = cast<AxesOp>(ParallelOp(plan.op).getOperation());
  auto isOfBatch = [&](BlockArgument axis) {
    return axis.getOwner() == axes.getAxesBlock() &&
           llvm::is_contained(plan.batch, axis.getArgNumber());
  };
  std::optional<ChosenMatrix> chosen;
  for (auto [subscript, dim] :
       llvm::zip_equal(read.getSubscriptExprs(), read.getTensorType().getDims())) {
    if (llvm::none_of(subscript.operands(),
                      [&](Value value) { return llvm::any_of(axesOf(value), isOfBatch); }))
      continue;
    Value number = subscript.asValue();
    std::optional<int64_t> count = dim.getExpr().asConstant();
    if (chosen || !number || !count || isa<BlockArgument>(number) ||
        !llvm::all_of(axesOf(number), isOfBatch))
      return std::nullopt;
    chosen = {number, *count};
  }
  return chosen;
}

double tegula::shareOfMatrices(const ContractionPlan &plan, const ContractionOperand &operand) {
  std::optional<ChosenMatrix> chosen = chosenMatrix(plan, operand);
  std::optional<int64_t> batch =
      knownPoints(cast<AxesOp>(ParallelOp(plan.op).getOperation()), plan.batch);
  return chosen && batch && *batch ? double(chosen->count) / *batch : 1;
}
