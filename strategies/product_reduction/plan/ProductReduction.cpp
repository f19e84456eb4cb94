//===- ProductReduction.cpp - Reductions over a product's columns --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/product_reduction/plan/ProductReduction.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Outline.h"
#include "passes/analysis/SameValue.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace {
class Matcher : MatcherBase {
public:
  explicit Matcher(ParallelOp op) : plan{op, 0, {}} {}

  Matched<ProductReductionPlan> run() {
    if (matchBody() && matchRows() && matchAccesses())
      return std::move(plan);
    return why;
  }

private:
  ProductReductionPlan plan;

  /// Every reduction of the statement takes a product; what else it has is of single points.
  bool matchBody() {
    for (Operation &op : plan.op.getBody().front()) {
      if (auto reduce = dyn_cast<tgl::ReduceOp>(op)) {
        if (!matchReduction(reduce))
          return false;
      } else if (op.getNumRegions() || isa<TempOp, SortOp>(op)) {
        return failAsOther(&op, "the statement has more than reductions of products");
      }
    }
    return !plan.reductions.empty() ||
           failAsOther(plan.op, describe(plan.op) + " reduces no product");
  }

  bool matchReduction(tgl::ReduceOp reduce) {
    tgl::ReduceOp product;
    for (Operation &op : reduce.getBody().front()) {
      if (!op.getNumRegions())
        continue;
      if (product || !isa<tgl::ReduceOp>(op))
        return failAsOther(&op, describe(reduce) + " is of more than one product");
      product = cast<tgl::ReduceOp>(op);
    }
    if (!product)
      return failAsOther(reduce, describe(reduce) + " is of no product");
    if (!llvm::is_contained({ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min,
                             ReduceKind::ArgMax, ReduceKind::ArgMin, ReduceKind::LogSumExp},
                            reduce.getKind()))
      return fail(reduce, describe(reduce) + " has no state for each row");
    if (!reduce.getReduced().getType().isF32())
      return fail(reduce, describe(reduce) + " is not of f32");
    if (reduce.getFiltered() || product.getFiltered())
      return fail(reduce, describe(reduce) + " has a condition");
    if (instructions(reduce) > maxInstructions)
      return fail(reduce, describe(reduce) + " computes too much at each point",
                  "store the product, and reduce it in another statement");
    if (reduce.getAxes().size() != 1 || product.getAxes().size() != 1)
      return fail(reduce, describe(reduce) + " or its product runs over several axes");
    return matchFactors(reduce, product);
  }

  /// The block's code has the statement's arithmetic once for each accumulator of a thread.
  static constexpr unsigned maxInstructions = 256;

  /// About what one point takes beside the product.
  static unsigned instructions(tgl::ReduceOp reduce) {
    constexpr unsigned ofFunction = 64; // as many as sin
    unsigned sum = 0;
    for (Operation &op : reduce.getBody().front())
      sum += isCostly(&op) ? ofFunction : 1;
    return sum;
  }

  bool matchFactors(tgl::ReduceOp reduce, tgl::ReduceOp product) {
    auto multiply = product.getReduced().getDefiningOp<arith::MulFOp>();
    if (product.getKind() != ReduceKind::Sum || !multiply ||
        multiply->getBlock() != &product.getBody().front())
      return failAsOther(product, describe(product) + " is of no products");
    auto a = multiply.getLhs().getDefiningOp<ReadOp>(),
         b = multiply.getRhs().getDefiningOp<ReadOp>();
    for (ReadOp read : {a, b}) {
      if (!read || read->getBlock() != multiply->getBlock())
        return fail(product, describe(product) + " has a factor that is computed",
                    "give the factor a tensor of its own");
      Type element = read.getTensorType().getElementType();
      if (!element.isBF16() && !element.isF16() && !element.isF32())
        return fail(read, describeTensor(read.getTensor()) + " is none of bf16, f16 and f32");
      if (read.getFill() || read.getGuard() || read.getChecked() || !read.getExactExprs().empty())
        return fail(read, describeTensor(read.getTensor()) + " is read under a condition");
    }
    if (a.getTensorType().getElementType() != b.getTensorType().getElementType())
      return fail(product, describe(product) + " has factors of two types");
    Value column = reduce.getAxes()[0];
    auto usesColumn = [&](ReadOp read) { return llvm::is_contained(read.getIndices(), column); };
    if (usesColumn(a))
      std::swap(a, b);
    if (usesColumn(a) || !usesColumn(b))
      return fail(product, describe(product) + " has no factor that is the same for all columns");
    // Subscripts that data decide would be values of their own.
    for (ReadOp read : {a, b})
      for (Value index : read.getIndices())
        if (!isa<BlockArgument>(index))
          return fail(read, describeTensor(read.getTensor()) + " is read where data says");
    plan.reductions.push_back({reduce, product, a, b});
    return true;
  }

