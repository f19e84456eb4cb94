//===- InstanceOptions.h - What fixes one instance of a kernel -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_INSTANCEOPTIONS_H
#define TEGULA_FRONTEND_CHECK_INSTANCEOPTIONS_H

#include "frontend/check/Checked.h"
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tegula {

/// What fixes one instance of a kernel. Everything left out takes its default, or a stand-in that
/// `tegula check` uses: `...` of rank 1, generic types f32 (or i64 where they only subscript),
/// constants without a default as unknown sizes.
struct InstanceOptions {
  std::string kernel; // empty: the file's last kernel
  /// Types bound to the capitalised names of the entry kernel: T -> f16.
  std::map<std::string, checked::DType> types;
  std::optional<unsigned> ellipsisRank;
  std::map<std::string, std::variant<int64_t, double, bool, std::vector<int64_t>>> constants;
  /// Optional tensors and scalars that are passed (others read as their default).
  std::vector<std::string> givenOptionals;
  /// Sizes known when compiling: they replace their symbol everywhere.
  std::map<std::string, int64_t> sizes;
  /// What a kernel without a statement `precision` has (checked::isPrecision); empty: f32.
  std::string precision;
  /// Report, as remarks, guards that no declaration could prove: divisibility, sizes that must not
  /// be negative. Those that one could are warnings in any case.
  bool remarks = false;
  /// Statements `print` and `assert` are part of the program; else they are checked and left out.
  bool observe = false;
  /// Looks for the first value of an equation that is NaN, or is NaN or infinite. Needs `observe`.
  enum class Watch { Nothing, Nan, NonFinite } watch = Watch::Nothing;
  /// Notes when each statement of the program is reached (Observation::Reach). Needs `observe`.
  bool trace = false;
  /// The statement `print` that begins at this place of the program's file looks where these calls
  /// lead to it alone (Observation::calls).
  struct Look {
    uint32_t place = 0;
    std::vector<uint32_t> calls;
  };
  std::optional<Look> look;
};

} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_INSTANCEOPTIONS_H
