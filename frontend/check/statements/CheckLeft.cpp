//===- CheckLeft.cpp - Left sides of equations ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The left side of an equation: which of its names are new indices, the ranges of those, its
// subscripts and their bounds, and the dims that it gives a temporary.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckLeft.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckExact.h"
#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckRange.h"
#include "frontend/check/CheckRead.h"
#include "frontend/check/CheckSizes.h"

using namespace tegula;
using namespace tegula::checked;

/// Names in an expression that stand for values, other than the indices of its reductions.
static void collectNames(const ast::Expr &e, llvm::SmallVectorImpl<const ast::Ident *> &names) {
  size_t first = names.size();
  if (e.kind == ast::Expr::Name)
    names.push_back(&e.name);
  auto collectRange = [&](const std::optional<ast::Range> &range) {
    if (range && range->lo)
      collectNames(*range->lo, names);
    if (range && range->hi)
      collectNames(*range->hi, names);
  };
  for (const ast::ExprPtr &operand : e.operands)
    if (operand)
      collectNames(*operand, names);
  for (const ast::Subscript &subscript : e.subscripts) {
    if (subscript.expr)
      collectNames(*subscript.expr, names);
    collectRange(subscript.range);
    for (const ast::Subscript &member : subscript.members) {
      if (member.expr)
        collectNames(*member.expr, names);
      collectRange(member.range);
    }
  }
  for (const ast::Argument &argument : e.arguments)
    collectNames(*argument.value, names);
  for (const ast::ForItem &item : e.items) {
    collectRange(item.range);
    if (item.filter)
      collectNames(*item.filter, names);
  }
  auto isOwn = [&](const ast::Ident *name) {
    return llvm::any_of(e.items,
                        [&](const ast::ForItem &item) { return item.index.name == name->name; });
  };
  names.erase(std::remove_if(names.begin() + first, names.end(), isOwn), names.end());
}

bool tegula::expandLeft(CheckContext &ctx, LeftSide &left) {
  size_t ellipses = 0;
  for (const ast::Subscript &subscript : left.target->subscripts) {
    if (subscript.kind == ast::Subscript::Ellipsis) {
      if (!ctx.frame->ellipsis || ellipses++) {
        ctx.report(Code::EllipsisMisuse, subscript.span,
                   ellipses > 1 ? llvm::Twine("'...' stands twice on the left")
                                : "'...' stands for dims that a parameter shows as '...', and this "
                                  "kernel has none");
        return false;
      }
      for (size_t q = 0; q != ctx.frame->ellipsis->size(); ++q) {
        LeftSide::Sub sub;
        sub.ast = &subscript;
        sub.isIndex = true;
        sub.name = {"..." + std::to_string(q), subscript.span};
        sub.ellipsisDim = (*ctx.frame->ellipsis)[q];
        left.subs.push_back(std::move(sub));
      }
      continue;
    }
    LeftSide::Sub sub;
    sub.ast = &subscript;
    if (subscript.kind == ast::Subscript::Single && subscript.expr->kind == ast::Expr::Name) {
      const ast::Ident &name = subscript.expr->name;
      Entity *entity = ctx.lookup(name.name);
      bool isOuter = entity && entity->kind != Entity::Tensor;
      if (entity && entity->kind == Entity::Poison)
        return false;
      if (!entity || subscript.range ||
          (entity->kind == Entity::Tensor && !entity->tensor->isElement)) {
        if (!checkIndexName(ctx, name))
          return false;
        sub.isIndex = true;
        sub.name = name;
      }
      (void)isOuter;
    } else if (subscript.range) {
      ctx.report(Code::BadTarget, subscript.span, "'in' follows an index name, not an expression")
          .note("write the range at the end: y[b, P + d] = x[b, d] for d in P");
      return false;
    }
    left.subs.push_back(std::move(sub));
  }
  if (left.info && left.info->tensor->dims.size() != left.subs.size() &&
      !(left.info->tensor->kind == Tensor::Temp && left.info->pieces.empty() &&
        !left.info->isComplete)) {
    rankMismatch(ctx, *left.info, left.subs.size(), left.target->span);
    return false;
  }
  llvm::StringSet<> seen;
  for (const LeftSide::Sub &sub : left.subs)
    if (sub.isIndex && !seen.insert(sub.name.name).second) {
      ctx.report(Code::DuplicateIndex, sub.name.span,
                 "index '" + sub.name.name + "' stands twice on the left")
          .note("for a diagonal write a condition: where(i == j, ..., 0)");
      return false;
    }
  return true;
}

