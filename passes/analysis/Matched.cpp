//===- Matched.cpp - A match, or why there is none --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Matched.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tegula::tgl;

std::string tegula::namesOf(llvm::ArrayRef<BlockArgument> axes) {
  llvm::SmallVector<std::string> names;
  for (BlockArgument axis : axes) {
    Operation *owner = axis.getOwner()->getParentOp();
    llvm::StringRef name;
    if (auto nest = llvm::dyn_cast<AxesOp>(owner))
      name = getAxisName(nest, axis.getArgNumber());
    names.push_back(name.empty() ? "axis " + std::to_string(axis.getArgNumber()) : name.str());
  }
  return llvm::join(names, ", ");
}

static std::string over(AxesOp op) {
  llvm::SmallVector<BlockArgument> axes;
  for (Value axis : op.getAxes())
    axes.push_back(llvm::cast<BlockArgument>(axis));
  return axes.empty() ? std::string() : " over " + tegula::namesOf(axes);
}

std::string tegula::describe(Operation *op) {
  if (auto reduce = llvm::dyn_cast<ReduceOp>(op))
    return "the " + stringifyReduceKind(reduce.getKind()).str() + over(llvm::cast<AxesOp>(op));
  if (auto nest = llvm::dyn_cast<AxesOp>(op))
    return "the statement" + over(nest);
  if (llvm::isa<TilesOp>(op))
    return "the tile loop";
  if (llvm::isa<ForOp>(op))
    return "the loop";
  if (auto read = llvm::dyn_cast<ReadOp>(op))
    return "the read of " + describeTensor(read.getTensor());
  if (auto write = llvm::dyn_cast<WriteOp>(op))
    return "the write of " + describeTensor(write.getTensor());
  if (auto temp = llvm::dyn_cast<TempOp>(op))
    return "the tensor " + describeTensor(temp.getTensor());
  if (llvm::isa<SortOp>(op))
    return "the sort";
  return "the operation '" + op->getName().getStringRef().str() + "'";
}

std::string tegula::describeTensor(Value tensor) {
  if (auto temp = tensor.getDefiningOp<TempOp>())
    return "'" + temp.getName().str() + "'";
  auto argument = llvm::dyn_cast<BlockArgument>(tensor);
  auto kernel =
      argument ? llvm::dyn_cast<KernelOp>(argument.getOwner()->getParentOp()) : KernelOp();
  return kernel ? "'" + kernel.getArgName(argument.getArgNumber()).str() + "'" : "a tensor";
}

void tegula::remarkMismatch(Operation *launch, llvm::StringRef strategy, const Mismatch &mismatch) {
  Location location = mismatch.where ? mismatch.where->getLoc() : launch->getLoc();
  auto name = launch->getAttrOfType<StringAttr>("name");
  remark::missed(
      location,
      remark::RemarkOpts::name("mismatch").category(strategy).function(name ? name.getValue() : ""))
      << remark::detail::Remark::Arg("Reason", mismatch.reason)
      << remark::detail::Remark::Arg("Edit", mismatch.edit)
      << remark::detail::Remark::Arg("Other", mismatch.isOther);
}
