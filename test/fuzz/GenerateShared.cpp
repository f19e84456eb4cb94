//===- GenerateShared.cpp - Random values that several products multiply --===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values of rows and columns that are made of products, and multiplied along either, as in a
// backward pass: p[i, j] and t[i, j] of q k^T and g z^T, then sums over i or j. Numbers are whole
// and below 2^7, so that any rounding to 16 bits and any order of a sum are exact.
//
//===----------------------------------------------------------------------===//
#include "GenerateTilesImpl.h"

using namespace tegula::fuzz;

void TiledGenerator::sharedValues() {
  std::string type = pick({"bf16", "f16"});
  size("S", 200), size("N", 257), size("D", 136);
  program.sizes[2].second = 8 * (1 + random.below(random.chance(20) ? 20 : 12));
  if (random.chance(40))
    program.sizes[1].second = sizeOf("S");
  bool isGroup = random.chance(30); // heads of it share keys
  program.sizes.push_back({"G", 1 + random.below(2)});
  program.sizes.push_back({"R", isGroup ? 1 + random.below(3) : 1});
  std::string row = isGroup ? "h, r, i" : "h, i", column = "h, j", point = row + ", j";
  std::vector<std::string> rows = {"G", "S", "D"}, columns = {"G", "N", "D"};
  if (isGroup)
    rows.insert(rows.begin() + 1, "R");
  input("q", type, rows, -1, 1), input("k", type, columns, -1, 1);
  input("g", type, rows, -1, 1), input("z", type, columns, -1, 1);
  rows.pop_back(), columns.pop_back();
  input("a", "f32", rows, -2, 2), input("c", "f32", columns, -2, 2);
  input("n", "i32", {"G"}, 0, 300);
  auto at = [&](const std::string &name, const std::string &index) {
    return name + "[" + index + "]";
  };
  std::string score = "clamp(sum(" + at("q", row + ", e") + "*" + at("k", column + ", e") +
                      " for e), min=-3, max=4)" +
                      pick({"", "", " + " + at("a", row), " - " + at("c", column), " + 1"});
  std::string mask = pick({"j <= i", "j <= i", "j <= i + N - S", "j > i - 40 and j <= i + 3",
                           "j < n[h]", "j >= i - 20", "(i + j) % 3 != 0", "j <= i - 100"});
  if (random.chance(80))
    score = "where(" + mask + ", " + score + ", 0)";
  bool isStored = random.chance(20); // in a tensor of 16 bits
  line((isStored ? "p: " + type : "p") + "[" + point + "] = " + score);
  line("t[" + point + "] = " + at("p", point) + "*(clamp(sum(" + at("g", row + ", e") + "*" +
       at("z", column + ", e") + " for e), min=-5, max=4)" +
       pick({"", " - " + at("a", row), " + " + at("c", column)}) + ")");
  auto rounded = [&](const std::string &name) { return type + "(" + at(name, point) + ")"; };
  std::string along = isGroup ? "r, i" : "i";
  unsigned which = 1 + random.below(7);
  if (which & 1 || which == 2 || which == 4) {
    line("y[" + row + ", d] = sum(" + rounded("t") + "*" + at("k", column + ", d") + " for j)");
    rows.push_back("D"), output("y", "f32", rows);
  }
  columns.push_back("D");
  if (which & 2) {
    line("x[" + column + ", d] = sum(" + rounded("t") + "*" + at("q", row + ", d") + " for " +
         along + ")" + pick({"", " + 1", "*2"}));
    output("x", "f32", columns);
  }
  if (which & 4 || which == 1) {
    line("w[" + column + ", d] = sum(" + rounded("p") + "*" + at("g", row + ", d") + " for " +
         along + ")");
    output("w", pick({"f32", "f32", type}), columns);
  }
}
