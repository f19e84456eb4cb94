//===- VerifyAsync.cpp - Verifies that asynchronous results are waited for ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Results of a product are registers that change until it was waited for. They may be added to by a
// further product, go around a loop, and be waited for; any other use is one of a number that
// nobody knows. ptxas says nothing of it, and a run mostly shows nothing either.
//
// A wait is for what was committed: a product since which nothing was committed on some path is in
// a group that is not yet one. What copies are known by is a name alone.
//
// A ring's stages are filled by some threads and used by others: after a commit no way leads to a
// wait for the same ring, nor back, as each would wait for the other. Barriers are one ring's, or
// those of rings of the same shape, of which one is empty when the next is used; there are sixteen.
//
//===----------------------------------------------------------------------===//
#include "codegen/async/Operations.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/CFG.h"
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
    checkRings();
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
      if (kind == Kind::Products && commits.minCommitsSinceWaitedFor(wait) == 0)
        fail(wait, "waits for a product before it is committed");
    }
  }

  void checkRings() {
    SmallVector<Ring> rings;
    for (const Instruction &instruction : instructions(function)) {
      std::optional<RingOp> kind = ringOp(instruction);
      if (!kind)
        continue;
      auto &op = cast<CallInst>(instruction);
      bool isRing = kind == RingOp::Make || kind == RingOp::MakeCounted;
      if (isRing ? !isMadeOfConstants(op) : !isOfRing(op))
        fail(op, isRing ? "is not made of constants" : "is of no ring that the function makes");
      else if (isRing)
        rings.emplace_back(op);
    }
    for (const auto &[number, ring] : enumerate(rings)) {
      if (ring.endOfBarriers() > numBarriers)
        fail(ring.make, "needs barriers that there are not");
      for (const Ring &other : ArrayRef(rings).take_front(number))
        if (ring.shape.first < other.endOfBarriers() && other.shape.first < ring.endOfBarriers() &&
            !isSameShape(ring, other))
          fail(ring.make, "has barriers of another ring");
      checkSides(ring);
    }
  }

  /// But for the place of barriers.
  static bool isMadeOfConstants(const CallInst &make) {
    return all_of(make.args(), [](const Use &use) {
      return isa<ConstantInt>(use) || use->getType()->isPointerTy();
    });
  }
  static bool isOfRing(const CallInst &op) {
    auto *make = dyn_cast<CallInst>(op.getArgOperand(0));
    std::optional<RingOp> kind = make ? ringOp(*make) : std::nullopt;
    return kind == RingOp::Make || kind == RingOp::MakeCounted;
  }

  static bool isSameShape(const Ring &ring, const Ring &other) {
    const RingShape &one = ring.shape, &two = other.shape;
    return ring.isCounted == other.isCounted && one.first == two.first &&
           one.stages == two.stages && one.groups == two.groups && one.fillers == two.fillers &&
           one.users == two.users;
  }

  void checkSides(const Ring &ring) {
    SmallVector<const Instruction *> fills, uses;
    for (const User *user : ring.make.users()) {
      auto *op = cast<Instruction>(user);
      std::optional<RingOp> kind = ringOp(*op);
      bool isOfFull = kind == RingOp::Commit || (kind == RingOp::Wait && !ring.isCounted);
      if (isOfFull && ring.shape.groups == 0)
        fail(*op, "needs barriers that nobody waits at");
      bool isOfCounts = kind == RingOp::Init || kind == RingOp::Expect || kind == RingOp::Leave;
      if (isOfCounts && !ring.isCounted)
        fail(*op, "needs barriers that count bytes");
      if (kind == RingOp::Acquire || kind == RingOp::Commit || kind == RingOp::Expect ||
          kind == RingOp::Leave)
        fills.push_back(op);
      else if (kind == RingOp::Wait || kind == RingOp::Release)
        uses.push_back(op);
    }
    for (auto [from, to] : {std::pair(fills, uses), std::pair(uses, fills)}) {
      SmallPtrSet<const BasicBlock *, 16> reached;
      SmallVector<const BasicBlock *> blocks;
      for (const Instruction *op : from)
        blocks.push_back(op->getParent());
      while (!blocks.empty())
        if (const BasicBlock *block = blocks.pop_back_val(); reached.insert(block).second)
          append_range(blocks, successors(block));
      for (const Instruction *op : to)
        if (reached.contains(op->getParent()))
          return fail(*op, "can be reached from where the same ring's other side is");
    }
  }

  static constexpr unsigned numBarriers = 16;

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
