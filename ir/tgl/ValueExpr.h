//===- ValueExpr.h - Integer expressions over SSA values ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inside an op, an IndexExpr counts operands (`d0`). Outside, a ValueExpr names values, so that
// expressions of different ops can be combined and substituted without counting.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGL_VALUEEXPR_H
#define TEGULA_IR_TGL_VALUEEXPR_H

#include "mlir/IR/Value.h"
#include "mlir/IR/ValueRange.h"
#include "symbolic/IndexExpr.h"
#include <string>

namespace tegula::tgl {

/// `expr`, in which `d<n>` stands for `operands[n]` (of type index). Operands are distinct and each
/// is used. Implicitly made from a value, a constant or a size.
class ValueExpr {
public:
  ValueExpr() = default;
  ValueExpr(mlir::Value value) : indexExpr(IndexExpr::dim(0)), values({value}) {}
  ValueExpr(int64_t constant) : indexExpr(constant) {}
  /// A size: `size` has no dims.
  ValueExpr(const IndexExpr &size) : ValueExpr(size, mlir::ValueRange()) {}
  /// Renumbers: repeated values become one dim, unused ones go.
  ValueExpr(const IndexExpr &expr, mlir::ValueRange operands);
  ValueExpr(const IndexExpr &expr, llvm::function_ref<mlir::Value(unsigned)> valueOf);

  const IndexExpr &expr() const { return indexExpr; }
  llvm::ArrayRef<mlir::Value> operands() const { return values; }

  friend ValueExpr operator+(const ValueExpr &lhs, const ValueExpr &rhs);
  friend ValueExpr operator-(const ValueExpr &lhs, const ValueExpr &rhs);
  friend ValueExpr operator*(const ValueExpr &lhs, const ValueExpr &rhs);
  static ValueExpr floorDiv(const ValueExpr &lhs, const ValueExpr &rhs);
  static ValueExpr mod(const ValueExpr &lhs, const ValueExpr &rhs);
  static ValueExpr min(const ValueExpr &lhs, const ValueExpr &rhs);
  static ValueExpr max(const ValueExpr &lhs, const ValueExpr &rhs);
  /// Equal as polynomials over the same values (whatever their order).
  bool operator==(const ValueExpr &other) const;

  std::optional<int64_t> asConstant() const { return indexExpr.asConstant(); }
  /// The value when the expression is exactly one value.
  mlir::Value asValue() const;
  bool uses(mlir::Value value) const { return llvm::is_contained(values, value); }

  /// Every operand for which `replacement` gives an expression is replaced, simultaneously.
  ValueExpr substitute(llvm::function_ref<std::optional<ValueExpr>(mlir::Value)> replacement) const;
  ValueExpr substitute(mlir::Value value, const ValueExpr &replacement) const;
  /// Every size symbol for which `replacement` gives an expression is replaced.
  ValueExpr
  substituteSizes(llvm::function_ref<std::optional<IndexExpr>(llvm::StringRef)> replacement) const;

private:
  IndexExpr indexExpr;
  llvm::SmallVector<mlir::Value, 2> values;
};

/// The `indices` of an op under construction: a list of distinct values and, with `add`, the
/// expressions over them.
class IndexOperands {
public:
  IndexOperands() = default;
  /// Starts from the operands that an op has.
  explicit IndexOperands(mlir::ValueRange values) : list(values.begin(), values.end()) {}
  unsigned dimOf(mlir::Value value);
  IndexExpr add(const ValueExpr &expr);
  llvm::ArrayRef<mlir::Value> values() const { return list; }

private:
  llvm::SmallVector<mlir::Value> list;
};

/// One axis of an op to be built: `lo <= axis < hi`.
struct AxisSpec {
  std::string name;
  ValueExpr lo;
  ValueExpr hi;
};

} // namespace tegula::tgl

#endif // TEGULA_IR_TGL_VALUEEXPR_H
