//===- GenerateAccess.cpp - Random subscripts, ranges and conditions over data --------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs of which only the places matter: integers of every type, among them the least and the
// largest, are added, multiplied, converted and compared, and what comes of it is a subscript, a
// bound of a range, a filter or a scalar. Sums are of small integers, hence exact.
//
//===----------------------------------------------------------------------===//
#include "GenerateImpl.h"
#include <algorithm>
#include <tuple>

using namespace tegula::fuzz;

namespace {

class AccessGenerator {
public:
  explicit AccessGenerator(Random &random) : random(random) {}
  GeneratedProgram generate();

private:
  std::string number(int64_t value);
  /// A size, or now and then an expression of sizes.
  std::string size();
  std::string leaf(unsigned depth);
  std::string integer(unsigned depth);
  std::string condition(unsigned depth);
  /// A condition that says, or seems to say, that `place` is inside `dim`.
  std::string protection(const std::string &place, const std::string &dim);
  /// The place, or one near it.
  std::string near(const std::string &place);
  /// A range of a few elements.
  std::string range(const std::string &index);
  std::string element(const std::string &place);
  void statement();
  /// Writes where data say: last of all, larger and smaller ones, sums; into outputs and inouts.
  void scatter();
  /// The same out of a loop over tiles.
  void scatterInTiles();
  /// Through data that the program says are distinct.
  void scatterDistinct();
  /// A temporary, or an output, whose dim is computed in floats.
  void floatSizes();
  /// Through kernels of the library, whose runs of dims may broadcast.
  void library();
  /// Places out of sequential loops, over tiles too, of sorts and of exact quotients.
  void loops();
  void sorted();
  /// Quotients and remainders by an index that a filter keeps from being zero, or does not.
  void divisors();
  /// Indices times large numbers and products of sizes.
  void far();
  void block(const std::string &y);
  void output(const std::string &name, const std::string &type,
              std::vector<std::pair<std::string, int64_t>> dims);
  void line(const std::string &text) { body += "  " + text + "\n"; }
  std::string fresh(const char *prefix) { return prefix + std::to_string(counter++); }

  Random &random;
  GeneratedProgram program;
  std::string body, results;
  std::string opening; ///< the kernel's first lines
  std::string wheres;  ///< sizes that follow from others
  bool hasInout = false;
  int64_t n = 0, m = 0, k = 0;
  std::vector<std::string> names; ///< integers by name: of the block around
  bool takesPoint = true;         ///< whether i is a point
  unsigned counter = 0;
};

} // namespace

std::string AccessGenerator::number(int64_t value) {
  if (value == INT64_MIN)
    return "(-9223372036854775807 - 1)";
  return value < 0 ? "(" + std::to_string(value) + ")" : std::to_string(value);
}

std::string AccessGenerator::size() {
  static const std::vector<std::string> sizes = {"N",       "M",       "K",   "N",  "M",
                                                 "(N + 1)", "(N - 1)", "2*M", "N*K"};
  return random.pick(sizes);
}

std::string AccessGenerator::leaf(unsigned depth) {
  if (!names.empty() && random.chance(40))
    return random.pick(names);
  if (!takesPoint) {
    static const std::vector<std::string> scalars = {"p", "q", "a[0, fill=3]", "v[0, fill=-1]",
                                                     "2"};
    return random.pick(scalars);
  }
  static const std::vector<std::string> leaves = {"a[i]", "a[i]", "b[i]", "v[i]", "w[i]",
                                                  "u[i]", "s[i]", "h[i]", "i",    "p",
                                                  "q",    "a[i]", "v[i]"};
  if (random.chance(10)) {
    static const std::vector<std::string> naturals = {"uh[i]", "uw[i]", "uw[i]", "i64(ul[i])",
                                                      "ul[i]"};
    return random.pick(naturals);
  }
  if (depth && random.chance(8)) {
    bool isMax = random.chance(50);
    std::string over = random.chance(50) ? "N" : range("");
    return std::string(isMax ? "argmax" : "argmin") + "(x[e, fill=0] for e in " + over +
           (random.chance(60) ? " if x[e, fill=0] > " + std::to_string(random.below(9)) : "") + ")";
  }
  if (random.chance(6))
    return "count(a[e] > 0 for e in M)";
  if (depth && random.chance(5)) { // of nothing, perhaps
    static const std::vector<std::string> items = {"e in M if a[e] > 0", "e in M if h[e] == 1",
                                                   "e in M if v[e] < -1", "e in 0:u[i] % 3"};
    return std::string(random.chance(50) ? "max" : "min") + "(s[e, fill=1] for " +
           random.pick(items) + ")";
  }
  return random.pick(leaves);
}

