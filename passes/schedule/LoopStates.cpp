//===- LoopStates.cpp - What a tile loop carries, as partial results ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/schedule/LoopStates.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/analysis/Nest.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace {
class Finder : MatcherBase {
public:
  explicit Finder(TilesOp loop) : loop(loop) {}

  Matched<SmallVector<LoopState>> run() {
    if (findExtremes() && findSums())
      return std::move(states);
    fail(loop, "the tile loop carries values of which parts cannot be merged");
    return std::move(why);
  }

private:
  TilesOp loop;
  SmallVector<LoopState> states;
  std::optional<OperationName> power; ///< of which sums are: exp or exp2

  Value nextOf(unsigned argument) { return loop.getYield().getValues()[argument]; }

  bool isCarried(Value value) {
    return llvm::is_contained(loop.getIterArgs(), value) || isCarriedTemp(value);
  }
  /// Of the nest around the loop.
  bool isCarriedTemp(Value tensor) {
    auto temp = tensor.getDefiningOp<TempOp>();
    return temp && temp->getBlock() == loop->getBlock();
  }

  bool findExtremes() {
    for (auto [number, argument] : llvm::enumerate(loop.getIterArgs())) {
      Operation *next = nextOf(number).getDefiningOp();
      LoopState state{LoopState::Sum, argument, unsigned(number), nullptr, 0};
      if (isa_and_nonnull<arith::MaximumFOp, arith::MinimumFOp>(next)) {
        state.kind = isa<arith::MaximumFOp>(next) ? LoopState::Max : LoopState::Min;
        Value other = next->getOperand(0) == argument ? next->getOperand(1) : next->getOperand(0);
        if (other == argument || !llvm::is_contained(next->getOperands(), argument) ||
            powersIn(other, {}) != 0)
          return false;
      }
      states.push_back(state);
    }
    return true;
  }

  bool findSums() {
    for (LoopState &state : states)
      if (state.kind == LoopState::Sum && !findSum(state, nextOf(state.result), state.carried))
        return false;
    for (Value tensor : accessesOf(loop).writes) {
      if (!isCarriedTemp(tensor))
        continue;
      WriteOp write = onlyWrite(tensor);
      if (!write || cast<TglTensorType>(tensor.getType()).getDims().size() != 1)
        return false;
      LoopState state{LoopState::Sum, tensor, 0, nullptr, 0};
      if (!findSum(state, write.getValue(), tensor))
        return false;
      states.push_back(state);
    }
    return true;
  }

  /// In the loop.
  WriteOp onlyWrite(Value tensor) {
    WriteOp found;
    for (Operation *user : tensor.getUsers()) {
      auto write = dyn_cast<WriteOp>(user);
      if (!write || !loop->isProperAncestor(write))
        continue;
      if (found || write.getGuard() || write.getCombine())
        return {};
      found = write;
    }
    return found;
  }

  bool isBefore(Value value, Value carried) {
    if (value == carried)
      return true;
    auto read = value.getDefiningOp<ReadOp>();
    return read && read.getTensor() == carried;
  }

  /// `carried * scale + terms`, where terms are powers relative to what scale is.
  bool findSum(LoopState &state, Value next, Value carried) {
    auto add = next.getDefiningOp<arith::AddFOp>();
    if (!add)
      return false;
    for (bool swap : {false, true}) {
      Value before = swap ? add.getRhs() : add.getLhs(), terms = swap ? add.getLhs() : add.getRhs();
      if (isBefore(before, carried))
        return powersIn(terms, {}) == 0;
      auto scaled = before.getDefiningOp<arith::MulFOp>();
      if (!scaled)
        continue;
      Value old = scaled.getLhs(), factor = scaled.getRhs();
      if (!isBefore(old, carried))
        std::swap(old, factor);
      std::optional<unsigned> extreme = scaleOf(factor);
      if (!isBefore(old, carried) || !extreme)
        continue;
      state.scale = factor.getDefiningOp();
      state.scaledBy = *extreme;
      power = state.scale->getName();
      return powersIn(terms, nextOf(*extreme)) == 1;
    }
    return false;
  }

  static bool isPower(Operation *op) { return isa_and_nonnull<math::ExpOp, math::Exp2Op>(op); }

  /// The m of exp(m - m').
  std::optional<unsigned> scaleOf(Value factor) {
    Operation *exp = factor.getDefiningOp();
    auto shift = isPower(exp) ? exp->getOperand(0).getDefiningOp<arith::SubFOp>() : nullptr;
    for (const LoopState &state : states)
      if (shift && state.kind != LoopState::Sum && shift.getLhs() == state.carried &&
          shift.getRhs() == nextOf(state.result))
        return state.result;
    return std::nullopt;
  }

  /// How many factors exp(x - extreme) each term of the value has; nothing where terms differ, or
  /// where it depends on what the loop carries in another way.
  std::optional<int> powersIn(Value value, Value extreme) {
    if (value == extreme || isCarried(value))
      return std::nullopt;
    Operation *op = value.getDefiningOp();
    if (!op || !loop->isProperAncestor(op))
      return 0;
    if (isPower(op)) {
      auto shift = op->getOperand(0).getDefiningOp<arith::SubFOp>();
      if (shift && extreme && shift.getRhs() == extreme && op->getName() == power)
        return powersIn(shift.getLhs(), extreme) == 0 ? std::optional(1) : std::nullopt;
    }
    if (auto read = dyn_cast<ReadOp>(op)) {
      if (isCarriedTemp(read.getTensor()))
        return std::nullopt;
      auto temp = read.getTensor().getDefiningOp<TempOp>();
      if (temp && loop->isProperAncestor(temp)) {
        WriteOp write = onlyWrite(read.getTensor());
        return write ? powersIn(write.getValue(), extreme) : std::nullopt;
      }
    }
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      std::optional<int> powers = powersIn(reduce.getReduced(), extreme);
      bool keeps = reduce.getKind() == ReduceKind::Sum && !reduce.getFiltered();
      return powers && (keeps || *powers == 0) ? powers : std::nullopt;
    }
    SmallVector<int> ofOperands;
    for (Value operand : op->getOperands()) {
      std::optional<int> powers = powersIn(operand, extreme);
      if (!powers)
        return std::nullopt;
      ofOperands.push_back(*powers);
    }
    if (isa<arith::MulFOp>(op))
      return ofOperands[0] + ofOperands[1];
    if (isa<arith::AddFOp, arith::SubFOp>(op))
      return ofOperands[0] == ofOperands[1] ? std::optional(ofOperands[0]) : std::nullopt;
    if (isa<ConvertOp, arith::NegFOp>(op)) // rounding is relative too
      return ofOperands[0];
    return llvm::all_of(ofOperands, [](int powers) { return powers == 0; }) ? std::optional(0)
                                                                            : std::nullopt;
  }
};
} // namespace

Matched<SmallVector<LoopState>> tegula::statesOf(TilesOp loop) { return Finder(loop).run(); }
