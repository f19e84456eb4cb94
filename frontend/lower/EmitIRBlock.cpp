//===- EmitIRBlock.cpp - Parallel blocks ------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// EmitIR.h says which axes are outer and where values live. Everything here asks one question,
// "along which axes does this vary that no region around me binds?": those are the axes of the
// inner `tgl.parallel` that computes it, and the dims of the private temporary that holds it.
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIRAlike.h"
#include "frontend/lower/EmitIRExpr.h"
#include "frontend/lower/EmitIRImpl.h"
#include "frontend/lower/EmitIRScatter.h"

using namespace tegula;
using namespace tegula::emit;
using namespace mlir;

void Emitter::emitParallel(const Stmt &stmt) {
  size_t enclosing = blockAxes.size();
  blockAxes.append(stmt.vars.begin(), stmt.vars.end());
  AxisSet outer = outerAxes(stmt);
  for (const Stmt *inner : stmt.body)
    if (inner->meeting == Stmt::LastWins && !writesAlike(*this, *inner))
      blockWriters[inner] = emitLastWriters(*this, *inner);
  hoistValues(stmt, outer);
  forPoints(unboundAxes(outer), locate(stmt.span), [&] { emitBody(stmt.body); });
  blockAxes.truncate(enclosing);
}

AxisSet Emitter::outerAxes(const Stmt &block) {
  AxisSet all;
  for (const Var *var : block.vars)
    insertAll(all, {var->id});
  AxisSet outer = all;
  forEachStmt(block.body, [&](const Stmt &stmt) {
    if (stmt.kind == Stmt::StateInit)
      outer = intersection(outer, axisSet(stmt.state->axes));
    else if (stmt.kind == Stmt::Equation && !stmt.accumulate)
      outer = intersection(outer, equationAxes(stmt));
    else if (stmt.kind == Stmt::Define && analysis.dependsOnState(stmt.let->value) &&
             !analysis.isCheap(stmt.let->value, [](const Let *) { return false; }))
      outer = intersection(outer, analysis.axesOf(stmt.let->value));
  });
  return isNestable(block, all, outer) ? outer : all;
}

bool Emitter::isNestable(const Stmt &block, const AxisSet &all, const AxisSet &outer) {
  auto isOuter = [&](const AxisSet &axes) { return isSubset(intersection(axes, all), outer); };
  for (const Var *var : block.vars)
    if (contains(outer, var->id) && !isOuter(analysis.axesOfBounds(*var)))
      return false;
  bool result = true;
  AxisSet stored;
  forEachStmt(block.body, [&](const Stmt &stmt) {
    if (stmt.kind == Stmt::Tiles || stmt.kind == Stmt::For || stmt.kind == Stmt::Parallel)
      for (const Var *var : stmt.vars)
        result &= isOuter(analysis.axesOfBounds(*var));
    if (stmt.kind == Stmt::StateInit)
      insertAll(stored, axisSet(stmt.state->axes));
    if (stmt.kind == Stmt::Define)
      insertAll(stored, analysis.axesOf(stmt.let->value));
  });
  for (const Var *var : block.vars)
    if (contains(stored, var->id) && !contains(outer, var->id))
      result &= extentOf(*var).has_value();
  return result;
}

void Emitter::hoistValues(const Stmt &block, const AxisSet &outer) {
  for (const Stmt *stmt : block.body) {
    if (stmt->kind != Stmt::Define)
      continue;
    const Let *let = stmt->let;
    AxisSet varying = withBounds(analysis.axesOf(let->value));
    SmallVector<const Var *, 4> axes = unboundAxes(varying);
    if (isSubset(outer, varying) || !haveSizes(axes) || analysis.dependsOnState(let->value) ||
        isChanged(let->value, block.body) ||
        analysis.isCheap(let->value, [&](const Let *other) { return isStored(other); }))
      continue;
    Region values(*this, nullptr, {}, {});
    Location loc = locate(stmt->span);
    Place place = createStored(let->name, computeTypeOf(*this, let->value->type), axes, loc);
    forPoints(axes, loc, [&] { writeStored(eval(*this, let->value), place, loc); });
    lets[let] = std::move(place);
  }
}

bool Emitter::isStored(const Let *let) const {
  auto known = lets.find(let);
  return known != lets.end() && known->second.kind != Place::Inline;
}

bool Emitter::isChanged(const Expr *value, ArrayRef<Stmt *> following) {
  llvm::SmallPtrSet<const void *, 4> sources;
  analysis.walk(value, [&](const Expr *node) {
    if (node->kind == Expr::Let && isStored(node->let))
      return false;
    if (node->kind == Expr::Read)
      sources.insert(node->tensor);
    if (node->kind == Expr::State)
      sources.insert(node->state);
    return true;
  });
  bool changed = false;
  forEachStmt(following, [&](const Stmt &stmt) {
    changed |= stmt.kind == Stmt::Equation && sources.contains(stmt.tensor);
    changed |= stmt.kind == Stmt::Update && sources.contains(stmt.state);
  });
  return changed;
}

