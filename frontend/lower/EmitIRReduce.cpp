//===- EmitIRReduce.cpp - Reductions and scans ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reduction over several axes is one op. Only where an axis's bounds hold data that varies along
// an earlier axis (`for s, t in 0:length[s]`) the axes cannot stand in one op, and reductions nest.
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIRImpl.h"
#include "ir/tgl/TglReports.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace tegula;
using namespace tegula::emit;
using namespace mlir;

static tgl::ReduceKind reduceKind(Reduction kind) {
  switch (kind) {
  case Reduction::Sum:
    return tgl::ReduceKind::Sum;
  case Reduction::Prod:
    return tgl::ReduceKind::Prod;
  case Reduction::Max:
    return tgl::ReduceKind::Max;
  case Reduction::Min:
    return tgl::ReduceKind::Min;
  case Reduction::Mean:
    return tgl::ReduceKind::Mean;
  case Reduction::Var:
    return tgl::ReduceKind::Var;
  case Reduction::Any:
    return tgl::ReduceKind::Any;
  case Reduction::All:
    return tgl::ReduceKind::All;
  case Reduction::Count:
    return tgl::ReduceKind::Count;
  case Reduction::ArgMax:
    return tgl::ReduceKind::ArgMax;
  case Reduction::ArgMin:
    return tgl::ReduceKind::ArgMin;
  case Reduction::LogSumExp:
    return tgl::ReduceKind::LogSumExp;
  }
  llvm_unreachable("a kind of reduction");
}

/// The type in which points are combined, given the result's.
static Type pointType(Reduction kind, Type result, Type operand, OpBuilder &builder) {
  switch (kind) {
  case Reduction::Any:
  case Reduction::All:
  case Reduction::Count:
    return builder.getI1Type();
  case Reduction::ArgMax:
  case Reduction::ArgMin:
    return operand;
  default:
    return result;
  }
}

StringRef Emitter::precisionOf(bool isConvolution) const {
  if (*precision == "conv_tf32")
    return isConvolution ? "tf32" : "f32";
  return *precision;
}

Value Emitter::createReduce(const Expr *expr, Reduction kind, Type type, ArrayRef<const Var *> vars,
                            bool filtered, Location loc,
                            llvm::function_ref<SmallVector<Value>()> point) {
  auto op = tgl::ReduceOp::create(builder, loc, type, reduceKind(kind), axisSpecs(vars), filtered,
                                  kind == Reduction::Var && expr->unbiased);
  if (precision && kind == Reduction::Sum)
    op->setAttr("precision", builder.getStringAttr(precisionOf(analysis.isConvolution(expr))));
  Block *block = &op.getBody().front();
  Region region(*this, block, vars, block->getArguments());
  setOwnRanges(op, vars);
  SmallVector<Value> values = point();
  tgl::YieldOp::create(builder, loc, values);
  return op.getResult();
}

/// Unsigned numbers in the order of signed ones, and back: with their first bit flipped.
Value Emitter::flipFirstBit(Value value, Location loc) {
  unsigned width = value.getType().getIntOrFloatBitWidth();
  Value bit = constantInt(value.getType(), llvm::minIntN(width), loc);
  return arith::XOrIOp::create(builder, loc, value, bit);
}