std::string AccessGenerator::integer(unsigned depth) {
  if (depth == 0)
    return leaf(depth);
  auto inner = [&] { return integer(depth - 1); };
  auto constant = [&] {
    static const std::vector<int64_t> values = {
        1, 1, 1, 2, 2, 3, 4, 8, 16, -1, -2, 536870912, 1073741824, 2147483647, -2147483648, 32};
    return number(random.pick(values));
  };
  switch (random.below(25)) {
  case 20: {
    static const std::vector<std::string> operators = {" & ", " | ", " ^ "};
    return "(" + inner() + random.pick(operators) + (random.chance(60) ? constant() : inner()) +
           ")";
  }
  case 21: {
    static const std::vector<std::string> counts = {"1",  "2",  "3",  "31", "32",  "60",
                                                    "61", "62", "63", "64", "(-1)"};
    return "(" + inner() + (random.chance(50) ? " << " : " >> ") +
           (random.chance(80) ? random.pick(counts) : inner()) + ")";
  }
  case 22:
    return "(~" + inner() + ")";
  case 23: {
    static const std::vector<std::string> powers = {"2", "2", "3", "4", "63"};
    return "(" + inner() + "**" + (random.chance(80) ? random.pick(powers) : inner()) + ")";
  }
  case 0:
  case 1:
  case 2:
    return "(" + inner() + " + " + constant() + ")";
  case 3:
    return "(" + inner() + " - " + constant() + ")";
  case 4:
    return "(" + inner() + " + " + inner() + ")";
  case 5:
    return "(" + inner() + " - " + inner() + ")";
  case 6:
  case 7:
    return "(" + inner() + "*" + constant() + ")";
  case 8:
    return "(" + inner() + "*" + size() + ")";
  case 9:
    return "(" + inner() + " + " + size() + ")";
  case 10:
    return "(-" + inner() + ")";
  case 11:
    return "(" + inner() + " % " +
           (random.chance(60)   ? "N"
            : random.chance(50) ? constant()
                                : inner()) +
           ")";
  case 12:
    return "(" + inner() + " // " + (random.chance(70) ? constant() : inner()) + ")";
  case 13:
    return "clamp(" + inner() + ", min=" + (random.chance(70) ? "0" : inner()) +
           ", max=" + (random.chance(60) ? "N - 1" : inner()) + ")";
  case 14:
    return (random.chance(50) ? "minimum(" : "maximum(") + inner() + ", " + inner() + ")";
  case 15: {
    static const std::vector<std::string> types = {"i32", "i64", "i16", "i8",  "u8",
                                                   "i4",  "u4",  "u16", "u32", "i64(u64"};
    const std::string &type = random.pick(types);
    return type + "(" + inner() + (type.find('(') == std::string::npos ? ")" : "))");
  }
  case 16:
    return "where(" + condition(depth - 1) + ", " + inner() + ", " + inner() + ")";
  case 17:
    return "abs(" + inner() + ")";
  case 18:
    return "(" + inner() + "*" + inner() + ")";
  default:
    return leaf(depth);
  }
}

std::string AccessGenerator::near(const std::string &place) {
  switch (random.below(8)) {
  case 0:
    return place + " + 1";
  case 1:
    return place + " - 1";
  case 2:
    return "2*" + place;
  case 3:
    return "(" + place + ")//2";
  default:
    return place;
  }
}

