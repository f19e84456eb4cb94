//===- HostTensor.h - A tensor in host memory ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_HOSTTENSOR_H
#define TEGULA_IR_HOSTTENSOR_H

#include "ir/DTypes.h"
#include "llvm/ADT/SmallVector.h"
#include <cassert>
#include <vector>

namespace tegula {

/// Row-major, in the storage format of the element type (DTypes.h): exactly the bytes that a
/// compiled kernel takes.
struct HostTensor {
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t> shape;
  std::vector<uint8_t> bytes;

  HostTensor() = default;
  /// Zeros. The size must be one that storageBytes accepts.
  HostTensor(DType dtype, llvm::ArrayRef<int64_t> shape)
      : dtype(dtype), shape(shape), bytes(size_t(*storageBytes(dtype, shape))) {}

  void *data() { return bytes.data(); }
  const void *data() const { return bytes.data(); }
  int64_t numElements() const {
    int64_t count = 1;
    for (int64_t dim : shape)
      count *= dim;
    return count;
  }
  /// Where the n-th element (row-major, without padding) stands, for loadFloat and the like.
  int64_t position(int64_t n) const {
    int64_t padded = paddedLastDim(dtype, shape);
    if (shape.empty() || padded == shape.back())
      return n;
    return n / shape.back() * padded + n % shape.back();
  }
  /// The n-th element in row-major order, whatever its type, exactly (integers beyond 2^53 apart).
  double get(int64_t n) const {
    assert(n >= 0 && n < numElements() && "element out of range");
    if (isFloat(dtype))
      return loadFloat(dtype, data(), position(n));
    int64_t value = loadInteger(dtype, data(), position(n));
    return dtype == DType::U64 ? double(uint64_t(value)) : double(value);
  }
  /// Rounds or wraps to the element type.
  void set(int64_t n, double value) {
    assert(n >= 0 && n < numElements() && "element out of range");
    if (isFloat(dtype))
      storeFloat(dtype, data(), position(n), value);
    else
      storeInteger(dtype, data(), position(n),
                   dtype == DType::U64 && value >= 0x1p63 ? int64_t(uint64_t(value))
                                                          : int64_t(value));
  }
};

} // namespace tegula

#endif // TEGULA_IR_HOSTTENSOR_H