  /// Rows are an axis that all left factors vary along and no right one does, and no bound.
  bool matchRows() {
    auto axes = cast<AxesOp>(plan.op.getOperation());
    for (const AxisRange &range : getAxisRanges(axes))
      if (!range.lo.operands().empty() || !range.hi.operands().empty())
        return fail(plan.op, describe(plan.op) + " has bounds that vary");
    for (unsigned axis = axes.getAxes().size(); axis-- > 0;) {
      Value row = axes.getAxes()[axis];
      auto isRow = [&](ReducedProduct one) {
        auto varies = [&](auto op) { return llvm::is_contained(op.getIndices(), row); };
        return varies(one.a) && !varies(one.b) && !varies(one.reduce) && !varies(one.product) &&
               !llvm::is_contained(one.product.getIndices(), one.reduce.getAxes()[0]);
      };
      if (llvm::all_of(plan.reductions, isRow)) {
        plan.rows = axis;
        return true;
      }
    }
    return fail(plan.op, "no axis of " + describe(plan.op) + " shares the columns of its products");
  }

  /// Points of a block are computed together: none may see what another writes, nor a reduction
  /// the result of one before it.
  bool matchAccesses() {
    llvm::SmallPtrSet<Value, 8> isRead, isDefined, isCombined;
    ParallelOp(plan.op)->walk([&](ReadOp read) { isRead.insert(read.getTensor()); });
    ParallelOp(plan.op)->walk([&](WriteOp write) {
      (write.getCombine() ? isCombined : isDefined).insert(write.getTensor());
    });
    // What adds up has the same result in any order.
    for (Value tensor : accessesOf(plan.op).writes)
      if (isRead.contains(tensor) || (isDefined.contains(tensor) && isCombined.contains(tensor)))
        return fail(plan.op, describeTensor(tensor) + " is read and written");
    llvm::SetVector<Operation *> users; // of results, directly or not
    for (ReducedProduct &one : plan.reductions)
      users.insert(one.reduce->user_begin(), one.reduce->user_end());
    for (unsigned next = 0; next < users.size(); ++next)
      users.insert(users[next]->user_begin(), users[next]->user_end());
    for (Operation *user : users)
      for (ReducedProduct &one : plan.reductions)
        if (one.reduce->isAncestor(user))
          return fail(one.reduce, describe(one.reduce) + " needs the result of one before it");
    return true;
  }
};
} // namespace

Matched<ProductReductionPlan> tegula::planProductReduction(ParallelOp op) {
  return Matcher(op).run();
}

bool ProductReductionPlan::hasF32() const {
  return llvm::any_of(reductions, [](const ReducedProduct &one) {
    return ReadOp(one.a).getTensorType().getElementType().isF32();
  });
}

bool ProductReductionPlan::fitsWarpgroups() const {
  Value row = ParallelOp(op).getAxes()[rows];
  auto isKMajor = [](ReadOp read, Value line) {
    return stepAlong(elementOffset(read.getTensorType(), read.getSubscriptExprs()), line) != 1;
  };
  return !hasF32() && llvm::all_of(reductions, [&](const ReducedProduct &one) {
    return isKMajor(one.a, row) && isKMajor(one.b, tgl::ReduceOp(one.reduce).getAxes()[0]);
  });
}

bool tegula::isOneProduct(ParallelOp first, const ReducedProduct &one, ParallelOp second,
                          const ReducedProduct &other,
                          llvm::ArrayRef<std::pair<Value, Value>> axes) {
  tgl::ReduceOp its = one.reduce, others = other.reduce, product = one.product,
                otherProduct = other.product;
  AxisRange columns = getAxisRange(cast<AxesOp>(its.getOperation()), 0),
            otherColumns = getAxisRange(cast<AxesOp>(others.getOperation()), 0);
  if (!(columns.lo == otherColumns.lo) || !(columns.hi == otherColumns.hi))
    return false;
  SameValue same(first, second);
  for (auto [axis, otherAxis] : axes)
    same.assume(axis, otherAxis);
  same.assume(its.getAxes()[0], others.getAxes()[0]);
  return same.equal(product.getOperation(), otherProduct.getOperation());
}

