//===- CheckRange.cpp - Ranges of indices -----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The range of an index is what `in` says, where it is bound or where it subscripts a read; else it
// is that of the dims that it subscripts bare [4.2, 6.1].
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckRange.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckExact.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/CheckSuggest.h"
#include "frontend/check/CheckWrap.h"
#include "llvm/ADT/StringExtras.h"

using namespace tegula;
using namespace tegula::checked;

static bool isName(const ast::Subscript &subscript, llvm::StringRef name) {
  return subscript.kind == ast::Subscript::Single && subscript.expr->kind == ast::Expr::Name &&
         subscript.expr->name.name == name;
}

//===----------------------------------------------------------------------===//
// Written ranges
//===----------------------------------------------------------------------===//

/// Calls `visit` on the parts of an expression that are expressions, in order of the text.
static void forEachPart(const ast::Expr &e, llvm::function_ref<void(const ast::Expr &)> visit) {
  auto visitRange = [&](const std::optional<ast::Range> &range) {
    if (!range)
      return;
    if (range->lo)
      visit(*range->lo);
    if (range->hi)
      visit(*range->hi);
  };
  auto visitSubscript = [&](auto &&self, const ast::Subscript &subscript) -> void {
    if (subscript.expr)
      visit(*subscript.expr);
    visitRange(subscript.range);
    for (const ast::Subscript &member : subscript.members)
      self(self, member);
  };
  for (const ast::ExprPtr &operand : e.operands)
    if (operand)
      visit(*operand);
  for (const ast::Subscript &subscript : e.subscripts)
    visitSubscript(visitSubscript, subscript);
  for (const ast::Argument &argument : e.arguments)
    visit(*argument.value);
  for (const ast::ForItem &item : e.items) {
    visitRange(item.range);
    if (item.filter)
      visit(*item.filter);
  }
}

static const ast::Range *rangeInside(const ast::Expr &e, llvm::StringRef index) {
  for (const ast::ForItem &item : e.items)
    if (item.index.name == index)
      return nullptr; // another index
  for (const ast::Subscript &subscript : e.subscripts) {
    if (subscript.range && isName(subscript, index))
      return &*subscript.range;
    for (const ast::Subscript &member : subscript.members)
      if (member.range && isName(member, index))
        return &*member.range;
  }
  const ast::Range *found = nullptr;
  forEachPart(e, [&](const ast::Expr &part) {
    if (!found)
      found = rangeInside(part, index);
  });
  return found;
}

const ast::Range *tegula::writtenRange(llvm::StringRef index,
                                       llvm::ArrayRef<const ast::Expr *> bodies) {
  for (const ast::Expr *body : bodies)
    if (body)
      if (const ast::Range *found = rangeInside(*body, index))
        return found;
  return nullptr;
}

bool tegula::requireWrittenRange(CheckContext &ctx, const ast::Subscript &subscript) {
  if (!subscript.range || !subscript.expr)
    return true;
  const ast::Expr &expr = *subscript.expr;
  if (expr.kind != ast::Expr::Name) {
    ctx.report(Code::WrongKind, subscript.span, "'in' follows an index name, not an expression")
        .note("write the range where the index is bound: ... for k in R");
    return false;
  }
  Entity *entity = ctx.lookup(expr.name.name);
  if (!entity || entity->kind == Entity::Poison)
    return false; // reported where the subscript is evaluated
  if (entity->kind != Entity::Index) {
    ctx.report(Code::WrongKind, subscript.span,
               "'in' gives an index its range, and '" + expr.name.name + "' is " +
                   describe(*entity))
        .note("it is defined here", entity->span);
    return false;
  }
  const Var &var = *entity->var;
  // Equal texts have one meaning: nothing is shadowed.
  if (const ast::Range *known = ctx.writtenRanges.lookup(&var))
    if (known == &*subscript.range || ctx.text(known->span) == ctx.text(subscript.range->span))
      return true;
  auto range = evalRange(ctx, *subscript.range, expr.name.name);
  if (!range)
    return false;
  auto agree = [&](const IndexExpr &a, const IndexExpr &b) {
    return a == b || ctx.prover->proves(Condition::equal(a, b), domainOf(ctx, {a, b}, false, true));
  };
  if (ctx.dry || (agree(range->first, var.lo) && agree(range->second, var.hi)))
    return true;
  auto shown = [&](const IndexExpr &lo, const IndexExpr &hi) {
    return lo == IndexExpr(0) ? show(ctx, hi) : show(ctx, lo) + ":" + show(ctx, hi);
  };
  ctx.report(Code::RangeConflict, subscript.span,
             "index '" + expr.name.name + "' runs over " + shown(var.lo, var.hi) + ", and over " +
                 shown(range->first, range->second) + " here")
      .note("it is bound here", entity->span)
      .note("an index has one range: write it once, or take another index");
  return false;
}

