//===- Access.cpp - Accesses of statements --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/Access.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

SmallVector<Access> tegula::accessesIn(Operation *statement) {
  SmallVector<Access> accesses;
  auto add = [&](Operation *op, Value tensor, bool writes, ArrayRef<ValueExpr> subscripts) {
    if (statement->isAncestor(tensor.getParentBlock()->getParentOp()))
      return;
    accesses.push_back({op, tensor, writes, {subscripts.begin(), subscripts.end()}});
  };
  statement->walk([&](Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      add(op, read.getTensor(), false, read.getSubscriptExprs());
    } else if (auto write = dyn_cast<WriteOp>(op)) {
      add(op, write.getTensor(), true, write.getSubscriptExprs());
    } else if (auto sort = dyn_cast<SortOp>(op)) {
      for (Value tensor : {sort.getValues(), sort.getPositions()}) {
        size_t before = accesses.size();
        add(op, tensor, true, sort.getSubscriptExprs());
        if (accesses.size() > before)
          accesses.back().subscripts.push_back(std::nullopt);
      }
    }
  });
  return accesses;
}

bool tegula::conflict(Operation *a, Operation *b) {
  Accesses first = accessesOf(a), second = accessesOf(b);
  auto meets = [](const SetVector<Value> &written, const Accesses &other) {
    return llvm::any_of(written, [&](Value tensor) {
      return other.reads.contains(tensor) || other.writes.contains(tensor);
    });
  };
  return meets(first.writes, second) || meets(second.writes, first);
}

bool tegula::isDefinedOutside(const ValueExpr &expr, Operation *op) {
  return llvm::none_of(expr.operands(), [&](Value value) {
    return op->isAncestor(value.getParentBlock()->getParentOp());
  });
}

namespace {
/// A subscript as `weight*axis + rest`, rest without the axis.
struct Linear {
  IndexExpr weight;
  ValueExpr rest;
};
} // namespace

static std::optional<Linear> linearIn(const ValueExpr &subscript, Value axis) {
  if (!subscript.uses(axis))
    return std::nullopt;
  ValueExpr weight = subscript.substitute(axis, ValueExpr(axis) + 1) - subscript;
  if (!weight.operands().empty())
    return std::nullopt;
  ValueExpr rest = subscript - weight * axis;
  if (rest.uses(axis))
    return std::nullopt;
  return Linear{weight.expr(), rest};
}

static bool isDigit(const Linear &linear, Value axis, Operation *place, Prover &prover) {
  if (linear.weight.asConstant() == 1 && isDefinedOutside(linear.rest, axesOpOf(axis)))
    return true;
  AxisScope scope(prover, place);
  return scope.provesInBounds(linear.rest, linear.weight);
}

std::optional<IndexExpr> tegula::weightIn(const ValueExpr &subscript, Value axis) {
  std::optional<Linear> linear = linearIn(subscript, axis);
  return linear ? std::optional(linear->weight) : std::nullopt;
}

std::optional<IndexExpr> tegula::digitOf(const ValueExpr &subscript, Value axis, Operation *place,
                                         Prover &prover) {
  std::optional<Linear> linear = linearIn(subscript, axis);
  if (!linear || !isDigit(*linear, axis, place, prover))
    return std::nullopt;
  return linear->weight;
}

namespace {
/// An access with what its subscripts say, found when first asked for, once for all other accesses
/// that it is compared with: which axes of its statement are in them, and their ranges.
class KnownAccess {
public:
  struct Digit {
    Value axis;
    unsigned dim;
    Linear linear;
    std::optional<bool> proved; ///< isDigit, which costs a proof
  };

  KnownAccess(Access access, ParallelOp statement)
      : access(std::move(access)), statement(statement) {}

  MutableArrayRef<Digit> digits() {
    if (!found) {
      found.emplace();
      for (auto [dim, subscript] : llvm::enumerate(access.subscripts)) {
        if (!subscript)
          continue;
        for (Value operand : subscript->operands())
          if (axesOpOf(operand) == statement)
            if (std::optional<Linear> linear = linearIn(*subscript, operand))
              found->push_back({operand, unsigned(dim), std::move(*linear), std::nullopt});
      }
    }
    return *found;
  }

  bool proves(Digit &digit, Prover &prover) {
    if (!digit.proved)
      digit.proved = isDigit(digit.linear, digit.axis, access.op, prover);
    return *digit.proved;
  }

