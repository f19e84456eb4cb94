//===- Guards.h - Sizes and guards of a launch --------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the host does once per launch before anything runs: size symbols get their values from the
// dims of the arguments, derived sizes are computed, guards are decided, all in 64-bit arithmetic
// that reports overflow. Specs are plain data, kept in a compiled kernel as text; LaunchChecks is
// the form made for speed (microseconds for the usual kinds).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SYMBOLIC_GUARDS_H
#define TEGULA_SYMBOLIC_GUARDS_H

#include "symbolic/IndexExpr.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tegula {
namespace tgl {
class KernelOp;
} // namespace tgl

/// The largest dim that binds a size, of tensors without elements too: no machine has memory for
/// more. Formulas of indices with coefficients of less than 2^14 need no check for that.
inline constexpr int64_t maxBoundSize = int64_t(1) << 48;

/// A size symbol: bound by a dim of an argument, or derived from sizes before it.
struct SizeSpec {
  std::string name;
  std::optional<std::pair<unsigned, unsigned>> boundBy; // argument, dim
  IndexExpr definition;

  /// `M = 0 : 1` or `P = (H - KH)//2 + 1`.
  std::string str() const;
  static std::optional<SizeSpec> parse(llvm::StringRef text);
};

/// What the sizes of a launch must satisfy. Kinds as in `#tgl.guard`.
struct GuardSpec {
  enum Kind { NonNegative, Zero, NonZero, Divides, InBounds } kind = NonNegative;
  IndexExpr lhs, rhs;
  /// InBounds: the k-th variable of the box is `d<k>`, lows[k] <= d<k> < highs[k].
  std::vector<IndexExpr> lows, highs;
  std::vector<IndexExpr> conditions; // InBounds: each >= 0 at the points that count
  std::string message;

  /// `inbounds e, f for lo to hi, lo to hi given c, c : "message"`; one line.
  std::string str() const;
  static std::optional<GuardSpec> parse(llvm::StringRef text);
};

/// The sizes and guards of a kernel.
void launchSpecs(tgl::KernelOp kernel, std::vector<SizeSpec> &sizes,
                 std::vector<GuardSpec> &guards);

/// Why a launch is refused.
struct GuardFailure {
  enum Kind {
    Violated,   // guards[index] does not hold
    SizeError,  // sizes[index] has no value: overflow or division by zero
    GuardError, // guards[index] could not be evaluated: overflow, or too many points to decide
  } kind = Violated;
  unsigned index = 0;
  /// The guard's message with the values that broke it: `x[i + 2] leaves x (M = 4, N = 4; at (3)
  /// the subscript is 5, the dim 4)`.
  std::string message;
};

/// Sizes and guards of one kernel, compiled to straight-line integer code. Immutable after `make`,
/// hence usable from several threads.
class LaunchChecks {
public:
  /// Nothing, with `error` set, where a spec uses a size that is not defined before it.
  static std::optional<LaunchChecks> make(std::vector<SizeSpec> sizes,
                                          std::vector<GuardSpec> guards, std::string &error);
  ~LaunchChecks();
  LaunchChecks(LaunchChecks &&) noexcept;
  LaunchChecks &operator=(LaunchChecks &&) noexcept;

  /// Computes all sizes, in the order of the specs, into `values`, then decides the guards in
  /// order. The first failure, or nothing.
  std::optional<GuardFailure>
  run(llvm::function_ref<int64_t(unsigned argument, unsigned dim)> dimOf,
      llvm::SmallVectorImpl<int64_t> &values) const;
  /// The same without a message, for who tries many sizes.
  std::optional<GuardFailure>
  decide(llvm::function_ref<int64_t(unsigned argument, unsigned dim)> dimOf,
         llvm::SmallVectorImpl<int64_t> &values) const;

  llvm::ArrayRef<SizeSpec> sizes() const;
  llvm::ArrayRef<GuardSpec> guards() const;

  /// Specs as text, one a line (`size ...`, `guard ...`), and back; unknown lines are an error.
  static std::string print(llvm::ArrayRef<SizeSpec> sizes, llvm::ArrayRef<GuardSpec> guards);
  static bool parse(llvm::StringRef text, std::vector<SizeSpec> &sizes,
                    std::vector<GuardSpec> &guards);

private:
  LaunchChecks();
  struct State;
  std::unique_ptr<State> state;
};

} // namespace tegula

#endif // TEGULA_SYMBOLIC_GUARDS_H
