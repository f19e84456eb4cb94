//===- CheckScatter.cpp - Equations that write where data say ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `cache[slot[i], d] = k[i, d]` changes elements of a tensor that has values already [4.6]. Where
// two points could meet, the last one counts; `distinct slot` says that none do.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckScatter.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckLeft.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckPieces.h"
#include "frontend/check/CheckSuggest.h"

using namespace tegula;
using namespace tegula::checked;

/// Whether a value needs more than sizes, scalars and indices.
bool tegula::readsData(CheckContext &ctx, const Expr *value) {
  llvm::SmallPtrSet<const Expr *, 16> seen;
  llvm::SmallVector<const Expr *> work{value};
  while (!work.empty()) {
    const Expr *at = work.pop_back_val();
    if (!at || !seen.insert(at).second)
      continue;
    if (at->kind == Expr::Read || at->kind == Expr::State || at->kind == Expr::Random ||
        (at->kind == Expr::Index && usesData(ctx, at->index)))
      return true;
    if (at->kind == Expr::Let)
      work.push_back(at->let->value);
    llvm::append_range(work, at->operands);
    work.append({at->fill, at->guard, at->filter});
    for (const Var *var : at->vars)
      if (var->kind != Var::Tile && (usesData(ctx, var->lo) || usesData(ctx, var->hi)))
        return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Points that meet
//===----------------------------------------------------------------------===//

/// An integer without the conversions that subscripts leave out.
static const Expr *withoutWidening(const Expr *value) {
  while (value->kind == Expr::Widen)
    value = value->operands[0];
  return value;
}

/// The axes of a read that elements of its tensor stand for one by one: `i` in `slot[t, i]`, where
/// t is of a loop around. Nothing where a subscript is no index.
static std::optional<std::vector<unsigned>> distinctAxes(CheckContext &ctx, const Expr *read) {
  if (read->fill || !read->exact.empty())
    return std::nullopt;
  std::vector<unsigned> axes;
  for (const IndexExpr &subscript : read->subscripts) {
    bool isFixed = llvm::all_of(subscript.variables(), [&](const IndexVar &var) {
      return var.isSymbol() || ctx.program->vars[var.position()].kind == Var::Loop;
    });
    if (isFixed)
      continue;
    std::optional<IndexVar> var = subscript.asVariable();
    if (!var || var->isSymbol() || ctx.program->vars[var->position()].kind == Var::Data)
      return std::nullopt;
    axes.push_back(var->position());
  }
  return axes;
}

/// Whether different values of `read` go to different elements: it is a subscript, with an offset
/// perhaps, or leads a group, or its quotient by a size and its remainder are subscripts.
static bool tellsApart(CheckContext &ctx, const LeftSide &left, const Expr *read) {
  unsigned key = keyOf(ctx, read);
  auto isRead = [&](const IndexExpr &index) {
    std::optional<IndexVar> var = index.asVariable();
    if (!var || var->isSymbol() || ctx.program->vars[var->position()].kind != Var::Data)
      return false;
    return keyOf(ctx, withoutWidening(ctx.program->vars[var->position()].data)) == key;
  };
  /// The divisor of `read // n` or `read % n`, as a key.
  auto divisor = [&](const IndexExpr &index, Binary op) -> std::optional<unsigned> {
    std::optional<IndexVar> var = index.asVariable();
    if (!var || var->isSymbol() || ctx.program->vars[var->position()].kind != Var::Data)
      return std::nullopt;
    const Expr *data = withoutWidening(ctx.program->vars[var->position()].data);
    if (data->kind != Expr::Binary || data->binary != op ||
        keyOf(ctx, withoutWidening(data->operands[0])) != key)
      return std::nullopt;
    std::optional<IndexExpr> by = toIndex(ctx, data->operands[1]);
    return by && by->isSize() ? std::optional(keyOf(ctx, withoutWidening(data->operands[1])))
                              : std::nullopt;
  };
  std::optional<unsigned> quotient, remainder;
  for (const Subscript &value : left.values) {
    const IndexExpr &index = value.leading ? *value.leading : value.index;
    for (const IndexVar &var : index.variables()) {
      if (var.isSymbol() || ctx.program->vars[var.position()].kind != Var::Data)
        continue;
      IndexExpr own = IndexExpr::dim(var.position());
      bool isOffset = llvm::all_of((index - own).variables(), [&](const IndexVar &other) {
        return other.isSymbol() || ctx.program->vars[other.position()].kind == Var::Loop;
      });
      if (isOffset && isRead(own))
        return true;
    }
    if (std::optional<unsigned> by = divisor(index, Binary::FloorDiv))
      quotient = by;
    if (std::optional<unsigned> by = divisor(index, Binary::Mod))
      remainder = by;
  }
  return quotient && quotient == remainder;
}

/// The reads that the left side's data are made of.
static std::vector<const Expr *> readsOnLeft(CheckContext &ctx, const LeftSide &left) {
  std::vector<const Expr *> reads;
  for (const Subscript &value : left.values)
    for (const IndexVar &var : value.index.variables()) {
      if (var.isSymbol() || ctx.program->vars[var.position()].kind != Var::Data)
        continue;
      const Expr *data = withoutWidening(ctx.program->vars[var.position()].data);
      if (data->kind == Expr::Binary)
        data = withoutWidening(data->operands[0]);
      if (data->kind == Expr::Read)
        reads.push_back(data);
    }
  return reads;
}

/// The axes that data on the left tell apart, since the kernel says that they are distinct.
static void addDistinctAxes(CheckContext &ctx, const LeftSide &left, std::set<unsigned> &apart,
                            std::string &names) {
  std::vector<const Expr *> reads = readsOnLeft(ctx, left);
  for (const std::vector<ast::Ident> &item : ctx.frame->distinct) {
    std::optional<std::vector<unsigned>> common;
    std::string text;
    bool holds = true;
    for (const ast::Ident &name : item) {
      Entity *entity = ctx.lookup(name.name);
      const Expr *found = nullptr;
      for (const Expr *read : reads)
        if (entity && entity->kind == Entity::Tensor && read->tensor == entity->tensor->tensor &&
            tellsApart(ctx, left, read) && distinctAxes(ctx, read))
          found = read;
      holds &= found && (!common || *common == *distinctAxes(ctx, found));
      if (!holds)
        break;
      common = distinctAxes(ctx, found);
      text += (text.empty() ? "" : ", ") + name.name;
    }
    if (!holds || !common)
      continue;
    apart.insert(common->begin(), common->end());
    names += (names.empty() ? "" : ", ") + text;
  }
}

void tegula::forEachOnAddress(CheckContext &ctx, const Stmt &write,
                              llvm::function_ref<void(const Expr *)> visit) {
  llvm::SmallPtrSet<const Expr *, 16> seen;
  llvm::SmallVector<const Expr *> work{write.guard};
  auto addData = [&](const IndexExpr &index) {
    for (const IndexVar &var : index.variables())
      if (!var.isSymbol() && ctx.program->vars[var.position()].kind == Var::Data)
        work.push_back(ctx.program->vars[var.position()].data);
  };
  for (const IndexExpr &subscript : write.subscripts)
    addData(subscript);
  while (!work.empty()) {
    const Expr *at = work.pop_back_val();
    if (!at || !seen.insert(at).second)
      continue;
    visit(at);
    if (at->kind == Expr::Let)
      work.push_back(at->let->value);
    addData(at->index);
    for (const IndexExpr &subscript : at->subscripts)
      addData(subscript);
    llvm::append_range(work, at->operands);
    work.append({at->fill, at->guard, at->filter});
    for (const Var *var : at->vars) {
      addData(var->lo);
      addData(var->hi);
    }
  }
}

/// Whether where a statement of a block writes can be computed before the block. (What the block
/// writes does not decide it: checkBlockWrites.)
static bool isKnownBeforeBlock(CheckContext &ctx, const Stmt &write) {
  bool isKnown = ctx.loops.size() + ctx.tileVars.size() == ctx.block.loops;
  forEachOnAddress(ctx, write, [&](const Expr *at) {
    isKnown &= at->kind != Expr::State &&
               (at->kind != Expr::Let ||
                (at->let->value->axes.empty() && !readsData(ctx, at->let->value)));
  });
  return isKnown;
}

bool tegula::checkScatter(CheckContext &ctx, LeftSide &left, Stmt &out,
                          const std::set<unsigned> &along, std::set<unsigned> bare) {
  auto areApart = [&](const std::set<unsigned> &apart) {
    return llvm::all_of(along, [&](unsigned id) { return apart.count(id) != 0; });
  };
  std::set<unsigned> apart = bare;
  std::string names;
  addDistinctAxes(ctx, left, apart, names);
  if (areApart(apart)) {
    out.distinct = names;
    return true;
  }
  // Points that meet are alike along what the left side shows as it is.
  if (llvm::all_of(out.value->axes,
                   [&](unsigned id) { return !along.count(id) || bare.count(id); })) {
    out.meeting = Stmt::Alike;
    return true;
  }
  if (ctx.block.isActive && !isKnownBeforeBlock(ctx, out)) {
    Report record =
        ctx.report(Code::AmbiguousWrite, left.target->span,
                   "two points of '" + ctx.text(left.target->span) +
                       "' could meet in this parallel block: a subscript comes from data");
    record.note(ctx.loops.size() + ctx.tileVars.size() > ctx.block.loops
                    ? "outside of the block's loops the last point counts, where what decides it "
                      "is known before the block"
                    : "where what decides it is known before the block, and no value of the block, "
                      "the last point counts");
    for (const Expr *read : readsOnLeft(ctx, left))
      if (tellsApart(ctx, left, read) && distinctAxes(ctx, read)) {
        record.note("where no element of '" + read->tensor->name +
                    "' repeats, say so in the kernel's first line: distinct " + read->tensor->name);
        break;
      }
    return false;
  }
  out.meeting = Stmt::LastWins;
  for (const Var *var : ctx.block.vars) // a block's indices are around
    if (along.count(var->id))
      out.order.push_back(var);
  auto add = [&](llvm::StringRef name) {
    for (const Var *var : left.vars)
      if (var->name == name && !llvm::is_contained(out.order, var))
        out.order.push_back(var);
  };
  // As they stand on the left, then those that only `for` names.
  llvm::StringRef written = ctx.text(left.target->span);
  std::vector<std::pair<size_t, llvm::StringRef>> places;
  for (const Var *var : left.vars) {
    size_t at = written.size();
    auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    for (size_t from = 0; (from = written.find(var->name, from)) != llvm::StringRef::npos; ++from)
      if ((from == 0 || !isWord(written[from - 1])) &&
          (from + var->name.size() >= written.size() ||
           !isWord(written[from + var->name.size()]))) {
        at = from;
        break;
      }
    places.push_back({at, var->name});
  }
  llvm::stable_sort(places, [](const auto &a, const auto &b) { return a.first < b.first; });
  for (const auto &[at, name] : places)
    add(name);
  return true;
}

//===----------------------------------------------------------------------===//
// What `distinct` names
//===----------------------------------------------------------------------===//

void tegula::checkDistinctNames(CheckContext &ctx, Frame &of) {
  for (const std::vector<ast::Ident> &item : of.distinct)
    for (const ast::Ident &name : item) {
      Entity *entity = ctx.lookup(name.name);
      if (!entity) {
        unknownName(ctx, name, false);
        continue;
      }
      entity->isUsed = true;
      bool isInteger = entity->kind == Entity::Tensor &&
                       (entity->tensor->isPoison || (!isFloat(entity->tensor->tensor->type) &&
                                                     entity->tensor->tensor->type != DType::Bool));
      if (!isInteger && entity->kind != Entity::Poison)
        ctx.report(Code::WrongKind, name.span,
                   "'distinct' names tensors of integers that subscripts are read from, and '" +
                       name.name + "' is " + describe(*entity) +
                       (entity->kind == Entity::Tensor
                            ? " of " + toString(entity->tensor->tensor->type).str()
                            : std::string()));
    }
}

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

bool tegula::requireDefinition(CheckContext &ctx, LeftSide &left, const Stmt &out) {
  TensorInfo &info = *left.info;
  if (info.isComplete || info.isSuspect)
    return true;
  if (!info.pieces.empty() || info.isZeroed) {
    requireCovered(ctx, info, left.target->span, /*atEnd=*/false);
    return true;
  }
  std::string name = info.tensor->name;
  DType type = info.tensor->type;
  std::string start = type == DType::Bool ? "false" : "0";
  bool hasStart = true;
  if (out.accumulate) {
    bool isMax = out.combine == Reduction::Max;
    start = type == DType::Bool ? (isMax ? "false" : "true") : isMax ? "-inf" : "inf";
    hasStart = type == DType::Bool || isFloat(type);
  }
  bool isFilter = !out.accumulate && llvm::none_of(left.values, [&](const Subscript &value) {
    return usesData(ctx, value.index);
  });
  std::string how = isFilter         ? "where a condition on data holds"
                    : out.accumulate ? ("by '" + ast::spelling(left.combine) + "'").str()
                                     : "where data say";
  Report record =
      ctx.report(Code::NotCovered, left.target->span,
                 "'" + name + "' is written " + how + ", and nothing defines its other elements");
  uint32_t file = left.target->span.file;
  if (isFilter && left.stmt && ctx.expansions.empty()) {
    record.note("give them a value: where(condition, value, " + start + ")");
    std::string condition;
    std::vector<Edit> edits;
    for (const ast::ForItem &item : left.stmt->trailing)
      if (item.filter) {
        condition += (condition.empty() ? "" : " and ") + ctx.text(item.filter->span).str();
        uint32_t end = item.range ? (item.range->span.end) : item.index.span.end;
        edits.push_back({{file, end, item.filter->span.end}, ""});
      }
    edits.push_back({left.valueSpan, "where(" + condition + ", " + ctx.text(left.valueSpan).str() +
                                         ", " + start + ")"});
    record.fix("give the others " + start, std::move(edits));
    return false;
  }
  std::string all =
      elementText(name, info.tensor->dims.size()) + " = " + (hasStart ? start : "...");
  record.note("define all of it before: " + all);
  if (hasStart && left.isDeclared() && left.stmt && ctx.loops.empty() && !ctx.block.isActive) {
    uint32_t at = left.stmt->span.begin;
    record.fix("define it before", {{{file, at, at}, all + "\n  "}});
  }
  return false;
}
