//===- EmitArith.cpp - arith and the value ops of tgl as LLVM IR ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One LLVM instruction for each op of arith that passes and emission use; elementary functions of
// math have become arith before (LowerMath.h), except those that LLVM has on every target.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/EmitArith.h"

#include "codegen/common/FloatRange.h"
#include "codegen/common/ScalarEmitter.h"
#include "codegen/math/LowerMath.h"
#include "ir/Random.h"
#include "ir/tgl/TglFunctions.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace llvm;
using namespace tegula;
namespace arith = mlir::arith;
namespace math = mlir::math;

static FastMathFlags flagsOf(mlir::Operation *op) {
  FastMathFlags flags;
  auto interface = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!interface)
    return flags;
  auto written = interface.getFastMathFlagsAttr();
  if (!written) // conversions that a pass has made
    return flags;
  arith::FastMathFlags given = written.getValue();
  auto has = [&](arith::FastMathFlags flag) { return bitEnumContainsAll(given, flag); };
  flags.setAllowContract(has(arith::FastMathFlags::contract));
  flags.setAllowReassoc(has(arith::FastMathFlags::reassoc));
  flags.setNoNaNs(has(arith::FastMathFlags::nnan));
  flags.setNoInfs(has(arith::FastMathFlags::ninf));
  flags.setNoSignedZeros(has(arith::FastMathFlags::nsz));
  flags.setAllowReciprocal(has(arith::FastMathFlags::arcp));
  flags.setApproxFunc(has(arith::FastMathFlags::afn));
  return flags;
}

static CmpInst::Predicate predicateOf(arith::CmpFPredicate predicate) {
  // The order of arith's enum: false, then ordered, then unordered ones.
  static constexpr CmpInst::Predicate table[] = {
      CmpInst::FCMP_FALSE, CmpInst::FCMP_OEQ, CmpInst::FCMP_OGT, CmpInst::FCMP_OGE,
      CmpInst::FCMP_OLT,   CmpInst::FCMP_OLE, CmpInst::FCMP_ONE, CmpInst::FCMP_ORD,
      CmpInst::FCMP_UEQ,   CmpInst::FCMP_UGT, CmpInst::FCMP_UGE, CmpInst::FCMP_ULT,
      CmpInst::FCMP_ULE,   CmpInst::FCMP_UNE, CmpInst::FCMP_UNO, CmpInst::FCMP_TRUE};
  return table[static_cast<unsigned>(predicate)];
}

static CmpInst::Predicate predicateOf(arith::CmpIPredicate predicate) {
  static constexpr CmpInst::Predicate table[] = {
      CmpInst::ICMP_EQ,  CmpInst::ICMP_NE,  CmpInst::ICMP_SLT, CmpInst::ICMP_SLE,
      CmpInst::ICMP_SGT, CmpInst::ICMP_SGE, CmpInst::ICMP_ULT, CmpInst::ICMP_ULE,
      CmpInst::ICMP_UGT, CmpInst::ICMP_UGE};
  return table[static_cast<unsigned>(predicate)];
}

/// Instruction for a plain binary op, or 0.
static unsigned binaryOpcode(mlir::Operation *op) {
  return TypeSwitch<mlir::Operation *, unsigned>(op)
      .Case<arith::AddFOp>([](auto) -> unsigned { return Instruction::FAdd; })
      .Case<arith::SubFOp>([](auto) -> unsigned { return Instruction::FSub; })
      .Case<arith::MulFOp>([](auto) -> unsigned { return Instruction::FMul; })
      .Case<arith::DivFOp>([](auto) -> unsigned { return Instruction::FDiv; })
      .Case<arith::AddIOp>([](auto) -> unsigned { return Instruction::Add; })
      .Case<arith::SubIOp>([](auto) -> unsigned { return Instruction::Sub; })
      .Case<arith::MulIOp>([](auto) -> unsigned { return Instruction::Mul; })
      .Case<arith::DivSIOp>([](auto) -> unsigned { return Instruction::SDiv; })
      .Case<arith::DivUIOp>([](auto) -> unsigned { return Instruction::UDiv; })
      .Case<arith::RemSIOp>([](auto) -> unsigned { return Instruction::SRem; })
      .Case<arith::RemUIOp>([](auto) -> unsigned { return Instruction::URem; })
      .Case<arith::AndIOp>([](auto) -> unsigned { return Instruction::And; })
      .Case<arith::OrIOp>([](auto) -> unsigned { return Instruction::Or; })
      .Case<arith::XOrIOp>([](auto) -> unsigned { return Instruction::Xor; })
      .Case<arith::ShLIOp>([](auto) -> unsigned { return Instruction::Shl; })
      .Case<arith::ShRSIOp>([](auto) -> unsigned { return Instruction::AShr; })
      .Case<arith::ShRUIOp>([](auto) -> unsigned { return Instruction::LShr; })
      .Default([](auto) -> unsigned { return 0; });
}

