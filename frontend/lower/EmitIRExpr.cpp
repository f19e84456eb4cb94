//===- EmitIRExpr.cpp - Scalar values ---------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIRExpr.h"
#include "frontend/lower/EmitIRImpl.h"
#include "frontend/lower/EmitIRReduce.h"
#include "ir/tgl/TglFunctions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace tegula;
using namespace tegula::emit;
using namespace mlir;

static mlir::Value compute(Emitter &emitter, const Expr *expr);
static mlir::Value computeUnary(Emitter &emitter, const Expr *expr);
static mlir::Value compare(Emitter &emitter, tegula::checked::Binary op, mlir::Value lhs,
                           mlir::Value rhs, mlir::Location loc, bool isUnsigned = false);
static mlir::Value computeBinary(Emitter &emitter, const Expr *expr);
static mlir::Value integerDivision(Emitter &emitter, bool remainder, const Expr *expr);
static mlir::Value floatDivision(Emitter &emitter, bool remainder, mlir::Value lhs, mlir::Value rhs,
                                 mlir::Location loc);
static mlir::Value power(Emitter &emitter, const Expr *expr);
static mlir::Value integerPower(Emitter &emitter, const Expr *expr, mlir::Value base);
static mlir::Value shift(Emitter &emitter, const Expr *expr);
using UnaryOp = tegula::checked::Unary;
using BinaryOp = tegula::checked::Binary;

/// Creates an op of `arith` or `math` that may be contracted with its neighbours.
template <typename OpTy, typename... Args>
static Value create(OpBuilder &builder, Location loc, Args &&...args) {
  auto op = OpTy::create(builder, loc, std::forward<Args>(args)...);
  if constexpr (requires { op.setFastmath(arith::FastMathFlags::contract); })
    if (isa<FloatType>(op->getResult(0).getType()))
      op.setFastmath(arith::FastMathFlags::contract);
  return op->getResult(0);
}

//===----------------------------------------------------------------------===//
// Types, constants, conversions
//===----------------------------------------------------------------------===//

Type tegula::emit::typeOf(Emitter &emitter, DType type) { return mlirType(&emitter.context, type); }

Type tegula::emit::computeTypeOf(Emitter &emitter, DType type) {
  return tgl::getComputeType(typeOf(emitter, type));
}

Value tegula::emit::constantInt(Emitter &emitter, Type type, int64_t value, Location loc) {
  if (type.isInteger(32))
    value = static_cast<int32_t>(value); // of u32, its bits
  return arith::ConstantOp::create(emitter.builder, loc,
                                   emitter.builder.getIntegerAttr(type, value));
}

Value tegula::emit::constant(Emitter &emitter, Type type, double value, Location loc) {
  if (auto floatType = dyn_cast<FloatType>(type)) {
    APFloat number(value);
    bool losesInfo;
    number.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    return arith::ConstantOp::create(emitter.builder, loc,
                                     emitter.builder.getFloatAttr(floatType, number));
  }
  return constantInt(emitter, type, static_cast<int64_t>(value), loc);
}

Value tegula::emit::coerce(Emitter &emitter, Value value, Type to, Location loc) {
  Type from = value.getType();
  if (from == to)
    return value;
  if (to.isInteger(1)) {
    Value zero = constant(emitter, from, 0, loc);
    return compare(emitter, BinaryOp::NE, value, zero, loc);
  }
  if (from.isIndex() || to.isIndex()) {
    if (isa<FloatType>(to) || from.isInteger(1))
      return coerce(emitter, coerce(emitter, value, emitter.builder.getI64Type(), loc), to, loc);
    return create<arith::IndexCastOp>(emitter.builder, loc, to, value);
  }
  if (isa<FloatType>(to)) {
    if (from.isInteger(1))
      return create<arith::UIToFPOp>(emitter.builder, loc, to, value);
    if (isa<IntegerType>(from))
      return create<arith::SIToFPOp>(emitter.builder, loc, to, value);
    if (to.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth())
      return create<arith::ExtFOp>(emitter.builder, loc, to, value);
    return create<arith::TruncFOp>(emitter.builder, loc, to, value);
  }
  assert(isa<IntegerType>(from) && "a float becomes an integer only by an explicit conversion");
  if (from.isInteger(1))
    return create<arith::ExtUIOp>(emitter.builder, loc, to, value);
  if (to.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth())
    return create<arith::ExtSIOp>(emitter.builder, loc, to, value);
  return create<arith::TruncIOp>(emitter.builder, loc, to, value);
}

