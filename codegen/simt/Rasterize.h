//===- Rasterize.h - The order in which blocks take points --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_RASTERIZE_H
#define TEGULA_CODEGEN_SIMT_RASTERIZE_H

#include "codegen/common/LaneChoices.h"
#include "ir/tgl/Tgl.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class DeviceEmitter;

/// Raster order of points: chunks of vectors, each for all points that read the same elements.
struct Raster {
  int64_t repeats = 0, vectors = 0, chunk = 0; ///< 0: by their numbers

  /// The point that is `number`-th of `count` in that order.
  llvm::Value *rasterized(llvm::IRBuilder<> &b, llvm::Value *number, llvm::Value *count) const;
};

Raster planRaster(DeviceEmitter &e, tgl::ParallelOp op, llvm::ArrayRef<unsigned> outer,
                  const std::optional<LaneChoice> &lane);

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_RASTERIZE_H