unsigned ProductReductionPlan::distinctProducts() const {
  SmallVector<std::pair<Value, Value>> axes;
  for (Value axis : ParallelOp(op).getAxes())
    axes.push_back({axis, axis});
  unsigned count = 0;
  for (auto [number, one] : llvm::enumerate(reductions))
    count += llvm::none_of(
        llvm::ArrayRef(reductions).take_front(number),
        [&](const ReducedProduct &before) { return isOneProduct(op, before, op, one, axes); });
  return count;
}

bool ProductReductionPlan::fitsBoxes() const {
  constexpr int64_t unit = 8, line = 64; // elements in 16 bytes, and in a line of shared memory
  auto isBox = [&](ReadOp read, Value lines) {
    std::optional<int64_t> apart =
        stepAlong(elementOffset(read.getTensorType(), read.getSubscriptExprs()), lines);
    return apart && *apart >= line && *apart % unit == 0;
  };
  const ReducedProduct &first = reductions.front();
  return fitsWarpgroups() && distinctProducts() == 1 &&
         isBox(first.a, ParallelOp(op).getAxes()[rows]) &&
         isBox(first.b, tgl::ReduceOp(first.reduce).getAxes()[0]);
}

Attribute ProductReductionShape::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {rows, columns, depth});
}

std::optional<ProductReductionShape> ProductReductionShape::of(ParallelOp op) {
  auto shape = op->getAttrOfType<DenseI64ArrayAttr>(attributeName);
  if (!shape || shape.size() != 3)
    return std::nullopt;
  return ProductReductionShape{shape[0], shape[1], shape[2]};
}

/// Rows that warps share evenly; sums in steps of the 128 bytes of a line in shared memory, 32
/// elements of f32.
static constexpr ProductReductionShape shapes[] = {
    {128, 64, 64}, {64, 64, 64}, {128, 128, 64}, {128, 256, 64}};
static constexpr ProductReductionShape usual = shapes[0], ofWarpgroups = shapes[3];

std::string ProductReductionShape::name() const {
  return (llvm::Twine(rows) + "x" + llvm::Twine(columns) + "x" + llvm::Twine(depth)).str();
}

std::vector<std::string> tegula::productTileNames() {
  std::vector<std::string> names;
  for (const ProductReductionShape &shape : shapes)
    names.push_back(shape.name());
  return names;
}

/// Columns and terms of the product, of the reduction that has the fewest of each; nothing where no
/// terms are known. Columns that are not count as many.
static std::optional<std::pair<int64_t, int64_t>>
columnsAndTerms(const ProductReductionPlan &plan) {
  constexpr int64_t none = std::numeric_limits<int64_t>::max();
  std::pair<int64_t, int64_t> least(none, none);
  for (const ReducedProduct &one : plan.reductions) {
    std::optional<int64_t> columns =
                               knownPoints(cast<AxesOp>(tgl::ReduceOp(one.reduce).getOperation())),
                           terms =
                               knownPoints(cast<AxesOp>(tgl::ReduceOp(one.product).getOperation()));
    if (!terms)
      return std::nullopt;
    least = {std::min(least.first, columns.value_or(none)), std::min(least.second, *terms)};
  }
  return least;
}

/// Warpgroups pay where a tile's sum is long beside what follows, in which nothing is multiplied;
/// or where a warp loads for them (tile-specialize-warps), so that one multiplies while another
/// reduces.
static bool paysForWarpgroups(const ProductReductionPlan &plan, const TargetInfo &target) {
  constexpr int64_t minTermsAlone = 256, minTerms = 64;
  std::optional<std::pair<int64_t, int64_t>> sizes = columnsAndTerms(plan);
  if (!target.hasWgmma || !plan.fitsWarpgroups() || !sizes || sizes->first < ofWarpgroups.columns)
    return false;
  if (sizes->second >= minTermsAlone)
    return true;
  int64_t most = minStepsOfRoles * ofWarpgroups.columns, // more are as good
      steps = llvm::divideCeil(std::min(sizes->first, most), ofWarpgroups.columns) *
              llvm::divideCeil(sizes->second, ofWarpgroups.depth);
  return sizes->second >= minTerms && steps >= minStepsOfRoles && plan.fitsBoxes();
}

