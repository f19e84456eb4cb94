//===- ProveCover.cpp - Pieces that together fill a tensor ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A piece is brought into the form of an interval for each dim, whose ends may depend on the
// coordinates in earlier dims. A sweep along the first dim then cuts it where pieces begin and end;
// in each part the pieces that span it must cover the remaining dims. Subscripts with a constant
// stride split a dim into residue classes first.
//
//===----------------------------------------------------------------------===//

#include "symbolic/ProveState.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <numeric>
#include <set>

using namespace tegula;

namespace {
constexpr unsigned coverSizes = 40, coverPoints = 3000, maxProofs = 600;
// Coordinates of the tensor are dims from here on, clear of the pieces' own.
constexpr unsigned firstCoordinate = 1u << 20;

/// lo <= coordinate < hi, in steps of `stride` from lo.
struct Interval {
  IndexExpr lo, hi;
  int64_t stride = 1;
};
using Box = std::vector<Interval>;

IndexExpr replaced(const IndexExpr &expr, const std::map<unsigned, IndexExpr> &values) {
  return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    auto found = values.find(var.position());
    if (var.isSymbol() || found == values.end())
      return std::nullopt;
    return found->second;
  });
}

/// A linear part of a subscript.
struct Digit {
  IndexExpr weight;
  const RangedVar *var;
};

/// Splits `expr` into weights of `open` variables and a rest; false unless linear in them.
bool split(const IndexExpr &expr, llvm::ArrayRef<const RangedVar *> open,
           std::vector<Digit> &digits, IndexExpr &rest) {
  rest = expr;
  for (const RangedVar *var : open) {
    auto at = [&](int64_t value) { return replaced(rest, {{var->position, IndexExpr(value)}}); };
    IndexExpr base = at(0), weight = at(1) - base;
    // Linear when putting the two together gives it back.
    if (base + weight * IndexExpr::dim(var->position) != rest)
      return false;
    if (weight != IndexExpr(0))
      digits.push_back({weight, var});
    rest = base;
  }
  for (const Digit &digit : digits)
    for (const RangedVar *var : open)
      if (digit.weight.uses(IndexVar::dim(var->position)))
        return false;
  return true;
}

class Cover {
public:
  Cover(Prover &prover, llvm::ArrayRef<IndexExpr> dims) : prover(prover), dims(dims) {}

  /// The piece as a box of intervals; nothing where it has no such form.
  std::optional<Box> boxOf(const Image &piece);
  bool covers(llvm::ArrayRef<Box> boxes) { return coversFrom(0, boxes, Domain()); }

private:
  bool proves(const Condition &condition, const Domain &domain) {
    if (condition.kind == Condition::NonNegative)
      if (std::optional<int64_t> c = condition.lhs.asConstant())
        return *c >= 0;
    return ++proofs <= maxProofs && prover.proves(condition, domain);
  }
  bool coversFrom(size_t dim, llvm::ArrayRef<Box> boxes, const Domain &context);
  /// Goes on from `from` to `size`. Pieces that follow each other, as those of `cat` do, need no
  /// proof: `exactly` looks at those alone that begin where the last one ended.
  bool sweep(size_t dim, llvm::ArrayRef<Box> boxes, const Domain &context, const IndexExpr &from,
             const IndexExpr &size, std::vector<IndexExpr> &used, bool exactly);
  bool sweep(size_t dim, llvm::ArrayRef<Box> boxes, const Domain &context, const IndexExpr &size) {
    std::vector<IndexExpr> used;
    return sweep(dim, boxes, context, 0, size, used, /*exactly=*/true) ||
           sweep(dim, boxes, context, 0, size, used, /*exactly=*/false);
  }

  Prover &prover;
  llvm::ArrayRef<IndexExpr> dims;
  unsigned proofs = 0;
};

