//===- EmitIRStmt.cpp - Equations, scalars, states and loops ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIRAlike.h"
#include "frontend/lower/EmitIRDistinct.h"
#include "frontend/lower/EmitIRExpr.h"
#include "frontend/lower/EmitIRImpl.h"
#include "frontend/lower/EmitIRScatter.h"
#include "ir/tgl/WriteAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace tegula;
using namespace tegula::emit;
using namespace mlir;

Emitter::Region::Region(Emitter &emitter, Block *block, ArrayRef<const Var *> vars,
                        ValueRange values)
    : emitter(emitter), guard(emitter.builder) {
  Frame frame;
  for (auto [var, value] : llvm::zip_equal(vars, values)) {
    frame.rebinds |= emitter.isBound(var->id);
    frame.vars[var->id] = value;
  }
  emitter.frames.push_back(std::move(frame));
  if (block)
    emitter.builder.setInsertionPointToEnd(block);
}

void Emitter::emitBody(ArrayRef<Stmt *> body) {
  for (size_t position = 0; position < body.size(); ++position)
    emitStmt(*body[position], body.drop_front(position + 1));
}

void Emitter::emitStmt(const Stmt &stmt, ArrayRef<Stmt *> following) {
  // What one statement computes is not kept for the next: tensors and states change in between.
  Region values(*this, nullptr, {}, {});
  SmallVector<NarrowSum> narrow = narrowSums(*this, stmt);
  if (narrow.empty())
    return emitPlainStmt(stmt, following);
  emitNarrowSums(*this, stmt, narrow, following);
}

void Emitter::emitPlainStmt(const Stmt &stmt, ArrayRef<Stmt *> following) {
  switch (stmt.kind) {
  case Stmt::Equation:
    return emitEquation(stmt);
  case Stmt::Define:
    return emitDefine(stmt, following);
  case Stmt::Update:
    return emitUpdate(stmt);
  case Stmt::StateInit:
    return emitStateInit(stmt);
  case Stmt::TensorDef:
    tensors[stmt.tensor] = tgl::TempOp::create(builder, locate(stmt.span), tensorType(*stmt.tensor),
                                               stmt.tensor->name);
    return;
  case Stmt::Parallel:
    return emitParallel(stmt);
  case Stmt::Tiles:
  case Stmt::For:
    return emitLoop(stmt);
  case Stmt::Call:
    return emitCall(stmt);
  case Stmt::Observe: // not observed
    return;
  }
}

//===----------------------------------------------------------------------===//
// Equations
//===----------------------------------------------------------------------===//

AxisSet Emitter::equationAxes(const Stmt &stmt) {
  AxisSet set = analysis.axesOf(stmt);
  for (const Var *var : stmt.vars)
    insertAll(set, {var->id});
  if (stmt.accumulate)
    for (const Var *var : blockAxes)
      insertAll(set, {var->id});
  return withBounds(std::move(set));
}

void Emitter::emitEquation(const Stmt &stmt) {
  SmallVector<const Var *, 4> axes = unboundAxes(equationAxes(stmt), inTargetOrder(stmt));
  std::optional<LastWriters> last;
  bool alike = stmt.meeting == Stmt::Alike;
  if (auto found = blockWriters.find(&stmt); found != blockWriters.end()) {
    last = found->second;
  } else if (stmt.meeting == Stmt::LastWins && !writesDistinctPlaces(*this, stmt)) {
    alike = writesAlike(*this, stmt);
    if (!alike)
      last = emitLastWriters(*this, stmt);
  }
  llvm::SaveAndRestore<const LastWriters *> savedWriters(lastWriters, last ? &*last : nullptr);
  llvm::SaveAndRestore<bool> savedAlike(meetAlike, alike);
  if (axes.empty() || readsOwnPointsOnly(stmt)) { // one point reads before it writes
    emitInvariants(stmt.value, axes);
    forPoints(axes, locate(stmt.span),
              [&] { emitWrite(stmt, tensors.lookup(stmt.tensor), eval(*this, stmt.value)); });
    return;
  }
  // No point of a block reads what another one writes: each goes through its own elements on its
  // own.
  SmallVector<const Var *> ofBlock, own;
  for (const Var *axis : axes)
    (llvm::is_contained(blockAxes, axis) ? ofBlock : own).push_back(axis);
  if (!ofBlock.empty())
    return forPoints(ofBlock, locate(stmt.span), [&] { emitReadingTarget(stmt, own); });
  emitReadingTarget(stmt, axes);
}

