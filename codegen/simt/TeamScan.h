//===- TeamScan.h - Loops that a team does together, or a thread in several steps -*- C++ -*-===//
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
#ifndef TEGULA_CODEGEN_SIMT_TEAMSCAN_H
#define TEGULA_CODEGEN_SIMT_TEAMSCAN_H

#include "passes/analysis/PrefixLoop.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class DeviceEmitter;

/// Emits a loop that carries a total, by all threads of the team.
void emitTeamScan(DeviceEmitter &e, const PrefixLoop &prefix);
/// Emits a thread's loop, `together` steps at a time.
void emitSeveralSteps(DeviceEmitter &e, const SteppedLoop &stepped, unsigned together);

/// Vectors of so many steps of the loop are single accesses.
unsigned vectorOf(const PrefixLoop &prefix);
/// Combines two totals by the operation of a loop that carries one.
llvm::Value *combineWith(llvm::IRBuilder<> &b, mlir::Operation *op, llvm::Value *lhs,
                         llvm::Value *rhs);
llvm::Constant *identityOf(mlir::Operation *op, llvm::Type *type);

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_TEAMSCAN_H
