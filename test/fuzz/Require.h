//===- Require.h - What must hold whatever the input is -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TEST_FUZZ_REQUIRE_H
#define TEGULA_TEST_FUZZ_REQUIRE_H
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

namespace tegula {

/// Ends the process, which a fuzzer takes for a crash, where it does not hold. Not an assertion:
/// release builds are fuzzed too.
inline void require(bool holds, const char *what) {
  if (holds)
    return;
  llvm::errs() << "violated: " << what << '\n';
  abort();
}

} // namespace tegula

#endif // TEGULA_TEST_FUZZ_REQUIRE_H
