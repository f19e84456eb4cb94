//===- SimplifyAccesses.cpp - Canonical subscripts and bounds ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/Matchers.h"
#include "passes/Passes.h"
#include "passes/analysis/Conditions.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SIMPLIFYACCESSESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Whether ranges could make the expression simpler: sums of products of variables are canonical.
static bool hasDecisions(const IndexExpr &expr) {
  return llvm::any_of(expr.terms(), [](const IndexExpr::Term &term) {
    return llvm::any_of(term.factors, [](const auto &factor) {
      return factor.first->kind != IndexExpr::AtomKind::Variable;
    });
  });
}

/// The subscripts of a read or write: it stays inside the axes that they use.
static SmallVector<ValueExpr> subscriptsOf(Operation *access) {
  if (auto read = dyn_cast<ReadOp>(access)) {
    SmallVector<ValueExpr> exprs = read.getSubscriptExprs();
    for (const auto &[numerator, denominator] : read.getExactExprs())
      exprs.append({numerator, denominator});
    return exprs;
  }
  return cast<WriteOp>(access).getSubscriptExprs();
}

/// Whether a read or write happens only where the condition holds.
static bool guardsAccess(Value condition) {
  return llvm::any_of(condition.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto read = dyn_cast<ReadOp>(user))
      return read.getGuard() == use.get();
    if (auto write = dyn_cast<WriteOp>(user))
      return write.getGuard() == use.get();
    return isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::SelectOp>(user) &&
           user->getResult(0).getType().isInteger(1) && guardsAccess(user->getResult(0));
  });
}

/// True or false where the ranges around `place` decide a comparison.
static std::optional<bool> decide(const Comparison &comparison, AxisScope &scope) {
  if (mayWrap(comparison.expr))
    return std::nullopt;
  if (scope.proves(comparison.inDims(scope)))
    return true;
  if (scope.proves(comparison.negated().inDims(scope)))
    return false;
  return std::nullopt;
}

