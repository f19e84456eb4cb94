//===- RowChain.cpp - Reductions of one row that use each other ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/RowChain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

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

//===----------------------------------------------------------------------===//
// Values of a chain
//===----------------------------------------------------------------------===//

ValueExpr RowChain::placed(const ValueExpr &expr) const {
  return expr.substitute([&](Value axis) -> std::optional<ValueExpr> {
    auto found = place.find(axis);
    return found == place.end() ? std::nullopt : std::optional(found->second);
  });
}

const TempDefinition *RowChain::definitionOf(Value value) const {
  auto read = value.getDefiningOp<ReadOp>();
  auto found = read ? inlined.find(read.getTensor()) : inlined.end();
  return found == inlined.end() ? nullptr : &found->second;
}

Value RowChain::behind(Value value) const {
  while (const TempDefinition *definition = definitionOf(value)) {
    if (!TempDefinition(*definition).elementType().isF32())
      return value;
    value = WriteOp(definition->write).getValue();
  }
  return value;
}

/// Whether `test` holds for the value or one that it is computed from in the chain's statements.
static bool anyBehind(Value value, function_ref<bool(Value)> test,
                      function_ref<Value(Value)> next = nullptr) {
  SmallVector<Value> pending{value};
  DenseSet<Value> seen;
  while (!pending.empty()) {
    Value one = pending.pop_back_val();
    if (!seen.insert(one).second)
      continue;
    if (test(one))
      return true;
    Operation *op = one.getDefiningOp();
    if (!op || isa<KernelOp>(op->getParentOp()))
      continue;
    if (Value behind = next ? next(one) : Value())
      pending.push_back(behind);
    else
      llvm::append_range(pending, valuesUsedBy(op));
  }
  return false;
}

bool RowChain::isElement(Value value) const {
  return !reductions.contains(value.getDefiningOp()) && anyBehind(value, [&](Value one) {
    return isa<BlockArgument>(one) && placed(ValueExpr(one)).uses(sumAxis());
  });
}

bool RowChain::isAfterLoop(Value value) const {
  return anyBehind(
      value, [&](Value one) { return reductions.contains(one.getDefiningOp()); },
      [&](Value one) {
        const TempDefinition *definition = definitionOf(one);
        return definition ? WriteOp(definition->write).getValue() : Value();
      });
}

bool RowChain::areSame(Value a, Value b) const {
  a = behind(a), b = behind(b);
  if (a == b)
    return true;
  if (isa<BlockArgument>(a) && isa<BlockArgument>(b))
    return placed(ValueExpr(a)) == placed(ValueExpr(b));
  Operation *one = a.getDefiningOp(), *other = b.getDefiningOp();
  if (!one || !other || one->getName() != other->getName() || one->getNumRegions() ||
      one->getNumOperands() != other->getNumOperands() || a.getType() != b.getType())
    return false;
  if (auto read = dyn_cast<ReadOp>(one)) {
    auto second = cast<ReadOp>(other);
    return read.getTensor() == second.getTensor() && !read.getGuard() && !second.getGuard() &&
           !read.getFill() && !second.getFill() &&
           llvm::all_of(
               llvm::zip_equal(read.getSubscriptExprs(), second.getSubscriptExprs()),
               [&](const auto &pair) { return areSame(std::get<0>(pair), std::get<1>(pair)); });
  }
  // How precisely an operation may be computed is no part of what it is.
  auto attributesOf = [](Operation *op) {
    NamedAttrList list(op->getAttrDictionary());
    list.erase("fastmath");
    return list.getDictionary(op->getContext());
  };
  return attributesOf(one) == attributesOf(other) &&
         llvm::all_of(llvm::zip_equal(one->getOperands(), other->getOperands()),
                      [&](auto pair) { return areSame(std::get<0>(pair), std::get<1>(pair)); });
}

