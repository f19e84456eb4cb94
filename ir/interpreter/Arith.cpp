//===- Arith.cpp - arith, conversions and random numbers -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/Random.h"
#include "ir/interpreter/Impl.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace tegula;
using namespace tegula::interp;

/// A value of this kind, as it is kept: the low bits, sign-extended (i1: 0 or 1).
static int64_t keep(Kind kind, int64_t value) {
  switch (kind) {
  case Kind::I1:
    return value & 1;
  case Kind::I32:
    return int32_t(value);
  default:
    return value;
  }
}

static uint64_t asUnsigned(Kind kind, int64_t value) {
  return kind == Kind::I32 ? uint32_t(value) : uint64_t(value);
}
/// i1 is kept as 0 or 1, but as a signed number it is 0 or -1.
static int64_t asSigned(Kind kind, int64_t value) { return kind == Kind::I1 ? -value : value; }

template <typename T, typename Fn>
static std::unique_ptr<Node> unaryNode(Location loc, Slot in, Slot out, Fn fn) {
  return makeNode(loc,
                  [=](Frame &frame, const Node *) { frame.set(out, T(fn(frame.get<T>(in)))); });
}

namespace {
/// Makes the nodes of one op.
struct ArithEmitter {
  Operation *op;
  llvm::function_ref<Slot(Value)> slotOf;
  Code &nodes;

  Kind kind(Value value) const { return Compiler::kindOf(value.getType()); }
  Slot in(unsigned k) const { return slotOf(op->getOperand(k)); }
  Slot out() const { return slotOf(op->getResult(0)); }

  template <typename Fn> bool add(Fn fn) const {
    nodes.push_back(makeNode(op->getLoc(), std::move(fn)));
    return true;
  }

  /// `fn` on two floats of the op's type.
  template <typename Fn> bool floats(Fn fn) const {
    Slot a = in(0), b = in(1), r = out();
    if (kind(op->getResult(0)) == Kind::F64)
      return add([=](Frame &f, const Node *) {
        f.set(r, double(fn(f.get<double>(a), f.get<double>(b))));
      });
    return add(
        [=](Frame &f, const Node *) { f.set(r, float(fn(f.get<float>(a), f.get<float>(b)))); });
  }

  /// `fn` on two integers as they are kept; the result wraps.
  template <typename Fn> bool integers(Fn fn) const {
    Slot a = in(0), b = in(1), r = out();
    Kind width = kind(op->getResult(0));
    return add([=](Frame &f, const Node *) {
      f.set(r, keep(width, int64_t(fn(uint64_t(f.slots[a]), uint64_t(f.slots[b])))));
    });
  }

  /// Signed division and its kin, in 128 bits, where nothing overflows; the result wraps.
  template <typename Fn> bool division(Fn fn) const {
    Slot a = in(0), b = in(1), r = out();
    Kind width = kind(op->getResult(0));
    return add([=](Frame &f, const Node *node) {
      __int128 x = asSigned(width, f.slots[a]), y = asSigned(width, f.slots[b]);
      if (y == 0) {
        f.report(node, InterpreterError::Arithmetic, "integer division by zero");
        return f.set(r, int64_t(0));
      }
      f.set(r, keep(width, int64_t(fn(x, y))));
    });
  }

  template <typename Fn> bool unsignedDivision(Fn fn) const {
    Slot a = in(0), b = in(1), r = out();
    Kind width = kind(op->getResult(0));
    return add([=](Frame &f, const Node *node) {
      uint64_t x = asUnsigned(width, f.slots[a]), y = asUnsigned(width, f.slots[b]);
      if (y == 0) {
        f.report(node, InterpreterError::Arithmetic, "integer division by zero");
        return f.set(r, int64_t(0));
      }
      f.set(r, keep(width, int64_t(fn(x, y))));
    });
  }

