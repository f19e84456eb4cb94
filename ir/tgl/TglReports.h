//===- TglReports.h - When a checked access reports --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGL_TGLREPORTS_H
#define TEGULA_IR_TGL_TGLREPORTS_H

#include "llvm/ADT/StringRef.h"

namespace tegula::tgl {

/// Attribute of a `checked` access that left axes which its value does not vary along: their
/// lengths, as integer expressions over its indices. It reports only where all of them are
/// positive. Where such an axis has no points the program has no such access; its value, 0, is then
/// not used.
inline constexpr llvm::StringLiteral reportsWhereAttrName = "reports_where";

/// Attribute of a `checked` access: what is wrong, said of its text, where that is not the
/// subscript.
inline constexpr llvm::StringLiteral reportsAsAttrName = "reports_as";

} // namespace tegula::tgl

#endif // TEGULA_IR_TGL_TGLREPORTS_H