/// Points that may read what others of them write: all read first.
void Emitter::emitReadingTarget(const Stmt &stmt, ArrayRef<const Var *> axes) {
  if (axes.empty())
    return emitWrite(stmt, tensors.lookup(stmt.tensor), eval(*this, stmt.value));
  if (addressReadsTarget(stmt) || !haveSizes(axes))
    emitWithOldTarget(stmt, axes);
  else
    emitThroughTemp(stmt, axes);
}

void Emitter::emitThroughTemp(const Stmt &stmt, ArrayRef<const Var *> axes) {
  Location loc = locate(stmt.span);
  Value target = tensors.lookup(stmt.tensor);
  Type type = stmt.value->type == DType::F64
                  ? builder.getF64Type()
                  : cast<tgl::TglTensorType>(target.getType()).getComputeType();
  Place place = createStored(stmt.tensor->name + ".new", type, axes, loc);
  emitInvariants(stmt.value, axes);
  forPoints(axes, loc, [&] { writeStored(eval(*this, stmt.value), place, loc); });
  forPoints(axes, loc, [&] { emitWrite(stmt, target, readStored(place, loc)); });
}

void Emitter::emitWithOldTarget(const Stmt &stmt, ArrayRef<const Var *> axes) {
  Location loc = locate(stmt.span);
  Value target = tensors.lookup(stmt.tensor);
  Value old = tgl::TempOp::create(builder, loc, target.getType(), stmt.tensor->name + ".old");
  emitCopy(target, old, loc);
  tensors[stmt.tensor] = old;
  emitInvariants(stmt.value, axes);
  forPoints(axes, loc, [&] { emitWrite(stmt, target, eval(*this, stmt.value)); });
  tensors[stmt.tensor] = target;
}

void Emitter::emitWrite(const Stmt &stmt, Value target, Value value) {
  Location loc = locate(stmt.span);
  auto type = cast<tgl::TglTensorType>(target.getType());
  value = stmt.accumulate ? coerce(*this, value, type.getComputeType(), loc)
                          : toStore(*this, value, type, loc);
  SmallVector<tgl::ValueExpr> subscripts = valueExprs(stmt.subscripts);
  Value guard = stmt.guard ? evalAs(*this, stmt.guard, builder.getI1Type()) : Value();
  if (!stmt.accumulate) {
    // Along an axis of the block that the equation does not vary along, its first point writes.
    AxisSet own = equationAxes(stmt);
    for (const Var *axis : blockAxes) {
      if (contains(own, axis->id) || !isBound(axis->id))
        continue;
      Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, valueOf(*axis),
                                            indexOf(axis->lo, loc));
      guard = guard ? arith::AndIOp::create(builder, loc, guard, isFirst) : isFirst;
    }
  }
  std::string checked = stmt.dataDependent ? accessText(stmt.span) : std::string();
  auto also = [&](Value condition) {
    guard = guard ? arith::AndIOp::create(builder, loc, guard, condition) : condition;
  };
  std::optional<tgl::ReduceKind> combine;
  if (meetAlike)
    combine = tgl::ReduceKind::Any;
  if (stmt.accumulate)
    combine = stmt.combine == Reduction::Max   ? tgl::ReduceKind::Max
              : stmt.combine == Reduction::Min ? tgl::ReduceKind::Min
                                               : tgl::ReduceKind::Sum;
  if (stmt.accumulate && type.getElementType().isInteger(1)) {
    // The maximum of truth values becomes true where one is, the minimum false where one is not.
    Value limit = constantInt(*this, builder.getI1Type(), stmt.combine == Reduction::Max, loc);
    also(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, value, limit));
    value = limit;
    combine = tgl::ReduceKind::Any;
  }
  if (lastWriters)
    also(isLastWriter(*this, *lastWriters, guard, checked, loc));
  auto write =
      tgl::WriteOp::create(builder, loc, value, target, subscripts, guard, combine, checked);
  if (!stmt.distinct.empty())
    write->setAttr(tgl::distinctAttrName, builder.getStringAttr(stmt.distinct));
}

bool Emitter::addressReadsTarget(const Stmt &stmt) {
  return (stmt.guard && analysis.readsTensor(stmt.guard, stmt.tensor)) ||
         llvm::any_of(stmt.subscripts, [&](const IndexExpr &subscript) {
           return analysis.readsTensor(subscript, stmt.tensor);
         });
}

