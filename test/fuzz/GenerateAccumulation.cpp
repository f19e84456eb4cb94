//===- GenerateAccumulation.cpp - Random sums at places and over ranges that data gives ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Many points that add to few elements, h[x[i]] += w[i], so many that copies in shared memory pay;
// and rows of a sparse matrix, sum(v[z]*x[col[z]] for z in a[i]:c[i]), of lengths from 0 to a
// block's. Numbers are small multiples of 1/2, so that sums are exact in any order.
//
//===----------------------------------------------------------------------===//
#include "GenerateTilesImpl.h"
#include <algorithm>

using namespace tegula::fuzz;

void TiledGenerator::fewTargets() {
  int64_t bins = random.pick(std::vector<int64_t>{1, 2, 5, 31, 32, 33, 255, 256, 257, 600});
  int64_t rows = 1 + random.below(4), columns = 1 + random.below(5);
  // Additions in memory take longer than setting up copies.
  int64_t least = std::min<int64_t>(bins * rows / 8 + 1, 32) * 500;
  int64_t points = (least + random.below(2000)) / rows + 1;
  if (random.chance(50))
    points = (points + 7) / 8 * 8;
  std::string K = std::to_string(bins);
  program.sizes = {{"B", rows}, {"N", points}, {"D", columns}};
  bool hasRows = random.chance(60), hasColumns = random.chance(25);
  std::vector<std::string> at = {"i"}, dims = {"N"};
  if (hasRows)
    at.insert(at.begin(), "b"), dims.insert(dims.begin(), "B");
  bool isByte = bins <= 256 && random.chance(30);
  input("x", isByte ? "u8" : pick({"i32", "i64", "u32"}), dims, 0, bins - 1);
  std::string place = "x" + list(at);
  if (random.chance(25)) {
    input("p", "i32", {"N"}, -3, 3);
    place = "clamp(i32(" + place + ") + p[i], min=0, max=" + K + " - 1)";
  }
  std::string type = pick({"i32", "i32", "i64", "f32", "f64"}), value = pick({"1", "w", "w", "w"});
  hasColumns &= value == "w";
  std::vector<std::string> ofValue = at, ofValueDims = dims;
  if (hasColumns)
    ofValue.push_back("d"), ofValueDims.push_back("D");
  if (value == "w") {
    input("w",
          type == "f32"    ? pick({"f32", "f32", "bf16"})
          : type[0] == 'f' ? "f32"
                           : "i32",
          ofValueDims, -2, 2);
    value += list(ofValue);
    if (random.chance(20))
      value += "*2 - 1";
  }
  std::vector<std::string> target = {place}, targetDims = {K};
  bool isApart = hasRows && random.chance(60);
  if (isApart) {
    bool isFirst = random.chance(70);
    target.insert(isFirst ? target.begin() : target.end(), "b");
    targetDims.insert(isFirst ? targetDims.begin() : targetDims.end(), "B");
  }
  if (hasColumns)
    target.push_back("d"), targetDims.push_back("D");
  std::string combine = pick({"+=", "+=", "+=", "max=", "min="}), trailing = " for ";
  for (const std::string &axis : at)
    trailing += (axis == at.front() ? "" : ", ") + axis + " in " + (axis == "b" ? "B" : "N");
  if (hasColumns)
    trailing += ", d in D";
  if (random.chance(20))
    trailing += " if x" + list(at) + " % 3 != 1";
  if (combine != "+=" || random.chance(20)) {
    std::vector<std::string> first;
    for (size_t dim = 0; dim < targetDims.size(); ++dim)
      first.push_back("k" + std::to_string(dim));
    line("h" + list(first) + " = " + pick({"0", "k0 % 2"}));
  }
  line("h" + list(target) + " " + combine + " " + value + trailing);
  output("h", type, targetDims);
  if (random.chance(25)) { // in the same launch, perhaps
    line("n[" + place + "] += 1" + trailing);
    output("n", "i32", {K});
  }
}

void TiledGenerator::dataRanges() {
  int64_t rows = 1 + random.below(random.chance(50) ? 40 : 400);
  int64_t mean = random.pick(std::vector<int64_t>{1, 2, 4, 7, 16, 33, 100, 700});
  int64_t terms = std::clamp<int64_t>(rows * mean + random.below(5), 1, 6000);
  program.sizes = {{"R", rows}, {"Z", terms}, {"C", 1 + random.below(300)}};
  int64_t columns = sizeOf("C");
  bool isWhole = random.chance(50), hasGather = random.chance(70);
  std::string type = isWhole ? "i32" : pick({"f32", "f32", "bf16"});
  input("v", type, {"Z"}, -2, 2);
  input("a", pick({"i32", "i64"}), {"R"}, 0, terms);
  input("n", "i32", {"R"}, -1, 2 * mean);
  std::string term = "v[z]";
  if (hasGather) {
    input("col", pick({"i32", "i64"}), {"Z"}, 0, columns - 1);
    input("x", type, {"C"}, -2, 2);
    term = pick({"v[z]*x[col[z]]", "x[col[z]]*v[z]", "x[col[z]] - v[z]"});
  }
  std::string range = " for z in a[r]:minimum(a[r] + n[r], Z))";
  std::string kind = pick({"sum", "sum", "sum", "count"});
  if (kind == "count")
    term += " > 0";
  line("y[r] = " + kind + "(" + term + range);
  output("y", kind == "count" ? "i64" : isWhole ? "i32" : "f32", {"R"});
  if (random.chance(30)) { // over the same range
    line("s[r] = sum(" + std::string(hasGather ? "v[z] + x[col[z]]" : "v[z]*2") + range +
         pick({"", "*2", " - r"}));
    output("s", isWhole ? "i32" : "f32", {"R"});
  }
}
