//===- SoftmaxProduct.cpp - Matches softmax times matrix ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/SoftmaxProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

std::optional<TempDefinition> TempDefinition::of(Value tensor) {
  auto temp = tensor.getDefiningOp<TempOp>();
  if (!temp || !isa<KernelOp>(temp->getParentOp()))
    return std::nullopt;
  TempDefinition definition{temp, {}, {}};
  for (Operation *user : tensor.getUsers()) {
    if (isa<ReadOp>(user))
      continue;
    auto write = dyn_cast<WriteOp>(user);
    if (!write || definition.write || write.getGuard() || write.getCombine() || write.getChecked())
      return std::nullopt;
    definition.write = write;
  }
  if (!definition.write)
    return std::nullopt;
  definition.statement = dyn_cast<ParallelOp>(definition.write->getParentOp());
  if (!definition.statement || definition.statement->getParentOp() != temp->getParentOp() ||
      accessesOf(definition.statement).writes.size() != 1)
    return std::nullopt;
  auto axes = cast<AxesOp>(definition.statement.getOperation());
  AxisSet bare;
  for (const ValueExpr &subscript : definition.write.getSubscriptExprs()) {
    auto axis = dyn_cast_or_null<BlockArgument>(subscript.asValue());
    if (!axis || axis.getOwner() != axes.getAxesBlock() || !bare.insert(axis))
      return std::nullopt;
  }
  return bare.size() == axes.getAxes().size() ? std::optional(definition) : std::nullopt;
}

namespace {
/// A value of a statement, and what the statement's axes are in terms of the axes at another place.
struct Term {
  Value value;
  DenseMap<Value, ValueExpr> place;

  Term with(Value other) const { return {other, place}; }
  ValueExpr exprOf(const ValueExpr &expr) const {
    return expr.substitute([&](Value axis) -> std::optional<ValueExpr> {
      auto found = place.find(axis);
      return found == place.end() ? std::nullopt : std::optional(found->second);
    });
  }
};

/// Every method gives false, with a reason, where the statement is no such product.
class Matcher : MatcherBase {
public:
  explicit Matcher(ParallelOp product) { match.product = product; }

  Matched<SoftmaxProduct> run() {
    if (!findProduct() || !findSoftmax())
      failAsOther(match.product, describe(match.product) + " is no product with a softmax");
    else if (findColumn() && areAlone() && staysTheSame())
      return std::move(match);
    return std::move(why);
  }

private:
  SoftmaxProduct match;

  bool findProduct() {
    for (Operation &op : match.product.getBody().front()) {
      if (auto reduce = dyn_cast<ReduceOp>(op)) {
        if (match.sum)
          return false;
        match.sum = reduce;
      } else if (auto write = dyn_cast<WriteOp>(op)) {
        if (match.result || write.getCombine() || write.getChecked())
          return false;
        match.result = write;
      } else if (op.getNumRegions() || isa<TempOp, SortOp>(op)) {
        return false;
      }
    }
    if (!match.sum || !match.result || match.sum.getFilter() || match.sum.getAxes().size() != 1)
      return false;
    for (Value used : valuesUsedBy(match.sum))
      if (Operation *op = used.getDefiningOp(); op && match.product->isProperAncestor(op))
        return false;
    std::optional<Contraction> contraction = matchContraction(match.sum);
    return contraction && contraction->factors.size() == 2 && match.sum.getType().isF32();
  }

  /// Of the temporary that the value is a plain read of.
  std::optional<TempDefinition> definitionOf(const Term &term) {
    auto read = term.value.getDefiningOp<ReadOp>();
    if (!read || read.getGuard() || read.getFill() || read.getChecked() ||
        !read.getExactExprs().empty())
      return std::nullopt;
    return TempDefinition::of(read.getTensor());
  }

  DenseMap<Value, ValueExpr> placeIn(TempDefinition definition, const Term &term) {
    DenseMap<Value, ValueExpr> place;
    auto read = term.value.getDefiningOp<ReadOp>();
    for (auto [subscript, axis] :
         llvm::zip_equal(read.getSubscriptExprs(), definition.write.getSubscriptExprs()))
      place[axis.asValue()] = term.exprOf(subscript);
    return place;
  }

  /// What was written to the temporary that the value is read of, and so on. With `rounds`, behind
  /// the rounding to a type, too, which is noted.
  Term behind(Term term, bool rounds = false) {
    while (true) {
      if (auto convert = term.value.getDefiningOp<ConvertOp>();
          convert && rounds && round(convert.getTarget())) {
        term.value = convert.getValue();
        continue;
      }
      std::optional<TempDefinition> definition = definitionOf(term);
      if (!definition)
        return term;
      Type element = cast<TglTensorType>(definition->temp.getTensor().getType()).getElementType();
      if (!element.isF32() && !(rounds && round(element)))
        return term;
      DenseMap<Value, ValueExpr> place = placeIn(*definition, term);
      match.temps.insert(definition->temp);
      term = {definition->write.getValue(), place};
    }
  }

  bool round(Type type) {
    if (match.rounded && match.rounded != type)
      return false;
    match.rounded = type;
    return isa<FloatType>(type);
  }

