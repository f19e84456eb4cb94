//===- Privatize.cpp - Makes temporaries private to a nest ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/Access.h"
#include "passes/fuse/InlineProducers.h"
#include "passes/fuse/MergeNests.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// The `parallel` of the temporary's block that holds all its users, or null.
static ParallelOp onlyUser(TempOp temp) {
  ParallelOp nest;
  for (Operation *user : temp->getUsers()) {
    Operation *statement = user;
    while (statement && statement->getBlock() != temp->getBlock())
      statement = statement->getParentOp();
    auto parallel = dyn_cast_or_null<ParallelOp>(statement);
    if (!parallel || (nest && nest != parallel))
      return nullptr;
    nest = parallel;
  }
  return nest;
}

/// For each axis of the nest, a dim that is a digit of the axis in every access, with its weight.
/// Lower digits of a dim are found in what the higher ones leave; `kept` becomes what all of them
/// leave of the dims.
static bool findDims(ParallelOp nest, ArrayRef<Access> accesses, Prover &prover,
                     SmallVectorImpl<std::pair<unsigned, IndexExpr>> &dims,
                     MutableArrayRef<std::optional<IndexExpr>> kept) {
  unsigned rank = accesses.front().subscripts.size();
  SmallVector<SmallVector<std::optional<ValueExpr>>> left;
  for (const Access &access : accesses)
    left.emplace_back(access.subscripts);
  auto findDim = [&](Value axis) -> std::optional<std::pair<unsigned, IndexExpr>> {
    for (unsigned dim = 0; dim < rank; ++dim) {
      std::optional<IndexExpr> weight;
      bool all = kept[dim] && llvm::all_of(llvm::enumerate(accesses), [&](const auto &each) {
                   const std::optional<ValueExpr> &subscript = left[each.index()][dim];
                   if (!subscript)
                     return false;
                   std::optional<IndexExpr> digit =
                       digitOf(*subscript, axis, each.value().op, prover);
                   if (!digit || (weight && *weight != *digit))
                     return false;
                   weight = digit;
                   // Alone in the dim it may have an offset, the same in all accesses.
                   return *digit != IndexExpr(1) ||
                          *subscript - ValueExpr(axis) == *left.front()[dim] - ValueExpr(axis);
                 });
      if (all)
        return std::pair(dim, *weight);
    }
    return std::nullopt;
  };
  SmallVector<std::optional<std::pair<unsigned, IndexExpr>>> found(nest.getAxes().size());
  for (bool isNew = true; isNew;) {
    isNew = false;
    for (auto [number, axis] : llvm::enumerate(nest.getAxes())) {
      if (found[number] || !(found[number] = findDim(axis)))
        continue;
      isNew = true;
      auto [dim, weight] = *found[number];
      kept[dim] = weight == IndexExpr(1) ? std::nullopt : std::optional(weight);
      for (auto &subscripts : left)
        subscripts[dim] = *subscripts[dim] - ValueExpr(weight) * ValueExpr(Value(axis));
    }
  }
  for (auto &each : found) {
    if (!each)
      return false;
    dims.push_back(*each);
  }
  return true;
}

/// Accesses that may leave the tensor read its dims: they cannot lose one.
static bool isPlain(Operation *op) {
  if (auto read = dyn_cast<ReadOp>(op))
    return !read.getFill() && !read.getChecked() && read.getExactNumerators().empty();
  if (auto write = dyn_cast<WriteOp>(op))
    return !write.getChecked();
  return true;
}

/// The temporary and those that are sorted with it: they share their subscripts.
static SmallVector<TempOp> sortedTogether(TempOp temp) {
  SmallVector<TempOp> group{temp};
  for (size_t next = 0; next < group.size(); ++next)
    for (Operation *user : group[next]->getUsers())
      if (auto sort = dyn_cast<SortOp>(user))
        for (Value tensor : {sort.getValues(), sort.getPositions()})
          if (auto other = tensor.getDefiningOp<TempOp>();
              other && !llvm::is_contained(group, other))
            group.push_back(other);
  return group;
}

/// Moves temporaries of one shape into the nest, without the dims that the nest's axes decide.
static bool privatize(ArrayRef<TempOp> temps, ParallelOp nest, Prover &prover) {
  SmallVector<Access> accesses;
  for (Access &access : accessesIn(nest))
    if (llvm::any_of(temps, [&](TempOp temp) { return temp->getResult(0) == access.tensor; }))
      accesses.push_back(access);
  if (accesses.empty() ||
      !llvm::all_of(accesses, [](const Access &access) { return isPlain(access.op); }))
    return false;
  TglTensorType type = TempOp(temps.front()).getType();
  SmallVector<std::optional<IndexExpr>> kept;
  for (IndexExprAttr dim : type.getDims())
    kept.push_back(dim.getExpr());
  SmallVector<std::pair<unsigned, IndexExpr>> dims;
  if (!findDims(nest, accesses, prover, dims, kept))
    return false;
  SmallVector<IndexExprAttr> newDims;
  for (const std::optional<IndexExpr> &dim : kept)
    if (dim)
      newDims.push_back(IndexExprAttr::get(nest.getContext(), *dim));
  DenseSet<Operation *> done; // a sort is an access to both its tensors
  for (const Access &access : accesses) {
    if (!done.insert(access.op).second)
      continue;
    SmallVector<ValueExpr> subscripts;
    for (unsigned dim = 0; dim < type.getRank(); ++dim) {
      if (!kept[dim] || !access.subscripts[dim]) // the row of a sort has no subscript
        continue;
      ValueExpr subscript = *access.subscripts[dim];
      for (auto [axis, digit] : llvm::zip_equal(nest.getAxes(), dims))
        if (digit.first == dim)
          subscript = subscript - ValueExpr(digit.second) * ValueExpr(axis);
      subscripts.push_back(subscript);
    }
    setSubscripts(access.op, subscripts);
  }
  OpBuilder builder = OpBuilder::atBlockBegin(&nest.getBody().front());
  for (TempOp temp : temps) {
    auto newType = TglTensorType::get(nest.getContext(), newDims, temp.getType().getElementType());
    auto inner = TempOp::create(builder, temp.getLoc(), newType, temp.getName());
    temp.getTensor().replaceAllUsesWith(inner.getTensor());
    temp.erase();
  }
  return true;
}

