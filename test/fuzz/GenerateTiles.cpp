//===- GenerateTiles.cpp - Random programs as large as what a device does in tiles ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The programs of generateProgram() have sizes of a few points, for which a device takes no tiles.
// These have sizes next to those of tiles, vectors and blocks, and are what strategies look for: a
// product, a convolution, a tile loop, rows and columns that are read several times, a scan, a
// sort. All numbers are small multiples of 1/2 and all sums exact, in any order.
//
//===----------------------------------------------------------------------===//
#include "GenerateTilesImpl.h"
#include <algorithm>

using namespace tegula::fuzz;

std::string TiledGenerator::list(const std::vector<std::string> &items) {
  std::string text;
  for (const std::string &item : items)
    text += (text.empty() ? "" : ", ") + item;
  return "[" + text + "]";
}

/// Most are large enough for tiles.
int64_t TiledGenerator::size(const std::string &name, int64_t largest) {
  static const std::vector<int64_t> all = {
      1,  2,  3,  5,   7,   8,   15,  16,  17,  31,  32,  33,  60,  63,  64,  65,   66,
      72, 96, 97, 127, 128, 129, 130, 136, 191, 192, 193, 200, 256, 257, 333, 1031, 2052};
  int64_t value = 0, least = random.chance(70) ? 31 : 1;
  do
    value = random.pick(all);
  while (value > largest || value < std::min(least, largest));
  program.sizes.push_back({name, value});
  return value;
}

int64_t TiledGenerator::sizeOf(const std::string &name) const {
  for (const auto &[other, value] : program.sizes)
    if (other == name)
      return value;
  return std::stoll(name);
}

void TiledGenerator::input(const std::string &name, const std::string &type,
                           const std::vector<std::string> &dims, int64_t lo, int64_t hi) {
  GeneratedTensor tensor{name, type, {}, lo, hi};
  for (const std::string &dim : dims)
    tensor.shape.push_back(sizeOf(dim));
  program.inputs.push_back(tensor);
  parameters += (parameters.empty() ? "" : ", ") + name + ": " + type + list(dims);
}

void TiledGenerator::output(const std::string &name, const std::string &type,
                            const std::vector<std::string> &dims) {
  GeneratedTensor tensor{name, type, {}};
  for (const std::string &dim : dims)
    tensor.shape.push_back(sizeOf(dim));
  program.outputs.push_back(tensor);
  results += (results.empty() ? "" : ", ") + name + ": " + type + list(dims);
}

