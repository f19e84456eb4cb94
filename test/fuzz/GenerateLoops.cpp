//===- GenerateLoops.cpp - Random loops over steps that change states -----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device runs a loop of steps in one launch where axes of its statements are independent, with
// states in registers or shared memory (tgl-interchange-loops). These loops write whole states or
// parts of them, read other elements of them, and store values of each step; axes are independent
// in none, some or all statements. Others hand whole states on, by copies that need not be made
// (tgl-rotate-buffers). States are clamped whole numbers: no order rounds.
//
//===----------------------------------------------------------------------===//
#include "GenerateImpl.h"

using namespace tegula::fuzz;

namespace {
class LoopGenerator {
public:
  explicit LoopGenerator(Random &random) : random(random) {}
  GeneratedProgram generate();

private:
  void size(const std::string &name, const std::vector<int64_t> &values) {
    program.sizes.push_back({name, random.pick(values)});
  }
  int64_t sizeOf(const std::string &name) const {
    for (const auto &[other, value] : program.sizes)
      if (other == name)
        return value;
    if (size_t at = name.find('*'); at != std::string::npos)
      return sizeOf(name.substr(0, at)) * sizeOf(name.substr(at + 1));
    return std::stoll(name);
  }
  GeneratedTensor tensor(const std::string &name, const std::string &type,
                         const std::vector<std::string> &dims) const {
    GeneratedTensor made{name, type, {}, -2, 2};
    for (const std::string &dim : dims)
      made.shape.push_back(sizeOf(dim));
    return made;
  }
  static std::string list(const std::vector<std::string> &items) {
    std::string text;
    for (const std::string &item : items)
      text += (text.empty() ? "" : ", ") + item;
    return "[" + text + "]";
  }
  void input(const std::string &name, const std::vector<std::string> &dims,
             const std::string &type = "f32") {
    program.inputs.push_back(tensor(name, type, dims));
    parameters += (parameters.empty() ? "" : ", ") + name + ": " + type + list(dims);
  }
  void output(const std::string &name, const std::vector<std::string> &dims,
              const std::string &type = "f32") {
    program.outputs.push_back(tensor(name, type, dims));
    results += (results.empty() ? "" : ", ") + name + ": " + type + list(dims);
  }
  /// A state of the loop: a tensor of the kernel's own, or a parameter that changes.
  void state(const std::string &name, const std::vector<std::string> &indices,
             const std::vector<std::string> &dims, const std::string &start = "");
  void line(const std::string &text) { body += std::string(indent, ' ') + text + "\n"; }
  void beginLoop(const std::string &range) {
    line("for t in " + range + (random.chance(25) ? ", reverse" : "") + " {");
    indent += 2;
  }
  void endLoop() {
    indent -= 2;
    line("}");
  }
  static std::string whole(const std::string &value) {
    return "clamp(floor(" + value + "), min=-8, max=8)";
  }
  std::string pick(const std::vector<std::string> &from) { return random.pick(from); }
  /// `b, ` before other subscripts where there is a batch.
  std::string batch(const char *text) const { return hasBatch ? text : ""; }
  std::vector<std::string> withBatch(std::vector<std::string> dims) const {
    if (hasBatch)
      dims.insert(dims.begin(), "B");
    return dims;
  }

  std::vector<std::string> indices(std::vector<std::string> own) const {
    if (hasBatch)
      own.insert(own.begin(), "b");
    return own;
  }

  void bestPath();
  void triangularSolve();
  void deltaRule();
  void linearState();
  void factorisation();
  void elementwise();
  void neighbours();
  void handedOn();
  void blockSteps();

  Random &random;
  GeneratedProgram program;
  std::string parameters, results, body;
  unsigned indent = 2;
  bool hasBatch = true;
};
} // namespace

