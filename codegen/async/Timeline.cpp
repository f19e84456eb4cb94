//===- Timeline.cpp - Marks in time of what a launch does ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/async/Timeline.h"

#include "codegen/async/Operations.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::async;

/// What people call the operation, where it is one that has marks.
static std::optional<std::pair<StringRef, bool>> nameOf(const Instruction &instruction) {
  constexpr bool waits = true;
  using Named = std::pair<StringRef, bool>;
  if (std::optional<RingOp> op = ringOp(instruction))
    switch (*op) {
    case RingOp::Acquire:
      return Named{"wait for an empty stage", waits};
    case RingOp::Wait:
      return Named{"wait for a full stage", waits};
    case RingOp::Commit:
    case RingOp::Expect:
      return Named{"stage filled", !waits};
    case RingOp::Release:
      return Named{"stage used", !waits};
    default:
      return std::nullopt;
    }
  if (isWait(instruction, Kind::Copies))
    return Named{"wait for copies", waits};
  if (isWait(instruction, Kind::Products))
    return Named{"wait for products", waits};
  const auto *call = dyn_cast<CallInst>(&instruction);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  if (!callee || !callee->isIntrinsic())
    return std::nullopt;
  StringRef name = callee->getName();
  if (name.starts_with("llvm.nvvm.barrier.cta.sync") ||
      name.starts_with("llvm.nvvm.barrier.cta.red"))
    return Named{"barrier", waits};
  if (name.starts_with("llvm.nvvm.barrier.cluster.wait"))
    return Named{"barrier of the cluster", waits};
  if (name == "llvm.nvvm.griddepcontrol.wait")
    return Named{"wait for the launch before", waits};
  return std::nullopt;
}

namespace {
/// One device function.
class Marker {
public:
  Marker(Function &function, Argument &tensor, Timeline &timeline)
      : function(function), tensor(tensor), timeline(timeline), b(function.getContext()) {}
  void run();

private:
  Value *read(Intrinsic::ID id) { return b.CreateIntrinsic(id, {}); }
  Value *wordAt(Value *chunk, Value *word) {
    return b.CreateInBoundsGEP(b.getInt64Ty(), chunk, word);
  }
  void store(Value *chunk, unsigned word, Value *value) {
    b.CreateStore(b.CreateZExtOrTrunc(value, b.getInt64Ty()), wordAt(chunk, b.getInt64(word)));
  }
  void takeChunk();
  void mark(Instruction *before, Timeline::Mark::Kind kind, StringRef text);
  void end(Instruction *before);
  unsigned numberOf(Timeline::Mark::Kind kind, StringRef text);

  Function &function;
  Argument &tensor;
  Timeline &timeline;
  IRBuilder<> b;
  AllocaInst *chunkPlace = nullptr, *countPlace = nullptr;
};
} // namespace

/// Of the thread: the address of its chunk, null for none, and how many marks it has made.
void Marker::takeChunk() {
  Instruction *first = &*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca();
  b.SetInsertPoint(first);
  Type *address = tensor.getType();
  chunkPlace = b.CreateAlloca(address);
  countPlace = b.CreateAlloca(b.getInt32Ty());
  b.CreateStore(Constant::getNullValue(address), chunkPlace);
  b.CreateStore(b.getInt32(0), countPlace);
  Value *isFirst = b.CreateICmpEQ(read(Intrinsic::nvvm_read_ptx_sreg_laneid), b.getInt32(0));
  Instruction *asFirst = SplitBlockAndInsertIfThen(isFirst, first, /*Unreachable=*/false);
  b.SetInsertPoint(asFirst);
  Value *taken =
      b.CreateAtomicRMW(AtomicRMWInst::Add, &tensor, b.getInt64(Timeline::chunkWords), Align(8),
                        AtomicOrdering::Monotonic, b.getContext().getOrInsertSyncScopeID("device"));
  Value *fits = b.CreateICmpULE(taken, b.getInt64(Timeline::words - Timeline::chunkWords - 1));
  Instruction *withRoom = SplitBlockAndInsertIfThen(fits, asFirst, /*Unreachable=*/false);
  b.SetInsertPoint(withRoom);
  Value *chunk = wordAt(&tensor, b.CreateAdd(taken, b.getInt64(1)));
  b.CreateStore(chunk, chunkPlace);
  store(chunk, 0, b.getInt64(timeline.functions.size()));
  store(chunk, 1, read(Intrinsic::nvvm_read_ptx_sreg_ctaid_x));
  store(chunk, 2, b.CreateLShr(read(Intrinsic::nvvm_read_ptx_sreg_tid_x), b.getInt32(5)));
  store(chunk, 3, read(Intrinsic::nvvm_read_ptx_sreg_smid));
  store(chunk, 4, read(Intrinsic::nvvm_read_ptx_sreg_globaltimer));
  store(chunk, 5, read(Intrinsic::nvvm_read_ptx_sreg_clock64));
}