/// Intrinsic with the op's own operands and type, or not_intrinsic.
static Intrinsic::ID intrinsicOf(mlir::Operation *op) {
  return TypeSwitch<mlir::Operation *, Intrinsic::ID>(op)
      .Case<arith::MaximumFOp>([](auto) -> Intrinsic::ID { return Intrinsic::maximum; })
      .Case<arith::MinimumFOp>([](auto) -> Intrinsic::ID { return Intrinsic::minimum; })
      .Case<arith::MaxNumFOp>([](auto) -> Intrinsic::ID { return Intrinsic::maxnum; })
      .Case<arith::MinNumFOp>([](auto) -> Intrinsic::ID { return Intrinsic::minnum; })
      .Case<arith::MaxSIOp>([](auto) -> Intrinsic::ID { return Intrinsic::smax; })
      .Case<arith::MinSIOp>([](auto) -> Intrinsic::ID { return Intrinsic::smin; })
      .Case<arith::MaxUIOp>([](auto) -> Intrinsic::ID { return Intrinsic::umax; })
      .Case<arith::MinUIOp>([](auto) -> Intrinsic::ID { return Intrinsic::umin; })
      .Case<math::AbsFOp>([](auto) -> Intrinsic::ID { return Intrinsic::fabs; })
      .Case<math::SqrtOp>([](auto) -> Intrinsic::ID { return Intrinsic::sqrt; })
      .Case<math::FloorOp>([](auto) -> Intrinsic::ID { return Intrinsic::floor; })
      .Case<math::CeilOp>([](auto) -> Intrinsic::ID { return Intrinsic::ceil; })
      .Case<math::TruncOp>([](auto) -> Intrinsic::ID { return Intrinsic::trunc; })
      .Case<math::RoundEvenOp>([](auto) -> Intrinsic::ID { return Intrinsic::roundeven; })
      .Case<math::CopySignOp>([](auto) -> Intrinsic::ID { return Intrinsic::copysign; })
      .Case<math::FmaOp>([](auto) -> Intrinsic::ID { return Intrinsic::fma; })
      .Default([](auto) -> Intrinsic::ID { return Intrinsic::not_intrinsic; });
}

/// Elementary function with code of its own (LowerMath.h).
static std::optional<MathFunction> functionOf(mlir::Operation *op) {
  using Result = std::optional<MathFunction>;
  return TypeSwitch<mlir::Operation *, Result>(op)
      .Case<math::ExpOp>([](math::ExpOp exp) -> Result {
        if (flagsOf(exp).approxFunc())
          return MathFunction::ExpShort;
        return rangeOf(exp.getOperand()).high <= maxExpLow ? MathFunction::ExpLow
                                                           : MathFunction::Exp;
      })
      .Case<math::Exp2Op>([](auto) -> Result { return MathFunction::Exp2; })
      .Case<math::ExpM1Op>([](auto) -> Result { return MathFunction::Expm1; })
      .Case<math::LogOp>([](auto) -> Result { return MathFunction::Log; })
      .Case<math::Log2Op>([](auto) -> Result { return MathFunction::Log2; })
      .Case<math::Log1pOp>([](auto) -> Result { return MathFunction::Log1p; })
      .Case<math::SinOp>([](auto) -> Result { return MathFunction::Sin; })
      .Case<math::CosOp>([](auto) -> Result { return MathFunction::Cos; })
      .Case<math::TanOp>([](auto) -> Result { return MathFunction::Tan; })
      .Case<math::TanhOp>([](auto tanh) -> Result {
        return flagsOf(tanh).approxFunc() ? MathFunction::TanhShort : MathFunction::Tanh;
      })
      .Case<math::ErfOp>([](auto erf) -> Result {
        return flagsOf(erf).approxFunc() ? MathFunction::ErfShort : MathFunction::Erf;
      })
      .Case<math::Log10Op>([](auto) -> Result { return MathFunction::Log10; })
      .Case<math::AsinOp>([](auto) -> Result { return MathFunction::Asin; })
      .Case<math::AcosOp>([](auto) -> Result { return MathFunction::Acos; })
      .Case<math::AtanOp>([](auto) -> Result { return MathFunction::Atan; })
      .Case<math::Atan2Op>([](auto) -> Result { return MathFunction::Atan2; })
      .Case<math::SinhOp>([](auto) -> Result { return MathFunction::Sinh; })
      .Case<math::CoshOp>([](auto) -> Result { return MathFunction::Cosh; })
      .Case<math::AsinhOp>([](auto) -> Result { return MathFunction::Asinh; })
      .Case<math::AcoshOp>([](auto) -> Result { return MathFunction::Acosh; })
      .Case<math::AtanhOp>([](auto) -> Result { return MathFunction::Atanh; })
      .Case<math::ErfcOp>([](auto) -> Result { return MathFunction::Erfc; })
      .Case<tgl::ErfinvOp>([](auto) -> Result { return MathFunction::Erfinv; })
      .Case<tgl::LgammaOp>([](auto) -> Result { return MathFunction::Lgamma; })
      .Case<tgl::DigammaOp>([](auto) -> Result { return MathFunction::Digamma; })
      .Case<math::PowFOp>([](auto) -> Result { return MathFunction::Pow; })
      .Case<math::RsqrtOp>([](auto) -> Result { return MathFunction::Rsqrt; })
      .Case<arith::RemFOp>([](auto) -> Result { return MathFunction::Fmod; })
      .Default([](auto) -> Result { return std::nullopt; });
}

