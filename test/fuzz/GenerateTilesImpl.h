//===- GenerateTilesImpl.h - Random programs of tiles ------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TEST_FUZZ_GENERATETILESIMPL_H
#define TEGULA_TEST_FUZZ_GENERATETILESIMPL_H

#include "GenerateImpl.h"

namespace tegula::fuzz {

/// A program as large as what a device does in tiles (GenerateTiles.cpp).
class TiledGenerator {
public:
  explicit TiledGenerator(Random &random) : random(random) {}
  GeneratedProgram generate();

private:
  void product();
  void scaledProduct();
  void productReduction();
  void convolution();
  void tileLoop();
  void chain();
  void sharedValues(); // GenerateShared.cpp
  void fewRows();
  void rows();
  void scanOrSort();
  void longSort(const std::string &type, const std::string &result);

  // Sums at places and over ranges that data gives (GenerateAccumulation.cpp).
  void fewTargets();
  void dataRanges();

  // Products of few rows (GenerateSkinny.cpp).
  void skinnyProduct();
  struct Axis {
    std::string name;
    int64_t size;
  };
  std::string subscript(const Axis &axis, std::string &dim, unsigned others = 35);
  std::string packedCode(const Axis &j, const Axis &k);
  std::string unpackedCode(const Axis &j, const Axis &k, int64_t group);
  std::string scale(const Axis &j, const Axis &k, int64_t group, const std::string &type);

  int64_t size(const std::string &name, int64_t largest);
  int64_t sizeOf(const std::string &name) const;
  bool isWhole(const std::string &type) const { return type[0] == 'i' || type[0] == 'u'; }
  /// A parameter; `dims` are names of sizes, and numbers.
  void input(const std::string &name, const std::string &type, const std::vector<std::string> &dims,
             int64_t lo, int64_t hi);
  void output(const std::string &name, const std::string &type,
              const std::vector<std::string> &dims);
  void line(const std::string &text) { body += "  " + text + "\n"; }
  static std::string list(const std::vector<std::string> &items);
  std::string pick(std::vector<std::string> from) { return random.pick(from); }

  Random &random;
  GeneratedProgram program;
  std::string parameters, results, body;
};

} // namespace tegula::fuzz

#endif // TEGULA_TEST_FUZZ_GENERATETILESIMPL_H