bool RowChain::areSame(const ValueExpr &a, const ValueExpr &b) const {
  ValueExpr one = placed(a);
  return one == placed(b).substitute([&](Value used) -> std::optional<ValueExpr> {
    for (Value own : one.operands())
      if (areSame(own, used))
        return ValueExpr(own);
    return std::nullopt;
  });
}

bool RowChain::hasPowers() const {
  return anyBehind(
      column ? left : ReduceOp(sum).getReduced(),
      [](Value one) { return isa_and_nonnull<math::ExpOp, math::Exp2Op>(one.getDefiningOp()); },
      [&](Value one) {
        const TempDefinition *definition = definitionOf(one);
        return definition ? WriteOp(definition->write).getValue() : Value();
      });
}

bool RowChain::isLargest(Value value, Value score) const {
  auto reduce = behind(value).getDefiningOp<ReduceOp>();
  return reduce && reductions.contains(reduce) && reduce.getKind() == ReduceKind::Max &&
         areSame(reduce.getReduced(), score);
}

//===----------------------------------------------------------------------===//
// The matcher
//===----------------------------------------------------------------------===//

namespace {
/// Every method gives false, with a reason, where the statement ends no chain.
class Matcher : MatcherBase {
public:
  Matcher(ParallelOp product, bool shared) : shared(shared) { chain.product = product; }

  Matched<RowChain> run() {
    if (!findProduct() || !findLeft())
      failAsOther(chain.product, describe(chain.product) +
                                     " multiplies no values of rows and columns that are "
                                     "made of a sum of products");
    else if (findColumn() && findTerms() && staysInStatements() && areAlone() && staysTheSame())
      return std::move(chain);
    return std::move(why);
  }

  Matched<RowChain> runWithoutProduct() {
    if (!findReductions())
      failAsOther(chain.product, describe(chain.product) +
                                     " has no two reductions of values that are made of a sum of "
                                     "products");
    else if (needAll() && staysInStatements() && areAlone() && staysTheSame())
      return std::move(chain);
    return std::move(why);
  }

private:
  RowChain chain;
  bool shared; ///< whether other statements may read elements
  Value right;
  DenseMap<Value, bool> connected;

  AxesOp axes() { return cast<AxesOp>(chain.product.getOperation()); }

  bool findProduct() {
    bool hasResult = false;
    for (Operation &op : chain.product.getBody().front()) {
      if (auto reduce = dyn_cast<ReduceOp>(op)) {
        if (chain.sum)
          return false;
        chain.sum = reduce;
      } else if (auto write = dyn_cast<WriteOp>(op)) {
        if (hasResult || write.getCombine() || write.getChecked())
          return false;
        hasResult = true;
      } else if (op.getNumRegions() || isa<TempOp, SortOp>(op)) {
        return false;
      }
    }
    if (!chain.sum || !hasResult || chain.sum.getKind() != ReduceKind::Sum ||
        chain.sum.getFilter() || chain.sum.getAxes().size() != 1 || !chain.sum.getType().isF32())
      return false;
    // Beside the ends of its range it uses nothing that the statement computes.
    llvm::SetVector<Value> used;
    mlir::getUsedValuesDefinedAbove(chain.sum.getBody(), used);
    return llvm::none_of(used, [&](Value value) {
      Operation *op = value.getDefiningOp();
      return op && chain.product->isProperAncestor(op);
    });
  }

