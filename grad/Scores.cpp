//===- Scores.cpp - Softmax of products, without the matrix of scores ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/Scores.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

/// Whether the equation defines its whole target, element by element.
static bool isWholeDefinition(const Builder &b, const Equation &equation) {
  if (equation.accumulate || equation.guard || equation.target->kind != Tensor::Temp ||
      equation.vars.size() != equation.subscripts.size())
    return false;
  VarSet seen;
  for (auto [subscript, dim] : zip_equal(equation.subscripts, equation.target->dims)) {
    std::optional<IndexVar> at = subscript.asVariable();
    if (!at || at->isSymbol() || !seen.insert(at->position()))
      return false;
    const Var &var = b.var(at->position());
    if (var.kind != Var::Axis || var.lo != IndexExpr(0) || var.hi != dim)
      return false;
  }
  return true;
}

/// The only equation that defines the tensor, as a whole; else null.
static const Equation *definitionOf(const Builder &b, ArrayRef<Equation> program,
                                    const Tensor *tensor) {
  const Equation *found = nullptr;
  for (const Equation &equation : program) {
    if (equation.target != tensor)
      continue;
    if (found || !isWholeDefinition(b, equation))
      return nullptr;
    found = &equation;
  }
  return found;
}

static void readsOf(const Expr *value, SmallVectorImpl<const Expr *> &into) {
  if (value->kind == Expr::Read)
    into.push_back(value);
  Builder::forParts(value, [&](const Expr *part) { readsOf(part, into); });
}

/// What the definition has where the tensor is read.
static const Expr *valueAt(Builder &b, const Equation &definition, const Expr *read) {
  Replacement at;
  for (auto [own, subscript] : zip_equal(definition.subscripts, read->subscripts))
    at[own.asVariable()->position()] = subscript;
  return b.substitute(definition.value, at);
}

static bool isScoreSum(const Builder &b, const Equation &equation) {
  const Expr *value = equation.value;
  if (value->kind != Expr::Reduce || value->reduction != Reduction::Sum)
    return false;
  SmallVector<const Expr *> factors;
  readsOf(value->operands[0], factors);
  return factors.size() > 1 && all_of(factors, [&](const Expr *factor) {
           return any_of(equation.vars,
                         [&](const Var *axis) { return !b.dependsOn(factor, axis->id); });
         });
}

bool isSoftmaxOfProducts(const Builder &b, ArrayRef<Equation> program, const Equation &equation) {
  if (equation.value->kind != Expr::Scan || equation.value->scan != Scan::Softmax ||
      equation.value->vars.size() != 1 || !isWholeDefinition(b, equation))
    return false;
  DenseSet<const Tensor *> seen;
  auto visit = [&](auto &&self, const Expr *value) -> bool {
    SmallVector<const Expr *> reads;
    readsOf(value, reads);
    return any_of(reads, [&](const Expr *read) {
      const Equation *definition = definitionOf(b, program, read->tensor);
      if (!definition || read->tensor->dims.size() < equation.vars.size() ||
          !seen.insert(read->tensor).second)
        return false;
      return isScoreSum(b, *definition) ||
             (definition->value->kind != Expr::Reduce && definition->value->kind != Expr::Scan &&
              self(self, definition->value));
    });
  };
  return visit(visit, equation.value->operands[0]);
}

//===----------------------------------------------------------------------===//
// Linear uses
//===----------------------------------------------------------------------===//

static const Expr *withoutRounding(const Expr *value) {
  while (value->kind == Expr::Widen || (value->kind == Expr::Convert && isFloat(value->target) &&
                                        isFloat(value->operands[0]->type)))
    value = value->operands[0];
  return value;
}

/// The read of the tensor that the value is a multiple of; else null.
static const Expr *linearRead(const Builder &b, const Expr *value, const Tensor *tensor) {
  auto reads = [&](const Expr *at) {
    DenseSet<const Tensor *> found;
    b.tensorsOf(at, found);
    return found.contains(tensor);
  };
  value = withoutRounding(value);
  if (value->kind == Expr::Read)
    return value->tensor == tensor && !value->fill ? value : nullptr;
  if (value->kind == Expr::Unary && value->unary == Unary::Neg)
    return linearRead(b, value->operands[0], tensor);
  bool isQuotient = value->kind == Expr::Binary && value->binary == Binary::Div;
  if (!isQuotient && (value->kind != Expr::Binary || value->binary != Binary::Mul))
    return nullptr;
  bool isLeft = reads(value->operands[0]), isRight = reads(value->operands[1]);
  if (isLeft == isRight || (isQuotient && isRight))
    return nullptr;
  return linearRead(b, value->operands[isLeft ? 0 : 1], tensor);
}

