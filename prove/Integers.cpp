//===- Integers.cpp - Integers, conversions and constants ----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/Random.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "prove/EvaluateImpl.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;

static bool isNarrow(Type type) { return type.isInteger(32); }

int64_t tegula::prove::keptAs(Type type, int64_t value) {
  if (type.isInteger(1))
    return value & 1;
  return isNarrow(type) ? int64_t(int32_t(value)) : value;
}

static uint64_t asUnsigned(Type type, int64_t value) {
  return isNarrow(type) ? uint64_t(uint32_t(value)) : uint64_t(value);
}
/// As a signed number i1 is 0 or -1.
static int64_t asSigned(Type type, int64_t value) { return type.isInteger(1) ? -value : value; }

namespace {
struct Emitter {
  StepBuilder &builder;
  Operation *op;
  Steps &steps;

  Slot in(unsigned k) const { return builder.slotOf(op->getOperand(k)); }
  Slot out() const { return builder.slotOf(op->getResult(0)); }
  Type type() const { return op->getResult(0).getType(); }

  /// `fn` on two integers as they are kept; the result wraps.
  template <typename Fn> bool binary(Fn fn) const {
    Slot a = in(0), b = in(1), r = out();
    Type width = type();
    steps.push_back([=](Machine &m) {
      m.integers[r] = keptAs(width, int64_t(fn(width, m.integers[a], m.integers[b])));
    });
    return true;
  }
  /// Of two booleans; the result is a condition as a whole.
  template <typename Fn> bool logic(Fn fn) const {
    Slot a = in(0), b = in(1), r = out();
    Type width = type();
    uint8_t *ways = width.isInteger(1) ? builder.conditionOf(op, op->getOperands()) : nullptr;
    bool countsAlways = asksForInfinity(op->getResult(0));
    steps.push_back([=](Machine &m) {
      m.integers[r] = keptAs(width, int64_t(fn(width, m.integers[a], m.integers[b])));
      note(ways, m.integers[r], countsAlways);
    });
    return true;
  }
  /// The larger or smaller of two, which is a condition.
  template <typename Fn> bool extremum(Fn takesSecond) const {
    Slot a = in(0), b = in(1), r = out();
    Type width = type();
    uint8_t *ways = builder.conditionOf(op, op->getOperands());
    steps.push_back([=](Machine &m) {
      int64_t x = m.integers[a], y = m.integers[b];
      bool is = takesSecond(width, x, y);
      if (x != y)
        note(ways, is);
      m.integers[r] = is ? y : x;
    });
    return true;
  }
  /// As above; nothing sensible by zero, which the checker keeps programs from.
  template <typename Fn> bool division(Fn fn) const {
    Slot a = in(0), b = in(1), r = out();
    Type width = type();
    std::string place = placeOf(op->getLoc());
    steps.push_back([=](Machine &m) {
      if (m.integers[b] == 0)
        return m.stop(Evaluation::Unknown, place + ": integer division by zero");
      m.integers[r] = keptAs(width, int64_t(fn(width, m.integers[a], m.integers[b])));
    });
    return true;
  }
  bool compare(arith::CmpIPredicate predicate) const {
    Slot a = in(0), b = in(1), r = out();
    Type width = op->getOperand(0).getType();
    uint8_t *ways = builder.conditionOf(op, op->getOperands());
    steps.push_back([=](Machine &m) {
      int64_t x = asSigned(width, m.integers[a]), y = asSigned(width, m.integers[b]);
      uint64_t ux = asUnsigned(width, m.integers[a]), uy = asUnsigned(width, m.integers[b]);
      bool is = holds(predicate, x, y, ux, uy);
      note(ways, is);
      m.integers[r] = is;
    });
    return true;
  }
  static bool holds(arith::CmpIPredicate predicate, int64_t x, int64_t y, uint64_t ux,
                    uint64_t uy) {
    using P = arith::CmpIPredicate;
    switch (predicate) {
    case P::eq:
      return x == y;
    case P::ne:
      return x != y;
    case P::slt:
      return x < y;
    case P::sle:
      return x <= y;
    case P::sgt:
      return x > y;
    case P::sge:
      return x >= y;
    case P::ult:
      return ux < uy;
    case P::ule:
      return ux <= uy;
    case P::ugt:
      return ux > uy;
    case P::uge:
      return ux >= uy;
    }
    return false;
  }
};
} // namespace

