//===- Products.cpp - Reductions that are sums of products --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Products.h"
#include "prove/ProductSum.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;

/// What an expression grows by with each step of a dim; nothing where that is no constant.
static std::optional<int64_t> slopeOf(const IndexExpr &expr, unsigned position) {
  auto at = [&](int64_t value) {
    return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
      if (var.isSymbol() || var.position() != position)
        return std::nullopt;
      return IndexExpr(value);
    });
  };
  IndexExpr base = at(0), weight = at(1) - base;
  std::optional<int64_t> slope = weight.asConstant();
  if (!slope || base + weight * IndexExpr::dim(position) != expr)
    return std::nullopt;
  return slope;
}

std::optional<ProductReduction::Factor>
ProductReduction::factorOf(StepBuilder &builder, Value value, Block &body, ValueRange axes) {
  auto read = value.getDefiningOp<tgl::ReadOp>();
  if (!read || read->getBlock() != &body || read.getGuard() || read.getChecked() ||
      !read.getExactNumerators().empty())
    return std::nullopt;
  Factor factor;
  if (read.getFill()) {
    auto fill = read.getFill().getDefiningOp<arith::ConstantOp>();
    auto number = fill ? dyn_cast<FloatAttr>(fill.getValue()) : FloatAttr();
    if (!number || !number.getValue().isZero())
      return std::nullopt;
    factor.isFilled = true;
  }
  factor.tensor = builder.tensorOf(read.getTensor());
  for (Attribute attr : read.getSubscripts()) {
    Subscript &subscript = factor.subscripts.emplace_back();
    subscript.code = builder.index(attr, read.getIndices());
    IndexExpr expr = builder.withSizes(attr);
    for (Value axis : axes) {
      int64_t slope = 0;
      for (auto [position, index] : llvm::enumerate(read.getIndices())) {
        std::optional<int64_t> own = index == axis ? slopeOf(expr, unsigned(position)) : 0;
        if (!own)
          return std::nullopt;
        slope += *own;
      }
      subscript.slopes.push_back(slope);
    }
  }
  return factor;
}

std::optional<ProductReduction> ProductReduction::match(StepBuilder &builder, tgl::ReduceOp op,
                                                        llvm::ArrayRef<AxisCode> axes) {
  if (op.getKind() != tgl::ReduceKind::Sum || op.getFilter())
    return std::nullopt;
  Block &body = op.getBody().front();
  auto product = op.getReduced().getDefiningOp<arith::MulFOp>();
  if (!product || product->getBlock() != &body)
    return std::nullopt;
  auto ranged = cast<tgl::AxesOp>(op.getOperation());
  auto isFixed = [&](Attribute bound) {
    return llvm::all_of(builder.withSizes(bound).variables(), [&](const IndexVar &var) {
      return !var.isSymbol() && var.position() < ranged.getIndices().size();
    });
  };
  for (auto [lo, hi] : llvm::zip_equal(ranged.getLows(), ranged.getHighs()))
    if (!isFixed(lo) || !isFixed(hi))
      return std::nullopt;
  for (Operation &one : body)
    if (!isa<tgl::ReadOp, arith::MulFOp, arith::ConstantOp, tgl::YieldOp>(one) ||
        (isa<tgl::ReadOp>(one) && one.getResult(0) != product.getLhs() &&
         one.getResult(0) != product.getRhs()))
      return std::nullopt;
  ProductReduction found;
  found.axes.assign(axes.begin(), axes.end());
  for (auto [value, factor] : {std::pair(product.getLhs(), &found.factors[0]),
                               std::pair(product.getRhs(), &found.factors[1])}) {
    std::optional<Factor> one = factorOf(builder, value, body, ranged.getAxes());
    if (!one)
      return std::nullopt;
    *factor = std::move(*one);
  }
  return found;
}

namespace {
/// One sum at one point of the axes around it.
class Walk {
public:
  using Factor = ProductReduction::Factor;
  Walk(Machine &machine, llvm::ArrayRef<int64_t> counts, const Factor *factors)
      : counts(counts), sum(machine.algebra) {
    for (unsigned k = 0; k < 2; ++k) {
      Side &side = sides[k];
      side.factor = &factors[k];
      side.memory = &machine.tensors[factors[k].tensor];
      for (const ProductReduction::Subscript &subscript : factors[k].subscripts)
        side.at.push_back(subscript.code.eval(machine));
      side.step.assign(counts.size(), 0);
      for (size_t axis = 0; axis < counts.size(); ++axis)
        for (auto [dim, subscript] : llvm::enumerate(factors[k].subscripts))
          side.step[axis] += subscript.slopes[axis] * side.memory->strides[dim];
    }
    inner = size_t(std::max_element(counts.begin(), counts.end()) - counts.begin());
  }

