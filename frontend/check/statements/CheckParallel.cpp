//===- CheckParallel.cpp - Parallel blocks, states and tile loops -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a parallel block a name without subscripts is a value that varies along the indices it was
// computed from. What a state varies along, and its type where it begins with a literal, follow
// from its updates: the block is checked, quietly, until nothing changes, then once more for good.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckParallel.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckEquation.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckRange.h"
#include "frontend/check/CheckScatter.h"
#include "frontend/check/CheckStmt.h"
#include "frontend/check/observations/CheckObserver.h"

using namespace tegula;
using namespace tegula::checked;

static void checkBlockReads(CheckContext &ctx, TensorInfo &info);
static bool followsInnerLoop(CheckContext &ctx, const IndexExpr &index);
static void checkBlockWrites(CheckContext &ctx, TensorInfo &info);

bool tegula::checkParallel(CheckContext &ctx, const ast::Stmt &stmt) {
  if (ctx.block.isActive) {
    ctx.report(Code::BadNesting, stmt.span, "a parallel block inside of a parallel block")
        .note("one block takes all indices: parallel i in M, j in N { ... }");
    return false;
  }
  Scope inner(Scope::Parallel, ctx.scope);
  Saved savedScope(ctx.scope, &inner);
  Trimmed trimmedVars(ctx.activeVars);
  Stmt *block = appendStmt(ctx, Stmt::Parallel, stmt.span);
  bool failed = false;
  for (const ast::Binder &binder : stmt.binders) {
    if (!checkIndexName(ctx, binder.index)) {
      failed = true;
      continue;
    }
    auto range = evalRange(ctx, binder.range, binder.index.name, Code::LoopBounds);
    if (range && (usesData(ctx, range->first) || usesData(ctx, range->second))) {
      ctx.report(Code::LoopBounds, binder.range.span,
                 "the range of '" + binder.index.name +
                     "' must be known before the launch, got one from data")
          .note("a loop inside of the block may have bounds from data");
      range.reset();
    }
    if (!range) {
      failed = true;
      ctx.poison(inner, binder.index, /*isIndex=*/true);
      continue;
    }
    const Var *var =
        newVar(ctx, Var::Axis, binder.index.name, range->first, range->second, binder.index.span);
    block->vars.push_back(var);
    defineIndex(ctx, inner, binder.index, var);
  }
  if (failed)
    return false;
  Saved savedFlag(ctx.block.isActive, true);
  Saved savedLoops(ctx.block.loops, ctx.loops.size());
  Saved savedParallel(ctx.block.vars, block->vars);
  Saved savedFacts(ctx.stateFacts, std::map<const ast::Stmt *, StateFact>());
  Saved savedTensors(ctx.block.tensors, std::vector<TensorInfo *>());
  Saved savedData(ctx.block.data, std::vector<const Var *>());
  auto run = [&] {
    Scope body(Scope::Parallel, &inner);
    Saved savedBody(ctx.scope, &body);
    checkBody(ctx, stmt.body);
    for (TensorInfo *info : ctx.block.tensors) {
      checkBlockReads(ctx, *info);
      checkBlockWrites(ctx, *info);
    }
    for (TensorInfo *info : ctx.block.tensors) {
      info->blockReads.clear();
      info->blockWrites.clear();
    }
    ctx.block.tensors.clear();
    ctx.block.data.clear();
  };
  do { // types become wider and axes more, so it ends
    ctx.stateFactsChanged = false;
    Diagnostics scratch(ctx.module.sourceManager());
    Saved savedDiagnostics(ctx.diagnostics, &scratch);
    Saved savedDry(ctx.dry, ctx.dry + 1);
    Saved savedWeight(ctx.expandedWeight, ctx.expandedWeight);
    std::vector<Stmt *> ignored;
    Saved savedSink(ctx.sink, &ignored);
    run();
  } while (ctx.stateFactsChanged);
  {
    Saved savedSink(ctx.sink, &block->body);
    run();
  }
  return true;
}

//===----------------------------------------------------------------------===//
// What points of a block read and write
//===----------------------------------------------------------------------===//