/// The equation's own axes as its subscripts name them, so that the last one walks through memory;
/// those that only the right side has stand last, and each after those that its bounds use.
SmallVector<const Var *> Emitter::inTargetOrder(const Stmt &stmt) {
  SmallVector<const Var *> wanted, ordered;
  for (const IndexExpr &subscript : stmt.subscripts)
    for (const Var *var : stmt.vars)
      if (contains(analysis.axesOf(subscript), var->id) && !llvm::is_contained(wanted, var))
        wanted.push_back(var);
  for (const Var *var : stmt.vars)
    if (!llvm::is_contained(wanted, var))
      wanted.push_back(var);
  while (!wanted.empty()) {
    auto isReady = [&](const Var *var) {
      AxisSet bounds = analysis.axesOfBounds(*var);
      return llvm::none_of(wanted, [&](const Var *other) { return contains(bounds, other->id); });
    };
    auto *next = llvm::find_if(wanted, isReady);
    assert(next != wanted.end() && "bounds of axes depend on each other");
    ordered.push_back(*next);
    wanted.erase(next);
  }
  return ordered;
}

bool Emitter::readsOwnPointsOnly(const Stmt &stmt) {
  // What a point reads of its own element, another one that writes the same may have written.
  if (meetAlike && analysis.readsTensor(stmt.value, stmt.tensor))
    return false;
  if (!stmt.readsTarget && !addressReadsTarget(stmt))
    return true;
  if (stmt.accumulate || stmt.meeting == Stmt::LastWins)
    return false;
  AxisSet varying;
  for (const Var *var : unboundAxes(equationAxes(stmt), stmt.vars))
    insertAll(varying, {var->id});
  auto isApart = [&](const Expr *read) {
    for (auto [own, other] : llvm::zip_equal(stmt.subscripts, read->subscripts)) {
      std::optional<int64_t> distance = (own - other).asConstant();
      if (distance && *distance != 0 && intersection(analysis.axesOf(own), varying).empty())
        return true;
    }
    return false;
  };
  bool result = true;
  auto inspect = [&](const Expr *root) {
    analysis.walk(root, [&](const Expr *node) {
      if (node->kind == Expr::Read && node->tensor == stmt.tensor)
        result &= ArrayRef(node->subscripts) == ArrayRef(stmt.subscripts) || isApart(node);
      return result;
    });
  };
  inspect(stmt.value);
  if (stmt.guard)
    inspect(stmt.guard);
  for (const IndexExpr &subscript : stmt.subscripts)
    analysis.forEachData(subscript, inspect);
  return result;
}

void Emitter::emitCopy(Value from, Value to, Location loc) {
  auto type = cast<tgl::TglTensorType>(to.getType());
  SmallVector<tgl::AxisSpec> axes;
  for (auto [position, dim] : llvm::enumerate(type.getDims()))
    axes.push_back({"d" + std::to_string(position), 0, dim.getExpr()});
  auto op = tgl::ParallelOp::create(builder, loc, axes);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&op.getBody().front());
  SmallVector<tgl::ValueExpr> subscripts(op.getAxes().begin(), op.getAxes().end());
  Value element = tgl::ReadOp::create(builder, loc, from, subscripts);
  tgl::WriteOp::create(builder, loc, toStore(*this, element, type, loc), to, subscripts);
}

//===----------------------------------------------------------------------===//
// Scalars and states
//===----------------------------------------------------------------------===//

void Emitter::emitDefine(const Stmt &stmt, ArrayRef<Stmt *> following) {
  const Let *let = stmt.let;
  if (isStored(let)) // computed before its block
    return;
  Location loc = locate(stmt.span);
  Type type = computeTypeOf(*this, let->value->type);
  SmallVector<const Var *, 4> axes = unboundAxes(withBounds(analysis.axesOf(let->value)));
  bool isScalar = axes.empty() && (parallelDepth || isOnHost(let->value));
  if (isScalar) {
    lets[let] = {Place::Scalar, evalAs(*this, let->value, type), {}};
    return;
  }
  if (parallelDepth && !isChanged(let->value, following) &&
      analysis.isCheap(let->value, [&](const Let *other) { return isStored(other); })) {
    lets[let] = {Place::Inline, {}, {}};
    return;
  }
  Place place = createStored(let->name, type, axes, loc);
  emitInvariants(let->value, axes);
  forPoints(axes, loc, [&] { writeStored(eval(*this, let->value), place, loc); });
  lets[let] = std::move(place);
}

bool Emitter::isOnHost(const Expr *expr) {
  return analysis.isOnHost(expr) && !analysis.refersTo(expr, [&](const Expr *node) {
    return node->kind == Expr::Scalar && scalars.find(node->scalar)->second.kind == Place::Stored;
  });
}