std::string AccessGenerator::protection(const std::string &place, const std::string &dim) {
  std::string at = "(" + near(place) + ")";
  switch (random.below(9)) {
  case 0:
    return "0 <= " + at + " < " + dim;
  case 1:
    return at + " >= 0 and " + at + " + 1 <= " + dim;
  case 2:
    return "not (" + at + " < 0 or " + at + " >= " + dim + ")";
  case 3:
    return at + " > -1 and " + dim + " - " + at + " > 0";
  case 4:
    return "2*" + at + " < 2*" + dim + " and -" + at + " <= 0";
  case 5:
    return at + " == " + std::to_string(random.below(4));
  case 6:
    return at + " < " + dim;
  default:
    return at + " >= 0 and " + at + " < " + dim;
  }
}

std::string AccessGenerator::condition(unsigned depth) {
  static const std::vector<std::string> compares = {"<", "<=", ">", ">=", "==", "!="};
  std::string one = integer(depth) + " " + random.pick(compares) + " " +
                    (random.chance(50) ? size() : integer(depth ? depth - 1 : 0));
  if (random.chance(20))
    return "(" + one + (random.chance(50) ? " and " : " or ") + integer(0) + " < " + size() + ")";
  return "(" + one + ")";
}

std::string AccessGenerator::range(const std::string &) {
  static const std::vector<std::string> starts = {"0", "1", "2", "N", "K", "(M - 2)", "3"};
  static const std::vector<std::string> lengths = {"0", "1", "3", "K", "2"};
  if (random.chance(40)) {
    std::string low = random.pick(starts);
    return low + ":" + low + " + " + random.pick(lengths);
  }
  if (random.chance(10))
    return "3:2";
  std::string at = leaf(0);
  std::string low = "clamp(" + at + ", min=-2, max=7)";
  return random.chance(50) ? low + ":" + low + " + " + std::to_string(random.below(4))
                           : at + " - 1:" + at + " + " + std::to_string(random.below(3));
}

std::string AccessGenerator::element(const std::string &place) {
  switch (random.below(4)) {
  case 0:
    return "x[" + place + ", fill=7]";
  case 1:
    return "z[" + place + ", " + (k > 0 ? "0" : integer(1)) + "]";
  default:
    return "x[" + place + "]";
  }
}

void AccessGenerator::output(const std::string &name, const std::string &type,
                             std::vector<std::pair<std::string, int64_t>> dims) {
  GeneratedTensor tensor;
  tensor.name = name;
  tensor.type = type;
  std::string shape;
  for (const auto &[text, value] : dims) {
    shape += (shape.empty() ? "" : ", ") + text;
    tensor.shape.push_back(value);
  }
  results +=
      (results.empty() ? "" : ", ") + name + ": " + type + (dims.empty() ? "" : "[" + shape + "]");
  program.outputs.push_back(std::move(tensor));
}

/// A block whose points may meet at elements of y by two writes, alike or not: the checker says
/// which of them are.
void AccessGenerator::block(const std::string &y) {
  static const std::vector<std::string> combines = {"+=", "+=", "max=", "="};
  static const std::vector<std::string> values = {"2.0", "2.0", "3.0", "i"};
  output(y, "f32", {{"N", n}});
  line(y + "[e] = 1.0");
  line("parallel i in M {");
  bool inLoop = random.chance(25);
  std::string first = near(integer(1)), combine = random.pick(combines),
              value = random.pick(values);
  std::string indent = inLoop ? "    " : "  ";
  auto write = [&](const std::string &place) {
    bool isLoop = inLoop && random.chance(30);
    line(indent + y + "[" + place + (isLoop ? " + t" : "") + "] " + combine + " " +
         (isLoop ? "t" : value));
  };
  if (inLoop)
    line("  for t in 3 {");
  write(first);
  if (random.chance(15))
    combine = random.pick(combines);
  if (random.chance(15))
    value = random.pick(values);
  write(random.chance(40) ? first : near(integer(1)));
  if (inLoop)
    line("  }");
  line("}");
}