/// Whether two values are the same wherever they stand: made alike of indices and inputs.
static bool areSameInputs(CheckContext &ctx, const Expr *a, const Expr *b) {
  if (a == b)
    return true;
  bool isAlike =
      a->kind == b->kind && a->type == b->type && a->operands.size() == b->operands.size();
  switch (isAlike ? a->kind : Expr::Random) {
  case Expr::Constant:
    return a->intValue == b->intValue &&
           llvm::bit_cast<uint64_t>(a->floatValue) == llvm::bit_cast<uint64_t>(b->floatValue);
  case Expr::Index:
    return inBlock(ctx, a->index) == inBlock(ctx, b->index);
  case Expr::Read:
    return a->tensor == b->tensor && a->tensor->kind == Tensor::In && !a->guard && !b->guard &&
           !a->fill && !b->fill && a->exact.empty() && b->exact.empty() &&
           llvm::all_of(llvm::zip_equal(a->subscripts, b->subscripts), [&](auto pair) {
             return inBlock(ctx, std::get<0>(pair)) == inBlock(ctx, std::get<1>(pair));
           });
  case Expr::Widen:
    break;
  case Expr::Binary:
    if (a->binary != b->binary)
      return false;
    break;
  case Expr::Unary:
    if (a->unary != b->unary)
      return false;
    break;
  default:
    return false;
  }
  return llvm::all_of(llvm::zip(a->operands, b->operands), [&](auto pair) {
    return areSameInputs(ctx, std::get<0>(pair), std::get<1>(pair));
  });
}

/// The subscript, with one variable for all data of the block that are the same.
IndexExpr tegula::inBlock(CheckContext &ctx, const IndexExpr &index) {
  return index.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    if (var.isSymbol() || ctx.program->vars[var.position()].kind != Var::Data)
      return std::nullopt;
    const Var *own = &ctx.program->vars[var.position()];
    for (const Var *known : ctx.block.data)
      if (known == own || areSameInputs(ctx, known->data, own->data))
        return IndexExpr::dim(known->id);
    ctx.block.data.push_back(own);
    return std::nullopt;
  });
}

BlockAccess &tegula::noteBlockAccess(CheckContext &ctx, TensorInfo &info, bool isWrite, Span span,
                                     llvm::ArrayRef<Subscript> subscripts) {
  if (info.blockReads.empty() && info.blockWrites.empty())
    ctx.block.tensors.push_back(&info);
  BlockAccess access;
  access.span = span;
  access.loopDepth = ctx.loops.size() + ctx.tileVars.size();
  llvm::SmallVector<IndexExpr> exprs;
  for (const Subscript &subscript : subscripts)
    exprs.push_back(inBlock(ctx, subscript.index));
  access.image.subscripts.assign(exprs.begin(), exprs.end());
  for (unsigned loop : ctx.loops)
    exprs.push_back(IndexExpr::dim(loop));
  access.image.domain = domainOf(ctx, exprs, /*withLoops=*/false, /*withPath=*/true);
  std::vector<BlockAccess> &list = isWrite ? info.blockWrites : info.blockReads;
  list.push_back(std::move(access));
  return list.back();
}

/// Whether a point of the block may access by `a` what another one writes by `b`.
static bool mayMeetOtherPoint(CheckContext &ctx, const BlockAccess &a, const BlockAccess &b) {
  // Loops around the block are at the same iteration in all of its points, those inside of it are
  // not.
  auto isShared = [&](unsigned id) { return llvm::is_contained(ctx.loops, id); };
  auto variesInside = [&](const IndexExpr &index) { return followsInnerLoop(ctx, index); };
  bool isSame = a.image.subscripts == b.image.subscripts;
  auto isSubset = [](llvm::ArrayRef<unsigned> part, llvm::ArrayRef<unsigned> whole) {
    return llvm::all_of(part, [&](unsigned id) { return llvm::is_contained(whole, id); });
  };
  bool isApart =
      (b.isApart && isSubset(a.along, b.along)) || (a.isApart && isSubset(b.along, a.along));
  if (isSame && isApart && llvm::none_of(a.image.subscripts, variesInside))
    return false;
  // Subscripts that both have in common say which point it is where no two points agree in them.
  auto tellApart = [&](bool withInner) {
    Image common;
    llvm::SmallVector<IndexExpr> exprs;
    for (llvm::ArrayRef<unsigned> along : {llvm::ArrayRef(a.along), llvm::ArrayRef(b.along)})
      for (unsigned id : along)
        exprs.push_back(IndexExpr::dim(id));
    for (auto [own, other] : llvm::zip_equal(a.image.subscripts, b.image.subscripts))
      if (own == other && !usesData(ctx, own) && (withInner || !variesInside(own))) {
        common.subscripts.push_back(own);
        exprs.push_back(own);
      }
    common.domain = domainOf(ctx, exprs, /*withLoops=*/false, /*withPath=*/false);
    for (const RangedVar &var : common.domain.vars)
      if (isShared(var.position))
        common.subscripts.push_back(IndexExpr::dim(var.position));
    return ctx.prover->injective(common).proved();
  };
  if (tellApart(true) || (llvm::any_of(a.image.subscripts, variesInside) && tellApart(false)))
    return false;
  return !ctx.prover->disjoint(a.image, b.image, ctx.loops).proved();
}