/// What is behind log1p(exp(-|x|)), a part of softplus, of log(sigmoid) and of logaddexp, and
/// whether its exp may be approximate; null where `op` is none.
static std::pair<mlir::Value, bool> matchLog1pExp(mlir::Operation *op) {
  auto operandOf = [](auto kind, mlir::Value value) {
    auto definition = value ? value.getDefiningOp<decltype(kind)>() : nullptr;
    return definition ? definition.getOperand() : mlir::Value();
  };
  auto log = dyn_cast<math::Log1pOp>(op);
  mlir::Value power = log ? operandOf(math::ExpOp(), log.getOperand()) : mlir::Value();
  mlir::Value argument = operandOf(math::AbsFOp(), operandOf(arith::NegFOp(), power));
  return {argument, argument && flagsOf(log.getOperand().getDefiningOp()).approxFunc()};
}

/// Instruction for a conversion to the op's result type, or 0.
static unsigned castOpcode(mlir::Operation *op) {
  return TypeSwitch<mlir::Operation *, unsigned>(op)
      .Case<arith::ExtFOp>([](auto) -> unsigned { return Instruction::FPExt; })
      .Case<arith::TruncFOp>([](auto) -> unsigned { return Instruction::FPTrunc; })
      .Case<arith::SIToFPOp>([](auto) -> unsigned { return Instruction::SIToFP; })
      .Case<arith::UIToFPOp>([](auto) -> unsigned { return Instruction::UIToFP; })
      .Case<arith::FPToSIOp>([](auto) -> unsigned { return Instruction::FPToSI; })
      .Case<arith::FPToUIOp>([](auto) -> unsigned { return Instruction::FPToUI; })
      .Case<arith::ExtSIOp>([](auto) -> unsigned { return Instruction::SExt; })
      .Case<arith::ExtUIOp>([](auto) -> unsigned { return Instruction::ZExt; })
      .Case<arith::TruncIOp>([](auto) -> unsigned { return Instruction::Trunc; })
      .Case<arith::BitcastOp>([](auto) -> unsigned { return Instruction::BitCast; })
      .Default([](auto) -> unsigned { return 0; });
}

Value *tegula::emitExtreme(IRBuilder<> &b, Intrinsic::ID id, Value *lhs, Value *rhs) {
  IRBuilder<>::FastMathFlagGuard guard(b);
  b.getFastMathFlags().setNoSignedZeros();
  return b.CreateBinaryIntrinsic(id, lhs, rhs);
}

