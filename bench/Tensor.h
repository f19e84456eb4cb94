//===- Tensor.h - Tensors in host memory ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What inputs, outputs and references are made of while they are generated and compared: dense, in C
// order, in memory of their own. i4 and u4 are packed two to a byte along the last dim, low nibble
// first, each row beginning at a byte.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_TENSOR_H
#define TEGULA_BENCH_TENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "tegula/tegula.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tegula::bench {

bool isFloat(tegula_dtype type);
/// `f16`, `i64`, `bool`, ... as the language spells them.
llvm::StringRef toString(tegula_dtype type);
std::optional<tegula_dtype> parseDType(llvm::StringRef name);
/// Half the distance from 1 to the next number: what rounding to a float type may do.
double unitRoundoff(tegula_dtype type);

class Tensor {
public:
  Tensor() = default;
  /// Uninitialised memory. Asserts that the sizes are not negative; empty where memory is lacking.
  static std::optional<Tensor> make(tegula_dtype type, llvm::ArrayRef<int64_t> shape);

  tegula_dtype dtype() const { return type; }
  llvm::ArrayRef<int64_t> shape() const { return dims; }
  int64_t elements() const;
  size_t bytes() const { return size; }
  char *data() { return memory.get(); }
  const char *data() const { return memory.get(); }
  tegula_tensor view() const;

  /// The elements as doubles; i64 beyond 2^53 lose bits (integers() keeps them).
  std::vector<double> doubles() const;
  std::vector<int64_t> integers() const; // of integer and bool tensors
  /// Stores rounded to nearest even, as a program stores; integers are expected to fit.
  void store(llvm::ArrayRef<double> values);

private:
  struct Free {
    void operator()(char *memory) const;
  };
  tegula_dtype type = TEGULA_F32;
  std::vector<int64_t> dims;
  size_t size = 0;
  std::unique_ptr<char[], Free> memory;
};

/// Bytes of a tensor; nothing where they do not fit into 63 bits.
std::optional<int64_t> tensorBytes(tegula_dtype type, llvm::ArrayRef<int64_t> shape);

/// `[2, 3]`
std::string shapeText(llvm::ArrayRef<int64_t> shape);

} // namespace tegula::bench

#endif // TEGULA_BENCH_TENSOR_H