  /// Reductions over the same points in a statement of scalar operations.
  bool findReductions() {
    SmallVector<ReduceOp> reduces;
    for (Operation &op : chain.product.getBody().front()) {
      auto write = dyn_cast<WriteOp>(op);
      if (auto reduce = dyn_cast<ReduceOp>(op))
        reduces.push_back(reduce);
      else if (op.getNumRegions() || isa<TempOp, SortOp>(op) ||
               (write && (write.getCombine() || write.getChecked())))
        return false;
    }
    if (reduces.size() < 2 ||
        llvm::any_of(reduces, [](ReduceOp reduce) { return reduce.getAxes().size() != 1; }))
      return false;
    chain.sum = reduces.back();
    chain.range = getAxisRange(cast<AxesOp>(chain.sum.getOperation()), 0);
    for (ReduceOp reduce : ArrayRef(reduces).drop_back())
      chain.place[reduce.getAxes()[0]] = ValueExpr(chain.sumAxis());
    for (ReduceOp reduce : reduces)
      if (!inlineElements(reduce.getReduced()))
        return false;
    DenseSet<Value> done;
    return chain.hasKnownRange() && hasProduct() &&
           llvm::all_of(reduces, [&](ReduceOp reduce) { return inlineReduction(reduce, done); }) &&
           llvm::all_of(reduces, [&](ReduceOp reduce) {
             return chain.reductions.contains(reduce.getOperation());
           });
  }

  /// Notes what all that the statement has is made of.
  bool needAll() {
    for (Operation &op : chain.product.getBody().front())
      for (Value result : op.getResults())
        if (!need(result))
          return false;
    return needRows();
  }

  /// The factor that is made of elements of temporaries.
  bool findLeft() {
    std::optional<Contraction> contraction = matchContraction(chain.sum);
    if (!contraction || contraction->factors.size() != 2)
      return false;
    for (unsigned number : {0, 1}) {
      chain.inlined.clear();
      chain.place.clear();
      chain.left = contraction->factors[number].value;
      right = contraction->factors[1 - number].value;
      if (!inlineElements(chain.left))
        return false;
      if (hasProduct())
        return shared || inlineRows(); // which others may read are tensors
      if (hasReason())
        return false;
    }
    return false;
  }

  /// Whether an element is made of a sum of products.
  bool hasProduct() {
    return llvm::any_of(chain.inlined, [](auto &entry) {
      return llvm::any_of(entry.second.statement.getBody().front(), [](Operation &op) {
        auto reduce = dyn_cast<ReduceOp>(op);
        return reduce && matchContraction(reduce);
      });
    });
  }

  /// A checked read is one of axes alone: a range that data gives may leave the tensor.
  static bool isPlain(ReadOp read) {
    return !read.getGuard() && !read.getFill() && read.getExactExprs().empty() &&
           (!read.getChecked() || llvm::all_of(read.getSubscriptExprs(), [](const ValueExpr &at) {
             return isa_and_nonnull<BlockArgument>(at.asValue());
           }));
  }

  /// A temporary that a statement of scalar operations and reductions defines.
  std::optional<TempDefinition> candidate(ReadOp read) {
    std::optional<TempDefinition> definition =
        isPlain(read) ? TempDefinition::of(read.getTensor()) : std::nullopt;
    if (!definition || definition->statement->getBlock() != chain.product->getBlock() ||
        !definition->statement->isBeforeInBlock(chain.product) ||
        !isa<FloatType>(definition->elementType()))
      return std::nullopt;
    for (Operation &op : definition->statement.getBody().front())
      if ((op.getNumRegions() && !isa<ReduceOp>(op)) || isa<TempOp, SortOp>(op))
        return std::nullopt;
    return definition;
  }

  bool varies(ReadOp read, function_ref<bool(Value)> along) {
    return llvm::any_of(read.getSubscriptExprs(), [&](const ValueExpr &subscript) {
      return llvm::any_of(chain.placed(subscript).operands(), along);
    });
  }

  /// An axis of the product along which the right factor, if any, does not vary.
  bool isOfRows(Value axis) {
    auto argument = dyn_cast<BlockArgument>(axis);
    return argument && argument.getOwner() == axes().getAxesBlock() &&
           !(right && axesOf(right).contains(argument));
  }

