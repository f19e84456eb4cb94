//===- EmitIRScatter.cpp - Writes whose points may meet -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `y[slot[i], d] = x[i, d]`, where rows may meet: a table with one number for each row of y holds
// the last i that writes it. The rows that are written are set to -1, each i takes the maximum with
// its own number, and then the rows whose number it is are copied. Dims that the left side shows by
// an index alone, such as d, have no part in the table.
//
// Sums in storage types: the elements that a statement adds to are read into a wider tensor, added
// to there, and rounded back once. Elements that nothing is added to are not touched.
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIRScatter.h"
#include "frontend/lower/EmitIRExpr.h"
#include "frontend/lower/EmitIRImpl.h"
#include "ir/tgl/WriteAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

using namespace tegula;
using namespace tegula::emit;
using namespace mlir;

static mlir::Value numberOf(Emitter &emitter, const Emitter::LastWriters &last, mlir::Location loc);

//===----------------------------------------------------------------------===//
// The last writer of each row
//===----------------------------------------------------------------------===//

Emitter::LastWriters tegula::emit::emitLastWriters(Emitter &emitter, const Stmt &stmt) {
  Location loc = emitter.locate(stmt.span);
  std::string checked = stmt.dataDependent ? emitter.accessText(stmt.span) : std::string();
  auto bareIndex = [&](const IndexExpr &subscript) -> std::optional<unsigned> {
    std::optional<IndexVar> var = subscript.asVariable();
    if (!var || var->isSymbol() || emitter.program.vars[var->position()].kind == Var::Data)
      return std::nullopt;
    return var->position();
  };
  // What the rows depend on.
  AxisSet deciding;
  if (stmt.guard)
    insertAll(deciding, emitter.analysis.axesOf(stmt.guard));
  for (const IndexExpr &subscript : stmt.subscripts)
    if (!bareIndex(subscript))
      insertAll(deciding, emitter.analysis.axesOf(subscript));
  Emitter::LastWriters last;
  SmallVector<IndexExpr> dims;
  for (auto [dim, subscript] : llvm::enumerate(stmt.subscripts)) {
    std::optional<unsigned> bare = bareIndex(subscript);
    if (bare && !contains(deciding, *bare) && !emitter.isBound(*bare))
      continue;
    last.subscripts.push_back(subscript);
    dims.push_back(stmt.tensor->dims[dim]);
    if (bare)
      insertAll(deciding, {*bare});
  }
  // Row-major, the last index fastest.
  IndexExpr position(0);
  for (const Var *var : stmt.order)
    if (contains(deciding, var->id))
      position = position * (var->hi - var->lo) + (IndexExpr::dim(var->id) - var->lo);
  last.position = position;
  last.table = tgl::TempOp::create(emitter.builder, loc,
                                   emitter.tensorType(dims, emitter.builder.getI64Type()),
                                   stmt.tensor->name + ".last");
  last.table.getDefiningOp()->setAttr(tgl::lastWritersAttrName, emitter.builder.getUnitAttr());
  SmallVector<const Var *, 4> axes =
      emitter.unboundAxes(emitter.withBounds(deciding), emitter.inTargetOrder(stmt));
  auto atPoints = [&](tgl::ReduceKind combine, llvm::function_ref<Value()> value) {
    emitter.forPoints(axes, loc, [&] {
      SmallVector<tgl::ValueExpr> subscripts = emitter.valueExprs(last.subscripts);
      Value guard = stmt.guard ? evalAs(emitter, stmt.guard, emitter.builder.getI1Type()) : Value();
      tgl::WriteOp::create(emitter.builder, loc, value(), last.table, subscripts, guard, combine,
                           checked);
    });
  };
  atPoints(tgl::ReduceKind::Any,
           [&] { return constantInt(emitter, emitter.builder.getI64Type(), -1, loc); });
  atPoints(tgl::ReduceKind::Max, [&] { return numberOf(emitter, last, loc); });
  return last;
}

static Value numberOf(Emitter &emitter, const Emitter::LastWriters &last, Location loc) {
  return arith::IndexCastOp::create(emitter.builder, loc, emitter.builder.getI64Type(),
                                    emitter.indexOf(last.position, loc));
}

/// Whether the current point is the last that writes its row.
Value tegula::emit::isLastWriter(Emitter &emitter, const Emitter::LastWriters &last, Value guard,
                                 StringRef checked, Location loc) {
  Value found = tgl::ReadOp::create(emitter.builder, loc, last.table,
                                    emitter.valueExprs(last.subscripts), Value(), guard,
                                    ArrayRef<std::pair<tgl::ValueExpr, tgl::ValueExpr>>(), checked);
  return arith::CmpIOp::create(emitter.builder, loc, arith::CmpIPredicate::eq, found,
                               numberOf(emitter, last, loc));
}

//===----------------------------------------------------------------------===//
// Sums in storage types
//===----------------------------------------------------------------------===//

static bool isNarrowSum(const Stmt &stmt) {
  return stmt.kind == Stmt::Equation && stmt.accumulate &&
         computeType(stmt.tensor->type) != stmt.tensor->type;
}

