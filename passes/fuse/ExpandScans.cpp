//===- ExpandScans.cpp - Scans as loops, sorts as sorts of a row ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Outline.h"
#include "passes/analysis/SameValue.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_EXPANDSCANSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

static bool isSort(ScanKind kind) {
  return kind == ScanKind::Sort || kind == ScanKind::ArgSort || kind == ScanKind::TopKValue ||
         kind == ScanKind::TopKIndex;
}

static bool isCumulative(ScanKind kind) {
  return kind == ScanKind::CumSum || kind == ScanKind::CumProd || kind == ScanKind::CumMax ||
         kind == ScanKind::CumMin || kind == ScanKind::Recurrence;
}

/// The value before the first element.
static Value initialValue(OpBuilder &builder, ScanOp scan, Value given) {
  if (given)
    return given;
  Type type = scan.getType();
  auto make = [&](double number, int64_t integer) -> Value {
    TypedAttr attr = isa<FloatType>(type) ? TypedAttr(builder.getFloatAttr(type, number))
                                          : TypedAttr(builder.getIntegerAttr(type, integer));
    return arith::ConstantOp::create(builder, scan.getLoc(), attr);
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  unsigned width = type.getIntOrFloatBitWidth();
  switch (scan.getKind()) {
  case ScanKind::CumProd:
    return make(1, 1);
  case ScanKind::CumMax:
    return make(-infinity, llvm::minIntN(width));
  case ScanKind::CumMin:
    return make(infinity, llvm::maxIntN(width));
  default:
    return make(0, 0);
  }
}

/// One step: what the values yielded by the region make of the carried value.
static Value step(OpBuilder &builder, ScanOp scan, Value carried, ValueRange values) {
  Location loc = scan.getLoc();
  bool isFloat = isa<FloatType>(scan.getType());
  switch (scan.getKind()) {
  case ScanKind::CumProd:
    if (isFloat)
      return arith::MulFOp::create(builder, loc, carried, values[0]);
    return arith::MulIOp::create(builder, loc, carried, values[0]);
  case ScanKind::CumMax:
    if (isFloat)
      return arith::MaximumFOp::create(builder, loc, carried, values[0]);
    return arith::MaxSIOp::create(builder, loc, carried, values[0]);
  case ScanKind::CumMin:
    if (isFloat)
      return arith::MinimumFOp::create(builder, loc, carried, values[0]);
    return arith::MinSIOp::create(builder, loc, carried, values[0]);
  case ScanKind::Recurrence:
    if (isFloat)
      return arith::AddFOp::create(
          builder, loc, arith::MulFOp::create(builder, loc, values[0], carried), values[1]);
    return arith::AddIOp::create(
        builder, loc, arith::MulIOp::create(builder, loc, values[0], carried), values[1]);
  default:
    if (isFloat)
      return arith::AddFOp::create(builder, loc, carried, values[0]);
    return arith::AddIOp::create(builder, loc, carried, values[0]);
  }
}

namespace {
/// The statement that computes a scan for all points of its own axes, under construction.
struct ScanStatement {
  AxesTemp temp;     // over own axes and the scanned one
  OpBuilder builder; // inside the statement
  IRMapping map;     // from what stands around the scan to the statement

  ScanStatement(AxesTemp temp, OpBuilder builder) : temp(std::move(temp)), builder(builder) {}
};
} // namespace

/// Clones the region of the scan; the values it yields.
static SmallVector<Value> cloneSequence(OpBuilder &builder, ScanOp scan, IRMapping &map) {
  for (Operation &op : scan.getBody().front().without_terminator())
    builder.clone(op, map);
  SmallVector<Value> values;
  for (Value value : scan.getYield().getValues())
    values.push_back(map.lookupOrDefault(value));
  return values;
}

/// Opens the statement over the own axes; a kernel's statements are all parallel, so it is one even
/// without axes.
static std::pair<OpBuilder, IRMapping> openStatement(const Outline &where, Location loc) {
  OpBuilder builder(where.anchor);
  IRMapping map;
  ParallelOp parallel = copyAxes(builder, loc, where.axes, map);
  OpBuilder inside = OpBuilder::atBlockEnd(&parallel.getBody().front());
  for (Operation *op : where.ops)
    inside.clone(*op, map);
  return {inside, std::move(map)};
}

/// `parallel (own axes) { for k iter (h) { h = step; c[own axes, k] = h } }`.
static void buildLoop(ScanOp scan, const Outline &where, const AxesTemp &temp) {
  Location loc = scan.getLoc();
  auto [builder, map] = openStatement(where, loc);
  auto inMap = [&map = map](Value value) -> std::optional<ValueExpr> {
    return ValueExpr(map.lookupOrDefault(value));
  };
  Value axis = scan.getAxes()[0];
  Value init =
      initialValue(builder, scan, scan.getInit() ? map.lookupOrDefault(scan.getInit()) : Value());
  auto loop =
      ForOp::create(builder, loc, ArrayRef<StringRef>{nameOf(axis)}, lowOf(axis).substitute(inMap),
                    highOf(axis).substitute(inMap), ValueRange(init), scan.getReverse());
  map.map(axis, loop.getLoopVar());
  OpBuilder body = OpBuilder::atBlockBegin(&loop.getBody().front());
  Value carried = loop.getIterArgs()[0];
  SmallVector<Value> values = cloneSequence(body, scan, map);
  Value next = step(body, scan, carried, values);
  WriteOp::create(body, loc, scan.getExclusive() ? carried : next, temp.tensor,
                  temp.subscriptsIn(map));
  if (!loop.getBody().front().empty() &&
      loop.getBody().front().back().hasTrait<OpTrait::IsTerminator>())
    loop.getBody().front().back().erase();
  body.setInsertionPointToEnd(&loop.getBody().front());
  YieldOp::create(body, loc, next);
}

namespace {
/// A sorted sequence: `parallel (own axes, k) { v[own axes, k] = value; p[own axes, k] = k }` and a
/// sort of the rows.
struct SortedRows {
  ParallelOp fill, sort;
  AxesTemp values, positions;
  bool descending;
};
} // namespace

static SortedRows buildSort(ScanOp scan, const Outline &where, const AxesTemp &values,
                            const AxesTemp &positions) {
  Location loc = scan.getLoc();
  Outline withAxis = where;
  withAxis.axes.push_back(scan.getAxes()[0]);
  auto [builder, map] = openStatement(withAxis, loc);
  SmallVector<Value> yielded = cloneSequence(builder, scan, map);
  WriteOp::create(builder, loc, yielded[0], values.tensor, values.subscriptsIn(map));
  Value position = map.lookup(scan.getAxes()[0]);
  Value integer = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), position);
  WriteOp::create(builder, loc, integer, positions.tensor, positions.subscriptsIn(map));
  auto fill = cast<ParallelOp>(position.getParentBlock()->getParentOp());

  OpBuilder after(where.anchor);
  IRMapping sortMap;
  ParallelOp rows = copyAxes(after, loc, where.axes, sortMap);
  OpBuilder inside = OpBuilder::atBlockEnd(&rows.getBody().front());
  SmallVector<ValueExpr> row = values.subscriptsIn(sortMap);
  row.pop_back();
  bool descending = scan.getDescending() || scan.getKind() == ScanKind::TopKValue ||
                    scan.getKind() == ScanKind::TopKIndex;
  SortOp::create(inside, loc, values.tensor, positions.tensor, row, descending);
  return {fill, rows, values, positions, descending};
}