/// A state's new value as its storage type holds it.
Value Emitter::roundedState(const StateDef &state, const Expr *value) {
  Location loc = locate(value->span);
  Value result = evalAs(*this, value, computeTypeOf(*this, state.type));
  if (state.storage && typeOf(*this, *state.storage) != result.getType())
    result = coerce(*this, convertTo(*this, result, state.type, *state.storage, false, loc),
                    result.getType(), loc);
  return result;
}

void Emitter::emitStateInit(const Stmt &stmt) {
  const StateDef &state = *stmt.state;
  Location loc = locate(stmt.span);
  SmallVector<const Var *, 4> axes = unboundAxes(withBounds(axisSet(state.axes)));
  if (axes.empty() && parallelDepth) {
    states[&state] = {Place::Scalar, roundedState(state, state.init), {}};
    return;
  }
  Place place = createStored(state.name, computeTypeOf(*this, state.type), axes, loc);
  emitInvariants(state.init, axes);
  forPoints(axes, loc, [&] { writeStored(roundedState(state, state.init), place, loc); });
  states[&state] = std::move(place);
}

void Emitter::emitUpdate(const Stmt &stmt) {
  const StateDef &state = *stmt.state;
  Location loc = locate(stmt.span);
  Place &place = states.find(&state)->second;
  if (place.kind == Place::Scalar) {
    place.value = roundedState(state, stmt.value);
    return;
  }
  emitInvariants(stmt.value, place.axes);
  forPoints(place.axes, loc, [&] { writeStored(roundedState(state, stmt.value), place, loc); });
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

SmallVector<const StateDef *> Emitter::carriedStates(ArrayRef<Stmt *> body) {
  llvm::SmallSetVector<const StateDef *, 4> carried;
  forEachStmt(body, [&](const Stmt &stmt) {
    if (stmt.kind != Stmt::Update)
      return;
    auto known = states.find(stmt.state);
    if (known != states.end() && known->second.kind == Place::Scalar)
      carried.insert(stmt.state);
  });
  return carried.takeVector();
}

/// Fills a loop's region: the loop variable or the tile's bounds, then the carried states.
void Emitter::emitLoopBody(Operation *loop, const Stmt &stmt, ArrayRef<const StateDef *> carried) {
  const Var *var = stmt.vars.front();
  Block *block = &loop->getRegion(0).front();
  unsigned fixed = block->getNumArguments() - carried.size();
  for (auto [state, value] : llvm::zip_equal(carried, block->getArguments().drop_front(fixed)))
    states[state].value = value;
  {
    bool isTile = stmt.kind == Stmt::Tiles;
    if (isTile)
      tileBounds[var->id] = {block->getArgument(0), block->getArgument(1)};
    Region region(*this, block, isTile ? ArrayRef<const Var *>() : ArrayRef(var),
                  isTile ? ValueRange() : ValueRange(block->getArgument(0)));
    emitBody(stmt.body);
    SmallVector<Value> values;
    for (const StateDef *state : carried)
      values.push_back(states[state].value);
    tgl::YieldOp::create(builder, loop->getLoc(), values);
  }
  for (auto [state, result] : llvm::zip_equal(carried, loop->getResults()))
    states[state].value = result;
}

void Emitter::emitLoop(const Stmt &stmt) {
  const Var &var = *stmt.vars.front();
  Location loc = locate(stmt.span);
  bool isTile = stmt.kind == Stmt::Tiles;
  bool boundsHoldData = false;
  for (const IndexExpr *bound : {&var.lo, &var.hi})
    analysis.forEachData(*bound, [&](const Expr *) { boundsHoldData = true; });
  // Outside of every region only loops stand that the host can run.
  if (!parallelDepth && (isTile || boundsHoldData))
    return forPoints({}, loc, [&] { emitLoop(stmt); });

  SmallVector<const StateDef *> carried = carriedStates(stmt.body);
  SmallVector<Value> inits;
  SmallVector<StringRef> names{var.name};
  for (const StateDef *state : carried) {
    inits.push_back(states[state].value);
    names.push_back(state->name);
  }
  Operation *loop;
  {
    Region values(*this, nullptr, {}, {});
    tgl::ValueExpr low = valueExpr(var.lo), high = valueExpr(var.hi);
    if (isTile)
      loop = tgl::TilesOp::create(builder, loc, names, low, high, inits, tileSize(var));
    else
      loop = tgl::ForOp::create(builder, loc, names, low, high, inits, var.reverse);
  }
  emitLoopBody(loop, stmt, carried);
}
