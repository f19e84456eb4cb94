//===- GenerateSkinny.cpp - Random products of few rows with packed weights ---------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// y[i, j] = sum(x[i, k]*w(j, k) for k), where w is computed: from parts of bytes and words, by
// scales and zero points of groups, tables, and guards. Each read is along its axes, the same for
// some neighbours, or moved by a number that is known or given. Weights are quarters below 64,
// which bf16 has; sums are exact in any order.
//
//===----------------------------------------------------------------------===//
#include "GenerateTilesImpl.h"
#include <algorithm>

using namespace tegula::fuzz;

static std::string text(int64_t number) { return std::to_string(number); }

static int64_t partsOf(int64_t size, int64_t by) { return (size + by - 1) / by; }

/// What stands for the axis in a subscript, and the dim that has room for it: the axis, its
/// quotient by a power of two, the axis and a number, or the axis and one that data gives.
/// `others`: how many of a hundred are not the axis alone.
std::string TiledGenerator::subscript(const Axis &axis, std::string &dim, unsigned others) {
  constexpr int64_t most = 3;
  dim = text(axis.size);
  if (!random.chance(others))
    return axis.name;
  int64_t number = 1 + random.below(most);
  switch (random.below(4)) {
  case 0:
    dim = text(axis.size + number);
    return axis.name + " + " + text(number);
  case 1:
    dim = text(axis.size + most);
    if (parameters.find("u: i32") == std::string::npos)
      input("u", "i32", {"2"}, 0, most);
    return axis.name + " + u[" + text(number % 2) + "]";
  default:
    dim = text(partsOf(axis.size, 1 << number));
    return axis.name + " // " + text(1 << number);
  }
}

/// An integer of weight w at j, k: of a nibble in a byte or in a word along the sum or across it,
/// of a byte, a bit, or a type of four bits; or a float of eight bits. Declares w.
std::string TiledGenerator::packedCode(const Axis &j, const Axis &k) {
  constexpr int64_t words = 2000000000;
  std::string N, K, row, at;
  // The part of a tensor whose elements have so many, along this axis.
  auto both = [&](const Axis &rows, const Axis &columns) {
    row = subscript(rows, N, 20);
    at = subscript(columns, K, 20);
  };
  auto packed = [](const Axis &axis, int64_t by) {
    return Axis{"(" + axis.name + " // " + text(by) + ")", axis.size / by};
  };
  for (;;)
    switch (random.below(8)) {
    case 0:
    case 1:
      if (k.size % 2)
        continue;
      both(j, packed(k, 2));
      if (random.chance(70)) {
        input("w", "u8", {N, K}, 0, 255);
        return "((w[" + row + ", " + at + "] >> 4*" + pick({"(k % 2)", "(1 - k%2)"}) + ") & 0xf)";
      }
      input("w", "u8", {K, N}, 0, 255);
      return "((w[" + at + ", " + row + "] >> 4*(k % 2)) & 0xf)";
    case 2:
      if (k.size % 8)
        continue;
      both(j, packed(k, 8));
      if (random.chance(50)) {
        input("w", pick({"i32", "u32"}), {K, N}, 0, words);
        return "((w[" + at + ", " + row + "] >> 4*(k % 8)) & 0xf)";
      }
      input("w", "i32", {N, K}, -words, words);
      return "((w[" + row + ", " + at + "] >> 4*(k % 8)) & 0xf)";
    case 3:
      if (j.size % 8)
        continue;
      both(packed(j, 8), k);
      input("w", "i32", {K, N}, -words, words);
      return "((w[" + at + ", " + row + "] >> 4*(j % 8)) & 0xf)";
    case 4:
      both(j, k);
      if (random.chance(50)) {
        input("w", "i8", {N, K}, -8, 8);
        return "w[" + row + ", " + at + "]";
      }
      input("w", "u8", {K, N}, 0, 15);
      return "w[" + at + ", " + row + "]";
    case 5:
      both(j, k);
      input("w", "i4", {N, K}, -8, 7);
      return "w[" + row + ", " + at + "]";
    case 6:
      both(j, k);
      input("w", "bool", {N, K}, 0, 1);
      return "where(w[" + row + ", " + at + "], 5, -3)";
    default:
      both(j, k);
      input("w", pick({"f8e4m3", "f8e5m2"}), {N, K}, -2, 2);
      return "w[" + row + ", " + at + "]";
    }
}

/// A nibble as it is, less a zero point, or what a table of all, of a row or of a group has for it.
std::string TiledGenerator::unpackedCode(const Axis &j, const Axis &k, int64_t group) {
  constexpr int64_t words = 2000000000;
  std::string code = packedCode(j, k);
  if (code.find("0xf") == std::string::npos)
    return code;
  Axis groups = {"(k // " + text(group) + ")", k.size / group};
  std::string N, P, row, at, type = pick({"bf16", "f16", "f32"});
  switch (random.below(9)) {
  case 0:
    input("t", type, {"16"}, -12, 12);
    return "t[" + code + "]";
  case 1:
    row = subscript(j, N);
    input("t", type, {N, "16"}, -12, 12);
    return "t[" + row + ", " + code + "]";
  case 2:
    at = subscript(groups, P);
    input("t", type, {P, "16"}, -12, 12);
    return "t[" + at + ", " + code + "]";
  case 3:
    return "(" + code + " - 8)";
  case 4:
    row = subscript(j, N), at = subscript(groups, P);
    input("z", type, {N, P}, -8, 8);
    return "(" + code + " - z[" + row + ", " + at + "])";
  case 5:
    row = subscript(j, N), at = subscript(groups, P);
    input("z", "i32", {P, N}, -8, 8);
    return "(" + code + " - z[" + at + ", " + row + "] - 1)";
  case 6: {
    int64_t by = 1 << (1 + random.below(3));
    at = subscript(groups, P);
    input("z", "i32", {P, text(partsOf(j.size, by))}, -words, words);
    return "(" + code + " - ((z[" + at + ", j // " + text(by) + "] >> 4*(j % " + text(by) +
           ")) & 0xf))";
  }
  default:
    return code;
  }
}