/// The functions of ir/Random.h on whatever shape the keys have.
static Value *emitRandom(ScalarEmitter &e, tgl::RandomOp op) {
  IRBuilder<> &b = e.b;
  SmallVector<Value *, 4> keys;
  for (mlir::Value key : op.getKeys())
    keys.push_back(e.valueOf(key));
  e.align(keys);
  Type *shape = keys.empty() ? b.getInt64Ty() : keys[0]->getType();
  Type *f32 = shape->isVectorTy() ? VectorType::get(b.getFloatTy(), e.lanes->width, false)
                                  : static_cast<Type *>(b.getFloatTy());
  auto number = [&](uint64_t value) { return ConstantInt::get(shape, value); };
  auto mix = [&](Value *z) { // splitmix64
    z = b.CreateAdd(z, number(0x9E3779B97F4A7C15));
    z = b.CreateMul(b.CreateXor(z, b.CreateLShr(z, 30)), number(0xBF58476D1CE4E5B9));
    z = b.CreateMul(b.CreateXor(z, b.CreateLShr(z, 27)), number(0x94D049BB133111EB));
    return b.CreateXor(z, b.CreateLShr(z, 31));
  };
  auto uniform = [&](Value *bits) { // uniformFromBits
    Value *odd = b.CreateOr(b.CreateShl(b.CreateLShr(bits, 41), 1), number(1));
    return b.CreateFMul(b.CreateSIToFP(odd, f32), ConstantFP::get(f32, 0x1p-24));
  };
  Value *state = number(0);
  for (Value *key : keys)
    state = mix(b.CreateXor(state, key));
  if (!op.getNormal())
    return uniform(state);
  Value *radius = uniform(mix(b.CreateXor(state, number(normalRadiusKey))));
  Value *angle = uniform(mix(b.CreateXor(state, number(normalAngleKey))));
  auto call = [&](MathFunction function, Value *argument) {
    return b.CreateCall(getMathFunction(e.module, function, f32), argument);
  };
  Value *scaled = b.CreateFMul(ConstantFP::get(f32, -2.0), call(MathFunction::Log, radius));
  Value *turned = b.CreateFMul(ConstantFP::get(f32, 0x1.921fb6p+2f), angle);
  return b.CreateFMul(b.CreateUnaryIntrinsic(Intrinsic::sqrt, scaled),
                      call(MathFunction::Cos, turned));
}

/// Whether an integer that all lanes have in common is the lanes' own position, or is not: how far
/// it is from the first lane's is computed once in 64 bits, and compared in 32 for each lane. Null
/// for other comparisons.
static Value *compareWithLanes(ScalarEmitter &e, arith::CmpIOp cmp) {
  IRBuilder<> &b = e.b;
  bool isEqual = cmp.getPredicate() == arith::CmpIPredicate::eq;
  if (!e.lanes || !e.options.target.isGpu() ||
      (!isEqual && cmp.getPredicate() != arith::CmpIPredicate::ne))
    return nullptr;
  for (unsigned side : {0, 1}) {
    mlir::Value position = cmp->getOperand(side);
    Value *common = e.valueOf(cmp->getOperand(1 - side));
    if (auto cast = position.getDefiningOp<arith::IndexCastOp>())
      position = cast.getIn();
    if (!position.getType().isIndex() || !common->getType()->isIntegerTy(64))
      continue;
    auto index = position.getDefiningOp<tgl::IndexOp>();
    tgl::ValueExpr expr = index ? index.getValueExpr() : tgl::ValueExpr(position);
    std::optional<int64_t> step = e.laneStep(expr);
    constexpr int64_t maxStep = 1 << 20;
    if (!step || *step <= 0 || *step > maxStep)
      continue;
    Value *distance = b.CreateSub(common, e.emitIndexAtLaneZero(expr));
    Value *isNear =
        b.CreateICmpEQ(b.CreateTrunc(b.CreateLShr(distance, 32), b.getInt32Ty()), b.getInt32(0));
    distance = b.CreateSelect(isNear, b.CreateTrunc(distance, b.getInt32Ty()), b.getInt32(-1));
    SmallVector<Constant *> places;
    for (unsigned lane = 0; lane < e.lanes->width; ++lane)
      places.push_back(b.getInt32(lane * *step));
    Value *own = b.CreateVectorSplat(e.lanes->width, distance);
    return b.CreateICmp(isEqual ? CmpInst::ICMP_EQ : CmpInst::ICMP_NE, own,
                        ConstantVector::get(places));
  }
  return nullptr;
}

