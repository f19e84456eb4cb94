//===- ContractionWorkspace.cpp - What a contraction keeps in the workspace ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The workspace of a launch: for each product the terms of the rows and of the columns, and their
// scales; partial sums; TMA descriptors.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/block/ContractionNumbers.h"
#include "strategies/contraction/lower/block/PrepackShape.h"
#include "target/DeviceFacts.h"

#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

/// What lies in the workspace starts at multiples of this.
static constexpr int64_t areaAlignment = 256;

static IndexExpr ceilDivOnHost(const IndexExpr &points, int64_t by) {
  return IndexExpr::floorDiv(points + (by - 1), by);
}

IndexExpr ContractionNumbers::workspaceBytes() const {
  return prepackedBytes() + numTiles() * (tile.splits * int64_t(blockWorkspaceBytes())) +
         splitKTailBytes() + tmaDescriptorsBytes();
}

//===----------------------------------------------------------------------===//
// Partial sums
//===----------------------------------------------------------------------===//

/// What a block leaves of its sums.
unsigned ContractionNumbers::blockWorkspaceBytes() const {
  return storesPartials() ? tile.rows * tile.columns * 4 * products.size() : 0;
}

IndexExpr ContractionNumbers::splitKTailBytes() const {
  std::optional<SplitKTail> tail = splitKTail();
  return tail ? tail->tiles * tail->slices * tile.rows * tile.columns * 4 : 0;
}

//===----------------------------------------------------------------------===//
// Prepacked operands
//===----------------------------------------------------------------------===//

/// Rows and columns of each product in turn.
std::vector<PrepackedOperand> ContractionNumbers::prepackedOperands(IndexExpr &bytes) const {
  std::vector<PrepackedOperand> sides;
  bytes = 0;
  IndexExpr batches = pointsOnHost(axes, plan.batch);
  for (auto [planned, how, pack] : zip_equal(plan.products, products, prepacked)) {
    auto summed = cast<tgl::AxesOp>(tgl::ReduceOp(planned.reduce).getOperation());
    unsigned substeps = std::max(how.a.terms, how.b.terms);
    IndexExpr points = pack.order.padded ? IndexExpr(pack.order.points(summed))
                                         : pointsOnHost(summed, pack.order.axes);
    int64_t depth =
        isBytes(how.type) ? WgmmaSharedLayout::lineBytes : WgmmaSharedLayout::lineElements;
    IndexExpr stages = ceilDivOnHost(points, depth) * int64_t(substeps);
    auto place = [&](int64_t each, const IndexExpr &count) {
      IndexExpr start = bytes;
      bytes = bytes + ceilDivOnHost(count * each, areaAlignment) * areaAlignment;
      return start;
    };
    for (bool ofRows : {true, false}) {
      int64_t extent = ofRows ? tile.rows : tile.columns;
      PrepackedOperand side;
      const std::optional<WindowOperand> &window = ofRows ? pack.a : pack.b;
      auto scales = [&](int64_t each, const IndexExpr &count) {
        return usesSplitPrecision() ? place(each, count) : IndexExpr(0);
      };
      if (window) {
        unsigned terms = ofRows ? how.a.terms : how.b.terms;
        bool isHaloSide = usesHaloTile() && !ofRows;
        int64_t pixels = isHaloSide ? halo->pixels : window->pixels;
        side.blocks = window->images * blocksOfImage(*window, pixels);
        side.terms = place(2 * terms, window->images * pixels * window->keptChannels());
        side.scales = scales(sizeof(float), window->images);
        sides.push_back(std::move(side));
        continue;
      }
      std::optional<ChosenMatrix> chosen = chosenMatrix(plan, ofRows ? how.a : how.b);
      IndexExpr sets = chosen ? IndexExpr(chosen->count) : batches;
      if (chosen)
        side.matrix = chosen->number;
      side.tiles = ceilDivOnHost(pointsOnHost(axes, ofRows ? plan.rows : plan.columns), extent);
      side.stages = stages;
      side.blocks = sets * side.tiles * (extent / prepackedLinesOfBlock);
      side.parts = partsOfLines(side.blocks, stages);
      side.blocks = side.blocks * side.parts;
      side.terms = place(extent * WgmmaSharedLayout::lineBytes, sets * side.tiles * stages);
      side.scales = scales(extent * sizeof(float), sets * side.tiles);
      sides.push_back(std::move(side));
    }
  }
  return sides;
}

int64_t ContractionNumbers::partsOfLines(const IndexExpr &blocks, const IndexExpr &stages) const {
  constexpr int64_t enoughBlocks = 8 * device::multiprocessors, minRounds = 4;
  std::optional<int64_t> whole = blocks.asConstant(), length = stages.asConstant();
  if (!whole || !length || *whole <= 0)
    return 1;
  int64_t chunksOfRound = prepackThreads() / prepackedLinesOfBlock,
          chunksOfStage = WgmmaSharedLayout::lineBytes / WgmmaSharedLayout::chunkBytes,
          rounds = *length * chunksOfStage / chunksOfRound;
  return std::max<int64_t>(1, std::min(rounds / minRounds, enoughBlocks / *whole));
}

IndexExpr ContractionNumbers::prepackedBytes() const {
  IndexExpr bytes = 0;
  if (isPrepacked())
    prepackedOperands(bytes);
  return bytes;
}

IndexExpr ContractionNumbers::prepackBlocks() const {
  IndexExpr bytes = 0, blocks = 0;
  for (const PrepackedOperand &side : prepackedOperands(bytes))
    blocks = blocks + side.blocks;
  return blocks;
}

/// The largest values of lines: of their first points, and of all.
unsigned ContractionNumbers::prepackSharedBytes() {
  return 2 * prepackedLinesOfBlock * sizeof(float);
}

/// Of the launch before, for an image of so many pixels in the planes.
int64_t ContractionNumbers::blocksOfImage(const WindowOperand &window, int64_t pixels) const {
  unsigned warps = prepackThreads() / 32;
  return PrepackShape(window, pixels, usesHaloTile(), warps).blocks(warps);
}

//===----------------------------------------------------------------------===//
// TMA descriptors
//===----------------------------------------------------------------------===//

/// They come last in the workspace.
IndexExpr ContractionNumbers::tmaDescriptorsBytes() const {
  if (!usesTma())
    return 0;
  IndexExpr makers = makesTmaDescriptors() ? numBlocks() : IndexExpr(1);
  return makers * int64_t(2 * products.size() * TmaOperand::bytes);
}
