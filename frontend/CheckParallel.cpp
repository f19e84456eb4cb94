//===- CheckParallel.cpp - Parallel blocks, states and tile loops -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a parallel block a name without subscripts is a value that varies along the indices it was
// computed from. What a state varies along, and its type where it begins with a literal, follow from
// its updates: the block is checked, quietly, until nothing changes, then once more for good.
//
//===----------------------------------------------------------------------===//

#include "frontend/Checker.h"

using namespace tegula;
using namespace tegula::checked;

bool Checker::checkParallel(const ast::Stmt &stmt) {
  if (inParallel) {
    report(Code::BadNesting, stmt.span, "a parallel block inside of a parallel block")
        .note("one block takes all indices: parallel i in M, j in N { ... }");
    return false;
  }
  Scope inner(Scope::Parallel, scope);
  Saved savedScope(scope, &inner);
  Trimmed trimmedVars(activeVars);
  Stmt *block = append(Stmt::Parallel, stmt.span);
  bool failed = false;
  for (const ast::Binder &binder : stmt.binders) {
    if (!checkIndexName(binder.index)) {
      failed = true;
      continue;
    }
    auto range = evalRange(binder.range, binder.index.name, Code::LoopBounds);
    if (range && (usesData(range->first) || usesData(range->second))) {
      report(Code::LoopBounds, binder.range.span,
             "the range of '" + binder.index.name + "' must be known before the launch, got one from data")
          .note("a loop inside of the block may have bounds from data");
      range.reset();
    }
    if (!range) {
      failed = true;
      poison(inner, binder.index, /*isIndex=*/true);
      continue;
    }
    const Var *var = newVar(Var::Axis, binder.index.name, range->first, range->second, binder.index.span);
    block->vars.push_back(var);
    defineIndex(inner, binder.index, var);
  }
  if (failed)
    return false;
  Saved savedFlag(inParallel, true);
  Saved savedParallel(parallelVars, block->vars);
  Saved savedFacts(stateFacts, std::map<const ast::Stmt *, StateFact>());
  Saved savedTensors(blockTensors, std::vector<TensorInfo *>());
  auto run = [&] {
    Scope body(Scope::Parallel, &inner);
    Saved savedBody(scope, &body);
    checkBody(stmt.body);
    for (TensorInfo *info : blockTensors) {
      checkBlockReads(*info);
      info->blockReads.clear();
      info->blockWrites.clear();
    }
    blockTensors.clear();
  };
  do { // types become wider and axes more, so it ends
    stateFactsChanged = false;
    Diagnostics scratch(module.sourceManager());
    Saved savedDiagnostics(diagnostics, &scratch);
    Saved savedDry(dry, dry + 1);
    Saved savedWeight(expandedWeight, expandedWeight);
    std::vector<Stmt *> ignored;
    Saved savedSink(sink, &ignored);
    run();
  } while (stateFactsChanged);
  {
    Saved savedSink(sink, &block->body);
    run();
  }
  return true;
}

//===----------------------------------------------------------------------===//
// What points of a block read and write
//===----------------------------------------------------------------------===//

BlockAccess &Checker::noteBlockAccess(TensorInfo &info, bool isWrite, Span span, llvm::ArrayRef<Subscript> subscripts) {
  if (info.blockReads.empty() && info.blockWrites.empty())
    blockTensors.push_back(&info);
  BlockAccess access;
  access.span = span;
  llvm::SmallVector<IndexExpr> exprs;
  for (const Subscript &subscript : subscripts)
    exprs.push_back(subscript.index);
  access.image.subscripts.assign(exprs.begin(), exprs.end());
  for (unsigned loop : loops)
    exprs.push_back(IndexExpr::dim(loop));
  access.image.domain = domainOf(exprs, /*withLoops=*/false, /*withPath=*/true);
  std::vector<BlockAccess> &list = isWrite ? info.blockWrites : info.blockReads;
  list.push_back(std::move(access));
  return list.back();
}

bool Checker::mayMeetOtherPoint(const BlockAccess &read, const BlockAccess &write) {
  if (write.isApart && read.image.subscripts == write.image.subscripts)
    return false;
  // Loops around the block are at the same iteration in all of its points.
  auto isShared = [&](unsigned id) { return llvm::is_contained(loops, id); };
  // Subscripts that both have in common say which point it is where no two points agree in them.
  Image common;
  llvm::SmallVector<IndexExpr> exprs;
  for (unsigned id : write.along)
    exprs.push_back(IndexExpr::dim(id));
  for (auto [own, other] : llvm::zip_equal(write.image.subscripts, read.image.subscripts))
    if (own == other && !usesData(own)) {
      common.subscripts.push_back(own);
      exprs.push_back(own);
    }
  common.domain = domainOf(exprs, /*withLoops=*/false, /*withPath=*/false);
  llvm::erase_if(common.domain.vars, [&](const RangedVar &var) { return isShared(var.position); });
  if (prover->injective(common).proved())
    return false;
  return !prover->disjoint(read.image, write.image, loops).proved();
}

/// Reads before the writes, and in the same statement; those behind them are reported where they stand.
void Checker::checkBlockReads(TensorInfo &info) {
  if (isSilent() || info.isSuspect)
    return;
  for (const BlockAccess &read : info.blockReads)
    for (const BlockAccess &write : info.blockWrites) {
      if (!mayMeetOtherPoint(read, write))
        continue;
      report(Code::ReadBeforeDefined, read.span,
             "'" + info.tensor->name + "' is written by this parallel block, whose points run in any order")
          .note("another point may write the element first, here", write.span)
          .note("an equation outside of a block reads the values from before; or copy them before the block");
      break;
    }
}