/// Reads before the writes, and in the same statement; those behind them are reported where they
/// stand.
static void checkBlockReads(CheckContext &ctx, TensorInfo &info) {
  if (ctx.isSilent() || info.isSuspect)
    return;
  for (const BlockAccess &read : info.blockReads)
    for (const BlockAccess &write : info.blockWrites) {
      if (!mayMeetOtherPoint(ctx, read, write))
        continue;
      ctx.report(Code::ReadBeforeDefined, read.span,
                 "'" + info.tensor->name +
                     "' is written by this parallel block, whose points run in any order")
          .note("another point may write the element first, here", write.span)
          .note("an equation outside of a block reads the values from before; or copy them before "
                "the block");
      break;
    }
}

/// Whether the order of the two writes makes no difference where they meet: both add up, or both
/// are the same number.
static bool commute(const Stmt &a, const Stmt &b) {
  if (a.accumulate || b.accumulate)
    return a.accumulate && b.accumulate && a.combine == b.combine;
  const Expr *first = a.value, *second = b.value;
  return &a != &b && first->kind == Expr::Constant && second->kind == Expr::Constant &&
         first->type == second->type && first->intValue == second->intValue &&
         llvm::bit_cast<uint64_t>(first->floatValue) ==
             llvm::bit_cast<uint64_t>(second->floatValue);
}

/// Whether a value may change from one iteration to the next of loops inside of the block.
static bool followsInnerLoop(CheckContext &ctx, const Expr *value) {
  llvm::SmallPtrSet<const Expr *, 16> seen;
  llvm::SmallVector<const Expr *> work{value};
  while (!work.empty()) {
    const Expr *at = work.pop_back_val();
    if (!at || !seen.insert(at).second)
      continue;
    auto follows = [&](const IndexExpr &index) { return followsInnerLoop(ctx, index); };
    if (at->kind == Expr::State || follows(at->index) || llvm::any_of(at->subscripts, follows))
      return true;
    if (at->kind == Expr::Let)
      work.push_back(at->let->value);
    llvm::append_range(work, at->operands);
    work.append({at->fill, at->guard, at->filter});
    for (const Var *var : at->vars)
      if (follows(var->lo) || follows(var->hi))
        return true;
  }
  return false;
}

static bool followsInnerLoop(CheckContext &ctx, const IndexExpr &index) {
  return llvm::any_of(index.variables(), [&](const IndexVar &var) {
    if (var.isSymbol())
      return false;
    const Var &one = ctx.program->vars[var.position()];
    return (one.kind == Var::Loop && !llvm::is_contained(ctx.loops, one.id)) ||
           (one.kind == Var::Data && followsInnerLoop(ctx, one.data));
  });
}

