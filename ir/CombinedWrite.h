//===- CombinedWrite.h - What a write that adds does to an element ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `tgl.write add` with `combine = "max"` leaves the larger of the value and the element in place of their sum, with
// `combine = "min"` the smaller; of floats NaN, where one is. Passes make such writes; to whoever only asks what is read,
// written and overwritten they are like sums.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_COMBINEDWRITE_H
#define TEGULA_IR_COMBINEDWRITE_H

#include "ir/Tgl.h"

namespace tegula::tgl {

inline constexpr llvm::StringLiteral combineAttrName = "combine";

/// Sum, Max or Min.
inline ReduceKind combinationOf(WriteOp write) {
  auto combine = write->getAttrOfType<mlir::StringAttr>(combineAttrName);
  return !combine ? ReduceKind::Sum : combine == "max" ? ReduceKind::Max : ReduceKind::Min;
}

inline void setCombination(WriteOp write, ReduceKind kind) {
  assert((kind == ReduceKind::Sum || kind == ReduceKind::Max || kind == ReduceKind::Min) && "a kind that writes combine by");
  if (kind != ReduceKind::Sum)
    write->setAttr(combineAttrName, mlir::StringAttr::get(write.getContext(), kind == ReduceKind::Max ? "max" : "min"));
}

} // namespace tegula::tgl

#endif // TEGULA_IR_COMBINEDWRITE_H
