//===- TileStates.cpp - States of reductions over tiles ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread takes its own columns of each row into its part of the state; the four lanes that share
// a row combine their parts once, at the end. Positions have 64 bits, as columns have; those of a
// tile's best element are constants of 32 until the tile's end.
//
//===----------------------------------------------------------------------===//
#include "codegen/tile/TileEmitter.h"

#include "codegen/common/LogSumExps.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include <limits>

using namespace llvm;
using namespace tegula;
using tgl::ReduceKind;

static bool isArg(ReduceKind kind) {
  return kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin;
}

Accumulator TileEmitter::startOf(tile::StateType type) {
  Accumulator start =
      initialAccumulator(*this, type.getKind(), typeOf(type.getElementType()), b.getInt64Ty());
  if (type.getKind() == ReduceKind::Sum)
    start.push_back(ConstantFP::get(b.getFloatTy(), 0));
  return start;
}

unsigned TileEmitter::partsOfState(tile::StateType type) { return startOf(type).size(); }

/// sum + added; what rounding takes from it goes to `lost` (D. E. Knuth, The Art of Computer
/// Programming 2, 4.2.2, theorem B).
Value *TileEmitter::addExactly(Value *before, Value *added, Value *&lost) {
  Value *sum = b.CreateFAdd(before, added), *kept = b.CreateFSub(sum, before);
  Value *rest =
      b.CreateFAdd(b.CreateFSub(before, b.CreateFSub(sum, kept)), b.CreateFSub(added, kept));
  lost = b.CreateFAdd(lost, rest);
  return sum;
}

void TileEmitter::emitInit(tile::InitOp op) {
  tile::StateType type = op.getType();
  Layout layout = layoutOf({type.getRows()}, type.getLayout());
  Values &state = parts[op];
  state.clear();
  for (unsigned row = 0; row < layout.numRows; ++row)
    append_range(state, startOf(type));
}

TileEmitter::Values TileEmitter::valuesOfRow(tile::ReduceOp op, const Layout &layout,
                                             unsigned row) {
  const Span columns = spans[op.getColumns()];
  const Span none{i64(0), i64(0), true};
  Values elements;
  for (auto [number, value] : enumerate(parts[op.getValue()])) {
    if (rowNumber(layout, number) != row)
      continue;
    elements.push_back(value);
    if (columns.isFull)
      continue;
    Value *column = pointOf(layout, number, none, columns).second;
    elements.back() = b.CreateSelect(
        b.CreateICmpSLT(column, columns.end), value,
        initialAccumulator(*this, op.getType().getKind(), value->getType(), nullptr)[0]);
  }
  return elements;
}

/// All values of a tile at once: the largest first, so that each has one exponential.
Accumulator TileEmitter::takeExponentials(const Accumulator &before, ArrayRef<Value *> elements) {
  Value *largest = before[0], *sum = nullptr;
  for (Value *element : elements)
    largest = combine(*this, ReduceKind::Max, {largest}, {element})[0];
  Value *origin = originOfExponentials(*this, largest);
  for (Value *element : elements) {
    Value *power = exponentialFrom(*this, element, origin);
    sum = sum ? b.CreateFAdd(sum, power) : power;
  }
  Value *kept = b.CreateFMul(before[1], exponentialFrom(*this, before[0], origin));
  return {largest, b.CreateFAdd(kept, sum)};
}

void TileEmitter::emitStateReduce(tile::ReduceOp op) {
  tile::StateType type = op.getType();
  ReduceKind kind = type.getKind();
  Layout layout = layoutOf(op.getValue().getType().getShape(), type.getLayout());
  const Span columns = spans[op.getColumns()];
  const Span none{i64(0), i64(0), true};
  unsigned size = partsOfState(type);
  ArrayRef<Value *> before = parts[op.getState()], tile = parts[op.getValue()];
  // Columns of a thread are its first one and constants.
  Value *firstColumn = pointOf(layout, 0, none, columns).second;
  auto rightOf = [&](unsigned number) { return i32(fragmentStep(layout.tile, number).right); };
  Value *left = nullptr; // columns from the first one on, that exist
  if (!columns.isFull)
    left = b.CreateTrunc(b.CreateBinaryIntrinsic(Intrinsic::smin,
                                                 b.CreateSub(columns.end, firstColumn),
                                                 i64(std::numeric_limits<int32_t>::max())),
                         b.getInt32Ty());
  Values after;
  for (unsigned row = 0; row < layout.numRows; ++row) {
    Accumulator state(before.begin() + row * size, before.begin() + (row + 1) * size);
    if (kind == ReduceKind::LogSumExp) {
      append_range(after, takeExponentials(state, valuesOfRow(op, layout, row)));
      continue;
    }
    // Sums of a tile are added up on their own.
    Accumulator own = kind == ReduceKind::Sum ? Accumulator{ConstantFP::get(b.getFloatTy(), 0)}
                      : isArg(kind)
                          ? initialAccumulator(*this, kind, b.getFloatTy(), b.getInt32Ty())
                          : state;
    // A thread's columns of a row come in order.
    for (unsigned number = 0; number < layout.numAccumulators; ++number) {
      if (rowNumber(layout, number) != row)
        continue;
      Value *exists = left ? b.CreateICmpSLT(rightOf(number), left) : nullptr;
      if (isArg(kind)) {
        // A full tile has a first element: what is better than that needs no place to be compared.
        bool isFirst = columns.isFull && own[1] == noPlace(b.getInt32Ty());
        Accumulator next{tile[number], rightOf(number)};
        own = isFirst ? next : takeNext(*this, kind, own, next, exists);
        continue;
      }
      Value *value = tile[number];
      if (exists)
        value = b.CreateSelect(exists, value,
                               initialAccumulator(*this, kind, value->getType(), nullptr)[0]);
      own = combine(*this, kind, own, {value});
    }
    if (kind == ReduceKind::Sum)
      own = {addExactly(state[0], own[0], state[1]), state[1]};
    if (isArg(kind)) {
      Value *isNone = b.CreateICmpEQ(own[1], noPlace(b.getInt32Ty()));
      Value *place =
          b.CreateSelect(isNone, noPlace(b.getInt64Ty()), b.CreateAdd(firstColumn, wide(own[1])));
      own = combine(*this, kind, state, {own[0], place});
    }
    append_range(after, own);
  }
  parts[op] = after;
}

void TileEmitter::emitFinish(tile::FinishOp op) {
  tile::StateType type = op.getState().getType();
  ReduceKind kind = type.getKind();
  Layout layout = layoutOf({type.getRows()}, type.getLayout());
  unsigned size = partsOfState(type);
  ArrayRef<Value *> states = parts[op.getState()];
  constexpr unsigned lanesOfRow = 4;
  Values result;
  for (unsigned row = 0; row < layout.numRows; ++row) {
    Accumulator state(states.begin() + row * size, states.begin() + (row + 1) * size);
    if (kind == ReduceKind::Sum) // what is lost from infinity is no number
      state = {b.CreateSelect(b.CreateFCmpORD(state[1], state[1]), b.CreateFAdd(state[0], state[1]),
                              state[0])};
    state = combineWarp(kind, std::move(state), lanesOfRow);
    result.push_back(kind == ReduceKind::LogSumExp ? logarithmOf(*this, state)
                     : isArg(kind)                 ? resultOfPlace(*this, state.back())
                                                   : state.back());
  }
  parts[op] = result;
}
