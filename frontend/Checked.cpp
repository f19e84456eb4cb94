//===- Checked.cpp - Names and classes of element types ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Checked.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace tegula::checked {

bool isPrecision(llvm::StringRef name) {
  return llvm::is_contained({"f32", "tf32", "conv_tf32", "bf16"}, name);
}

bool isFloat(DType type) {
  switch (type) {
  case DType::F64:
  case DType::F32:
  case DType::F16:
  case DType::BF16:
  case DType::F8E4M3:
  case DType::F8E5M2:
    return true;
  default:
    return false;
  }
}

DType computeType(DType type) {
  switch (type) {
  case DType::F64:
  case DType::I64:
  case DType::Bool:
    return type;
  case DType::F32:
  case DType::F16:
  case DType::BF16:
  case DType::F8E4M3:
  case DType::F8E5M2:
    return DType::F32;
  default:
    return DType::I32;
  }
}

std::optional<IntegerRange> integerRange(DType type) {
  auto signedBits = [](unsigned bits) {
    __int128 end = __int128(1) << (bits - 1);
    return IntegerRange{-end, end - 1};
  };
  auto unsignedBits = [](unsigned bits) { return IntegerRange{0, (__int128(1) << bits) - 1}; };
  switch (type) {
  case DType::I64:
    return signedBits(64);
  case DType::I32:
    return signedBits(32);
  case DType::I16:
    return signedBits(16);
  case DType::I8:
    return signedBits(8);
  case DType::I4:
    return signedBits(4);
  case DType::U8:
    return unsignedBits(8);
  case DType::U4:
    return unsignedBits(4);
  case DType::Bool:
    return unsignedBits(1);
  case DType::F64:
  case DType::F32:
  case DType::F16:
  case DType::BF16:
  case DType::F8E4M3:
  case DType::F8E5M2:
    return std::nullopt;
  }
  return std::nullopt;
}

llvm::StringRef toString(DType type) {
  switch (type) {
  case DType::F64:
    return "f64";
  case DType::F32:
    return "f32";
  case DType::F16:
    return "f16";
  case DType::BF16:
    return "bf16";
  case DType::F8E4M3:
    return "f8e4m3";
  case DType::F8E5M2:
    return "f8e5m2";
  case DType::I64:
    return "i64";
  case DType::I32:
    return "i32";
  case DType::I16:
    return "i16";
  case DType::I8:
    return "i8";
  case DType::U8:
    return "u8";
  case DType::I4:
    return "i4";
  case DType::U4:
    return "u4";
  case DType::Bool:
    return "bool";
  }
  return "";
}

std::optional<DType> parseDType(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<DType>>(name)
      .Case("f64", DType::F64)
      .Case("f32", DType::F32)
      .Case("f16", DType::F16)
      .Case("bf16", DType::BF16)
      .Case("f8e4m3", DType::F8E4M3)
      .Case("f8e5m2", DType::F8E5M2)
      .Case("i64", DType::I64)
      .Case("i32", DType::I32)
      .Case("i16", DType::I16)
      .Case("i8", DType::I8)
      .Case("u8", DType::U8)
      .Case("i4", DType::I4)
      .Case("u4", DType::U4)
      .Case("bool", DType::Bool)
      .Default(std::nullopt);
}

} // namespace tegula::checked