/// Whether the elements that `sum` adds to are known before `root`, the statement that it is or
/// stands in, and nothing else in there looks at its tensor.
static bool isTouchedAlone(Emitter &emitter, const Stmt &root, const Stmt &sum) {
  bool alone = true;
  auto inspect = [&](const Expr *value) {
    alone &= !value || !emitter.analysis.readsTensor(value, sum.tensor);
  };
  auto visit = [&](const Stmt &stmt) {
    inspect(stmt.value);
    inspect(stmt.guard);
    if (stmt.let)
      inspect(stmt.let->value);
    if (stmt.state)
      inspect(stmt.state->init);
    for (const IndexExpr &subscript : stmt.subscripts)
      alone &= !emitter.analysis.readsTensor(subscript, sum.tensor);
    alone &=
        stmt.kind == Stmt::Equation || stmt.kind == Stmt::Define || stmt.kind == Stmt::Parallel;
    alone &= stmt.kind != Stmt::Equation || stmt.tensor != sum.tensor || stmt.accumulate;
  };
  visit(root);
  forEachStmt(root.body, visit);
  // Values of a block do not exist outside of it.
  auto isOutside = [&](const Expr *value) {
    return !emitter.analysis.refersTo(value, [&](const Expr *node) {
      return node->kind == Expr::State ||
             (node->kind == Expr::Let && !emitter.isStored(node->let) && &root != &sum);
    });
  };
  alone &= !sum.guard || isOutside(sum.guard);
  for (const IndexExpr &subscript : sum.subscripts)
    emitter.analysis.forEachData(subscript, [&](const Expr *data) { alone &= isOutside(data); });
  return alone;
}

SmallVector<Emitter::NarrowSum> tegula::emit::narrowSums(Emitter &emitter, const Stmt &root) {
  llvm::MapVector<const Tensor *, Emitter::NarrowSum> sums;
  auto inspect = [&](const Stmt &stmt) {
    if (!isNarrowSum(stmt))
      return;
    Emitter::NarrowSum &sum = sums[stmt.tensor];
    sum.tensor = stmt.tensor;
    sum.equations.push_back(&stmt);
    sum.isWhole |= !isTouchedAlone(emitter, root, stmt);
  };
  if (!emitter.parallelDepth && root.kind != Stmt::For) {
    inspect(root);
    forEachStmt(root.body, inspect);
  }
  return llvm::map_to_vector(sums, [](const auto &each) { return each.second; });
}

/// Copies the elements that the sum adds to; where points meet they write the same.
static void copyTouched(Emitter &emitter, const Stmt &sum, Value from, Value to) {
  Location loc = emitter.locate(sum.span);
  AxisSet deciding;
  if (sum.guard)
    insertAll(deciding, emitter.analysis.axesOf(sum.guard));
  bool tellApart = true;
  AxisSet seen;
  for (const IndexExpr &subscript : sum.subscripts) {
    AxisSet own = emitter.analysis.axesOf(subscript);
    std::optional<IndexVar> var = subscript.asVariable();
    tellApart &= own.empty() || (var && !var->isSymbol() && own == AxisSet{var->position()} &&
                                 !contains(seen, var->position()));
    insertAll(seen, own);
  }
  tellApart &= isSubset(deciding, seen);
  insertAll(deciding, seen);
  auto type = cast<tgl::TglTensorType>(to.getType());
  std::string checked = sum.dataDependent ? emitter.accessText(sum.span) : std::string();
  SmallVector<const Var *, 4> axes =
      emitter.unboundAxes(emitter.withBounds(deciding), emitter.inTargetOrder(sum));
  emitter.forPoints(axes, loc, [&] {
    SmallVector<tgl::ValueExpr> subscripts = emitter.valueExprs(sum.subscripts);
    Value guard = sum.guard ? evalAs(emitter, sum.guard, emitter.builder.getI1Type()) : Value();
    Value element =
        tgl::ReadOp::create(emitter.builder, loc, from, subscripts, Value(), guard,
                            ArrayRef<std::pair<tgl::ValueExpr, tgl::ValueExpr>>(), checked);
    tgl::WriteOp::create(emitter.builder, loc, toStore(emitter, element, type, loc), to, subscripts,
                         guard, tellApart ? std::nullopt : std::optional(tgl::ReduceKind::Any),
                         checked);
  });
}

void tegula::emit::emitNarrowSums(Emitter &emitter, const Stmt &stmt,
                                  ArrayRef<Emitter::NarrowSum> narrow, ArrayRef<Stmt *> following) {
  Location loc = emitter.locate(stmt.span);
  SmallVector<Value> targets;
  auto copy = [&](const Emitter::NarrowSum &sum, Value from, Value to) {
    if (sum.isWhole)
      return emitter.emitCopy(from, to, loc);
    for (const Stmt *equation : sum.equations)
      copyTouched(emitter, *equation, from, to);
  };
  for (const Emitter::NarrowSum &sum : narrow) {
    targets.push_back(emitter.tensors.lookup(sum.tensor));
    auto type = cast<tgl::TglTensorType>(targets.back().getType());
    Value wide = tgl::TempOp::create(
        emitter.builder, loc,
        tgl::TglTensorType::get(&emitter.context, type.getDims(), type.getComputeType()),
        sum.tensor->name + ".sum");
    copy(sum, targets.back(), wide);
    emitter.tensors[sum.tensor] = wide;
  }
  emitter.emitPlainStmt(stmt, following);
  for (auto [sum, target] : llvm::zip_equal(narrow, targets)) {
    copy(sum, emitter.tensors.lookup(sum.tensor), target);
    emitter.tensors[sum.tensor] = target;
  }
}