  const Range &range(unsigned dim, Prover &prover) {
    ranges.resize(access.subscripts.size());
    if (!ranges[dim]) {
      AxisScope scope(prover, access.op);
      ranges[dim] = scope.rangeOf(*access.subscripts[dim]);
    }
    return *ranges[dim];
  }

  Access access;
  ParallelOp statement;

private:
  std::optional<SmallVector<Digit>> found;
  SmallVector<std::optional<Range>> ranges; ///< of the subscripts
};
} // namespace

/// Adds the pairs of lower digits, in what digits of equal weight leave of two subscripts.
static void addLowerPairs(const ValueExpr &a, const ValueExpr &b, KnownAccess &first,
                          KnownAccess &second, Prover &prover, SmallVectorImpl<AxisPair> &pairs) {
  for (Value own : a.operands())
    for (Value other : b.operands()) {
      if (axesOpOf(own) != first.statement || axesOpOf(other) != second.statement)
        continue;
      std::optional<Linear> left = linearIn(a, own), right = linearIn(b, other);
      if (!left || !right || left->weight != right->weight)
        continue;
      bool isLast = left->weight.asConstant() == 1;
      if (isLast && !(left->rest == right->rest))
        continue;
      if (!isDigit(*left, own, first.access.op, prover) ||
          !isDigit(*right, other, second.access.op, prover))
        continue;
      pairs.push_back({own, other});
      if (!isLast)
        addLowerPairs(left->rest, right->rest, first, second, prover, pairs);
    }
}

/// The pairs that one pair of accesses allows: axes that a dim holds in both as digits of the same
/// weight (and, where they stand alone, with the same offset).
static SmallVector<AxisPair> pairsOf(KnownAccess &a, KnownAccess &b, Prover &prover) {
  SmallVector<AxisPair> pairs;
  for (KnownAccess::Digit &own : a.digits())
    for (KnownAccess::Digit &other : b.digits()) {
      if (own.dim != other.dim || own.linear.weight != other.linear.weight)
        continue;
      // Alone in its dim an axis may stand with an offset: it must be the same one.
      bool isLast = own.linear.weight.asConstant() == 1;
      if (isLast && !(own.linear.rest == other.linear.rest))
        continue;
      // What costs a proof comes last.
      if (!a.proves(own, prover) || !b.proves(other, prover))
        continue;
      pairs.push_back({own.axis, other.axis});
      if (!isLast)
        addLowerPairs(own.linear.rest, other.linear.rest, a, b, prover, pairs);
    }
  return pairs;
}

/// Whether a dim's subscript is an axis that goes through all of it, so that no other lies apart.
static bool coversDim(const Access &access, unsigned dim) {
  Value axis = access.subscripts[dim]->asValue();
  if (!axis || !axesOpOf(axis) || lowOf(axis).asConstant() != 0)
    return false;
  IndexExprAttr extent = cast<TglTensorType>(access.tensor.getType()).getDims()[dim];
  return highOf(axis).operands().empty() && highOf(axis).expr() == extent.getExpr();
}

/// Whether some dim keeps the two apart: the largest subscript of one lies below the smallest of
/// the other (two pieces of a tensor).
static bool areApart(KnownAccess &a, KnownAccess &b, Prover &prover) {
  for (auto [dim, left, right] : llvm::enumerate(a.access.subscripts, b.access.subscripts)) {
    // Pieces differ by an offset; what is the same in both overlaps.
    if (!left || !right || *left == *right || coversDim(a.access, dim) || coversDim(b.access, dim))
      continue;
    const Range &x = a.range(dim, prover), &y = b.range(dim, prover);
    auto below = [&](const std::optional<IndexExpr> &max, const std::optional<IndexExpr> &min) {
      return max && min && max->isSize() && min->isSize() &&
             prover.proves(Condition::lessThan(*max, *min));
    };
    if (below(x.max, y.min) || below(y.max, x.min))
      return true;
  }
  return false;
}

/// What is in both lists.
static void intersect(std::optional<SmallVector<AxisPair>> &all, SmallVector<AxisPair> pairs) {
  if (!all) {
    all = std::move(pairs);
    return;
  }
  llvm::erase_if(*all, [&](const AxisPair &pair) { return !llvm::is_contained(pairs, pair); });
}

