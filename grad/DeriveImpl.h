//===- DeriveImpl.h - The state of reverse mode ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal to Derive.cpp (equations and adjoints), DeriveLoop.cpp (loops), DeriveValue.cpp (values
// of elements) and DeriveReduction.cpp (reductions and scans).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_GRAD_DERIVEIMPL_H
#define TEGULA_GRAD_DERIVEIMPL_H

#include "grad/Derive.h"
#include "grad/Solve.h"
#include <map>

namespace tegula::grad {

/// What is known of the adjoint of one tensor.
struct Adjoint {
  std::vector<Contribution> contributions;
  const Tensor *seed = nullptr; // an output's, given
  bool isFinal = false;
  const Tensor *tensor = nullptr; // final: where its elements stand
  /// Final, in place of a tensor: the element at these axes.
  llvm::SmallVector<const Var *> axes;
  const Expr *formula = nullptr;
  /// Elements may be 0 because a condition left them out: nothing flows from there.
  bool isMasked = false;
};

/// What is known while the steps of a loop are gone through.
struct StepScope {
  llvm::DenseSet<const Tensor *> own; // values of one step
  /// What flows to other tensors.
  llvm::MapVector<const Tensor *, std::vector<Contribution>> elsewhere;
  /// The states in which that adds up over all steps, of tensors that are no step's around either.
  struct Sum {
    const Tensor *state = nullptr;
    bool isMasked = false;
  };
  llvm::MapVector<const Tensor *, Sum> sums;
  StepScope *outer = nullptr;
};

/// Calls `visit` for the equations of `body`, a part of the loop's, that define what is there
/// behind the loop.
void forKept(const Loop &loop, llvm::ArrayRef<Equation> body,
             llvm::function_ref<void(const Equation &)> visit);

class Deriver {
public:
  Deriver(Builder &builder, std::vector<Equation> equations, SavedOutputs save, Refusal &refusal)
      : b(builder), equations(std::move(equations)), save(save), refusal(refusal) {}
  std::optional<Derivation> run(llvm::ArrayRef<const Tensor *> wrt, bool keepsZeros);

private:
  bool refuse(Span span, const llvm::Twine &reason);
  void findActive(llvm::ArrayRef<Equation> from);
  bool isActive(const Expr *value);

  // Derive.cpp: equations and adjoints.
  bool canBeInfinite(const Expr *value) const;
  bool readsInfinite(const Expr *value) const;
  void findInfinite(llvm::ArrayRef<Equation> from);
  void findChanged(llvm::ArrayRef<Equation> from);
  bool reverse(const Equation &equation);
  Adjoint *finish(const Tensor *tensor);
  void emitAdjoint(const Tensor *tensor, Adjoint &adjoint);
  void emitInto(const Tensor *target, std::vector<Contribution> &contributions,
                bool isFirst = true);
  const Expr *adjointAt(const Adjoint &adjoint, llvm::ArrayRef<IndexExpr> subscripts);
  bool contribute(const Expr *read, const Expr *adjoint, const Expr *condition,
                  llvm::ArrayRef<const Var *> domain, unsigned outer);
  bool isReduced(const Tensor *tensor) const;
  void keepNeeded(Derivation &result);

  // DeriveLoop.cpp.
  bool reverseLoop(const Equation &equation);
  bool hasAdjoint(const Loop &loop);
  Contribution wholeOf(const Tensor *tensor, bool isMasked);
  void beginState(const Tensor *state, const Adjoint *from);
  void addUp(StepScope &scope);
  /// Loops as they are written, with their states, and with the states' histories where asked for.
  void spell(llvm::ArrayRef<Equation> from, std::vector<Equation> &into, bool withHistory,
             const Loop *inStepOf = nullptr);
  void spellLoop(const Equation &equation, std::vector<Equation> &into, bool withHistory,
                 const Loop *inStepOf);

  // DeriveValue.cpp.
  /// Lets the adjoint `g` of `value` flow down to what it reads.
  bool descend(const Expr *value, const Expr *g, const Expr *condition,
               llvm::ArrayRef<const Var *> domain, unsigned outer);
  const Expr *valueOf(const Expr *node);
  /// The value as a read of a new temporary over its own indices, where they form a box.
  const Expr *store(const Expr *value, llvm::StringRef name, const Expr *condition = nullptr);

  // DeriveReduction.cpp.
  bool reverseReduction(const Equation &equation, const Expr *g, const Expr *condition);
  bool reverseScan(const Equation &equation, const Adjoint &adjoint);
  const Expr *dotByResult(const Equation &softmax);
  bool flowToPlaces(const Equation &equation, const Expr *place, const Expr *g);
  const Expr *pointsOf(const Expr *reduction);

  Builder &b;
  std::vector<Equation> equations;
  SavedOutputs save;
  Refusal &refusal;
  llvm::DenseSet<const Tensor *> active, wanted;
  llvm::DenseSet<const Tensor *> infinite; // those whose elements can be infinite or no number
  llvm::DenseSet<const Tensor *> changed;  // those that an equation adds to
  llvm::DenseMap<const Expr *, bool> activity;
  std::map<const Tensor *, Adjoint> adjoints;        // entries stay where they are
  llvm::DenseMap<const Expr *, const Expr *> stored; // values by node
  std::vector<Equation> backward;
  StepScope *steps = nullptr; // of the loop that is being reversed
  std::vector<const Tensor *> seeds;
  llvm::DenseMap<const Tensor *, const Tensor *> gradients; // of `wrt`
  bool isReversedMasked = false; // the adjoint of the equation that is being reversed
};

} // namespace tegula::grad

#endif // TEGULA_GRAD_DERIVEIMPL_H
