//===- VerifyAsync.cpp - Whether what is under way is waited for ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Results of a product are registers that change until it was waited for. They may be added to by a further product, go
// around a loop, and be waited for; any other use is one of a number that nobody knows. ptxas says nothing of it, and a
// run mostly shows nothing either.
//
// A wait is for what was committed: a product since which nothing was committed on some path is in a group that is not yet
// one. What copies are known by is a name alone.
//
//===----------------------------------------------------------------------===//
#include "codegen/async/Operations.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::async;

namespace {
class Verifier {
public:
  explicit Verifier(const Function &function) : function(function) {}

  std::string run() {
    for (const Instruction &instruction : instructions(function))
      if (isProduct(instruction) || isCommit(instruction, Kind::Copies))
        underWay.insert(&instruction);
    for (size_t n = 0; n < underWay.size(); ++n) // grows
      checkUses(*underWay[n]);
    for (Kind kind : {Kind::Copies, Kind::Products})
      checkWaits(kind);
    return failures;
  }

private:
  void checkUses(const Instruction &value) {
    for (const User *user : value.users()) {
      auto *use = cast<Instruction>(user);
      if (isa<PHINode, ExtractValueInst>(use))
        underWay.insert(use);
      else if (!isWait(*use, Kind::Copies) && !isWait(*use, Kind::Products) && !isProduct(*use))
        fail(*use, "uses what is under way");
    }
  }

  void checkWaits(Kind kind) {
    Commits commits(function, kind);
    for (const Instruction &instruction : instructions(function)) {
      if (!isWait(instruction, kind))
        continue;
      auto &wait = const_cast<CallInst &>(cast<CallInst>(instruction)); // which is not changed
      if (kind == Kind::Products && commits.fewestSinceWaitedFor(wait) == 0)
        fail(wait, "waits for a product before it is committed");
    }
  }

  void fail(const Instruction &instruction, StringRef why) {
    raw_string_ostream(failures) << function.getName() << ": " << instruction << " " << why << "\n";
  }

  const Function &function;
  SetVector<const Instruction *> underWay;
  std::string failures;
};
} // namespace

Error async::verifyAsync(const Function &function) {
  std::string failures = Verifier(function).run();
  return failures.empty() ? Error::success() : createStringError(StringRef(failures).rtrim());
}

Error async::verifyAsync(const Module &module) {
  Error error = Error::success();
  for (const Function &function : module)
    error = joinErrors(std::move(error), verifyAsync(function));
  return error;
}
