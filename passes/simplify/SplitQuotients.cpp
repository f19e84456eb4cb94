//===- SplitQuotients.cpp - Heads of a group as axes of their own -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SPLITQUOTIENTSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {
/// A dim of a temporary.
using Dim = std::pair<Value, unsigned>;

/// The axes that have to be split together, since they subscript the same dims of temporaries.
class SplitSet {
public:
  SplitSet(KernelOp kernel, int64_t extent) : extent(extent) {
    kernel.walk([&](Operation *op) {
      if (isa<ReadOp, WriteOp>(op))
        accesses.push_back(op);
    });
  }

  /// False where an axis, or a dim, is used as something that has no quotient and rest.
  bool add(BlockArgument axis) {
    SmallVector<BlockArgument> left{axis};
    while (!left.empty()) {
      BlockArgument next = left.pop_back_val();
      if (!axes.insert(next))
        continue;
      if (!isWhole(next))
        return false;
      for (Operation *access : accesses)
        for (auto [number, subscript] : llvm::enumerate(subscriptsOf(access)))
          if (subscript.asValue() == next && isTemp(access))
            dims.insert(Dim(tensorOf(access), unsigned(number)));
      for (size_t at = 0; at < dims.size(); ++at) // those that were just found, and all before
        if (!addAxesOf(dims[at], left))
          return false;
    }
    return true;
  }

  ArrayRef<BlockArgument> getAxes() const { return axes.getArrayRef(); }

  /// Subscripts and types with two dims for each of the set's; `digits` has the axes' new ones.
  void splitDims(const DenseMap<Value, std::pair<Value, Value>> &digits, int64_t divisor) const {
    for (Operation *access : accesses) {
      SmallVector<ValueExpr> split;
      for (auto [number, subscript] : llvm::enumerate(subscriptsOf(access))) {
        if (!dims.contains(Dim(tensorOf(access), unsigned(number)))) {
          split.push_back(subscript);
          continue;
        }
        auto [quotient, rest] = digits.lookup(subscript.asValue());
        split.append({ValueExpr(quotient), ValueExpr(rest)});
      }
      if (split.size() != subscriptsOf(access).size())
        setSubscripts(access, split);
    }
    llvm::SmallSetVector<Value, 4> tensors;
    for (const Dim &dim : dims)
      tensors.insert(dim.first);
    for (Value tensor : tensors) {
      auto type = cast<TglTensorType>(tensor.getType());
      SmallVector<IndexExprAttr> extents;
      for (auto [number, old] : llvm::enumerate(type.getDims())) {
        if (!dims.contains(Dim(tensor, unsigned(number)))) {
          extents.push_back(old);
          continue;
        }
        for (int64_t digit : {extent / divisor, divisor})
          extents.push_back(IndexExprAttr::get(type.getContext(), IndexExpr(digit)));
      }
      tensor.setType(TglTensorType::get(type.getContext(), extents, type.getElementType()));
    }
  }

private:
  static Value tensorOf(Operation *access) {
    auto read = dyn_cast<ReadOp>(access);
    return read ? read.getTensor() : cast<WriteOp>(access).getTensor();
  }
  static SmallVector<ValueExpr> subscriptsOf(Operation *access) {
    auto read = dyn_cast<ReadOp>(access);
    return read ? read.getSubscriptExprs() : cast<WriteOp>(access).getSubscriptExprs();
  }
  static bool isTemp(Operation *access) {
    return tensorOf(access).getDefiningOp<TempOp>() != nullptr;
  }

  /// Whether the axis runs from 0 to the extent, whatever others are, and its points are nobody's
  /// result.
  bool isWhole(BlockArgument axis) const {
    auto owner = dyn_cast<AxesOp>(axis.getOwner()->getParentOp());
    if (!owner || !isa<ParallelOp, ReduceOp>(owner.getOperation()) ||
        axis.getArgNumber() >= owner.getAxes().size())
      return false;
    auto reduce = dyn_cast<ReduceOp>(owner.getOperation());
    if (reduce &&
        (reduce.getKind() == ReduceKind::ArgMax || reduce.getKind() == ReduceKind::ArgMin))
      return false;
    AxisRange range = getAxisRange(owner, axis.getArgNumber());
    return range.lo.asConstant() == 0 && range.hi.asConstant() == extent;
  }

  /// The axes that subscript a dim.
  bool addAxesOf(const Dim &dim, SmallVectorImpl<BlockArgument> &found) const {
    auto type = cast<TglTensorType>(dim.first.getType());
    if (type.getDims()[dim.second].getExpr().asConstant() != extent)
      return false;
    return llvm::all_of(dim.first.getUsers(), [&](Operation *user) {
      auto read = dyn_cast<ReadOp>(user);
      auto write = dyn_cast<WriteOp>(user);
      bool isPlain =
          (read && !read.getFill() && !read.getChecked() && read.getExactNumerators().empty()) ||
          (write && !write.getChecked());
      if (!isPlain)
        return false;
      Value place = subscriptsOf(user)[dim.second].asValue();
      auto axis = dyn_cast_or_null<BlockArgument>(place);
      if (axis)
        found.push_back(axis);
      return axis != nullptr;
    });
  }

