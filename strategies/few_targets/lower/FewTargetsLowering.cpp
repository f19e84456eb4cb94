//===- FewTargetsLowering.cpp - The launch of a sum in few elements -------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block clears its copies, adds its part of the points to them, and adds what they hold then to
// the tensor. Copy c of element e stands at e * copies + c, and thread t adds to copy t % copies:
// 32 copies of 4 bytes lie in 32 banks, so that threads of a warp never wait for each other.
//
// Copies begin with what adding does not change (-0 for sums of floats, by which even zeros keep
// their signs), and an element of which all copies still hold that is left alone.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/AccessShape.h"
#include "codegen/common/Accesses.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "strategies/FewTargetsStrategy.h"
#include "strategies/lower/StrategyLowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include <utility>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

namespace {
class FewTargetsCode {
public:
  FewTargetsCode(DeviceEmitter &emitter, const FewTargetsPlan &plan, const FewTargetsShape &shape)
      : e(emitter), b(emitter.b), plan(plan), shape(shape),
        axes(cast<tgl::AxesOp>(tgl::ParallelOp(plan.op).getOperation())),
        offsets(shape.offsets(plan)) {
    for (mlir::Operation &each : tgl::ParallelOp(plan.op).getBody().front())
      if (auto write = dyn_cast<tgl::WriteOp>(each))
        writes.push_back(write);
      else
        before.push_back(&each);
    chooseLanes();
  }

  void emit();

private:
  /// A vector of points, or one.
  struct Round {
    Value *number;
    SmallVector<Value *> found; ///< results of `before`, in order
  };

  DeviceEmitter &e;
  IRBuilder<> &b;
  const FewTargetsPlan &plan;
  const FewTargetsShape &shape;
  tgl::AxesOp axes;
  SmallVector<int64_t> offsets;
  SmallVector<mlir::Operation *> before; ///< what a point computes
  SmallVector<tgl::WriteOp> writes;      ///< and then adds
  std::optional<LaneChoice> lane;
  int64_t rest = 0;    ///< points behind the last whole vector
  unsigned rounds = 1; ///< of a thread whose elements are loaded together
  Value *thread = nullptr, *part = nullptr;

  void chooseLanes();
  int64_t laneWidth() const { return lane ? lane->width : 1; }
  Value *copiesOf(const FewTargetsTensor &one);
  Constant *neutral(const FewTargetsTensor &one);
  void forEachElement(int64_t elements, function_ref<void(Value *)> body);
  void clear();
  void at(const Round &round, bool isTail, function_ref<void()> body);
  void load(Round &round, bool isTail);
  void add(const Round &round, bool isTail);
  void accumulate(Value *low, Value *high, unsigned together);
  void accumulate();
  Value *combine(const FewTargetsTensor &one, Value *lhs, Value *rhs);
  Value *placeInTensor(const FewTargetsTensor &one, Value *element);
  void addToTensors();
};
} // namespace

/// Vectors of neighbours in memory, where whole vectors make up the axis, or it is alone.
void FewTargetsCode::chooseLanes() {
  constexpr int64_t maxWidth = 8, maxAdditions = 16, maxOperations = 128;
  int64_t operations = 0;
  bool isPlain = true;
  SmallVector<tgl::ReadOp> reads;
  for (mlir::Operation *each : before) {
    operations += isa<mlir::math::MathDialect>(each->getDialect()) ? 16 : 1;
    isPlain &= !each->getNumRegions();
    if (auto read = dyn_cast<tgl::ReadOp>(each)) {
      reads.push_back(read);
      isPlain &= !isPacked(read.getTensorType().getElementType());
    }
  }
  unsigned most = 0;
  for (unsigned axis : plan.inner) {
    unsigned near = 0, bytes = 1;
    for (tgl::ReadOp read : reads)
      if (strideAlong(read.getTensorType(), read.getSubscriptExprs(), axes.getAxes()[axis]) == 1) {
        ++near;
        bytes = std::max(bytes, storageBytes(read.getTensorType().getElementType()));
      }
    int64_t extent = *tgl::knownPoints(axes, {axis});
    bool isAlone = plan.inner.size() == 1 && plan.apart.empty();
    int64_t width = std::min<int64_t>(DeviceEmitter::accessBytes / bytes, maxWidth);
    while (width > 1 && (isAlone ? extent < width : extent % width != 0))
      width /= 2;
    if (!isPlain || !near || near < most || width == 1)
      continue;
    most = near;
    lane = LaneChoice{axis, unsigned(width), 1};
    rest = extent % width;
  }
  int64_t additions = laneWidth() * std::max<int64_t>(writes.size(), 1);
  rounds = std::clamp<int64_t>(
      std::min(maxAdditions / additions, maxOperations / std::max<int64_t>(operations, 1)), 1, 4);
}

