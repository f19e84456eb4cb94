//===- Spread.cpp - What follows from values --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Evaluate.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;

namespace {
/// Adds to a set of values what one operation hands on.
class Spreader {
public:
  explicit Spreader(ValueSet &set) : set(set) {}

  bool visit(Operation *op) {
    hasGrown = false;
    if (auto call = dyn_cast<tgl::CallOp>(op))
      visitCall(call);
    else if (auto write = dyn_cast<tgl::WriteOp>(op))
      addIf(llvm::any_of(op->getOperands(), [&](Value value) { return has(value); }),
            write.getTensor());
    else if (auto sort = dyn_cast<tgl::SortOp>(op))
      addIf(has(sort.getValues()), sort.getPositions());
    else if (auto loop = dyn_cast<tgl::ForOp>(op))
      visitLoop(loop);
    else if (auto loop = dyn_cast<tgl::TilesOp>(op))
      visitLoop(loop);
    if (isa<tgl::YieldOp>(op) && !isa<tgl::ForOp, tgl::TilesOp>(op->getParentOp()))
      for (Value operand : op->getOperands())
        for (Value result : op->getParentOp()->getResults())
          addIf(has(operand), result);
    if (llvm::any_of(op->getOperands(), [&](Value value) { return has(value); }))
      for (Value result : op->getResults())
        addIf(true, result);
    return hasGrown;
  }

private:
  bool has(Value value) const { return set.contains(value); }
  void addIf(bool is, Value value) { hasGrown |= is && set.insert(value).second; }

  void visitCall(tgl::CallOp call) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<tgl::KernelOp>(call, call.getCalleeAttr());
    if (!callee)
      return;
    for (auto [parameter, argument] :
         llvm::zip_equal(callee.getBody().getArguments(), call.getArgs())) {
      addIf(has(argument), parameter);
      addIf(has(parameter) && isa<tgl::TglTensorType>(argument.getType()), argument);
    }
  }

  template <typename Op> void visitLoop(Op loop) {
    for (auto [init, value, argument, result] : llvm::zip_equal(
             loop.getInits(), loop.getYield().getValues(), loop.getIterArgs(), loop.getResults())) {
      addIf(has(init) || has(value), argument);
      addIf(has(argument), result);
    }
  }

  ValueSet &set;
  bool hasGrown = false;
};
} // namespace

ValueSet tegula::prove::spread(ModuleOp module, ValueSet from) {
  Spreader spreader(from);
  for (bool hasGrown = true; hasGrown;) {
    hasGrown = false;
    module.walk([&](Operation *op) { hasGrown |= spreader.visit(op); });
  }
  return from;
}