//===----------------------------------------------------------------------===//
// Ranges of dims
//===----------------------------------------------------------------------===//

void tegula::collectExtents(CheckContext &ctx, const ast::Subscript &subscript,
                            const IndexExpr &dim, llvm::StringRef tensor, llvm::StringRef index,
                            bool isOffset, llvm::SmallVectorImpl<Extent> &extents) {
  if (isOffset) {
    if (subscript.kind == ast::Subscript::Single && !isName(subscript, index) &&
        mentions(*subscript.expr, index))
      extents.push_back({dim, subscript.span, tensor.str(), false, {}, std::nullopt});
    return;
  }
  if (isName(subscript, index)) {
    extents.push_back({dim, subscript.span, tensor.str(), false, {}, std::nullopt});
    return;
  }
  if (subscript.kind != ast::Subscript::Group)
    return;
  bool holds = llvm::any_of(subscript.members,
                            [&](const ast::Subscript &member) { return isName(member, index); });
  if (!holds)
    return;
  // The dim divided by the ranges of the other members, where these are known.
  IndexExpr others(1);
  for (size_t i = 0; i != subscript.members.size(); ++i) {
    const ast::Subscript &member = subscript.members[i];
    if (isName(member, index))
      continue;
    if (member.kind != ast::Subscript::Single)
      return;
    if (member.range && !member.range->lo) {
      Saved quiet(ctx.dry, ctx.dry + 1);
      Value size = eval(ctx, *member.range->hi);
      if (size.isPoison() || !size.index || !size.index->isSize())
        return;
      others = others * *size.index;
      continue;
    }
    const ast::Expr &expr = *member.expr;
    Entity *entity = expr.kind == ast::Expr::Name ? ctx.lookup(expr.name.name) : nullptr;
    if (!entity || entity->kind != Entity::Index || entity->var->kind == Var::Loop ||
        entity->var->lo != IndexExpr(0) || !entity->var->hi.isSize())
      return;
    others = others * entity->var->hi;
  }
  Extent extent;
  extent.size = named(ctx, IndexExpr::floorDiv(dim, others));
  extent.span = subscript.span;
  extent.from = tensor.str();
  extent.isGroup = true;
  extent.exact.push_back({dim, others});
  extents.push_back(std::move(extent));
}