void AccessGenerator::statement() {
  if (random.chance(25)) {
    switch (random.below(10)) {
    case 8:
    case 9:
      return far();
    case 6:
      return loops();
    case 7:
      return sorted();
    case 0:
      return scatterInTiles();
    case 1:
      return scatterDistinct();
    case 2:
      return floatSizes();
    case 3:
      return library();
    case 4:
      return divisors();
    default:
      return scatter();
    }
  }
  std::string y = fresh("y");
  std::string place = integer(1 + random.below(3));
  switch (random.below(15)) {
  case 13:
    return block(y);
  case 0:
  case 1:
  case 2: {
    output(y, "f32", {{"M", m}});
    line(y + "[i] = where(" + protection(place, "N") + ", " + element(near(place)) + ", -1.0)");
    return;
  }
  case 3:
    output(y, "f32", {{"M", m}});
    line(y + "[i] = " + element(place));
    return;
  case 4: {
    output(y, "f32", {{"M", m}});
    std::string filter = random.chance(50) ? " if " + protection("e", "N") : "";
    if (random.chance(30)) // the range stands where the index subscripts
      line(y + "[i] = sum(x[e in " + range("e") + "] for e" + filter + ")");
    else
      line(y + "[i] = sum(" + element("e") + " for e in " + range("e") + filter + ")");
    return;
  }
  case 5:
    output(y, "f32", {{"M", m}});
    line(y + "[i] = sum(x[e] for e if e >= " + place + " and e + 1 < " + integer(1) + ")");
    return;
  case 6:
  case 7:
    output(y, "f32", {{"N", n}});
    if (random.chance(25)) { // one element for all points
      takesPoint = false;
      place = integer(1);
      takesPoint = true;
    }
    line(y + "[" + near(place) + "] += 1.0 for i in M" + (random.chance(30) ? ", f in 9" : "") +
         (random.chance(70) ? " if " + protection(place, "N") : ""));
    return;
  case 8: {
    output(y, "f32", {{"M", m}});
    line("parallel i in M {");
    std::string name = fresh("k");
    line("  " + name + " = " + place);
    names.push_back(name);
    line("  " + y + "[i] = where(" + protection(name, "N") + ", x[" + near(name) + "], -1.0)");
    names.pop_back();
    line("}");
    return;
  }
  case 9: {
    std::string g = fresh("g"), low = std::to_string(random.below(3));
    output(y, "f32", {{"2", 2}});
    output(g, "i64", {{"2", 2}});
    line(y + "[r], " + g + "[r] = topk(x[e] for e in " + low + ":N" +
         (random.chance(30) ? " if x[e] > 2" : "") + ", k=2)");
    std::string again = fresh("y");
    output(again, "f32", {{"2", 2}});
    line(again + "[r] = x[" + g + "[r]" + (random.chance(30) ? " + 1" : "") + "]");
    return;
  }
  case 10: // the outer range may be empty, and what stands in it leaves its tensor
    output(y, "f32", {{"M", m}});
    line(y + "[i] = sum(x[f, fill=0]*sum(" +
         element(std::string("e + ") + (random.chance(50) ? "1000000" : "N") + "") +
         " for e in 3 if e >= " + (random.chance(50) ? "0" : "f") + ") for f in " + range("f") +
         ")");
    return;
  case 11: {
    std::string t = fresh("t");
    static const std::vector<std::string> types = {"", ": i32", ": i16", ": u8", ": i64"};
    line(t + random.pick(types) + "[i in M] = " + integer(2));
    output(y, "f32", {{"M", m}});
    line(y + "[i] = where(" + protection(t + "[i]", "N") + ", x[" + near(t + "[i]") + "], -1.0)");
    return;
  }
  case 12: { // elements of what may be computed where it is read
    std::string t = fresh("t");
    line(t + "[f in N] = x[f" + (random.chance(60) ? "//2" : "") + "]*2");
    output(y, "f32", {{"M", m}});
    line(y + "[i] = " + t + "[" + (random.chance(60) ? "2*" : "") + place + ", fill=3]");
    return;
  }
  default:
    output(y, "i64", {{"M", m}});
    line(y + "[i] = i64(" + place + ")");
    return;
  }
}