/// Operands in any order and type, evaluated or not, with a batch or without, and something behind
/// the sums.
void TiledGenerator::product() {
  static const std::vector<std::vector<std::string>> types = {
      {"f32", "f32"},       {"f32", "f32"},       {"f16", "f16"},  {"bf16", "bf16"},
      {"f8e4m3", "f8e4m3"}, {"f8e5m2", "f8e4m3"}, {"i8", "i8"},    {"u8", "i8"},
      {"u8", "u8"},         {"f32", "f16"},       {"bf16", "f32"}, {"i8", "f16"}};
  const std::vector<std::string> &type = random.pick(types);
  bool areBytes = isWhole(type[0]) && isWhole(type[1]), hasBatch = random.chance(25);
  size("M", 257), size("N", 257), size("K", 333);
  if (hasBatch)
    program.sizes.push_back({"B", 1 + random.below(3)});
  while (sizeOf("M") * sizeOf("N") * sizeOf("K") > 2000000)
    for (auto &[name, value] : program.sizes)
      value = std::max<int64_t>(value * 2 / 3, 1);
  std::string operands[2];
  for (int side : {0, 1}) {
    std::vector<std::string> indices = {side ? "k" : "i", side ? "j" : "k"},
                             dims = {side ? "K" : "M", side ? "N" : "K"};
    if (random.chance(50)) {
      std::swap(indices[0], indices[1]);
      std::swap(dims[0], dims[1]);
    }
    if (hasBatch && (side == 0 || random.chance(70))) {
      indices.insert(indices.begin(), "b");
      dims.insert(dims.begin(), "B");
    }
    std::string name = side ? "w" : "x";
    input(name, type[side], dims,
          type[side][0] == 'u' ? 0
          : areBytes           ? -128
                               : -2,
          areBytes ? (type[side][0] == 'u' ? 255 : 127) : 2);
    if (!areBytes && random.chance(25))
      program.inputs.back().special = true,
      program.inputs.back().specialEvery = 2 * sizeOf("K") + 1;
    operands[side] = name + list(indices);
    if (!areBytes && random.chance(20))
      operands[side] = pick({"(" + operands[side] + " + 1)", "abs(" + operands[side] + ")",
                             "where(k % 3 != 0, " + operands[side] + ", 0)",
                             "maximum(" + operands[side] + ", 0)",
                             "bf16(" + operands[side] + " + 1)", "f16(2*" + operands[side] + ")"});
  }
  std::string range = random.chance(85)
                          ? "k"
                          : pick({"k in 0:minimum(K, i + 1)", "k in 1:K", "k in K if k % 2 == 0"});
  bool isSwapped = random.chance(30);
  std::string sum =
                  "sum(" + operands[isSwapped] + "*" + operands[!isSwapped] + " for " + range + ")",
              result = areBytes ? "i32" : "f32";
  std::vector<std::string> at = {"i", "j"}, dims = {"M", "N"}, turned = {"j", "i"},
                           turnedDims = {"N", "M"};
  if (hasBatch)
    for (auto *one : {&at, &turned, &dims, &turnedDims})
      one->insert(one->begin(), one == &at || one == &turned ? "b" : "B");
  bool isTurned = random.chance(25);
  const auto &to = isTurned ? turned : at;
  const auto &toDims = isTurned ? turnedDims : dims;
  switch (random.below(7)) {
  case 0:
    input("r", result, dims, -4, 4);
    line("y" + list(to) + " = maximum(" + sum + " + r" + list(at) + ", 0)");
    break;
  case 1:
    input("p", result, {"N"}, -4, 4);
    input("q", result, {"M"}, -4, 4);
    line("y" + list(to) + " = " + sum + "*q[i] - p[j]");
    break;
  case 2:
    line("y" + list(to) + " = " + sum);
    line("z" + list(at) + " = y" + list(to) + "*2 + i");
    output("y", result, toDims), output("z", result, dims);
    return;
  case 3: {
    bool ofRows = random.chance(50);
    std::vector<std::string> kept = at, keptDims = dims;
    kept.erase(kept.end() - (ofRows ? 1 : 2)), keptDims.erase(keptDims.end() - (ofRows ? 1 : 2));
    line("t" + list(at) + " = " + sum);
    line("y" + list(kept) + " = " + (areBytes ? "sum" : pick({"sum", "max", "min"})) + "(t" +
         list(at) + " for " + (ofRows ? "j" : "i") + ")");
    output("y", result, keptDims);
    return;
  }
  default:
    line("y" + list(to) + " = " + sum);
  }
  output("y", result == "i32" ? pick({"i32", "i64", "i8"}) : pick({"f32", "f32", "f16", "bf16"}),
         toDims);
}

/// A product of 8-bit floats whose sum has scales of blocks: of rows, of columns, and of groups of
/// them, nested or flat.
void TiledGenerator::scaledProduct() {
  static const std::vector<int64_t> lengths = {128, 128, 128, 256, 64},
                                    groups = {1, 1, 32, 96, 128};
  size("M", 200), size("N", 333);
  int64_t length = random.pick(lengths), blocks = 1 + random.below(3);
  int64_t ofRows = random.pick(groups), ofColumns = random.pick(groups);
  auto text = [](int64_t number) { return std::to_string(number); };
  auto count = [&](const std::string &name, int64_t group) {
    return text((sizeOf(name) + group - 1) / group);
  };
  std::string all = text(length * blocks), each = text(length);
  input("a", pick({"f8e4m3", "f8e5m2"}), {"M", all}, -2, 2);
  input("b", pick({"f8e4m3", "f8e5m2"}), {"N", all}, -2, 2);
  input("r", "f32", {count("M", ofRows), text(blocks)}, -3, 3);
  input("c", "f32", {count("N", ofColumns), text(blocks)}, -3, 3);
  bool isFlat = random.chance(40);
  std::string block = isFlat ? "k // " + each : "g", point = isFlat ? "k" : each + "*g + k";
  std::string row = "r[i // " + text(ofRows) + ", " + block + "]",
              column = "c[j // " + text(ofColumns) + ", " + block + "]";
  std::string scales = pick({row, column, row + "*" + column, column + "*" + row});
  std::string products = "a[i, " + point + "]*b[j, " + point + "]";
  std::string sum = isFlat ? "sum(" + pick({scales + "*" + products, products + "*" + scales}) +
                                 " for k in " + all + ")"
                           : "sum(" + scales + "*sum(" + products + " for k in " + each +
                                 ") for g in " + text(blocks) + ")";
  line("y[i, j] = " + pick({sum, "maximum(" + sum + ", 0)", sum + " - j"}));
  output("y", "f32", {"M", "N"});
}

