//===- CheckPieces.cpp - Pieces and coverage --------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an equation defines is a piece of its tensor: it defines no element twice (injective), is
// held against the pieces of others (disjoint), and all pieces against the whole tensor (covered).
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckPieces.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckEquation.h"
#include "frontend/check/CheckGuard.h"
#include "frontend/check/CheckLeft.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckParallel.h"
#include "frontend/check/CheckRange.h"
#include "frontend/check/CheckRead.h"
#include "frontend/check/CheckScatter.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/CheckStmt.h"
#include "frontend/check/CheckSuggest.h"

using namespace tegula;
using namespace tegula::checked;

static void zeroFirst(CheckContext &ctx, TensorInfo &info);

/// Whether a value has to do with the elements of a tile: it varies along its index, reduces over
/// it, or is made of a state that does.
static bool followsTile(const Expr *value, const Var *tile) {
  llvm::SmallPtrSet<const Expr *, 16> seen;
  llvm::SmallVector<const Expr *> work{value};
  while (!work.empty()) {
    const Expr *at = work.pop_back_val();
    if (!at || !seen.insert(at).second)
      continue;
    if (at->kind == Expr::State || llvm::is_contained(at->axes, tile->id) ||
        llvm::is_contained(at->vars, tile))
      return true;
    if (at->kind == Expr::Let)
      work.push_back(at->let->value);
    llvm::append_range(work, at->operands);
    work.append({at->fill, at->guard, at->filter});
  }
  return false;
}

bool tegula::checkInjective(CheckContext &ctx, LeftSide &left, Stmt &out) {
  if (out.accumulate) {
    if (out.combine != Reduction::Sum || ctx.tileVars.empty())
      return true;
    // A sum adds once for each tile, of whatever size: what it adds must be the tile's.
    const Var *tile = ctx.tileVars.back();
    std::vector<unsigned> places;
    for (const Subscript &value : left.values)
      addAxes(ctx, places, value.index);
    if (llvm::is_contained(places, tile->id) || followsTile(out.value, tile) ||
        followsTile(out.guard, tile))
      return true;
    ctx.report(Code::TileDependent, left.target->span,
               "this adds once for each tile of '" + tile->name +
                   "', and the result depends on the tile size")
        .note("what it adds varies along '" + tile->name +
              "', or is reduced over it: sum(... for " + tile->name + ")");
    return false;
  }
  // The indices along which this statement runs: its own, and those of the block that it uses.
  std::set<unsigned> along;
  for (const Var *var : left.vars)
    along.insert(var->id);
  std::vector<unsigned> outer = out.value->axes, used;
  if (out.guard)
    addAxes(outer, out.guard);
  bool onData = false;
  std::set<unsigned> bare;
  for (size_t i = 0; i != left.values.size(); ++i) {
    const Subscript &value = left.values[i];
    onData |= usesData(ctx, value.index);
    addAxes(ctx, used, value.index);
    if (value.bare)
      bare.insert(value.bare->id);
    else if (left.subs[i].ast->kind == ast::Subscript::Group) // members behind the first are digits
      for (size_t k = left.subs[i].extent ? 0 : 1; k < left.subs[i].ast->members.size(); ++k)
        if (const ast::ExprPtr &member = left.subs[i].ast->members[k].expr;
            member->kind == ast::Expr::Name)
          if (Entity *entity = ctx.lookup(member->name.name);
              entity && entity->kind == Entity::Index)
            bare.insert(entity->var->id);
  }
  llvm::append_range(outer, used);
  for (unsigned id : outer) {
    const Var &var = ctx.program->vars[id];
    if (var.kind == Var::Tile || llvm::is_contained(ctx.block.vars, &var))
      along.insert(id);
  }
  for (unsigned id : along) {
    if (llvm::is_contained(used, id) || bare.count(id))
      continue;
    const Var &var = ctx.program->vars[id];
    Report record =
        ctx.report(Code::FreeIndex, left.valueSpan,
                   "the right side varies along '" + var.name + "', which is not on the left");
    record.note("put it on the left, or reduce over it: sum(... for " + var.name + ")");
    return false;
  }
  if (llvm::all_of(along, [&](unsigned id) { return bare.count(id) != 0; }))
    return true;
  if (onData)
    return checkScatter(ctx, left, out, along, std::move(bare));
  std::string what = "'" + ctx.shortText(left.target->span) + "'";
  if (ctx.isSilent())
    return true;
  Image image;
  llvm::SmallVector<IndexExpr> exprs;
  for (unsigned id : along)
    exprs.push_back(IndexExpr::dim(id));
  // Points are in the same iteration of the loops around. Those of a block are each in one of its
  // own of the loops inside.
  size_t loopsAround = ctx.block.isActive ? ctx.block.loops : ctx.loops.size();
  for (auto [depth, id] : llvm::enumerate(ctx.loops))
    if (llvm::is_contained(used, id)) {
      exprs.push_back(IndexExpr::dim(id));
      if (depth < loopsAround)
        image.subscripts.push_back(IndexExpr::dim(id));
    }
  image.domain = domainOf(ctx, exprs, false, true);
  for (const Subscript &value : left.values)
    image.subscripts.push_back(value.index);
  Outcome outcome = ctx.prover->injective(image);
  if (outcome.proved())
    return true;
  if (!outcome.suffices.empty() && !failsWhereTried(ctx, outcome, image)) {
    for (const Condition &condition : outcome.suffices)
      requireAtLaunch(ctx, condition, "two points of " + what + " meet", left.target->span);
    return true;
  }
  Report record = ctx.report(
      Code::AmbiguousWrite, left.target->span,
      "two points of " + what +
          (outcome.counterexample ? " meet" : " may meet: that they differ is not shown"));
  if (outcome.counterexample)
    record.note("for instance with " + showSizes(ctx, *outcome.counterexample));
  record.note("'+=' adds up what meets");
  suggestAccumulation(ctx, record, left);
  return false;
}

