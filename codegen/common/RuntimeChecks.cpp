//===- RuntimeChecks.cpp - Bounds checks of accesses that may leave their tensor ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/RuntimeChecks.h"

#include "codegen/common/ScalarEmitter.h"
#include "ir/tgl/TglReports.h"
#include "ir/tgl/TglUtils.h"
#include <utility>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

RuntimeChecks::RuntimeChecks(ScalarEmitter &e, std::vector<ErrorSite> &sites)
    : e(e), b(e.b), sites(sites) {}

/// Whether the subscript is an axis that runs over that dim: it is inside wherever its loop is.
static bool spans(const ValueExpr &subscript, const IndexExpr &dim) {
  auto axis = dyn_cast_or_null<mlir::BlockArgument>(subscript.asValue());
  auto owner = axis ? dyn_cast<tgl::AxesOp>(axis.getOwner()->getParentOp()) : tgl::AxesOp();
  if (!owner)
    return false;
  tgl::AxisRange range = tgl::getAxisRange(owner, axis.getArgNumber());
  return range.lo.asConstant() == 0 && range.hi == ValueExpr(dim);
}

/// Whether the subscript counts up along axes of known extents, from 0 to no further than the dim:
/// what remains of an axis that was split.
static bool countsWithin(const ValueExpr &subscript, const IndexExpr &dim) {
  std::optional<int64_t> extent = dim.asConstant();
  int64_t last = 0;
  ValueExpr rest = subscript;
  for (mlir::Value operand : subscript.operands()) {
    auto axis = dyn_cast<mlir::BlockArgument>(operand);
    auto owner = axis ? dyn_cast<tgl::AxesOp>(axis.getOwner()->getParentOp()) : tgl::AxesOp();
    std::optional<int64_t> step = tgl::stepAlong(subscript, operand);
    if (!owner || axis.getArgNumber() >= owner.getAxes().size() || !step || *step < 0)
      return false;
    tgl::AxisRange range = tgl::getAxisRange(owner, axis.getArgNumber());
    std::optional<int64_t> high = range.hi.asConstant();
    if (range.lo.asConstant() != 0 || !high || MulOverflow(*step, *high - 1, *step) ||
        AddOverflow(last, *step, last))
      return false;
    rest = rest.substitute(operand, ValueExpr(int64_t(0)));
  }
  return extent && rest.asConstant() == 0 && last < *extent;
}

bool RuntimeChecks::staysWithin(const ValueExpr &subscript, const IndexExpr &dim) const {
  return !e.options.checked && !e.options.evenProved &&
         (spans(subscript, dim) || countsWithin(subscript, dim));
}

Value *RuntimeChecks::emitBoundsCheck(ArrayRef<ValueExpr> subscripts, tgl::TglTensorType type) {
  Value *inside = nullptr;
  for (auto [subscript, dim] : zip(subscripts, type.getDims())) { // of a row: all but the last
    if (staysWithin(subscript, dim.getExpr()))
      continue;
    Value *operands[] = {e.emitIndex(subscript), e.emitSize(dim.getExpr())};
    e.align(operands);
    // Unsigned: a negative subscript is larger than any size.
    Value *one = b.CreateICmpULT(operands[0], operands[1]);
    inside = inside ? e.emitAnd(inside, one) : one;
  }
  return inside ? inside : b.getTrue();
}

void RuntimeChecks::report(Value *bad, ErrorSite where, ArrayRef<ValueExpr> subscripts,
                           tgl::TglTensorType type) {
  assert(record && "a checked access needs an error record");
  bool isDefect = where.isDefect;
  where.isUnsigned = any_of(subscripts, [](const ValueExpr &subscript) {
    mlir::Value value = subscript.asValue();
    return value && value.getDefiningOp<mlir::arith::IndexCastUIOp>();
  });
  sites.push_back(std::move(where));
  unsigned site = sites.size() - 1;
  if (e.lanes && e.lanes->mask)
    bad = e.emitAnd(bad, e.lanes->mask);
  if (together && together->conditions == e.conditions && !isDefect) {
    together->checks.push_back({bad, site, emitOffender(subscripts, type)});
    if (together->checks.size() == together->most)
      reportWaiting();
    return;
  }
  e.emitIf(e.isVector(bad) ? b.CreateOrReduce(bad) : bad, [&] {
    Value *offender = ofFirstLane(bad, emitOffender(subscripts, type));
    if (isDefect) // counts more than what data does
      b.CreateStore(b.getInt32(0), record);
    leave(b.getInt32(site), offender);
  });
}

Value *RuntimeChecks::emitOffender(ArrayRef<ValueExpr> subscripts, tgl::TglTensorType type) {
  Value *offender = e.i64(0);
  for (auto [subscript, dim] :
       reverse(zip_equal(subscripts, type.getDims().take_front(subscripts.size())))) {
    if (staysWithin(subscript, dim.getExpr()))
      continue;
    Value *compared[] = {e.emitIndex(subscript), e.emitSize(dim.getExpr())};
    e.align(compared);
    Value *chosen[] = {b.CreateICmpUGE(compared[0], compared[1]), compared[0], offender};
    e.align(chosen);
    offender = b.CreateSelect(chosen[0], chosen[1], chosen[2]);
  }
  return offender;
}

