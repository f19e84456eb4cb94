//===- WalkMemory.cpp - Accesses of a scheduled statement -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/NestShape.h"
#include "codegen/simt/PrivateTemporaries.h"
#include "ir/tgl/TglShapes.h"
#include "strategies/expected/Instructions.h"
#include "strategies/expected/StatementWalk.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

/// Instructions of tile loops of few rows for an element of keys or values: its way through shared
/// memory to tensor cores, and its part of the softmax; of 8 bits, its conversion; its page.
static constexpr double tileInstructionsDrawn = 2;
static double tileInstructions(mlir::Type element) {
  return 4 + (element.getIntOrFloatBitWidth() == 8 ? 3 : 0);
}

/// Where a tensor is while the statement runs.
StatementWalk::Place StatementWalk::placeOf(mlir::Value tensor) const {
  constexpr int64_t ofThread = 64, ofBlock = 200 << 10; // elements; bytes
  auto temp = tensor.getDefiningOp<TempOp>();
  if (!temp || !statement->isAncestor(temp))
    return Place::Memory;
  if (!isGeneral)
    return Place::Registers; // of a tile
  std::optional<int64_t> elements = knownElements(tensor);
  if (threads.team == 1)
    return elements && *elements <= ofThread ? Place::Registers : Place::Workspace;
  bool isOfThread = false;
  for (auto around = temp->getParentOfType<ParallelOp>(); around != statement;
       around = around->getParentOfType<ParallelOp>())
    isOfThread |= !runsSerially(around);
  if (isOfThread)
    return elements && *elements <= ofThread ? Place::Registers : Place::Workspace;
  if (!nestsThatOwn(temp).empty())
    return Place::Registers;
  double bytes = double(elements.value_or(ofBlock)) *
                 temp.getTensor().getType().getElementType().getIntOrFloatBitWidth() / 8;
  bool isUsedInSteps = any_of(temp->getUsers(), [&](mlir::Operation *user) {
    auto loop = user->getParentOfType<ForOp>();
    return loop && temp->getParentOp()->isAncestor(loop);
  });
  bool isUsedAgain = isUsedInSteps || teamOf(statement);
  return bytes <= maxThreadBytes || (isUsedAgain && bytes <= ofBlock) ? Place::Shared
                                                                      : Place::Workspace;
}

/// What an access differs along: with what the statement writes, along all.
StatementWalk::Levels StatementWalk::levelsOfAccess(mlir::Operation *op, mlir::Value tensor) const {
  Levels own = levelsOf(op->getOperands());
  return written.contains(tensor) && !tile ? allLevels() : own;
}

/// Points of an axis, or of a value that data give, that the points of a block have.
double StatementWalk::pointsInBlock(mlir::Value value) const {
  if (!isa<mlir::BlockArgument>(value)) {
    double all = 1;
    for (auto [number, level] : enumerate(levels)) // those that bound a range, too
      if (varies.lookup(value) >> number & 1)
        all *= pointsInBlock(level.axis);
    return all;
  }
  if (threads.across) {
    // Warps of a block lie along the first axis.
    double side = std::sqrt(work.vector);
    return value == threads.across ? 64 * side : value == threads.along ? 4 * side : 1;
  }
  double left = threads.block / threads.team * work.vector;
  for (mlir::Value axis : reverse(cast<AxesOp>(ParallelOp(statement).getOperation()).getAxes())) {
    double own = std::min(extents.lookup(axis), std::max(left, 1.0));
    if (axis == value)
      return own;
    left /= std::max(extents.lookup(axis), 1.0);
  }
  return extents.count(value) && !outerLoops.contains(value) ? extents.lookup(value) : 1;
}

