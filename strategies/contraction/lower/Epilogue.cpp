//===- Epilogue.cpp - Epilogue of a tile of accumulators ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sums of a tile lie in shared memory. A thread has one column, or a few, and goes through rows
// of it: what depends on the column alone (its place in an image, which takes divisions) is
// computed once. Reads that do not wait for sums are done for several rows first, so that their
// loads are under way together.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/Epilogue.h"

#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "llvm/Support/SaveAndRestore.h"
#include <numeric>

using namespace llvm;
using namespace tegula;

Epilogue::Epilogue(const BlockTile &here)
    : here(here), e(here.e), b(here.b), plan(here.plan), tile(here.tile), axes(here.axes),
      parts(here.numbers.planEpilogue()) {
  if (parts.misfit)
    e.fail(parts.misfit, "parts of another tile");
}

/// The value, of which the optimiser does not know that nothing but a branch needs it: it would be
/// computed there, one element after the other.
Value *Epilogue::keepOutOfBranch(Value *value) {
  Type *type = value->getType();
  if (type->isVectorTy() || type->isPointerTy() || type->getPrimitiveSizeInBits() > 32)
    return value;
  Type *bits = b.getIntNTy(type->getPrimitiveSizeInBits());
  Value *word = here.opaque(b.CreateZExt(b.CreateBitCast(value, bits), b.getInt32Ty()));
  return b.CreateBitCast(b.CreateTrunc(word, bits), type);
}

/// Whether row `number` of the statement is written.
Value *Epilogue::isWritten(mlir::arith::CmpIOp guard, Value *number) {
  here.setNumber(axes, plan.rows, false, number);
  SetVector<mlir::Operation *> needed;
  needed.insert(guard);
  for (unsigned n = 0; n < needed.size(); ++n)
    for (mlir::Value operand : needed[n]->getOperands())
      if (mlir::Operation *definition = operand.getDefiningOp();
          definition && is_contained(plan.epilogue, definition))
        needed.insert(definition);
  for (mlir::Operation *op : plan.epilogue)
    if (needed.contains(op))
      e.emitOp(op);
  return e.valueOf(guard.getResult());
}

void Epilogue::returnIfUnused() {
  mlir::arith::CmpIOp guard = parts.guardOfRows();
  if (!guard)
    return;
  Value *isUsed = isWritten(guard, here.rows.first);
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *unused = BasicBlock::Create(b.getContext(), "unused", function);
  BasicBlock *used = BasicBlock::Create(b.getContext(), "used", function);
  b.CreateCondBr(isUsed, used, unused);
  b.SetInsertPoint(unused);
  b.CreateRetVoid();
  b.SetInsertPoint(used);
}

/// Where tiles may have columns beyond the last.
Value *Epilogue::columnExists(Value *number) {
  Value *isBefore = b.CreateICmpSLT(number, here.columns.total);
  return e.emitAnd(isBefore, here.paddedColumnExists(number));
}

/// Goes through the elements of the tile, `each` rows of a column at a time.
void Epilogue::forEpilogueRows(unsigned each, function_ref<void(const EpilogueRows &)> body) {
  unsigned phases = EpiloguePlan::interleavedRows(plan);
  // Threads side by side: phases, columns, rows.
  unsigned columnsAtOnce = std::gcd(unsigned(tile.columns), threads() / phases),
           chunks = tile.columns / columnsAtOnce;
  unsigned step = threads() / columnsAtOnce;
  Value *phase = b.CreateURem(here.thread, i32(phases)),
        *pair = b.CreateUDiv(here.thread, i32(phases));
  Value *ownColumn = b.CreateURem(pair, i32(columnsAtOnce));
  Value *own = b.CreateUDiv(pair, i32(columnsAtOnce));

  // No more rows than all tiles have a multiple of, so that none needs to be asked for.
  std::optional<int64_t> known = tgl::knownPoints(axes, plan.rows);
  each = std::min<unsigned>(each, here.epilogueRows / step);
  auto comesOut = [&](unsigned count) {
    return here.rows.fits || (known && *known % here.epilogueRows % (step * count) == 0);
  };
  unsigned count = each;
  while (count > 1 && !comesOut(count))
    count /= 2;
  bool asks = !comesOut(count);
  if (!asks)
    each = count;
  Value *end = i64(here.epilogueRows);
  if (!here.rows.fits) { // a part of a tile may be beyond the last as a whole
    Value *left = b.CreateBinaryIntrinsic(Intrinsic::smax,
                                          b.CreateSub(here.rows.total, here.rows.first), i64(0));
    end = b.CreateBinaryIntrinsic(Intrinsic::smin, end, left);
  }

  for (unsigned chunk = 0; chunk < chunks; ++chunk) {
    Value *column = b.CreateAdd(ownColumn, i32(chunk * columnsAtOnce));
    Value *columnNumber = b.CreateAdd(here.columns.first, wide(column));
    auto emitColumn = [&] {
      setColumn(columnNumber);
      e.keepNextLoopRolled = true;
      e.emitLoop(
          i64(0), b.CreateExactUDiv(end, i64(phases)), i64(step * each / phases), {},
          [&](Value *start, ArrayRef<Value *>) {
            body({b.CreateAdd(b.CreateTrunc(start, b.getInt32Ty()), own), phase, column, phases,
                  step, each, asks});
            return SmallVector<Value *>();
          },
          "rest");
    };
    if (here.columns.fits)
      emitColumn();
    else
      e.emitIf(columnExists(columnNumber), emitColumn);
  }
}