void LoopGenerator::state(const std::string &name, const std::vector<std::string> &indices,
                          const std::vector<std::string> &dims, const std::string &start) {
  std::string place;
  for (size_t k = 0; k < indices.size(); ++k)
    place += (k ? ", " : "") + indices[k] + " in " + dims[k];
  if (!start.empty() || random.chance(70)) {
    line("state " + name + "[" + place + "] = " + (start.empty() ? pick({"0.0", "1.0"}) : start));
    return;
  }
  std::string type = pick({"f32", "f32", "bf16", "f16"});
  GeneratedTensor changing = tensor(name, type, dims);
  changing.isInout = true;
  program.inputs.push_back(changing);
  program.outputs.insert(program.outputs.begin(), changing);
  parameters += (parameters.empty() ? "" : ", ") + name + ": inout " + type + list(dims);
}

/// Viterbi: the largest of all ways into each element, and which one it is.
void LoopGenerator::bestPath() {
  size("S", {1, 2, 7, 31, 32, 33});
  input("e", withBatch({"T", "S"}));
  input("w", {"S", "S"});
  state("v", indices({"s"}), withBatch({"S"}));
  bool isKept = random.chance(50);
  beginLoop("T");
  std::string way = "v[" + batch("b, ") + "r] + w[r, s]";
  line("m[" + batch("b, ") + "s] = max(" + way + " for r)");
  if (isKept)
    line("way[" + batch("b, ") + "t, s] = argmax(" + way + " for r)");
  line("v[" + batch("b, ") +
       "s] = " + whole("m[" + batch("b, ") + "s] + e[" + batch("b, ") + "t, s]"));
  endLoop();
  line("y[" + batch("b, ") + "s] = v[" + batch("b, ") + "s]*2");
  output("y", withBatch({"S"}));
  if (isKept)
    output("way", withBatch({"T", "S"}), "i32");
}

/// Each step writes one element of the state from those before it; a second loop may go back.
void LoopGenerator::triangularSolve() {
  input("L", withBatch({"T", "T"}));
  input("r", withBatch({"T"}));
  std::string b = batch("b, ");
  state("v", indices({"i"}), withBatch({"T"}), "0.0");
  line("for t in T {");
  line("  v[" + b +
       "t] = " + whole("r[" + b + "t] - sum(L[" + b + "t, j]*v[" + b + "j] for j in 0:t)"));
  line("}");
  if (random.chance(40)) {
    line("for t in T, reverse {");
    line("  v[" + b +
         "t] = " + whole("v[" + b + "t] - sum(L[" + b + "j, t]*v[" + b + "j] for j in t + 1:T)"));
    line("}");
  }
  line("y[" + b + "i] = v[" + b + "i]");
  output("y", withBatch({"T"}));
}

/// A matrix as state, changed by products of vectors of the step; columns are independent.
void LoopGenerator::deltaRule() {
  size("K", {1, 3, 8, 31, 32, 33, 64});
  size("V", {1, 2, 5, 8});
  std::string type = pick({"f32", "bf16"}), b = batch("b, ");
  for (const char *name : {"q", "k"})
    input(name, withBatch({"T", "K"}), type);
  input("v", withBatch({"T", "V"}), type);
  input("g", withBatch({"T"}));
  state("S", indices({"i", "j"}), withBatch({"K", "V"}));
  bool isLate = random.chance(50);
  beginLoop("T");
  std::string read = "o[" + b + "t, j] = sum(q[" + b + "t, i]*S[" + b + "i, j] for i)";
  line("u[" + b +
       "j] = " + whole("v[" + b + "t, j] - sum(k[" + b + "t, i]*S[" + b + "i, j] for i)"));
  if (!isLate)
    line(read);
  line("S[" + b +
       "i, j] = " + whole("g[" + b + "t]*S[" + b + "i, j] + k[" + b + "t, i]*u[" + b + "j]"));
  if (isLate)
    line(read);
  endLoop();
  output("o", withBatch({"T", "V"}));
}