std::optional<Box> Cover::boxOf(const Image &piece) {
  if (!piece.domain.conditions.empty())
    return std::nullopt;
  std::map<unsigned, IndexExpr> values; // variables in terms of coordinates
  Box box;
  Domain coordinates;
  for (auto [k, subscript] : llvm::enumerate(piece.subscripts)) {
    llvm::SmallVector<const RangedVar *, 4> open;
    for (const RangedVar &var : piece.domain.vars)
      if (!values.count(var.position) && subscript.uses(IndexVar::dim(var.position)))
        open.push_back(&var);
    std::vector<Digit> digits;
    IndexExpr rest;
    if (!split(replaced(subscript, values), open, digits, rest))
      return std::nullopt;
    IndexExpr coordinate = IndexExpr::dim(firstCoordinate + k);
    auto bound = [&](const IndexExpr &expr) -> std::optional<IndexExpr> {
      IndexExpr result = replaced(expr, values);
      for (const RangedVar &var : piece.domain.vars)
        if (result.uses(IndexVar::dim(var.position)))
          return std::nullopt;
      return result;
    };
    if (digits.empty()) {
      box.push_back({rest, rest + 1});
    } else if (digits.size() == 1 && digits[0].weight.asConstant()) {
      int64_t weight = *digits[0].weight.asConstant();
      std::optional<IndexExpr> lo = bound(digits[0].var->lo), hi = bound(digits[0].var->hi);
      if (!lo || !hi)
        return std::nullopt;
      if (weight > 0)
        box.push_back({rest + weight * *lo, rest + weight * (*hi - 1) + 1, weight});
      else
        box.push_back({rest + weight * (*hi - 1), rest + weight * *lo + 1, -weight});
      values[digits[0].var->position] = IndexExpr::floorDiv(coordinate - rest, weight);
    } else {
      // Digits of a mixed radix fill an interval: each weighs the extent of all before it.
      IndexExpr extent = 1, start = rest;
      std::vector<bool> used(digits.size(), false);
      for (size_t count = 0; count < digits.size(); ++count) {
        bool found = false;
        for (size_t i = 0; i < digits.size() && !found; ++i) {
          if (used[i] || !proves(Condition::equal(digits[i].weight, extent), {}))
            continue;
          std::optional<IndexExpr> lo = bound(digits[i].var->lo), hi = bound(digits[i].var->hi);
          // Two negative extents would make a positive product.
          if (!lo || !hi || !lo->isSize() || !hi->isSize() ||
              !proves(Condition::lessEqual(*lo, *hi), {}))
            return std::nullopt;
          used[i] = found = true;
          start = start + digits[i].weight * *lo;
          extent = extent * (*hi - *lo);
        }
        if (!found)
          return std::nullopt;
      }
      box.push_back({start, start + extent});
      // The digits themselves are not needed further on, as a rule: later uses give up.
    }
  }
  // Variables that stand in no subscript must have a value for the elements to be written.
  for (const RangedVar &var : piece.domain.vars) {
    bool stands = llvm::any_of(piece.subscripts, [&](const IndexExpr &subscript) {
      return subscript.uses(IndexVar::dim(var.position));
    });
    if (!stands &&
        !proves(Condition::lessThan(replaced(var.lo, values), replaced(var.hi, values)), {}))
      return std::nullopt;
  }
  // Ends may depend on earlier coordinates only.
  for (const Interval &interval : box)
    for (const IndexExpr &end : {interval.lo, interval.hi})
      for (const IndexVar &var : end.variables())
        if (!var.isSymbol() && var.position() < firstCoordinate)
          return std::nullopt;
  return box;
}