unsigned Marker::numberOf(Timeline::Mark::Kind kind, StringRef text) {
  auto found = find_if(timeline.marks, [&](const Timeline::Mark &one) {
    return one.kind == kind && one.text == text;
  });
  if (found == timeline.marks.end())
    found = timeline.marks.insert(found, {kind, text.str()});
  return found - timeline.marks.begin();
}

void Marker::mark(Instruction *before, Timeline::Mark::Kind kind, StringRef text) {
  b.SetInsertPoint(before);
  Value *chunk = b.CreateLoad(tensor.getType(), chunkPlace);
  Value *count = b.CreateLoad(b.getInt32Ty(), countPlace);
  b.CreateStore(b.CreateAdd(count, b.getInt32(1)), countPlace);
  Value *isKept =
      b.CreateAnd(b.CreateIsNotNull(chunk), b.CreateICmpULT(count, b.getInt32(Timeline::maxMarks)));
  b.SetInsertPoint(SplitBlockAndInsertIfThen(isKept, before, /*Unreachable=*/false));
  Value *word = b.CreateAdd(b.CreateShl(b.CreateZExt(count, b.getInt64Ty()), 1),
                            b.getInt64(Timeline::headerWords));
  b.CreateStore(read(Intrinsic::nvvm_read_ptx_sreg_clock64), wordAt(chunk, word));
  b.CreateStore(b.getInt64(numberOf(kind, text)), wordAt(chunk, b.CreateAdd(word, b.getInt64(1))));
}

void Marker::end(Instruction *before) {
  b.SetInsertPoint(before);
  Value *chunk = b.CreateLoad(tensor.getType(), chunkPlace);
  Value *count = b.CreateLoad(b.getInt32Ty(), countPlace);
  b.SetInsertPoint(
      SplitBlockAndInsertIfThen(b.CreateIsNotNull(chunk), before, /*Unreachable=*/false));
  store(chunk, 6, read(Intrinsic::nvvm_read_ptx_sreg_globaltimer));
  store(chunk, 7, read(Intrinsic::nvvm_read_ptx_sreg_clock64));
  store(chunk, 8, count);
}

void Marker::run() {
  timeline.functions.push_back(function.getName().str());
  SmallVector<Instruction *> waits, instants, ends;
  for (Instruction &instruction : instructions(function)) {
    if (isa<ReturnInst>(instruction))
      ends.push_back(&instruction);
    else if (std::optional<std::pair<StringRef, bool>> named = nameOf(instruction))
      (named->second ? waits : instants).push_back(&instruction);
  }
  takeChunk();
  for (Instruction *one : waits) {
    StringRef text = nameOf(*one)->first;
    mark(one, Timeline::Mark::Begin, text);
    mark(one->getNextNode(), Timeline::Mark::End, text);
  }
  for (Instruction *one : instants)
    mark(one->getNextNode(), Timeline::Mark::Instant, nameOf(*one)->first);
  for (Instruction *one : ends)
    end(one);
}

/// What is called in a function is part of it.
static void inlineCalls(Function &function) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Instruction &instruction : instructions(function)) {
      auto *call = dyn_cast<CallInst>(&instruction);
      Function *callee = call ? call->getCalledFunction() : nullptr;
      if (!callee || callee->isDeclaration() || !callee->hasFnAttribute(Attribute::AlwaysInline))
        continue;
      InlineFunctionInfo info;
      if (InlineFunction(*call, info).isSuccess()) {
        changed = true;
        break;
      }
    }
  }
}

Timeline tegula::async::markTimeline(Module &module) {
  Timeline timeline;
  for (Function &function : module)
    for (Argument &argument : function.args())
      if (argument.getName() == Timeline::tensorName && !function.isDeclaration()) {
        inlineCalls(function);
        Marker(function, argument, timeline).run();
        break;
      }
  return timeline;
}