/// Collects the dims that the index subscripts bare or in a group; with `isOffset` in an
/// expression.
static void collectExtentsIn(CheckContext &ctx, const ast::Expr &e, llvm::StringRef index,
                             bool isOffset, llvm::SmallVectorImpl<Extent> &extents) {
  llvm::SmallVector<const ast::Expr *> work{&e};
  while (!work.empty()) {
    const ast::Expr *at = work.pop_back_val();
    // In order of the text: what is pushed last is seen first.
    llvm::SmallVector<const ast::Expr *> inner;
    auto addRange = [&](const std::optional<ast::Range> &range) {
      if (range && range->lo)
        inner.push_back(range->lo.get());
      if (range && range->hi)
        inner.push_back(range->hi.get());
    };
    for (const ast::ExprPtr &operand : at->operands)
      inner.push_back(operand.get());
    auto addSubscript = [&](auto &&addSubscript, const ast::Subscript &subscript) -> void {
      if (subscript.expr)
        inner.push_back(subscript.expr.get());
      for (const ast::Subscript &member : subscript.members)
        addSubscript(addSubscript, member);
    };
    if (at->kind == ast::Expr::Index) {
      Entity *entity = ctx.lookup(at->name.name);
      if (entity && entity->kind == Entity::Tensor && !entity->tensor->isPoison) {
        const std::vector<IndexExpr> &dims = entity->tensor->tensor->dims;
        size_t position = 0;
        for (const ast::Subscript &subscript : at->subscripts) {
          if (subscript.kind == ast::Subscript::Ellipsis) {
            position += ctx.frame->ellipsis ? ctx.frame->ellipsis->size() : 0;
            continue;
          }
          if (position < dims.size())
            collectExtents(ctx, subscript, dims[position], at->name.name, index, isOffset, extents);
          ++position;
        }
      }
    }
    for (const ast::Subscript &subscript : at->subscripts)
      addSubscript(addSubscript, subscript);
    for (const ast::Argument &argument : at->arguments)
      inner.push_back(argument.value.get());
    for (const ast::ForItem &item : at->items) {
      addRange(item.range);
      if (item.filter)
        inner.push_back(item.filter.get());
    }
    for (const ast::Expr *one : llvm::reverse(inner))
      if (one)
        work.push_back(one);
  }
}

std::optional<std::pair<IndexExpr, IndexExpr>>
tegula::inferRange(CheckContext &ctx, llvm::StringRef index,
                   llvm::ArrayRef<const ast::Expr *> bodies, Span span) {
  llvm::SmallVector<Extent> extents;
  for (const ast::Expr *body : bodies)
    if (body)
      collectExtentsIn(ctx, *body, index, /*isOffset=*/false, extents);
  const Extent *first = nullptr;
  for (const Extent &extent : extents)
    if (!extent.isGroup) {
      first = &extent;
      break;
    }
  if (!first)
    for (const Extent &extent : extents) {
      first = &extent;
      break;
    }
  if (!first)
    return std::nullopt;
  if (first->isGroup)
    requireExact(ctx, first->exact, first->span);
  for (const Extent &extent : extents) {
    if (&extent == first || extent.isGroup)
      continue;
    requireEqual(
        ctx, first->size, extent.size, extent.span,
        "index '" + index + "' runs over a dim of '" + first->from + "' and one of '" +
            extent.from + "'",
        Code::RangeConflict, [&](Report &record) {
          record.note("it takes its range from this dim of '" + first->from + "'", first->span);
          record.note("where they are meant to differ, write the range: " + index.str() + " in " +
                      show(ctx, first->size));
          if (!span.isValid() || ctx.text(span) != index)
            return;
          suggestInsertion(record, "run over " + show(ctx, first->size),
                           {span.file, span.end, span.end}, " in " + show(ctx, first->size));
        });
  }
  return std::pair(IndexExpr(0), first->size);
}

bool tegula::mentions(const ast::Expr &e, llvm::StringRef name) {
  if (e.kind == ast::Expr::Name && e.name.name == name)
    return true;
  for (const ast::ForItem &item : e.items)
    if (item.index.name == name)
      return false;
  bool found = false;
  forEachPart(e, [&](const ast::Expr &part) { found = found || mentions(part, name); });
  return found;
}

bool tegula::readsPoison(CheckContext &ctx, const ast::Expr &e) {
  if (e.kind == ast::Expr::Index || e.kind == ast::Expr::Name) {
    Entity *entity = ctx.lookup(e.name.name);
    if (!entity && e.kind == ast::Expr::Index)
      return true; // reported where it is read
    if (entity && (entity->kind == Entity::Poison || (entity->tensor && entity->tensor->isPoison)))
      return true;
  }
  return llvm::any_of(e.operands,
                      [&](const ast::ExprPtr &one) { return one && readsPoison(ctx, *one); }) ||
         llvm::any_of(e.arguments,
                      [&](const ast::Argument &one) { return readsPoison(ctx, *one.value); });
}