/// How often blocks ask the second-level cache for what a block takes, where that varies so.
double StatementWalk::blocksThatAsk(double bytesOfBlock, Levels own) const {
  double blocks = std::max(1.0, threadsInAll() / threads.block), others = 1, alike = 1;
  bool isLast = true;
  auto axes = cast<AxesOp>(ParallelOp(statement).getOperation());
  for (mlir::Value axis : reverse(axes.getAxes())) {
    double count = std::max(1.0, extents.lookup(axis) / pointsInBlock(axis));
    bool isOwn = (own & varies.lookup(axis)) == varies.lookup(axis);
    if (isOwn)
      others *= count;
    else if (isLast)
      alike *= count;
    isLast &= !isOwn || count == 1;
  }
  if (bytesOfBlock * others <= CacheSize::first)
    return std::min(blocks, others * multiprocessors);
  return blocks / alike * std::min(alike, multiprocessors);
}

/// Bytes from and to memory, each element once.
void StatementWalk::addTraffic(mlir::Value tensor, const ThreadAccess &access, Levels own,
                               double Traffic::*way) {
  double bytes = access.type.getElementType().getIntOrFloatBitWidth() / 8.0;
  Traffic &all = traffic[tensor];
  std::optional<int64_t> elements = knownElements(tensor);
  isKnown &= elements.has_value();
  all.size = double(elements.value_or(0)) * bytes;
  double distinct = 1;
  for (auto [number, level] : enumerate(levels))
    distinct *= own >> number & 1 ? level.extent : 1;
  for (const ValueExpr &subscript : access.subscripts)
    all.moves |= any_of(outerLoops, [&](mlir::Value loop) {
      return any_of(subscript.operands(), [&](mlir::Value operand) {
        return operand == loop || axesOf(operand).contains(cast<mlir::BlockArgument>(loop));
      });
    });
  // Draws of places that data give meet; those of a tensor beyond the second-level cache find
  // little of it there.
  bool isDrawn = any_of(access.subscripts, usesData);
  double draws = distinct * bytes;
  // Single elements bring their sector with them.
  bool isAlone = isDrawn && usesData(access.subscripts.back());
  if (isAlone && all.size > CacheSize::half)
    draws = std::min(draws * sectorBytes / bytes, std::max(all.size, draws));
  if (isDrawn && all.size > 0) {
    double met = std::min(draws, all.size);
    double missed = draws * std::max(0.0, 1 - CacheSize::half / all.size);
    drawnAgain[tensor] += std::max(0.0, missed - met);
    draws = met;
  }
  if (!isGeneral && way == &Traffic::read)
    work.tileInstructions +=
        draws / bytes *
        (tileInstructions(access.type.getElementType()) + (isDrawn ? tileInstructionsDrawn : 0));
  // What the launch itself has written before is near.
  if (way != &Traffic::read || all.written == 0)
    all.*way += draws;
}

/// Counts the quotients in subscripts: where loops are written out, once for what has the same.
void StatementWalk::countQuotients(const ThreadAccess &access) {
  constexpr double writtenOut = 64;
  if (!quotientInstructions(elementOffset(access.type, access.subscripts)))
    return; // they make up for each other
  for (const ValueExpr &subscript : access.subscripts) {
    double each = quotientInstructions(subscript);
    size_t name = hash_value(subscript.expr());
    for (mlir::Value operand : subscript.operands())
      name = hash_combine(name, nameOf(operand));
    if (!each || any_of(computed, [&](const auto &nest) { return nest.contains(name); }))
      continue;
    computed.back().insert(name);
    Levels own = levelsOf(subscript.operands());
    double turns = 1, inside = 1;
    for (auto [number, level] : enumerate(levels)) {
      turns *= own >> number & 1 ? level.turns : 1;
      inside *= number < ParallelOp(statement).getAxes().size() ? 1 : level.turns;
    }
    work.instructions +=
        each * lanesOf(own) * (inside <= writtenOut ? turns : turnsOf(own)) * threadsInAll();
  }
}

/// Terms of a sum that are next to each other along the lanes' step, for which windows overlap.
double StatementWalk::termsOfWindow(const ValueExpr &offset, int64_t step) const {
  constexpr double longest = 16; // longer sums are not written out
  for (const Level &level : ArrayRef(levels).drop_front(ParallelOp(statement).getAxes().size()))
    if (level.extent > 1 && level.extent <= longest && stepAlong(offset, level.axis) == step)
      return level.extent;
  return 1;
}

