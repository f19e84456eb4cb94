//===- WriteAttributes.h - What writes carry besides their operands -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_WRITEATTRIBUTES_H
#define TEGULA_IR_WRITEATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace tegula::tgl {

/// Attribute of a `tgl.write`: the data of which the program says that they keep points apart. Checked mode
/// names them where two points meet.
inline constexpr llvm::StringLiteral distinctAttrName = "distinct";

} // namespace tegula::tgl

#endif // TEGULA_IR_WRITEATTRIBUTES_H