  /// Nothing where the operations one by one must say what holds.
  std::optional<Number> run() {
    bool isPlain = isInside(sides[0]) && isInside(sides[1]);
    if (isPlain)
      walkInside(0, positionOf(sides[0]), positionOf(sides[1]));
    else if (!walk(0))
      return std::nullopt;
    return sum.total();
  }

private:
  struct Side {
    const Factor *factor = nullptr;
    const Memory *memory = nullptr;
    llvm::SmallVector<int64_t, 6> at;   // subscripts at the point at hand
    llvm::SmallVector<int64_t, 6> step; // of the position, by axis
    int64_t begin = 0, end = 0;         // of the inner axis, inside the tensor
  };

  static const Number *positionOf(const Side &side) {
    int64_t position = 0;
    for (auto [at, stride] : llvm::zip_equal(side.at, side.memory->strides))
      position += at * stride;
    return side.memory->numbers.data() + position;
  }

  /// Whether all points of the box are elements that are defined.
  bool isInside(const Side &side) const {
    if (!side.memory->isWhole())
      return false;
    for (auto [dim, subscript] : llvm::enumerate(side.factor->subscripts)) {
      int64_t least = side.at[dim], most = least;
      for (auto [slope, count] : llvm::zip_equal(subscript.slopes, counts))
        (slope < 0 ? least : most) += slope * (count - 1);
      if (least < 0 || most >= side.memory->tensor.shape[dim])
        return false;
    }
    return true;
  }

  void walkInside(size_t axis, const Number *a, const Number *b) {
    if (axis == inner)
      return walkInside(axis + 1, a, b);
    if (axis >= counts.size())
      return sum.add(a, sides[0].step[inner], b, sides[1].step[inner], size_t(counts[inner]));
    for (int64_t k = 0; k < counts[axis]; ++k, a += sides[0].step[axis], b += sides[1].step[axis])
      walkInside(axis + 1, a, b);
  }

  void advance(size_t axis, int64_t by) {
    for (Side &side : sides)
      for (auto [at, subscript] : llvm::zip_equal(side.at, side.factor->subscripts))
        at += by * subscript.slopes[axis];
  }

  bool walk(size_t axis) {
    if (axis == inner)
      return walk(axis + 1);
    if (axis >= counts.size())
      return row();
    for (int64_t k = 0; k < counts[axis]; ++k) {
      if (!walk(axis + 1))
        return false;
      advance(axis, 1);
    }
    advance(axis, -counts[axis]);
    return true;
  }

  /// Where along the inner axis all subscripts are inside.
  void clip(Side &side) const {
    side.begin = 0;
    side.end = counts[inner];
    for (auto [dim, subscript] : llvm::enumerate(side.factor->subscripts)) {
      int64_t at = side.at[dim], slope = subscript.slopes[inner],
              size = side.memory->tensor.shape[dim];
      if (slope < 0) { // counted from the other end
        at = size - 1 - at;
        slope = -slope;
      }
      if (slope == 0 && (at < 0 || at >= size))
        side.end = 0;
      if (slope == 0)
        continue;
      if (at < 0)
        side.begin = std::max(side.begin, (-at + slope - 1) / slope);
      side.end = at >= size ? 0 : std::min(side.end, (size - 1 - at) / slope + 1);
    }
    side.end = std::max(side.begin, side.end);
  }

  bool row() {
    int64_t begin = 0, end = counts[inner];
    for (Side &side : sides) {
      clip(side);
      if (!side.factor->isFilled && side.end - side.begin < counts[inner])
        return false;
      begin = std::max(begin, side.begin);
      end = std::min(end, side.end);
    }
    end = std::max(begin, end);
    sum.addZeros(size_t(counts[inner] - (end - begin)));
    if (begin == end)
      return true;
    const Number *starts[2];
    for (auto [side, start] : llvm::zip_equal(sides, starts)) {
      int64_t position = begin * side.step[inner];
      for (auto [at, stride] : llvm::zip_equal(side.at, side.memory->strides))
        position += at * stride;
      for (int64_t k = begin; k < end && !side.memory->isWhole(); ++k)
        if (!side.memory->isDefined(position + (k - begin) * side.step[inner]))
          return false;
      start = side.memory->numbers.data() + position;
    }
    sum.add(starts[0], sides[0].step[inner], starts[1], sides[1].step[inner], size_t(end - begin));
    return true;
  }

  llvm::ArrayRef<int64_t> counts;
  ProductSum sum;
  Side sides[2];
  size_t inner = 0;
};
} // namespace

std::optional<Number> ProductReduction::run(Machine &machine) const {
  llvm::SmallVector<int64_t, 6> counts;
  uint64_t products = 1;
  for (const AxisCode &axis : axes) {
    int64_t lo = axis.lo.eval(machine), hi = axis.hi.eval(machine);
    if (lo >= hi)
      return std::nullopt;
    machine.integers[axis.slot] = lo;
    counts.push_back(hi - lo);
    products *= uint64_t(hi - lo);
  }
  if (counts.empty() || !machine.count(products / ProductSum::productsOfStep))
    return std::nullopt;
  return Walk(machine, counts, factors).run();
}