Value *FewTargetsCode::copiesOf(const FewTargetsTensor &one) {
  int64_t offset = offsets[&one - plan.tensors.begin()];
  return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), e.dynamicShared(), offset);
}

/// What changes no element that it is combined with.
Constant *FewTargetsCode::neutral(const FewTargetsTensor &one) {
  mlir::Type element = one.type().getElementType();
  Type *type = e.storageType(element);
  bool isMax = one.combine == tgl::ReduceKind::Max;
  if (one.combine == tgl::ReduceKind::Sum)
    return type->isIntegerTy() ? Constant::getNullValue(type) : ConstantFP::getNegativeZero(type);
  if (!type->isIntegerTy())
    return ConstantFP::getInfinity(type, /*Negative=*/isMax);
  unsigned bits = type->getIntegerBitWidth();
  if (element.isUnsignedInteger())
    return ConstantInt::get(type, isMax ? APInt::getMinValue(bits) : APInt::getMaxValue(bits));
  return ConstantInt::get(type,
                          isMax ? APInt::getSignedMinValue(bits) : APInt::getSignedMaxValue(bits));
}

/// Numbers below `elements`, over the block's threads.
void FewTargetsCode::forEachElement(int64_t elements, function_ref<void(Value *)> body) {
  e.emitLoop(thread, e.i64(elements), e.i64(shape.threads), {},
             [&](Value *number, ArrayRef<Value *>) {
               body(number);
               return SmallVector<Value *>();
             });
}

void FewTargetsCode::clear() {
  for (const FewTargetsTensor &one : plan.tensors)
    forEachElement(one.elements * shape.copies, [&](Value *number) {
      Constant *value = neutral(one);
      b.CreateStore(value, b.CreateInBoundsGEP(value->getType(), copiesOf(one), number));
    });
}

/// At the points of a round: a vector of them, or one.
void FewTargetsCode::at(const Round &round, bool isTail, function_ref<void()> body) {
  if (!isTail)
    return e.setAxes(axes, plan.inner, round.number, lane, body);
  e.values[axes.getAxes()[lane->axis]] = round.number;
  body();
}

void FewTargetsCode::load(Round &round, bool isTail) {
  at(round, isTail, [&] {
    for (mlir::Operation *each : before) {
      e.emitOp(each);
      for (mlir::Value result : each->getResults())
        round.found.push_back(e.values.lookup(result));
    }
  });
}

void FewTargetsCode::add(const Round &round, bool isTail) {
  Value *copy = b.CreateAnd(thread, e.i64(shape.copies - 1));
  at(round, isTail, [&] {
    const auto *found = round.found.begin();
    for (mlir::Operation *each : before)
      for (mlir::Value result : each->getResults())
        e.values[result] = *found++;
    for (tgl::WriteOp write : writes) {
      const FewTargetsTensor &one = plan.of(write);
      SmallVector<ValueExpr> subscripts = write.getSubscriptExprs(), inWindow;
      SmallVector<tgl::IndexExprAttr> dims;
      for (unsigned dim : one.dims) {
        inWindow.push_back(subscripts[dim]);
        dims.push_back(one.type().getDims()[dim]);
      }
      mlir::Type element = one.type().getElementType();
      auto window = tgl::TglTensorType::get(write.getContext(), dims, element);
      Value *mask = emitWriteMask(e, write);
      e.checks.verifyProved(one.type(), subscripts, mask);
      Value *place = e.emitIndex(elementOffset(window, inWindow));
      place = b.CreateNSWMul(place, ConstantInt::get(place->getType(), shape.copies));
      Value *own = b.CreateInBoundsGEP(e.storageType(element), copiesOf(one), copy);
      emitCombine(e, write, own, place, e.valueOf(write.getValue()), mask);
    }
  });
}

