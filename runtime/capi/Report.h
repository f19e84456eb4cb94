//===- Report.h - Messages of the C interface ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_CAPI_REPORT_H
#define TEGULA_RUNTIME_CAPI_REPORT_H

#include "frontend/diagnostics/Diagnostics.h"
#include "tegula/tegula.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <cstring>

namespace tegula::capi {

/// Where the messages of one call go: at most one object, made when something is said.
class Report {
public:
  explicit Report(tegula_message **target) : target(target) {
    if (target)
      *target = nullptr;
  }

  /// The diagnostics of a program; those of a call follow them.
  void add(const Diagnostics &diagnostics);
  /// What is wrong with the call or the machine, in words. Gives the status back.
  tegula_status fail(tegula_status status, const llvm::Twine &message);
  /// The status that an error stands for.
  tegula_status fail(llvm::Error error);

private:
  void append(llvm::StringRef lines, llvm::StringRef rendered);
  tegula_message **target;
};

/// The caller's structure as ours knows it: members that the caller's version lacks are zero. False
/// where the caller did not set `struct_bytes`.
template <typename Options> bool readOptions(const Options *given, Options &options) {
  std::memset(&options, 0, sizeof(options));
  if (!given)
    return true;
  if (given->struct_bytes < sizeof(size_t))
    return false;
  std::memcpy(&options, given, std::min(given->struct_bytes, sizeof(options)));
  return true;
}

} // namespace tegula::capi

#endif // TEGULA_RUNTIME_CAPI_REPORT_H
