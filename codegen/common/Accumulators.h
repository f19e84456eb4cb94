//===- Accumulators.h - What reductions carry, and how it comes together -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An accumulator is one value, value and index for argmax and argmin, or what EmitVariances.cpp
// says for var. Where all lanes count alike the number is a scalar.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_ACCUMULATORS_H
#define TEGULA_CODEGEN_COMMON_ACCUMULATORS_H

#include "ir/tgl/Tgl.h"
#include "llvm/IR/Value.h"

namespace tegula {

class ScalarEmitter;

using Accumulator = llvm::SmallVector<llvm::Value *>;

Accumulator initialAccumulator(ScalarEmitter &e, tgl::ReduceOp op);
/// `position`: the type of the position that argmax and argmin return. Nothing for kinds that are
/// expanded before code generation.
Accumulator initialAccumulator(ScalarEmitter &e, tgl::ReduceKind kind, llvm::Type *type,
                               llvm::Type *position);
Accumulator combine(ScalarEmitter &e, tgl::ReduceKind kind, const Accumulator &lhs,
                    const Accumulator &rhs);
Accumulator combine(ScalarEmitter &e, tgl::ReduceOp op, const Accumulator &lhs,
                    const Accumulator &rhs);
/// EmitVariances.cpp
Accumulator combineVariances(ScalarEmitter &e, const Accumulator &lhs, const Accumulator &rhs);
/// The lanes of an accumulator together.
Accumulator combineLanes(ScalarEmitter &e, tgl::ReduceOp op, Accumulator accumulator,
                         unsigned width);
/// The accumulator for lanes that are all alike so far.
Accumulator splatAccumulator(ScalarEmitter &e, tgl::ReduceOp op, Accumulator accumulator,
                             unsigned width);
/// Of argmax and argmin: the point is taken where it is better than what was found before it.
Accumulator takeNext(ScalarEmitter &e, tgl::ReduceKind kind, Accumulator accumulator,
                     Accumulator point, llvm::Value *counts);
/// The point at which the body has just been emitted, added.
Accumulator addPoint(ScalarEmitter &e, tgl::ReduceOp op, Accumulator accumulator);
/// The place that argmax or argmin has while it has seen nothing, of an integer type or a vector of
/// it: no index (-1 may be one). `resultOfPlace` makes the -1 of it that programs see, as i64.
llvm::Constant *noPlace(llvm::Type *type);
llvm::Value *resultOfPlace(ScalarEmitter &e, llvm::Value *place);
llvm::Value *resultOf(ScalarEmitter &e, tgl::ReduceOp op, const Accumulator &accumulator);

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_ACCUMULATORS_H
