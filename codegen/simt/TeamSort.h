//===- TeamSort.h - Sorts a row by a team of threads --------------*- C++ -*-===//
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
#ifndef TEGULA_CODEGEN_SIMT_TEAMSORT_H
#define TEGULA_CODEGEN_SIMT_TEAMSORT_H

#include "ir/tgl/Tgl.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class DeviceEmitter;

class TeamSort {
public:
  explicit TeamSort(DeviceEmitter &e);

  /// Sorts the row in registers of the team; false where it has no room for it.
  bool emit(tgl::SortOp op);

private:
  struct Network;
  struct Row;

  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  llvm::GlobalVariable *sortedWords = nullptr; ///< that warps exchange

  llvm::GlobalVariable *sortSpace(uint64_t words);
  void emitFew(const Row &row, Network &sort);
  void emitAll(const Row &row, Network &sort, int64_t words);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_TEAMSORT_H