Value *RuntimeChecks::ofFirstLane(Value *bad, Value *value) {
  if (!e.isVector(value))
    return value;
  auto *vector = cast<FixedVectorType>(e.splat(bad)->getType());
  Value *bits = b.CreateBitCast(e.splat(bad), b.getIntNTy(vector->getNumElements()));
  Value *lane = b.CreateIntrinsic(bits->getType(), Intrinsic::cttz, {bits, b.getTrue()});
  return b.CreateExtractElement(value, b.CreateZExtOrTrunc(lane, b.getInt32Ty()));
}

void RuntimeChecks::reportTogether(function_ref<void()> body, size_t most) {
  if (together && together->conditions == e.conditions) // with those around
    return body();
  std::optional<Together> outer = std::exchange(together, Together{e.conditions, most, {}});
  body();
  reportWaiting();
  together = std::move(outer);
}

void RuntimeChecks::reportWaiting() {
  SmallVector<Waiting> checks = std::exchange(together->checks, {});
  if (checks.empty())
    return;
  SmallVector<Value *> bad;
  for (const Waiting &check : checks)
    bad.push_back(e.isVector(check.bad) ? b.CreateOrReduce(check.bad) : check.bad);
  Value *any = bad.front();
  for (Value *one : drop_begin(bad))
    any = b.CreateOr(any, one);
  e.emitIf(any, [&] {
    Value *site = nullptr, *offender = nullptr;
    for (auto [one, check] : reverse(zip_equal(bad, checks))) {
      Value *number = b.getInt32(check.site), *value = ofFirstLane(check.bad, check.offender);
      site = site ? b.CreateSelect(one, number, site) : number;
      offender = offender ? b.CreateSelect(one, value, offender) : value;
    }
    leave(site, offender);
  });
}

void RuntimeChecks::verifyProved(tgl::TglTensorType type, ArrayRef<ValueExpr> subscripts,
                                 Value *mask) {
  if (!e.options.evenProved || subscripts.empty() || !record)
    return;
  mlir::Location loc =
      access ? access->getLoc() : mlir::Location(mlir::UnknownLoc::get(type.getContext()));
  bool counts = any_of(subscripts, [&](const ValueExpr &subscript) {
    return any_of(subscript.operands(),
                  [&](mlir::Value operand) { return countsOthers.contains(operand); });
  });
  ValueExpr place;
  if (counts) { // as an element of all dims in a row
    IndexExpr elements(1);
    for (tgl::IndexExprAttr dim : type.getDims().take_front(subscripts.size()))
      elements = elements * dim.getExpr();
    auto rows = tgl::TglTensorType::get(
        type.getContext(), type.getDims().take_front(subscripts.size()), type.getElementType());
    place = tgl::elementOffset(rows, subscripts);
    type = tgl::TglTensorType::get(type.getContext(),
                                   {tgl::IndexExprAttr::get(type.getContext(), elements)},
                                   type.getElementType());
    subscripts = place;
  }
  Value *outside = b.CreateNot(emitBoundsCheck(subscripts, type));
  report(e.emitAnd(mask, outside), {"an access that was proved", loc, {}, {}, /*isDefect=*/true},
         subscripts, type);
}

void RuntimeChecks::leave(Value *site, Value *value) {
  Value *taken = b.CreateAtomicCmpXchg(record, b.getInt32(0), b.getInt32(1), MaybeAlign(4),
                                       AtomicOrdering::Monotonic, AtomicOrdering::Monotonic);
  e.emitIf(b.CreateExtractValue(taken, 1), [&] {
    b.CreateStore(site, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), record, 4));
    b.CreateStore(value, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), record, 8));
  });
}

Value *RuntimeChecks::reportMask(mlir::Operation *op, Value *guard) {
  auto lengths = op->getAttrOfType<mlir::ArrayAttr>(tgl::reportsWhereAttrName);
  if (!lengths)
    return guard;
  for (mlir::Attribute length : lengths) {
    Value *points = e.emitIndex(ValueExpr(cast<tgl::IndexExprAttr>(length).getExpr(),
                                          cast<tgl::IndexedOp>(op).getIndices()));
    guard = e.emitAnd(guard, b.CreateICmpSGT(points, Constant::getNullValue(points->getType())));
  }
  return guard;
}

/// Where `bad` holds: reports the element at `offset`, in words that follow its name.
void RuntimeChecks::reportElement(Value *bad, mlir::Operation *op, mlir::Value tensor,
                                  Value *offset, StringRef what) {
  ErrorSite site{what.str(), op->getLoc(), {}, cast<tgl::TglTensorType>(tensor.getType())};
  if (auto temp = tensor.getDefiningOp<tgl::TempOp>())
    site.tensor = temp.getName().str();
  else if (auto argument = dyn_cast<mlir::BlockArgument>(tensor))
    site.tensor = cast<tgl::KernelOp>(argument.getOwner()->getParentOp())
                      .getArgName(argument.getArgNumber())
                      .str();
  sites.push_back(std::move(site));
  unsigned number = sites.size() - 1;
  e.emitIf(bad, [&] { leave(b.getInt32(number), offset); });
}