/// A reduction over the columns of a product that nobody stores. Values are whole quarters, sums
/// and products of signs exact in any order, and many results are equal, so that the first must
/// win.
void TiledGenerator::productReduction() {
  static const std::vector<std::vector<std::string>> types = {
      {"bf16", "bf16"}, {"f16", "f16"}, {"f32", "f32"}, {"bf16", "f16"}, {"f32", "bf16"}};
  const std::vector<std::string> &type = random.pick(types);
  size("M", 257), size("N", 257), size("K", 200);
  bool hasBatch = random.chance(25), isProduct = random.chance(15);
  if (hasBatch)
    program.sizes.push_back({"B", 1 + random.below(3)});
  std::string operands[2];
  for (int side : {0, 1}) {
    std::vector<std::string> indices = {side ? "j" : "i", "k"}, dims = {side ? "N" : "M", "K"};
    if (random.chance(30)) {
      std::swap(indices[0], indices[1]);
      std::swap(dims[0], dims[1]);
    }
    if (hasBatch && (side == 0 || random.chance(70))) {
      indices.insert(indices.begin(), "b");
      dims.insert(dims.begin(), "B");
    }
    std::string name = side ? "w" : "x";
    input(name, type[side], dims, -1, 1);
    if (random.chance(20))
      program.inputs.back().special = true,
      program.inputs.back().specialEvery = 2 * sizeOf("K") + 1;
    operands[side] = name + list(indices);
  }
  input("q", "f32", {"N"}, -2, 2);
  input("r", "f32", {"M"}, -2, 2);
  std::string range = random.chance(85) ? "k" : pick({"k in 1:K", "k in K if k % 2 == 0"}),
              columns = random.chance(80) ? "j" : pick({"j in 1:N", "j in N if j % 3 != 1"}),
              sum = "sum(" + operands[0] + "*" + operands[1] + " for " + range + ")",
              term = pick({sum, sum + " - q[j]", "q[j] - 2*" + sum, "abs(" + sum + " + q[j])",
                           sum + " + r[i]", "where(q[j] > 0, " + sum + ", 1.0)",
                           "where(j <= i, " + sum + ", -1000.0)"}),
              kind = pick({"max", "min", "sum", "argmax", "argmin"});
  if (isProduct)
    kind = "prod", term = "where(" + term + " > r[i], -1.0, 1.0)";
  bool isPosition = kind.starts_with("arg");
  if (isPosition || kind == "max" || kind == "min")
    columns = "j"; // which is never empty
  std::vector<std::string> to = {"i"}, dims = {"M"};
  if (hasBatch)
    to.insert(to.begin(), "b"), dims.insert(dims.begin(), "B");
  line("y" + list(to) + " = " + kind + "(" + term + " for " + columns + ")" +
       (isPosition ? "" : pick({"", "", " + r[i]", "*2"})));
  output("y", isPosition ? "i64" : "f32", dims);
  if (isPosition && random.chance(40)) { // what k-means adds up
    line("h[y" + list(to) + "] += " + pick({"1", "r[i]"}) + " for " + (hasBatch ? "b, i" : "i"));
    output("h", "f32", {"N"});
  }
}