static bool isInWidth(Type type, int64_t amount) {
  return amount >= 0 && amount < (isNarrow(type) ? 32 : 64);
}

static bool buildArithmetic(const Emitter &emit) {
  using Wide = __int128;
  return llvm::TypeSwitch<Operation *, bool>(emit.op)
      .Case<arith::AddIOp>(
          [&](auto) { return emit.binary([](Type, uint64_t a, uint64_t b) { return a + b; }); })
      .Case<arith::SubIOp>(
          [&](auto) { return emit.binary([](Type, uint64_t a, uint64_t b) { return a - b; }); })
      .Case<arith::MulIOp>(
          [&](auto) { return emit.binary([](Type, uint64_t a, uint64_t b) { return a * b; }); })
      .Case<arith::AndIOp>(
          [&](auto) { return emit.logic([](Type, int64_t a, int64_t b) { return a & b; }); })
      .Case<arith::OrIOp>(
          [&](auto) { return emit.logic([](Type, int64_t a, int64_t b) { return a | b; }); })
      .Case<arith::XOrIOp>(
          [&](auto) { return emit.logic([](Type, int64_t a, int64_t b) { return a ^ b; }); })
      .Case<arith::MaxSIOp>([&](auto) {
        return emit.extremum(
            [](Type type, int64_t a, int64_t b) { return asSigned(type, a) < asSigned(type, b); });
      })
      .Case<arith::MinSIOp>([&](auto) {
        return emit.extremum(
            [](Type type, int64_t a, int64_t b) { return asSigned(type, a) > asSigned(type, b); });
      })
      .Case<arith::MaxUIOp>([&](auto) {
        return emit.extremum([](Type type, int64_t a, int64_t b) {
          return asUnsigned(type, a) < asUnsigned(type, b);
        });
      })
      .Case<arith::MinUIOp>([&](auto) {
        return emit.extremum([](Type type, int64_t a, int64_t b) {
          return asUnsigned(type, a) > asUnsigned(type, b);
        });
      })
      .Case<arith::ShLIOp>([&](auto) {
        return emit.binary([](Type type, uint64_t a, int64_t b) {
          return isInWidth(type, b) ? a << b : uint64_t(0);
        });
      })
      .Case<arith::ShRUIOp>([&](auto) {
        return emit.binary([](Type type, int64_t a, int64_t b) {
          return isInWidth(type, b) ? asUnsigned(type, a) >> b : uint64_t(0);
        });
      })
      .Case<arith::ShRSIOp>([&](auto) {
        return emit.binary([](Type type, int64_t a, int64_t b) {
          return isInWidth(type, b) ? a >> b : int64_t(a < 0 ? -1 : 0);
        });
      })
      .Case<arith::DivSIOp>(
          [&](auto) { return emit.division([](Type, Wide a, Wide b) { return a / b; }); })
      .Case<arith::RemSIOp>(
          [&](auto) { return emit.division([](Type, Wide a, Wide b) { return a % b; }); })
      .Case<arith::FloorDivSIOp>([&](auto) {
        return emit.division([](Type, Wide a, Wide b) {
          return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
        });
      })
      .Case<arith::CeilDivSIOp>([&](auto) {
        return emit.division([](Type, Wide a, Wide b) {
          return a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0);
        });
      })
      .Case<arith::DivUIOp>([&](auto) {
        return emit.division([](Type type, int64_t a, int64_t b) {
          return asUnsigned(type, a) / asUnsigned(type, b);
        });
      })
      .Case<arith::RemUIOp>([&](auto) {
        return emit.division([](Type type, int64_t a, int64_t b) {
          return asUnsigned(type, a) % asUnsigned(type, b);
        });
      })
      .Case([&](arith::CmpIOp cmp) { return emit.compare(cmp.getPredicate()); })
      .Default([](Operation *) { return false; });
}

