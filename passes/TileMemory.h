//===- TileMemory.h - Shared memory of a matrix product's block ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a block that computes a tile (TensorTile.h) keeps in shared memory: a ring of stages, each a step's tiles of both
// operands; scales of lines; the sums, its own and what others send. The schedule asks it what fits, and code generation where things lie.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_TILEMEMORY_H
#define TEGULA_PASSES_TILEMEMORY_H

#include "passes/DeviceFacts.h"
#include "passes/TensorTile.h"

namespace tegula {

class TileMemory {
public:
  TileMemory(const TensorTile &tile, llvm::ArrayRef<ProductOperands> products, const TileMachine &machine);

  bool byWarpgroups() const { return tile.warpgroups && machine.hasWarpgroups; }
  /// Whether some of the block's threads only bring operands.
  bool hasRoles() const { return byWarpgroups() && (isSplit || tile.packed || areBytes || hasBoxes()); }
  bool isPacked() const { return tile.packed && hasRoles(); }
  /// Whether operands are copied in boxes of tensors. Integers, whose products take less time, lost more by a launch that makes
  /// their maps than they gained (4096 x 4096 x 4096 of i8 125 us for 119 on an H200; f8 128 for 131).
  bool isMapped() const { return byWarpgroups() && hasBoxes(); }
  /// Operands of 16 bits are not, whatever their size.
  void leaveHalves() { machine.boxesOfHalves = false; }
  bool areHalves() const { return !areBytes && !isSplit; }

  unsigned stageBytes() const { return (tile.rows + tile.columns) * lineBytes; }
  /// Of the ring: what the tile says, else as many as hide the latency of memory and leave room for other blocks.
  unsigned stages() const;
  /// Whether there is known to be a multiprocessor for each block, of 16-bit operands: then a ring is as deep as pays.
  bool isDeep() const { return isAlone && copies && !hasRoles(); }
  unsigned ringBytes() const { return ring.value_or(stages() * stageBytes()); }
  /// Where something else lies in the ring too.
  void setRingBytes(unsigned bytes) { ring = bytes; }

  /// A tile's sums have a place for so many of its columns at a time: all, unless something is said.
  unsigned sumsColumns() const { return placedColumns.value_or(tile.columns); }
  void setSumsColumns(std::optional<unsigned> columns) { placedColumns = columns; }
  unsigned sumsPitch() const { return sumsColumns() + 8; }
  unsigned sumsBytes() const { return tile.rows * sumsPitch() * 4; }
  /// The largest values of lines in their first step, and their scales; or scales alone, in a block that stays those of
  /// two tiles in turn, or none where there is no room: then they lie where sums do later.
  unsigned linesBytes() const;
  /// Whether a block goes on with another tile: its sums have a place of their own.
  bool isPersistent() const;
  /// For that: a bit for each of a block's tiles.
  static constexpr unsigned maskBytes = 512;
  /// For each product a barrier for each stage that copies in bulk bring.
  unsigned barriersBytes() const;
  unsigned persistentBytes() const { return ringBytes() + linesBytes() + sumsBytes() + maskBytes + barriersBytes(); }
  unsigned sharedBytes() const;

  /// Where what is kept of lines, a product's sums, and barriers begin, in bytes.
  unsigned linesBase() const { return isPersistent() ? ringBytes() : operandsBytes(); }
  unsigned sumsBase(unsigned product) const;
  unsigned barriersBase() const { return receivedBarrier() - barriersBytes(); }

  /// Whether the blocks that share a tile's sum are a cluster, and send each other their sums (codegen/SplitSums.cpp).
  /// They are, where so many tiles' clusters find room at once (null: not known; those of two do), and each block has rows enough;
  /// interleaved rows stay together.
  void shareWhereFits(std::optional<int64_t> tiles, unsigned interleavedRows = 1);
  bool isSharing() const { return shares; }
  /// The fewest of a tile's rows that a block can do the rest for: threads have an element each.
  unsigned leastRestRows(unsigned interleavedRows) const;
  /// The rows of a tile for which each of them does the rest.
  unsigned shareRows() const { return tile.rows / tile.splits; }
  /// What the others send to a block: their sums of its rows, of all products; and the barrier that counts it.
  unsigned receivedBytes() const { return shares ? (tile.splits - 1) * shareRows() * tile.columns * 4 * numProducts : 0; }
  unsigned receivedBase() const;
  unsigned receivedBarrier() const;
  /// Whether it has a place of its own, so that who is done sends while others still multiply. Else it lies where operands were.
  bool receivesApart() const;
  /// Blocks for which a multiprocessor has room.
  int64_t residents() const;

  /// The fewest and the most stages that such a tile can have on the machine; equal where there is no choice.
  std::pair<unsigned, unsigned> stageLimits() const;

  /// Of an operand's row or column in a stage.
  static constexpr unsigned lineBytes = 128;
  /// The stages of warpgroups' rings where nothing is said.
  static constexpr unsigned usualStages = 4;

private:
  TensorTile tile;
  TileMachine machine;
  unsigned leastPersistentBytes() const;
  /// The ring, and the sums that lie there later; what is kept of lines, other products' sums and barriers.
  unsigned operandsBytes() const;
  unsigned behindOperands() const;
  size_t numProducts;
  bool hasBoxes() const { return hasMaps && !tile.packed && machine.copiesInBulk && (isF8 || boxesHalves()); }
  bool boxesHalves() const;
  bool clustersFit(std::optional<int64_t> tiles) const;
  double multiplications = 0; ///< of all products, where they have maps
  bool shares = false;
  bool isAlone = false;       ///< of 16 bits, where there is known to be a multiprocessor for each block
  unsigned steps;             ///< of a block, as far as it matters to a ring
  bool isSplit, areBytes, isF8, copies, hasMaps;
  std::optional<unsigned> ring, placedColumns;
};

} // namespace tegula

#endif // TEGULA_PASSES_TILEMEMORY_H
