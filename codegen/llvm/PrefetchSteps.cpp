//===- PrefetchSteps.cpp - Loads some steps of a loop ahead ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How far ahead the steps of a load are is counted by one number for all loads of the loop, the
// steps that are left. Where fewer are left than a load is ahead, it loads the step's own elements
// once more, and nobody uses them: no branch, and no address outside of what the loop reads.
//
//===----------------------------------------------------------------------===//
#include "codegen/llvm/PrefetchSteps.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;
using namespace tegula;

/// Registers for what is on its way, and steps ahead at most: memory answers after some 600 to 1000
/// clocks, and steps of such loops take 200 to 500.
static constexpr unsigned maxRegisters = 48, maxAhead = 2, registerBytes = 4;
/// Loops of fewer steps are not worth what stands before them.
static constexpr unsigned fewestSteps = 4;

namespace {
struct StepLoad {
  LoadInst *load;
  const SCEV *first;    ///< address of the first step
  const SCEV *distance; ///< bytes from step to step
};

/// A loop and what it takes to load ahead in it.
class PrefetchedLoop {
public:
  PrefetchedLoop(Loop &loop, ScalarEvolution &evolution, DominatorTree &dominators)
      : loop(loop), evolution(evolution), dominators(dominators),
        layout(loop.getHeader()->getModule()->getDataLayout()) {}

  bool find();
  void emit();

private:
  bool hasState() const;
  void addLoad(LoadInst &load, SCEVExpander &expander);
  void emitLoad(const StepLoad &its, SCEVExpander &expander, ArrayRef<Value *> isLeft);

  Loop &loop;
  ScalarEvolution &evolution;
  DominatorTree &dominators;
  const DataLayout &layout;
  SmallVector<StepLoad> loads;
  const SCEV *further = nullptr; ///< steps after the first
  unsigned registers = 0, ahead = 0;
};
} // namespace

/// Whether steps wait for each other: the loop carries floats, and threads exchange something.
bool PrefetchedLoop::hasState() const {
  bool carries = any_of(loop.getHeader()->phis(), [](const PHINode &phi) {
    return phi.getType()->getScalarType()->isFloatingPointTy();
  });
  return carries && any_of(loop.blocks(), [](const BasicBlock *block) {
           return any_of(*block, [](const Instruction &each) {
             auto *call = dyn_cast<CallBase>(&each);
             return call && call->isConvergent();
           });
         });
}

void PrefetchedLoop::addLoad(LoadInst &load, SCEVExpander &expander) {
  if (!load.hasMetadata(LLVMContext::MD_invariant_load) || load.isVolatile() ||
      !dominators.dominates(load.getParent(), loop.getLoopLatch()))
    return;
  auto *place = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(load.getPointerOperand()));
  if (!place || place->getLoop() != &loop || !place->isAffine())
    return;
  const SCEV *first = place->getStart(), *distance = place->getStepRecurrence(evolution);
  Instruction *before = loop.getLoopPreheader()->getTerminator();
  if (!evolution.isLoopInvariant(distance, &loop) || !expander.isSafeToExpandAt(first, before) ||
      !expander.isSafeToExpandAt(distance, before))
    return;
  loads.push_back({&load, first, distance});
  registers += divideCeil(layout.getTypeStoreSize(load.getType()).getFixedValue(), registerBytes);
}

bool PrefetchedLoop::find() {
  if (!loop.isInnermost() || !loop.isLoopSimplifyForm() ||
      loop.getExitingBlock() != loop.getLoopLatch() || !hasState())
    return false;
  further = evolution.getBackedgeTakenCount(&loop);
  SCEVExpander expander(evolution, "ahead");
  if (isa<SCEVCouldNotCompute>(further) ||
      !expander.isSafeToExpandAt(further, loop.getLoopPreheader()->getTerminator()))
    return false;
  if (auto *known = dyn_cast<SCEVConstant>(further);
      known && known->getAPInt().ult(fewestSteps - 1))
    return false;
  for (BasicBlock *block : loop.blocks())
    for (Instruction &each : *block)
      if (auto *load = dyn_cast<LoadInst>(&each))
        addLoad(*load, expander);
  ahead = registers ? std::min(maxAhead, maxRegisters / registers) : 0;
  return ahead > 0;
}

