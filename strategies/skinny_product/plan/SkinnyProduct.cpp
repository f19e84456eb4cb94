//===- SkinnyProduct.cpp - Plans products of few rows ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/skinny_product/plan/SkinnyProduct.h"

#include "ir/tgl/Runs.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "strategies/contraction/plan/ContractionPlan.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace tegula;
using mlir::BlockArgument;
using tgl::ValueExpr;

/// A lane takes four neighbours along the sum for each mma.sync, and has at most so many at a time.
static constexpr int64_t leastVector = 4, mostVector = 32, usualVector = 16;

namespace {
/// The types of 16 bits of which a value is a number.
struct Numbers {
  bool ofBF16 = false, ofF16 = false;
};

class Planner : MatcherBase {
public:
  explicit Planner(tgl::ParallelOp op) : op(op), axes(tgl::axesOfOp(op)) { plan.op = op; }

  Matched<SkinnyProductPlan> run() {
    if (find())
      return std::move(plan);
    return std::move(why);
  }

private:
  SkinnyProductPlan plan;
  tgl::ParallelOp op;
  tgl::AxesOp axes;

  bool find() {
    SmallVector<tgl::ReduceOp> sums;
    for (mlir::Operation &inner : op.getBody().front()) {
      if (auto reduce = dyn_cast<tgl::ReduceOp>(inner))
        sums.push_back(reduce);
      else if (inner.getNumRegions() || isa<tgl::TempOp, tgl::SortOp>(inner))
        return failAsOther(&inner, "the statement has more than sums of products");
    }
    if (sums.empty())
      return failAsOther(op, describe(op) + " has no sum of products");
    for (tgl::ReduceOp sum : sums)
      if (!takeFactors(sum))
        return false;
    if (!findAxes())
      return false;
    for (SkinnyFactors &one : plan.products)
      if (!takeNumbers(one))
        return false;
    return checkAccesses();
  }

  /// A weight of packed numbers is expected to match, one of others (an image behind a function) is
  /// not.
  bool failIfPacked(mlir::Operation *where, const Twine &reason, const Twine &edit = "") {
    fail(where, reason, edit);
    why.isOther = !plan.isPacked;
    return false;
  }

  //===--- Factors ---===//

  /// The factors that vary with columns, and with rows or nothing.
  bool takeFactors(tgl::ReduceOp sum) {
    std::optional<tgl::Contraction> contraction = tgl::matchContraction(sum);
    if (!contraction || !sum.getType().isF32())
      return failAsOther(sum, describe(sum) + " adds up no products of floats");
    if (contraction->factors.size() != 2)
      return failOfFactors(*contraction);
    auto statementAxes = [&](const tgl::Contraction::Factor &factor) {
      tgl::AxisSet result;
      for (BlockArgument axis : factor.axes)
        if (axis.getOwner() == axes.getAxesBlock())
          result.insert(axis);
      return result;
    };
    for (unsigned number : {0, 1}) {
      const auto &weight = contraction->factors[number],
                 &activation = contraction->factors[1 - number];
      tgl::AxisSet ofWeight = statementAxes(weight), ofActivation = statementAxes(activation);
      bool hasColumns =
          any_of(ofWeight, [&](BlockArgument axis) { return !ofActivation.contains(axis); });
      // Tensor cores multiply bytes as they are.
      bool areBytes = isReadOfF8(weight.value) && isReadOfF8(activation.value);
      if (!hasColumns || !isComputed(weight.value) || areBytes)
        continue;
      plan.products.push_back({sum, weight.value, activation.value, mlir::Type(), 0, 0});
      plan.isPacked |= isPacked(weight.value);
      return true;
    }
    return failAsOther(sum, describe(sum) + " has no factor that is computed from packed numbers");
  }

  /// Where one of more than two factors is packed, and has few rows, somebody expects a match.
  bool failOfFactors(const tgl::Contraction &contraction) {
    tgl::ReduceOp sum = contraction.reduce;
    std::string reason = describe(sum) + " has more than two factors";
    for (const tgl::Contraction::Factor &factor : contraction.factors) {
      SmallVector<unsigned> others;
      for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
        if (!factor.axes.contains(axes.getAxes()[axis]))
          others.push_back(axis);
      std::optional<int64_t> points = tgl::knownPoints(axes, others);
      if (isPacked(factor.value) && others.size() < axes.getAxes().size() && points &&
          *points <= mostSkinnyRows)
        return fail(sum, reason,
                    "round the product of those that vary with columns, as in `bf16(...)`");
    }
    return failAsOther(sum, reason);
  }

