//===- Npy.h - Arrays in NumPy's file format ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and writes .npy files (versions 1.0 to 3.0): one array in C order and in this machine's
// byte order. Types that NumPy does not have travel as raw bytes of their width: bf16 as `<V2` (or
// u2), f8 as `|V1` (or u1). The file is not trusted: whatever it holds, the answer is an array or
// an error.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_NPY_H
#define TEGULA_RUNTIME_NPY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tegula {

/// An array as a file holds it.
struct NpyArray {
  /// Kind and width in bytes: f8 f4 f2, i8 i4 i2 i1, u8 u4 u2 u1, b1, or V1 V2 (raw bytes).
  std::string type;
  std::vector<int64_t> shape; // empty: a scalar
  std::vector<char> data;     // C order
};

/// Nothing where `bytes` are no array of these types; `error` then says why, and where there is
/// one, what to write in NumPy instead.
std::optional<NpyArray> parseNpy(llvm::StringRef bytes, std::string &error);
/// `noMemory` is set where the array is too large for this machine.
std::optional<NpyArray> readNpy(llvm::StringRef path, std::string &error, bool *noMemory = nullptr);

/// Writes version 1.0. A file is replaced in one step or not at all: there is never a partial one.
/// False, with `error` set, where it could not be written.
bool writeNpy(llvm::StringRef path, llvm::StringRef type, llvm::ArrayRef<int64_t> shape,
              llvm::ArrayRef<char> data, std::string &error);

} // namespace tegula

#endif // TEGULA_RUNTIME_NPY_H