void TiledGenerator::convolution() {
  std::string type = pick({"f32", "f32", "f16", "bf16", "f8e4m3", "i8"}),
              result = isWhole(type) ? "i32" : "f32";
  int64_t taps = 1 + random.below(5), stride = 1 + random.below(3), apart = 1 + random.below(2),
          before = random.below(taps);
  int64_t reach = apart * (taps - 1) + 1;
  program.sizes = {
      {"N", 1 + random.below(2)}, {"C", 1 + random.below(34)}, {"O", 1 + random.below(70)}};
  for (const char *name : {"H", "W"})
    program.sizes.push_back({name, std::max<int64_t>(reach, 3 + random.below(20))});
  bool isLast = random.chance(30); // channels innermost
  std::string tap = std::to_string(taps);
  if (isLast)
    input("x", type, {"N", "H", "W", "C"}, -2, 2), input("w", type, {tap, tap, "C", "O"}, -2, 2);
  else
    input("x", type, {"N", "C", "H", "W"}, -2, 2), input("w", type, {"O", "C", tap, tap}, -2, 2);
  auto place = [&](const char *point, const char *tap) {
    return std::to_string(stride) + "*" + point + " + " + std::to_string(apart) + "*" + tap +
           " - " + std::to_string(before);
  };
  std::string fill = isWhole(type) ? pick({"0", "1"}) : pick({"0", "0", "0", "1", "-inf", "nan"});
  std::string pixel = place("p", "r") + ", " + place("q", "s");
  std::string image = isLast ? "x[n, " + pixel + ", c" : "x[n, c, " + pixel;
  std::string sum = "sum(" + image + (before ? ", fill=" + fill : "") + "]*" +
                    (isLast ? "w[r, s, c, o]" : "w[o, c, r, s]") + " for c, r in " + tap +
                    ", s in " + tap + ")";
  // As many points as do not hang over the far edge.
  int64_t points[2];
  for (int dim : {0, 1})
    points[dim] = (sizeOf(dim ? "W" : "H") + before - reach) / stride + 1;
  std::vector<std::string> dims = {"N", "O", std::to_string(points[0]), std::to_string(points[1])};
  if (!before && stride == 1 && apart == 1)
    dims[2] = "H - " + std::to_string(taps - 1), dims[3] = "W - " + std::to_string(taps - 1);
  GeneratedTensor made{"y", result, {sizeOf("N"), sizeOf("O"), points[0], points[1]}};
  if (random.chance(30)) {
    line("t[n, o, p in " + dims[2] + ", q in " + dims[3] + "] = " + sum);
    line("y[n, o] = " + (isWhole(type) ? "sum" : pick({"sum", "max"})) +
         "(t[n, o, p, q] for p, q)");
    output("y", result, {"N", "O"});
    return;
  }
  line("y[n, o, p, q] = " + (random.chance(40) ? "maximum(" + sum + ", 0)" : sum));
  program.outputs.push_back(made);
  results = "y: " + result + list(dims);
}

/// Powers of two of whole distances to a running maximum.
void TiledGenerator::tileLoop() {
  std::string type = pick({"f32", "bf16", "f16"});
  size("S", 200), size("N", 257), size("D", 136);
  if (random.chance(75)) // lines are whole vectors
    program.sizes[2].second = 8 * (1 + random.below(random.chance(20) ? 34 : 12));
  bool isSquare = random.chance(50);
  if (isSquare)
    program.sizes[1].second = sizeOf("S");
  program.sizes.push_back({"H", 1 + random.below(3)});
  for (const char *name : {"q", "k", "v"})
    input(name, type, {"H", name[0] == 'q' ? "S" : "N", "D"}, -1, 1);
  bool isNatural = random.chance(75); // powers of e are 0 or 1 there, but for a part of 2^-12
  std::string score = "clamp(floor(sum(q[h, i, e]*k[h, j, e] for e)), min=-4, max=4)",
              power = isNatural ? "exp" : "exp2";
  if (isNatural)
    score = "1000*" + score;
  if (random.chance(70))
    score = "where(" +
            pick({"j <= i", "j <= i + 5", "j <= i and j > i - 40", "j > i + 20", "j > i - 3",
                  "i % 4 != 1", "(i + j) % 3 != 0"}) +
            ", " + score + ", " + pick({"-inf", "-1e9", "-1e20", "-1e30", "-3e38"}) + ")";
  std::string rounded = type == "f32" ? "p" : type + "(p)";
  body = "  parallel h in H, i in S, d in D {\n    state m = " + pick({"-1e30", "-3.4e38"}) +
         "\n    state l = 0.0\n    state acc = 0.0\n    for j in tiles(N) {\n      s = " + score +
         "\n      m2 = maximum(m, max(s for j))\n      p = " + power +
         "(s - m2)\n      r = " + power +
         "(m - m2)\n      l = l*r + sum(p for j)\n"
         "      acc = acc*r + sum(" +
         rounded + "*v[h, j, d] for j)\n      m = m2\n    }\n    y[h, i, d] = acc + l\n  }\n";
  output("y", "f32", {"H", "S", "D"});
  if (isNatural)
    program.outputs.back().tolerance = static_cast<double>(sizeOf("N")) / 1024;
}

