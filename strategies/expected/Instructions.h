//===- Instructions.h - What operations cost a thread -*- C++ -*- ---------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions and latencies of single operations, as the device's code has them. Functions are
// polynomials of our own (docs/math.md); their numbers are those of SASS for sm_90a.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_EXPECTED_INSTRUCTIONS_H
#define TEGULA_STRATEGIES_EXPECTED_INSTRUCTIONS_H

#include "ir/tgl/Tgl.h"

namespace tegula {

/// Cycles, on an H100: of an instruction until the next can use it; of a load from shared memory or
/// the first-level cache, from the second-level cache, from memory; of a barrier of a block.
struct Latency {
  static constexpr double instruction = 4.5, near = 30, cache = 270, memory = 800, barrier = 35;
};

/// Instructions of a thread for an operation without regions that accesses no tensor.
double instructionsOf(mlir::Operation *op);
/// The same beside products of tensor cores in a tile loop, where a special unit takes exponents
/// (strategies/tile_loop/lower).
double instructionsInTiles(mlir::Operation *op);
/// Cycles until its result can be used.
double latencyOf(mlir::Operation *op);

/// Instructions that make a number of a register of an element, or the other way round.
double conversionInstructions(mlir::Type element, bool isWrite);
/// Instructions of a subscript's quotients and remainders, which elements with the same share.
double quotientInstructions(const tgl::ValueExpr &subscript);
/// Instructions beside the access itself: its address, whether it exists.
double addressInstructions(tgl::ReadOp read);
double addressInstructions(tgl::WriteOp write);

/// As KernelWork counts them (compiler/Work.h).
bool isOperation(mlir::Operation *op);

} // namespace tegula

#endif // TEGULA_STRATEGIES_EXPECTED_INSTRUCTIONS_H