/// `extreme`, or where data leave nothing to take it of a report, like that of a subscript that is
/// outside.
Value Emitter::requireElements(const Expr *expr, Value extreme) {
  Location loc = locate(expr->span);
  Value count = reduceOver(expr, Reduction::Count, splitAtData(expr->vars), nullptr);
  Value none = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, count,
                                     constantInt(count.getType(), 0, loc));
  if (expr->guard)
    none = arith::AndIOp::create(builder, loc, none, evalAs(expr->guard, builder.getI1Type()));
  // A tensor without elements: what is read of it is outside.
  Operation *around = builder.getInsertionBlock()->getParentOp();
  auto kernel = isa<tgl::KernelOp>(around) ? cast<tgl::KernelOp>(around)
                                           : around->getParentOfType<tgl::KernelOp>();
  OpBuilder front = OpBuilder::atBlockBegin(&kernel.getBody().front());
  auto type = tgl::TglTensorType::get(builder.getContext(),
                                      {tgl::IndexExprAttr::get(builder.getContext(), IndexExpr(0))},
                                      extreme.getType());
  Value empty = tgl::TempOp::create(front, loc, type, "nothing");
  auto missing = tgl::ReadOp::create(builder, loc, empty, {tgl::ValueExpr(int64_t(0))}, Value(),
                                     none, {}, accessText(expr->span));
  missing->setAttr(tgl::reportsAsAttrName, builder.getStringAttr("is of nothing"));
  return arith::SelectOp::create(builder, loc, none, missing, extreme);
}

Value Emitter::computeReduce(const Expr *expr) {
  Value result = computeInOrder(expr);
  return expr->dataDependent ? requireElements(expr, result) : result;
}

/// Extremes of unsigned numbers are those of signed ones.
Value Emitter::computeInOrder(const Expr *expr) {
  bool isExtreme = expr->reduction == Reduction::Max || expr->reduction == Reduction::Min;
  bool isPlace = expr->reduction == Reduction::ArgMax || expr->reduction == Reduction::ArgMin;
  if (!(isExtreme || isPlace) || !isUnsigned(expr->operands[0]->type))
    return computeSigned(expr);
  Location loc = locate(expr->span);
  Value result = reduceOver(expr, expr->reduction, splitAtData(expr->vars), expr->operands[0],
                            [&](Value point) { return flipFirstBit(point, loc); });
  return isExtreme ? flipFirstBit(result, loc) : result;
}

Value Emitter::computeSigned(const Expr *expr) {
  SmallVector<ArrayRef<const Var *>> groups = splitAtData(expr->vars);
  if (groups.size() == 1)
    return reduceOver(expr, expr->reduction, groups, expr->operands[0]);
  switch (expr->reduction) {
  case Reduction::Mean: {
    Location loc = locate(expr->span);
    Type type = computeTypeOf(expr->type);
    Value count = coerce(reduceOver(expr, Reduction::Count, groups, nullptr), type, loc);
    Value sum = reduceOver(expr, Reduction::Sum, groups, expr->operands[0]);
    return arith::DivFOp::create(builder, loc, sum, count, arith::FastMathFlags::contract);
  }
  case Reduction::Var:
    return varianceOver(expr, groups);
  case Reduction::ArgMax:
  case Reduction::ArgMin:
    llvm_unreachable("argmax and argmin have one axis");
  default:
    return reduceOver(expr, expr->reduction, groups, expr->operands[0]);
  }
}

/// Reduces `value` over all axes of `groups`, one op for each group; no value: counts the points.
Value Emitter::reduceOver(const Expr *expr, Reduction kind, ArrayRef<ArrayRef<const Var *>> groups,
                          const Expr *value, llvm::function_ref<Value(Value)> transform) {
  Location loc = locate(expr->span);
  Type type = kind == Reduction::Count ? builder.getI64Type() : computeTypeOf(expr->type);
  bool isInnermost = groups.size() == 1;
  // Counts of counts are sums.
  Reduction own = !isInnermost && kind == Reduction::Count ? Reduction::Sum : kind;
  return createReduce(
      expr, own, type, groups.front(), isInnermost && expr->filter, loc,
      [&]() -> SmallVector<Value> {
        if (!isInnermost)
          return {reduceOver(expr, kind, groups.drop_front(), value, transform)};
        SmallVector<Value> yielded;
        Value filter = expr->filter ? evalAs(expr->filter, builder.getI1Type()) : Value();
        if (value) {
          Value point = eval(value);
          point = coerce(point, value->type, pointType(kind, type, point.getType(), builder), loc);
          yielded.push_back(transform ? transform(point) : point);
        } else {
          yielded.push_back(constantInt(builder.getI1Type(), 1, loc));
        }
        if (filter)
          yielded.push_back(filter);
        return yielded;
      });
}