/// Counts an access and returns its latency.
double StatementWalk::access(mlir::Operation *op, mlir::Value tensor, ThreadAccess access,
                             Levels own, double Traffic::*way, double instructions) {
  Place place = placeOf(tensor);
  double bytes = access.type.getElementType().getIntOrFloatBitWidth() / 8.0;
  double lanes = lanesOf(own);
  double conversion =
      conversionInstructions(access.type.getElementType(), way == &Traffic::written) * lanes;
  if (place == Place::Memory)
    addTraffic(tensor, access, levelsOf(op->getOperands()), way);
  if (!isGeneral) {
    // Beside tiles, threads themselves load what data choose, and the first-level cache takes its
    // time for places that are apart.
    constexpr double drawn = 6;
    double loads = any_of(access.subscripts, usesData) ? (drawn + instructions) * lanes : 0;
    double shared = op->getNumResults() ? sharedBy.lookup(op->getResult(0)) : 1;
    work.instructions += (conversion + loads) / shared * turnsOf(own) * threadsInAll();
    return 0;
  }
  if (place == Place::Registers)
    return 0;
  countQuotients(access);
  if (place == Place::Shared)
    if (auto temp = tensor.getDefiningOp<TempOp>())
      access.type = typeInShared(temp);
  ValueExpr offset = elementOffset(access.type, access.subscripts);
  std::optional<int64_t> step = lane ? stepAlong(offset, lane) : std::nullopt;
  double each = lanes == 1 || step == 1 ? 1 : lanes;
  // Vectors that are a few elements apart are loaded whole.
  constexpr int64_t shortStep = 4;
  bool isShort = way == &Traffic::read && lanes > 1 && step && *step > 1 && *step <= shortStep;
  if (isShort)
    each = double(*step);
  if (threads.across) // vectors along one side of the square
    each = std::min(lanes, std::sqrt(width));
  access.elements = isShort ? lanes * each : lanes / each;
  // Windows that overlap along a vector: what they cover is loaded once, an element at a time, at
  // constant distances (codegen/simt/WindowTiles.h).
  constexpr double inWindow = 0.75;
  double terms = way == &Traffic::read && lanes > 1 && step ? termsOfWindow(offset, *step) : 1;
  if (terms > 1) {
    each = (lanes + terms - 1) / terms;
    conversion *= each / lanes;
    access.elements = 1;
    instructions = inWindow;
    isShort = false;
  }
  if (double more = neighboursInTile(offset, bytes); more > 1) {
    access.elements = more;
    each /= more;
  }
  // Of loops that are written out addresses are constants apart.
  constexpr double writtenOut = 0.5;
  if (levels.size() > ParallelOp(statement).getAxes().size() &&
      stepAlong(offset, levels.back().axis))
    instructions = std::max(instructions - 1, writtenOut);
  double turns = turnsOf(own) * each;
  work.instructions += ((1 + instructions) * each + conversion) * turnsOf(own) * threadsInAll();
  double requests = turns * threadsInAll() / threadsOfWarp;
  WarpAccess warp =
      accessOfWarp(access, neighbours, [&](mlir::Value value) { return valueOf(value); });
  constexpr double leastSectors = 4; // a warp's access has the cache for a cycle, 128 bytes
  if (place == Place::Shared) {
    double words = warp.words / threadsOfWarp * access.elements * bytes / 4;
    work.sectors += requests * leastSectors * std::max(warp.turns, words);
    return isBeforeLoop(own) ? 0 : Latency::near;
  }
  double sectors = isShort ? warp.sectors / each : warp.sectors;
  double lines = isShort ? warp.lines / each : warp.lines;
  work.sectors += requests * std::max(leastSectors * lines, sectors);
  double asked = requests * sectors * sectorBytes;
  if (place == Place::Workspace) {
    work.cacheBytes += asked;
    return Latency::cache;
  }
  // Of what a block takes again its first-level cache has most, and that of a multiprocessor what
  // its blocks take one after another.
  double ofBlock = bytesOfPoints(access, [&](mlir::Value value) { return pointsInBlock(value); });
  double fromCache =
      ofBlock <= CacheSize::first ? std::min(asked, ofBlock * blocksThatAsk(ofBlock, own)) : asked;
  // Accesses of one tensor that are constants apart ask for it once.
  size_t window = hash_combine(tensor.getAsOpaquePointer(), way == &Traffic::read);
  for (mlir::Value operand : offset.operands())
    window = hash_combine(window, nameOf(operand), stepAlong(offset, operand).value_or(0));
  if (ofBlock <= CacheSize::first && !windows.insert(window).second)
    return isBeforeLoop(own) ? 0 : Latency::near;
  work.cacheBytes += fromCache;
  if (isBeforeLoop(own))
    return 0;
  if (way == &Traffic::written)
    return Latency::instruction;
  if (fromCache < asked / 4)
    return Latency::near;
  const Traffic &all = traffic[tensor];
  constexpr double secondCache = 30e6;
  bool isAgain = all.size < secondCache && std::min(all.read, all.size) < fromCache / 2;
  return isAgain || written.contains(tensor) ? Latency::cache : Latency::memory;
}

