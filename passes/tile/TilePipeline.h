//===- TilePipeline.h - The passes of the tile dialect in order -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_TILE_TILEPIPELINE_H
#define TEGULA_PASSES_TILE_TILEPIPELINE_H

#include "passes/Pipeline.h"

namespace tegula {

/// From scheduled statements to kernels of the abstract stage.
void buildTilePipeline(mlir::OpPassManager &manager, const PipelineOptions &options);
/// From the abstract to the placed stage.
void buildPlacePipeline(mlir::OpPassManager &manager, const PipelineOptions &options);

/// Passes of both in order, as `tegula passes` lists them.
std::vector<PipelinePass> tilePipelinePasses();

void registerTilePasses(const std::shared_ptr<Counters> &counters);

} // namespace tegula

#endif // TEGULA_PASSES_TILE_TILEPIPELINE_H