static bool bindLeftIndex(CheckContext &ctx, LeftSide &left, const ast::Ident &name,
                          std::optional<std::pair<IndexExpr, IndexExpr>> range) {
  if (!range)
    return false;
  const Var *var = newVar(ctx, Var::Axis, name.name, range->first, range->second, name.span);
  defineIndex(ctx, left.scope, name, var);
  left.vars.push_back(var);
  return true;
}

namespace {
/// Gives each index on the left its range: as written, else that of the dim of a declared tensor,
/// else that of the dims that it subscripts on the right.
class LeftIndexBinder {
public:
  LeftIndexBinder(CheckContext &ctx, LeftSide &left) : ctx(ctx), left(left) {}
  bool run();

private:
  bool isBound(llvm::StringRef name) const { return left.scope.names.contains(name); }
  /// Nothing more is said of an index whose range is wrong.
  bool fail();
  std::optional<std::pair<IndexExpr, IndexExpr>> rangeOf(const ast::Range &written,
                                                         const ast::Ident &name);
  bool bindWritten(const ast::Ident &name, const ast::Range &range);
  void bindSubscript(const ast::Subscript &subscript, const ast::Ident &name);
  bool bindRangesOnLeft();
  bool bindRangesAtEnd();
  void bindRangesOnRight();
  void bindBareIndices();
  void collectNamesInside();
  bool inferRangeOf(const ast::Ident &name);
  void inferRanges();
  void reportUnknownRange(const ast::Ident &name);
  void reportUnknownRanges();

  CheckContext &ctx;
  LeftSide &left;
  bool failed = false;
  llvm::SmallVector<const ast::Ident *> pending; // without a range so far
  llvm::SmallVector<const ast::Expr *> bodies;   // where ranges are inferred from
};
} // namespace

bool LeftIndexBinder::fail() {
  for (const LeftSide::Sub &sub : left.subs) {
    if (sub.isIndex && !isBound(sub.name.name))
      ctx.poison(left.scope, sub.name, /*isIndex=*/true);
    for (const ast::Subscript &member : sub.ast->members)
      if (member.expr && member.expr->kind == ast::Expr::Name && !isBound(member.expr->name.name))
        ctx.poison(left.scope, member.expr->name, /*isIndex=*/true);
  }
  for (const ast::ForItem &item : left.trailing)
    if (!item.ellipsis && !isBound(item.index.name))
      ctx.poison(left.scope, item.index, /*isIndex=*/true);
  return false;
}

std::optional<std::pair<IndexExpr, IndexExpr>> LeftIndexBinder::rangeOf(const ast::Range &written,
                                                                        const ast::Ident &name) {
  bool onIndex = llvm::any_of(left.subs, [&](const LeftSide::Sub &sub) {
    auto stands = [&](llvm::StringRef index) {
      return (written.lo && mentions(*written.lo, index)) || mentions(*written.hi, index);
    };
    return (sub.isIndex && stands(sub.name.name)) ||
           llvm::any_of(sub.ast->members, [&](const ast::Subscript &member) {
             return member.expr && member.expr->kind == ast::Expr::Name &&
                    stands(member.expr->name.name);
           });
  });
  auto range = onIndex ? std::nullopt : evalRange(ctx, written, name.name);
  if (onIndex || (range && (!range->first.isSize() || !range->second.isSize()))) {
    ctx.report(Code::LoopBounds, written.span,
               "the range of '" + name.name + (left.rangeForm.empty() ? "' on the left" : "'") +
                   " cannot depend on an index or on data")
        .note("use where(...) or a filter: ... for " + name.name + " in SIZE if CONDITION");
    range.reset();
  }
  return range;
}

bool LeftIndexBinder::bindWritten(const ast::Ident &name, const ast::Range &range) {
  if (bindLeftIndex(ctx, left, name, rangeOf(range, name))) {
    ctx.writtenRanges[left.vars.back()] = &range;
    return true;
  }
  failed = true;
  ctx.poison(left.scope, name, /*isIndex=*/true);
  return false;
}

/// Binds an index whose range is written in its subscript.
void LeftIndexBinder::bindSubscript(const ast::Subscript &subscript, const ast::Ident &name) {
  // A rank has its range from topk's k=.
  if (Entity *known = isBound(name.name) ? ctx.lookup(name.name) : nullptr) {
    ctx.writtenRanges.erase(known->var);
    failed |= !requireWrittenRange(ctx, subscript);
    return;
  }
  bindWritten(name, *subscript.range);
}