void tegula::emitArith(ScalarEmitter &e, mlir::Operation *op) {
  IRBuilder<> &b = e.b;
  SmallVector<Value *, 4> operands;
  for (mlir::Value operand : op->getOperands())
    operands.push_back(e.valueOf(operand));
  e.align(operands);
  IRBuilder<>::FastMathFlagGuard guard(b);
  FastMathFlags flags = flagsOf(op);
  flags.setApproxFunc(false); // LLVM would take div.approx.f32, which is 0 for large divisors
  b.setFastMathFlags(flags);
  auto typeLike = [&](mlir::Type type) -> Type * {
    Type *scalar = e.typeOf(type);
    if (!operands.empty())
      if (auto *vector = dyn_cast<VectorType>(operands[0]->getType()))
        return VectorType::get(scalar, vector->getElementCount());
    return scalar;
  };

  Value *result = nullptr;
  if (unsigned opcode = binaryOpcode(op)) {
    if (Instruction::isIntDivRem(opcode))
      operands[1] = e.divisorOfPoints(operands[1]);
    result = b.CreateBinOp(static_cast<Instruction::BinaryOps>(opcode), operands[0], operands[1]);
  } else if (Intrinsic::ID id = intrinsicOf(op); id != Intrinsic::not_intrinsic) {
    result = id == Intrinsic::maximum || id == Intrinsic::minimum
                 ? emitExtreme(b, id, operands[0], operands[1])
                 : b.CreateIntrinsic(operands[0]->getType(), id, operands);
  } else if (auto [argument, isShort] = matchLog1pExp(op); argument) {
    Value *value = e.valueOf(argument);
    MathFunction function = isShort ? MathFunction::Log1pExpShort : MathFunction::Log1pExp;
    result = b.CreateCall(getMathFunction(e.module, function, value->getType()), value);
  } else if (std::optional<MathFunction> function = functionOf(op)) {
    result = b.CreateCall(getMathFunction(e.module, *function, operands[0]->getType()), operands);
  } else if (unsigned opcode = castOpcode(op)) {
    result = b.CreateCast(static_cast<Instruction::CastOps>(opcode), operands[0],
                          typeLike(op->getResult(0).getType()));
  } else {
    result =
        TypeSwitch<mlir::Operation *, Value *>(op)
            .Case<arith::ConstantOp>([&](arith::ConstantOp constant) -> Value * {
              mlir::Attribute value = constant.getValue();
              Type *type = e.typeOf(constant.getType());
              if (auto integer = dyn_cast<mlir::IntegerAttr>(value))
                return ConstantInt::get(type,
                                        integer.getValue().sextOrTrunc(type->getIntegerBitWidth()));
              return ConstantFP::get(type, cast<mlir::FloatAttr>(value).getValue());
            })
            .Case<arith::CmpFOp>([&](arith::CmpFOp cmp) {
              return b.CreateFCmp(predicateOf(cmp.getPredicate()), operands[0], operands[1]);
            })
            .Case<arith::CmpIOp>([&](arith::CmpIOp cmp) {
              if (Value *equal = compareWithLanes(e, cmp))
                return equal;
              return b.CreateICmp(predicateOf(cmp.getPredicate()), operands[0], operands[1]);
            })
            .Case<arith::SelectOp>(
                [&](auto) { return b.CreateSelect(operands[0], operands[1], operands[2]); })
            .Case<arith::NegFOp>([&](auto) { return b.CreateFNeg(operands[0]); })
            .Case<arith::IndexCastOp, arith::IndexCastUIOp>([&](mlir::Operation *cast) {
              bool isSigned = isa<arith::IndexCastOp>(cast);
              return b.CreateIntCast(operands[0], typeLike(cast->getResult(0).getType()), isSigned);
            })
            .Case<arith::FloorDivSIOp>(
                [&](auto) { return e.emitFloorDiv(operands[0], operands[1], Divisor::Safe); })
            .Case<math::AbsIOp>([&](auto) {
              return b.CreateBinaryIntrinsic(Intrinsic::abs, operands[0], b.getFalse());
            })
            .Case<math::CountLeadingZerosOp>([&](auto) {
              return b.CreateBinaryIntrinsic(Intrinsic::ctlz, operands[0], b.getFalse());
            })
            .Case<math::IsNaNOp>([&](auto) { return b.CreateFCmpUNO(operands[0], operands[0]); })
            .Case<math::IsInfOp>([&](auto) {
              return b.CreateFCmpOEQ(b.CreateUnaryIntrinsic(Intrinsic::fabs, operands[0]),
                                     ConstantFP::getInfinity(operands[0]->getType()));
            })
            .Case<math::IsFiniteOp>([&](auto) {
              return b.CreateFCmpONE(b.CreateUnaryIntrinsic(Intrinsic::fabs, operands[0]),
                                     ConstantFP::getInfinity(operands[0]->getType()));
            })
            .Case<tgl::IndexOp>(
                [&](tgl::IndexOp index) { return e.emitIndex(index.getValueExpr()); })
            .Case<tgl::ConvertOp>([&](tgl::ConvertOp convertOp) {
              return e.convert(operands[0], convertOp.getTarget(), convertOp.getNearest());
            })
            .Case<tgl::RandomOp>([&](tgl::RandomOp random) { return emitRandom(e, random); })
            .Default([](auto) -> Value * { return nullptr; });
  }
  if (!result)
    return e.fail(op, "no LLVM form for " + op->getName().getStringRef());
  e.values[op->getResult(0)] = result;
}