bool Checker::checkTilesLoop(const ast::Stmt &stmt) {
  if (!inParallel) {
    report(Code::BadNesting, stmt.span, "a loop over tiles stands in a parallel block")
        .note("parallel i in M { state acc = 0.0  for k in tiles(K) { ... } }");
    return false;
  }
  if (!tileVars.empty()) {
    report(Code::BadNesting, stmt.span, "a loop over tiles inside of a loop over tiles")
        .note("sum(... for k) reduces over a whole index inside of a tile loop");
    return false;
  }
  auto range = stmt.range ? evalRange(*stmt.range, stmt.index.name, Code::LoopBounds) : std::nullopt;
  if (!checkIndexName(stmt.index))
    return false;
  Scope inner(Scope::Tiles, scope);
  Trimmed trimmedVars(activeVars);
  Trimmed trimmedTiles(tileVars);
  Stmt *loop = append(Stmt::Tiles, stmt.span);
  if (!range) {
    poison(inner, stmt.index, /*isIndex=*/true);
  } else {
    const Var *var =
        newVar(Var::Tile, stmt.index.name, range->first, range->second, stmt.index.span);
    loop->vars.push_back(var);
    defineIndex(inner, stmt.index, var);
    tileVars.push_back(var);
  }
  Saved savedScope(scope, &inner);
  Saved savedSink(sink, &loop->body);
  checkBody(stmt.body);
  return range.has_value();
}

bool Checker::checkState(const ast::Stmt &stmt) {
  if (stmt.targets.empty() || !stmt.value)
    return false;
  const ast::Target &target = stmt.targets[0];
  auto fail = [&] {
    poison(*scope, target.name);
    return false;
  };
  if (target.hasSubscripts) {
    report(Code::StateMisuse, target.span,
           "a state in a parallel block has no subscripts: it varies along the indices that its "
           "updates need")
        .note("write state " + target.name.name + " = ...");
    return fail();
  }
  if (!tileVars.empty()) {
    report(Code::StateMisuse, stmt.span, "a state begins before the loop that changes it");
    return fail();
  }
  Value value = eval(*stmt.value);
  if (value.isPoison())
    return fail();
  std::optional<DType> storage;
  if (target.type) {
    storage = resolveType(*target.type);
    if (!storage)
      return fail();
  }
  StateFact &fact = stateFacts[&stmt];
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
  StateDef &state = program->states.emplace_back();
  state.name = target.name.name;
  state.type = type;
  if (storage && *storage != type)
    state.storage = storage;
  state.span = stmt.span;
  const Expr *init = storable(value, storage.value_or(type), "'" + target.name.name + "'",
                              stmt.value->span);
  if (!init)
    return fail();
  if (init->type != type) {
    Expr *narrow = make(Expr::Convert, type, stmt.value->span);
    narrow->target = type;
    narrow->operands = {init};
    init = finish(narrow);
  }
  state.init = init;
  state.axes = fact.axes;
  for (unsigned id : init->axes)
    if (!llvm::is_contained(state.axes, id))
      state.axes.push_back(id);
  llvm::sort(state.axes);
  StateInfo &info = stateInfos.emplace_back();
  info.state = &state;
  info.stmt = &stmt;
  Entity entity;
  entity.kind = Entity::State;
  entity.state = &info;
  append(Stmt::StateInit, stmt.span)->state = &state;
  return define(*scope, target.name, std::move(entity)) != nullptr;
}

bool Checker::checkUpdate(const ast::Stmt &stmt, const ast::Target &target, StateInfo &info) {
  StateDef &state = *info.state;
  if (target.hasColon) {
    report(Code::StateMisuse, target.span,
           "the type of a state stands where it begins: state " + state.name + ": f16 = ...");
    return false;
  }
  Value value = eval(*stmt.value);
  if (value.isPoison())
    return false;
  std::vector<unsigned> axes = value.expr->axes;
  // How often a loop runs decides too.
  for (const Var *var : activeVars)
    if (var->kind == Var::Tile || var->kind == Var::Loop) {
      addAxes(axes, var->lo);
      addAxes(axes, var->hi);
    }
  for (unsigned id : value.expr->axes) {
    const Var &var = program->vars[id];
    if (var.kind != Var::Tile)
      continue;
    report(Code::TileEscape, stmt.value->span,
           "the new value of '" + state.name + "' varies along '" + var.name +
               "', which ends with its tile")
        .note("reduce over it: sum(... for " + var.name + ")");
    return false;
  }
  StateFact &fact = stateFacts[info.stmt];
  DType type = typeAlone(value);
  if ((!value.weak || isFloat(type)) && width(type) > width(fact.type)) {
    fact.type = type;
    stateFactsChanged = true;
  }
  for (unsigned id : axes) {
    const Var &var = program->vars[id];
    if (!llvm::is_contained(parallelVars, &var) || llvm::is_contained(fact.axes, id))
      continue;
    fact.axes.push_back(id);
    stateFactsChanged = true;
  }
  DType kept = state.storage.value_or(state.type);
  const Expr *stored = storable(value, kept, "the state '" + state.name + "'",
                                stmt.value->span);
  if (!stored)
    return false;
  if (stored->type != state.type) {
    Expr *narrow = make(Expr::Convert, state.type, stmt.value->span);
    narrow->target = state.type;
    narrow->operands = {stored};
    stored = finish(narrow);
  }
  Stmt *update = append(Stmt::Update, stmt.span);
  update->state = &state;
  update->value = stored;
  return true;
}