/// Whether two sorts have the same rows to sort, in the same block, the inputs unchanged in
/// between.
static bool isSameSort(const SortedRows &earlier, const SortedRows &later) {
  if (earlier.fill->getBlock() != later.fill->getBlock() ||
      earlier.descending != later.descending || !earlier.fill->isBeforeInBlock(later.fill) ||
      earlier.values.tensor.getType() != later.values.tensor.getType())
    return false;
  SameValue same(earlier.fill, later.fill);
  same.assume(earlier.values.tensor, later.values.tensor);
  same.assume(earlier.positions.tensor, later.positions.tensor);
  if (!same.equal(earlier.fill, later.fill))
    return false;
  return !writesOneOf(same.inputs(), earlier.fill, later.fill);
}

static void eraseSort(const SortedRows &rows) {
  rows.sort->erase();
  rows.fill->erase();
  rows.values.tensor.getDefiningOp()->erase();
  rows.positions.tensor.getDefiningOp()->erase();
}

/// The dims of a scan's temporary: its own axes, then the scanned one, so that a row's elements are
/// neighbours. But as the tensor has them that the sequence reads, if these are its dims and the
/// scanned one is not the last: neighbours of what is read are then neighbours of what is written.
static SmallVector<Value> dimsOf(ScanOp scan, ArrayRef<Value> ownAxes) {
  Value scanned = scan.getAxes()[0];
  SmallVector<Value> dims(ownAxes);
  dims.push_back(scanned);
  scan.walk([&](ReadOp read) {
    SmallVector<Value> order;
    for (const ValueExpr &subscript : read.getSubscriptExprs())
      if (Value axis = subscript.asValue();
          axis && llvm::is_contained(dims, axis) && !llvm::is_contained(order, axis))
        order.push_back(axis);
    if (order.size() != dims.size() || order.size() != read.getSubscriptExprs().size() ||
        order.back() == scanned)
      return WalkResult::advance();
    dims = order;
    return WalkResult::interrupt();
  });
  return dims;
}

