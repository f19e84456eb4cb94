//===- Footprint.h - What neighbours ask of the caches -*- C++ -*- --------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sectors of 32 bytes that the threads of a warp ask for together, and the elements that the points
// of a block have in common.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_EXPECTED_FOOTPRINT_H
#define TEGULA_STRATEGIES_EXPECTED_FOOTPRINT_H

#include "ir/tgl/Tgl.h"

namespace tegula {

/// An access of one thread to neighbouring elements.
struct ThreadAccess {
  tgl::TglTensorType type;
  llvm::SmallVector<tgl::ValueExpr> subscripts;
  double elements = 1; ///< side by side that are taken together
};

/// An axis along which threads of a warp, or of a block, stand: `points` of them, each `step`
/// further.
struct ThreadAxis {
  mlir::Value axis; ///< null: threads that have one point together
  double points, step = 1;
};

inline constexpr double sectorBytes = 32, threadsOfWarp = 32;
/// Multiprocessors of an H100 or H200, for which the walk counts.
inline constexpr double multiprocessors = 132;

/// Bytes of caches of an H100 or H200: what the first-level cache of a multiprocessor keeps of what
/// its blocks take; the second-level cache, each half of which has what its multiprocessors read.
struct CacheSize {
  static constexpr double first = 200e3, second = 50e6, half = second / 2;
};

/// What the threads of a warp ask for together.
struct WarpAccess {
  double sectors = 0;
  double lines = 0; ///< of 128 bytes, for each of which the first-level cache takes a cycle
  double turns = 1; ///< of shared memory, which gives a word of each of 32 banks at a time
  double words = 1; ///< of 4 bytes, the first of each thread: those that differ
};

/// Whether data have a part in an expression.
bool usesData(const tgl::ValueExpr &expr);

/// The access of a warp whose threads stand along `axes`, the first fastest. Other values
/// are as `valueOf` says; where that is nothing, data decide: each value of the axes that they vary
/// along has a place of its own.
WarpAccess accessOfWarp(const ThreadAccess &access, llvm::ArrayRef<ThreadAxis> axes,
                        llvm::function_ref<std::optional<int64_t>(mlir::Value)> valueOf);

/// Bytes, in whole sectors, of all elements that an access takes where the values that its
/// subscripts use have so many points.
double bytesOfPoints(const ThreadAccess &access, llvm::function_ref<double(mlir::Value)> pointsOf);

} // namespace tegula

#endif // TEGULA_STRATEGIES_EXPECTED_FOOTPRINT_H