bool LeftIndexBinder::bindRangesOnLeft() {
  for (LeftSide::Sub &sub : left.subs) {
    if (sub.isIndex && sub.ast->range)
      bindSubscript(*sub.ast, sub.name);
    if (sub.ast->kind != ast::Subscript::Group)
      continue;
    for (const ast::Subscript &member : sub.ast->members)
      if (member.range) {
        if (member.kind != ast::Subscript::Single || member.expr->kind != ast::Expr::Name) {
          ctx.report(Code::BadTarget, member.span, "'in' follows an index name, not an expression");
          return false;
        }
        if (isBound(member.expr->name.name)) {
          ctx.report(Code::DuplicateIndex, member.span,
                     "index '" + member.expr->name.name + "' stands twice on the left");
          return false;
        }
        if (!checkIndexName(ctx, member.expr->name))
          return false;
        bindSubscript(member, member.expr->name);
      }
  }
  return !failed;
}

bool LeftIndexBinder::bindRangesAtEnd() {
  for (const ast::ForItem &item : left.trailing) {
    if (item.ellipsis) {
      ctx.report(Code::EllipsisMisuse, item.span, "'...' has its range from the left side");
      return false;
    }
    if (isBound(item.index.name)) {
      ctx.report(Code::DuplicateIndex, item.index.span,
                 "index '" + item.index.name + "' has its range on the left already");
      return false;
    }
    if (!checkIndexName(ctx, item.index))
      return false;
    if (!item.range)
      pending.push_back(&item.index);
    else if (!bindWritten(item.index, *item.range))
      return false;
  }
  return true;
}

/// Ranges written where the index subscripts the right side.
void LeftIndexBinder::bindRangesOnRight() {
  for (const LeftSide::Sub &sub : left.subs)
    if (sub.isIndex && !sub.ellipsisDim && !isBound(sub.name.name))
      if (const ast::Range *range = writtenRange(sub.name.name, left.bodies))
        bindWritten(sub.name, *range);
}

/// Indices that stand bare run over the dims of a declared tensor.
void LeftIndexBinder::bindBareIndices() {
  for (size_t i = 0; i != left.subs.size(); ++i) {
    LeftSide::Sub &sub = left.subs[i];
    if (!sub.isIndex || isBound(sub.name.name))
      continue;
    if (sub.ellipsisDim)
      bindLeftIndex(ctx, left, sub.name, std::pair(IndexExpr(0), *sub.ellipsisDim));
    else if (left.isDeclared())
      bindLeftIndex(ctx, left, sub.name, std::pair(IndexExpr(0), left.info->tensor->dims[i]));
    else
      pending.push_back(&sub.name);
  }
}

/// Adds the names inside of expressions and groups to those that wait for a range.
void LeftIndexBinder::collectNamesInside() {
  llvm::SmallVector<const ast::Ident *> names;
  for (const LeftSide::Sub &sub : left.subs) {
    if (sub.isIndex)
      continue;
    if (sub.ast->expr)
      collectNames(*sub.ast->expr, names);
    for (const ast::Subscript &member : sub.ast->members)
      if (member.expr)
        collectNames(*member.expr, names);
  }
  for (const ast::Ident *name : names) {
    if (isBound(name->name) || isReserved(name->name) || ctx.lookup(name->name))
      continue;
    if (llvm::none_of(pending, [&](const ast::Ident *one) { return one->name == name->name; }))
      pending.push_back(name);
  }
}

bool LeftIndexBinder::inferRangeOf(const ast::Ident &name) {
  if (isBound(name.name))
    return true;
  if (const ast::Range *written = writtenRange(name.name, bodies)) {
    bindWritten(name, *written);
    return true;
  }
  auto range = inferRange(ctx, name.name, bodies, name.span);
  // A group on the left of a declared tensor gives the range of its last unknown member.
  if (!range && left.isDeclared()) {
    llvm::SmallVector<Extent> extents;
    for (size_t i = 0; i != left.subs.size(); ++i)
      if (left.subs[i].ast->kind == ast::Subscript::Group)
        collectExtents(ctx, *left.subs[i].ast, left.info->tensor->dims[i], left.target->name.name,
                       name.name, /*isOffset=*/false, extents);
    if (!extents.empty()) {
      requireExact(ctx, extents[0].exact, extents[0].span);
      range = std::pair(IndexExpr(0), extents[0].size);
    }
  }
  if (!range)
    return false;
  return bindLeftIndex(ctx, left, name, range);
}

