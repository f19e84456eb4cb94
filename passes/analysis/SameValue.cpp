//===- SameValue.cpp - Compares computations over different axes ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/SameValue.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// Names and mappings say nothing about values.
static bool isValueAttr(NamedAttribute attr) {
  return attr.getName() != "names" && attr.getName() != "mapping";
}

static bool sameAttrs(Operation *a, Operation *b) {
  auto first = llvm::make_filter_range(a->getAttrDictionary(), isValueAttr);
  auto second = llvm::make_filter_range(b->getAttrDictionary(), isValueAttr);
  return std::equal(first.begin(), first.end(), second.begin(), second.end());
}

bool tegula::makesMemory(Operation *op) { return hasEffect<MemoryEffects::Allocate>(op); }

bool SameValue::equal(Value a, Value b) {
  if (a.getType() != b.getType())
    return false;
  if (Value known = counterpart.lookup(a))
    return known == b;
  if (Operation *def = a.getDefiningOp()) {
    if (a == b)
      return true;
    Operation *other = b.getDefiningOp();
    if (!other || cast<OpResult>(a).getResultNumber() != cast<OpResult>(b).getResultNumber() ||
        makesMemory(def))
      return false;
    // Outside of the statements nobody looks at what is written between two reads.
    bool isInside = first->isAncestor(def) && second->isAncestor(other);
    return (isInside || isMemoryEffectFree(def)) && equal(def, other);
  }
  // An axis from outside both statements is the same only if it is the same.
  AxesOp left = axesOpOf(a), right = axesOpOf(b);
  if (!left || !right || !first->isAncestor(left) || !second->isAncestor(right))
    return a == b && (!left || !first->isAncestor(left));
  for (auto [known, image] : counterpart)
    if (image == b)
      return false;
  counterpart[a] = b;
  auto sameBound = [&](const ValueExpr &x, const ValueExpr &y) {
    return x.expr() == y.expr() && llvm::all_of_zip(x.operands(), y.operands(),
                                                    [&](Value l, Value r) { return equal(l, r); });
  };
  if (sameBound(lowOf(a), lowOf(b)) && sameBound(highOf(a), highOf(b)))
    return true;
  counterpart.erase(a);
  return false;
}

bool SameValue::equal(Operation *a, Operation *b) {
  if (a == b && !a->getNumRegions() && !a->getNumOperands())
    return true;
  if (a->getName() != b->getName() || a->getNumOperands() != b->getNumOperands() ||
      a->getNumRegions() != b->getNumRegions() || a->getResultTypes() != b->getResultTypes() ||
      !sameAttrs(a, b))
    return false;
  for (auto [x, y] : llvm::zip_equal(a->getOperands(), b->getOperands()))
    if (!equal(x, y))
      return false;
  for (auto [x, y] : llvm::zip_equal(a->getRegions(), b->getRegions())) {
    if (!x.hasOneBlock() || !y.hasOneBlock())
      return false;
    Block &left = x.front(), &right = y.front();
    if (left.getNumArguments() != right.getNumArguments() ||
        left.getOperations().size() != right.getOperations().size())
      return false;
    for (auto [l, r] : llvm::zip_equal(left.getArguments(), right.getArguments())) {
      if (l.getType() != r.getType())
        return false;
      counterpart[l] = r;
    }
    for (auto [l, r] : llvm::zip_equal(left, right)) {
      if (!equal(&l, &r))
        return false;
      for (auto [m, n] : llvm::zip_equal(l.getResults(), r.getResults()))
        counterpart[m] = n;
    }
  }
  if (!b->getNumRegions()) // else each op inside
    read.insert_range(accessesOf(b).reads);
  return true;
}

bool tegula::sameTerms(ReduceOp first, Value a, ReduceOp second, Value b) {
  if (first.getAxes().size() != second.getAxes().size())
    return false;
  SameValue same(first, second);
  for (auto [left, right] : llvm::zip_equal(first.getAxes(), second.getAxes()))
    same.assume(left, right);
  auto isEqual = [&](const ValueExpr &left, const ValueExpr &right) {
    return left.expr() == right.expr() &&
           llvm::all_of_zip(left.operands(), right.operands(),
                            [&](Value x, Value y) { return same.equal(x, y); });
  };
  for (auto [left, right] : llvm::zip_equal(first.getAxes(), second.getAxes()))
    if (!isEqual(lowOf(left), lowOf(right)) || !isEqual(highOf(left), highOf(right)))
      return false;
  return same.equal(a, b);
}

/// What equal ops have in common without a look at their operands.
static llvm::hash_code hashOfKind(Operation *op) {
  llvm::hash_code hash = llvm::hash_combine(op->getName().getTypeID(), op->getNumOperands());
  for (NamedAttribute attr : llvm::make_filter_range(op->getAttrDictionary(), isValueAttr))
    hash = llvm::hash_combine(hash, attr.getName(), attr.getValue());
  return hash;
}

llvm::hash_code tegula::hashOfStructure(Operation *op) {
  llvm::hash_code hash = hashOfKind(op);
  // Constants may stand outside.
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp(); def && def->hasTrait<OpTrait::ConstantLike>())
      hash = llvm::hash_combine(hash, hashOfKind(def));
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Operation &nested : block)
        hash = llvm::hash_combine(hash, hashOfStructure(&nested));
  return hash;
}
