//===- WriteAttributes.h - What writes carry besides their operands -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGL_WRITEATTRIBUTES_H
#define TEGULA_IR_TGL_WRITEATTRIBUTES_H

#include "ir/tgl/Tgl.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace tegula::tgl {

/// Attribute of a `tgl.write`: the data of which the program says that they keep points apart.
/// Checked mode names them where two points meet.
inline constexpr llvm::StringLiteral distinctAttrName = "distinct";

/// Attribute of a `tgl.read`: other points may write the element at the same time, or nothing has
/// defined it yet.
inline constexpr llvm::StringLiteral unorderedAttrName = "unordered";

/// Attribute of a `tgl.temp` of the last writers (EmitIRScatter.cpp): an element becomes -1, then
/// the largest number of the points that write it; only elements that such a point writes are read.
inline constexpr llvm::StringLiteral lastWritersAttrName = "last_writers";

/// An element's stamp: the time of its last write in the upper bits, how it wrote in the lower
/// ones.
inline constexpr unsigned stampKindBits = 4;

/// How a write writes: writes of one kind other than `plainWrite` may meet.
inline constexpr unsigned plainWrite = 0;
inline unsigned writeKind(std::optional<ReduceKind> combine) {
  return combine ? 1 + static_cast<unsigned>(*combine) : plainWrite;
}
static_assert(1 + static_cast<unsigned>(ReduceKind::LogSumExp) < (1u << stampKindBits));

} // namespace tegula::tgl

#endif // TEGULA_IR_TGL_WRITEATTRIBUTES_H