/// Keeps a one-to-one choice of pairs whose bounds agree, in the order of the first parallel's
/// axes.
static SmallVector<AxisPair> consistent(ArrayRef<AxisPair> candidates, ParallelOp first) {
  SmallVector<AxisPair> chosen;
  for (Value axis : first.getAxes()) {
    for (const AxisPair &pair : candidates) {
      if (pair.first != axis ||
          llvm::any_of(chosen, [&](const AxisPair &other) { return other.second == pair.second; }))
        continue;
      auto mapped = [&](const ValueExpr &bound) {
        return bound.substitute([&](Value value) -> std::optional<ValueExpr> {
          for (const AxisPair &other : chosen)
            if (other.second == value)
              return ValueExpr(other.first);
          return std::nullopt;
        });
      };
      // Bounds of a shared axis use shared axes, chosen before it, and values from outside.
      bool closed =
          llvm::all_of(lowOf(axis).operands(),
                       [&](Value operand) {
                         return axesOpOf(operand) != first ||
                                llvm::any_of(chosen, [&](const AxisPair &other) {
                                  return other.first == operand;
                                });
                       }) &&
          llvm::all_of(highOf(axis).operands(), [&](Value operand) {
            return axesOpOf(operand) != first || llvm::any_of(chosen, [&](const AxisPair &other) {
                     return other.first == operand;
                   });
          });
      if (closed && mapped(lowOf(pair.second)) == lowOf(axis) &&
          mapped(highOf(pair.second)) == highOf(axis)) {
        chosen.push_back(pair);
        break;
      }
    }
  }
  return chosen;
}

static SharedAxes findShared(ParallelOp first, MutableArrayRef<KnownAccess> left,
                             MutableArrayRef<KnownAccess> right, Prover &prover) {
  std::optional<SmallVector<AxisPair>> decided;
  SmallVector<AxisPair> suggested;
  size_t suggestedRank = 0;
  for (KnownAccess &x : left)
    for (KnownAccess &y : right) {
      const Access &a = x.access, &b = y.access;
      if (a.tensor != b.tensor)
        continue;
      if (a.writes || b.writes) {
        if (!areApart(x, y, prover))
          intersect(decided, pairsOf(x, y, prover));
        if (decided && decided->empty())
          return {{}, /*flow=*/true}; // whatever else there is
      } else if (!decided && a.subscripts.size() >= suggestedRank) {
        // What both read does not bind; tensors of the highest rank say most.
        if (a.subscripts.size() > suggestedRank)
          suggested.clear();
        suggestedRank = a.subscripts.size();
        llvm::append_range(suggested, pairsOf(x, y, prover));
      }
    }
  SharedAxes result;
  result.flow = decided.has_value();
  // Without a common input the dims of the results pair the axes.
  if (!decided && suggested.empty())
    for (KnownAccess &x : left)
      for (KnownAccess &y : right)
        if (x.access.writes && y.access.writes &&
            x.access.subscripts.size() == y.access.subscripts.size())
          llvm::append_range(suggested, pairsOf(x, y, prover));
  result.pairs = consistent(decided ? *decided : suggested, first);
  return result;
}

struct AxisSharing::State {
  using Accesses = SmallVector<KnownAccess, 0>;

  explicit State(Prover &prover) : prover(prover) {}

  Accesses &accessesOf(ParallelOp statement) {
    std::unique_ptr<Accesses> &known = accesses[statement];
    if (!known) {
      known = std::make_unique<Accesses>();
      for (Access &access : accessesIn(statement))
        known->emplace_back(std::move(access), statement);
    }
    return *known;
  }

  Prover &prover;
  DenseMap<Operation *, std::unique_ptr<Accesses>> accesses;
  llvm::MapVector<std::pair<Operation *, Operation *>, SharedAxes> pairs;
};

AxisSharing::AxisSharing(Prover &prover) : state(std::make_unique<State>(prover)) {}
AxisSharing::~AxisSharing() = default;

const SharedAxes &AxisSharing::of(ParallelOp first, ParallelOp second) {
  auto [entry, isNew] = state->pairs.try_emplace({first, second});
  if (isNew)
    entry->second =
        findShared(first, state->accessesOf(first), state->accessesOf(second), state->prover);
  return entry->second;
}

void AxisSharing::forget(ParallelOp statement) {
  state->accesses.erase(statement);
  state->pairs.remove_if([&](const auto &entry) {
    return entry.first.first == statement || entry.first.second == statement;
  });
}
