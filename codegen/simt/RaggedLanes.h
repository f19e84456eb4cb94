//===- RaggedLanes.h - Lanes where rows are no whole vectors ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread that does one point has one load under way, and a warp of them moves 64 or 128 bytes at
// a time. Where rows are no whole vectors, or begin anywhere, a thread takes several points all the
// same:
//
//   neighbours          where each row begins at a multiple of the vector's length: the last vector
//                       of a row is of fewer points, which are masked
//   a warp's length     elsewhere: each access of a warp is to neighbours, wherever they begin, and
//   apart               the loads of a thread's points are under way together
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_RAGGEDLANES_H
#define TEGULA_CODEGEN_SIMT_RAGGEDLANES_H

#include "codegen/common/LaneChoices.h"

namespace tegula {

/// Lanes, with vectors of so many bytes, for the points of a statement of which whole vectors are
/// not possible; nothing where it has loops inside, or where many vectors would not be full.
/// `tensorAlignment`: bytes, of each tensor that the caller gives.
std::optional<LaneChoice> chooseRaggedLanes(tgl::ParallelOp op, llvm::ArrayRef<unsigned> outer,
                                            unsigned vectorBytes, unsigned tensorAlignment);

/// Whether an access's vectors begin at multiples of their length, if those of the axis do.
bool beginsWithVectors(mlir::Value tensor, const tgl::ValueExpr &offset, mlir::Value axis,
                       unsigned width, unsigned tensorAlignment);

/// Vectors of such lanes along their axis of so many points.
int64_t raggedVectors(const LaneChoice &lane, int64_t points);

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_RAGGEDLANES_H