namespace {
struct SimplifyAccessesPass
    : Counted<tegula::impl::SimplifyAccessesPassBase<SimplifyAccessesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    if (onlyFold) {
      getOperation().walk<WalkOrder::PreOrder>([&](IndexedOp op) {
        if (llvm::any_of(op.getIndices(),
                         [](Value index) { return index.getDefiningOp<IndexOp>(); }))
          count("indices folded", foldIndices(op));
      });
      return;
    }
    Prover prover(sizeFacts(getOperation()));
    // Outermost first: ranges of inner axes build on those of outer ones.
    SmallVector<Operation *> ops;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      if (auto indexed = dyn_cast<IndexedOp>(op)) {
        count("indices folded", foldIndices(indexed));
        simplifyExprs(indexed, prover);
      }
      if (auto read = dyn_cast<ReadOp>(op))
        simplifyRead(read, prover);
      else if (auto write = dyn_cast<WriteOp>(op))
        simplifyGuard(write.getGuardMutable(), write, prover);
      else if (auto compare = dyn_cast<arith::CmpIOp>(op))
        decideComparison(compare, prover);
    }
    eraseUnusedOps(getOperation().getBody().front());
  }

  /// Rewrites every expression with divisions, minima, maxima or conditionals.
  void simplifyExprs(IndexedOp op, Prover &prover) {
    std::optional<AxisScope> scope;
    // Bounds that use the op's own axes are left alone: their ranges are what is being rewritten.
    auto isLeft = [&](const ValueExpr &expr) {
      return !hasDecisions(expr.expr()) || llvm::any_of(expr.operands(), [&](Value value) {
        return axesOpOf(value) == op.getOperation();
      });
    };
    // An access stays inside of the axes that any of its subscripts uses.
    SmallVector<ValueExpr> kept;
    if (isa<ReadOp, WriteOp>(op.getOperation()))
      for (const ValueExpr &expr : subscriptsOf(op)) {
        if (!isLeft(expr) && !scope)
          scope.emplace(prover, op);
        kept.push_back(isLeft(expr) ? expr : scope->simplerInside(expr));
      }
    rewriteExprs(op, [&](const ValueExpr &expr) {
      if (isLeft(expr))
        return expr;
      if (!scope)
        scope.emplace(prover, op);
      ValueExpr simplified = scope->simplify(expr, kept);
      count("expressions simplified", !(simplified == expr));
      return simplified;
    });
  }

  void simplifyRead(ReadOp read, Prover &prover) {
    simplifyGuard(read.getGuardMutable(), read, prover);
    if (!read.getFill() && read.getExactNumerators().empty())
      return;
    AxisScope scope(prover, read);
    if (read.getGuard())
      for (const Conjunct &conjunct : conjunctsOf(read.getGuard()))
        if (conjunct.comparison && !mayWrap(conjunct.comparison->expr))
          scope.assume(conjunct.comparison->inDims(scope));
    // Divisions that are always exact.
    SmallVector<Attribute> numerators, denominators;
    for (auto [numerator, denominator] :
         llvm::zip_equal(read.getExactNumerators(), read.getExactDenominators())) {
      ValueExpr above(cast<IndexExprAttr>(numerator).getExpr(), read.getIndices());
      ValueExpr below(cast<IndexExprAttr>(denominator).getExpr(), read.getIndices());
      if (scope.proves(Condition::divides(scope.toDims(above), scope.toDims(below))))
        continue;
      numerators.push_back(numerator);
      denominators.push_back(denominator);
    }
    Builder builder(read.getContext());
    if (numerators.size() != read.getExactNumerators().size()) {
      read.setExactNumeratorsAttr(builder.getArrayAttr(numerators));
      read.setExactDenominatorsAttr(builder.getArrayAttr(denominators));
      foldIndices(cast<IndexedOp>(read.getOperation()));
    }
    if (!read.getFill() || !numerators.empty())
      return;
    for (auto [subscript, dim] :
         llvm::zip_equal(read.getSubscriptExprs(), read.getTensorType().getDims()))
      if (!scope.provesInBounds(subscript, dim.getExpr()))
        return;
    read.getFillMutable().clear();
    count("fills dropped");
  }

  /// Drops a guard that always holds, where the access stays inside the axes from which that
  /// follows: where they have no points, it says nothing about the access outside of them.
  void simplifyGuard(MutableOperandRange guard, Operation *access, Prover &prover) {
    if (guard.empty())
      return;
    SmallVector<Conjunct> conjuncts = conjunctsOf(guard[0].get());
    AxisScope scope(prover, access);
    SmallVector<ValueExpr> subscripts = subscriptsOf(access);
    for (const Conjunct &conjunct : conjuncts) {
      if (matchPattern(conjunct.value, m_One()))
        continue;
      if (!conjunct.comparison || mayWrap(conjunct.comparison->expr) ||
          !scope.proves(conjunct.comparison->inDims(scope)) ||
          !scope.hasPoints(conjunct.comparison->expr, subscripts))
        return;
    }
    guard.clear();
    count("guards dropped");
  }

  void decideComparison(arith::CmpIOp compare, Prover &prover) {
    SmallVector<Conjunct> conjuncts = conjunctsOf(compare.getResult());
    if (!conjuncts[0].comparison)
      return;
    AxisScope scope(prover, compare);
    std::optional<bool> holds = decide(*conjuncts[0].comparison, scope);
    if (!holds)
      return;
    // As for guards: an access that waits for a constant does not stay inside any axis for it.
    if (guardsAccess(compare.getResult()) && !scope.hasPoints(conjuncts[0].comparison->expr, {}))
      return;
    OpBuilder builder(compare);
    compare.getResult().replaceAllUsesWith(
        arith::ConstantIntOp::create(builder, compare.getLoc(), *holds, 1));
    count("comparisons decided");
  }
};
} // namespace
