//===- ReferenceMaps.h - Maps of elements in a reference ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_REFERENCEMAPS_H
#define TEGULA_PROVE_REFERENCEMAPS_H

#include "prove/EvaluateImpl.h"
#include "llvm/ADT/StringSwitch.h"

namespace tegula::prove {

/// Whether the function decides between numbers, so that it is to be seen to go both ways.
bool isCondition(llvm::StringRef fn);

/// Functions of one number and of two, but for conditions; null where the function is none.
using UnaryMap = Number (*)(Algebra &, const Number &);
using BinaryMap = Number (*)(Algebra &, const Number &, const Number &);
UnaryMap unaryMap(llvm::StringRef fn);
BinaryMap binaryMap(llvm::StringRef fn);

/// Operands are numbers, or null where they are integers, whose values are in `integers`. Nothing
/// where the function is not known.
std::optional<Number> mapToNumber(llvm::StringRef fn, Algebra &algebra,
                                  llvm::ArrayRef<const Number *> numbers,
                                  llvm::ArrayRef<int64_t> integers, uint8_t *way);
std::optional<int64_t> mapToInteger(llvm::StringRef fn, Algebra &algebra,
                                    llvm::ArrayRef<const Number *> numbers,
                                    llvm::ArrayRef<int64_t> integers, uint8_t *way);

} // namespace tegula::prove

#endif // TEGULA_PROVE_REFERENCEMAPS_H