static void checkBlockWrites(CheckContext &ctx, TensorInfo &info) {
  if (ctx.isSilent() || info.isSuspect)
    return;
  llvm::ArrayRef<BlockAccess> writes = info.blockWrites;
  for (const BlockAccess &write : writes) {
    if (write.write->meeting != Stmt::LastWins)
      continue;
    const Tensor *changed = nullptr;
    forEachOnAddress(ctx, *write.write, [&](const Expr *at) {
      for (const TensorInfo *other : ctx.block.tensors)
        if (at->kind == Expr::Read && at->tensor == other->tensor && !other->blockWrites.empty())
          changed = at->tensor;
    });
    if (!changed)
      continue;
    ctx.report(Code::AmbiguousWrite, write.span,
               "two points may meet here, and which is the last depends on '" + changed->name +
                   "', which this block writes")
        .note("as an equation of its own, behind the block, it is allowed: the last point counts");
    return;
  }
  for (size_t later = 0; later != writes.size(); ++later)
    for (const BlockAccess &earlier : writes.take_front(later + 1)) {
      const BlockAccess &write = writes[later];
      if (earlier.write == write.write &&
          (write.write->meeting == Stmt::LastWins ||
           (write.write->meeting == Stmt::Alike &&
            !(write.loopDepth > ctx.loops.size() && followsInnerLoop(ctx, write.write->value)))))
        continue;
      bool doCommute = commute(*earlier.write, *write.write);
      if ((doCommute && write.write->accumulate) || !mayMeetOtherPoint(ctx, earlier, write))
        continue;
      if (doCommute) { // one number: stores that may meet are of the kind for that
        earlier.write->meeting = write.write->meeting = Stmt::Alike;
        continue;
      }
      std::string name = "'" + info.tensor->name + "'";
      if (earlier.write == write.write) {
        ctx.report(Code::AmbiguousWrite, write.span,
                   "two points of this parallel block may write an element of " + name +
                       ", each in its own loop: that they differ is not shown")
            .note("its points run in any order; '+=', 'max=' and 'min=' may meet");
        return;
      }
      ctx.report(Code::AmbiguousWrite, write.span,
                 "one point of this parallel block may write an element of " + name +
                     " that another one writes in another way")
          .note("here, and its points run in any order", earlier.span)
          .note("outside of a block equations run in order: let one of the two stand before or "
                "behind it");
      return;
    }
}

bool tegula::checkTilesLoop(CheckContext &ctx, const ast::Stmt &stmt) {
  if (!ctx.block.isActive) {
    ctx.report(Code::BadNesting, stmt.span, "a loop over tiles stands in a parallel block")
        .note("parallel i in M { state acc = 0.0  for k in tiles(K) { ... } }");
    return false;
  }
  if (!ctx.tileVars.empty()) {
    ctx.report(Code::BadNesting, stmt.span, "a loop over tiles inside of a loop over tiles")
        .note("sum(... for k) reduces over a whole index inside of a tile loop");
    return false;
  }
  auto range =
      stmt.range ? evalRange(ctx, *stmt.range, stmt.index.name, Code::LoopBounds) : std::nullopt;
  if (!checkIndexName(ctx, stmt.index))
    return false;
  Scope inner(Scope::Tiles, ctx.scope);
  Trimmed trimmedVars(ctx.activeVars);
  Trimmed trimmedTiles(ctx.tileVars);
  Stmt *loop = appendStmt(ctx, Stmt::Tiles, stmt.span);
  if (!range) {
    ctx.poison(inner, stmt.index, /*isIndex=*/true);
  } else {
    const Var *var =
        newVar(ctx, Var::Tile, stmt.index.name, range->first, range->second, stmt.index.span);
    loop->vars.push_back(var);
    defineIndex(ctx, inner, stmt.index, var);
    ctx.tileVars.push_back(var);
  }
  Saved savedScope(ctx.scope, &inner);
  Saved savedSink(ctx.sink, &loop->body);
  checkBody(ctx, stmt.body);
  return range.has_value();
}