namespace {
struct ExpandScansPass : Counted<tegula::impl::ExpandScansPassBase<ExpandScansPass>> {
  void runOnOperation() override {
    Prover prover(sizeFacts(getOperation()));
    sorted.clear();
    SmallVector<ScanOp> scans;
    getOperation().walk<WalkOrder::PostOrder>([&](ScanOp scan) { scans.push_back(scan); });
    for (ScanOp scan : scans)
      if ((isSort(scan.getKind()) || isCumulative(scan.getKind())) && failed(expand(scan, prover)))
        return signalPassFailure();
  }

  std::vector<SortedRows> sorted; // so far

  LogicalResult expand(ScanOp scan, Prover &prover) {
    // The position is where the result is read, not something the sequence depends on.
    SetVector<Value> needs = valuesUsedBy(scan);
    DenseSet<Value> fromPosition;
    for (const ValueExpr &position : scan.getPositionExprs())
      fromPosition.insert_range(position.operands());
    SetVector<Value> sequence;
    for (Region &region : scan->getRegions())
      region.walk([&](Operation *op) {
        for (Value operand : op->getOperands())
          if (needs.contains(operand))
            sequence.insert(operand);
      });
    Value axis = scan.getAxes()[0];
    for (const ValueExpr &bound : {lowOf(axis), highOf(axis)})
      sequence.insert_range(bound.operands());
    if (scan.getInit())
      sequence.insert(scan.getInit());

    std::optional<Outline> where = outline(scan, sequence.getArrayRef(), OutlineMode::Always);
    if (!where)
      return scan.emitError() << "the scan depends on a tensor that its statement writes";
    bool sorts = isSort(scan.getKind());
    SmallVector<Value> axes = sorts ? SmallVector<Value>(where->axes) : dimsOf(scan, where->axes);
    if (sorts)
      axes.push_back(axis);
    std::string name = stringifyScanKind(scan.getKind()).str();
    auto makeTemp = [&](Type elementType, StringRef tempName) {
      return makeAxesTemp(where->anchor, axes, elementType, tempName, prover, /*tileSize=*/64);
    };
    bool wantsPosition =
        scan.getKind() == ScanKind::ArgSort || scan.getKind() == ScanKind::TopKIndex;
    OpBuilder builder(scan);
    Type valueType = sorts ? scan.getYield().getValues()[0].getType() : scan.getType();
    std::optional<AxesTemp> temp = makeTemp(valueType, name);
    if (!temp)
      return scan.emitError() << "the length of the scan has no bound in sizes";
    std::optional<AxesTemp> places;
    if (sorts) {
      places = makeTemp(builder.getI64Type(), name + "_at");
      SortedRows rows = buildSort(scan, *where, *temp, *places);
      auto earlier =
          llvm::find_if(sorted, [&](const SortedRows &known) { return isSameSort(known, rows); });
      if (earlier == sorted.end()) {
        sorted.push_back(rows);
        count("sorts expanded");
      } else {
        // The elements of this scan are those of the other, subscript by subscript.
        temp->tensor = earlier->values.tensor;
        places->tensor = earlier->positions.tensor;
        eraseSort(rows);
        count("sorts shared");
      }
    } else {
      buildLoop(scan, *where, *temp);
      count("scans expanded");
    }
    const AxesTemp &result = wantsPosition ? *places : *temp;
    SmallVector<ValueExpr> subscripts = result.subscripts;
    for (ValueExpr &subscript : subscripts)
      subscript = subscript.substitute(axis, scan.getPositionExprs()[0]);
    Value read = ReadOp::create(builder, scan.getLoc(), result.tensor, subscripts);
    scan.replaceAllUsesWith(read);
    scan.erase();
    return success();
  }
};
} // namespace