bool Cover::coversFrom(size_t dim, llvm::ArrayRef<Box> boxes, const Domain &context) {
  if (dim == dims.size())
    return !boxes.empty();
  if (boxes.empty())
    return false;
  int64_t stride = 1;
  for (const Box &box : boxes)
    if (stride = std::lcm(stride, box[dim].stride); stride > 16)
      return false;
  IndexExpr variable = IndexExpr::dim(firstCoordinate + dim);
  if (stride == 1)
    return sweep(dim, boxes, context, dims[dim]);
  // Residue classes: the coordinate is stride*u + r.
  for (int64_t r = 0; r < stride; ++r) {
    std::vector<Box> members;
    for (const Box &box : boxes) {
      const Interval &interval = box[dim];
      auto inClass = [&](const IndexExpr &end) { // first u whose coordinate is not below `end`
        return IndexExpr::floorDiv(end - r + (stride - 1), stride);
      };
      if (interval.stride != 1) {
        IndexExpr distance = interval.lo - r; // a multiple of the interval's stride, or never
        IndexExpr rest = IndexExpr::mod(distance, interval.stride);
        std::optional<int64_t> constant = rest.asConstant();
        if (!constant || (*constant == 0 && interval.stride != stride))
          return false;
        if (*constant != 0)
          continue;
      }
      members.push_back(box);
      members.back()[dim] = {inClass(interval.lo), inClass(interval.hi), 1};
    }
    IndexExpr coordinate = stride * variable + r;
    for (Box &box : members)
      for (size_t later = dim + 1; later < dims.size(); ++later) {
        box[later].lo = replaced(box[later].lo, {{firstCoordinate + dim, coordinate}});
        box[later].hi = replaced(box[later].hi, {{firstCoordinate + dim, coordinate}});
      }
    IndexExpr count = IndexExpr::floorDiv(dims[dim] - r + (stride - 1), stride);
    if (!sweep(dim, members, context, count))
      return false;
  }
  return true;
}

bool Cover::sweep(size_t dim, llvm::ArrayRef<Box> boxes, const Domain &context,
                  const IndexExpr &from, const IndexExpr &size, std::vector<IndexExpr> &used,
                  bool exactly) {
  if (size == from || (!exactly && proves(Condition::lessEqual(size, from), context)))
    return true;
  if (proofs > maxProofs)
    return false;
  std::vector<const Box *> open; // begin at `from` or before
  std::vector<IndexExpr> cuts;
  auto addCut = [&](const IndexExpr &cut) {
    if (cut != from && !llvm::is_contained(cuts, cut) && !llvm::is_contained(used, cut))
      cuts.push_back(cut);
  };
  for (const Box &box : boxes)
    if (box[dim].lo == from ||
        (!exactly && proves(Condition::lessEqual(box[dim].lo, from), context))) {
      open.push_back(&box);
      addCut(box[dim].hi);
    }
  if (open.empty())
    return false;
  if (!exactly)
    for (const Box &box : boxes)
      addCut(box[dim].lo);
  for (const IndexExpr &cut : cuts) {
    std::vector<Box> spanning;
    for (const Box *box : open)
      if ((*box)[dim].hi == cut ||
          (!exactly && proves(Condition::lessEqual(cut, (*box)[dim].hi), context)))
        spanning.push_back(*box);
    if (spanning.empty())
      continue;
    Domain inner = context;
    inner.add(firstCoordinate + dim, from, IndexExpr::min(cut, size));
    if (dim + 1 < dims.size() && !coversFrom(dim + 1, spanning, inner))
      continue;
    used.push_back(cut);
    if (sweep(dim, boxes, context, cut, size, used, exactly))
      return true;
    used.pop_back();
  }
  return false;
}
} // namespace

