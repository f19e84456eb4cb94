//===- NestShape.h - Shapes of nests, and who does them -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Facts about nests inside of a statement that hold before any code is emitted.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_NESTSHAPE_H
#define TEGULA_CODEGEN_SIMT_NESTSHAPE_H

#include "codegen/common/LaneChoices.h"
#include "ir/tgl/Tgl.h"

namespace tegula {

class Emitter;

/// Bytes of a temporary that a thread keeps in its local memory.
inline constexpr int64_t maxThreadBytes = 1024;

/// Axes whose bounds use none of the nest's own, and the others.
void splitAxes(tgl::AxesOp op, llvm::SmallVectorImpl<unsigned> &box,
               llvm::SmallVectorImpl<unsigned> &rest);
/// A box of known extents.
bool hasRowShape(tgl::AxesOp nest);
/// Nests whose points are the same, in the same vectors.
bool isSameRow(Emitter &e, tgl::AxesOp first, tgl::AxesOp second);
/// Whether two reads, each at a point of its own nest, are of the same element where the points
/// are.
bool isSameElement(tgl::ReadOp first, tgl::AxesOp firstNest, tgl::ReadOp second,
                   tgl::AxesOp secondNest);

/// Whether neighbouring points touch neighbouring memory, more so than neighbours in the nests
/// inside.
bool runsAlongPoints(tgl::ParallelOp op);
/// Whether a private temporary fits neither into a thread's local memory nor into a team's shared
/// memory.
bool isLarge(tgl::TempOp temp);
/// Whether a team does the points of an inner nest one after another, all of it each, rather than
/// a thread a point: they are few, with long rows to reduce in each, or with temporaries too
/// large for a thread.
bool runsSerially(tgl::ParallelOp nest);
/// Whether a team deals the points of an inner nest out to parts of its warps, since each reduces a
/// short row (TeamParts.h).
bool dealsToParts(tgl::ParallelOp nest);
/// Threads of such a part: one for each vector of the nests inside, as far as a warp of the team
/// has them; `laneOf` says which vectors a nest has.
unsigned threadsOfPart(tgl::ParallelOp nest, unsigned team,
                       llvm::function_ref<std::optional<LaneChoice>(tgl::AxesOp)> laneOf);
/// The nests that access a private temporary, if each of their points touches its own element
/// alone, whichever that is in memory: threads that share these nests alike read only what they
/// have written (PrivateTemporaries.cpp).
llvm::SmallVector<tgl::AxesOp> nestsThatOwn(tgl::TempOp temp);

/// Whether two reductions over one axis each read an element at the same places of their axes.
bool shareReads(tgl::ReduceOp first, tgl::ReduceOp second);

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_NESTSHAPE_H