std::optional<IndexExpr> Emitter::extentOf(const Var &var) {
  if (var.kind == Var::Tile)
    return IndexExpr(tileSize(var));
  if (!var.lo.isSize() || !var.hi.isSize())
    return std::nullopt;
  IndexExpr extent = var.hi - var.lo;
  bool isNonNegative = llvm::all_of(extent.terms(), [](const IndexExpr::Term &term) {
    return term.coefficient >= 0 && llvm::all_of(term.factors, [](const auto &factor) {
             return factor.first->kind == IndexExpr::AtomKind::Variable;
           });
  });
  return isNonNegative ? extent : IndexExpr::max(extent, IndexExpr(0));
}

bool Emitter::haveSizes(ArrayRef<const Var *> axes) {
  return llvm::all_of(axes, [&](const Var *axis) { return extentOf(*axis).has_value(); });
}

int64_t Emitter::tileSize(const Var &var) {
  for (const ScheduleSetting &setting : program.schedule)
    if (!callSite && setting.keyword == "tile" && setting.axis == var.name && setting.value)
      return std::max<int64_t>(*setting.value, 1);
  return options.tile ? options.tile : 32;
}

AxisSet Emitter::withBounds(AxisSet set) {
  for (size_t before = 0; before != set.size();) {
    before = set.size();
    for (unsigned axis : AxisSet(set))
      if (program.vars[axis].kind == Var::Axis)
        insertAll(set, analysis.axesOfBounds(program.vars[axis]));
  }
  return set;
}

SmallVector<const Var *, 4> Emitter::unboundAxes(const AxisSet &set, ArrayRef<const Var *> own) {
  SmallVector<const Var *, 4> axes;
  auto add = [&](const Var *var) {
    if (contains(set, var->id) && !isBound(var->id) && !llvm::is_contained(axes, var))
      axes.push_back(var);
  };
  for (const Var *var : blockAxes)
    add(var);
  for (unsigned axis : set)
    if (!llvm::is_contained(own, &program.vars[axis]))
      add(&program.vars[axis]);
  for (const Var *var : own)
    add(var);
  return axes;
}

void Emitter::emitInvariants(const Expr *value, ArrayRef<const Var *> axes) {
  if (axes.empty() || !parallelDepth)
    return;
  AxisSet varying;
  for (const Var *axis : axes)
    insertAll(varying, {axis->id});
  SmallVector<const Expr *> invariants;
  analysis.walk(value, [&](const Expr *node) {
    if (node->kind == Expr::Let && isStored(node->let))
      return false;
    if (node->kind != Expr::Reduce && node->kind != Expr::Scan)
      return true;
    if (intersection(analysis.axesOf(node), varying).empty())
      invariants.push_back(node);
    return false;
  });
  for (const Expr *invariant : llvm::reverse(invariants)) // the walk is last to first
    eval(*this, invariant);
}

Place Emitter::createStored(StringRef name, Type element, ArrayRef<const Var *> axes,
                            Location loc) {
  SmallVector<IndexExpr> dims;
  for (const Var *axis : axes) {
    std::optional<IndexExpr> extent = extentOf(*axis);
    assert(extent && "values are stored only along axes of known size");
    dims.push_back(*extent);
  }
  Value tensor = tgl::TempOp::create(builder, loc, tensorType(dims, element), name);
  return {Place::Stored, tensor, SmallVector<const Var *, 4>(axes)};
}

void Emitter::forPoints(ArrayRef<const Var *> axes, Location loc, llvm::function_ref<void()> body) {
  if (axes.empty() && parallelDepth)
    return body();
  // Data in bounds is read on the device.
  bool boundsHoldData = false;
  for (const Var *axis : axes)
    for (const IndexExpr *bound : {&axis->lo, &axis->hi})
      analysis.forEachData(*bound, [&](const Expr *) { boundsHoldData = true; });
  ArrayRef<const Var *> first = splitAtData(axes).front();
  if (!parallelDepth && boundsHoldData && !axes.empty())
    first = {};

  tgl::ParallelOp op;
  {
    Region values(*this, nullptr, {}, {});
    op = tgl::ParallelOp::create(builder, loc, axisSpecs(first));
  }
  Region region(*this, &op.getBody().front(), first, op.getAxes());
  setOwnRanges(op, first);
  ++parallelDepth;
  forPoints(axes.drop_front(first.size()), loc, body);
  --parallelDepth;
}
