//===- Builder.h - New values over a checked program -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients are made of the nodes that the checker makes: a checked program's own values and new
// ones stand in one equation. The nodes are for printing (Writer.h), so conversions between types
// that the language makes by itself are left out of new ones.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_GRAD_BUILDER_H
#define TEGULA_GRAD_BUILDER_H

#include "frontend/check/Checked.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include <memory>
#include <optional>
#include <string>

namespace tegula::grad {

using checked::Expr;
using checked::Tensor;
using checked::Var;

/// Why there is no gradient, and where in the program that stands.
struct Refusal {
  std::string reason;
  Span span;
};

struct Loop;

/// One step of a program without calls and blocks: target[subscripts] = value for all points of
/// `vars` where `guard` holds; or a loop.
struct Equation {
  const Tensor *target = nullptr;
  std::vector<const Var *> vars;
  std::vector<IndexExpr> subscripts;
  /// (dim, first member) of each subscript that is a group, as in checked::Expr.
  std::vector<std::pair<unsigned, IndexExpr>> groups;
  bool accumulate = false; // +=
  const Expr *guard = nullptr;
  const Expr *value = nullptr;
  Span span;
  bool isState = false; // `state target[...] = value`: a loop changes the target
  /// How many loops stand around the place where the target begins its life: behind deeper ones it
  /// is there for all steps.
  unsigned level = ~0u;
  std::shared_ptr<Loop> loop; // in place of all else but the span
};

/// A state of a loop, each value of which is a tensor of its own.
struct Carried {
  const Tensor *before = nullptr, *first = nullptr; // ahead of the loop, at the beginning of a step
  const Tensor *last = nullptr, *after = nullptr;   // at the end of a step, behind the loop
  const Tensor *history = nullptr; // if not null: the first values of all steps are kept there
};

/// Steps one after another.
struct Loop {
  const Var *var = nullptr;
  bool isReverse = false;
  unsigned depth = 1; // loops around its body
  /// Whether what the equation of the body defines is there behind the loop.
  bool isKept(const Equation &one) const { return one.level < depth; }
  std::vector<Equation> body;
  std::vector<Carried> states;
};

using VarSet = llvm::SmallSetVector<unsigned, 8>;
using Replacement = llvm::SmallDenseMap<unsigned, IndexExpr, 8>;

class Builder {
public:
  explicit Builder(checked::Program &program) : program(program) {}

  checked::Program &program;

  const Var *newAxis(llvm::StringRef name, const IndexExpr &lo, const IndexExpr &hi);
  const Tensor *newTensor(llvm::StringRef name, checked::DType type, std::vector<IndexExpr> dims,
                          Tensor::Kind kind = Tensor::Temp);

  const Expr *number(double value);
  const Expr *index(const IndexExpr &value);
  const Expr *unary(checked::Unary op, const Expr *value);
  const Expr *binary(checked::Binary op, const Expr *lhs, const Expr *rhs);
  const Expr *add(const Expr *lhs, const Expr *rhs);
  const Expr *sub(const Expr *lhs, const Expr *rhs);
  const Expr *mul(const Expr *lhs, const Expr *rhs);
  const Expr *div(const Expr *lhs, const Expr *rhs);
  const Expr *neg(const Expr *value);
  const Expr *compare(checked::Binary op, const Expr *lhs, const Expr *rhs);
  /// Null conditions hold.
  const Expr *both(const Expr *lhs, const Expr *rhs);
  const Expr *either(const Expr *lhs, const Expr *rhs);
  const Expr *negate(const Expr *condition);
  /// `value` where the condition holds, else 0.
  const Expr *select(const Expr *condition, const Expr *value);
  const Expr *where(const Expr *condition, const Expr *yes, const Expr *no);
  const Expr *read(const Tensor *tensor, llvm::ArrayRef<IndexExpr> subscripts);
  /// The whole tensor, element by element: target[axes] = value(axes).
  Equation equationOf(const Tensor *target,
                      llvm::function_ref<const Expr *(llvm::ArrayRef<IndexExpr>)> value);
  const Expr *reduce(checked::Reduction reduction, llvm::ArrayRef<const Var *> vars,
                     const Expr *value, const Expr *filter = nullptr);

  /// The value rounded to a float type.
  const Expr *rounded(const Expr *value, checked::DType type);

  Expr *make(Expr::Kind kind, checked::DType type);
  Expr *copy(const Expr *value);

  /// The value with other index expressions in place of vars. Vars that a reduction binds get
  /// ranges of their own where those change.
  const Expr *substitute(const Expr *value, const Replacement &replacement);
  IndexExpr substitute(const IndexExpr &index, const Replacement &replacement);

  /// The value with `replace(read)` in place of reads for which that is not null, also in
  /// subscripts from data.
  const Expr *replaceReads(const Expr *value,
                           llvm::function_ref<const Expr *(const Expr *)> replace);
  IndexExpr replaceReads(const IndexExpr &index,
                         llvm::function_ref<const Expr *(const Expr *)> replace);
  /// The same in an equation, or all equations of a loop.
  void replaceReads(Equation &equation, llvm::function_ref<const Expr *(const Expr *)> replace);

  /// One tensor in place of another, wherever equations define or read it.
  void renameTensor(std::vector<Equation> &equations, const Tensor *from, const Tensor *to);

  /// What becomes of an index: nothing for a variable that stays.
  struct IndexMap {
    llvm::function_ref<std::optional<IndexExpr>(unsigned id)> variable;
    llvm::function_ref<const Expr *(const Expr *)> data; // behind a variable
    llvm::function_ref<IndexExpr(const IndexExpr &)> bound;
  };
  IndexExpr mapIndex(const IndexExpr &index, const IndexMap &map);
  /// Replaces what a node is made of, but for bound vars and positions of scans. Whether anything
  /// is another.
  bool mapParts(Expr &made, llvm::function_ref<const Expr *(const Expr *)> part,
                llvm::function_ref<IndexExpr(const IndexExpr &)> index);
  /// The value with what `operand` says of each operand; the value itself where none changes, null
  /// where one is null.
  const Expr *withOperands(const Expr *value,
                           llvm::function_ref<const Expr *(const Expr *)> operand);

  /// Vars that the value depends on and does not bind itself; those behind data count.
  void freeVars(const Expr *value, VarSet &into) const;
  void freeVars(const IndexExpr &index, VarSet &into) const;
  /// Tensors that the value reads, also for a subscript or a range.
  void tensorsOf(const Expr *value, llvm::DenseSet<const Tensor *> &into) const;
  void tensorsOf(const Equation &equation, llvm::DenseSet<const Tensor *> &into) const;
  bool dependsOn(const Expr *value, unsigned var) const;
  bool usesData(const IndexExpr &index) const;

  const Var &var(unsigned id) const { return program.vars[id]; }

  /// Calls `visit` for the value's own parts, not for what a subscript takes from data.
  template <typename Visit> static void forParts(const Expr *value, Visit visit) {
    for (const Expr *operand : value->operands)
      visit(operand);
    for (const Expr *part : {value->fill, value->guard, value->filter})
      if (part)
        visit(part);
  }
};

bool isNumber(const Expr *value, double number);
/// The number of operations in the value, counted up to a bound.
unsigned weigh(const Expr *value, unsigned bound = 64);

} // namespace tegula::grad

#endif // TEGULA_GRAD_BUILDER_H