  template <typename T> bool compareFloats(arith::CmpFPredicate predicate) const {
    using P = arith::CmpFPredicate;
    Slot a = in(0), b = in(1), r = out();
    auto with = [&](bool unordered, auto fn) {
      return add([=](Frame &f, const Node *) {
        T x = f.get<T>(a), y = f.get<T>(b);
        f.set(r, int64_t(std::isnan(x) || std::isnan(y) ? unordered : fn(x, y)));
      });
    };
    auto eq = [](T x, T y) { return x == y; };
    auto ne = [](T x, T y) { return x != y; };
    auto lt = [](T x, T y) { return x < y; };
    auto le = [](T x, T y) { return x <= y; };
    auto gt = [](T x, T y) { return x > y; };
    auto ge = [](T x, T y) { return x >= y; };
    auto no = [](T, T) { return false; };
    auto yes = [](T, T) { return true; };
    switch (predicate) {
    case P::AlwaysFalse:
      return with(false, no);
    case P::OEQ:
      return with(false, eq);
    case P::OGT:
      return with(false, gt);
    case P::OGE:
      return with(false, ge);
    case P::OLT:
      return with(false, lt);
    case P::OLE:
      return with(false, le);
    case P::ONE:
      return with(false, ne);
    case P::ORD:
      return with(false, yes);
    case P::UEQ:
      return with(true, eq);
    case P::UGT:
      return with(true, gt);
    case P::UGE:
      return with(true, ge);
    case P::ULT:
      return with(true, lt);
    case P::ULE:
      return with(true, le);
    case P::UNE:
      return with(true, ne);
    case P::UNO:
      return with(true, no);
    case P::AlwaysTrue:
      return with(true, yes);
    }
    return false;
  }

  bool compareIntegers(arith::CmpIPredicate predicate) const {
    Slot a = in(0), b = in(1), r = out();
    Kind width = kind(op->getOperand(0));
    return add([=](Frame &f, const Node *) {
      int64_t x = asSigned(width, f.slots[a]), y = asSigned(width, f.slots[b]);
      uint64_t ux = asUnsigned(width, f.slots[a]), uy = asUnsigned(width, f.slots[b]);
      bool result = false;
      switch (predicate) {
      case arith::CmpIPredicate::eq:
        result = x == y;
        break;
      case arith::CmpIPredicate::ne:
        result = x != y;
        break;
      case arith::CmpIPredicate::slt:
        result = x < y;
        break;
      case arith::CmpIPredicate::sle:
        result = x <= y;
        break;
      case arith::CmpIPredicate::sgt:
        result = x > y;
        break;
      case arith::CmpIPredicate::sge:
        result = x >= y;
        break;
      case arith::CmpIPredicate::ult:
        result = ux < uy;
        break;
      case arith::CmpIPredicate::ule:
        result = ux <= uy;
        break;
      case arith::CmpIPredicate::ugt:
        result = ux > uy;
        break;
      case arith::CmpIPredicate::uge:
        result = ux >= uy;
        break;
      }
      f.set(r, int64_t(result));
    });
  }

  /// An integer from what `read` gives, of the result's kind.
  template <typename Fn> bool toInteger(Fn read) const {
    Kind width = kind(op->getResult(0));
    Slot r = out();
    return add([=](Frame &f, const Node *) { f.set(r, keep(width, read(f))); });
  }

  template <typename Fn> bool toFloat(Fn read) const {
    Slot r = out();
    if (kind(op->getResult(0)) == Kind::F64)
      return add([=](Frame &f, const Node *) { f.set(r, double(read(f))); });
    return add([=](Frame &f, const Node *) { f.set(r, float(read(f))); });
  }

  bool constant(arith::ConstantOp constant) const {
    Kind width = kind(constant.getResult());
    Slot r = out();
    int64_t bits;
    if (auto value = dyn_cast<FloatAttr>(constant.getValue())) {
      double number = value.getValueAsDouble();
      bits = width == Kind::F64 ? std::bit_cast<int64_t>(number)
                                : int64_t(std::bit_cast<uint32_t>(float(number)));
    } else {
      auto integer = cast<IntegerAttr>(constant.getValue()).getValue();
      bits = width == Kind::I1 ? int64_t(integer.getBoolValue()) : integer.getSExtValue();
    }
    return add([=](Frame &f, const Node *) { f.slots[r] = bits; });
  }
};
} // namespace

