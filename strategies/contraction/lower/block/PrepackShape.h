//===- PrepackShape.h - How threads prepack an image ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_PREPACKSHAPE_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_PREPACKSHAPE_H

#include "strategies/contraction/plan/WindowOperand.h"
#include <algorithm>

namespace tegula {

/// How the threads of a warp share units of eight channels: those of neighbouring pixels are
/// neighbours in the tensor, those of one pixel in the planes.
struct PrepackShape {
  int64_t lanesOfChunks, lanesOfPixels; ///< of a warp
  int64_t chunkGroups, tasks;           ///< of an image; a task is a warp's share at a time
  int64_t rounds;                       ///< tasks of a warp

  /// Of `pixels`; `apart`: units of one pixel are no neighbours in the planes.
  PrepackShape(const WindowOperand &window, int64_t pixels, bool apart, unsigned warps) {
    constexpr int64_t lanes = 32, maxRounds = 8, enoughBlocks = 528; // four for each multiprocessor
    int64_t chunks = window.keptChannels() / WindowOperand::channelVector;
    lanesOfChunks = apart ? 1 : chunks >= 4 ? 4 : chunks >= 2 ? 2 : 1;
    lanesOfPixels = lanes / lanesOfChunks;
    chunkGroups = llvm::divideCeil(chunks, lanesOfChunks);
    tasks = llvm::divideCeil(pixels, lanesOfPixels) * chunkGroups;
    rounds = std::clamp<int64_t>(window.images * tasks / (warps * enoughBlocks), 1, maxRounds);
  }
  int64_t blocks(unsigned warps) const { return llvm::divideCeil(tasks, warps * rounds); }
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_PREPACKSHAPE_H
