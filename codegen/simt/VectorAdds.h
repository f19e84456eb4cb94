//===- VectorAdds.h - Additions to neighbours in memory -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device of capability 9.0 adds two or four f32 that lie side by side by one instruction
// (`red.global.add.v4.f32`): rows that are added to rows which data choose take a quarter of the
// requests.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_VECTORADDS_H
#define TEGULA_CODEGEN_SIMT_VECTORADDS_H

#include "codegen/common/LaneChoices.h"

namespace tegula {

class DeviceEmitter;

/// Whether a device of this capability, 10 * major + minor, has such instructions.
bool addsInVectors(unsigned capability);
/// Lanes for a statement whose points are a thread each and which adds along the last of the
/// `outer` axes: whole vectors, at multiples of their length. `tensorAlignment`: bytes, of each
/// tensor that the caller gives.
std::optional<LaneChoice> chooseAddLanes(tgl::ParallelOp op, llvm::ArrayRef<unsigned> outer,
                                         unsigned tensorAlignment);
/// Emits the operation if it adds all lanes of such a statement to neighbours.
bool emitVectorAdd(DeviceEmitter &e, mlir::Operation *op);

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_VECTORADDS_H
