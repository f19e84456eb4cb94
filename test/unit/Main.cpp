//===- Main.cpp - Runs unit tests, and tells CTest of skipped ones ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "gtest/gtest.h"

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  int code = RUN_ALL_TESTS();
  constexpr int skipped = 77; // SKIP_RETURN_CODE in test/CMakeLists.txt
  return code == 0 && testing::UnitTest::GetInstance()->skipped_test_count() > 0 ? skipped : code;
}