Value tegula::emit::coerce(Emitter &emitter, Value value, DType from, Type to, Location loc) {
  if (!isUnsigned(from) || value.getType() == to)
    return coerce(emitter, value, to, loc);
  if (isa<FloatType>(to))
    return create<arith::UIToFPOp>(emitter.builder, loc, to, value);
  if (value.getType().isInteger(32) && (to.isInteger(64) || to.isIndex()))
    value = create<arith::ExtUIOp>(emitter.builder, loc, emitter.builder.getI64Type(), value);
  return coerce(emitter, value, to, loc);
}

Value tegula::emit::toStore(Emitter &emitter, Value value, tgl::TglTensorType type, Location loc) {
  Type element = type.getElementType(), compute = type.getComputeType();
  if (value.getType().isF64() && compute.isF32() && element != compute)
    return tgl::ConvertOp::create(emitter.builder, loc, value, element);
  return coerce(emitter, value, compute, loc);
}

Value tegula::emit::convertTo(Emitter &emitter, Value value, DType from, DType target, bool nearest,
                              Location loc) {
  if (from == DType::U32) {
    value = coerce(
        emitter, value, from,
        isFloat(target) ? Type(emitter.builder.getF64Type()) : emitter.builder.getI64Type(), loc);
  } else if (from == DType::U64 && isFloat(target)) {
    value = coerce(
        emitter, value, from,
        target == DType::F64 ? emitter.builder.getF64Type() : emitter.builder.getF32Type(), loc);
  } else if (from == DType::U64 && nearest) {
    // What is beyond the target's largest is so as an unsigned number alone.
    if (target == DType::U64)
      return value;
    Value largest = constantInt(emitter, value.getType(), maxValue(target), loc);
    value = create<arith::MinUIOp>(emitter.builder, loc, value, largest);
  }
  if (target == DType::Bool)
    return coerce(emitter, value, emitter.builder.getI1Type(), loc);
  if (value.getType().isIndex())
    value = coerce(emitter, value, emitter.builder.getI64Type(), loc);
  return tgl::ConvertOp::create(emitter.builder, loc, value, typeOf(emitter, target),
                                nearest && !isFloat(target));
}