/// The same where few rows share keys and values, as at a step of decoding: contiguous ones or
/// pages that a table names, all of them or those that lengths, windows and other masks leave.
void TiledGenerator::fewRows() {
  std::string type = pick({"bf16", "bf16", "f16", "f16", "f32"});
  bool hasPages = random.chance(40), isNatural = random.chance(40);
  int64_t page = hasPages ? random.pick(std::vector<int64_t>{1, 3, 16, 32}) : 1;
  int64_t keys = std::max<int64_t>(1, random.below(random.chance(30) ? 1500 : 140) / page);
  program.sizes = {{"B", 1 + random.below(3)},
                   {"G", 1 + random.below(2)},
                   {"R", 1 + random.below(random.chance(20) ? 40 : 9)},
                   {"D", random.chance(80) ? 8 * (1 + random.below(18)) : 1 + random.below(90)}};
  program.sizes.push_back({hasPages ? "N" : "T", keys});
  std::vector<std::string> dims = {"B", "T", "G", "D"};
  std::string at = "b, t, g", all = "T";
  if (hasPages) {
    program.sizes.push_back({"P", 1 + random.below(9)});
    dims = {"P", std::to_string(page), "G", "D"};
    std::string length = std::to_string(page);
    at = "to[b, t // " + length + "], t % " + length + ", g", all = "N*" + length;
    input("to", pick({"i32", "i64"}), {"B", "N"}, 0, sizeOf("P") - 1);
  }
  input("q", type, {"B", "G", "R", "D"}, -1, 1);
  input("k", type, dims, -1, 1), input("v", type, dims, -1, 1);
  input("n", pick({"i32", "i32", "i64"}), {"B"}, 0, keys * page + 2);
  std::string score = "clamp(floor(sum(q[b, g, r, e]*k[" + at + ", e] for e)), min=-4, max=4)",
              power = isNatural ? "exp" : "exp2";
  if (isNatural)
    score = "1000*" + score;
  if (random.chance(80))
    score = "where(" +
            pick({"t < n[b]", "t < n[b]", "t >= " + all + " - 40", "t < n[b] and t >= 5",
                  "t >= n[b] - 20 and t < n[b]", "t <= r + 7", "(t + r) % 3 != 0"}) +
            ", " + score + ", " + pick({"-inf", "-inf", "-1e9", "-1e30"}) + ")";
  body =
      "  parallel b in B, g in G, r in R, d in D {\n    state m = " + pick({"-1e30", "-3.4e38"}) +
      "\n    state l = " + pick({"0.0", "1.0"}) + "\n    state acc = 0.0\n    for t in tiles(" +
      all + ") {\n      s = " + score +
      "\n      m2 = maximum(m, max(s for t))\n      p = " + power + "(s - m2)\n      f = " + power +
      "(m - m2)\n      l = l*f + sum(p for t)\n" + "      acc = acc*f + sum(" +
      (type == "f32" ? "p" : type + "(p)") + "*v[" + at +
      ", d] for t)\n      m = m2\n    }\n    y[b, g, r, d] = " +
      pick({"acc + l", "acc + l", "acc*2 + r"}) + "\n  }\n";
  output("y", "f32", {"B", "G", "R", "D"});
  if (isNatural)
    program.outputs.back().tolerance = static_cast<double>(keys * page) / 1024;
}