  /// Over all of the softmax's points: what is reduced, with the sum's axis in place of the
  /// reduction's.
  std::optional<Term> reducedBy(const Term &term, ReduceKind kind) {
    auto reduce = term.value.getDefiningOp<ReduceOp>();
    if (!reduce || reduce.getKind() != kind || reduce.getFilter() || reduce.getAxes().size() != 1)
      return std::nullopt;
    AxisRange own = getAxisRange(cast<AxesOp>(reduce.getOperation()), 0),
              all = getAxisRange(cast<AxesOp>(match.sum.getOperation()), 0);
    if (!own.lo.asConstant() || !own.hi.asConstant() || !(own.lo == all.lo) || !(own.hi == all.hi))
      return std::nullopt;
    Term inside = term.with(reduce.getReduced());
    inside.place[reduce.getAxes()[0]] = Value(match.sum.getAxes()[0]);
    return inside;
  }

  /// The score at (row, j): always the same element.
  bool isScore(const Term &term) {
    std::optional<TempDefinition> definition = definitionOf(term);
    if (!definition || !term.value.getType().isF32())
      return false;
    DenseMap<Value, ValueExpr> place = placeIn(*definition, term);
    if (!match.scores) {
      match.scores = definition;
      match.place = place;
      match.temps.insert(definition->temp);
      return true;
    }
    return match.scores->temp == definition->temp && llvm::all_of(place, [&](const auto &entry) {
             return match.place[entry.first] == entry.second;
           });
  }

  /// exp(score - largest score).
  bool isPower(const Term &term) {
    auto exp = term.value.getDefiningOp<math::ExpOp>();
    auto shift = exp ? exp.getOperand().getDefiningOp<arith::SubFOp>() : nullptr;
    if (!shift || !isScore(term.with(shift.getLhs())))
      return false;
    std::optional<Term> largest = reducedBy(behind(term.with(shift.getRhs())), ReduceKind::Max);
    return largest && isScore(*largest);
  }

  bool findSoftmax() {
    for (const Contraction::Factor &factor : matchContraction(match.sum)->factors) {
      match.rounded = nullptr;
      match.temps.clear();
      Term quotient = behind(Term{factor.value, DenseMap<Value, ValueExpr>()}, /*rounds=*/true);
      auto division = quotient.value.getDefiningOp<arith::DivFOp>();
      if (!division || !division.getType().isF32())
        continue;
      match.left = factor.value;
      std::optional<Term> summed =
          reducedBy(behind(quotient.with(division.getRhs())), ReduceKind::Sum);
      Term power = behind(quotient.with(division.getLhs()));
      if (isPower(power) && summed && isPower(behind(*summed)))
        return true;
      if (power.value.getDefiningOp<math::ExpOp>())
        fail(division,
             "the exponentials of " + describe(match.sum) +
                 " are not divided by the sum of exp(score - the row's largest score) "
                 "over all of the row's points",
             "write softmax(s[i, j] for j), with -inf for scores that do not count");
      return false;
    }
    return false;
  }

  /// The one axis of the product that the scores do not have.
  bool findColumn() {
    auto axes = cast<AxesOp>(match.product.getOperation());
    for (BlockArgument axis : axes.getAxes()) {
      if (llvm::any_of(match.place, [&](const auto &entry) { return entry.second.uses(axis); }))
        continue;
      AxisRange range = getAxisRange(axes, axis.getArgNumber());
      if (match.column || range.lo.asConstant() != 0 || !range.hi.asConstant())
        return fail(match.product,
                    namesOf(axis) + " is a second index that the scores do not have, or its range "
                                    "is not known when compiling");
      match.column = axis;
    }
    return match.column || fail(match.product, "every index of " + describe(match.product) +
                                                   " is one of the scores");
  }

  /// Operations of the product's statement that compute the softmax's value and nothing else.
  llvm::SetVector<Operation *> onlyForLeft() {
    llvm::SetVector<Operation *> found;
    if (Operation *last = match.left.getDefiningOp(); last && match.product->isAncestor(last))
      found.insert(last);
    for (unsigned next = 0; next < found.size(); ++next)
      for (Value operand : found[next]->getOperands())
        if (Operation *op = operand.getDefiningOp(); op && match.product->isAncestor(op))
          if (llvm::all_of(op->getUsers(), [&](Operation *user) { return found.contains(user); }))
            found.insert(op);
    return found;
  }

  /// Nobody else reads what will not be there, nor does the product's statement for anything else.
  bool areAlone() {
    llvm::DenseSet<Operation *> statements;
    for (Operation *temp : match.temps)
      statements.insert(TempDefinition::of(temp->getResult(0))->statement);
    llvm::SetVector<Operation *> ofProduct = onlyForLeft();
    for (Operation *temp : match.temps)
      for (Operation *user : temp->getUsers())
        if (!ofProduct.contains(user) && llvm::none_of(statements, [&](Operation *statement) {
              return statement->isAncestor(user);
            }))
          return fail(user, describeTensor(temp->getResult(0)) +
                                ", which the softmax is made of, is read by another statement too");
    return true;
  }

  /// What the scores are made of is the same where the product stands.
  bool staysTheSame() {
    ParallelOp from = match.scores->statement;
    if (from->getBlock() != match.product->getBlock())
      return fail(from, "scores and product stand in different loops");
    Accesses used = accessesOf(from);
    for (Operation *op = from->getNextNode(); op && op != match.product; op = op->getNextNode())
      for (Value written : accessesOf(op).writes)
        if (used.reads.contains(written))
          return fail(op, describeTensor(written) +
                              ", which the scores are made of, changes before the product");
    return from->isBeforeInBlock(match.product);
  }
};
} // namespace

Matched<SoftmaxProduct> tegula::matchSoftmaxProduct(ParallelOp statement) {
  return Matcher(statement).run();
}
