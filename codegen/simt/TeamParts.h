//===- TeamParts.h - Deals points out to parts of a team -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `parallel (g) { a = reduce (j) x[i, 128*g + j]; parallel (j) { ...x[i, 128*g + j] / a... } }`
// inside of a statement over `i`: a team's threads are dealt out to the points `g` in parts of a
// warp. Each part reduces by shuffles and goes on with the same threads, so nobody meets at a
// barrier.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_TEAMPARTS_H
#define TEGULA_CODEGEN_SIMT_TEAMPARTS_H

#include "ir/tgl/Tgl.h"

namespace tegula {

class DeviceEmitter;

/// Emits a nest that `dealsToParts` (NestShape.h). All threads of the team come to it.
void emitInParts(DeviceEmitter &e, tgl::ParallelOp nest);

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_TEAMPARTS_H