/// Reductions over the columns of a row, of which later ones use earlier ones: powers of two of
/// whole distances from the largest score, from the larger of it and a sink, or from a number that
/// is given, masked by indices and by data, over all columns or a range that data gives.
void TiledGenerator::chain() {
  std::string type = pick({"bf16", "f16"});
  size("S", 200), size("N", 257), size("D", 136);
  program.sizes[2].second = 8 * (1 + random.below(12));
  program.sizes.push_back({"H", 1 + random.below(3)});
  program.sizes.push_back({"R", 1 + random.below(3)});
  input("q", type, {"H", "S", "R", "D"}, -1, 1);
  input("k", type, {"H", "N", "D"}, -1, 1), input("v", type, {"H", "N", "D"}, -1, 1);
  input("a", "i32", {"S"}, -2, 4), input("c", "i32", {"N"}, -2, 4),
      input("n", "i32", {"H"}, 0, 300);
  input("z", "i32", {"H"}, -4, 4);
  std::string j = "j";
  if (random.chance(40)) {
    auto columns = static_cast<double>(sizeOf("N"));
    input("from", "i32", {"S"}, 0, columns), input("to", "i32", {"H"}, 0, columns);
    j += pick({" in 0:to[h]", " in from[i]:N", " in from[i]:to[h]", " in 0:minimum(i + 1, N)",
               " in from[i]:minimum(i + 1, N)", " in to[h]//2:to[h]", " in clamp(n[h], 0, N):N"});
  }
  std::string score = "clamp(floor(sum(q[h, i, r, e]*k[h, j, e] for e)), min=-4, max=4)";
  if (random.chance(80))
    score = "where(" +
            pick({"j <= i", "j <= i + N - S", "j > i - 40 and j <= i + 3", "a[i] == c[j]",
                  "a[i] >= c[j] and j <= i", "j < n[h]", "j >= a[i] and j < n[h]",
                  "not (a[i] != c[j]) or j < 3", "(i + j) % 3 != 0 and a[i] <= c[j]"}) +
            ", " + score + ", -inf)";
  line("s[h, i, r, j] = " + score);
  unsigned kind = random.below(3); // of what distances are from
  std::string from = kind == 2 ? "z[h]" : "m[h, i, r]";
  if (kind < 2)
    line("m[h, i, r] = " + std::string(kind ? "maximum(max(s[h, i, r, j] for " + j + "), z[h])"
                                            : "max(s[h, i, r, j] for " + j + ")"));
  line("p[h, i, r, j] = exp2(s[h, i, r, j] - " + from + ")");
  std::string sum = "sum(" + type + "(p[h, i, r, j])*v[h, j, d] for " + j + ")";
  bool hasTotal = random.chance(60);
  if (hasTotal)
    line("l[h, i, r] = sum(p[h, i, r, j] for " + j + ")" +
         std::string(kind == 1 ? " + exp2(z[h] - m[h, i, r])" : ""));
  line("y[h, i, r, d] = " + sum + (hasTotal ? " + l[h, i, r]" : ""));
  output("y", "f32", {"H", "S", "R", "D"});
  if (hasTotal && random.chance(40)) {
    line("t[h, i, r] = l[h, i, r]");
    output("t", "f32", {"H", "S", "R"});
  }
}

/// What several nests read of a row or a column.
void TiledGenerator::rows() {
  std::string type = pick({"f32", "f32", "f16", "bf16", "i32", "i16", "i8", "bool", "f64", "i64"});
  std::string result = type == "f64" || type == "i64"    ? type
                       : isWhole(type) || type == "bool" ? "i32"
                                                         : "f32";
  size("M", 66), size("N", 2052);
  bool isColumn = random.chance(40);
  std::vector<std::string> dims = {"M", "N"}, at = {"i", "j"};
  if (isColumn)
    std::swap(dims[0], dims[1]), std::swap(at[0], at[1]);
  input("x", type, dims, type == "bool" ? 0 : -4, type == "bool" ? 1 : 4);
  if (type[0] == 'f' && random.chance(25))
    program.inputs.back().special = true, program.inputs.back().specialEvery = sizeOf("N") + 1;
  std::string x = "x" + list(at);
  if (type == "bool")
    x = "where(" + x + ", 3, -2)";
  line("a[i] = " + pick({"max", "min", "sum"}) + "(" + x + " for j)");
  line("c[i] = " + pick({"sum", "max"}) + "(" +
       pick({"abs(" + x + " - a[i])", x + " + a[i]", "maximum(" + x + ", a[i])"}) + " for j)");
  bool isTurned = random.chance(25);
  line("y" + (isTurned ? list({at[1], at[0]}) : list(at)) + " = " + x + "*2 - a[i] + c[i]");
  output("y", result, isTurned ? std::vector<std::string>{dims[1], dims[0]} : dims);
  if (random.chance(40)) {
    line("e[i] = " + pick({"argmax", "argmin"}) + "(" + x + " for j)");
    output("e", "i64", {"M"});
  }
}