  int64_t extent;
  SmallVector<Operation *> accesses;
  llvm::SetVector<BlockArgument> axes;
  llvm::SetVector<Dim> dims;
};

struct SplitQuotientsPass : Counted<tegula::impl::SplitQuotientsPassBase<SplitQuotientsPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    while (splitOne())
      count("axes split");
  }

private:
  /// The length of the digit of an axis that a factor of a sum is subscripted by, its quotient or
  /// its remainder; nothing where it is used otherwise.
  static std::optional<int64_t> divisorOf(const ValueExpr &subscript, BlockArgument axis,
                                          int64_t extent) {
    if (subscript.operands().size() != 1 || subscript.operands()[0] != axis)
      return std::nullopt;
    ValueExpr whole = ValueExpr(Value(axis));
    auto isDigit = [&](int64_t length) {
      auto is = [&](const ValueExpr &digit) { return (subscript - digit).asConstant() == 0; };
      return is(ValueExpr::floorDiv(whole, ValueExpr(length))) ||
             is(ValueExpr::mod(whole, ValueExpr(length)));
    };
    for (int64_t divisor = 2; divisor * divisor <= extent; ++divisor)
      for (int64_t length : {divisor, extent / divisor})
        if (extent % divisor == 0 && isDigit(length))
          return length;
    return std::nullopt;
  }

  static bool hasInOther(const Contraction &contraction, const Contraction::Factor &factor,
                         BlockArgument axis) {
    return llvm::any_of(contraction.factors, [&](const Contraction::Factor &other) {
      return &other != &factor && other.axes.contains(axis);
    });
  }

  /// Of a product in a sum: one factor has the axis, the other one of its digits.
  std::optional<std::pair<BlockArgument, int64_t>> find() {
    std::optional<std::pair<BlockArgument, int64_t>> found;
    getOperation().walk([&](ReduceOp reduce) {
      std::optional<Contraction> contraction = matchContraction(reduce);
      if (!contraction || contraction->factors.size() != 2)
        return WalkResult::advance();
      for (const Contraction::Factor &factor : contraction->factors) {
        auto read = factor.value.getDefiningOp<ReadOp>();
        if (!read)
          continue;
        for (const ValueExpr &subscript : read.getSubscriptExprs())
          for (Value operand : subscript.operands()) {
            auto axis = dyn_cast<BlockArgument>(operand);
            auto owner = axis ? dyn_cast<ParallelOp>(axis.getOwner()->getParentOp()) : ParallelOp();
            if (!owner || axis.getArgNumber() >= owner.getAxes().size() ||
                !hasInOther(*contraction, factor, axis))
              continue;
            std::optional<int64_t> extent =
                knownPoints(cast<AxesOp>(owner.getOperation()), {axis.getArgNumber()});
            if (!extent)
              continue;
            std::optional<int64_t> divisor = divisorOf(subscript, axis, *extent);
            if (divisor && !refused.contains(axis)) {
              found = {axis, *divisor};
              return WalkResult::interrupt();
            }
          }
      }
      return WalkResult::advance();
    });
    return found;
  }

  bool splitOne() {
    std::optional<std::pair<BlockArgument, int64_t>> found = find();
    if (!found)
      return false;
    auto [axis, divisor] = *found;
    auto owner = cast<AxesOp>(axis.getOwner()->getParentOp());
    int64_t extent = *knownPoints(owner, {axis.getArgNumber()});
    SplitSet set(getOperation(), extent);
    if (!set.add(axis)) {
      refused.insert(axis);
      return splitOne();
    }
    DenseMap<Value, std::pair<Value, Value>> digits;
    for (BlockArgument old : set.getAxes()) {
      auto op = cast<AxesOp>(old.getOwner()->getParentOp());
      unsigned number = old.getArgNumber();
      std::string name = getAxisName(op, number).str();
      BlockArgument quotient =
          insertAxis(op, number, {name + "_group", ValueExpr(0), ValueExpr(extent / divisor)});
      BlockArgument rest = insertAxis(op, number + 1, {name, ValueExpr(0), ValueExpr(divisor)});
      digits[op.getAxes()[number + 2]] = {quotient, rest};
    }
    set.splitDims(digits, divisor);
    OpBuilder builder(&getContext());
    for (auto &[old, parts] : digits) {
      auto op = cast<AxesOp>(cast<BlockArgument>(old).getOwner()->getParentOp());
      replaceAllUsesWithExpr(builder, old,
                             ValueExpr(divisor) * ValueExpr(parts.first) + ValueExpr(parts.second));
      eraseAxis(op, cast<BlockArgument>(old).getArgNumber());
    }
    return true;
  }

  DenseSet<Value> refused;
};
} // namespace
