//===- Matched.h - A match, or why there is none --------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every function that asks whether a statement has a form (`plan*`, `match*`, `choose*`) gives what
// it found, or the reason why it found nothing in the words of the program. Passes that decide by
// it report the reason as a remark (mlir/IR/Remarks.h), which `tegula compile --why` prints.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_MATCHED_H
#define TEGULA_PASSES_ANALYSIS_MATCHED_H

#include "ir/tgl/TglUtils.h"
#include <optional>
#include <string>
#include <variant>

namespace tegula {

/// Why something did not match.
struct Mismatch {
  std::string reason; ///< "the sum over k has a condition": lower case, no full stop
  std::string edit;   ///< what in the program would make it match; empty where nothing simple does
  mlir::Operation *where = nullptr; ///< the operation that is in the way; null: the statement
  /// The statement has nothing of what is looked for, such as a sum of products: nobody expects a
  /// match.
  bool isOther = false;
};

/// A match or a mismatch; used as an optional.
template <typename T> class [[nodiscard]] Matched {
public:
  Matched(T match) : state(std::move(match)) {}
  Matched(Mismatch why) : state(std::move(why)) {}

  bool has_value() const { return std::holds_alternative<T>(state); }
  explicit operator bool() const { return has_value(); }
  T &operator*() { return std::get<T>(state); }
  const T &operator*() const { return std::get<T>(state); }
  T *operator->() { return &std::get<T>(state); }
  const T *operator->() const { return &std::get<T>(state); }
  /// Only where there is no match.
  const Mismatch &mismatch() const { return std::get<Mismatch>(state); }

  operator std::optional<T>() && {
    return has_value() ? std::optional<T>(std::move(std::get<T>(state))) : std::nullopt;
  }

private:
  std::variant<T, Mismatch> state;
};

/// Keeps the first reason of a matcher whose methods give false where something is in the way.
class MatcherBase {
protected:
  bool fail(mlir::Operation *where, const llvm::Twine &reason, const llvm::Twine &edit = "") {
    if (why.reason.empty())
      why = {reason.str(), edit.str(), where, false};
    return false;
  }
  /// What is looked for is not there at all.
  bool failAsOther(mlir::Operation *where, const llvm::Twine &reason) {
    fail(where, reason);
    why.isOther = true;
    return false;
  }
  bool hasReason() const { return !why.reason.empty(); }

  Mismatch why;
};

/// "the sum over k", "the statement over i, j": as a user would point at it.
std::string describe(mlir::Operation *op);
/// "'x'" of a parameter or temporary.
std::string describeTensor(mlir::Value tensor);
/// "i, j": names of axes; a number stands for one that has none.
std::string namesOf(llvm::ArrayRef<mlir::BlockArgument> axes);

/// Reports as a remark that `strategy` does not compute the launch, where somebody listens.
void remarkMismatch(mlir::Operation *launch, llvm::StringRef strategy, const Mismatch &mismatch);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_MATCHED_H