/// A state that decays and to which products are added, of values that it corrects or not, for
/// chunks of steps (tgl-chunk-recurrences): decays are 0, 1 and -1, whose products no logarithm
/// rounds.
void LoopGenerator::linearState() {
  program.sizes.front().second = random.pick<int64_t>({1, 31, 63, 64, 65, 127, 128, 129, 131});
  size("K", {1, 8, 16, 33});
  size("V", {1, 8, 17, 64});
  std::string type = pick({"f32", "bf16"}), b = batch("b, ");
  bool isCorrected = random.chance(40);
  input("q", withBatch({"T", "K"}), type);
  if (isCorrected) {
    // A key is one channel: its row becomes the value, whose numbers stay small.
    input("c", withBatch({"T"}));
    line("k: " + type + "[" + b + "t, i in K] = where(i64(c[" + b + "t]) % K == i, 1.0, 0.0)");
  } else {
    input("k", withBatch({"T", "K"}), type);
  }
  input("v", withBatch({"T", "V"}), type);
  bool hasSteps = random.chance(70);
  input("g", withBatch(hasSteps ? std::vector<std::string>{"T"} : std::vector<std::string>{}));
  state("S", indices({"i", "j"}), withBatch({"K", "V"}));
  bool isLate = random.chance(60);
  std::string g = hasSteps ? "g[" + b + "t]" : hasBatch ? "g[b]" : "g";
  std::string read =
      "o[" + b + "t, j] = 2*sum(q[" + b + "t, i]*S[" + b + "i, j] for i) - v[" + b + "t, j]";
  std::string decay = pick({"", "where(" + g + " > -2, 1.0, 0.0)*",
                            "where(" + g + " > 0, 1.0, where(" + g + " > -2, -1.0, 0.0))*",
                            "exp(where(" + g + " > -2, 0.0, -inf))*"});
  beginLoop("T");
  if (!isLate)
    line(read);
  if (isCorrected) {
    line("u[" + b + "j] = v[" + b + "t, j] - " + decay + "sum(k[" + b + "t, i]*S[" + b +
         "i, j] for i)");
    line("S[" + b + "i, j] = " + decay + "S[" + b + "i, j] + k[" + b + "t, i]*u[" + b + "j]");
  } else {
    line("S[" + b + "i, j] = " + decay + "S[" + b + "i, j] " + pick({"+", "-"}) + " k[" + b +
         "t, i]*v[" + b + "t, j]");
  }
  if (isLate)
    line(read);
  endLoop();
  output("o", withBatch({"T", "V"}));
}

/// Cholesky's form: a column of the step, then its product with itself off the rest.
void LoopGenerator::factorisation() {
  input("A", withBatch({"T", "T"}));
  std::string b = batch("b, "), at = "M[" + b + "i, j]";
  state("M", indices({"i", "j"}), withBatch({"T", "T"}), "A[" + b + "i, j]");
  line("for t in T {");
  line("  c[" + b + "i] = where(i > t, M[" + b + "i, t] - M[" + b + "t, t], 0)");
  line("  M[" + b + "i, j] = where(j == t, c[" + b + "i], where(j > t and i > t, " +
       whole(at + " - c[" + b + "i]*c[" + b + "j]") + ", " + at + "))");
  line("}");
  line("y[" + b + "i, j] = where(j <= i, M[" + b + "i, j], 0)");
  output("y", withBatch({"T", "T"}));
}