  /// Whether it is another value than an element of 16 or 32 bits.
  static bool isComputed(mlir::Value value) {
    auto read = value.getDefiningOp<tgl::ReadOp>();
    return !read || !isa<mlir::FloatType>(read.getTensorType().getElementType()) ||
           read.getTensorType().getElementType().getIntOrFloatBitWidth() < 16;
  }

  static bool isReadOfF8(mlir::Value value) {
    auto read = value.getDefiningOp<tgl::ReadOp>();
    mlir::Type element = read ? read.getTensorType().getElementType() : mlir::Type();
    return element && isa<mlir::FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
  }

  /// Whether it is computed from numbers of fewer bits than it has.
  bool isPacked(mlir::Value value) {
    SetVector<mlir::Operation *> slice;
    collect(value, slice);
    return any_of(slice, [](mlir::Operation *inner) {
      auto read = dyn_cast<tgl::ReadOp>(inner);
      if (!read)
        return false;
      mlir::Type element = read.getTensorType().getElementType();
      return isa<mlir::IntegerType>(element) || element.getIntOrFloatBitWidth() < 16;
    });
  }

  //===--- Axes ---===//

  bool findAxes() {
    tgl::AxisSet ofWeights, ofActivations;
    for (const SkinnyFactors &one : plan.products) {
      ofWeights.insert_range(tgl::axesOf(one.weight));
      ofActivations.insert_range(tgl::axesOf(one.activation));
    }
    SmallVector<unsigned> batches;
    std::optional<unsigned> column;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis) {
      BlockArgument argument = axes.getAxes()[axis];
      std::optional<int64_t> points = tgl::knownPoints(axes, {axis});
      if (!points || tgl::getAxisRange(axes, axis).lo.asConstant() != 0)
        return failIfPacked(op, "the size of " + namesOf(argument) + " is not known when compiling",
                            "compile for known sizes (-d), as PyTorch calls and bench do");
      if (!ofWeights.contains(argument)) {
        plan.rows.push_back(axis);
      } else if (!ofActivations.contains(argument) &&
                 (!column || *points >= *tgl::knownPoints(axes, {*column}))) {
        if (column)
          batches.push_back(*column);
        column = axis;
      } else {
        batches.push_back(axis);
      }
    }
    if (!column)
      return failAsOther(op, "no axis of " + describe(op) + " is one of columns alone");
    plan.column = *column;
    plan.numRows = *tgl::knownPoints(axes, plan.rows);
    plan.numColumns = *tgl::knownPoints(axes, {*column});
    plan.batches = *tgl::knownPoints(axes, batches);
    if (plan.numRows > mostSkinnyRows)
      return failAsOther(op, std::to_string(plan.numRows) + " rows are more than the " +
                                 std::to_string(mostSkinnyRows) + " of a product of few rows");
    if (plan.numRows < 1 || plan.numColumns < 1 || plan.batches < 1)
      return failAsOther(op, "there are no points");
    return true;
  }

  //===--- Numbers, and the sum ---===//

  /// Whether the integer is one of at most 8 bits, with a sign or without.
  static bool isByte(mlir::Value value) {
    if (auto read = value.getDefiningOp<tgl::ReadOp>()) {
      auto element = dyn_cast<mlir::IntegerType>(read.getTensorType().getElementType());
      return element && element.getWidth() <= 8 && !read.getFill();
    }
    mlir::Operation *inner = value.getDefiningOp();
    if (isa_and_nonnull<mlir::arith::ExtSIOp, mlir::arith::ExtUIOp, mlir::arith::TruncIOp>(inner))
      return isByte(inner->getOperand(0));
    mlir::APInt mask;
    return isa_and_nonnull<mlir::arith::AndIOp>(inner) &&
           matchPattern(inner->getOperand(1), mlir::m_ConstantInt(&mask)) && mask.isIntN(8);
  }

  static Numbers ofElement(mlir::Type element) {
    bool isSmallFloat = isa<mlir::FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
    return {element.isBF16() || isSmallFloat, element.isF16() || isSmallFloat};
  }

  static Numbers numbersOf(mlir::Value factor) {
    mlir::Operation *inner = factor.getDefiningOp();
    if (auto rounded = dyn_cast_or_null<tgl::ConvertOp>(inner))
      return ofElement(rounded.getTarget());
    if (auto read = dyn_cast_or_null<tgl::ReadOp>(inner)) {
      bool fillsWithZero = !read.getFill() ||
                           matchPattern(read.getFill(), mlir::m_AnyZeroFloat()) ||
                           matchPattern(read.getFill(), mlir::m_Zero());
      return fillsWithZero ? ofElement(read.getTensorType().getElementType()) : Numbers();
    }
    bool isSmall = isa_and_nonnull<mlir::arith::SIToFPOp, mlir::arith::UIToFPOp>(inner) &&
                   isByte(inner->getOperand(0));
    return {isSmall, isSmall};
  }

