//===- Tensor.h - Tensors in host memory ------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What inputs, outputs and references are made of while they are generated and compared: dense, in
// C order, in memory of their own that begins at a cache line, so that every run finds it alike.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REFERENCE_TENSOR_H
#define TEGULA_BENCH_REFERENCE_TENSOR_H

#include "ir/DTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tegula::bench {

/// Half the distance from 1 to the next number: what rounding to a float type may do.
double unitRoundoff(DType type);

class Tensor {
public:
  Tensor() = default;
  /// Uninitialised memory. Nothing where it is lacking, or the bytes do not fit into 64 bits.
  static std::optional<Tensor> make(DType type, llvm::ArrayRef<int64_t> shape);

  DType dtype() const { return type; }
  llvm::ArrayRef<int64_t> shape() const { return dims; }
  int64_t elements() const;
  size_t bytes() const { return size; }
  char *data() { return memory.get(); }
  const char *data() const { return memory.get(); }

  /// The elements as doubles; i64 beyond 2^53 lose bits (integers() keeps them).
  std::vector<double> doubles() const;
  std::vector<int64_t> integers() const; // of integer and bool tensors
  /// Element n; `real` of any type, `integer` of integer and bool tensors.
  double real(int64_t n) const;
  int64_t integer(int64_t n) const;
  /// Stores rounded to nearest even, as a program stores; integers wrap.
  void store(llvm::ArrayRef<double> values);

private:
  /// Where element n stands: rows of 4-bit types begin at a byte.
  int64_t position(int64_t n) const;
  struct Free {
    void operator()(char *memory) const;
  };
  DType type = DType::F32;
  std::vector<int64_t> dims;
  int64_t columns = 1, paddedColumns = 1;
  size_t size = 0;
  std::unique_ptr<char[], Free> memory;
};

/// `[2, 3]`
std::string shapeText(llvm::ArrayRef<int64_t> shape);

} // namespace tegula::bench

#endif // TEGULA_BENCH_REFERENCE_TENSOR_H