std::optional<LinearUse> findLinearUse(Builder &b, ArrayRef<Equation> program,
                                       const Equation &softmax) {
  const Tensor *tensor = softmax.target;
  for (;;) {
    if (tensor->kind != Tensor::Temp)
      return std::nullopt;
    const Equation *use = nullptr;
    for (const Equation &equation : program) {
      DenseSet<const Tensor *> found;
      b.tensorsOf(equation, found);
      if (!found.contains(tensor))
        continue;
      if (use)
        return std::nullopt;
      use = &equation;
    }
    if (!use || use->loop || use->accumulate || use->guard ||
        count_if(program, [&](const Equation &one) { return one.target == use->target; }) != 1)
      return std::nullopt;
    const Expr *value = withoutRounding(use->value);
    if (value->kind == Expr::Read && value->tensor == tensor && isWholeDefinition(b, *use) &&
        value->subscripts == use->subscripts) {
      tensor = use->target; // rounded
      continue;
    }
    if (value->kind != Expr::Reduce || value->reduction != Reduction::Sum)
      return std::nullopt;
    const Expr *read = linearRead(b, value->operands[0], tensor);
    if (!read)
      return std::nullopt;
    LinearUse result;
    result.equation = use;
    VarSet bound;
    for (const Var *var : value->vars)
      bound.insert(var->id);
    IndexExpr along = softmax.value->positions[0];
    for (auto [own, subscript] : zip_equal(softmax.subscripts, read->subscripts)) {
      std::optional<IndexVar> at = subscript.asVariable();
      if (!at || at->isSymbol() || b.var(at->position()).kind != Var::Axis)
        return std::nullopt;
      bool isSummed = bound.contains(at->position());
      if (isSummed != (own == along) || (!isSummed && result.rows.contains(at->position())))
        return std::nullopt;
      if (!isSummed)
        result.rows[at->position()] = own;
    }
    for (const Var *var : use->vars)
      if (!result.rows.contains(var->id))
        result.rest.push_back(var);
    return result;
  }
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

namespace {
class ScoreRewriter {
public:
  ScoreRewriter(Builder &b, Derivation &derivation, ArrayRef<DType> shortTypes)
      : b(b), derivation(derivation), shortTypes(shortTypes) {}
  void run();

private:
  bool splitSoftmaxes();
  void roundWhereRead();
  void standWhereUsed();
  void roundFactors();
  void dropUnread();
  const Expr *spelledOut(const Expr *value);
  template <typename Visit> void forAll(Visit visit) {
    for (auto *part : {&derivation.forward, &derivation.backward})
      for (Equation &equation : *part)
        visit(equation);
  }
  /// Reads of the tensor that are not at the reading equation's own point: factors of a sum.
  bool isFactor(const Tensor *tensor) const;
  bool isLarge(const Tensor *tensor) const {
    return any_of(softmaxes, [&](const Tensor *one) {
      return std::is_permutation(one->dims.begin(), one->dims.end(), tensor->dims.begin(),
                                 tensor->dims.end());
    });
  }

  Builder &b;
  Derivation &derivation;
  ArrayRef<DType> shortTypes;
  SmallVector<const Tensor *> softmaxes;
};
} // namespace

/// With what large values are defined as in place of them.
const Expr *ScoreRewriter::spelledOut(const Expr *value) {
  return b.replaceReads(value, [&](const Expr *read) -> const Expr * {
    const Equation *definition = definitionOf(b, derivation.forward, read->tensor);
    bool isMade =
        definition && definition->value->kind != Expr::Scan &&
        (definition->value->kind != Expr::Reduce || definition->value->reduction == Reduction::Sum);
    if (!isMade || read->fill || read->guard || !isLarge(read->tensor) ||
        definition->value->type != read->type ||
        definition->target->type != definition->value->type)
      return nullptr;
    return spelledOut(valueAt(b, *definition, read));
  });
}

/// exp(where(c, x, -inf) - lse) is where(c, exp(x - lse), 0), from which is seen what is left out.
static const Expr *power(Builder &b, const Expr *score, const Expr *lse) {
  auto isLowest = [](const Expr *value) {
    value = withoutRounding(value);
    return value->kind == Expr::Constant && isFloat(value->type) &&
           value->floatValue == -std::numeric_limits<double>::infinity();
  };
  if (score->kind == Expr::Where && isLowest(score->operands[2]))
    return b.select(score->operands[0], power(b, score->operands[1], lse));
  return b.unary(Unary::Exp, b.sub(score, lse));
}

bool ScoreRewriter::splitSoftmaxes() {
  for (const Equation &equation : derivation.forward)
    if (isSoftmaxOfProducts(b, derivation.forward, equation))
      softmaxes.push_back(equation.target);
  std::vector<Equation> made;
  for (const Equation &equation : derivation.forward) {
    if (!is_contained(softmaxes, equation.target)) {
      made.push_back(equation);
      continue;
    }
    const Expr *scan = equation.value;
    const Expr *scores = spelledOut(scan->operands[0]);
    Equation sums;
    std::vector<IndexExpr> dims;
    for (auto [subscript, dim] : zip_equal(equation.subscripts, equation.target->dims))
      if (subscript != scan->positions[0]) {
        sums.vars.push_back(&b.var(subscript.asVariable()->position()));
        sums.subscripts.push_back(subscript);
        dims.push_back(dim);
      }
    sums.target = b.newTensor("lse", scan->type, dims);
    sums.value = b.reduce(Reduction::LogSumExp, scan->vars, scores);
    sums.span = equation.span;
    Equation powers = equation;
    Replacement own;
    own[scan->vars[0]->id] = scan->positions[0];
    powers.value = power(b, b.substitute(scores, own), b.read(sums.target, sums.subscripts));
    made.push_back(std::move(sums));
    made.push_back(std::move(powers));
  }
  derivation.forward = std::move(made);
  return !softmaxes.empty();
}

/// p: T = q, read as T(q).
void ScoreRewriter::roundWhereRead() {
  for (const Equation &rounded : std::vector<Equation>(derivation.forward)) {
    const Expr *source = rounded.value;
    if (source->kind != Expr::Read || !is_contained(softmaxes, source->tensor) ||
        source->subscripts != rounded.subscripts ||
        !definitionOf(b, derivation.forward, rounded.target))
      continue;
    forAll([&](Equation &equation) {
      if (equation.target == rounded.target)
        return;
      equation.value = b.replaceReads(equation.value, [&](const Expr *read) -> const Expr * {
        if (read->tensor != rounded.target || read->fill)
          return nullptr;
        return b.rounded(b.read(source->tensor, read->subscripts), rounded.target->type);
      });
    });
  }
}

bool ScoreRewriter::isFactor(const Tensor *tensor) const {
  auto inEquation = [&](const Equation &equation) {
    if (equation.value->kind != Expr::Reduce && equation.value->kind != Expr::Scan)
      return false;
    DenseSet<const Tensor *> found;
    b.tensorsOf(equation, found);
    return found.contains(tensor);
  };
  return any_of(derivation.forward, inEquation) || any_of(derivation.backward, inEquation);
}

/// Large values that are no factors of sums stand where they are used.
void ScoreRewriter::standWhereUsed() {
  for (size_t i = 0; i != derivation.forward.size() + derivation.backward.size(); ++i) {
    std::vector<Equation> &part =
        i < derivation.forward.size() ? derivation.forward : derivation.backward;
    const Equation equation =
        part[i < derivation.forward.size() ? i : i - derivation.forward.size()];
    const Tensor *target = equation.target;
    if (!isLarge(target) || is_contained(softmaxes, target) || isFactor(target) ||
        !definitionOf(b, part, target) || equation.value->kind == Expr::Scan ||
        (equation.value->kind == Expr::Reduce && equation.value->reduction != Reduction::Sum))
      continue;
    forAll([&](Equation &user) {
      if (user.target == target)
        return;
      user.value = b.replaceReads(user.value, [&](const Expr *read) -> const Expr * {
        return read->tensor == target && !read->fill ? valueAt(b, equation, read) : nullptr;
      });
    });
  }
}

void ScoreRewriter::roundFactors() {
  for (Equation &equation : derivation.backward) {
    const Expr *sum = equation.value;
    if (sum->kind != Expr::Reduce || sum->reduction != Reduction::Sum)
      continue;
    const Expr *product = sum->operands[0];
    if (product->kind != Expr::Binary || product->binary != Binary::Mul)
      continue;
    for (unsigned side : {0, 1}) {
      const Expr *factor = product->operands[side], *other = product->operands[1 - side];
      if (factor->kind != Expr::Read || other->kind != Expr::Read || !isLarge(factor->tensor) ||
          factor->tensor->type != DType::F32 || !is_contained(shortTypes, other->tensor->type))
        continue;
      Expr *rounded = b.copy(product);
      rounded->operands[side] = b.rounded(factor, other->tensor->type);
      Expr *made = b.copy(sum);
      made->operands = {rounded};
      equation.value = made;
      break;
    }
  }
}

void ScoreRewriter::dropUnread() {
  DenseSet<const Tensor *> needed(derivation.gradients.begin(), derivation.gradients.end());
  for (auto *part : {&derivation.backward, &derivation.forward}) {
    std::vector<Equation> kept;
    for (Equation &equation : llvm::reverse(*part))
      if (needed.contains(equation.target)) {
        b.tensorsOf(equation, needed);
        kept.push_back(std::move(equation));
      }
    std::reverse(kept.begin(), kept.end());
    *part = std::move(kept);
  }
}

void ScoreRewriter::run() {
  auto isLoop = [](const Equation &one) { return one.loop != nullptr; };
  if (any_of(derivation.forward, isLoop) || any_of(derivation.backward, isLoop) ||
      !splitSoftmaxes())
    return;
  roundWhereRead();
  standWhereUsed();
  roundFactors();
  dropUnread();
}

void leaveScoresUnstored(Builder &builder, Derivation &derivation, ArrayRef<DType> shortTypes) {
  ScoreRewriter(builder, derivation, shortTypes).run();
}

} // namespace tegula::grad
