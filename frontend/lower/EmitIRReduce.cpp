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
#include "frontend/lower/EmitIRReduce.h"
#include "frontend/lower/EmitIRExpr.h"
#include "frontend/lower/EmitIRImpl.h"
#include "ir/tgl/TglReports.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace tegula;
using namespace tegula::emit;
using namespace mlir;

static mlir::Value computeInOrder(Emitter &emitter, const Expr *expr);
static mlir::Value computeSigned(Emitter &emitter, const Expr *expr);
static mlir::Value reduceOver(Emitter &emitter, const Expr *expr, Reduction kind,
                              llvm::ArrayRef<llvm::ArrayRef<const Var *>> groups, const Expr *value,
                              llvm::function_ref<mlir::Value(mlir::Value)> transform = nullptr);
static mlir::Value varianceOver(Emitter &emitter, const Expr *expr,
                                llvm::ArrayRef<llvm::ArrayRef<const Var *>> groups);

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

StringRef tegula::emit::precisionOf(const Emitter &emitter, bool isConvolution) {
  if (*emitter.precision == "conv_tf32")
    return isConvolution ? "tf32" : "f32";
  return *emitter.precision;
}

/// `expr`: the reduction that this is, or is a part of.
static Value createReduce(Emitter &emitter, const Expr *expr, Reduction kind, Type type,
                          ArrayRef<const Var *> vars, bool filtered, Location loc,
                          llvm::function_ref<SmallVector<Value>()> point) {
  auto op =
      tgl::ReduceOp::create(emitter.builder, loc, type, reduceKind(kind), emitter.axisSpecs(vars),
                            filtered, kind == Reduction::Var && expr->unbiased);
  if (emitter.precision && kind == Reduction::Sum)
    op->setAttr("precision", emitter.builder.getStringAttr(
                                 precisionOf(emitter, emitter.analysis.isConvolution(expr))));
  Block *block = &op.getBody().front();
  Emitter::Region region(emitter, block, vars, block->getArguments());
  emitter.setOwnRanges(op, vars);
  SmallVector<Value> values = point();
  tgl::YieldOp::create(emitter.builder, loc, values);
  return op.getResult();
}

/// Unsigned numbers in the order of signed ones, and back: with their first bit flipped.
static Value flipFirstBit(Emitter &emitter, Value value, Location loc) {
  unsigned width = value.getType().getIntOrFloatBitWidth();
  Value bit = constantInt(emitter, value.getType(), llvm::minIntN(width), loc);
  return arith::XOrIOp::create(emitter.builder, loc, value, bit);
}

/// `extreme`, or where data leave nothing to take it of a report, like that of a subscript that is
/// outside.
static Value requireElements(Emitter &emitter, const Expr *expr, Value extreme) {
  Location loc = emitter.locate(expr->span);
  Value count =
      reduceOver(emitter, expr, Reduction::Count, emitter.splitAtData(expr->vars), nullptr);
  Value none = arith::CmpIOp::create(emitter.builder, loc, arith::CmpIPredicate::eq, count,
                                     constantInt(emitter, count.getType(), 0, loc));
  if (expr->guard)
    none = arith::AndIOp::create(emitter.builder, loc, none,
                                 evalAs(emitter, expr->guard, emitter.builder.getI1Type()));
  // A tensor without elements: what is read of it is outside.
  Operation *around = emitter.builder.getInsertionBlock()->getParentOp();
  auto kernel = isa<tgl::KernelOp>(around) ? cast<tgl::KernelOp>(around)
                                           : around->getParentOfType<tgl::KernelOp>();
  OpBuilder front = OpBuilder::atBlockBegin(&kernel.getBody().front());
  auto type = tgl::TglTensorType::get(
      emitter.builder.getContext(),
      {tgl::IndexExprAttr::get(emitter.builder.getContext(), IndexExpr(0))}, extreme.getType());
  Value empty = tgl::TempOp::create(front, loc, type, "nothing");
  auto missing = tgl::ReadOp::create(emitter.builder, loc, empty, {tgl::ValueExpr(int64_t(0))},
                                     Value(), none, {}, emitter.accessText(expr->span));
  missing->setAttr(tgl::reportsAsAttrName, emitter.builder.getStringAttr("is of nothing"));
  return arith::SelectOp::create(emitter.builder, loc, none, missing, extreme);
}

Value tegula::emit::computeReduce(Emitter &emitter, const Expr *expr) {
  Value result = computeInOrder(emitter, expr);
  return expr->dataDependent ? requireElements(emitter, expr, result) : result;
}

/// Extremes of unsigned numbers are those of signed ones.
static Value computeInOrder(Emitter &emitter, const Expr *expr) {
  bool isExtreme = expr->reduction == Reduction::Max || expr->reduction == Reduction::Min;
  bool isPlace = expr->reduction == Reduction::ArgMax || expr->reduction == Reduction::ArgMin;
  if (!(isExtreme || isPlace) || !isUnsigned(expr->operands[0]->type))
    return computeSigned(emitter, expr);
  Location loc = emitter.locate(expr->span);
  Value result =
      reduceOver(emitter, expr, expr->reduction, emitter.splitAtData(expr->vars), expr->operands[0],
                 [&](Value point) { return flipFirstBit(emitter, point, loc); });
  return isExtreme ? flipFirstBit(emitter, result, loc) : result;
}