static bool isWordCharacter(char c) { return llvm::isAlnum(c) || c == '_'; }

/// What the index counts in `e`: empty for 1, `S` in `g*S + s`; nothing where it stands otherwise.
static std::optional<std::string> stepIn(CheckContext &ctx, const ast::Expr &e,
                                         llvm::StringRef index) {
  if (e.kind == ast::Expr::Name)
    return std::string();
  if (e.kind != ast::Expr::Binary)
    return std::nullopt;
  const ast::Expr &a = *e.operands[0], &b = *e.operands[1];
  bool inFirst = mentions(a, index);
  if (inFirst && mentions(b, index))
    return std::nullopt;
  const ast::Expr &with = inFirst ? a : b, &other = inFirst ? b : a;
  if (e.binaryOp == ast::BinaryOp::Add || (e.binaryOp == ast::BinaryOp::Sub && inFirst))
    return stepIn(ctx, with, index);
  bool isFactor = other.kind == ast::Expr::Name || other.kind == ast::Expr::Integer;
  if (e.binaryOp == ast::BinaryOp::Mul && with.kind == ast::Expr::Name && isFactor)
    return ctx.text(other.span).str();
  return std::nullopt;
}

/// As stepIn, in the subscript at `subscript`.
static std::optional<std::string> stepOf(CheckContext &ctx, Span subscript,
                                         llvm::ArrayRef<const ast::Expr *> bodies,
                                         llvm::StringRef index) {
  std::optional<std::string> found;
  auto visit = [&](auto &&visit, const ast::Expr &e) -> void {
    for (const ast::Subscript &one : e.subscripts)
      if (one.expr && one.span.begin == subscript.begin && one.span.end == subscript.end)
        found = stepIn(ctx, *one.expr, index);
    forEachPart(e, [&](const ast::Expr &part) { visit(visit, part); });
  };
  for (const ast::Expr *body : bodies)
    if (body)
      visit(visit, *body);
  return found;
}

/// What an index of this name runs over wherever else in the kernel that is plain, if it is one
/// size.
static std::string rangeElsewhere(CheckContext &ctx, llvm::StringRef index) {
  std::set<std::string> sizes;
  auto addRange = [&](const ast::Ident &name, const ast::Range *range) {
    if (name.name == index && range && !range->lo)
      sizes.insert(ctx.text(range->hi->span).str());
  };
  auto visitSubscripts = [&](llvm::StringRef tensor, llvm::ArrayRef<ast::Subscript> subscripts) {
    const ast::Param *found = nullptr;
    for (const std::vector<ast::Param> *params :
         {&ctx.frame->kernel->params, &ctx.frame->kernel->outputs})
      for (const ast::Param &param : *params)
        if (param.name.name == tensor && param.dims.size() == subscripts.size())
          found = &param;
    for (auto [d, one] : llvm::enumerate(subscripts)) {
      if (!one.expr || one.expr->kind != ast::Expr::Name || one.expr->name.name != index)
        continue;
      if (one.range)
        addRange(one.expr->name, &*one.range);
      else if (found && found->dims[d].expr)
        sizes.insert(ctx.text(found->dims[d].span).str());
    }
  };
  auto visit = [&](auto &&visit, const ast::Expr &e) -> void {
    visitSubscripts(e.name.name, e.subscripts);
    for (const ast::ForItem &item : e.items)
      addRange(item.index, item.range ? &*item.range : nullptr);
    forEachPart(e, [&](const ast::Expr &part) { visit(visit, part); });
  };
  auto visitBody = [&](auto &&visitBody, llvm::ArrayRef<ast::StmtPtr> body) -> void {
    for (const ast::StmtPtr &stmt : body) {
      for (const ast::Target &target : stmt->targets)
        visitSubscripts(target.name.name, target.subscripts);
      for (const ast::ForItem &item : stmt->trailing)
        addRange(item.index, item.range ? &*item.range : nullptr);
      for (const ast::Binder &binder : stmt->binders)
        addRange(binder.index, &binder.range);
      if (stmt->value)
        visit(visit, *stmt->value);
      visitBody(visitBody, stmt->body);
    }
  };
  visitBody(visitBody, ctx.frame->kernel->body);
  return sizes.size() == 1 ? *sizes.begin() : "";
}

