//===- ValueExpr.cpp - Integer expressions over SSA values -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/ValueExpr.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

unsigned IndexOperands::dimOf(Value value) {
  auto *found = llvm::find(list, value);
  if (found == list.end()) {
    list.push_back(value);
    return list.size() - 1;
  }
  return found - list.begin();
}

IndexExpr IndexOperands::add(const ValueExpr &expr) {
  llvm::SmallVector<unsigned> dims;
  for (Value value : expr.operands())
    dims.push_back(dimOf(value));
  if (llvm::equal(dims, llvm::seq<unsigned>(0, dims.size())))
    return expr.expr();
  return expr.expr().substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    if (var.isSymbol())
      return std::nullopt;
    assert(var.position() < dims.size() && "a dim without an operand");
    return IndexExpr::dim(dims[var.position()]);
  });
}

ValueExpr::ValueExpr(const IndexExpr &expr, llvm::function_ref<Value(unsigned)> valueOf) {
  for (const IndexVar &var : expr.variables()) {
    if (var.isSymbol())
      continue;
    Value value = valueOf(var.position());
    assert(value && "a dim without a value");
    if (!llvm::is_contained(values, value))
      values.push_back(value);
  }
  indexExpr = expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    if (var.isSymbol())
      return std::nullopt;
    return IndexExpr::dim(llvm::find(values, valueOf(var.position())) - values.begin());
  });
  // Values that cancelled against each other (`a - b` of one value) are not operands.
  if (llvm::count_if(indexExpr.variables(), [](const IndexVar &v) { return !v.isSymbol(); }) !=
      long(values.size())) {
    llvm::SmallVector<Value, 2> all = std::move(values);
    *this = ValueExpr(indexExpr, [&](unsigned position) { return all[position]; });
  }
}

ValueExpr::ValueExpr(const IndexExpr &expr, ValueRange operands)
    : ValueExpr(expr, [&](unsigned position) { return operands[position]; }) {}

using Combine = llvm::function_ref<IndexExpr(const IndexExpr &, const IndexExpr &)>;
static ValueExpr combine(const ValueExpr &lhs, const ValueExpr &rhs, Combine fn) {
  IndexOperands operands;
  IndexExpr left = operands.add(lhs), right = operands.add(rhs);
  return ValueExpr(fn(left, right), operands.values());
}

namespace tegula::tgl {
ValueExpr operator+(const ValueExpr &lhs, const ValueExpr &rhs) {
  return combine(lhs, rhs, [](const IndexExpr &a, const IndexExpr &b) { return a + b; });
}
ValueExpr operator-(const ValueExpr &lhs, const ValueExpr &rhs) {
  return combine(lhs, rhs, [](const IndexExpr &a, const IndexExpr &b) { return a - b; });
}
ValueExpr operator*(const ValueExpr &lhs, const ValueExpr &rhs) {
  return combine(lhs, rhs, [](const IndexExpr &a, const IndexExpr &b) { return a * b; });
}
} // namespace tegula::tgl

ValueExpr ValueExpr::floorDiv(const ValueExpr &lhs, const ValueExpr &rhs) {
  return combine(lhs, rhs, &IndexExpr::floorDiv);
}
ValueExpr ValueExpr::mod(const ValueExpr &lhs, const ValueExpr &rhs) {
  return combine(lhs, rhs, &IndexExpr::mod);
}
ValueExpr ValueExpr::min(const ValueExpr &lhs, const ValueExpr &rhs) {
  return combine(lhs, rhs, &IndexExpr::min);
}
ValueExpr ValueExpr::max(const ValueExpr &lhs, const ValueExpr &rhs) {
  return combine(lhs, rhs, &IndexExpr::max);
}

bool ValueExpr::operator==(const ValueExpr &other) const {
  if (values.size() != other.values.size())
    return false;
  IndexOperands operands;
  return operands.add(*this) == operands.add(other);
}

Value ValueExpr::asValue() const {
  std::optional<IndexVar> var = indexExpr.asVariable();
  return var && !var->isSymbol() ? values[var->position()] : Value();
}

ValueExpr
ValueExpr::substitute(llvm::function_ref<std::optional<ValueExpr>(Value)> replacement) const {
  IndexOperands operands;
  llvm::SmallVector<IndexExpr> replaced;
  for (Value value : values) {
    std::optional<ValueExpr> found = replacement(value);
    replaced.push_back(operands.add(found ? *found : ValueExpr(value)));
  }
  IndexExpr result = indexExpr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    if (var.isSymbol())
      return std::nullopt;
    return replaced[var.position()];
  });
  return ValueExpr(result, operands.values());
}

ValueExpr ValueExpr::substitute(Value value, const ValueExpr &replacement) const {
  return substitute([&](Value operand) -> std::optional<ValueExpr> {
    if (operand != value)
      return std::nullopt;
    return replacement;
  });
}

ValueExpr ValueExpr::substituteSizes(
    llvm::function_ref<std::optional<IndexExpr>(llvm::StringRef)> replacement) const {
  IndexExpr result = indexExpr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    if (!var.isSymbol())
      return std::nullopt;
    return replacement(var.name());
  });
  return ValueExpr(result, values);
}