void LeftIndexBinder::inferRanges() {
  while (!pending.empty()) {
    size_t before = pending.size();
    llvm::erase_if(pending, [&](const ast::Ident *name) { return inferRangeOf(*name); });
    if (pending.size() != before)
      continue;
    // Pieces of a temporary after the first: its dims so far.
    llvm::erase_if(pending, [&](const ast::Ident *name) {
      for (size_t i = 0; left.info && i != left.subs.size(); ++i)
        if (left.subs[i].isIndex && left.subs[i].name.name == name->name)
          return bindLeftIndex(ctx, left, *name,
                               std::pair(IndexExpr(0), left.info->tensor->dims[i]));
      return false;
    });
    if (pending.size() == before)
      break;
  }
}

void LeftIndexBinder::reportUnknownRange(const ast::Ident &name) {
  const LeftSide::Sub *group = nullptr;
  for (const LeftSide::Sub &sub : left.subs)
    for (const ast::Subscript &member : sub.ast->members)
      if (member.expr && member.expr->kind == ast::Expr::Name &&
          member.expr->name.name == name.name)
        group = &sub;
  if (group)
    ctx.report(Code::GroupRange, group->ast->span,
               "the range of '" + name.name +
                   "' does not follow: at most one range of a group is "
                   "inferred")
        .note("write the others, as in (g in G, e)");
  else {
    bool isIndex = llvm::any_of(
        left.subs, [&](const LeftSide::Sub &sub) { return sub.isIndex && &sub.name == &name; });
    bool isEquation = left.rangeForm.empty();
    std::string form =
        (isEquation ? ctx.text(left.target->span).str() + " = ... for " : left.rangeForm) +
        name.name + " in SIZE" + (isEquation ? "" : ")");
    rangeUnknown(ctx, name, form, bodies, isIndex && isEquation);
  }
}

void LeftIndexBinder::reportUnknownRanges() {
  bool onPoison =
      llvm::any_of(bodies, [&](const ast::Expr *body) { return body && readsPoison(ctx, *body); });
  for (const ast::Ident *name : pending) {
    if (onPoison) {
      // What is wrong there may be why; but say what the right side itself has to say.
      ctx.poison(left.scope, *name, /*isIndex=*/true);
      failed = true;
      continue;
    }
    reportUnknownRange(*name);
    ctx.poison(left.scope, *name, /*isIndex=*/true);
    failed = true;
  }
}

bool LeftIndexBinder::run() {
  for (const auto &[name, range] : left.presets)
    bindLeftIndex(ctx, left, name, range);
  if (!bindRangesOnLeft() || !bindRangesAtEnd())
    return fail();
  bindRangesOnRight();
  if (failed)
    return fail();
  bindBareIndices();
  collectNamesInside();
  bodies = left.bodies;
  for (const LeftSide::Sub &sub : left.subs)
    if (sub.ast->expr && !sub.isIndex)
      bodies.push_back(sub.ast->expr.get());
  inferRanges();
  reportUnknownRanges();
  return !failed;
}

bool tegula::bindLeftIndices(CheckContext &ctx, LeftSide &left) {
  return LeftIndexBinder(ctx, left).run();
}

bool tegula::evalLeft(CheckContext &ctx, LeftSide &left) {
  bool failed = false;
  for (size_t i = 0; i != left.subs.size(); ++i) {
    LeftSide::Sub &sub = left.subs[i];
    std::optional<Subscript> value;
    if (sub.isIndex) {
      Entity *entity = ctx.lookup(sub.name.name);
      assert(entity && entity->kind == Entity::Index && "bound by bindLeftIndices");
      value = Subscript{IndexExpr::dim(entity->var->id), {}, sub.ast->span, entity->var};
      sub.extent = entity->var->hi;
    } else if (sub.ast->kind == ast::Subscript::Group) {
      value = evalGroup(ctx, *sub.ast, left.info ? left.info->tensor->dims[i] : IndexExpr(0),
                        left.isDeclared() ? left.info : nullptr);
      // As large as the product of the ranges where the members are indices.
      IndexExpr product(1);
      for (const ast::Subscript &member : sub.ast->members) {
        Entity *entity =
            member.expr->kind == ast::Expr::Name ? ctx.lookup(member.expr->name.name) : nullptr;
        if (entity && entity->kind == Entity::Index && entity->var->hi.isSize())
          product = product * entity->var->hi;
        else
          product = IndexExpr(-1) * IndexExpr::dim(0);
      }
      if (product.isSize())
        sub.extent = product;
    } else {
      value = evalIndex(ctx, *sub.ast->expr, "a subscript");
    }
    if (!value) {
      failed = true;
      left.values.push_back({});
      continue;
    }
    left.values.push_back(*value);
  }
  return !failed;
}