void tegula::rangeUnknown(CheckContext &ctx, const ast::Ident &index, llvm::StringRef form,
                          llvm::ArrayRef<const ast::Expr *> bodies, bool takesRange) {
  assert(form.contains("SIZE") && "the form shows where the range stands");
  Report record =
      ctx.report(Code::RangeUnknown, index.span,
                 "the range of index '" + index.name + "' is unknown: it subscripts no dim bare");
  std::string elsewhere = rangeElsewhere(ctx, index.name);
  auto [before, after] = form.rsplit("SIZE");
  record.note("write its range: " + (elsewhere.empty() ? form : before + elsewhere + after).str());
  if (takesRange && !elsewhere.empty() && ctx.text(index.span) == index.name) {
    suggestInsertion(record, "run over " + elsewhere + ", as '" + index.name + "' does elsewhere",
                     {index.span.file, index.span.end, index.span.end}, " in " + elsewhere);
    return;
  }
  // `x[i + 1]`: often it is to run as far as the dim that it reaches into.
  llvm::SmallVector<Extent> extents;
  for (const ast::Expr *body : bodies)
    if (body)
      collectExtentsIn(ctx, *body, index.name, /*isOffset=*/true, extents);
  if (!takesRange || extents.empty() || !extents[0].size.isSize() ||
      ctx.text(index.span) != index.name)
    return;
  // `x[g*S + s]`: as far as the dim holds steps of S.
  std::optional<std::string> step = stepOf(ctx, extents[0].span, bodies, index.name);
  if (!step)
    return;
  std::string dim = show(ctx, extents[0].size);
  std::string size =
      step->empty() ? dim
                    : (llvm::all_of(dim, isWordCharacter) ? dim : "(" + dim + ")") + "//" + *step;
  suggestInsertion(record, "run over the dim of '" + extents[0].from + "'",
                   {index.span.file, index.span.end, index.span.end}, " in " + size);
}

bool tegula::checkIndexName(CheckContext &ctx, const ast::Ident &name,
                            llvm::function_ref<void(Report &)> advise) {
  auto rename = [&](Report &record) {
    if (advise)
      advise(record);
    else
      suggestIndexName(ctx, record, name);
  };
  if (isReserved(name.name)) {
    Report record =
        ctx.report(Code::IndexShadows, name.span,
                   "index '" + name.name + "' has the name of a constant of the language");
    rename(record);
    return false;
  }
  Entity *entity = ctx.lookup(name.name);
  if (!entity)
    return true;
  if (entity->kind == Entity::Poison)
    return false;
  Report record = ctx.report(Code::IndexShadows, name.span,
                             "index '" + name.name + "' has the name of " + describe(*entity));
  record.note("that is defined here", entity->span);
  record.note("take another name for the index");
  rename(record);
  return false;
}

bool tegula::defineIndex(CheckContext &ctx, Scope &in, const ast::Ident &name, const Var *var) {
  Entity entity;
  entity.kind = Entity::Index;
  entity.var = var;
  entity.span = name.span;
  in.names[name.name] = std::move(entity);
  ctx.activeVars.push_back(var);
  ctx.frame->indexNames.insert(name.name);
  return true;
}