/// The `n`-th row of the tile (i32), and of the statement (`number`, i64): as a multiple and the
/// phase, for the optimiser to see that a thread has but one of these.
Value *Epilogue::epilogueRow(const EpilogueRows &its, unsigned n, Value *&number) {
  Value *multiple = b.CreateAdd(its.first, i32(n * its.step / its.phases));
  Value *before = b.CreateExactUDiv(here.rows.first, i64(its.phases));
  number = b.CreateAdd(b.CreateMul(b.CreateAdd(before, wide(multiple)), i64(its.phases)),
                       wide(its.phase));
  return b.CreateAdd(b.CreateMul(multiple, i32(its.phases)), its.phase);
}

void Epilogue::recomputeNonFinite() {
  forEpilogueRows(1, [&](const EpilogueRows &its) {
    Value *number = nullptr, *row = epilogueRow(its, 0, number);
    auto recompute = [&] {
      setRow(number);
      Value *place = here.accumulatorAddress(row, its.column, here.accumulatorsBase(0));
      e.values[tgl::ReduceOp(plan.products.front().reduce).getResult()] =
          b.CreateAlignedLoad(b.getFloatTy(), place, Align(4));
      for (mlir::Operation *op : parts.recomputeOps)
        e.emitOp(op);
      b.CreateAlignedStore(e.values.lookup(parts.recomputed), place, Align(4));
    };
    if (its.asks)
      e.emitIf(b.CreateICmpSLT(number, here.rows.total), recompute);
    else
      recompute();
  });
}

void Epilogue::emit() {
  emitPartials();
  if (parts.effects.empty())
    return;
  mlir::arith::CmpIOp guard = parts.guardOfRows();
  // Loads of several elements are under way at a time: those of the bias come from a cache. Rows
  // that have a guard are chosen by data.
  unsigned each = parts.readsElements || guard ? 8 : 4;
  auto emitAll = [&] { forEpilogueRows(each, [&](const EpilogueRows &its) { emitRows(its); }); };
  if (!guard)
    return emitAll();
  // Where the last row is written all are, and none is asked.
  Value *last = b.CreateAdd(here.rows.first, i64(here.epilogueRows - 1));
  if (!here.rows.fits)
    last = b.CreateBinaryIntrinsic(Intrinsic::smin, last, b.CreateSub(here.rows.total, i64(1)));
  Value *isWhole = isWritten(guard, last);
  e.emitIf(isWhole, [&] {
    SaveAndRestore known(knownGuard, guard.getOperation());
    emitAll();
  });
  e.emitIf(b.CreateNot(isWhole), emitAll);
}

void Epilogue::emitRows(const EpilogueRows &its) {
  SmallVector<mlir::Value> kept; // of an element
  for (unsigned axis : plan.rows)
    kept.push_back(axes.getAxes()[axis]);
  for (mlir::Operation *op : parts.early)
    kept.append(op->result_begin(), op->result_end());
  struct Element {
    Value *row, *number;
    SmallVector<Value *> values; // of `kept`
  };
  SmallVector<Element> elements;
  for (unsigned n = 0; n < its.count; ++n) {
    Value *number = nullptr, *row = epilogueRow(its, n, number);
    Value *safe = number;
    if (its.asks)
      safe = b.CreateBinaryIntrinsic(Intrinsic::smin, number, b.CreateSub(here.rows.total, i64(1)));
    setRow(safe);
    for (mlir::Operation *op : parts.early)
      if (op == knownGuard)
        e.values[op->getResult(0)] = b.getTrue();
      else
        e.emitOp(op);
    Element element{row, number, {}};
    for (mlir::Value value : kept)
      element.values.push_back(e.values.lookup(value));
    elements.push_back(std::move(element));
  }
  auto restore = [&](const Element &element) {
    for (auto [value, emitted] : zip_equal(kept, element.values))
      e.values[value] = emitted;
  };
  // What is made of the sums, of all elements side by side, before there are branches.
  SmallVector<mlir::Value> made;
  for (const ContractionProduct &product : plan.products)
    made.push_back(parts.recomputed ? parts.recomputed : tgl::ReduceOp(product.reduce).getResult());
  for (mlir::Operation *op : parts.values)
    made.append(op->result_begin(), op->result_end());
  bool branches =
      its.asks || any_of(parts.effects, [&](mlir::Operation *op) {
        auto write = dyn_cast<tgl::WriteOp>(op);
        return write && write.getGuard() && write.getGuard().getDefiningOp() != knownGuard;
      });
  auto isUsedLate = [&](mlir::Value value) {
    return any_of(value.getUsers(),
                  [&](mlir::Operation *user) { return is_contained(parts.effects, user); });
  };
  for (Element &element : elements) {
    restore(element);
    for (unsigned which = 0; which < plan.products.size(); ++which)
      e.values[made[which]] = b.CreateAlignedLoad(
          here.accumulatorType(),
          here.accumulatorAddress(element.row, its.column, here.accumulatorsBase(which)), Align(4));
    for (mlir::Operation *op : parts.values)
      e.emitOp(op);
    for (mlir::Value value : made) {
      Value *emitted = e.values.lookup(value);
      element.values.push_back(branches && isUsedLate(value) ? keepOutOfBranch(emitted) : emitted);
    }
  }
  kept.append(made);
  for (const Element &element : elements) {
    restore(element);
    auto emitLate = [&] {
      for (mlir::Operation *op : parts.effects)
        e.emitOp(op);
    };
    if (its.asks)
      e.emitIf(b.CreateICmpSLT(element.number, here.rows.total), emitLate);
    else
      emitLate();
  }
}