/// Bits beyond the width shift everything out, as arith leaves it undefined.
static bool shifts(Kind kind, uint64_t amount) { return amount < (kind == Kind::I32 ? 32u : 64u); }

/// Arithmetic on floats.
static bool compileFloats(ArithEmitter &emit) {
  Operation *op = emit.op;
  return llvm::TypeSwitch<Operation *, bool>(emit.op)
      .Case<arith::AddFOp>([&](auto) { return emit.floats([](auto a, auto b) { return a + b; }); })
      .Case<arith::SubFOp>([&](auto) { return emit.floats([](auto a, auto b) { return a - b; }); })
      .Case<arith::MulFOp>([&](auto) { return emit.floats([](auto a, auto b) { return a * b; }); })
      .Case<arith::DivFOp>([&](auto) { return emit.floats([](auto a, auto b) { return a / b; }); })
      .Case<arith::RemFOp>(
          [&](auto) { return emit.floats([](auto a, auto b) { return std::fmod(a, b); }); })
      .Case<arith::MaximumFOp>([&](auto) {
        return emit.floats([](auto a, auto b) {
          return std::isnan(a) || std::isnan(b)       ? a + b
                 : std::signbit(a) != std::signbit(b) ? (std::signbit(a) ? b : a)
                                                      : std::max(a, b);
        });
      })
      .Case<arith::MinimumFOp>([&](auto) {
        return emit.floats([](auto a, auto b) {
          return std::isnan(a) || std::isnan(b)       ? a + b
                 : std::signbit(a) != std::signbit(b) ? (std::signbit(a) ? a : b)
                                                      : std::min(a, b);
        });
      })
      .Case<arith::MaxNumFOp>(
          [&](auto) { return emit.floats([](auto a, auto b) { return std::fmax(a, b); }); })
      .Case<arith::MinNumFOp>(
          [&](auto) { return emit.floats([](auto a, auto b) { return std::fmin(a, b); }); })
      .Case([&](arith::NegFOp) {
        Slot a = emit.in(0), r = emit.out();
        emit.nodes.push_back(
            Compiler::kindOf(op->getResult(0).getType()) == Kind::F64
                ? unaryNode<double>(op->getLoc(), a, r, [](double x) { return -x; })
                : unaryNode<float>(op->getLoc(), a, r, [](float x) { return -x; }));
        return true;
      })
      .Case([&](arith::CmpFOp cmp) {
        return Compiler::kindOf(cmp.getLhs().getType()) == Kind::F64
                   ? emit.compareFloats<double>(cmp.getPredicate())
                   : emit.compareFloats<float>(cmp.getPredicate());
      })
      .Default([](Operation *) { return false; });
}