/// Warps multiply at half the rate of a stored product's tiles: that takes more than 12 bytes of
/// memory for each point where sums are long.
bool tegula::beatsStoredProduct(const ProductReductionPlan &plan, const TargetInfo &target,
                                StringRef wanted) {
  constexpr int64_t maxTermsOfWarps = 256;
  std::optional<std::pair<int64_t, int64_t>> sizes = columnsAndTerms(plan);
  Matched<ProductReductionShape> shape = chooseProductReductionShape(plan, target, wanted);
  return shape && !plan.hasF32() && sizes &&
         (shape->isForWarpgroups() || sizes->second <= maxTermsOfWarps);
}

std::optional<int64_t> tegula::chooseColumnsOfPiece(const ProductReductionPlan &plan,
                                                    const ProductReductionShape &shape,
                                                    const TargetInfo &target) {
  // Half of what L2 has, whose halves both keep what their multiprocessors read.
  constexpr int64_t l2Bytes = int64_t(24) << 20, elementBytes = 2;
  constexpr int64_t minSteps = minStepsOfRoles; // of a block: it takes some to begin and to end
  constexpr double enough = 0.9;                // of the best use of multiprocessors
  auto axes = cast<AxesOp>(ParallelOp(plan.op).getOperation());
  std::optional<int64_t> points = knownPoints(axes), rows = knownPoints(axes, {plan.rows});
  std::optional<std::pair<int64_t, int64_t>> sizes = columnsAndTerms(plan);
  if (!shape.isForWarpgroups() || !points || !rows || !*rows || !sizes || !sizes->first ||
      !sizes->second || sizes->first == std::numeric_limits<int64_t>::max())
    return std::nullopt;
  int64_t blocks = *points / *rows * int64_t(llvm::divideCeil(*rows, shape.rows)),
          tiles = llvm::divideCeil(sizes->first, shape.columns),
          steps = llvm::divideCeil(sizes->second, shape.depth);
  struct Choice {
    int64_t tiles, pieces;
    double busy; ///< share of the multiprocessors' time
    bool staysInL2;
  };
  llvm::SmallVector<Choice> choices;
  for (int64_t each = tiles; each > 0 && (each == tiles || each * steps >= minSteps); --each) {
    int64_t pieces = llvm::divideCeil(tiles, each);
    if (!choices.empty() && choices.back().pieces == pieces)
      choices.pop_back(); // the same number, more evenly
    int64_t waves = llvm::divideCeil(blocks * pieces, target.multiprocessors),
            together = llvm::divideCeil(std::min<int64_t>(blocks * pieces, target.multiprocessors),
                                        pieces);
    choices.push_back({each, pieces,
                       double(blocks * tiles) / double(waves * target.multiprocessors * each),
                       together * shape.rows * sizes->second * elementBytes <= l2Bytes});
  }
  double best = 0;
  for (const Choice &choice : choices)
    best = std::max(best, choice.busy);
  const Choice *chosen = nullptr;
  for (const Choice &choice : choices)
    if (choice.busy >= enough * best && (!chosen || (choice.staysInL2 && !chosen->staysInL2)))
      chosen = &choice;
  return chosen->tiles * shape.columns;
}

Matched<ProductReductionShape> tegula::chooseProductReductionShape(const ProductReductionPlan &plan,
                                                                   const TargetInfo &target,
                                                                   llvm::StringRef wanted) {
  llvm::SmallVector<llvm::StringRef> names;
  wanted.split(names, ',');
  for (const ProductReductionShape &shape : shapes)
    if (llvm::is_contained(names, shape.name()))
      return shape;
  // A row of a tile costs a multiprocessor about an eighth of what it costs by lanes, and a wave of
  // blocks takes as long however few they are.
  // Of f32 three products take the place of one, at half the rate.
  const int64_t rowsOfLanes = plan.hasF32() ? 2 : 8;
  auto axes = cast<AxesOp>(ParallelOp(plan.op).getOperation());
  std::optional<int64_t> points = knownPoints(axes), rows = knownPoints(axes, {plan.rows});
  if (points && rows && *rows > 0) {
    int64_t blocks = *points / *rows * int64_t(llvm::divideCeil(*rows, usual.rows));
    int64_t waves = llvm::divideCeil(blocks, target.multiprocessors);
    if (waves * target.multiprocessors * usual.rows > rowsOfLanes * *points)
      return Mismatch{std::to_string(*points) + " rows are too few for tiles of " +
                          std::to_string(usual.rows),
                      "", plan.op};
  }
  return paysForWarpgroups(plan, target) ? ofWarpgroups : usual;
}