void TiledGenerator::scanOrSort() {
  std::string type = pick({"f32", "f32", "f16", "bf16", "i32", "i8", "f64", "i64"});
  std::string result = type == "f64" || type == "i64" ? type : isWhole(type) ? "i32" : "f32";
  if (random.chance(6))
    return longSort(type, result);
  size("M", 36), size("N", 2052);
  bool isColumn = random.chance(40), isSort = random.chance(40);
  std::vector<std::string> dims = {"M", "N"}, at = {"i", "j"};
  if (isColumn)
    std::swap(dims[0], dims[1]), std::swap(at[0], at[1]);
  input("x", type, dims, -4, 4);
  if (type[0] == 'f' && random.chance(25))
    program.inputs.back().special = true, program.inputs.back().specialEvery = sizeOf("N") + 1;
  std::string x = "x" + list(at);
  if (isSort) {
    line("y" + list(at) + " = sort(" + x + ", over=j" + pick({"", ", descending=true"}) + ")");
    line("e" + list(at) + " = argsort(" + x + ", over=j" + pick({"", ", descending=true"}) + ")");
    output("y", result, dims), output("e", "i64", dims);
    return;
  }
  line("y" + list(at) + " = " + pick({"cumsum", "cumsum", "cummax", "cummin"}) + "(" + x +
       ", over=j" + pick({"", ", reverse=true"}) + ")" + pick({"", " + 1"}));
  output("y", result, dims);
}

/// Rows that registers have no room for, and the first of them.
void TiledGenerator::longSort(const std::string &type, const std::string &result) {
  static const std::vector<int64_t> lengths = {4097, 4099, 6144, 8193, 12289, 16384, 16411, 20480};
  program.sizes = {{"M", 1 + random.below(2)}, {"N", random.pick(lengths)}};
  input("x", type, {"M", "N"}, -4, 4);
  if (!isWhole(type) && random.chance(50))
    program.inputs.back().special = true;
  std::string order = pick({"", ", descending=true"});
  std::string value = pick({"x[i, j]", "x[i, j]", isWhole(type) ? "x[i, j]*3" : "floor(x[i, j])",
                            "x[i, j]*2 + max(x[i, k] for k)"});
  if (random.chance(40)) {
    std::string k = std::to_string(33 + random.below(200));
    line("y[i, r], e[i, r] = topk(" + value + " for j, k=" + k + ")");
    output("y", result, {"M", k}), output("e", "i64", {"M", k});
    return;
  }
  line("e[i, j] = argsort(" + value + ", over=j" + order + ")");
  output("e", "i64", {"M", "N"});
  if (random.chance(50)) {
    line("y[i, j] = sort(" + value + ", over=j" + order + ")");
    output("y", result, {"M", "N"});
  }
}

GeneratedProgram TiledGenerator::generate() {
  static const std::vector<std::string> tiles = {"",
                                                 "",
                                                 "64x64",
                                                 "128x32",
                                                 "32x128",
                                                 "128x16",
                                                 "64x64/2",
                                                 "64x128-packed",
                                                 "128x128-packed",
                                                 "64x256-packed",
                                                 "64x128-packed/2",
                                                 "128x128-shifted",
                                                 "64x128-warpgroups",
                                                 "128x128-warpgroups",
                                                 "128x64-warpgroups",
                                                 "128x192-warpgroups",
                                                 "128x192-tail",
                                                 "64x128-tail",
                                                 "64x64x64",
                                                 "128x128x64"};
  program.tile = random.pick(tiles);
  program.isShifted = random.chance(10);
  unsigned kind = random.below(22);
  if (kind < 5)
    random.chance(20) ? scaledProduct() : product();
  else if (kind < 7)
    convolution();
  else if (kind < 10)
    tileLoop();
  else if (kind < 12)
    rows();
  else if (kind < 14)
    random.chance(50) ? skinnyProduct() : productReduction();
  else if (kind < 17)
    fewRows();
  else if (kind < 18)
    chain();
  else if (kind < 19)
    sharedValues();
  else if (kind < 20)
    scanOrSort();
  else
    random.chance(60) ? fewTargets() : dataRanges();
  program.text = "kernel entry(" + parameters + ") -> (" + results + ") {\n" + body + "}\n";
  return program;
}

GeneratedProgram tegula::fuzz::generateTiledProgram(uint64_t seed) {
  Random random(seed);
  return TiledGenerator(random).generate();
}