bool tegula::prove::buildIntegers(StepBuilder &builder, Operation *op, Steps &steps) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0)
    return false;
  Emitter emit{builder, op, steps};
  Type from = op->getOperand(0).getType();
  auto convert = [&](auto fn) {
    Slot a = emit.in(0), r = emit.out();
    Type to = emit.type();
    steps.push_back([=](Machine &m) { m.integers[r] = keptAs(to, fn(from, m.integers[a])); });
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](arith::SelectOp) {
        Slot c = emit.in(0), a = emit.in(1), b = emit.in(2), r = emit.out();
        if (uint8_t *ways = builder.conditionOf(op, op->getOperand(0))) {
          bool countsAlways = asksForInfinity(op->getOperand(0));
          builder.whereChosen(op, steps,
                              [=](Machine &m) { note(ways, m.integers[c], countsAlways); });
        }
        if (StepBuilder::isNumber(op->getResult(0)))
          steps.push_back([=](Machine &m) { m.numbers[r] = m.numbers[m.integers[c] ? a : b]; });
        else
          steps.push_back([=](Machine &m) { m.integers[r] = m.integers[m.integers[c] ? a : b]; });
        return true;
      })
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>([&](auto) {
        return convert([](Type type, int64_t value) { return asSigned(type, value); });
      })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto) {
        return convert([](Type type, int64_t value) { return int64_t(asUnsigned(type, value)); });
      })
      .Case<math::AbsIOp>([&](auto) {
        uint8_t *ways = builder.conditionOf(op, op->getOperands());
        return convert([=](Type, int64_t value) {
          if (value)
            note(ways, value < 0);
          return int64_t(value < 0 ? 0 - uint64_t(value) : uint64_t(value));
        });
      })
      .Default([&](Operation *) { return buildArithmetic(emit); });
}

/// A number to an integer type, saturated.
static int64_t toIntegerType(Algebra &algebra, const Number &value, DType type, bool nearest) {
  if (type == DType::Bool)
    return value.kind != Number::Finite ||
           algebra.compare(value, algebra.integer(0)) != Comparison::Equal;
  int64_t whole =
      algebra.toInteger(nearest ? Algebra::Rounding::Nearest : Algebra::Rounding::Trunc, value);
  if (type == DType::U64)
    return std::max<int64_t>(whole, 0);
  return saturate(whole, type);
}

/// Whether a conversion to an integer type meets the border of the type.
static bool isBeyond(const Number &value, DType type) {
  if (value.kind != Number::Finite || std::fabs(value.real) >= 0x1p63L)
    return true;
  auto whole = int64_t(value.real);
  return type == DType::U64 ? whole < 0 : saturate(whole, type) != whole;
}

static bool buildConvert(StepBuilder &builder, tgl::ConvertOp op, Steps &steps) {
  Slot a = builder.slotOf(op.getValue()), r = builder.slotOf(op.getResult());
  DType target = *dtypeOf(op.getTarget());
  bool fromFloat = StepBuilder::isNumber(op.getValue()), nearest = op.getNearest();
  Type to = op.getType();
  bool fromDouble = op.getValue().getType().isF64(), fromSingle = op.getValue().getType().isF32();
  uint8_t *ways = builder.conditionOf(op, op->getOperands());
  static const auto relativeError = [](DType type) {
    return type == DType::F16      ? 0x1p-11
           : type == DType::BF16   ? 0x1p-8
           : type == DType::F8E4M3 ? 0x1p-4
           : type == DType::F8E5M2 ? 0x1p-3
                                   : 0.0;
  };
  if (isFloat(target))
    steps.push_back([=](Machine &m) {
      Number value = fromFloat              ? m.numbers[a]
                     : target == DType::F32 ? m.algebra.singleInteger(m.integers[a])
                                            : m.algebra.integer(m.integers[a]);
      m.numbers[r] =
          target == DType::F64 ? (fromSingle ? Algebra::computedInSingle(value) : value)
          : target == DType::F32
              ? (fromDouble ? m.algebra.stored(value, unsigned(target), Algebra::unit) : value)
              : m.algebra.stored(value, unsigned(target), relativeError(target));
    });
  else
    steps.push_back([=](Machine &m) {
      int64_t value = fromFloat ? toIntegerType(m.algebra, m.numbers[a], target, nearest)
                      : target == DType::Bool ? int64_t(m.integers[a] != 0)
                      : nearest               ? saturate(m.integers[a], target)
                                              : wrap(m.integers[a], target);
      m.integers[r] = keptAs(to, value);
      if (target != DType::Bool)
        note(ways, fromFloat ? isBeyond(m.numbers[a], target) : value != m.integers[a]);
    });
  return true;
}