bool tegula::checkLeftBounds(CheckContext &ctx, LeftSide &left, Stmt &out) {
  TensorInfo &info = *left.info;
  for (size_t i = 0; i != left.values.size(); ++i) {
    const Subscript &value = left.values[i];
    const IndexExpr &dim = info.tensor->dims[i];
    requireExact(ctx, value.exact, value.span);
    if (!requireIn64Bits(ctx, value.index, value.span.isValid() ? value.span : left.target->span))
      return false;
    if (value.bare && value.bare->lo == IndexExpr(0) && value.bare->hi == dim)
      continue;
    // A temporary is as large as what is written to it.
    if (!left.isDeclared() && !left.isUpdate && !usesData(ctx, value.index) && left.subs[i].extent)
      continue;
    Obligation what;
    what.span = value.span.isValid() ? value.span : left.target->span;
    what.access = left.target->span;
    what.what = ctx.shortText(left.target->span);
    what.tensor = &info;
    what.dim = i;
    what.isWrite = true;
    Bound bound = requireInBounds(ctx, value.index, dim, what);
    if (bound == Bound::Wrong)
      return false;
    if (bound == Bound::Runtime)
      out.dataDependent = true;
  }
  return true;
}

/// The n of `v % n`, which a temporary that is written there needs along its dim.
static std::optional<IndexExpr> extentOfData(CheckContext &ctx, const IndexExpr &index) {
  std::optional<IndexVar> var = index.asVariable();
  if (!var || var->isSymbol() || ctx.program->vars[var->position()].kind != Var::Data)
    return std::nullopt;
  const Var &data = ctx.program->vars[var->position()];
  const Expr *value = data.data;
  while (value->kind == Expr::Widen)
    value = value->operands[0];
  if (!data.hasRange || data.lo != IndexExpr(0))
    return std::nullopt;
  if (value->kind == Expr::Binary && value->binary == Binary::Mod)
    if (std::optional<IndexExpr> size = toIndex(ctx, value->operands[1]); size && size->isSize())
      return size;
  return data.hi.isSize() ? std::optional(data.hi) : std::nullopt;
}

bool tegula::sizeTemporary(CheckContext &ctx, LeftSide &left) {
  TensorInfo &info = *left.info;
  std::vector<IndexExpr> needs;
  for (size_t i = 0; i != left.values.size(); ++i) {
    const Subscript &value = left.values[i];
    std::optional<IndexExpr> need = left.subs[i].extent;
    if (!need && usesData(ctx, value.index))
      need = extentOfData(ctx, value.index);
    if (!need && !usesData(ctx, value.index)) {
      Domain domain = domainOf(ctx, {value.index}, false, false);
      if (value.index.isSize())
        need = value.index + 1;
      else if (std::optional<IndexExpr> max = ctx.prover->range(value.index, domain).max)
        need = *max + 1;
    }
    if (!need || !need->isSize()) {
      ctx.report(Code::RangeUnknown, value.span,
                 "the size of '" + info.tensor->name + "' does not follow from this subscript")
          .note("a temporary is as large as the union of what is written; define all of it before, "
                "as in " +
                info.tensor->name +
                "[i in SIZE] = 0, or write to an output, whose dims are declared");
      return false;
    }
    needs.push_back(named(ctx, *need));
  }
  std::vector<IndexExpr> &dims = info.tensor->dims;
  if (info.pieces.empty() && !info.isComplete) {
    dims = needs;
    for (size_t i = 0; i != dims.size(); ++i)
      if (!left.subs[i].extent)
        requireNonNegative(ctx, dims[i], left.values[i].span,
                           "dim " + llvm::Twine(i + 1) + " of '" + info.tensor->name + "'");
    return true;
  }
  for (size_t i = 0; i != dims.size(); ++i) {
    if (needs[i] == dims[i] || ctx.prover->proves(Condition::lessEqual(needs[i], dims[i])))
      continue;
    if (!info.pieces.empty()) // which covered less
      info.isComplete = false;
    dims[i] = ctx.prover->proves(Condition::lessEqual(dims[i], needs[i]))
                  ? needs[i]
                  : named(ctx, IndexExpr::max(dims[i], needs[i]));
  }
  return true;
}
