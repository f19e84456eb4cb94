//===- ApproximateFunctions.cpp - Functions of 16-bit elements -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/schedule/ApproximateFunctions.h"

#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

static bool isFunction(Operation *op) {
  return isa<math::ExpOp, math::TanhOp, math::ErfOp>(op) && op->getResult(0).getType().isF32();
}

namespace {
/// What a value is computed of, at the points of one nest.
struct Sources {
  bool isShort = false; // elements of 16 bits or less
  bool isLong = false;  // anything else that varies along the nest's axes
  bool isRough = false; // a function that is approximate

  void add(const Sources &other) {
    isRough |= other.isRough;
    isShort |= other.isShort;
    isLong |= other.isLong;
  }
};

class SourceFinder {
public:
  SourceFinder(AxesOp nest, llvm::DenseSet<Value> &tensors) : nest(nest), tensors(tensors) {}

  Sources of(Value value) {
    auto [found, isNew] = known.try_emplace(value); // a value that is asked for again adds nothing
    if (!isNew)
      return found->second;
    Sources sources = compute(value);
    known[value] = sources;
    return sources;
  }

private:
  static bool isShortFloat(Type type) {
    return isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= 16;
  }

  /// Values that stand outside are the same at all points, as a row's largest element is.
  bool isInside(Operation *op) const { return nest->isProperAncestor(op); }

  Sources compute(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !isInside(op) || !isa<FloatType>(value.getType()))
      return {};
    if (auto convert = dyn_cast<ConvertOp>(op); convert && isShortFloat(convert.getTarget()))
      return {true, false};
    if (auto read = dyn_cast<ReadOp>(op))
      return ofRead(read);
    if (op->getNumRegions()) // a sum of many elements may be known better than each
      return {false, true};
    Sources sources;
    for (Value operand : op->getOperands())
      sources.add(of(operand));
    sources.isRough |= isFunction(op);
    return sources;
  }

  Sources ofRead(ReadOp read) {
    Type element = read.getTensorType().getElementType();
    if (isShortFloat(element))
      return {true, false};
    if (!isa<FloatType>(element))
      return {};
    auto temp = read.getTensor().getDefiningOp<TempOp>();
    if (temp && temp->getParentOfType<ParallelOp>())
      return ofWritten(read.getTensor());
    bool varies = llvm::any_of(read.getSubscriptExprs(), [&](const ValueExpr &subscript) {
      return llvm::any_of(subscript.operands(), [&](Value operand) {
        Operation *owner = operand.getParentBlock()->getParentOp();
        return owner == nest || isInside(owner);
      });
    });
    return {false, varies};
  }

  /// Of a statement's own tensor: the values that it writes there, wherever it does. What is made
  /// of itself, such as a loop's state, collects errors.
  Sources ofWritten(Value tensor) {
    if (!tensors.insert(tensor).second)
      return {false, true};
    Sources sources;
    for (Operation *user : tensor.getUsers())
      if (auto write = dyn_cast<WriteOp>(user))
        sources.add(ofWrite(write));
      else if (!isa<ReadOp>(user))
        sources.isLong = true;
    tensors.erase(tensor);
    return sources;
  }

  Sources ofWrite(WriteOp write) {
    auto nest = write->getParentOfType<AxesOp>();
    if (!nest || write.getCombine())
      return {false, true};
    return SourceFinder(nest, tensors).of(write.getValue());
  }

  AxesOp nest;
  llvm::DenseSet<Value> &tensors; // on the way from the value that was asked for first
  llvm::DenseMap<Value, Sources> known;
};
} // namespace

unsigned tegula::approximateFunctions(LaunchOp launch) {
  unsigned count = 0;
  launch.walk([&](Operation *op) {
    bool isDivision = isa<arith::DivFOp>(op) && op->getResult(0).getType().isF32();
    if (!isDivision && !isFunction(op))
      return;
    auto nest = op->getParentOfType<AxesOp>();
    if (!nest)
      return;
    llvm::DenseSet<Value> tensors;
    SourceFinder finder(nest, tensors);
    Sources sources;
    for (Value operand : op->getOperands())
      sources.add(finder.of(operand));
    // A quotient of numbers may be exact, as that by a scale, which is then rounded to an integer.
    if (!sources.isShort || sources.isLong || (isDivision && !sources.isRough))
      return;
    auto flagged = cast<arith::ArithFastMathInterface>(op);
    arith::FastMathFlagsAttr known = flagged.getFastMathFlagsAttr(); // null where there are none
    arith::FastMathFlags flags = known ? known.getValue() : arith::FastMathFlags::none;
    op->setAttr(flagged.getFastMathAttrName(),
                arith::FastMathFlagsAttr::get(op->getContext(), flags | arith::FastMathFlags::afn));
    ++count;
  });
  return count;
}