/// The last of the writes, all of one block and in its order, that is done before `op` is reached.
/// Null where there is none.
static WriteOp lastBefore(ArrayRef<WriteOp> writes, Operation *op) {
  Operation *ancestor = WriteOp(writes.front())->getBlock()->findAncestorOpInBlock(*op);
  WriteOp last;
  for (WriteOp write : writes)
    if (ancestor && write->isBeforeInBlock(ancestor))
      last = write;
  return last;
}

bool tegula::forwardTemp(TempOp temp) {
  // Axes of one point that were dropped leave dims of one.
  if (!llvm::all_of(temp.getType().getDims(),
                    [](IndexExprAttr dim) { return dim.getExpr().asConstant() == 1; }))
    return false;
  SmallVector<WriteOp> writes;
  SmallVector<ReadOp> reads;
  for (Operation *user : temp->getUsers()) {
    if (auto read = dyn_cast<ReadOp>(user)) {
      reads.push_back(read);
    } else if (auto write = dyn_cast<WriteOp>(user)) {
      if (write.getCombine() || write.getGuard() || write->getBlock() != temp->getBlock())
        return false;
      writes.push_back(write);
    } else {
      return false;
    }
  }
  if (writes.empty())
    return false;
  llvm::sort(writes, [](WriteOp a, WriteOp b) { return a->isBeforeInBlock(b); });
  for (ReadOp read : reads) {
    WriteOp write = lastBefore(writes, read);
    if (!write)
      return false;
    if (temp.getType().getRank() &&
        !(isPlain(read) && llvm::equal(read.getSubscriptExprs(), write.getSubscriptExprs())))
      return false;
  }
  DenseMap<Operation *, Value> rounded;
  for (ReadOp read : reads) {
    WriteOp write = lastBefore(writes, read);
    OpBuilder builder(write);
    Value &value = rounded[write];
    if (!value)
      value = roundToStorage(builder, write.getLoc(), write.getValue(),
                             temp.getType().getElementType());
    Value result = value;
    if (read.getGuard()) {
      OpBuilder here(read);
      Value zero =
          arith::ConstantOp::create(here, read.getLoc(), here.getZeroAttr(result.getType()));
      result = arith::SelectOp::create(here, read.getLoc(), read.getGuard(), result, zero);
    }
    read.replaceAllUsesWith(result);
    read.erase();
  }
  for (WriteOp write : writes)
    write.erase();
  temp.erase();
  return true;
}

/// Replaces reads of the element that a point of the nest has written by the value, where the
/// temporary stays since others read it too. Returns how many.
static unsigned forwardWrites(ParallelOp nest) {
  unsigned forwarded = 0;
  Block &body = nest.getBody().front();
  for (WriteOp write : body.getOps<WriteOp>()) {
    auto temp = write.getTensor().getDefiningOp<TempOp>();
    if (!temp || write.getCombine() || write.getGuard() || write.getChecked())
      continue;
    SmallVector<ReadOp> reads;
    bool isOnlyWrite = llvm::all_of(temp->getUsers(), [&](Operation *user) {
      return user == write || !nest->isProperAncestor(user) || isa<ReadOp>(user);
    });
    for (Operation *user : temp->getUsers()) {
      auto read = dyn_cast<ReadOp>(user);
      Operation *ancestor = read ? body.findAncestorOpInBlock(*read) : nullptr;
      if (ancestor && write->isBeforeInBlock(ancestor) && isPlain(read) && !read.getGuard() &&
          llvm::equal(read.getSubscriptExprs(), write.getSubscriptExprs()))
        reads.push_back(read);
    }
    if (!isOnlyWrite || reads.empty())
      continue;
    OpBuilder builder(write);
    Value value =
        roundToStorage(builder, write.getLoc(), write.getValue(), temp.getType().getElementType());
    for (ReadOp read : reads) {
      read.replaceAllUsesWith(value);
      read.erase();
      ++forwarded;
    }
  }
  return forwarded;
}

PrivatizeCounts tegula::privatizeTemps(Block &block, Prover &prover) {
  PrivatizeCounts counts;
  SmallVector<TempOp> temps(block.getOps<TempOp>());
  DenseSet<Operation *> done;
  for (TempOp temp : temps) {
    if (done.contains(temp))
      continue;
    SmallVector<TempOp> group = sortedTogether(temp);
    done.insert(group.begin(), group.end());
    ParallelOp nest = onlyUser(temp);
    if (nest && llvm::all_of(group, [&](TempOp other) { return onlyUser(other) == nest; }) &&
        privatize(group, nest, prover))
      counts.privatized += group.size();
  }
  for (Operation &op : block)
    if (auto nest = dyn_cast<ParallelOp>(op)) {
      SmallVector<TempOp> inner(nest.getBody().front().getOps<TempOp>());
      for (TempOp temp : inner)
        counts.forwarded += forwardTemp(temp);
      counts.forwarded += forwardWrites(nest);
    }
  return counts;
}
