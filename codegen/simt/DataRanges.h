//===- DataRanges.h - Sums over ranges that data gives ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `sum(v[z]*x[col[z]] for z in start[r]:start[r + 1])`: how long a row is only data tells, but all
// rows together have the elements of v, so their mean length is known. A team of threads that goes
// by it takes a row.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_DATARANGES_H
#define TEGULA_CODEGEN_SIMT_DATARANGES_H

#include "codegen/simt/DeviceEmitter.h"

namespace tegula {

/// Whether data gives an end of the reduction's only axis.
bool isDataRange(tgl::ReduceOp reduce);

/// The mean length of the ranges of a reduction that stands in the statement, rounded up, if rows
/// follow each other in memory: elements of what is read along the range, by the rows that there
/// are.
std::optional<int64_t> meanLength(tgl::ReduceOp reduce, tgl::ParallelOp statement);

/// Distributes a range over the team: as DeviceEmitter::distribute, with some elements of a thread
/// in flight together, those beyond the range masked. What rounding takes from sums is kept.
llvm::SmallVector<llvm::Value *>
distributeRange(DeviceEmitter &e, llvm::ArrayRef<tgl::ReduceOp> together, llvm::Value *count,
                llvm::ArrayRef<llvm::Value *> start, unsigned ahead, DistributedBody body);

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_DATARANGES_H
