//===- RefFile.h - References and what to run them on -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reference is a TorchScript function in a `.ref.py` file beside the kernel. Its parameters carry
// the names of what they stand for: the kernel's tensors and scalars, its constants, its sizes.
// Comments above it say on what to compare:
//
//   # check: M=1, N=1                     a case for correctness
//   # check: M=7, N=129, T=f16, eps=1e-3  sizes, generic types, constants, scalars; `...`=(2, 3)
//   # bench: M=4096, N=1024               a case that is timed as well
//   # input: ids = integers(0, V)         how to fill an input; without this normal(0, 1), integers
//                                         from 0 to 3, or fair coins
//   # exact                               results must agree in every bit
//   # wrt: x, w                           with --grad: the tensors to differentiate with respect to
//   def softmax(x):
//       return torch.softmax(x, 1)
//
// The distributions: normal(mean, deviation), uniform(low, high), integers(low, high) (low <= v <
// high), coin(probability), sign(), and constant(value). Their arguments are expressions of sizes
// and numbers.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REFERENCE_REFFILE_H
#define TEGULA_BENCH_REFERENCE_REFFILE_H

#include "bench/reference/Tensor.h"
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tegula::bench {

/// How to fill an input.
struct InputSpec {
  std::string name;
  enum Kind { Normal, Uniform, Integers, Coin, Sign, Constant } kind = Normal;
  std::vector<std::string> arguments; // expressions
};

/// `M=4, stride=(2, 1)`: values as text, in the order written.
struct Case {
  std::vector<std::pair<std::string, std::string>> values;
  bool timed = false;
  unsigned line = 0;
  std::string text() const;
};

struct RefFunction {
  std::string name;
  std::vector<Case> cases;
  std::vector<InputSpec> inputs;
  std::vector<std::string> wrt; // empty: all that have a gradient
  bool exact = false;
};

struct RefFile {
  /// The text without imports, which TorchScript does not have; lines keep their numbers.
  std::string source;
  std::vector<RefFunction> functions;

  /// The function for a kernel: of its name, or else `ref`, or else the only one. Null: none.
  const RefFunction *find(llvm::StringRef kernel) const;
};

/// Nothing, with an error that names the line, where a comment is malformed.
std::optional<RefFile> parseRefFile(llvm::StringRef text, std::string &error);

/// Splits `M=4, s=(2, 1)`; used for -d and -p too.
bool parseSettings(llvm::StringRef text, std::vector<std::pair<std::string, std::string>> &settings,
                   std::string &error);

/// Value of an expression of numbers, names, + - * / and parentheses.
std::optional<double> evaluate(llvm::StringRef expression,
                               const std::function<std::optional<double>(llvm::StringRef)> &valueOf,
                               std::string &error);

/// As above, of numbers, inf and pi alone.
std::optional<double> evaluateConstant(llvm::StringRef expression);

/// Fills `tensor` with numbers that depend on the seed, the input's name and the position alone.
/// False, with `error` set, where the spec is not one for this tensor.
bool fill(Tensor &tensor, llvm::StringRef name, const InputSpec *spec, uint64_t seed,
          const std::function<std::optional<double>(llvm::StringRef)> &valueOf, std::string &error);

} // namespace tegula::bench

#endif // TEGULA_BENCH_REFERENCE_REFFILE_H