bool tegula::isDefinedBy(CheckContext &ctx, const Piece &piece,
                         llvm::ArrayRef<IndexExpr> subscripts) {
  if (piece.isPartial || !piece.image.domain.conditions.empty() ||
      subscripts.size() != piece.image.subscripts.size())
    return false; // without subscripts a tensor is read whole
  std::set<unsigned> seen;
  for (auto [defined, read] : llvm::zip(piece.image.subscripts, subscripts)) {
    std::optional<IndexVar> var = defined.asVariable();
    if (var && !var->isSymbol() && !llvm::is_contained(ctx.loops, var->position())) {
      if (!seen.insert(var->position()).second)
        return false;
      for (const RangedVar &bound : piece.image.domain.vars)
        if (bound.position == var->position() &&
            !ctx.prover->provesInBounds(read - bound.lo, bound.hi - bound.lo,
                                        domainOf(ctx, {read, bound.lo, bound.hi}, false, true)))
          return false;
      continue;
    }
    if (defined != read && !ctx.prover->proves(Condition::equal(defined, read),
                                               domainOf(ctx, {defined, read}, false, true)))
      return false;
  }
  return true;
}

bool tegula::addPiece(CheckContext &ctx, LeftSide &left, Stmt &out) {
  TensorInfo &info = *left.info;
  Tensor::Kind kind = info.tensor->kind;
  if (ctx.block.isActive) {
    BlockAccess &write =
        noteBlockAccess(ctx, info, /*isWrite=*/true, left.target->span, left.values);
    bool onData = llvm::any_of(left.values,
                               [&](const Subscript &value) { return usesData(ctx, value.index); });
    write.write = &out;
    write.isApart = !out.accumulate && (!onData || !out.distinct.empty());
    std::vector<unsigned> varying = out.value->axes;
    addAxes(varying, out.guard);
    for (const Subscript &value : left.values)
      addAxes(ctx, varying, value.index);
    for (const Var *var : ctx.block.vars)
      if (!write.isApart || llvm::is_contained(varying, var->id))
        write.along.push_back(var->id);
  }
  if (ctx.dry)
    return true;
  bool isFree = kind == Tensor::State || kind == Tensor::Inout;
  if (isFree) {
    // A state is whole from its own definition on.
    if (!left.isState)
      return true;
  }
  if (out.accumulate && out.combine == Reduction::Sum) {
    if (!info.isComplete)
      zeroFirst(ctx, info);
    info.isComplete = true;
    return true;
  }
  bool onData =
      (out.guard && readsData(ctx, out.guard)) ||
      llvm::any_of(left.values, [&](const Subscript &value) { return usesData(ctx, value.index); });
  if (out.accumulate || onData)
    return requireDefinition(ctx, left, out);
  Piece piece;
  piece.span = left.target->span;
  piece.text = ctx.shortText(left.target->span);
  piece.inLoop = !ctx.loops.empty();
  llvm::SmallVector<IndexExpr> exprs;
  bool isWhole = !out.guard && !out.dataDependent && ctx.loops.empty();
  std::set<unsigned> seen;
  for (size_t i = 0; i != left.values.size(); ++i) {
    const Subscript &value = left.values[i];
    piece.image.subscripts.push_back(value.index);
    exprs.push_back(value.index);
    const IndexExpr &dim = info.tensor->dims[i];
    if (value.bare)
      isWhole &= value.bare->lo == IndexExpr(0) && value.bare->hi == dim &&
                 seen.insert(value.bare->id).second;
    else
      isWhole = false;
  }
  for (const Var *var : left.vars)
    exprs.push_back(IndexExpr::dim(var->id));
  for (unsigned loop : ctx.loops)
    exprs.push_back(IndexExpr::dim(loop));
  piece.image.domain = domainOf(ctx, exprs, false, out.guard != nullptr);
  piece.isPartial = (out.guard && !pathIsComplete(ctx)) || out.dataDependent;
  for (const IndexExpr &expr : exprs)
    piece.isPartial |= usesData(ctx, expr);

  if (info.claim.isValid() && left.stmt && isWhole && ctx.loops.empty()) {
    reportDefinedTwice(ctx, *left.target, info.claim);
    return false;
  }
  if (ctx.loops.empty() && !info.isSuspect) {
    if (info.isComplete && (info.pieces.empty() || isWhole)) {
      Report record = ctx.report(Code::Overlap, left.target->span,
                                 "'" + info.tensor->name + "' is already defined");
      if (!info.pieces.empty())
        record.note("here", info.pieces.front().span);
      record.note(
          "a tensor is defined once: take a new name, or a 'state' for what changes in a loop");
      return false;
    }
    for (const Piece &old : info.pieces) {
      Outcome outcome = ctx.prover->disjoint(old.image, piece.image);
      if (outcome.proved() || outcome.verdict == Verdict::Unknown)
        continue;
      std::string message = "'" + piece.text + "' meets '" + old.text + "'";
      if (outcome.verdict == Verdict::Depends && !outcome.suffices.empty() &&
          !failsWhereTried(ctx, outcome, {old.image, piece.image})) {
        for (const Condition &condition : outcome.suffices)
          requireAtLaunch(ctx, condition, message, piece.span);
        if (std::optional<Report> record =
                warnGuard(ctx, Code::GuardBounds, piece.span, message + " for some sizes", true))
          record->note((ctx.checkedBy() + " checks it").str());
        continue;
      }
      Report record =
          ctx.report(Code::Overlap, piece.span, message + ": an element is defined twice");
      if (outcome.counterexample)
        record.note("for instance with " + showSizes(ctx, *outcome.counterexample));
      record.note("the other definition", old.span)
          .note(
              "a tensor is defined once, in pieces that do not meet: take a new name, or a 'state' "
              "for what changes in a loop");
      return false;
    }
  }
  info.pieces.push_back(std::move(piece));
  if (isWhole)
    info.isComplete = true;
  return true;
}