  /// Notes that the read's temporary is computed where it is read, at one place.
  bool enter(ReadOp read, TempDefinition definition) {
    bool isNew = chain.inlined.insert({read.getTensor(), definition}).second;
    if (read.getChecked() && !chain.checked) {
      chain.checked = read.getCheckedAttr();
      chain.checkedAt = read.getLoc();
    }
    for (auto [subscript, axis] :
         llvm::zip_equal(read.getSubscriptExprs(), definition.write.getSubscriptExprs())) {
      ValueExpr at = chain.placed(subscript);
      if (isNew)
        chain.place[axis.asValue()] = at;
      else if (!(chain.place[axis.asValue()] == at))
        return fail(read, describeTensor(read.getTensor()) +
                              " is read at two places for a row and a column");
    }
    return true;
  }

  /// Inlines temporaries of rows and columns.
  bool inlineElements(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || isa<KernelOp>(op->getParentOp()) || op->getNumRegions())
      return true;
    if (auto read = dyn_cast<ReadOp>(op)) {
      std::optional<TempDefinition> definition = candidate(read);
      if (!definition || !varies(read, [&](Value axis) { return axis == chain.sumAxis(); }) ||
          !varies(read, [&](Value axis) { return isOfRows(axis); }))
        return true;
      bool isKnown = chain.inlined.contains(read.getTensor());
      return enter(read, *definition) && (isKnown || inlineElements(definition->write.getValue()));
    }
    return llvm::all_of(op->getOperands(), [&](Value used) { return inlineElements(used); });
  }

  /// Whether the statement reads elements of the chain, or values of rows that are made of them.
  bool isConnected(TempDefinition definition) {
    auto [known, isNew] = connected.try_emplace(definition.temp.getTensor(), false);
    if (!isNew)
      return known->second;
    bool found =
        definition.statement
            .walk([&](ReadOp read) {
              std::optional<TempDefinition> inner = candidate(read);
              return inner && (chain.inlined.contains(read.getTensor()) || isConnected(*inner))
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            })
            .wasInterrupted();
    return connected[definition.temp.getTensor()] = found;
  }

  bool inlineRows() {
    SmallVector<Value> roots{chain.left};
    for (Operation &op : chain.product.getBody().front())
      if (&op != chain.sum && op.getNumResults())
        roots.push_back(op.getResult(0));
    DenseSet<Value> done;
    return llvm::all_of(roots, [&](Value root) { return inlineRows(root, done); });
  }

  bool inlineRows(Value value, DenseSet<Value> &done) {
    Operation *op = value.getDefiningOp();
    if (!op || isa<KernelOp>(op->getParentOp()) || !done.insert(value).second)
      return true;
    if (auto read = dyn_cast<ReadOp>(op)) {
      std::optional<TempDefinition> definition = candidate(read);
      if (!definition || (!chain.inlined.contains(read.getTensor()) && !isConnected(*definition)))
        return true;
      return enter(read, *definition) && inlineRows(definition->write.getValue(), done);
    }
    if (auto reduce = dyn_cast<ReduceOp>(op); reduce && reduce != chain.sum)
      return inlineReduction(reduce, done);
    return llvm::all_of(op->getOperands(), [&](Value used) { return inlineRows(used, done); });
  }

  /// A reduction of elements runs over all of the sum's points.
  bool inlineReduction(ReduceOp reduce, DenseSet<Value> &done) {
    bool readsElements = false;
    reduce.walk([&](ReadOp read) {
      std::optional<TempDefinition> definition = candidate(read);
      readsElements |=
          definition && (chain.inlined.contains(read.getTensor()) || isConnected(*definition));
    });
    if (!readsElements)
      return true;
    AxisRange all = getAxisRange(cast<AxesOp>(chain.sum.getOperation()), 0);
    AxisRange own = getAxisRange(cast<AxesOp>(reduce.getOperation()), 0);
    if (reduce.getAxes().size() != 1 || !chain.areSame(own.lo, all.lo) ||
        !chain.areSame(own.hi, all.hi))
      return fail(reduce,
                  describe(reduce) + " runs over other points than " + describe(chain.sum) +
                      ", which uses its result",
                  "let both run over all columns, with -inf for scores that do not count");
    if (reduce.getFilter())
      return fail(reduce, describe(reduce) + " has a condition",
                  "write where(condition, score, -inf) instead");
    if (reduce != chain.sum)
      chain.place[reduce.getAxes()[0]] = ValueExpr(chain.sumAxis());
    chain.reductions.insert(reduce);
    return inlineRows(reduce.getReduced(), done);
  }