Outcome Prover::covers(llvm::ArrayRef<Image> pieces, llvm::ArrayRef<IndexExpr> dims) {
  Outcome outcome;
  if (isTooLarge(dims, Domain()) || llvm::any_of(pieces, [](const Image &piece) {
        return isTooLarge(piece.subscripts, piece.domain);
      }))
    return outcome;
  Cover cover(*this, dims);
  std::vector<Box> boxes;
  for (const Image &piece : pieces) {
    assert(piece.subscripts.size() == dims.size() && "an image in a tensor of another rank");
    if (std::optional<Box> box = cover.boxOf(piece))
      boxes.push_back(std::move(*box));
  }
  if (cover.covers(boxes)) {
    outcome.verdict = Verdict::Proved;
    return outcome;
  }

  // Small sizes: list what is written, then look for what is not.
  std::vector<IndexExpr> used(dims.begin(), dims.end());
  for (const Image &piece : pieces) {
    used.insert(used.end(), piece.subscripts.begin(), piece.subscripts.end());
    for (const RangedVar &var : piece.domain.vars) {
      used.push_back(var.lo);
      used.push_back(var.hi);
    }
    for (const Condition &c : piece.domain.conditions) {
      used.push_back(c.lhs);
      used.push_back(c.rhs);
    }
  }
  Domain all;
  for (auto [k, dim] : llvm::enumerate(dims))
    all.add(firstCoordinate + k, 0, dim);
  SizeSampler sampler(state->facts, used);
  PointWalker everything(sampler, all, {});
  std::vector<PointWalker> walkers;
  std::vector<std::vector<IndexProgram>> programs;
  for (const Image &piece : pieces) {
    walkers.emplace_back(sampler, piece.domain, piece.subscripts);
    programs.emplace_back();
    for (const IndexExpr &subscript : piece.subscripts) {
      std::optional<IndexProgram> program = sampler.compile(subscript);
      if (!program)
        return outcome;
      programs.back().push_back(std::move(*program));
    }
  }
  unsigned passing = 0, failing = 0;
  bool exhaustive = false;
  for (unsigned i = 0; i < coverSizes && sampler.next(); ++i) {
    std::set<std::vector<int64_t>> written;
    bool complete = true;
    for (auto [walker, subscripts] : llvm::zip_equal(walkers, programs))
      complete &= walker.walk(coverPoints, [&, &subscripts = subscripts] {
        std::vector<int64_t> element;
        for (const IndexProgram &program : subscripts)
          element.push_back(program.run(sampler.slots).value_or(INT64_MIN));
        written.insert(std::move(element));
        return true;
      });
    if (!complete)
      continue; // what is missing may stand where nothing was listed
    bool fails = false, any = false;
    bool sawAll = everything.walk(coverPoints, [&] {
      any = true;
      std::vector<int64_t> element;
      for (size_t k = 0; k < dims.size(); ++k)
        element.push_back(sampler.slots[*sampler.slotOf(IndexVar::dim(firstCoordinate + k))]);
      if (written.count(element))
        return true;
      fails = true;
      if (!outcome.counterexample) {
        outcome.counterexample.emplace();
        outcome.counterexample->sizes = sampler.sizes();
        for (auto [k, value] : llvm::enumerate(element))
          outcome.counterexample->point.push_back({k, value});
      }
      return false;
    });
    failing += fails;
    passing += any && !fails;
    exhaustive = !sampler.hasSymbols() && (sawAll || fails);
  }
  outcome.failsEverywhereTried = failing && !passing;
  if (failing)
    outcome.verdict = exhaustive ? Verdict::Refuted : Verdict::Depends;
  else if (exhaustive)
    outcome.verdict = Verdict::Proved;
  if (outcome.verdict == Verdict::Proved || outcome.verdict == Verdict::Refuted)
    return outcome;

  // One piece that is a box: each dim on its own.
  if (boxes.size() == 1 && pieces.size() == 1) {
    for (auto [interval, dim] : llvm::zip_equal(boxes[0], dims))
      for (const IndexExpr &rest : {-interval.lo, interval.hi - dim})
        if (interval.stride != 1 || !rest.isSize()) {
          outcome.suffices.clear();
          return outcome;
        } else if (!proves(Condition::nonNegative(rest))) {
          outcome.suffices.push_back(Condition::nonNegative(rest));
        }
  }
  return outcome;
}