/// Arithmetic on integers, and selections.
static bool compileIntegers(ArithEmitter &emit) {
  Operation *op = emit.op;
  return llvm::TypeSwitch<Operation *, bool>(emit.op)
      .Case<arith::AddIOp>(
          [&](auto) { return emit.integers([](auto a, auto b) { return a + b; }); })
      .Case<arith::SubIOp>(
          [&](auto) { return emit.integers([](auto a, auto b) { return a - b; }); })
      .Case<arith::MulIOp>(
          [&](auto) { return emit.integers([](auto a, auto b) { return a * b; }); })
      .Case<arith::AndIOp>(
          [&](auto) { return emit.integers([](auto a, auto b) { return a & b; }); })
      .Case<arith::OrIOp>([&](auto) { return emit.integers([](auto a, auto b) { return a | b; }); })
      .Case<arith::XOrIOp>(
          [&](auto) { return emit.integers([](auto a, auto b) { return a ^ b; }); })
      .Case<arith::MaxSIOp>([&](auto) {
        Kind kind = Compiler::kindOf(op->getResult(0).getType());
        return emit.integers(
            [=](int64_t a, int64_t b) { return asSigned(kind, a) > asSigned(kind, b) ? a : b; });
      })
      .Case<arith::MinSIOp>([&](auto) {
        Kind kind = Compiler::kindOf(op->getResult(0).getType());
        return emit.integers(
            [=](int64_t a, int64_t b) { return asSigned(kind, a) < asSigned(kind, b) ? a : b; });
      })
      .Case<arith::MaxUIOp>([&](auto) {
        return emit.integers([](uint64_t a, uint64_t b) { return std::max(a, b); });
      })
      .Case<arith::MinUIOp>([&](auto) {
        return emit.integers([](uint64_t a, uint64_t b) { return std::min(a, b); });
      })
      .Case<arith::ShLIOp>([&](auto) {
        Kind kind = Compiler::kindOf(op->getResult(0).getType());
        return emit.integers([=](uint64_t a, uint64_t b) { return shifts(kind, b) ? a << b : 0; });
      })
      .Case<arith::ShRUIOp>([&](auto) {
        Kind kind = Compiler::kindOf(op->getResult(0).getType());
        return emit.integers(
            [=](int64_t a, uint64_t b) { return shifts(kind, b) ? asUnsigned(kind, a) >> b : 0; });
      })
      .Case<arith::ShRSIOp>([&](auto) {
        Kind kind = Compiler::kindOf(op->getResult(0).getType());
        return emit.integers([=](int64_t a, uint64_t b) {
          return shifts(kind, b) ? a >> b : int64_t(a < 0 ? -1 : 0);
        });
      })
      .Case<arith::DivSIOp>(
          [&](auto) { return emit.division([](auto a, auto b) { return a / b; }); })
      .Case<arith::RemSIOp>(
          [&](auto) { return emit.division([](auto a, auto b) { return a % b; }); })
      .Case<arith::FloorDivSIOp>([&](auto) {
        return emit.division(
            [](auto a, auto b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); });
      })
      .Case<arith::CeilDivSIOp>([&](auto) {
        return emit.division(
            [](auto a, auto b) { return a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0); });
      })
      .Case<arith::DivUIOp>(
          [&](auto) { return emit.unsignedDivision([](uint64_t a, uint64_t b) { return a / b; }); })
      .Case<arith::RemUIOp>(
          [&](auto) { return emit.unsignedDivision([](uint64_t a, uint64_t b) { return a % b; }); })
      .Case([&](arith::CmpIOp cmp) { return emit.compareIntegers(cmp.getPredicate()); })
      .Case([&](arith::SelectOp select) {
        Slot c = emit.in(0), a = emit.in(1), b = emit.in(2), r = emit.out();
        return emit.add([=](Frame &f, const Node *) { f.slots[r] = f.slots[f.slots[c] ? a : b]; });
      })
      .Default([](Operation *) { return false; });
}