/// `isLeft`: whether there is a step that many and one after the current one.
void PrefetchedLoop::emitLoad(const StepLoad &its, SCEVExpander &expander,
                              ArrayRef<Value *> isLeft) {
  BasicBlock *before = loop.getLoopPreheader(), *header = loop.getHeader(),
             *latch = loop.getLoopLatch();
  Instruction *begin = before->getTerminator();
  Type *type = its.load->getType();
  Value *first = expander.expandCodeFor(its.first, its.load->getPointerOperandType(), begin),
        *distance = expander.expandCodeFor(its.distance, its.distance->getType(), begin);
  auto copyAt = [&](IRBuilder<> &b, Value *place) {
    auto *copy = cast<LoadInst>(its.load->clone());
    copy->setOperand(LoadInst::getPointerOperandIndex(), place);
    b.Insert(copy, "ahead");
    return copy;
  };
  // What the loop's first steps take, the first of them first.
  IRBuilder<> outside(begin);
  SmallVector<PHINode *> waiting;
  IRBuilder<> atHeader(header, header->begin());
  for (unsigned number = 0; number < ahead; ++number) {
    Value *place = first;
    for (unsigned n = 0; n < number; ++n) {
      Value *moved = outside.CreateGEP(outside.getInt8Ty(), place, distance);
      place = outside.CreateSelect(isLeft[n], moved, place);
    }
    PHINode *phi = atHeader.CreatePHI(type, 2, "waiting");
    phi->addIncoming(copyAt(outside, place), before);
    waiting.push_back(phi);
  }
  // In a step: what the step in `ahead` steps takes.
  IRBuilder<> b(its.load);
  Value *by = distance;
  for (unsigned n = 1; n < ahead; ++n)
    by = b.CreateAdd(by, distance);
  by = b.CreateSelect(isLeft.back(), by, Constant::getNullValue(by->getType()));
  Value *place = its.load->getPointerOperand();
  LoadInst *next = copyAt(b, b.CreateGEP(b.getInt8Ty(), place, by));
  its.load->replaceAllUsesWith(waiting.front());
  for (unsigned number = 0; number < ahead; ++number)
    waiting[number]->addIncoming(
        number + 1 < ahead ? static_cast<Value *>(waiting[number + 1]) : next, latch);
  its.load->eraseFromParent();
}

void PrefetchedLoop::emit() {
  BasicBlock *before = loop.getLoopPreheader(), *header = loop.getHeader(),
             *latch = loop.getLoopLatch();
  SCEVExpander expander(evolution, "ahead");
  Instruction *begin = before->getTerminator();
  Value *all = expander.expandCodeFor(further, further->getType(), begin);
  IRBuilder<> outside(begin), inside(header, header->begin());
  PHINode *left = inside.CreatePHI(all->getType(), 2, "left");
  left->addIncoming(all, before);
  inside.SetInsertPoint(header, header->getFirstInsertionPt());
  // Before the loop for the steps up to `ahead`, in it for the one that is as far.
  SmallVector<Value *> isLeft;
  for (unsigned number = 1; number < ahead; ++number)
    isLeft.push_back(outside.CreateICmpUGE(all, ConstantInt::get(all->getType(), number)));
  isLeft.push_back(inside.CreateICmpUGE(left, ConstantInt::get(all->getType(), ahead)));
  left->addIncoming(
      IRBuilder<>(latch->getTerminator()).CreateSub(left, ConstantInt::get(left->getType(), 1)),
      latch);
  for (const StepLoad &each : loads)
    emitLoad(each, expander, isLeft);
}

PreservedAnalyses PrefetchStepsPass::run(Function &function, FunctionAnalysisManager &analyses) {
  OptPassGate &gate = function.getContext().getOptPassGate();
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  if (loops.empty() ||
      (gate.isEnabled() && !gate.shouldRunPass("prefetch-steps", function.getName())))
    return PreservedAnalyses::all();
  auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  bool isChanged = false;
  for (Loop *outermost : loops)
    isChanged |= simplifyLoop(outermost, &dominators, &loops, &evolution, nullptr, nullptr,
                              /*PreserveLCSSA=*/false);
  for (Loop *loop : loops.getLoopsInPreorder())
    if (PrefetchedLoop prefetched(*loop, evolution, dominators); prefetched.find()) {
      prefetched.emit();
      evolution.forgetLoop(loop);
      isChanged = true;
    }
  return isChanged ? PreservedAnalyses::none() : PreservedAnalyses::all();
}
