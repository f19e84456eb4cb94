//===- SortPlan.cpp - A sort of rows and what makes their elements --------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/sort/plan/SortPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/analysis/Nest.h"
#include "passes/analysis/SortedRows.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// The write that fills a sorted tensor, if there is one alone.
static WriteOp onlyWrite(Value tensor, SortOp sort) {
  WriteOp found;
  for (Operation *user : tensor.getUsers()) {
    if (isa<ReadOp>(user) || user == sort)
      continue;
    auto write = dyn_cast<WriteOp>(user);
    if (!write || found || write.getGuard() || write.getCombine() || write.getChecked())
      return nullptr;
    found = write;
  }
  return found;
}

Matched<SortedElements> tegula::elementsOf(SortOp sort) {
  SortedElements elements;
  elements.value = onlyWrite(sort.getValues(), sort);
  elements.position = onlyWrite(sort.getPositions(), sort);
  if (!elements.value || !elements.position ||
      elements.value->getBlock() != elements.position->getBlock() ||
      !llvm::equal(elements.value.getSubscriptExprs(), elements.position.getSubscriptExprs()))
    return Mismatch{"the sorted rows are not filled by one statement", "", sort};
  elements.nest = dyn_cast<ParallelOp>(elements.value->getParentOp());
  std::optional<ValueExpr> position = integerExprOf(elements.position.getValue());
  ValueExpr place = elements.value.getSubscriptExprs().back();
  std::optional<int64_t> first = position ? (*position - place).asConstant() : std::nullopt;
  if (!elements.nest || !first)
    return Mismatch{"what is sorted along with the elements is not their places", "", sort};
  std::optional<int64_t> length =
      cast<TglTensorType>(sort.getValues().getType()).getDims().back().getExpr().asConstant();
  if (!length)
    return Mismatch{"the length of the sorted rows is not known when compiling",
                    "compile for known sizes (-d)", sort};
  elements.first = *first;
  for (auto [number, axis] : llvm::enumerate(elements.nest.getAxes()))
    if (place == ValueExpr(Value(axis)) - ValueExpr(*first) && lowOf(axis).asConstant() == *first &&
        (highOf(axis) - lowOf(axis)).asConstant() == *length)
      elements.axis = number;
  return elements;
}

bool SortedElements::isCheap() const {
  constexpr unsigned fewOps = 24, fewReads = 4;
  unsigned ops = 0, reads = 0;
  for (Operation &op : ParallelOp(nest).getBody().front()) {
    if (&op == value || &op == position)
      continue;
    auto read = dyn_cast<ReadOp>(op);
    if (op.getNumRegions() || (read ? bool(read.getChecked()) : !isMemoryEffectFree(&op)))
      return false;
    reads += read ? 1 : 0;
    ++ops;
  }
  return ops <= fewOps && reads <= fewReads;
}

bool SortedElements::isRepeatable() const {
  return llvm::none_of(ParallelOp(nest).getBody().front(), [](Operation &op) {
    auto flags = dyn_cast<arith::ArithFastMathInterface>(op);
    return flags && flags.getFastMathFlagsAttr() &&
           flags.getFastMathFlagsAttr().getValue() != arith::FastMathFlags::none &&
           op.getNumOperands() > 1;
  });
}

Type SortPlan::element() const {
  if (source)
    return ReadOp(source).getTensorType().getElementType();
  return cast<TglTensorType>(SortOp(sort).getValues().getType()).getElementType();
}

unsigned SortPlan::bits() const { return std::max(8u, element().getIntOrFloatBitWidth()); }

Matched<SortPlan> tegula::planSort(SortOp sort, ParallelOp statement, SortedElements elements) {
  SortPlan plan{statement, sort, elements, nullptr};
  auto type = cast<TglTensorType>(sort.getValues().getType());
  std::optional<int64_t> rows = knownPoints(cast<AxesOp>(statement.getOperation())),
                         length = type.getDims().back().getExpr().asConstant();
  if (!rows || !length)
    return Mismatch{"the number of the sorted rows, or their length, is not known when compiling",
                    "compile for known sizes (-d)", sort};
  plan.rows = *rows;
  plan.length = plan.kept = *length;
  if (std::optional<IndexExpr> read = elementsRead(sort))
    if (std::optional<int64_t> known = read->asConstant())
      plan.kept = std::clamp<int64_t>(*known, 0, plan.length);
  auto isRead = [](Value tensor) {
    return !tensor.getDefiningOp() ||
           llvm::any_of(tensor.getUsers(), [](Operation *user) { return isa<ReadOp>(user); });
  };
  plan.keepsValues = isRead(sort.getValues());
  plan.keepsPositions = isRead(sort.getPositions());
  Type element = type.getElementType();
  if (element.isInteger(4) || !(element.isInteger() || element.isF32() || element.isF64() ||
                                element.isF16() || element.isBF16()))
    return Mismatch{"elements of this type have no keys", "", sort};
  // Numbers of elements and of rows have 32 bits.
  if (plan.length > std::numeric_limits<int32_t>::max() ||
      plan.rows > std::numeric_limits<int32_t>::max())
    return Mismatch{"there are too many elements", "", sort};
  if (plan.rows <= 0 || plan.length <= 0 || plan.kept <= 0)
    return Mismatch{"there is nothing to sort", "", sort, /*isOther=*/true};
  auto read = elements.value.getValue().getDefiningOp<ReadOp>();
  if (read && read->getParentOp() == elements.nest && !read.getGuard() && !read.getFill() &&
      !read.getChecked() && read.getExactNumerators().empty()) {
    Type stored = read.getTensorType().getElementType();
    bool hasKeys = stored.isF16() || stored.isBF16() || stored.isF32() ||
                   (stored.isSignlessInteger() && !stored.isInteger(4) && !stored.isInteger(1));
    if (hasKeys && stored != element &&
        stored.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth() &&
        isa<FloatType>(stored) == isa<FloatType>(element))
      plan.source = read;
  }
  return plan;
}

Matched<SortPlan> tegula::matchSort(ParallelOp statement) {
  Block &block = statement.getBody().front();
  auto sorts = block.getOps<SortOp>();
  auto nests = block.getOps<ParallelOp>();
  Mismatch other{"", "", statement, /*isOther=*/true}; // tgl-split-sorts has told why
  if (!llvm::hasSingleElement(sorts) || !llvm::hasSingleElement(nests))
    return other;
  SortOp sort = *sorts.begin();
  ParallelOp nest = *nests.begin();
  bool isAlone = llvm::all_of(block, [&](Operation &op) {
    return &op == sort || &op == nest || (!op.getNumRegions() && !isa<WriteOp, TempOp>(op));
  });
  Matched<SortedElements> elements = elementsOf(sort);
  if (!isAlone || !elements || elements->nest != nest || nest.getAxes().size() != 1 ||
      !elements->axis || !nest->isBeforeInBlock(sort) || !elements->isCheap())
    return other;
  for (Value tensor : {sort.getValues(), sort.getPositions()})
    if (auto temp = tensor.getDefiningOp<TempOp>(); temp && isPrivate(temp))
      return other;
  return planSort(sort, statement, *elements);
}
