//===- GenerateImpl.h - Values and scopes of the generator -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TEST_FUZZ_GENERATEIMPL_H
#define TEGULA_TEST_FUZZ_GENERATEIMPL_H

#include "Generate.h"
#include <functional>
#include <map>

namespace tegula::fuzz {

/// The same numbers on every platform, which the standard library's distributions do not give.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// 0 <= result < count.
  unsigned below(unsigned count) { return next() % count; }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <typename T> const T &pick(const std::vector<T> &from) {
    return from[below(from.size())];
  }

private:
  uint64_t state;
};

enum class Class { Bool, Int, Float };

/// Text with what is known of its value.
struct Value {
  std::string text;
  Class kind = Class::Float;
  double bound = 1; // |value| <= bound (where no input is special)
  int grain = 0;    // exact values are multiples of 2^-grain
  double error = 0; // of a float; 0: exact in f32
  bool isExact() const { return error == 0; }
};

struct Dim {
  std::string text;
  int64_t value = 0;
};

/// A tensor in scope, or a scalar without dims.
struct Source {
  std::string name;
  std::vector<Dim> dims;
  Value value;              // its elements; the text is unused
  bool isSubscript = false; // elements are in [0, value.bound]
  bool isNarrow = false;    // of a storage type
  bool isInout = false;
};

/// An index in scope.
struct Index {
  std::string name;
  Dim range;
};

constexpr double ulp = 6e-8; // half of f32's spacing at 1

/// One kernel under construction. Helper kernels that it calls are generated with it.
class Generator {
public:
  Generator(Random &random, bool special, std::string &kernels)
      : random(random), special(special), kernels(kernels) {}
  void generateEntry(GeneratedProgram &program);

  using Scope = std::vector<Index>;

  // Expressions (GenerateExpr.cpp). `depth` bounds what may stand below.
  Value expression(Scope &scope, Class kind, unsigned depth);
  Value floating(Scope &scope, unsigned depth);
  Value integer(Scope &scope, unsigned depth);
  Value bits(Scope &scope, unsigned depth);
  Value boolean(Scope &scope, unsigned depth);
  Value exact(Scope &scope, unsigned depth); ///< a float of error 0
  Value leaf(Scope &scope, Class kind);
  Value read(Scope &scope, const Source &source);
  std::string subscript(Scope &scope, const Dim &dim, bool &mayLeave, bool &mayDivide);
  Value reduction(Scope &scope, Class kind, unsigned depth);
  Value nestedReductions(Scope &scope);
  /// What a sum, mean, max or min of so many floats is known to be.
  static Value reduced(Value value, const std::string &name, double count);
  Value elementary(Value x);
  Value scan(Scope &scope, const Index &index, unsigned depth);
  /// After `for`, or on the left: the range is written, or inferred from `value`.
  std::string item(const Index &index, const std::string &value);
  static bool isBare(const std::string &text, const std::string &name);
  /// Writes the range into `value`, where some read subscripts the index; false where none does.
  bool writeRange(std::string &value, const std::string &index, const std::string &range);

  static Value add(const Value &a, const Value &b, const char *op);
  static Value multiply(const Value &a, const Value &b);
  static Value settle(Value value);         ///< an exact value that has grown too large is inexact
  Value limited(Value value, double bound); ///< clamped where larger
  /// The index itself is added where the value does not vary along it.
  static Value varying(Value value, const Index &index);

  // Statements (GenerateStmt.cpp; GenerateBlock.cpp; GenerateKernel.cpp).
  void statement();
  void equation();
  void pieces();
  void topk();
  void scalar();
  void loop();
  void call();
  struct Rows {
    std::string text; ///< `ids[i]`
    Index index;      ///< that it varies along
    Dim dim;          ///< which it subscripts
  };
  struct Scatter;
  void scatterByReduction();
  void compaction();
  void update();
  void library();
  bool narrowProduct();
  void output();
  void addOutput(const std::string &name, const std::string &type, const std::vector<Dim> &dims,
                 double tolerance);
  std::string left(const Scope &scope, const std::string &value); ///< `[i, j in M]`
  std::string typed(Value &value);
  Scope freshScope(unsigned rank);
  Index freshIndex(const Scope &scope);
  Index freshIndex(const Scope &scope, const Dim &range);
  Dim anyDim();
  Dim boundDim(const Dim &size);
  Source &define(std::string name, const std::vector<Dim> &dims, Value value);
  static std::vector<Dim> dimsOf(const Scope &scope);
  std::string fresh(const char *prefix) { return prefix + std::to_string(counter++); }
  void line(const std::string &text) { body += std::string(indent, ' ') + text + "\n"; }

  Random &random;
  bool special;         ///< inputs hold nan and infinities: no conversions to integers
  std::string &kernels; ///< text before the entry
  std::vector<Dim> sizes;
  std::vector<Source> sources;
  std::vector<GeneratedTensor> inputs, outputs;
  std::vector<GeneratedScalar> scalars;
  std::string parameters, results, body;
  std::string opening;            ///< the kernel's first lines
  std::vector<std::string> taken; ///< indices of blocks and loops around
  unsigned indent = 2, counter = 0, defined = 0;
  bool isHelper = false;
};

void tiles(Generator &generator);
void attention(Generator &generator);
void block(Generator &generator);
void scatter(Generator &generator);
void steps(Generator &generator);

} // namespace tegula::fuzz

#endif // TEGULA_TEST_FUZZ_GENERATEIMPL_H