/// Where the expression is a constant: its value.
static std::optional<double> constantOf(const Expr *expr) {
  switch (expr->kind) {
  case Expr::Constant:
    if (expr->type == DType::U64)
      return static_cast<double>(static_cast<uint64_t>(expr->intValue));
    return isFloat(expr->type) ? expr->floatValue : static_cast<double>(expr->intValue);
  case Expr::Index:
    if (std::optional<int64_t> known = expr->index.asConstant())
      return static_cast<double>(*known);
    return std::nullopt;
  case Expr::Widen:
    return constantOf(expr->operands[0]);
  case Expr::Let:
    return constantOf(expr->let->value);
  case Expr::Unary:
    if (expr->unary == UnaryOp::Neg)
      if (std::optional<double> known = constantOf(expr->operands[0]))
        return -*known;
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

Value tegula::emit::eval(Emitter &emitter, const Expr *expr) {
  for (auto frame = emitter.frames.rbegin(); frame != emitter.frames.rend(); ++frame) {
    if (auto known = frame->values.find(expr); known != frame->values.end())
      return known->second;
    if (frame->rebinds)
      break;
  }
  Value value = compute(emitter, expr);
  emitter.frames.back().values[expr] = value;
  return value;
}

Value tegula::emit::evalAs(Emitter &emitter, const Expr *expr, Type type) {
  return coerce(emitter, eval(emitter, expr), expr->type, type, emitter.locate(expr->span));
}

static Value compute(Emitter &emitter, const Expr *expr) {
  Location loc = emitter.locate(expr->span);
  Type type = computeTypeOf(emitter, expr->type);
  switch (expr->kind) {
  case Expr::Constant:
    return isFloat(expr->type) ? constant(emitter, type, expr->floatValue, loc)
                               : constantInt(emitter, type, expr->intValue, loc);
  case Expr::Index:
    if (std::optional<int64_t> known = expr->index.asConstant(); known && isa<IntegerType>(type))
      return constantInt(emitter, type, *known, loc);
    return coerce(emitter, emitter.indexOf(expr->index, loc), type, loc);
  case Expr::Scalar: {
    const Place &place = emitter.scalars.find(expr->scalar)->second;
    return place.kind == Place::Stored ? emitter.readStored(place, loc) : place.value;
  }
  case Expr::Let: {
    // One without a place yet stands in a block, after a value that is computed before the block.
    Place place = emitter.lets.lookup(expr->let);
    switch (place.kind) {
    case Place::Inline:
      return eval(emitter, expr->let->value);
    case Place::Scalar:
      return place.value;
    case Place::Stored:
      return emitter.readStored(place, loc);
    }
    llvm_unreachable("a kind of place");
  }
  case Expr::State: {
    const Place &place = emitter.states.find(expr->state)->second;
    assert(place.kind != Place::Inline && "a state lives somewhere");
    return place.kind == Place::Stored ? emitter.readStored(place, loc) : place.value;
  }
  case Expr::Read:
    return emitter.computeRead(expr);
  case Expr::Unary:
    return computeUnary(emitter, expr);
  case Expr::Binary:
    return computeBinary(emitter, expr);
  case Expr::Where: {
    Value condition = evalAs(emitter, expr->operands[0], emitter.builder.getI1Type());
    Value yes = evalAs(emitter, expr->operands[1], type);
    Value no = evalAs(emitter, expr->operands[2], type);
    return arith::SelectOp::create(emitter.builder, loc, condition, yes, no);
  }
  case Expr::Convert: {
    Value operand = eval(emitter, expr->operands[0]);
    if (operand.getType() == typeOf(emitter, expr->target))
      return operand;
    return convertTo(emitter, operand, expr->operands[0]->type, expr->target, false, loc);
  }
  case Expr::Quantize:
    return convertTo(emitter, eval(emitter, expr->operands[0]), expr->operands[0]->type,
                     expr->target, true, loc);
  case Expr::Widen:
    return evalAs(emitter, expr->operands[0], type);
  case Expr::Reduce:
    return computeReduce(emitter, expr);
  case Expr::Scan:
    return computeScan(emitter, expr);
  case Expr::Random: {
    SmallVector<Value> keys;
    for (const Expr *key : expr->operands)
      keys.push_back(evalAs(emitter, key, emitter.builder.getI64Type()));
    Value number = tgl::RandomOp::create(emitter.builder, loc, emitter.builder.getF32Type(),
                                         expr->normal, keys);
    return coerce(emitter, number, type, loc);
  }
  }
  llvm_unreachable("a kind of expression");
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static Value computeUnary(Emitter &emitter, const Expr *expr) {
  Location loc = emitter.locate(expr->span);
  const Expr *operand = expr->operands[0];
  // What asks about a value takes it as it is; all others work in the result's type.
  if (expr->unary == UnaryOp::IsNan || expr->unary == UnaryOp::IsInf) {
    Value value = eval(emitter, operand);
    if (!isa<FloatType>(value.getType()))
      return constantInt(emitter, emitter.builder.getI1Type(), 0, loc);
    if (expr->unary == UnaryOp::IsNan)
      return arith::CmpFOp::create(emitter.builder, loc, arith::CmpFPredicate::UNO, value, value);
    Value magnitude = create<math::AbsFOp>(emitter.builder, loc, value);
    Value infinity =
        constant(emitter, value.getType(), std::numeric_limits<double>::infinity(), loc);
    return arith::CmpFOp::create(emitter.builder, loc, arith::CmpFPredicate::OEQ, magnitude,
                                 infinity);
  }
  Type type = computeTypeOf(emitter, expr->type);
  Value x = evalAs(emitter, operand, type);
  bool isFloating = isa<FloatType>(type);
  switch (expr->unary) {
  case UnaryOp::Neg:
    if (isFloating)
      return create<arith::NegFOp>(emitter.builder, loc, x);
    return create<arith::SubIOp>(emitter.builder, loc, constantInt(emitter, type, 0, loc), x);
  case UnaryOp::Not:
    return create<arith::XOrIOp>(emitter.builder, loc, x, constantInt(emitter, type, 1, loc));
  case UnaryOp::Abs:
    if (isFloating)
      return create<math::AbsFOp>(emitter.builder, loc, x);
    return type.isInteger(1) ? x : create<math::AbsIOp>(emitter.builder, loc, x);
  case UnaryOp::Sign: { // of nan: 0, as in PyTorch
    if (type.isInteger(1))
      return x;
    Value zero = constant(emitter, type, 0, loc), one = constant(emitter, type, 1, loc),
          minusOne = constant(emitter, type, -1, loc);
    Value isNegative = compare(emitter, BinaryOp::LT, x, zero, loc);
    Value isPositive = compare(emitter, BinaryOp::GT, x, zero, loc);
    Value ifNotPositive = arith::SelectOp::create(emitter.builder, loc, isNegative, minusOne, zero);
    return arith::SelectOp::create(emitter.builder, loc, isPositive, one, ifNotPositive);
  }
  default:
    break;
  }
  if (!isFloating) {
    assert((expr->unary == UnaryOp::Floor || expr->unary == UnaryOp::Ceil ||
            expr->unary == UnaryOp::Round || expr->unary == UnaryOp::Trunc) &&
           "elementary functions work on floats");
    return x;
  }
  switch (expr->unary) {
  case UnaryOp::Floor:
    return create<math::FloorOp>(emitter.builder, loc, x);
  case UnaryOp::Ceil:
    return create<math::CeilOp>(emitter.builder, loc, x);
  case UnaryOp::Round:
    return create<math::RoundEvenOp>(emitter.builder, loc, x);
  case UnaryOp::Trunc:
    return create<math::TruncOp>(emitter.builder, loc, x);
  case UnaryOp::Exp:
    return create<math::ExpOp>(emitter.builder, loc, x);
  case UnaryOp::Exp2:
    return create<math::Exp2Op>(emitter.builder, loc, x);
  case UnaryOp::Expm1:
    return create<math::ExpM1Op>(emitter.builder, loc, x);
  case UnaryOp::Log:
    return create<math::LogOp>(emitter.builder, loc, x);
  case UnaryOp::Log2:
    return create<math::Log2Op>(emitter.builder, loc, x);
  case UnaryOp::Log1p:
    return create<math::Log1pOp>(emitter.builder, loc, x);
  case UnaryOp::Sqrt:
    return create<math::SqrtOp>(emitter.builder, loc, x);
  case UnaryOp::Rsqrt:
    return create<math::RsqrtOp>(emitter.builder, loc, x);
  case UnaryOp::Sin:
    return create<math::SinOp>(emitter.builder, loc, x);
  case UnaryOp::Cos:
    return create<math::CosOp>(emitter.builder, loc, x);
  case UnaryOp::Tan:
    return create<math::TanOp>(emitter.builder, loc, x);
  case UnaryOp::Tanh:
    return create<math::TanhOp>(emitter.builder, loc, x);
  case UnaryOp::Erf:
    return create<math::ErfOp>(emitter.builder, loc, x);
  case UnaryOp::Asin:
    return create<math::AsinOp>(emitter.builder, loc, x);
  case UnaryOp::Acos:
    return create<math::AcosOp>(emitter.builder, loc, x);
  case UnaryOp::Atan:
    return create<math::AtanOp>(emitter.builder, loc, x);
  case UnaryOp::Sinh:
    return create<math::SinhOp>(emitter.builder, loc, x);
  case UnaryOp::Cosh:
    return create<math::CoshOp>(emitter.builder, loc, x);
  case UnaryOp::Asinh:
    return create<math::AsinhOp>(emitter.builder, loc, x);
  case UnaryOp::Acosh:
    return create<math::AcoshOp>(emitter.builder, loc, x);
  case UnaryOp::Atanh:
    return create<math::AtanhOp>(emitter.builder, loc, x);
  case UnaryOp::Log10:
    return create<math::Log10Op>(emitter.builder, loc, x);
  case UnaryOp::Erfc:
    return create<math::ErfcOp>(emitter.builder, loc, x);
  case UnaryOp::Erfinv:
    return tgl::ErfinvOp::create(emitter.builder, loc, x);
  case UnaryOp::Lgamma:
    return tgl::LgammaOp::create(emitter.builder, loc, x);
  case UnaryOp::Digamma:
    return tgl::DigammaOp::create(emitter.builder, loc, x);
  default:
    llvm_unreachable("handled above");
  }
}

/// bool, i32, i64, f32, f64: the wider of two compute types.
static Type wider(Type a, Type b) {
  auto rank = [](Type type) {
    if (type.isInteger(1))
      return 0;
    if (isa<FloatType>(type))
      return type.isF32() ? 3 : 4;
    return type.isInteger(32) ? 1 : 2;
  };
  return rank(a) < rank(b) ? b : a;
}

static Value compare(Emitter &emitter, BinaryOp op, Value lhs, Value rhs, Location loc,
                     bool isUnsigned) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  Type type = wider(lhs.getType(), rhs.getType());
  lhs = coerce(emitter, lhs, type, loc);
  rhs = coerce(emitter, rhs, type, loc);
  if (isa<FloatType>(type)) { // false with a nan, but for `!=`
    F predicate = op == BinaryOp::LT   ? F::OLT
                  : op == BinaryOp::LE ? F::OLE
                  : op == BinaryOp::GT ? F::OGT
                  : op == BinaryOp::GE ? F::OGE
                  : op == BinaryOp::EQ ? F::OEQ
                                       : F::UNE;
    return arith::CmpFOp::create(emitter.builder, loc, predicate, lhs, rhs);
  }
  isUnsigned |= type.isInteger(1); // true is 1, not -1
  I predicate = op == BinaryOp::LT   ? (isUnsigned ? I::ult : I::slt)
                : op == BinaryOp::LE ? (isUnsigned ? I::ule : I::sle)
                : op == BinaryOp::GT ? (isUnsigned ? I::ugt : I::sgt)
                : op == BinaryOp::GE ? (isUnsigned ? I::uge : I::sge)
                : op == BinaryOp::EQ ? I::eq
                                     : I::ne;
  return arith::CmpIOp::create(emitter.builder, loc, predicate, lhs, rhs);
}

static Value computeBinary(Emitter &emitter, const Expr *expr) {
  Location loc = emitter.locate(expr->span);
  BinaryOp op = expr->binary;
  if (op >= BinaryOp::LT && op <= BinaryOp::NE)
    return compare(emitter, op, eval(emitter, expr->operands[0]), eval(emitter, expr->operands[1]),
                   loc, isUnsigned(expr->operands[0]->type));
  if (op == BinaryOp::Pow)
    return power(emitter, expr);
  if (op == BinaryOp::Shl || op == BinaryOp::Shr)
    return shift(emitter, expr);
  Type type = computeTypeOf(emitter, expr->type);
  bool isFloating = isa<FloatType>(type);
  if ((op == BinaryOp::FloorDiv || op == BinaryOp::Mod) && !isFloating)
    return integerDivision(emitter, op == BinaryOp::Mod, expr);
  Value a = evalAs(emitter, expr->operands[0], type), b = evalAs(emitter, expr->operands[1], type);
  switch (op) {
  case BinaryOp::Atan2:
    return create<math::Atan2Op>(emitter.builder, loc, a, b);
  case BinaryOp::CopySign:
    return create<math::CopySignOp>(emitter.builder, loc, a, b);
  case BinaryOp::Add:
    return isFloating ? create<arith::AddFOp>(emitter.builder, loc, a, b)
                      : create<arith::AddIOp>(emitter.builder, loc, a, b);
  case BinaryOp::Sub:
    return isFloating ? create<arith::SubFOp>(emitter.builder, loc, a, b)
                      : create<arith::SubIOp>(emitter.builder, loc, a, b);
  case BinaryOp::Mul:
    return isFloating ? create<arith::MulFOp>(emitter.builder, loc, a, b)
                      : create<arith::MulIOp>(emitter.builder, loc, a, b);
  case BinaryOp::Div:
    assert(isFloating && "`/` of integers is a float");
    return create<arith::DivFOp>(emitter.builder, loc, a, b);
  case BinaryOp::FloorDiv:
  case BinaryOp::Mod:
    return floatDivision(emitter, op == BinaryOp::Mod, a, b, loc);
  case BinaryOp::Max:
    if (isFloating)
      return create<arith::MaximumFOp>(emitter.builder, loc, a, b);
    return type.isInteger(1)        ? create<arith::OrIOp>(emitter.builder, loc, a, b)
           : isUnsigned(expr->type) ? create<arith::MaxUIOp>(emitter.builder, loc, a, b)
                                    : create<arith::MaxSIOp>(emitter.builder, loc, a, b);
  case BinaryOp::Min:
    if (isFloating)
      return create<arith::MinimumFOp>(emitter.builder, loc, a, b);
    return type.isInteger(1)        ? create<arith::AndIOp>(emitter.builder, loc, a, b)
           : isUnsigned(expr->type) ? create<arith::MinUIOp>(emitter.builder, loc, a, b)
                                    : create<arith::MinSIOp>(emitter.builder, loc, a, b);
  case BinaryOp::And:
  case BinaryOp::BitAnd:
    return create<arith::AndIOp>(emitter.builder, loc, a, b);
  case BinaryOp::Or:
  case BinaryOp::BitOr:
    return create<arith::OrIOp>(emitter.builder, loc, a, b);
  case BinaryOp::BitXor:
    return create<arith::XOrIOp>(emitter.builder, loc, a, b);
  default:
    llvm_unreachable("handled above");
  }
}

/// Floored; a divisor of 0 gives 0, the smallest integer by -1 wraps.
static Value integerDivision(Emitter &emitter, bool remainder, const Expr *expr) {
  Location loc = emitter.locate(expr->span);
  Type type = computeTypeOf(emitter, expr->type);
  Value a = evalAs(emitter, expr->operands[0], type), b = evalAs(emitter, expr->operands[1], type);
  Value zero = constantInt(emitter, type, 0, loc);
  std::optional<double> known = constantOf(expr->operands[1]);
  bool isPlain = known && *known != 0 && *known != -1; // the machine's division has no other traps
  Value isZero, isMinusOne, divisor = b;
  if (isUnsigned(expr->type)) {
    isZero = compare(emitter, BinaryOp::EQ, b, zero, loc);
    divisor = arith::SelectOp::create(emitter.builder, loc, isZero,
                                      constantInt(emitter, type, 1, loc), b);
    if (remainder) // by 1 it is 0
      return create<arith::RemUIOp>(emitter.builder, loc, a, divisor);
    Value quotient = create<arith::DivUIOp>(emitter.builder, loc, a, divisor);
    return arith::SelectOp::create(emitter.builder, loc, isZero, zero, quotient);
  }
  if (!isPlain) {
    isZero = compare(emitter, BinaryOp::EQ, b, zero, loc);
    isMinusOne = compare(emitter, BinaryOp::EQ, b, constantInt(emitter, type, -1, loc), loc);
    Value isSpecial = create<arith::OrIOp>(emitter.builder, loc, isZero, isMinusOne);
    divisor = arith::SelectOp::create(emitter.builder, loc, isSpecial,
                                      constantInt(emitter, type, 1, loc), b);
  }
  if (!remainder) {
    Value quotient = create<arith::FloorDivSIOp>(emitter.builder, loc, a, divisor);
    if (isPlain)
      return quotient;
    Value negated = create<arith::SubIOp>(emitter.builder, loc, zero, a);
    quotient = arith::SelectOp::create(emitter.builder, loc, isMinusOne, negated, quotient);
    return arith::SelectOp::create(emitter.builder, loc, isZero, zero, quotient);
  }
  // By 1, which replaces 0 and -1, the remainder is the 0 that is wanted for both.
  Value rest = create<arith::RemSIOp>(emitter.builder, loc, a, divisor);
  Value isInexact = compare(emitter, BinaryOp::NE, rest, zero, loc);
  Value differs = compare(emitter, BinaryOp::LT,
                          create<arith::XOrIOp>(emitter.builder, loc, rest, divisor), zero, loc);
  Value mustMove = create<arith::AndIOp>(emitter.builder, loc, isInexact, differs);
  Value moved = create<arith::AddIOp>(emitter.builder, loc, rest, divisor);
  return arith::SelectOp::create(emitter.builder, loc, mustMove, moved, rest);
}

/// PyTorch's remainder and floor_divide: the remainder has the divisor's sign, and the quotient is
/// what that remainder leaves, so that a == b*(a // b) + a % b up to rounding.
static Value floatDivision(Emitter &emitter, bool remainder, Value a, Value b, Location loc) {
  Type type = a.getType();
  Value zero = constant(emitter, type, 0, loc), one = constant(emitter, type, 1, loc);
  Value rest = create<arith::RemFOp>(emitter.builder, loc, a, b);
  Value isInexact = compare(emitter, BinaryOp::NE, rest, zero, loc);
  Value restIsNegative = compare(emitter, BinaryOp::LT, rest, zero, loc);
  Value divisorIsNegative = compare(emitter, BinaryOp::LT, b, zero, loc);
  Value differs = create<arith::XOrIOp>(emitter.builder, loc, restIsNegative, divisorIsNegative);
  Value mustMove = create<arith::AndIOp>(emitter.builder, loc, isInexact, differs);
  if (remainder) {
    Value moved = create<arith::AddFOp>(emitter.builder, loc, rest, b);
    return arith::SelectOp::create(emitter.builder, loc, mustMove, moved, rest);
  }
  Value ratio = create<arith::DivFOp>(emitter.builder, loc, a, b);
  Value quotient = create<arith::DivFOp>(emitter.builder, loc,
                                         create<arith::SubFOp>(emitter.builder, loc, a, rest), b);
  Value lower = create<arith::SubFOp>(emitter.builder, loc, quotient, one);
  quotient = arith::SelectOp::create(emitter.builder, loc, mustMove, lower, quotient);
  // The quotient is an integer up to rounding: the nearest one.
  Value floored = create<math::FloorOp>(emitter.builder, loc, quotient);
  Value fraction = create<arith::SubFOp>(emitter.builder, loc, quotient, floored);
  Value isAbove = compare(emitter, BinaryOp::GT, fraction, constant(emitter, type, 0.5, loc), loc);
  Value next = create<arith::AddFOp>(emitter.builder, loc, floored, one);
  Value nearest = arith::SelectOp::create(emitter.builder, loc, isAbove, next, floored);
  Value isZero = compare(emitter, BinaryOp::EQ, quotient, zero, loc);
  Value signedZero = create<math::CopySignOp>(emitter.builder, loc, zero, ratio);
  nearest = arith::SelectOp::create(emitter.builder, loc, isZero, signedZero, nearest);
  Value byZero = compare(emitter, BinaryOp::EQ, b, zero, loc);
  return arith::SelectOp::create(emitter.builder, loc, byZero, ratio, nearest);
}

static Value power(Emitter &emitter, const Expr *expr) {
  Location loc = emitter.locate(expr->span);
  Type type = computeTypeOf(emitter, expr->type);
  Value base = evalAs(emitter, expr->operands[0], type);
  std::optional<double> known = constantOf(expr->operands[1]);
  auto multiply = [&](Value a, Value b) {
    return isa<FloatType>(type) ? create<arith::MulFOp>(emitter.builder, loc, a, b)
                                : create<arith::MulIOp>(emitter.builder, loc, a, b);
  };
  auto multiplied = [&](uint64_t exponent) { // by repeated squaring
    Value result, square = base;
    for (; exponent; exponent >>= 1) {
      if (exponent & 1)
        result = result ? multiply(result, square) : square;
      if (exponent > 1)
        square = multiply(square, square);
    }
    return result ? result : constant(emitter, type, 1, loc);
  };
  if (!isa<FloatType>(type))
    return known && *known >= 0 ? multiplied(static_cast<uint64_t>(*known))
                                : integerPower(emitter, expr, base);
  if (known) {
    if (*known == 0 || *known == 1 || *known == 2 || *known == 3 || *known == 4)
      return multiplied(static_cast<uint64_t>(*known));
    if (*known == 0.5)
      return create<math::SqrtOp>(emitter.builder, loc, base);
    if (*known == -0.5)
      return create<math::RsqrtOp>(emitter.builder, loc, base);
    if (*known == -1 || *known == -2)
      return create<arith::DivFOp>(emitter.builder, loc, constant(emitter, type, 1, loc),
                                   multiplied(static_cast<uint64_t>(-*known)));
  }
  return create<math::PowFOp>(emitter.builder, loc, base, evalAs(emitter, expr->operands[1], type));
}

/// By repeated squaring over the bits that the exponent may have, without a branch, so that it
/// works on vectors. Below 0 the power is that of PyTorch: of 1 and -1 what it is, of all else 0.
static Value integerPower(Emitter &emitter, const Expr *expr, Value base) {
  Location loc = emitter.locate(expr->span);
  Type type = base.getType();
  Value exponent = evalAs(emitter, expr->operands[1], type);
  Value zero = constantInt(emitter, type, 0, loc), one = constantInt(emitter, type, 1, loc);
  unsigned width = type.getIntOrFloatBitWidth();
  bool mayBeNegative = expr->exponentBits == 64 && isSigned(expr->type);
  unsigned bits = std::min(expr->exponentBits, mayBeNegative ? width - 1 : width);
  Value result = one, square = base;
  for (unsigned n = 0; n != bits; ++n) {
    Value bit = create<arith::AndIOp>(emitter.builder, loc, exponent,
                                      constantInt(emitter, type, int64_t(1) << n, loc));
    Value isSet = compare(emitter, BinaryOp::NE, bit, zero, loc);
    Value factor = arith::SelectOp::create(emitter.builder, loc, isSet, square, one);
    result = create<arith::MulIOp>(emitter.builder, loc, result, factor);
    if (n + 1 != bits)
      square = create<arith::MulIOp>(emitter.builder, loc, square, square);
  }
  if (!mayBeNegative)
    return result;
  // The low bits of a negative exponent are as odd as it is: of -1 the power is right already.
  Value isNegative = compare(emitter, BinaryOp::LT, exponent, zero, loc);
  Value isUnit = create<arith::OrIOp>(
      emitter.builder, loc, compare(emitter, BinaryOp::EQ, base, one, loc),
      compare(emitter, BinaryOp::EQ, base, constantInt(emitter, type, -1, loc), loc));
  Value inverse = arith::SelectOp::create(emitter.builder, loc, isUnit, result, zero);
  return arith::SelectOp::create(emitter.builder, loc, isNegative, inverse, result);
}

/// A count that is negative, or not less than the width, shifts all bits out, as in PyTorch.
static Value shift(Emitter &emitter, const Expr *expr) {
  Location loc = emitter.locate(expr->span);
  Type type = computeTypeOf(emitter, expr->type);
  unsigned width = type.getIntOrFloatBitWidth();
  bool isLeft = expr->binary == BinaryOp::Shl, isArithmetic = !isLeft && isSigned(expr->type);
  Value a = evalAs(emitter, expr->operands[0], type), count = eval(emitter, expr->operands[1]);
  auto shifted = [&](Value by) -> Value {
    return isLeft         ? create<arith::ShLIOp>(emitter.builder, loc, a, by)
           : isArithmetic ? create<arith::ShRSIOp>(emitter.builder, loc, a, by)
                          : create<arith::ShRUIOp>(emitter.builder, loc, a, by);
  };
  if (expr->exponentBits == 0)
    return shifted(coerce(emitter, count, type, loc));
  Value isInside = arith::CmpIOp::create(emitter.builder, loc, arith::CmpIPredicate::ult, count,
                                         constantInt(emitter, count.getType(), width, loc));
  Value last = constantInt(emitter, type, isArithmetic ? width - 1 : 0, loc);
  Value result = shifted(arith::SelectOp::create(emitter.builder, loc, isInside,
                                                 coerce(emitter, count, type, loc), last));
  return isArithmetic ? result
                      : arith::SelectOp::create(emitter.builder, loc, isInside, result,
                                                constantInt(emitter, type, 0, loc));
}
