//===- NpyFuzz.cpp - Any bytes as a .npy file ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Npy.h"
#include <cstdlib>

/// Either an array whose data fit its shape, or an error with a text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string error;
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  std::optional<tegula::NpyArray> array = tegula::parseNpy(bytes, error);
  if (!array) {
    if (error.empty())
      abort();
    return 0;
  }
  uint64_t expected = array->type[1] - '0';
  for (int64_t dim : array->shape)
    expected *= dim;
  if (array->data.size() != expected)
    abort();
  return 0;
}