void AccessGenerator::scatter() {
  static const std::vector<std::string> combines = {"=", "=", "max=", "min=", "+="};
  bool intoInout = random.chance(30);
  std::string y = intoInout ? "t" : fresh("y");
  if (intoInout) {
    hasInout = true;
  } else {
    output(y, "f32", {{"N", n}});
    line(y + "[f] = " + (random.chance(50) ? "0.0" : "x[f]"));
  }
  takesPoint = !random.chance(20);
  std::string place = integer(1 + random.below(2));
  takesPoint = true;
  std::string at = near(place), combine = random.pick(combines);
  std::string value = random.chance(50) ? " i + 1.0" : " 2.0";
  if (combine == "=" && random.chance(50)) // of the place alone, so that points that meet are alike
    value = random.chance(50) ? " x[" + at + "] + 1.0" : " " + y + "[" + at + "] + 2.0";
  line(y + "[" + at + "] " + combine + value + " for i in M" +
       (random.chance(20) ? ", f in 3" : "") +
       (random.chance(60) ? " if " + protection(place, "N") : ""));
}

void AccessGenerator::scatterInTiles() {
  std::string y = fresh("y");
  output(y, "f32", {{"N", n}});
  static const std::vector<std::string> combines = {"+=", "+=", "max=", "min="};
  std::string combine = random.pick(combines);
  line(y + "[f] = 0.0");
  line("parallel i in M {");
  line("  for e in tiles(" + std::string(random.chance(50) ? "N" : "K") + ") {");
  names.push_back("e");
  std::string place = integer(1 + random.below(2));
  if (random.chance(50))
    line("    " + y + "[" + near(place) + "] " + combine + " where(" + protection(place, "N") +
         (combine == "+=" ? ", x[e, fill=0], 0.0)"
                          : ", 1.0, 0.0)")); // a sum adds what is the tile's
  else
    line("    " + y + "[" + near("e") + (random.chance(50) ? " + " + place : "") + "] " + combine +
         " 1.0");
  names.pop_back();
  line("  }");
  line("}");
}

void AccessGenerator::scatterDistinct() {
  std::string at = fresh("d"), y = fresh("y");
  static const std::vector<std::string> places = {"i",     "M - 1 - i",      "i + 1", "2*i",
                                                  "i - 2", "i + 2147483647", "N - i"};
  line(at + "[i in M] = " + random.pick(places));
  opening += "  distinct " + at + "\n";
  output(y, "f32", {{"N", n}});
  line(y + "[f] = 0.0");
  line(y + "[" + at + "[i]" +
       (random.chance(50)   ? ""
        : random.chance(50) ? " + 1"
                            : " - " + size()) +
       "] = i + 1.0 for i in M" + (random.chance(50) ? " if " + protection(at + "[i]", "N") : ""));
}

void AccessGenerator::floatSizes() {
  // Two factors of which six digits are the same.
  static const std::vector<std::pair<std::string, double>> factors = {
      {"0.5", 0.5},   {"0.49999999", 0.49999999}, {"1.5", 1.5},   {"1.49999999", 1.49999999},
      {"0.25", 0.25}, {"0.24999999", 0.24999999}, {"1.0", 1.0},   {"1.00000001", 1.00000001},
      {"2.0", 2.0},   {"1.99999999", 1.99999999}, {"1.25", 1.25}, {"0.75", 0.75}};
  auto [one, first] = random.pick(factors);
  auto [other, second] = random.pick(factors);
  if (random.chance(60)) { // its neighbour
    size_t at = 2 * random.below(5);
    std::tie(one, first) = factors[at + random.below(2)];
    std::tie(other, second) = factors[at + random.below(2)];
  }
  std::string c = "C" + std::to_string(counter), d = "D" + std::to_string(counter), t = fresh("t"),
              y = fresh("y");
  wheres += (wheres.empty() ? " where " : ", ") + c + " = int(" + one + "*N), " + d + " = int(" +
            other + "*N)";
  int64_t extent = static_cast<int64_t>(second * static_cast<double>(n));
  line(t + "[f in " + c + "] = " + (random.chance(30) ? "x[f]" : "f"));
  switch (random.below(4)) {
  case 0:
    output(y, "f32", {{d, extent}});
    line(y + "[f] = " + t + "[f" + (random.chance(30) ? " + 1" : "") + "]");
    return;
  case 1:
    output(y, "f32", {{"M", m}});
    line(y + "[i] = where(0 <= a[i] < " + d + ", " + t + "[a[i]], -1.0)");
    return;
  case 2:
    output(y, "f32", {{"M", m}});
    line(y + "[i] = sum(" + t + "[e] for e in " + d + ")");
    return;
  default:
    output(y, "f32", {{"M", m}});
    line(y + "[i] = " + t + "[clamp(" + integer(1) + ", min=0, max=" + d + " - 1)]");
    return;
  }
}

