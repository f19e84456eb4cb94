//===- Generate.h - Random valid Tegula programs ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A seed gives a program that the checker must accept, the sizes and inputs to run it with, and how
// far two correct implementations may be apart on each output. Every value is built together with a
// bound of its magnitude and of its rounding error: values made of small multiples of 1/2 by exact
// operations have error 0, and only those decide comparisons, roundings and orders; so a difference
// beyond the bound is a bug, not bad luck.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TEST_FUZZ_GENERATE_H
#define TEGULA_TEST_FUZZ_GENERATE_H

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tegula::fuzz {

struct GeneratedTensor {
  std::string name, type; // as written: `f16`
  std::vector<int64_t> shape;
  /// Inputs: integers in [lo, hi] (floats: their halves too), with nan and infinities among them
  /// where `special`.
  int64_t lo = 0, hi = 0;
  bool special = false;
  int64_t specialEvery = 8; // elements to one of these, about
  /// Where not empty: what integers are drawn from, wrapped to the type.
  std::vector<int64_t> values;
  bool isInout = false; // stands among the outputs too
  /// Outputs: largest absolute difference that rounding explains.
  double tolerance = 0;
};

/// A run-time scalar parameter.
struct GeneratedScalar {
  std::string name, type;
  double value = 0;
  std::optional<int64_t> integer; // where doubles do not reach
  int64_t asInteger() const { return integer.value_or(static_cast<int64_t>(value)); }
};

struct GeneratedProgram {
  std::string text;
  std::vector<std::pair<std::string, int64_t>> sizes;
  std::vector<GeneratedTensor> inputs, outputs; // inouts are the first outputs
  std::vector<GeneratedScalar> scalars;
  /// Of device code: the tile of products, where it is possible; whether tensors begin one element
  /// behind 16 bytes.
  std::string tile;
  bool isShifted = false;
};

GeneratedProgram generateProgram(uint64_t seed);

/// A program of what a device does in tiles, of sizes that take some (GenerateTiles.cpp). Its
/// results are exact but for what their tolerance says.
GeneratedProgram generateTiledProgram(uint64_t seed);

/// A program of subscripts, ranges and conditions over integers from data, near the ends of their
/// types (GenerateAccess.cpp). The checker may refuse it: a place may be outside at every size.
GeneratedProgram generateAccessProgram(uint64_t seed);

/// A program of a loop over steps that changes states (GenerateLoops.cpp). Its results are exact.
GeneratedProgram generateLoopProgram(uint64_t seed);

/// A program whose rows, along a batch of M, are computed each from rows of its own
/// (GenerateBatch.cpp), and which says that M is invariant. Inputs are any.
GeneratedProgram generateBatchProgram(uint64_t seed);

} // namespace tegula::fuzz

#endif // TEGULA_TEST_FUZZ_GENERATE_H