const checked::Var *tegula::newVar(CheckContext &ctx, Var::Kind kind, llvm::StringRef name,
                                   IndexExpr lo, IndexExpr hi, Span span) {
  Var &var = ctx.program->vars.emplace_back();
  var.kind = kind;
  var.id = ctx.program->vars.size() - 1;
  var.name = name.str();
  var.lo = std::move(lo);
  var.hi = std::move(hi);
  var.span = span;
  return &var;
}

std::optional<std::pair<IndexExpr, IndexExpr>>
tegula::evalRange(CheckContext &ctx, const ast::Range &range, llvm::StringRef index, Code code) {
  std::string what = "the range of '" + index.str() + "'";
  std::optional<Subscript> lo, hi;
  if (range.lo)
    lo = evalBound(ctx, *range.lo, what, code);
  else
    lo = Subscript();
  if (range.hi)
    hi = evalBound(ctx, *range.hi, what, code);
  if (!lo || !hi)
    return std::nullopt;
  requireExact(ctx, lo->exact, range.span);
  requireExact(ctx, hi->exact, range.span);
  for (const IndexExpr &one : {lo->index, hi->index, hi->index - lo->index})
    if (!requireIn64Bits(ctx, one, range.span))
      return std::nullopt;
  return std::pair(lo->index, hi->index);
}

/// `for ...`: an index for each dim that `...` stands for.
static bool bindEllipsis(CheckContext &ctx, const ast::ForItem &item, Scope &in,
                         std::vector<const Var *> &vars) {
  if (!ctx.frame->ellipsis) {
    ctx.report(Code::EllipsisMisuse, item.span,
               "'...' stands for dims that a parameter shows as '...', and this kernel has none");
    return false;
  }
  if (ctx.lookup("...0") && !ctx.frame->ellipsis->empty()) {
    ctx.report(Code::EllipsisMisuse, item.span, "'...' is already an index of the left side");
    return false;
  }
  for (size_t q = 0; q != ctx.frame->ellipsis->size(); ++q) {
    ast::Ident name{"..." + std::to_string(q), item.span};
    const Var *var =
        newVar(ctx, Var::Axis, name.name, IndexExpr(0), (*ctx.frame->ellipsis)[q], item.span);
    defineIndex(ctx, in, name, var);
    vars.push_back(var);
  }
  return true;
}

/// Reports an index whose range neither its item nor a dim gives.
static void reportNoRange(CheckContext &ctx, const ast::Ident &index,
                          llvm::ArrayRef<const ast::Expr *> bodies, llvm::StringRef form) {
  // A group with two unknown members says more than "unknown".
  bool inGroup = false;
  Span groupSpan;
  auto visit = [&](auto &&visit, const ast::Expr &e) -> void {
    for (const ast::Subscript &subscript : e.subscripts) {
      if (subscript.kind == ast::Subscript::Group)
        for (const ast::Subscript &member : subscript.members)
          if (isName(member, index.name)) {
            inGroup = true;
            groupSpan = subscript.span;
          }
      if (subscript.expr)
        visit(visit, *subscript.expr);
    }
    for (const ast::ExprPtr &operand : e.operands)
      if (operand)
        visit(visit, *operand);
    for (const ast::Argument &argument : e.arguments)
      visit(visit, *argument.value);
  };
  for (const ast::Expr *body : bodies)
    if (body)
      visit(visit, *body);
  if (inGroup)
    ctx.report(Code::GroupRange, groupSpan,
               "the range of '" + index.name +
                   "' does not follow: at most one range of a "
                   "group is inferred")
        .note("write the others: for " + index.name + " in SIZE");
  else
    rangeUnknown(ctx, index, form.str() + index.name + " in SIZE)", bodies,
                 /*takesRange=*/true);
}

