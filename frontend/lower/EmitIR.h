//===- EmitIR.h - From a checked kernel to tgl IR ----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The module holds the entry kernel and one private kernel for each call. Kernel arguments stand in
// the order inputs (and inouts), outputs, run-time scalars. What becomes of each construct:
//
// - Equation: `tgl.parallel` over its index variables with scalar arithmetic and a `tgl.write`;
// with
//   no variables, a `tgl.parallel` without axes. Where an axis's bounds hold an integer read from
//   data that varies along earlier axes, the axes are split over nested `tgl.parallel`s.
// - An equation that reads its target at other points than it writes: the values go to a fresh
//   temporary over the equation's own points, then to the target. Where the target is read by a
//   subscript or a guard, the old target is copied first instead.
// - `+=`: a `tgl.write ... add`. An output that is accumulated into is filled with 0 first; a
// target of
//   a storage type is widened to a temporary for the statement, so that each statement rounds once.
// - Scalars at the top of a kernel: SSA values where they are made of constants, sizes, scalar
//   arguments and loop variables (the host computes them); else temporaries of rank 0, which are
//   also what scalar states at the top of a kernel are.
// - A call: `tgl.call` of a private kernel whose tensor arguments have the caller's types. A result
//   goes straight where the caller puts it, except into another element type or into a tensor that
//   is also an argument: then through a temporary. Scalars that the host cannot compute are passed
//   as tensors of rank 0. A left-out optional tensor is a constant wherever it is read.
//   Locations of called code are `callsite(<callee's place> at <call>)`: the inliner adds none.
// - `for`: `tgl.for`; `for ... in tiles`: `tgl.tiles`, of the size that the schedule or
//   EmitOptions::tile gives. A pass that changes `size` changes the private temporaries of the loop
//   with it: those with a dim of that constant, subscripted by `j - b`.
// - `tgl.reduce sum` carries `precision`, one of f32, tf32 and bf16, where the program asks for
// one,
//   so that inlining cannot mix the precisions of callers and callees. `conv_tf32` is tf32 on sums
//   that are convolutions and f32 on others, and on kernels, whose attribute is that of other sums.
//
// A `parallel` block becomes an outer `tgl.parallel` over those axes along which everything that
// must be computed once varies: all states, all `=` equations, all costly values that depend on
// states. Along the other axes (inner ones, and tile axes):
//
// - a value or state that varies along outer axes alone is an SSA value (a state updated in a loop
//   is carried by it); one that also varies along inner axes is a private `tgl.temp` over
//   them, computed in an inner `tgl.parallel`;
// - a cheap value is instead recomputed where it is used. Cheap are constants, indices, states,
//   reads and other cheap values joined by at most eight operations (a read counts as one), none of
//   them a division, an elementary function, a reduction, a scan or a random number; a value that
//   reads a state or a tensor which a later statement of the block changes is never recomputed;
// - a costly value that depends on no state, stands outside of loops and does not vary along all of
//   the outer axes is computed before the block, into a temporary;
// - a reduction in a statement that runs along inner axes, itself constant along them, is computed
//   before them.
//
// Where that form does not exist (an inner axis of a stored value has bounds that are no sizes, or
// the bounds of a loop or an outer axis vary along an inner one), all axes are outer, and
// everything is computed at each point.
//
// Float arithmetic carries `contract` and no other fast-math flag.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_LOWER_EMITIR_H
#define TEGULA_FRONTEND_LOWER_EMITIR_H

#include "frontend/check/Checked.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tegula {

struct EmitOptions {
  /// Elements of a tile where the kernel's schedule names none. Any positive number is right; 0
  /// takes one that suits the target: compileKernel replaces it, emitIR itself takes 32.
  int64_t tile = 0;
};

/// Cannot fail on a program that the checker has passed; the module verifies.
mlir::OwningOpRef<mlir::ModuleOp> emitIR(const checked::Program &program,
                                         const SourceManager &sources, mlir::MLIRContext &context,
                                         const EmitOptions &options = {});

} // namespace tegula

#endif // TEGULA_FRONTEND_LOWER_EMITIR_H
