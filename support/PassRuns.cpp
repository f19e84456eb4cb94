//===- PassRuns.cpp - Which passes run, and which ran ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "support/PassRuns.h"
#include "llvm/ADT/STLExtras.h"

using namespace tegula;

PassRuns::PassRuns(const std::vector<std::string> &disabled, uint64_t most,
                   const std::vector<std::string> &needed, const std::vector<std::string> &enabled)
    : most(most) {
  for (const std::string &pass : disabled)
    this->disabled.insert(pass);
  for (const std::string &pass : needed)
    this->needed.insert(pass);
  for (const std::string &pass : enabled)
    this->enabled.insert(pass);
}

void PassRuns::begin() {
  std::lock_guard<std::mutex> lock(mutex);
  seen.clear();
  made.clear();
  asked.clear();
  spare.clear();
  leftOut = false;
}

bool PassRuns::shouldRun(llvm::StringRef pass, llvm::StringRef where) {
  std::lock_guard<std::mutex> lock(mutex);
  if (seen.insert(pass).second)
    asked.push_back(pass.str());
  if (disabled.contains(pass))
    return false;
  if (needed.contains(pass))
    return true;
  if (made.size() >= most) {
    leftOut = true;
    return false;
  }
  made.push_back({pass.str(), where.str()});
  return true;
}

bool PassRuns::shouldAdd(llvm::StringRef pass) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!llvm::is_contained(spare, pass))
    spare.push_back(pass.str());
  return enabled.contains(pass);
}

std::vector<PassRuns::Run> PassRuns::runs() const {
  std::lock_guard<std::mutex> lock(mutex);
  return made;
}

std::vector<std::string> PassRuns::passes() const {
  std::lock_guard<std::mutex> lock(mutex);
  return asked;
}

std::vector<std::string> PassRuns::spares() const {
  std::lock_guard<std::mutex> lock(mutex);
  return spare;
}

bool PassRuns::hasMore() const {
  std::lock_guard<std::mutex> lock(mutex);
  return leftOut;
}