/// In two steps: the mean, then the mean square of the distances.
Value Emitter::varianceOver(const Expr *expr, ArrayRef<ArrayRef<const Var *>> groups) {
  Location loc = locate(expr->span);
  Type type = computeTypeOf(expr->type);
  auto contract = arith::FastMathFlags::contract;
  Value count = coerce(reduceOver(expr, Reduction::Count, groups, nullptr), type, loc);
  Value sum = reduceOver(expr, Reduction::Sum, groups, expr->operands[0]);
  Value mean = arith::DivFOp::create(builder, loc, sum, count, contract);
  Value squares =
      reduceOver(expr, Reduction::Sum, groups, expr->operands[0], [&](Value point) -> Value {
        Value distance = arith::SubFOp::create(builder, loc, point, mean, contract);
        return arith::MulFOp::create(builder, loc, distance, distance, contract);
      });
  if (expr->unbiased)
    count = arith::SubFOp::create(builder, loc, count, constant(type, 1, loc), contract);
  return arith::DivFOp::create(builder, loc, squares, count, contract);
}

static tgl::ScanKind scanKind(tegula::checked::Scan kind) {
  using tegula::checked::Scan;
  switch (kind) {
  case Scan::CumSum:
    return tgl::ScanKind::CumSum;
  case Scan::CumProd:
    return tgl::ScanKind::CumProd;
  case Scan::CumMax:
    return tgl::ScanKind::CumMax;
  case Scan::CumMin:
    return tgl::ScanKind::CumMin;
  case Scan::Softmax:
    return tgl::ScanKind::Softmax;
  case Scan::LogSoftmax:
    return tgl::ScanKind::LogSoftmax;
  case Scan::Sort:
    return tgl::ScanKind::Sort;
  case Scan::ArgSort:
    return tgl::ScanKind::ArgSort;
  case Scan::TopKValue:
    return tgl::ScanKind::TopKValue;
  case Scan::TopKIndex:
    return tgl::ScanKind::TopKIndex;
  case Scan::Recurrence:
    return tgl::ScanKind::Recurrence;
  }
  llvm_unreachable("a kind of scan");
}

Value Emitter::computeScan(const Expr *expr) {
  using tegula::checked::Scan;
  Location loc = locate(expr->span);
  Type type = computeTypeOf(expr->type);
  bool givesIndex = expr->scan == Scan::ArgSort || expr->scan == Scan::TopKIndex;
  bool isRecurrence = expr->scan == Scan::Recurrence;
  bool isSum = expr->scan == Scan::CumSum || expr->scan == Scan::CumProd;
  bool isFlipped = isUnsigned(expr->operands[0]->type) && !isSum;
  assert(splitAtData(expr->vars).size() == 1 && "the axes of a scan do not depend on each other");

  Value init =
      isRecurrence && expr->operands.size() > 2 ? evalAs(expr->operands[2], type) : Value();
  auto op = tgl::ScanOp::create(builder, loc, type, scanKind(expr->scan), axisSpecs(expr->vars),
                                valueExprs(expr->positions), init, expr->reverse, expr->exclusive,
                                expr->descending);
  Block *block = &op.getBody().front();
  Region region(*this, block, expr->vars, block->getArguments());
  setOwnRanges(op, expr->vars);
  SmallVector<Value> yielded;
  for (const Expr *operand : ArrayRef(expr->operands).take_front(isRecurrence ? 2 : 1))
    yielded.push_back(givesIndex ? eval(operand) : evalAs(operand, type));
  if (isFlipped)
    yielded[0] = flipFirstBit(yielded[0], loc);
  tgl::YieldOp::create(builder, loc, yielded);
  if (!isFlipped || givesIndex)
    return op.getResult();
  builder.setInsertionPointAfter(op);
  return flipFirstBit(op.getResult(), loc);
}