double StatementWalk::visitRead(ReadOp read, double begin) {
  Levels own = levelsOfAccess(read, read.getTensor());
  varies[read.getResult()] = own;
  begin = std::max(begin, ready.lookup(read.getTensor()));
  sharedBy[read.getResult()] = neighboursOf(read);
  double bytes = read.getTensorType().getElementType().getIntOrFloatBitWidth() / 8.0;
  if (isRepeated(read)) {
    if (isGeneral && threads.team > 1 && isShared && !tile &&
        placeOf(read.getTensor()) == Place::Memory)
      hold(read, rowBytes(own, bytes));
    return begin;
  }
  // Rows that nests of a block have in common stay with it.
  bool isOfRow = threads.team > 1 && isShared && !tile && !written.contains(read.getTensor());
  if (isOfRow) {
    bool isNew = rowsRead.insert(names[read.getResult()]).second;
    bool isNewRow = piecesRead.insert(nameOfRow(read)).second;
    isOfRow = !isNew || (!isNewRow && dealing < threads.team); // in groups that parts take
  }
  ThreadAccess access{read.getTensorType(), read.getSubscriptExprs()};
  if (isOfRow && isGeneral && threads.team == threads.block)
    return begin + visitHeldRow(read, own, bytes);
  double latency = this->access(read, read.getTensor(), std::move(access), own, &Traffic::read,
                                addressInstructions(read));
  if (!isAhead(read))
    return begin + latency;
  loadAhead(own, bytes, latency);
  return begin;
}

/// Instructions for an element of a tile that epilogues add up along one of its axes: it goes
/// through shared memory, and threads exchange partial sums (SASS for sm_90a).
static constexpr double addedByTile = 40;

double StatementWalk::visitWrite(WriteOp write, double begin) {
  Levels own = levelsOfAccess(write, write.getTensor());
  ++versions[write.getTensor()];
  if (write.getCombine()) {
    // Neighbours of a vector are added together (codegen/simt/VectorAdds.h).
    bool isVector = isGeneral && write.getCombine() == ReduceKind::Sum &&
                    write.getTensorType().getElementType().isF32();
    double together = isVector ? lanesOf(levelsOf(write->getOperands())) : 1;
    work.atomics += pointsAround() / together;
    work.atomicTargets += double(knownElements(write.getTensor()).value_or(0)) / together;
    if (!isGeneral)
      work.instructions += addedByTile * pointsAround();
  }
  ThreadAccess access{write.getTensorType(), write.getSubscriptExprs()};
  if (write.getCombine() && isGeneral) { // beside what additions take in all
    addTraffic(write.getTensor(), access, levelsOf(write->getOperands()), &Traffic::written);
    work.instructions +=
        (2 + addressInstructions(write)) * lanesOf(own) * turnsOf(own) * threadsInAll();
    return begin;
  }
  double end = begin + this->access(write, write.getTensor(), std::move(access), own,
                                    &Traffic::written, addressInstructions(write));
  ready[write.getTensor()] = std::max(ready.lookup(write.getTensor()), end);
  return end;
}