  bool takeNumbers(SkinnyFactors &one) {
    tgl::ReduceOp sum = one.reduce;
    tgl::AxesOp summed = tgl::axesOfOp(sum);
    if (sum.getFiltered())
      return failIfPacked(sum, describe(sum) + " has a condition");
    if (summed.getAxes().size() != 1)
      return failIfPacked(sum, describe(sum) + " runs over several axes",
                          "write it over one, with `k // 128` for the group");
    std::optional<int64_t> depth = tgl::knownPoints(summed);
    if (!depth || tgl::getAxisRange(summed, 0).lo.asConstant() != 0)
      return failIfPacked(
          sum, "the range of " + describe(sum) + " is not known when compiling, from 0 on",
          "compile for known sizes (-d), as PyTorch calls and bench do");
    one.depth = *depth;
    Numbers weight = numbersOf(one.weight), activation = numbersOf(one.activation);
    mlir::MLIRContext *context = sum.getContext();
    if (weight.ofBF16 && activation.ofBF16)
      one.element = mlir::BFloat16Type::get(context);
    else if (weight.ofF16 && activation.ofF16)
      one.element = mlir::Float16Type::get(context);
    else
      return failIfPacked(
          sum, "the factors of " + describe(sum) + " are not both numbers of bf16, or of f16",
          "round the computed one to the other's type, as in `bf16(...)`");
    if (one.depth % leastVector != 0)
      return failIfPacked(sum,
                          describe(sum) + " has " + std::to_string(one.depth) +
                              " terms, no multiple of " + std::to_string(leastVector),
                          "pad the sum with zeros");
    one.vector = vectorOf(one);
    if (one.vector < leastVector)
      return failIfPacked(sum,
                          "a load of a factor of " + describe(sum) + " has fewer than " +
                              std::to_string(leastVector) + " numbers, of 64 bits each",
                          "give the factor numbers of at most 32 bits");
    return true;
  }

  /// All operations of the statement that a value is computed from.
  void collect(mlir::Value value, SetVector<mlir::Operation *> &slice) {
    mlir::Operation *definition = value.getDefiningOp();
    if (!definition || !op->isProperAncestor(definition) || !slice.insert(definition))
      return;
    for (mlir::Value operand : definition->getOperands())
      collect(operand, slice);
  }

  /// So many that the packed numbers of a lane are 16 bytes, where they lie along the sum.
  int64_t vectorOf(const SkinnyFactors &one) {
    constexpr int64_t loadBits = 128;
    BlockArgument k = tgl::axesOfOp(one.reduce).getAxes()[0];
    SetVector<mlir::Operation *> slice;
    collect(one.weight, slice);
    int64_t vector = mostVector;
    for (mlir::Operation *inner : slice) {
      auto read = dyn_cast<tgl::ReadOp>(inner);
      if (!read || !is_contained(read.getIndices(), k) ||
          !tgl::axesOf(read.getResult()).contains(axes.getAxes()[plan.column]))
        continue;
      int64_t run = mostVector;
      for (const ValueExpr &subscript : read.getSubscriptExprs())
        run = std::min(run, tgl::runAlong(subscript, k, mostVector));
      ValueExpr offset = tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs());
      bool isAlong = tgl::stepAlong(offset.substitute(k, ValueExpr(k) * ValueExpr(run)), k) == 1;
      int64_t bits = read.getTensorType().getElementType().isInteger(1)
                         ? 8
                         : read.getTensorType().getElementType().getIntOrFloatBitWidth();
      vector = std::min(vector, isAlong ? loadBits / bits * run : std::max(run, usualVector));
    }
    // Registers of a lane: its neighbours of all rows.
    if (plan.numRows > mostSkinnyRows / 2)
      vector = std::min(vector, usualVector);
    while (vector >= leastVector && one.depth % vector != 0)
      vector /= 2;
    return vector;
  }

  /// Points of a block are computed together: none may see what another writes, nor a sum the
  /// result of one before it.
  bool checkAccesses() {
    // Sums over results that a contraction begins in its tiles.
    for (tgl::WriteOp write : op.getBody().getOps<tgl::WriteOp>())
      if (write->hasAttr(partialAttrName))
        return failAsOther(write, "parts of a reduction are written");
    tgl::Accesses accesses = tgl::accessesOf(op);
    for (mlir::Value tensor : accesses.writes)
      if (accesses.reads.contains(tensor))
        return fail(op, describeTensor(tensor) + " is read and written");
    for (const SkinnyFactors &one : plan.products) {
      SetVector<mlir::Operation *> slice;
      collect(one.weight, slice);
      collect(one.activation, slice);
      if (any_of(slice, [&](mlir::Operation *inner) {
            return inner->getNumRegions() || isa<tgl::WriteOp>(inner);
          }))
        return fail(one.reduce, describe(one.reduce) + " needs the result of one before it");
    }
    return true;
  }
};
} // namespace

