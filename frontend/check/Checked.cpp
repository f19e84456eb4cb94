//===- Checked.cpp - What kernels may say of precision ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/check/Checked.h"
#include "llvm/ADT/STLExtras.h"

namespace tegula::checked {

bool isPrecision(llvm::StringRef name) {
  return llvm::is_contained({"f32", "tf32", "conv_tf32", "bf16"}, name);
}

std::optional<IntegerRange> integerRange(DType type) {
  if (isFloat(type))
    return std::nullopt;
  if (type == DType::Bool)
    return IntegerRange{0, 1};
  __int128 end = __int128(1) << (isSigned(type) ? bitWidth(type) - 1 : bitWidth(type));
  return IntegerRange{isSigned(type) ? -end : 0, end - 1};
}

} // namespace tegula::checked