  /// The one axis of the product that the left factor does not vary along.
  bool findColumn() {
    AxisSet used;
    for (auto &[axis, expr] : chain.place)
      for (Value value : expr.operands())
        if (auto argument = dyn_cast<BlockArgument>(value))
          used.insert(argument);
    for (BlockArgument axis : axes().getAxes()) {
      if (used.contains(axis))
        continue;
      AxisRange range = getAxisRange(axes(), axis.getArgNumber());
      if (chain.column || range.lo.asConstant() != 0 || !range.hi.asConstant())
        return fail(chain.product,
                    namesOf(axis) + " is a second index that the scores do not have, or its range "
                                    "is not known when compiling",
                    chain.column ? "" : "compile for known sizes (-d), as PyTorch calls do");
      chain.column = axis;
    }
    if (!chain.column)
      return fail(chain.product,
                  "every index of " + describe(chain.product) + " is one of the scores");
    chain.range = getAxisRange(cast<AxesOp>(chain.sum.getOperation()), 0);
    for (const ValueExpr &end : {chain.range.lo, chain.range.hi})
      for (Value value : end.operands())
        if (usesColumn(value))
          return fail(chain.sum, "the range of " + describe(chain.sum) + " varies along " +
                                     namesOf(chain.column));
    for (Operation *reduce : chain.reductions)
      if (usesColumn(reduce->getResult(0)))
        return fail(reduce, describe(reduce) + " varies along " + namesOf(chain.column));
    return true;
  }

  bool usesColumn(Value value) {
    return anyBehind(
        value,
        [&](Value one) {
          return isa<BlockArgument>(one) && chain.placed(ValueExpr(one)).uses(chain.column);
        },
        [&](Value one) {
          const TempDefinition *definition = chain.definitionOf(one);
          return definition ? WriteOp(definition->write).getValue() : Value();
        });
  }

  //===--------------------------------------------------------------------===//
  // Terms
  //===--------------------------------------------------------------------===//

  /// Whether the value is the sum of the powers of distances from the largest score.
  bool isSumOfPowers(Value value) {
    auto reduce = chain.behind(value).getDefiningOp<ReduceOp>();
    if (!reduce || !chain.reductions.contains(reduce) || reduce.getKind() != ReduceKind::Sum)
      return false;
    Operation *power = chain.behind(reduce.getReduced()).getDefiningOp();
    auto distance = isa_and_nonnull<math::ExpOp, math::Exp2Op>(power)
                        ? chain.behind(power->getOperand(0)).getDefiningOp<arith::SubFOp>()
                        : arith::SubFOp();
    return distance && chain.isLargest(distance.getRhs(), distance.getLhs());
  }

  bool findQuotients() {
    ChainTerm term;
    term.value = term.inner = chain.left;
    while (step(term))
      ;
    return llvm::any_of(term.scales,
                        [&](const ChainTerm::Scale &scale) {
                          return scale.divides && isSumOfPowers(scale.value);
                        }) &&
           llvm::none_of(chain.product.getBody().front(),
                         [&](Operation &op) {
                           return &op != chain.sum && op.getNumResults() &&
                                  chain.isAfterLoop(op.getResult(0));
                         }) &&
           llvm::none_of(chain.inlined, [&](auto &entry) {
             return !chain.isElement(entry.second.write.getValue()) && isReadElsewhere(entry.first);
           });
  }