/// Every element for itself; more than one state, of one and of two axes.
void LoopGenerator::elementwise() {
  size("D", {1, 2, 7, 31, 32, 33, 129});
  std::string b = batch("b, ");
  bool isTurned = random.chance(30);
  input("x", isTurned ? withBatch({"D", "T"}) : withBatch({"T", "D"}));
  state("h", indices({"d"}), withBatch({"D"}));
  bool hasOther = random.chance(50);
  if (hasOther)
    state("g", indices({"d"}), withBatch({"D"}), "0.0");
  // Of a tensor that nobody reads the last write counts, whichever thread it is by.
  bool isOverwritten = random.chance(40);
  if (isOverwritten) {
    line("z[" + b + "d] = x[" + b + (isTurned ? "d, 0]" : "0, d]"));
    output("z", withBatch({"D"}));
  }
  beginLoop("T");
  line("h[" + b +
       "d] = " + whole("h[" + b + "d]*0.5 + x[" + b + (isTurned ? "d, t" : "t, d") + "]"));
  if (hasOther)
    line("g[" + b + "d] = " + whole("g[" + b + "d] - h[" + b + "d]"));
  if (isOverwritten)
    line("z[" + b + pick({"D - 1 - d", "d"}) + "] = h[" + b + "d] for d in D");
  bool isFlat = random.chance(30);
  line("y[" + b + (isFlat ? "t*D + d" : "t, d") + "] = h[" + b + "d]" +
       (hasOther ? " + g[" + b + "d]" : ""));
  endLoop();
  output("y",
         withBatch(isFlat ? std::vector<std::string>{"T*D"} : std::vector<std::string>{"T", "D"}));
}

/// Elements of the step before at other places, the same for all, or of another batch.
void LoopGenerator::neighbours() {
  size("D", {1, 2, 7, 31, 32, 33, 65});
  std::string b = batch("b, ");
  input("x", withBatch({"T", "D"}));
  state("h", indices({"d"}), withBatch({"D"}));
  bool meets = hasBatch && random.chance(30); // batches are not independent
  beginLoop("T");
  std::string own = "h[" + b + "d]";
  line("n[" + b + "d in D] = h[" + (hasBatch ? std::string(meets ? "B - 1 - b, " : "b, ") : "") +
       "d - 1, fill=" + pick({"0", "1"}) + "] + h[" + b + pick({"D - 1 - d", "0", "d"}) + "]");
  line(own + " = " + whole(own + "*0.5 + n[" + b + "d] + x[" + b + "t, d] - t"));
  endLoop();
  line("y[" + b + "d] = h[" + b + "d]");
  output("y", withBatch({"D"}));
}

/// States that steps hand on to each other, in any order, among them those of a step before; some
/// are changed again behind their copy, or read. States begin as copies, and results are copies.
void LoopGenerator::handedOn() {
  size("D", {1, 2, 7, 31, 32, 33, 65});
  std::string b = batch("b, "), back = hasBatch ? "B - 1 - b, " : "";
  input("x", withBatch({"D"}));
  input("s", {"T"});
  unsigned numStates = 1 + random.below(3);
  std::vector<std::string> states(numStates);
  for (unsigned k = 0; k < numStates; ++k) {
    states[k] = std::string(1, "hgk"[k]);
    state(states[k], indices({"d"}), withBatch({"D"}),
          random.chance(60)   ? "x[" + b + "d]"
          : random.chance(50) ? "1.0"
                              : "");
  }
  bool isKnown = random.chance(50), isKept = random.chance(30) && !isKnown;
  beginLoop(isKnown ? std::to_string(random.below(10)) : "T");
  std::string step = isKnown ? "t" : "s[t]";
  std::string around = random.chance(40) ? "sum(h[" + back + "(d + r + D - 1) % D] for r in 3)"
                                         : "h[" + back + "d - 1, fill=1] - h[" + b + "D - 1 - d]";
  line("n[" + b + "d in D] = " + whole(around + " + " + states.back() + "[" + b + "d] + " + step));
  // A value that a state takes: another's, the new one, or a sum of both.
  std::vector<std::string> order = states;
  if (random.chance(30))
    std::swap(order.front(), order.back());
  if (random.chance(30)) { // the first state's own elements are kept for the last one
    line("o[" + b + "d in D] = " + states.front() + "[" + b + "d]");
    order.insert(order.begin(), "o");
  }
  for (size_t k = order.size(); k-- > 0;) {
    if (order[k] == "o")
      break;
    std::string from = k ? order[k - 1] : "n";
    if (random.chance(15))
      from = pick(states);
    std::string value = from + "[" + b + "d]";
    if (random.chance(15))
      value = whole("n[" + b + "d] - " + order[k] + "[" + b + "d]");
    line(order[k] + "[" + b + "d] = " + value);
    if (random.chance(15))
      line(order[k] + "[" + b + "0] = " + step + (hasBatch ? " for b in B" : ""));
  }
  if (order.front() == "o" || random.chance(20))
    line(states.front() + "[" + b + "d] = n[" + b + "d]");
  if (isKept)
    line("way[" + b + "t, d] = " + pick(states) + "[" + b + "d]*2");
  endLoop();
  for (unsigned k = 0; k < numStates; ++k) {
    std::string result = "y" + states[k];
    line(result + "[" + b + "d] = " + states[k] + "[" + b + "d]");
    output(result, withBatch({"D"}));
  }
  if (isKept)
    output("way", withBatch({"T", "D"}));
}

