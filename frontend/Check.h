//===- Check.h - Names, sizes, types and bounds of a kernel ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_H
#define TEGULA_FRONTEND_CHECK_H

#include "frontend/Checked.h"
#include "frontend/Diagnostics.h"
#include <map>
#include <memory>
#include <string>

namespace tegula {

/// A parsed file with what it may call: its own kernels and fns, then the standard library's,
/// parsed from the text built into the compiler when first called.
class Module;

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
};

/// Checks one kernel. Null, with errors in `diagnostics`, where the program is wrong.
std::unique_ptr<checked::Program> check(const Module &module, const InstanceOptions &options,
                                        Diagnostics &diagnostics);

/// Checks all kernels of the file, or the one named, as their declarations stand: the right ones, in the order of the
/// text, as are diagnostics. Of a file with syntax errors, what could be understood.
std::vector<std::unique_ptr<checked::Program>> checkAll(const Module &module, llvm::StringRef only, bool remarks,
                                                        Diagnostics &diagnostics);

} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_H