void AccessGenerator::library() {
  std::string y = fresh("y"), t = fresh("t"), r = fresh("t");
  switch (random.below(4)) {
  case 0:
    output(y, "f32", {{"M", m}, {"K", k}});
    line(t + "[i in M] = " + integer(random.below(2)));
    line(r + " = embedding(" + t + ", z)");
    line(y + "[i, e] = " + r + "[i, e]");
    return;
  case 1:
    output(y, "f32", {{"N", n}});
    line(t + "[i in 1, e in K] = 0.0");
    line(y + " = pairwise_distance(" + t + ", z)");
    program.outputs.back().tolerance = 1e-3;
    return;
  case 2:
    output(y, "f32", {{"N", n}, {"N", n}});
    line(t + "[i in 1, f in N, e in K] = z[f, e]");
    line(r + "[i in 1, e in K, f in N] = z[f, e]*2");
    line(fresh("t") + " = matmul(" + t + ", " + r + ")");
    line(y + "[f, e] = t" + std::to_string(counter - 1) + "[0, f, e]");
    return;
  default:
    output(y, "f32", {{"2", 2}, {"N", n}, {"N", n}});
    line(t + "[i in 1, f in N, e in K] = z[f, e]");
    line(r + "[i in 2, e in K, f in N] = z[f, e] + i");
    line(y + " = matmul(" + t + ", " + r + ")");
    return;
  }
}

void AccessGenerator::loops() {
  std::string y = fresh("y");
  static const std::vector<std::string> ranges = {"N",       "K",       "3",   "1:N", "K:N",
                                                  "0:N - 1", "N - 2:N", "M:N", "2:2", "0:K - 1"};
  std::string range = random.pick(ranges) + (random.chance(25) ? ", reverse" : "");
  if (random.chance(40)) { // over tiles
    output(y, "f32", {{"M", m}});
    std::string state = fresh("h"), size = random.chance(50) ? "N" : "K";
    line("parallel i in M {");
    line("  state " + state + " = 0.0");
    line("  for e in tiles(" + size + ") {");
    names.push_back("e");
    std::string place = random.chance(50) ? near("e") : integer(1);
    std::string value = random.chance(40) ? "x[" + place + ", fill=1]"
                        : random.chance(50)
                            ? "where(" + protection(place, "N") + ", x[" + near(place) + "], 0.0)"
                            : "x[" + place + "]";
    names.pop_back();
    line("    " + state + " = " + state + " + sum(" + value + " for e" +
         (random.chance(30) ? " if e > 0" : "") + ")");
    line("  }");
    line("  " + y + "[i] = " + state);
    line("}");
    return;
  }
  output(y, "f32", {{"N", n}});
  line(y + "[f] = 0.0");
  line("for t in " + range + " {");
  if (random.chance(50)) {
    line("  " + y + "[" + near("t") + "] = x[" + (random.chance(50) ? near("t") : "t") +
         (random.chance(30) ? ", fill=2" : "") + "]");
  } else {
    takesPoint = false;
    names.push_back("t");
    std::string place = integer(1);
    names.pop_back();
    takesPoint = true;
    line("  " + y + "[" + near(place) + "] " + (random.chance(50) ? "+=" : "max=") + " x[" +
         near("t") + "]*1.0 for i in M" +
         (random.chance(60) ? " if " + protection(place, "N") : ""));
  }
  line("}");
}