bool tegula::bindItems(CheckContext &ctx, llvm::ArrayRef<ast::ForItem> items,
                       llvm::ArrayRef<const ast::Expr *> bodies, Scope &in,
                       llvm::SmallVectorImpl<const Var *> &vars, llvm::StringRef form) {
  bool failed = false;
  llvm::SmallVector<const Var *> bound(items.size(), nullptr);
  std::vector<std::vector<const Var *>> ellipsisVars(items.size());
  llvm::SmallVector<size_t> pending;
  llvm::SmallVector<std::pair<size_t, const ast::Range *>> waiting;
  llvm::StringSet<> seen;
  auto bind = [&](size_t i, std::pair<IndexExpr, IndexExpr> range, const ast::Range *written) {
    const ast::ForItem &item = items[i];
    bound[i] = newVar(ctx, Var::Axis, item.index.name, range.first, range.second, item.index.span);
    defineIndex(ctx, in, item.index, bound[i]);
    if (written)
      ctx.writtenRanges[bound[i]] = written;
  };
  for (size_t i = 0; i != items.size(); ++i) {
    const ast::ForItem &item = items[i];
    if (item.ellipsis) {
      failed |= !bindEllipsis(ctx, item, in, ellipsisVars[i]);
      continue;
    }
    if (!seen.insert(item.index.name).second) {
      ctx.report(Code::DuplicateIndex, item.index.span,
                 "index '" + item.index.name + "' stands twice after 'for'");
      failed = true;
      continue;
    }
    // The index of the tile loop around: the reduction is over the current tile.
    Entity *entity = ctx.lookup(item.index.name);
    if (entity && entity->kind == Entity::Index && entity->var->kind == Var::Tile &&
        !in.names.contains(item.index.name)) {
      if (item.range) {
        ctx.report(Code::IndexShadows, item.index.span,
                   "'" + item.index.name +
                       "' is the index of the tile loop; a reduction over its tile "
                       "takes no range");
        failed = true;
        continue;
      }
      bound[i] = entity->var;
      continue;
    }
    if (!checkIndexName(ctx, item.index, [&](Report &record) {
          suggestIndexName(ctx, record, item.index, items, bodies);
        })) {
      failed = true;
      continue;
    }
    const ast::Range *written = item.range ? &*item.range : writtenRange(item.index.name, bodies);
    // A range may depend on an index before it, `for i, j in 0:i + 1`, which may get its own below.
    bool waits =
        written && llvm::any_of(pending, [&](size_t other) {
          const std::string &name = items[other].index.name;
          return (written->lo && mentions(*written->lo, name)) || mentions(*written->hi, name);
        });
    if (waits) {
      waiting.push_back({i, written});
    } else if (written) {
      if (auto range = evalRange(ctx, *written, item.index.name))
        bind(i, *range, written);
      else
        failed = true;
    } else {
      pending.push_back(i);
    }
  }
  // An index of a group may need the ranges of the others first.
  while (!pending.empty()) {
    size_t before = pending.size();
    llvm::erase_if(pending, [&](size_t i) {
      auto range = inferRange(ctx, items[i].index.name, bodies, items[i].index.span);
      if (!range)
        return false;
      bind(i, *range, nullptr);
      return true;
    });
    if (pending.size() == before)
      break;
  }
  for (auto [i, written] : waiting) {
    auto range = pending.empty() ? evalRange(ctx, *written, items[i].index.name) : std::nullopt;
    if (range)
      bind(i, *range, written);
    else
      failed = true; // that of the other is reported below
  }
  bool onPoison =
      llvm::any_of(bodies, [&](const ast::Expr *body) { return body && readsPoison(ctx, *body); });
  for (size_t i : pending) {
    failed = true;
    if (onPoison) {
      ctx.poison(in, items[i].index, /*isIndex=*/true);
      continue;
    }
    reportNoRange(ctx, items[i].index, bodies, form);
    ctx.poison(in, items[i].index, /*isIndex=*/true);
  }
  for (size_t i = 0; i != items.size(); ++i) {
    if (items[i].ellipsis)
      llvm::append_range(vars, ellipsisVars[i]);
    else if (bound[i])
      vars.push_back(bound[i]);
    else
      ctx.poison(in, items[i].index, /*isIndex=*/true);
  }
  return !failed;
}
