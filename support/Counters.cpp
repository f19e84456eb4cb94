//===- Counters.cpp - Counters of passes ----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "support/Counters.h"

using namespace tegula;

void Counters::add(llvm::StringRef pass, llvm::StringRef what, uint64_t by) {
  std::lock_guard<std::mutex> lock(mutex);
  counts[{pass.str(), what.str()}] += by;
}

uint64_t Counters::get(llvm::StringRef pass, llvm::StringRef what) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = counts.find({pass.str(), what.str()});
  return found == counts.end() ? 0 : found->second;
}

void Counters::print(llvm::raw_ostream &os) const {
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto &[key, number] : counts)
    os << key.first << ": " << number << " " << key.second << "\n";
}
