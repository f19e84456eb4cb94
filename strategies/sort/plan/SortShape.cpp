//===- SortShape.cpp - How a sort of long rows is dealt out ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/sort/plan/SortShape.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

Attribute SortShape::toAttribute(MLIRContext *context) const {
  return Builder(context).getDenseI64ArrayAttr({form, threads, each});
}

std::optional<SortShape> SortShape::of(ParallelOp statement) {
  auto shape = statement->getAttrOfType<DenseI64ArrayAttr>(attributeName);
  if (!shape || shape.size() != 3 || shape[0] < Block || shape[0] > Select || shape[1] < 256 ||
      shape[1] > 1024 || shape[1] % 32 || shape[2] < 1)
    return std::nullopt;
  return SortShape{Form(shape[0]), shape[1], shape[2]};
}

int64_t tegula::sortedBytes(const SortPlan &plan, const SortShape &block) {
  constexpr int64_t warp = 32, digits = 256, bytesOfCount = 4, bytesOfNumber = 4;
  int64_t each = plan.bits() / 8 + (plan.keepsPositions ? bytesOfNumber : 0);
  return block.tile() * each + block.threads / warp * digits * bytesOfCount;
}

std::optional<SortShape> tegula::blockFor(const SortPlan &plan, int64_t elements,
                                          const TargetInfo &target) {
  // Of a thread in registers; static shared memory has room for sums of warps and digits.
  constexpr int64_t most = 16, fixedBytes = 4096;
  SortShape block;
  block.form = SortShape::Block;
  block.threads = elements <= 2048 ? 256 : elements <= 8192 ? 512 : 1024;
  block.each = llvm::divideCeil(elements, block.threads);
  if (block.each > most || sortedBytes(plan, block) + fixedBytes > target.sharedBytes)
    return std::nullopt;
  return block;
}

Matched<SortShape> tegula::chooseSortShape(const SortPlan &plan, const TargetInfo &target,
                                           bool wholeRows) {
  // General code sorts so many elements in a block's registers, and keeps so many in a warp's.
  constexpr int64_t registerRow = 4096, registerKept = 32;
  // Of wider keys it keeps none in registers, and in a launch without rows it has few threads.
  constexpr int64_t shortRow = 64;
  bool isWide = plan.bits() == 64;
  std::string row = std::to_string(plan.rows) + " rows of " + std::to_string(plan.length) + ": ";
  Mismatch asFast{row + "a block that sorts in registers is as fast", "", plan.sort};
  // Selection reads a row a few times; a sort moves it for each digit. A block's sort is one
  // launch.
  constexpr int64_t fewElements = 1 << 20, manyElements = 1 << 22, shortest = 2048;
  bool isFew = plan.rows <= fewElements / plan.length;
  bool readsLittle = plan.kept <= plan.length / 8 && plan.length >= shortest &&
                     plan.rows > manyElements / plan.length;
  bool isKeptByWarp = !isWide && plan.kept <= registerKept;
  if (isKeptByWarp) {
    // Microseconds: blocks that read a row 1024 elements at a time, two on a multiprocessor; and
    // launches that read all of it four times at 2500 bytes for each nanosecond.
    constexpr double step = 0.7, launches = 20, bytesOfUs = 2.5e6, timesRead = 4;
    double waves = double(llvm::divideCeil(plan.rows, 2 * target.multiprocessors));
    double byBlocks = waves * double(plan.length) / 1024 * step;
    double bySelection = launches + timesRead * double(plan.rows) * double(plan.length) *
                                        plan.bits() / 8 / bytesOfUs;
    if (byBlocks <= bySelection)
      return asFast;
  } else if (plan.length <= (isWide || plan.rows == 1 ? shortRow : registerRow) && !readsLittle) {
    return asFast;
  }
  std::optional<SortShape> whole = wholeRows ? blockFor(plan, plan.length, target) : std::nullopt;
  constexpr int64_t maxTiles = 256;
  if (whole && (isFew || plan.kept > plan.length / 8))
    return *whole;
  if (plan.kept <= plan.length / 4 && blockFor(plan, plan.kept, target) &&
      plan.rows <= std::numeric_limits<int32_t>::max() / maxTiles) {
    constexpr int64_t minEach = 8, maxEach = 64, blocksAtOnce = 8;
    SortShape select;
    select.form = SortShape::Select;
    int64_t threads = select.threads * target.multiprocessors * blocksAtOnce;
    int64_t wanted = std::clamp<int64_t>(plan.rows * plan.length / threads, minEach, maxEach);
    // A block adds up what the tiles before it in its row have found.
    wanted = std::min<int64_t>(wanted, llvm::divideCeil(plan.length, select.threads));
    wanted = std::max<int64_t>(wanted, llvm::divideCeil(plan.length, select.threads * maxTiles));
    select.each = llvm::alignTo(wanted, 4);
    return select;
  }
  SortShape tiles;
  tiles.form = SortShape::Tiles;
  tiles.each = isWide ? 8 : 16; // as many as static shared memory holds
  // A launch has a block for each value of a digit in a row too.
  constexpr int64_t digits = 256;
  int64_t most = std::max<int64_t>(llvm::divideCeil(plan.length, tiles.tile()), digits);
  if (most > std::numeric_limits<int32_t>::max() / plan.rows)
    return Mismatch{row + "more than 2^31 tiles", "", plan.sort};
  return tiles;
}