/// Conversions between the kinds of values.
static bool compileCasts(ArithEmitter &emit) {
  Operation *op = emit.op;
  return llvm::TypeSwitch<Operation *, bool>(emit.op)
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>([&](auto) {
        Slot a = emit.in(0);
        Kind from = emit.kind(op->getOperand(0));
        return emit.toInteger([=](Frame &f) { return asSigned(from, f.slots[a]); });
      })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto) {
        Slot a = emit.in(0);
        Kind from = emit.kind(op->getOperand(0));
        return emit.toInteger([=](Frame &f) { return int64_t(asUnsigned(from, f.slots[a])); });
      })
      .Case<arith::FPToSIOp>([&](auto) {
        Slot a = emit.in(0);
        Kind from = emit.kind(op->getOperand(0));
        DType to = emit.kind(op->getResult(0)) == Kind::I32 ? DType::I32 : DType::I64;
        return emit.toInteger([=](Frame &f) {
          double value = from == Kind::F64 ? f.get<double>(a) : f.get<float>(a);
          return convertToInteger(value, to, false);
        });
      })
      .Case<arith::SIToFPOp>([&](auto) {
        Slot a = emit.in(0);
        Kind from = emit.kind(op->getOperand(0));
        return emit.toFloat([=](Frame &f) { return asSigned(from, f.slots[a]); });
      })
      .Case<arith::UIToFPOp>([&](auto) {
        Slot a = emit.in(0);
        Kind from = emit.kind(op->getOperand(0));
        return emit.toFloat([=](Frame &f) { return asUnsigned(from, f.slots[a]); });
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) {
        Slot a = emit.in(0);
        if (emit.kind(op->getOperand(0)) == Kind::F64)
          return emit.toFloat([=](Frame &f) { return f.get<double>(a); });
        return emit.toFloat([=](Frame &f) { return f.get<float>(a); });
      })
      .Case<arith::BitcastOp>([&](auto) {
        // Floats are kept as unsigned bits, integers as signed ones.
        Slot a = emit.in(0), r = emit.out();
        Kind to = emit.kind(op->getResult(0));
        return emit.add([=](Frame &f, const Node *) {
          f.slots[r] = to == Kind::F32 ? int64_t(uint32_t(f.slots[a])) : keep(to, f.slots[a]);
        });
      })
      .Default([](Operation *) { return false; });
}

/// Rounding to storage types, and random numbers.
static bool compileConversions(ArithEmitter &emit) {
  Operation *op = emit.op;
  return llvm::TypeSwitch<Operation *, bool>(emit.op)
      .Case([&](tgl::ConvertOp convert) {
        Slot a = emit.in(0), r = emit.out();
        Kind from = emit.kind(op->getOperand(0)), to = emit.kind(op->getResult(0));
        DType target = *dtypeOf(convert.getTarget());
        bool nearest = convert.getNearest();
        return emit.add([=](Frame &f, const Node *) {
          bool fromFloat = from == Kind::F32 || from == Kind::F64;
          if (isFloat(target)) {
            double value = from == Kind::F64   ? f.get<double>(a)
                           : from == Kind::F32 ? f.get<float>(a)
                                               : double(f.slots[a]);
            // An i64 goes to f32 in one rounding, not by way of double.
            if (target == DType::F32 && !fromFloat)
              return f.set(r, float(f.slots[a]));
            double rounded = roundToFloat(value, target);
            return to == Kind::F64 ? f.set(r, rounded) : f.set(r, float(rounded));
          }
          int64_t result;
          if (fromFloat)
            result = convertToInteger(from == Kind::F64 ? f.get<double>(a) : f.get<float>(a),
                                      target, nearest);
          else
            result = target == DType::Bool ? int64_t(f.slots[a] != 0)
                     : nearest             ? saturate(f.slots[a], target)
                                           : wrap(f.slots[a], target);
          f.set(r, keep(to, result));
        });
      })
      .Case([&](tgl::RandomOp random) {
        llvm::SmallVector<Slot> keys;
        for (Value key : random.getKeys())
          keys.push_back(emit.slotOf(key));
        Slot r = emit.out();
        bool normal = random.getNormal();
        return emit.add([=](Frame &f, const Node *) {
          llvm::SmallVector<int64_t> values;
          for (Slot key : keys)
            values.push_back(f.slots[key]);
          uint64_t bits = randomBits(values);
          f.set(r, normal ? normalFromBits(bits) : uniformFromBits(bits));
        });
      })
      .Default([](Operation *) { return false; });
}

bool tegula::interp::compileArith(Compiler &compiler, Operation *op, Code &nodes) {
  auto slots = [&compiler](Value value) { return compiler.slotOf(value); };
  ArithEmitter emit{op, slots, nodes};
  if (op->getNumResults() != 1 || !op->getResult(0).getType().isIntOrIndexOrFloat())
    return false;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return emit.constant(constant);
  return compileFloats(emit) || compileIntegers(emit) || compileCasts(emit) ||
         compileConversions(emit);
}
