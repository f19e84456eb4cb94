//===- LaneChoices.h - The axis of a nest that becomes vector lanes -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One choice for a whole statement, made when its outermost nest is met.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_LANECHOICES_H
#define TEGULA_CODEGEN_COMMON_LANECHOICES_H

#include "ir/tgl/Tgl.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace tegula {

/// An axis of an op spread over vector lanes.
struct LaneChoice {
  unsigned axis;        // of the op
  unsigned width;       // lanes
  unsigned unroll;      // accumulators of a reduction
  unsigned vectors = 1; // of a parallel axis side by side, where something is inside to share
  unsigned apart = 1;   // points from a lane to the next
  bool hasRest = false; // the last vector of the axis may be of fewer points
};

class LaneChoices {
public:
  /// The choice for a nest, with vectors of so many bytes; `whole`: without a rest.
  std::optional<LaneChoice> choose(tgl::AxesOp op, unsigned vectorBytes, bool whole);

  /// Whether lanes along one of the op's own axes are better than along axes inside of it, with
  /// vectors of so many bytes and any number of points.
  static bool prefersOwnAxes(tgl::AxesOp op, unsigned vectorBytes);

private:
  llvm::DenseMap<mlir::Operation *, LaneChoice> choices;
  llvm::DenseSet<mlir::Operation *> roots; ///< nests for which the choice has been made
};

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_LANECHOICES_H