/// From `low` to `high`, over the block's threads, each some rounds at a time.
void FewTargetsCode::accumulate(Value *low, Value *high, unsigned together) {
  e.keepNextLoopRolled = true;
  e.emitLoop(b.CreateNSWAdd(low, thread), high, e.i64(shape.threads * together), {},
             [&](Value *first, ArrayRef<Value *>) {
               SmallVector<Round, 0> all;
               for (unsigned number = 0; number < together; ++number) {
                 all.push_back({b.CreateNSWAdd(first, e.i64(number * shape.threads)), {}});
                 load(all.back(), /*isTail=*/false);
               }
               for (const Round &round : all)
                 add(round, /*isTail=*/false);
               return SmallVector<Value *>();
             });
}

void FewTargetsCode::accumulate() {
  int64_t count = plan.points / laneWidth(); // the rest is of one axis alone
  int64_t length = divideCeil(count, shape.parts), step = shape.threads * rounds;
  Value *begin =
      b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateNSWMul(part, e.i64(length)), e.i64(count));
  Value *end =
      b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateNSWAdd(begin, e.i64(length)), e.i64(count));
  Value *whole = begin;
  if (rounds > 1) { // without conditions, so that loads go first
    Value *steps = b.CreateUDiv(b.CreateNSWSub(end, begin), e.i64(step));
    whole = b.CreateNSWAdd(begin, b.CreateNSWMul(steps, e.i64(step)));
    accumulate(begin, whole, rounds);
  }
  accumulate(whole, end, 1);
  if (!rest)
    return;
  Value *isHere = b.CreateAnd(b.CreateICmpEQ(part, e.i64(shape.parts - 1)),
                              b.CreateICmpSLT(thread, e.i64(rest)));
  e.emitIf(isHere, [&] {
    Value *low = e.emitIndex(e.lowOf(axes, lane->axis));
    Value *number = b.CreateNSWAdd(thread, e.i64(count * laneWidth()));
    Round round{b.CreateNSWAdd(low, number), {}};
    load(round, /*isTail=*/true);
    add(round, /*isTail=*/true);
  });
}

Value *FewTargetsCode::combine(const FewTargetsTensor &one, Value *lhs, Value *rhs) {
  bool isInteger = lhs->getType()->isIntegerTy();
  bool isUnsigned = one.type().getElementType().isUnsignedInteger();
  switch (one.combine) {
  case tgl::ReduceKind::Max:
    return b.CreateBinaryIntrinsic(!isInteger   ? Intrinsic::maximum
                                   : isUnsigned ? Intrinsic::umax
                                                : Intrinsic::smax,
                                   lhs, rhs);
  case tgl::ReduceKind::Min:
    return b.CreateBinaryIntrinsic(!isInteger   ? Intrinsic::minimum
                                   : isUnsigned ? Intrinsic::umin
                                                : Intrinsic::smin,
                                   lhs, rhs);
  default:
    return isInteger ? b.CreateAdd(lhs, rhs) : b.CreateFAdd(lhs, rhs);
  }
}

