//===- TensorMap.h - Operands as the tensor memory accelerator takes them -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hopper copies a box of a tensor of up to five dims to shared memory by one instruction of one thread. It asks for
// neighbours in memory along the first dim and for strides that are multiples of 16 bytes; what lies outside is 0
// (CUDA Driver API, "Tensor Map Object Management").
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_TENSORMAP_H
#define TEGULA_PASSES_TENSORMAP_H

#include "passes/ContractionPlan.h"

namespace tegula {

/// One side of a product: [batch axes]... [lines or points of the sum] [the other of them, neighbours in memory].
struct TensorMap {
  static constexpr unsigned mostDims = 5, bytes = 128;
  llvm::SmallVector<int64_t, 0> extents; ///< elements, those of neighbours first
  llvm::SmallVector<int64_t, 0> strides; ///< bytes, of all but the first
  llvm::SmallVector<unsigned, 0> batch;  ///< axes of the statement, of the third dim and on
};

/// The map of what `read`, the side's only factor, reads, whose neighbours are those along the sum, or lines; nothing
/// where it has none, or that is not known.
std::optional<TensorMap> mapTensor(const ContractionPlan &plan, tgl::ReduceOp reduce, const ContractionSide &side,
                                   llvm::ArrayRef<unsigned> lines, tgl::ReadOp read, bool alongSum);

} // namespace tegula

#endif // TEGULA_PASSES_TENSORMAP_H