/// Points of a block that each carry a number through many steps, for parts and tiles of steps
/// (tgl-split-recurrences, tgl-split-scans): steps write elements of their own, replace one of
/// which the last counts, or what was read before the loop.
void LoopGenerator::blockSteps() {
  program.sizes.front().second = random.pick<int64_t>({1, 7, 131, 515, 1031});
  size("D", {1, 2, 5, 16, 33});
  enum { Own, Last, Shared, Twice, ReadBefore };
  int64_t form = random.below(5);
  std::string b = batch("b, ");
  bool isTurned = random.chance(30);
  input("x", isTurned ? withBatch({"D", "T"}) : withBatch({"T", "D"}));
  input("f", withBatch({"T", "D"}));
  if (form == ReadBefore) {
    GeneratedTensor changing = tensor("h", "f32", withBatch({"T", "D"}));
    changing.isInout = true;
    program.inputs.push_back(changing);
    program.outputs.push_back(changing);
    parameters += ", h: inout f32" + list(withBatch({"T", "D"}));
  }
  line("y[" + b + (form == Last ? "d] = 0" : "t, d] = 0"));
  line("parallel " + batch("b in B, ") + "d in D {");
  indent += 2;
  if (form == ReadBefore)
    line("w = h[" + b + "0, d]");
  line("state a = " + pick({"0.0", "1.0"}));
  beginLoop("T");
  std::string factor = form == ReadBefore ? "w" : "f[" + b + "t, d]",
              added = "x[" + b + (isTurned ? "d, t]" : "t, d]");
  line(random.chance(60) ? "a = clamp(floor(" + factor + "), min=-1, max=1)*a + " + added
                         : "a = a + " + added);
  line("y[" + b + (form == Last ? "d" : form == Shared ? "t // 50, d" : "t, d") + "] = a");
  if (form == Twice)
    line("y[" + b + "0, d] = 2*a");
  if (form == ReadBefore)
    line("h[" + b + "t, d] = a");
  endLoop();
  endLoop();
  output("y", form == Last ? withBatch({"D"}) : withBatch({"T", "D"}));
}

GeneratedProgram LoopGenerator::generate() {
  hasBatch = random.chance(80);
  size("T", {0, 1, 2, 3, 7, 31, 33});
  if (hasBatch)
    size("B", {1, 2, 3, 5, 7});
  switch (random.below(10)) {
  case 0:
    bestPath();
    break;
  case 1:
    triangularSolve();
    break;
  case 2:
    deltaRule();
    break;
  case 3:
    factorisation();
    break;
  case 4:
    elementwise();
    break;
  case 5:
    linearState();
    break;
  case 6:
    blockSteps();
    break;
  case 7:
  case 8:
    handedOn();
    break;
  default:
    neighbours();
  }
  program.isShifted = random.chance(10);
  program.text = "kernel entry(" + parameters + ") -> (" + results + ") {\n" + body + "}\n";
  return program;
}

GeneratedProgram tegula::fuzz::generateLoopProgram(uint64_t seed) {
  Random random(seed);
  return LoopGenerator(random).generate();
}