void tegula::requireCovered(CheckContext &ctx, TensorInfo &info, Span readSpan, bool atEnd) {
  if (info.isComplete || info.isPoison || info.isSuspect || ctx.isSilent())
    return;
  std::string name = "'" + info.tensor->name + "'";
  std::vector<Image> images;
  bool inLoop = false;
  for (const Piece &piece : info.pieces) {
    if (!piece.isPartial)
      images.push_back(piece.image);
    inLoop |= piece.inLoop;
  }
  Outcome outcome;
  if (!images.empty())
    outcome = ctx.prover->covers(images, info.tensor->dims);
  if (outcome.proved()) {
    info.isComplete = !(inLoop && !ctx.loops.empty());
    return;
  }
  // A loop defines element after element; what it has not reached yet reads as 0.
  if (!ctx.loops.empty() && !atEnd) {
    zeroFirst(ctx, info);
    return;
  }
  if (outcome.verdict == Verdict::Unknown) {
    zeroFirst(ctx, info);
    info.isComplete = true;
    return;
  }
  bool canHold = llvm::none_of(outcome.suffices, [](const Condition &condition) {
    return condition.kind == Condition::NonNegative && condition.lhs.asConstant().value_or(0) < 0;
  });
  if (outcome.verdict == Verdict::Depends && !outcome.suffices.empty() && canHold) {
    for (const Condition &condition : outcome.suffices)
      requireAtLaunch(ctx, condition, "not every element of " + name + " is defined",
                      info.pieces.front().span);
    std::string needs;
    for (const Condition &condition : outcome.suffices)
      needs += (needs.empty() ? "" : " and ") + show(ctx, condition);
    if (std::optional<Report> record =
            warnGuard(ctx, Code::GuardBounds, info.pieces.front().span,
                      "not every element of " + name + " is defined for some sizes", true))
      record->note(("all are where " + needs + "; " + ctx.checkedBy() + " checks it").str());
    info.isComplete = true;
    return;
  }
  Report record = ctx.report(atEnd ? Code::NotCovered : Code::ReadBeforeDefined,
                             atEnd ? info.pieces.front().span : readSpan,
                             atEnd ? "not every element of " + name + " is defined"
                                   : name + " is read before all of it is defined");
  if (outcome.counterexample) {
    std::string element = info.tensor->name + "[";
    for (size_t i = 0; i != outcome.counterexample->point.size(); ++i)
      element += (i ? ", " : "") + std::to_string(outcome.counterexample->point[i].second);
    Counterexample sizes = *outcome.counterexample;
    sizes.point.clear();
    std::string with = showSizes(ctx, sizes);
    record.note("for instance " + element + "]" + (with.empty() ? "" : " with " + with));
  }
  record.note(name + " has dims " + showDims(ctx, info), info.tensor->span);
  info.isComplete = true; // said once
}

static void zeroFirst(CheckContext &ctx, TensorInfo &info) {
  if (info.isZeroed || ctx.dry)
    return;
  info.isZeroed = true;
  std::vector<Stmt *> zeros;
  {
    Saved savedSink(ctx.sink, &zeros);
    Stmt *zero = appendStmt(ctx, Stmt::Equation, info.tensor->span);
    zero->tensor = info.tensor;
    for (size_t i = 0; i != info.tensor->dims.size(); ++i) {
      const Var *var = newVar(ctx, Var::Axis, "z" + std::to_string(i), IndexExpr(0),
                              info.tensor->dims[i], info.tensor->span);
      zero->vars.push_back(var);
      zero->subscripts.push_back(IndexExpr::dim(var->id));
    }
    DType type = computeType(info.tensor->type);
    zero->value = type == DType::Bool ? booleanNode(ctx, false, info.tensor->span)
                                      : constantNode(ctx, 0, type, info.tensor->span);
  }
  std::vector<Stmt *> &body = info.home ? *info.home : *ctx.frame->body;
  auto at = body.begin();
  if (info.definition)
    at = std::next(llvm::find(body, info.definition));
  body.insert(at, zeros.front());
}
