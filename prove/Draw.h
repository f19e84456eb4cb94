//===- Draw.h - Sizes and data at which programs are evaluated ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_DRAW_H
#define TEGULA_PROVE_DRAW_H

#include "prove/Evaluate.h"
#include <map>
#include <optional>

namespace tegula::prove {

/// Which reals are drawn. Together they take conditions such as `x > 6` and `norm < eps` both ways.
enum class DataKind {
  Normal,   // of the size of 1, both signs
  Large,    // of the size of 10
  Huge,     // of the size of 200
  Sparse,   // half of the elements are 0, in runs
  Positive, // in (0, 1)
  Infinite, // half of the elements are -inf, in runs
  Ties,     // few values, of the programs' constants and small halves, so that many are equal
  Far,      // half of the elements are at or beyond a large constant of the programs, in runs
  Blank,    // half of the tensors are 0, for norms that are; the others of the size of 10
  Tiny,     // below 1/16, both signs, where functions of larger numbers are as good as constant
};
llvm::StringRef toString(DataKind kind);

/// How large sizes are.
enum class SizeKind {
  Borders, // 1, 2 and 3
  Small,   // 2 to 5, where larger ones take too many steps
  Primes,  // primes up to 13
  Wide,    // up to 40, and powers of two up to 128 where guards want multiples
};
llvm::StringRef toString(SizeKind kind);

/// Which integers are drawn.
enum class IntegerKind {
  Small,   // as subscripts are: from 0, below the integer limit
  Wide,    // of the whole type, near 0 and near constants, where no subscript depends on them
  Outside, // as above, and those that subscripts depend on a little outside of their range
  Named,   // as above, and those that subscripts depend on constants of the programs: -100 for none
};
llvm::StringRef toString(IntegerKind kind);

/// Which run-time scalars are drawn.
enum class ScalarKind {
  Positive, // in (0, 1)
  Signed,   // up to 3, both signs
  Zero,
};
llvm::StringRef toString(ScalarKind kind);

using Sizes = std::map<std::string, int64_t>;

/// What programs say of the data that tell them apart.
struct Hints {
  struct Constant {
    double value;
    bool isDouble;
  };
  std::vector<Constant> constants, farConstants; // up to 100, and beyond
  std::vector<int64_t> integers;
  /// By parameter that is read: whether subscripts or ranges depend on its values.
  std::vector<bool> leads;
};
/// Constants that a program compares sizes and places with.
std::set<int64_t> bordersOf(tgl::KernelOp kernel);
Hints hintsOf(llvm::ArrayRef<tgl::KernelOp> kernels);

/// Sizes that dims of arguments say.
std::vector<std::string> boundSizes(tgl::KernelOp kernel);

/// Sizes that the kernel's guards admit; `given` ones are as they are. Nothing where none was
/// found.
std::optional<Sizes> drawSizes(tgl::KernelOp kernel, SizeKind kind, const Sizes &given,
                               uint64_t seed);

/// How many elements the parameters have that are tensors.
uint64_t elementsOf(tgl::KernelOp kernel, const Sizes &sizes);

/// Data for each parameter that is read.
struct Point {
  std::vector<PointTensor> inputs;
  std::vector<PointScalar> scalars;
};
struct PointKind {
  DataKind data = DataKind::Normal;
  IntegerKind integers = IntegerKind::Small;
  ScalarKind scalars = ScalarKind::Positive;
  int64_t integerLimit = 1; // of small integers
  bool isOutline = false;   // tensors have shapes and no elements
};
/// The reals depend on `seed` alone, the residues
/// on the algebra's primes too. With `hasPlainScalars` run-time scalars of floats are constants, so
/// that a reference can be told of them.
Point drawPoint(tgl::KernelOp kernel, const Sizes &sizes, const PointKind &kind, uint64_t seed,
                const Algebra &algebra, const Hints &hints, bool hasPlainScalars = false);

} // namespace tegula::prove

#endif // TEGULA_PROVE_DRAW_H