/// The offset in the tensor of an element of the window.
Value *FewTargetsCode::placeInTensor(const FewTargetsTensor &one, Value *element) {
  auto *write = find_if(writes, [&](tgl::WriteOp each) { return each.getTensor() == one.tensor; });
  SmallVector<ValueExpr> subscripts = tgl::WriteOp(*write).getSubscriptExprs();
  SmallVector<Value *> places(subscripts.size());
  for (unsigned dim : reverse(one.dims)) {
    Value *extent = e.emitSize(one.type().getDims()[dim].getExpr());
    bool isFirst = dim == one.dims.front();
    places[dim] = isFirst ? element : b.CreateURem(element, extent);
    if (!isFirst)
      element = b.CreateUDiv(element, extent);
  }
  Value *offset = e.i64(0);
  for (auto [dim, place] : enumerate(places)) {
    if (!place)
      place = e.emitIndex(subscripts[dim]); // an axis that is apart
    offset = b.CreateNSWAdd(b.CreateNSWMul(offset, e.emitSize(one.type().getDims()[dim].getExpr())),
                            place);
  }
  return offset;
}

void FewTargetsCode::addToTensors() {
  for (const FewTargetsTensor &one : plan.tensors) {
    auto *write =
        find_if(writes, [&](tgl::WriteOp each) { return each.getTensor() == one.tensor; });
    Constant *none = neutral(one);
    Type *type = none->getType();
    forEachElement(one.elements, [&](Value *element) {
      // Threads of a warp begin with different copies, which lie in different banks.
      Value *first = b.CreateNSWMul(element, e.i64(shape.copies)), *sum = nullptr;
      for (int64_t number = 0; number < shape.copies; ++number) {
        Value *copy = b.CreateAnd(b.CreateAdd(element, e.i64(number)), e.i64(shape.copies - 1));
        Value *value = b.CreateLoad(
            type, b.CreateInBoundsGEP(type, copiesOf(one), b.CreateNSWAdd(first, copy)));
        sum = sum ? combine(one, sum, value) : value;
      }
      Type *bits = b.getIntNTy(type->getPrimitiveSizeInBits());
      Value *isNew = b.CreateICmpNE(b.CreateBitCast(sum, bits), b.CreateBitCast(none, bits));
      e.emitIf(isNew, [&] {
        emitCombine(e, *write, e.buffers.find(one.tensor)->second.pointer,
                    placeInTensor(one, element), sum, nullptr);
      });
    });
  }
}

void FewTargetsCode::emit() {
  constexpr int64_t maxThreads = 2048; // of a multiprocessor
  if (shape.threads * FewTargetsShape::maxResident <= maxThreads)
    e.function->addFnAttr("nvvm.minctasm", std::to_string(FewTargetsShape::maxResident));
  thread = e.readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x, shape.threads);
  Value *block = e.readSreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, plan.groups * shape.parts);
  part = b.CreateURem(block, e.i64(shape.parts));
  Value *group = b.CreateUDiv(block, e.i64(shape.parts));
  e.setAxes(axes, plan.apart, group, std::nullopt, [&] {
    clear();
    e.barrier();
    std::string everywhere = std::exchange(e.options.atomicScope, "block");
    accumulate();
    e.options.atomicScope = everywhere;
    e.barrier();
    addToTensors();
  });
}

namespace {
class FewTargetsLowering final : public StrategyLowering {
public:
  Coverage coverage(const StatementMatch &, const EmitterOptions &options) const override {
    return options.checked ? Coverage::None : Coverage::Whole;
  }

  void lower(StatementLowering &statement, const StatementMatch &match) const override {
    const auto &own = cast<FewTargetsMatch>(match);
    statement.emitTileLaunch({statement.name + "_copies", own.plan.groups * own.shape.parts,
                              unsigned(own.shape.threads),
                              unsigned(own.shape.offsets(own.plan).back()), "a part of the points"},
                             [&](DeviceEmitter &emitter, Value *) {
                               FewTargetsCode(emitter, own.plan, own.shape).emit();
                             });
  }
};
} // namespace

const StrategyLowering &tegula::fewTargetsLowering() {
  static const FewTargetsLowering instance;
  return instance;
}