void AccessGenerator::sorted() {
  std::string o = fresh("o"), y = fresh("y");
  output(y, "f32", {{"N", n}});
  switch (random.below(3)) {
  case 0:
    line(o + "[f in N] = argsort(" + std::string(random.chance(50) ? "x[f]" : "-x[f]") +
         ", over=f" + (random.chance(50) ? ", descending=true" : "") + ")");
    line(y + "[f] = x[" + near(o + "[f]") + "]");
    return;
  case 1:
    line(o + "[f in N] = cumsum(" + std::string(random.chance(50) ? "1" : "f") + ", over=f" +
         (random.chance(50) ? ", exclusive=true" : "") + ")");
    line(y + "[f] = x[" + near(o + "[f]") + (random.chance(40) ? ", fill=1" : "") + "]");
    return;
  default: // an exact quotient, else the fill
    line(y + "[f] = x[(f" +
         std::string(random.chance(50)   ? " + 1"
                     : random.chance(50) ? " - 3"
                                         : "") +
         ")/" + (random.chance(60) ? "2" : "3") + ", fill=5]");
    return;
  }
}

void AccessGenerator::far() {
  static const std::vector<std::string> factors = {"2147483648",
                                                   "4294967296",
                                                   "1099511627776",
                                                   "281474976710656",
                                                   "1152921504606846976",
                                                   "2305843009213693952",
                                                   "3074457345618258603",
                                                   "4611686018427387904",
                                                   "2147483647",
                                                   "9223372036854775807",
                                                   "N*N*N",
                                                   "M*N*1073741824",
                                                   "K*1152921504606846976"};
  std::string y = fresh("y"), t = fresh("t");
  output(y, "f32", {{"M", m}});
  std::string factor = random.pick(factors);
  auto multiple = [&](const std::string &index) {
    if (random.chance(15))
      return "(" + index + " << " + std::to_string(30 + random.below(33)) + ")";
    return index + "*" + (random.chance(20) ? "(-" + factor + ")" : factor);
  };
  static const std::vector<std::string> ends = {"", "", " + i", " + i", " - i", " + 1", " + M"};
  std::string place = multiple("e") + random.pick(ends);
  switch (random.below(6)) {
  case 0:
    place = "(" + place + ")//" + factor;
    break;
  case 1:
    place = "(" + place + ") % " + (random.chance(50) ? "N" : "3");
    break;
  case 2:
    place = std::string(random.chance(50) ? "minimum(" : "maximum(") + place + ", " +
            (random.chance(50) ? "N - 1" : "i") + ")";
    break;
  case 3:
    place = "clamp(" + std::string(random.chance(50) ? "v[i]" : "a[i]") + ", min=" + place +
            ", max=" + multiple("i") + ")";
    break;
  default:
    break;
  }
  std::string value = "x[" + place + ", fill=2]";
  switch (random.below(5)) {
  case 0:
    value = "where(" + protection(place, "N") + ", x[" + near(place) + "], -1.0)";
    break;
  case 1: // what may be computed where it is read
    line(t + "[f in N] = where(" + protection(multiple("f"), "N") + ", x[" + multiple("f") +
         ", fill=1], 4.0)");
    value = t + "[" + place + ", fill=3]";
    break;
  case 2:
    line(t + "[f in N] = x[f//2]*2");
    value = t + "[" + place + (random.chance(50) ? ", fill=3]" : "]");
    break;
  default:
    break;
  }
  static const std::vector<std::string> ranges = {
      "K", "K", "3", "0:N", "i:i + 2", "u[i]:u[i] + 2", "v[i]:v[i] + 2", "w[i] - 1:w[i] + 1"};
  switch (random.below(5)) {
  case 0:
    line("parallel i in M {");
    line("  state h = 0.0");
    line("  for e in tiles(" + std::string(random.chance(50) ? "K" : "N") + ") {");
    line("    h = h + sum(" + value + " for e)");
    line("  }");
    line("  " + y + "[i] = h");
    line("}");
    return;
  case 1: // the range itself is far away
    line(y + "[i] = sum(x[f - " + place + ", fill=1]*f for e in K, f in " + place + ":" + place +
         " + 2)");
    return;
  case 2:
    line(y + "[i] = sum(" + value + " for e in K if " + protection(place, "N") + ")");
    return;
  default:
    line(y + "[i] = sum(" + value + " for e in " + random.pick(ranges) + ")");
  }
}