bool tegula::checkState(CheckContext &ctx, const ast::Stmt &stmt) {
  if (stmt.targets.empty() || !stmt.value)
    return false;
  const ast::Target &target = stmt.targets[0];
  auto fail = [&] {
    ctx.poison(*ctx.scope, target.name);
    return false;
  };
  if (target.hasSubscripts) {
    ctx.report(
           Code::StateMisuse, target.span,
           "a state in a parallel block has no subscripts: it varies along the indices that its "
           "updates need")
        .note("write state " + target.name.name + " = ...");
    return fail();
  }
  if (!ctx.tileVars.empty()) {
    ctx.report(Code::StateMisuse, stmt.span, "a state begins before the loop that changes it");
    return fail();
  }
  Value value = eval(ctx, *stmt.value);
  if (value.isPoison())
    return fail();
  std::optional<DType> storage;
  if (target.type) {
    storage = resolveType(ctx, *target.type);
    if (!storage)
      return fail();
  }
  StateFact &fact = ctx.stateFacts[&stmt];
  DType type;
  if (storage)
    type = computeType(*storage);
  else if (!value.weak)
    type = value.expr->type;
  else if (isFloat(value.expr->type))
    type = DType::F32;
  else
    type = value.expr->kind == Expr::Constant ? DType::I32 : DType::I64;
  // A literal takes the type of the updates, the widest of them.
  if (!storage && value.weak && width(fact.type) > width(type))
    type = fact.type;
  StateDef &state = ctx.program->states.emplace_back();
  state.name = target.name.name;
  state.type = type;
  if (storage && *storage != type)
    state.storage = storage;
  state.span = stmt.span;
  const Expr *init =
      storable(ctx, value, storage.value_or(type), "'" + target.name.name + "'", stmt.value->span);
  if (!init)
    return fail();
  if (init->type != type) {
    Expr *narrow = makeExpr(ctx, Expr::Convert, type, stmt.value->span);
    narrow->target = type;
    narrow->operands = {init};
    init = finishExpr(ctx, narrow);
  }
  state.init = init;
  state.axes = fact.axes;
  for (unsigned id : init->axes)
    if (!llvm::is_contained(state.axes, id))
      state.axes.push_back(id);
  llvm::sort(state.axes);
  StateInfo &info = ctx.stateInfos.emplace_back();
  info.state = &state;
  info.stmt = &stmt;
  Entity entity;
  entity.kind = Entity::State;
  entity.state = &info;
  appendStmt(ctx, Stmt::StateInit, stmt.span)->state = &state;
  return ctx.define(*ctx.scope, target.name, std::move(entity)) != nullptr;
}

bool tegula::checkUpdate(CheckContext &ctx, const ast::Stmt &stmt, const ast::Target &target,
                         StateInfo &info) {
  StateDef &state = *info.state;
  if (target.hasColon) {
    ctx.report(Code::StateMisuse, target.span,
               "the type of a state stands where it begins: state " + state.name + ": f16 = ...");
    return false;
  }
  Value value = eval(ctx, *stmt.value);
  if (value.isPoison())
    return false;
  std::vector<unsigned> axes = value.expr->axes;
  // How often a loop runs decides too.
  for (const Var *var : ctx.activeVars)
    if (var->kind == Var::Tile || var->kind == Var::Loop) {
      addAxes(ctx, axes, var->lo);
      addAxes(ctx, axes, var->hi);
    }
  for (unsigned id : value.expr->axes) {
    const Var &var = ctx.program->vars[id];
    if (var.kind != Var::Tile)
      continue;
    ctx.report(Code::TileEscape, stmt.value->span,
               "the new value of '" + state.name + "' varies along '" + var.name +
                   "', which ends with its tile")
        .note("reduce over it: sum(... for " + var.name + ")");
    return false;
  }
  StateFact &fact = ctx.stateFacts[info.stmt];
  DType type = typeAlone(value);
  if ((!value.weak || isFloat(type)) && width(type) > width(fact.type)) {
    fact.type = type;
    ctx.stateFactsChanged = true;
  }
  for (unsigned id : axes) {
    const Var &var = ctx.program->vars[id];
    if (!llvm::is_contained(ctx.block.vars, &var) || llvm::is_contained(fact.axes, id))
      continue;
    fact.axes.push_back(id);
    ctx.stateFactsChanged = true;
  }
  DType kept = state.storage.value_or(state.type);
  const Expr *stored =
      storable(ctx, value, kept, "the state '" + state.name + "'", stmt.value->span);
  if (!stored)
    return false;
  if (stored->type != state.type) {
    Expr *narrow = makeExpr(ctx, Expr::Convert, state.type, stmt.value->span);
    narrow->target = state.type;
    narrow->operands = {stored};
    stored = finishExpr(ctx, narrow);
  }
  Stmt *update = appendStmt(ctx, Stmt::Update, stmt.span);
  update->state = &state;
  update->value = stored;
  Expr *now = makeExpr(ctx, Expr::State, state.type, target.span);
  now->state = &state;
  watch(ctx, stmt.span, state.name, finishExpr(ctx, now));
  return true;
}