/// `*` and what a code is multiplied by: a number of its row, group, or both; or nothing.
std::string TiledGenerator::scale(const Axis &j, const Axis &k, int64_t group,
                                  const std::string &type) {
  Axis groups = {"(k // " + text(group) + ")", k.size / group};
  std::string N, P, row = subscript(j, N), at = subscript(groups, P), element = type;
  switch (random.below(7)) {
  case 0:
    return "";
  case 1:
    input("s", "f32", {N}, -2, 2);
    return "*s[" + row + "]";
  case 2:
    input("s", type, {P, N}, -2, 2);
    return "*s[" + at + ", " + row + "]";
  case 3:
    input("s", type, {text(groups.size), N}, -2, 2);
    input("g", "i32", {text(k.size)}, 0, groups.size - 1);
    return "*s[g[k], " + row + "]";
  case 4: { // a guard that neighbours share
    std::string by = text(1 << random.below(4));
    input("s", type, {P, text(j.size)}, -2, 2);
    return "*where(j // " + by + " % 2 == 1, s[" + at + ", j - " + by + "], 1.5)";
  }
  case 5: // rows that data chooses
    input("g", "i32", {N}, 0, j.size - 1);
    input("s", type, {text(j.size), P}, -2, 2);
    return "*s[g[" + row + "], " + at + "]";
  default:
    if (random.chance(50))
      element = "f32";
    input("s", element, {N, P}, -2, 2);
    return "*s[" + row + ", " + at + "]";
  }
}

/// As one statement or two, the rows as they are, turned, chosen by data, or each several times.
void TiledGenerator::skinnyProduct() {
  static const std::vector<int64_t> groups = {4, 8, 24, 32, 32, 64, 96, 128};
  std::string type = pick({"bf16", "f16"});
  int64_t group = random.pick(groups), parts = 1 + random.below(std::max<int64_t>(2, 700 / group));
  bool isVector = random.chance(10);
  program.sizes = {{"M", isVector ? 1 : 1 + random.below(random.chance(15) ? 40 : 32)}};
  size("N", 200);
  if (random.chance(60))
    program.sizes.back().second = 8 * (1 + random.below(25));
  Axis i = {"i", sizeOf("M")}, j = {"j", sizeOf("N")}, k = {"k", group * parts};
  std::string N = text(j.size), K = text(k.size), rows = "M", at = "i";
  bool isTurned = !isVector && random.chance(20), isShared = !isVector && random.chance(20);
  program.sizes.resize(isVector || isShared ? 0 : 1); // columns and the sum are numbers
  if (isShared) {
    at = subscript(i, rows, 100);
  } else if (!isVector && !isTurned && random.chance(25)) {
    input("c", "i32", {"M"}, 0, i.size - 1);
    at = "c[i]";
  }
  std::string left = isVector ? "x[k]" : isTurned ? "x[k, " + at + "]" : "x[" + at + ", k]";
  if (isVector)
    input("x", type, {K}, -2, 2);
  else if (isTurned)
    input("x", type, {K, rows}, -2, 2);
  else
    input("x", type, {rows, K}, -2, 2);
  if (random.chance(20))
    program.inputs.back().special = true, program.inputs.back().specialEvery = 2 * k.size + 1;
  std::string code = unpackedCode(j, k, group);
  code += scale(j, k, group, type);
  if (random.chance(10))
    code = "where(" + pick({"j // 2 % 2 == 1", "k // 4 % 3 != 1", "(j + k) % 3 != 0"}) + ", " +
           code + ", 3)";
  std::string weight = type + "(" + code + ")";
  if (random.chance(35)) {
    line("q: " + type + "[j in " + N + ", k in " + K + "] = " + code);
    weight = "q[j, k]";
  }
  std::string sum = "sum(" + (random.chance(70) ? left + "*" + weight : weight + "*" + left) +
                    " for k in " + K + ")";
  if (random.chance(40)) {
    input("b", "f32", {N}, -4, 4);
    sum = pick({sum + " + b[j]", "maximum(" + sum + " - b[j], 0)", "b[j]*" + sum});
  }
  bool stores = random.chance(30);
  line((isVector ? "y[j] = " : "y[i, j] = ") + sum);
  std::vector<std::string> dims = {isShared ? text(i.size) : "M", N};
  if (isVector)
    dims = {N};
  output("y", stores ? type : "f32", dims);
  static const std::vector<std::string> tiles = {"16-columns", "32-columns", "64-columns",
                                                 "32-columns", ""};
  program.tile = random.pick(tiles);
}