void AccessGenerator::divisors() {
  std::string y = fresh("y");
  output(y, "f32", {{"M", m}});
  static const std::vector<std::string> divisors = {"f",     "(f - 1)", "(f - K)",
                                                    "(2*f)", "(N - f)", "(f - M)"};
  std::string divisor = random.pick(divisors);
  static const std::vector<std::string> filters = {
      " if f > 0", " if f != 1", " if f > 1", " if f - K > 0", " if N - f > 0", "", " if f > M"};
  std::string quotient = "e" + std::string(random.chance(50) ? " // " : " % ") + divisor;
  if (random.chance(50))
    line(y + "[i] = sum(x[" + quotient + (random.chance(30) ? " + i" : "") + "] for f in " +
         (random.chance(50) ? "3" : "N") + ", e in " + (random.chance(50) ? "N" : "3") +
         random.pick(filters) + ")");
  else
    line(y + "[i] = sum(where(" + protection(quotient, "N") + ", x[" + near("(" + quotient + ")") +
         "], 0.0) for f in 3, e in N" + random.pick(filters) + ")");
}

GeneratedProgram AccessGenerator::generate() {
  n = random.chance(15) ? random.below(2) : 1 + random.below(40);
  m = random.chance(8) ? 0 : 1 + random.below(17);
  k = random.chance(20) ? 0 : 1 + random.below(5);
  program.sizes = {{"N", n}, {"M", m}, {"K", k}};
  // Sizes and what is next to them, the ends of the types, and what a small factor takes beyond
  // them.
  std::vector<int64_t> extremes = {0,
                                   -1,
                                   1,
                                   2,
                                   n,
                                   n - 1,
                                   n + 1,
                                   m,
                                   m - 1,
                                   -n,
                                   INT32_MAX,
                                   INT32_MIN,
                                   INT32_MAX - 1,
                                   (int64_t(1) << 31) / 8,
                                   (int64_t(1) << 31) / 2,
                                   (int64_t(1) << 31) / 3 + 1,
                                   int64_t(1) << 32,
                                   INT64_MAX,
                                   INT64_MIN,
                                   INT64_MAX - 1,
                                   INT64_MAX / 2 + 1,
                                   INT64_MAX / 8 + 1};
  auto input = [&](const char *name, const char *type, std::vector<int64_t> shape, bool isInteger) {
    GeneratedTensor tensor;
    tensor.name = name;
    tensor.type = type;
    tensor.shape = std::move(shape);
    tensor.lo = 0;
    tensor.hi = 9;
    if (isInteger)
      tensor.values = extremes;
    program.inputs.push_back(std::move(tensor));
  };
  input("x", "f32", {n}, false);
  input("z", "f32", {n, k}, false);
  input("a", "i32", {m}, true);
  input("b", "i32", {m}, true);
  input("v", "i64", {m}, true);
  input("w", "i64", {m}, true);
  input("u", "u8", {m}, true);
  input("s", "i8", {m}, true);
  input("h", "i16", {m}, true);
  input("uh", "u16", {m}, true);
  input("uw", "u32", {m}, true);
  input("ul", "u64", {m}, true);
  program.scalars.push_back({"p", "i32", 0, int32_t(random.pick(extremes))});
  program.scalars.push_back({"q", "i64", 0, random.pick(extremes)});
  unsigned statements = 1 + random.below(4);
  while (statements--)
    statement();
  if (hasInout) {
    input("t", "f32", {n}, false);
    program.inputs.back().isInout = true;
    program.outputs.insert(program.outputs.begin(), program.inputs.back());
  }
  program.text = "kernel k(x: f32[N], z: f32[N, K], a: i32[M], b: i32[M], v: i64[M], w: i64[M], u: "
                 "u8[M], s: i8[M],\n"
                 "         h: i16[M], uh: u16[M], uw: u32[M], ul: u64[M], p: i32, q: i64" +
                 std::string(hasInout ? ", t: inout f32[N]" : "") + ") -> (" + results + ")" +
                 wheres + " {\n" + opening + body + "}\n";
  return std::move(program);
}

GeneratedProgram tegula::fuzz::generateAccessProgram(uint64_t seed) {
  Random random(seed * 0x9E3779B97F4A7C15ull + 0x5851F42D4C957F2Dull);
  return AccessGenerator(random).generate();
}