  bool findTerms() {
    chain.areQuotients = findQuotients();
    if (!takeTerm(chain.sum, chain.left, chain.term))
      return false;
    for (Operation &op : chain.product.getBody().front())
      if (&op != chain.sum && op.getNumResults() && !need(op.getResult(0)))
        return false;
    return needRows();
  }

  /// Values of rows that other statements read.
  bool needRows() {
    for (auto &[tensor, definition] : chain.inlined)
      if (!chain.isElement(definition.write.getValue()) && isReadElsewhere(tensor)) {
        chain.kept.insert(tensor);
        if (!need(definition.write.getValue()))
          return false;
      }
    return true;
  }

  /// Notes what a value that is wanted after the loop is made of.
  bool need(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || isa<KernelOp>(op->getParentOp()) || (op == chain.sum && chain.column) ||
        !chain.isAfterLoop(value))
      return true;
    if (const TempDefinition *definition = chain.definitionOf(value))
      return need(WriteOp(definition->write).getValue());
    if (!chain.reductions.contains(op))
      return llvm::all_of(valuesUsedBy(op), [&](Value used) { return need(used); });
    if (!chain.needed.insert(op))
      return true;
    auto reduce = cast<ReduceOp>(op);
    if (reduce.getKind() == ReduceKind::Sum && reduce.getType().isF32())
      return takeTerm(op, reduce.getReduced(), chain.sums[op]);
    static constexpr ReduceKind kinds[] = {ReduceKind::Max, ReduceKind::Min, ReduceKind::Sum};
    if (!llvm::is_contained(kinds, reduce.getKind()) || !isa<FloatType>(reduce.getType()))
      return fail(op, describe(op) + " is neither a sum nor an extreme of floats");
    return !chain.isAfterLoop(reduce.getReduced()) ||
           fail(op, describe(op) + " is of values that another reduction over all columns gives");
  }

  bool takeTerm(Operation *sum, Value value, ChainTerm &term) {
    term.value = term.inner = value;
    while (step(term))
      ;
    Value inner = term.inner;
    Operation *op = inner.getDefiningOp();
    if (isa_and_nonnull<math::ExpOp, math::Exp2Op>(op)) {
      auto distance = chain.behind(op->getOperand(0)).getDefiningOp<arith::SubFOp>();
      if (distance && chain.isElement(distance.getLhs()) && !chain.isElement(distance.getRhs()) &&
          chain.isAfterLoop(distance.getRhs()) && !chain.isAfterLoop(distance.getLhs()) &&
          op->getResult(0).getType().isF32()) {
        term.score = distance.getLhs();
        term.shift = distance.getRhs();
        term.isBase2 = isa<math::Exp2Op>(op);
      }
    }
    if (!term.score && chain.isAfterLoop(inner))
      return fail(sum, "terms of " + describe(sum) +
                           " are no multiples of exp(score - r) with one r for a row, and another "
                           "reduction over all columns must be known for each");
    if ((term.score || !term.scales.empty()) && roundsBeyondRange(term))
      return fail(sum, "numbers that are rounded to f16 may be too large for it without what they "
                       "are divided by");
    for (const ChainTerm::Scale &scale : term.scales)
      if (!need(scale.value))
        return false;
    return !term.score || chain.isImplied(term) || need(term.shift);
  }

  /// Whether a term that is rounded to f16 may be larger than 1 without its scales.
  static bool roundsBeyondRange(const ChainTerm &term) {
    auto isF16 = [](const ChainTerm::Step &step) {
      auto convert = llvm::dyn_cast_or_null<ConvertOp>(step.op);
      Type rounded = convert ? convert.getTarget() : step.rounded;
      return rounded && rounded.isF16();
    };
    auto grows = [](const ChainTerm::Step &step) {
      constexpr float harmless = 16;
      APFloat factor(0.0f);
      return isa_and_nonnull<arith::MulFOp, arith::DivFOp>(step.op) &&
             (isa<arith::DivFOp>(step.op) ||
              !matchPattern(step.op->getOperand(1 - step.operand), m_ConstantFloat(&factor)) ||
              !(abs(factor).convertToFloat() <= harmless));
    };
    return llvm::any_of(term.steps, isF16) && (!term.score || llvm::any_of(term.steps, grows));
  }

  /// Goes on to what the inner value is a linear function of.
  bool step(ChainTerm &term) {
    if (const TempDefinition *definition = chain.definitionOf(term.inner)) {
      Type element = TempDefinition(*definition).elementType();
      if (!element.isF32())
        term.steps.push_back({nullptr, 0, element});
      term.inner = WriteOp(definition->write).getValue();
      return true;
    }
    Operation *op = term.inner.getDefiningOp();
    auto into = [&](unsigned operand) {
      term.steps.push_back({op, operand, {}});
      term.inner = op->getOperand(operand);
      return true;
    };
    auto outOf = [&](Value scale, bool divides, Value inner) {
      term.scales.push_back({scale, divides});
      term.inner = inner;
      return true;
    };
    if (!op || !chain.isAfterLoop(term.inner) || !term.inner.getType().isF32())
      return false; // it is computed as it stands
    if (auto convert = dyn_cast<ConvertOp>(op))
      return isa<FloatType>(convert.getTarget()) && convert.getValue().getType().isF32() && into(0);
    auto isScale = [&](Value value) { return !chain.isElement(value) && chain.isAfterLoop(value); };
    auto isFactor = [&](Value value) { return !chain.isAfterLoop(value) && isLight(value); };
    if (isa<arith::MulFOp>(op)) {
      for (unsigned operand : {0, 1})
        if (isScale(op->getOperand(1 - operand)))
          return outOf(op->getOperand(1 - operand), false, op->getOperand(operand));
      for (unsigned operand : {0, 1})
        if (isFactor(op->getOperand(1 - operand)))
          return into(operand);
    }
    if (isa<arith::DivFOp>(op)) {
      if (isScale(op->getOperand(1)))
        return outOf(op->getOperand(1), true, op->getOperand(0));
      return isFactor(op->getOperand(1)) && into(0);
    }
    if (auto select = dyn_cast<arith::SelectOp>(op))
      for (unsigned operand : {1, 2})
        if (isZero(op->getOperand(3 - operand)) && isFactor(select.getCondition()))
          return into(operand);
    return false;
  }

  /// Whether a reduction of a tile can compute it beside other values: it is made of no product.
  bool isLight(Value value) {
    return !anyBehind(
        value, [](Value one) { return one.getDefiningOp<ReduceOp>() != nullptr; },
        [&](Value one) {
          const TempDefinition *definition = chain.definitionOf(one);
          return definition ? WriteOp(definition->write).getValue() : Value();
        });
  }

  //===--------------------------------------------------------------------===//
  // Statements
  //===--------------------------------------------------------------------===//

  bool isInlined(Operation *op) {
    return llvm::any_of(chain.inlined,
                        [&](auto &entry) { return entry.second.statement->isAncestor(op); });
  }

  /// Elements are read where they are computed, not by sums that are computed there too.
  bool staysInStatements() {
    SmallVector<Operation *> statements{chain.product};
    for (auto &[tensor, definition] : chain.inlined)
      statements.push_back(definition.statement);
    for (Operation *statement : statements) {
      WalkResult result = statement->walk([&](ReadOp read) {
        Operation *around = read->getParentOp();
        while (around != statement && (around == chain.sum || chain.reductions.contains(around)))
          around = around->getParentOp();
        if (around == statement || !chain.inlined.contains(read.getTensor()))
          return WalkResult::advance();
        fail(around, describe(around) + " reads " + describeTensor(read.getTensor()) +
                         ", which is to be computed in the loop");
        return WalkResult::interrupt();
      });
      if (result.wasInterrupted())
        return false;
    }
    return true;
  }

  /// Operations of the product's statement that compute the left factor and nothing else.
  llvm::SetVector<Operation *> onlyForLeft() {
    llvm::SetVector<Operation *> found;
    if (Operation *last = chain.left.getDefiningOp(); last && chain.product->isAncestor(last))
      found.insert(last);
    for (unsigned next = 0; next < found.size(); ++next)
      for (Value operand : found[next]->getOperands())
        if (Operation *op = operand.getDefiningOp(); op && chain.product->isAncestor(op))
          if (llvm::all_of(op->getUsers(), [&](Operation *user) { return found.contains(user); }))
            found.insert(op);
    return found;
  }

  bool isReadElsewhere(Value tensor) {
    return llvm::any_of(tensor.getUsers(), [&](Operation *user) {
      return !chain.product->isAncestor(user) && !isInlined(user);
    });
  }

  /// Nobody else reads elements that will not be there (unless they are shared), nor does the
  /// product's statement for anything else.
  bool areAlone() {
    llvm::SetVector<Operation *> ofProduct;
    if (chain.column)
      ofProduct = onlyForLeft();
    auto isOfProduct = [&](Operation *user) {
      return chain.column ? ofProduct.contains(user)
                          : chain.reductions.contains(user->getParentOp());
    };
    for (auto &[tensor, definition] : chain.inlined) {
      if (!chain.isElement(definition.write.getValue()))
        continue;
      for (Operation *user : tensor.getUsers())
        if (!isOfProduct(user) && !isInlined(user) && (!shared || chain.product->isAncestor(user)))
          return fail(user, describeTensor(tensor) +
                                ", which the softmax is made of, is read by another statement too");
    }
    return true;
  }

  /// What the chain is made of is the same where the product stands; statements that read values
  /// of its rows can stand behind it.
  bool staysTheSame() {
    Operation *first = chain.product;
    for (auto &[tensor, definition] : chain.inlined)
      if (definition.statement->isBeforeInBlock(first))
        first = definition.statement;
    llvm::SetVector<Value> reads, late, lateReads;
    for (Operation *op = first; op != chain.product; op = op->getNextNode()) {
      Accesses own = accessesOf(op);
      if (isInlined(op)) {
        reads.insert(own.reads.begin(), own.reads.end());
        continue;
      }
      bool isLate = llvm::any_of(own.reads,
                                 [&](Value tensor) {
                                   return chain.kept.contains(tensor) || late.contains(tensor);
                                 }) ||
                    llvm::any_of(own.writes, [&](Value tensor) {
                      return late.contains(tensor) || lateReads.contains(tensor);
                    });
      for (Value written : own.writes)
        if (reads.contains(written))
          return fail(op, describeTensor(written) +
                              ", which the scores are made of, changes before the product");
      if (!isLate)
        continue;
      chain.readers.push_back(op);
      late.insert(own.writes.begin(), own.writes.end());
      lateReads.insert(own.reads.begin(), own.reads.end());
    }
    Accesses last = accessesOf(chain.product);
    for (auto &[tensor, definition] : chain.inlined)
      for (Value read : accessesOf(definition.statement).reads)
        last.reads.insert(read);
    for (Value tensor : last.reads)
      if (late.contains(tensor))
        return fail(chain.product, describeTensor(tensor) +
                                       " is made of values of the loop's rows before the product");
    return llvm::none_of(
               last.writes,
               [&](Value tensor) { return late.contains(tensor) || lateReads.contains(tensor); }) ||
           fail(chain.product, "the product writes what a statement between reads");
  }
};
} // namespace

Matched<RowChain> tegula::matchRowChain(ParallelOp statement, bool shared) {
  return Matcher(statement, shared).run();
}

Matched<RowChain> tegula::matchRowValues(ParallelOp statement) {
  return Matcher(statement, /*shared=*/false).runWithoutProduct();
}