bool tegula::prove::buildConversions(StepBuilder &builder, Operation *op, Steps &steps) {
  if (op->getNumResults() != 1)
    return false;
  Slot out = builder.slotOf(op->getResult(0));
  auto in = [&] { return builder.slotOf(op->getOperand(0)); };
  auto toNumber = [&](bool isUnsignedNumber) {
    Slot a = in();
    Type from = op->getOperand(0).getType();
    bool isSingle = op->getResult(0).getType().isF32();
    steps.push_back([=](Machine &m) {
      int64_t value = isUnsignedNumber ? int64_t(asUnsigned(from, m.integers[a]))
                                       : asSigned(from, m.integers[a]);
      m.numbers[out] = isSingle ? m.algebra.singleInteger(value) : m.algebra.integer(value);
      if (isUnsignedNumber && value < 0) // 2^64 more
        m.numbers[out] = m.algebra.add(m.numbers[out], m.algebra.constant(0x1p64, true));
    });
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](arith::ConstantOp constant) {
        if (auto value = dyn_cast<FloatAttr>(constant.getValue())) {
          builder.machine.numbers[out] =
              builder.machine.algebra.constant(value.getValueAsDouble(), value.getType().isF64());
          return true;
        }
        auto value = cast<IntegerAttr>(constant.getValue()).getValue();
        builder.machine.integers[out] =
            value.getBitWidth() == 1 ? int64_t(value.getBoolValue()) : value.getSExtValue();
        return true;
      })
      .Case<arith::ExtFOp>([&](auto) {
        Slot a = in();
        steps.push_back(
            [=](Machine &m) { m.numbers[out] = Algebra::computedInSingle(m.numbers[a]); });
        return true;
      })
      .Case<arith::TruncFOp>([&](auto) {
        Slot a = in();
        steps.push_back([=](Machine &m) {
          m.numbers[out] = m.algebra.stored(m.numbers[a], unsigned(DType::F32), Algebra::unit);
        });
        return true;
      })
      .Case<arith::SIToFPOp>([&](auto) { return toNumber(false); })
      .Case<arith::UIToFPOp>([&](auto) { return toNumber(true); })
      .Case<arith::FPToSIOp>([&](auto) {
        Slot a = in();
        DType type = isNarrow(op->getResult(0).getType()) ? DType::I32 : DType::I64;
        uint8_t *ways = builder.conditionOf(op, op->getOperands());
        steps.push_back([=](Machine &m) {
          note(ways, isBeyond(m.numbers[a], type));
          m.integers[out] = toIntegerType(m.algebra, m.numbers[a], type, false);
        });
        return true;
      })
      .Case([&](tgl::ConvertOp convert) { return buildConvert(builder, convert, steps); })
      .Case([&](tgl::RandomOp random) {
        llvm::SmallVector<Slot> keys;
        for (Value key : random.getKeys())
          keys.push_back(builder.slotOf(key));
        bool isNormal = random.getNormal();
        steps.push_back([=](Machine &m) {
          llvm::SmallVector<int64_t> values;
          for (Slot key : keys)
            values.push_back(m.integers[key]);
          uint64_t bits = randomBits(values);
          m.numbers[out] = m.algebra.opaqueConstant(
              bits + isNormal, isNormal ? normalFromBits(bits) : uniformFromBits(bits));
        });
        return true;
      })
      .Default([](Operation *) { return false; });
}