Matched<SkinnyProductPlan> tegula::planSkinnyProduct(tgl::ParallelOp op) {
  return Planner(op).run();
}

//===----------------------------------------------------------------------===//
// The shape of a block
//===----------------------------------------------------------------------===//

/// Columns of a block: fragments of 16, of which a lane has twice as many rows as there are.
static constexpr int64_t columnChoices[] = {64, 32, 16};

std::string SkinnyProductShape::name() const {
  return (Twine(columns) + "x" + Twine(rows) + "x" + Twine(depth())).str();
}

mlir::Attribute SkinnyProductShape::toAttribute(mlir::MLIRContext *context) const {
  return mlir::DenseI64ArrayAttr::get(context, {columns, rows, vector});
}

std::optional<SkinnyProductShape> SkinnyProductShape::of(tgl::ParallelOp op) {
  auto shape = op->getAttrOfType<mlir::DenseI64ArrayAttr>(attributeName);
  if (!shape || shape.size() != 3)
    return std::nullopt;
  return SkinnyProductShape{shape[0], shape[1], shape[2]};
}

static std::string columnsName(int64_t columns) { return std::to_string(columns) + "-columns"; }

std::vector<std::string> tegula::skinnyTileNames() {
  std::vector<std::string> names;
  for (int64_t columns : columnChoices)
    names.push_back(columnsName(columns));
  return names;
}

Matched<SkinnyProductShape> tegula::chooseSkinnyProductShape(const SkinnyProductPlan &plan,
                                                             const TargetInfo &target,
                                                             StringRef wanted) {
  constexpr int64_t fragment = 8;
  SkinnyProductShape shape;
  shape.rows = alignTo(plan.numRows, fragment);
  shape.vector = mostVector;
  for (const SkinnyFactors &one : plan.products)
    shape.vector = std::min(shape.vector, one.vector);
  // All warps have a slice of a short sum, if short ones.
  int64_t depth = 0;
  for (const SkinnyFactors &one : plan.products)
    depth = std::max(depth, one.depth);
  while (shape.vector > usualVector / 2 && shape.depth() > depth)
    shape.vector /= 2;
  SmallVector<StringRef> names;
  wanted.split(names, ',');
  for (int64_t columns : columnChoices)
    if (is_contained(names, columnsName(columns))) {
      shape.columns = columns;
      return shape;
    }
  if (any_of(names, [](StringRef name) { return !name.empty(); }))
    return Mismatch{"a tile of another strategy is asked for", "", plan.op, true};
  auto blocksOf = [&](int64_t columns) {
    return plan.batches * int64_t(divideCeil(plan.numColumns, columns));
  };
  // A multiprocessor's time goes with the columns that it gets; the rows are read once for a block.
  int64_t fewest = INT64_MAX;
  for (int64_t columns : columnChoices) {
    // Accumulators and rows share a lane's registers.
    if (columns == columnChoices[0] && plan.numRows > mostSkinnyRows / 2)
      continue;
    int64_t most = columns * divideCeil(blocksOf(columns), int64_t(target.multiprocessors));
    if (most < fewest) {
      fewest = most;
      shape.columns = columns;
    }
  }
  if (4 * blocksOf(shape.columns) < int64_t(target.multiprocessors))
    return Mismatch{std::to_string(plan.numColumns * plan.batches) +
                        " columns fill less than a quarter of " +
                        std::to_string(target.multiprocessors) + " multiprocessors, " +
                        std::to_string(shape.columns) + " in a block",
                    "", plan.op, !plan.isPacked};
  return shape;
}

bool tegula::isSkinnyProduct(tgl::ParallelOp op) {
  Matched<SkinnyProductPlan> plan = planSkinnyProduct(op);
  return plan && chooseSkinnyProductShape(*plan, TargetInfo::measured());
}