static Value computeSigned(Emitter &emitter, const Expr *expr) {
  SmallVector<ArrayRef<const Var *>> groups = emitter.splitAtData(expr->vars);
  if (groups.size() == 1)
    return reduceOver(emitter, expr, expr->reduction, groups, expr->operands[0]);
  switch (expr->reduction) {
  case Reduction::Mean: {
    Location loc = emitter.locate(expr->span);
    Type type = computeTypeOf(emitter, expr->type);
    Value count =
        coerce(emitter, reduceOver(emitter, expr, Reduction::Count, groups, nullptr), type, loc);
    Value sum = reduceOver(emitter, expr, Reduction::Sum, groups, expr->operands[0]);
    return arith::DivFOp::create(emitter.builder, loc, sum, count, arith::FastMathFlags::contract);
  }
  case Reduction::Var:
    return varianceOver(emitter, expr, groups);
  case Reduction::ArgMax:
  case Reduction::ArgMin:
    llvm_unreachable("argmax and argmin have one axis");
  default:
    return reduceOver(emitter, expr, expr->reduction, groups, expr->operands[0]);
  }
}

/// Reduces `value` over all axes of `groups`, one op for each group; no value: counts the points.
static Value reduceOver(Emitter &emitter, const Expr *expr, Reduction kind,
                        ArrayRef<ArrayRef<const Var *>> groups, const Expr *value,
                        llvm::function_ref<Value(Value)> transform) {
  Location loc = emitter.locate(expr->span);
  Type type =
      kind == Reduction::Count ? emitter.builder.getI64Type() : computeTypeOf(emitter, expr->type);
  bool isInnermost = groups.size() == 1;
  // Counts of counts are sums.
  Reduction own = !isInnermost && kind == Reduction::Count ? Reduction::Sum : kind;
  return createReduce(
      emitter, expr, own, type, groups.front(), isInnermost && expr->filter, loc,
      [&]() -> SmallVector<Value> {
        if (!isInnermost)
          return {reduceOver(emitter, expr, kind, groups.drop_front(), value, transform)};
        SmallVector<Value> yielded;
        Value filter =
            expr->filter ? evalAs(emitter, expr->filter, emitter.builder.getI1Type()) : Value();
        if (value) {
          Value point = eval(emitter, value);
          point = coerce(emitter, point, value->type,
                         pointType(kind, type, point.getType(), emitter.builder), loc);
          yielded.push_back(transform ? transform(point) : point);
        } else {
          yielded.push_back(constantInt(emitter, emitter.builder.getI1Type(), 1, loc));
        }
        if (filter)
          yielded.push_back(filter);
        return yielded;
      });
}

/// In two steps: the mean, then the mean square of the distances.
static Value varianceOver(Emitter &emitter, const Expr *expr,
                          ArrayRef<ArrayRef<const Var *>> groups) {
  Location loc = emitter.locate(expr->span);
  Type type = computeTypeOf(emitter, expr->type);
  auto contract = arith::FastMathFlags::contract;
  Value count =
      coerce(emitter, reduceOver(emitter, expr, Reduction::Count, groups, nullptr), type, loc);
  Value sum = reduceOver(emitter, expr, Reduction::Sum, groups, expr->operands[0]);
  Value mean = arith::DivFOp::create(emitter.builder, loc, sum, count, contract);
  Value squares = reduceOver(
      emitter, expr, Reduction::Sum, groups, expr->operands[0], [&](Value point) -> Value {
        Value distance = arith::SubFOp::create(emitter.builder, loc, point, mean, contract);
        return arith::MulFOp::create(emitter.builder, loc, distance, distance, contract);
      });
  if (expr->unbiased)
    count = arith::SubFOp::create(emitter.builder, loc, count, constant(emitter, type, 1, loc),
                                  contract);
  return arith::DivFOp::create(emitter.builder, loc, squares, count, contract);
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

Value tegula::emit::computeScan(Emitter &emitter, const Expr *expr) {
  using tegula::checked::Scan;
  Location loc = emitter.locate(expr->span);
  Type type = computeTypeOf(emitter, expr->type);
  bool givesIndex = expr->scan == Scan::ArgSort || expr->scan == Scan::TopKIndex;
  bool isRecurrence = expr->scan == Scan::Recurrence;
  bool isSum = expr->scan == Scan::CumSum || expr->scan == Scan::CumProd;
  bool isFlipped = isUnsigned(expr->operands[0]->type) && !isSum;
  assert(emitter.splitAtData(expr->vars).size() == 1 &&
         "the axes of a scan do not depend on each other");

  Value init = isRecurrence && expr->operands.size() > 2 ? evalAs(emitter, expr->operands[2], type)
                                                         : Value();
  auto op = tgl::ScanOp::create(emitter.builder, loc, type, scanKind(expr->scan),
                                emitter.axisSpecs(expr->vars), emitter.valueExprs(expr->positions),
                                init, expr->reverse, expr->exclusive, expr->descending);
  Block *block = &op.getBody().front();
  Emitter::Region region(emitter, block, expr->vars, block->getArguments());
  emitter.setOwnRanges(op, expr->vars);
  SmallVector<Value> yielded;
  for (const Expr *operand : ArrayRef(expr->operands).take_front(isRecurrence ? 2 : 1))
    yielded.push_back(givesIndex ? eval(emitter, operand) : evalAs(emitter, operand, type));
  if (isFlipped)
    yielded[0] = flipFirstBit(emitter, yielded[0], loc);
  tgl::YieldOp::create(emitter.builder, loc, yielded);
  if (!isFlipped || givesIndex)
    return op.getResult();
  emitter.builder.setInsertionPointAfter(op);
  return flipFirstBit(emitter, op.getResult(), loc);
}
