//===- Async.cpp - Asynchronous copies, MMAs and barriers as calls in LLVM IR ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/async/Async.h"
#include "codegen/async/Operations.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::async;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static constexpr StringLiteral commitCopiesName = "tegula.cp.async.commit",
                               awaitCopiesName = "tegula.cp.async.await",
                               awaitProductsName = "tegula.wgmma.await",
                               readProductsName = "tegula.wgmma.read";

/// In the order of RingOp.
static constexpr StringLiteral ringNames[] = {
    "tegula.ring",        "tegula.ring.counted", "tegula.ring.acquire",
    "tegula.ring.commit", "tegula.ring.wait",    "tegula.ring.release",
    "tegula.ring.init",   "tegula.ring.expect",  "tegula.ring.leave"};

/// A call of the operation, whose name ends in what tells functions of different types apart.
static CallInst *call(IRBuilder<> &b, const Twine &name, Type *result, ArrayRef<Value *> operands) {
  SmallVector<Type *> types;
  for (Value *operand : operands)
    types.push_back(operand->getType());
  Module &module = *b.GetInsertBlock()->getModule();
  FunctionCallee callee =
      module.getOrInsertFunction(name.str(), FunctionType::get(result, types, false));
  CallInst *made = b.CreateCall(callee, operands);
  made->setConvergent();
  return made;
}

static StringRef nameOf(Type *type) { return type->isFloatTy() ? "f32" : "i32"; }

Value *async::commitCopies(IRBuilder<> &b) { return call(b, commitCopiesName, b.getInt32Ty(), {}); }

Value *async::noCopies(IRBuilder<> &b) { return PoisonValue::get(b.getInt32Ty()); }

void async::awaitCopies(IRBuilder<> &b, Value *copies) {
  call(b, awaitCopiesName, b.getVoidTy(), copies);
}

void async::awaitAllCopies(IRBuilder<> &b) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_wait_all, {});
}

void async::commitProducts(IRBuilder<> &b) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_wgmma_commit_group_sync_aligned, {});
}

void async::awaitProducts(IRBuilder<> &b, Value *sum) {
  call(b, awaitProductsName + "." + nameOf(sum->getType()), b.getVoidTy(), sum);
}

SmallVector<Value *> async::readProducts(IRBuilder<> &b, ArrayRef<Value *> values) {
  Type *type = values.front()->getType();
  auto *results = StructType::get(b.getContext(), SmallVector<Type *>(values.size(), type));
  CallInst *read =
      call(b, readProductsName + "." + nameOf(type) + "." + Twine(values.size()), results, values);
  SmallVector<Value *> ready;
  for (unsigned n = 0; n < values.size(); ++n)
    ready.push_back(b.CreateExtractValue(read, n));
  return ready;
}

static Value *callOfRing(IRBuilder<> &b, RingOp op, ArrayRef<Value *> operands) {
  bool isRing = op == RingOp::Make || op == RingOp::MakeCounted;
  Type *result = isRing                 ? b.getInt32Ty()
                 : op == RingOp::Expect ? PointerType::get(b.getContext(), 3)
                                        : b.getVoidTy();
  return call(b, ringNames[unsigned(op)], result, operands);
}

Value *async::makeRing(IRBuilder<> &b, const RingShape &shape) {
  return callOfRing(b, RingOp::Make,
                    {b.getInt32(shape.first), b.getInt32(shape.stages), b.getInt32(shape.groups),
                     b.getInt32(shape.fillers), b.getInt32(shape.users),
                     b.getInt1(shape.fillersPublish)});
}

Value *async::makeCountedRing(IRBuilder<> &b, const RingShape &shape, Value *barriers) {
  return callOfRing(b, RingOp::MakeCounted,
                    {b.getInt32(shape.first), b.getInt32(shape.stages), b.getInt32(shape.fillers),
                     b.getInt32(shape.users), barriers});
}

void async::acquire(IRBuilder<> &b, Value *ring, Value *number) {
  callOfRing(b, RingOp::Acquire, {ring, number});
}
void async::commit(IRBuilder<> &b, Value *ring, Value *number) {
  callOfRing(b, RingOp::Commit, {ring, number});
}
void async::wait(IRBuilder<> &b, Value *ring, Value *number, Value *group) {
  callOfRing(b, RingOp::Wait, {ring, number, group});
}
void async::release(IRBuilder<> &b, Value *ring, Value *number) {
  callOfRing(b, RingOp::Release, {ring, number});
}
void async::initRing(IRBuilder<> &b, Value *ring) { callOfRing(b, RingOp::Init, {ring}); }
Value *async::expectBytes(IRBuilder<> &b, Value *ring, Value *number, unsigned bytes) {
  return callOfRing(b, RingOp::Expect, {ring, number, b.getInt32(bytes)});
}

void async::leave(IRBuilder<> &b, Value *ring, Value *number) {
  callOfRing(b, RingOp::Leave, {ring, number});
}

void async::initCounts(IRBuilder<> &b, ArrayRef<Value *> barriers) {
  for (Value *barrier : barriers)
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_mbarrier_init_shared,
                      {barrier, b.getInt32(1)});
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_fence_mbarrier_init_release_cluster, {});
}

void async::expect(IRBuilder<> &b, Value *barrier, Value *bytes) {
  b.CreateIntrinsic(b.getInt64Ty(), Intrinsic::nvvm_mbarrier_arrive_expect_tx_scope_cta_space_cta,
                    {barrier, bytes});
}

void async::storeToCluster(IRBuilder<> &b, Value *to, ArrayRef<Value *> floats, Value *barrier) {
  assert((floats.size() == 1 || floats.size() == 4) && "st.async has one word or four");
  bool isOne = floats.size() == 1;
  SmallVector<Value *> operands{to};
  append_range(operands, floats);
  operands.push_back(barrier);
  SmallVector<Type *> types =
      map_to_vector(operands, [](Value *operand) { return operand->getType(); });
  StringRef text =
      isOne ? "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [$0], $1, [$2];"
            : "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [$0], {$1, $2, "
              "$3, $4}, [$5];";
  StringRef constraints = isOne ? "l,f,l,~{memory}" : "l,f,f,f,f,l,~{memory}";
  b.CreateCall(InlineAsm::get(FunctionType::get(b.getVoidTy(), types, false), text, constraints,
                              /*hasSideEffects=*/true),
               operands);
}

void async::awaitPhase(IRBuilder<> &b, Value *barrier, Value *parity, bool ofCluster) {
  BasicBlock *before = b.GetInsertBlock();
  BasicBlock *complete =
      BasicBlock::Create(b.getContext(), "complete", before->getParent(), before->getNextNode());
  BasicBlock *look = BasicBlock::Create(b.getContext(), "look", before->getParent(), complete);
  b.CreateBr(look);
  b.SetInsertPoint(look);
  Intrinsic::ID id = ofCluster ? Intrinsic::nvvm_mbarrier_try_wait_parity_scope_cluster_space_cta
                               : Intrinsic::nvvm_mbarrier_try_wait_parity_scope_cta_space_cta;
  Value *isOver = b.CreateIntrinsic(b.getInt1Ty(), id, {barrier, parity});
  b.CreateCondBr(isOver, complete, look);
  b.SetInsertPoint(complete);
}

void async::syncCluster(IRBuilder<> &b) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cluster_arrive_aligned, {});
  awaitCluster(b);
}

void async::arriveAtCluster(IRBuilder<> &b) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cluster_arrive_relaxed_aligned, {});
}

void async::awaitCluster(IRBuilder<> &b) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cluster_wait_aligned, {});
}

void async::publish(IRBuilder<> &b) {
  auto *type = FunctionType::get(b.getVoidTy(), false);
  b.CreateCall(
      InlineAsm::get(type, "fence.proxy.async.shared::cta;", "~{memory}", /*hasSideEffects=*/true));
}

//===----------------------------------------------------------------------===//
// Which they are
//===----------------------------------------------------------------------===//

static bool calls(const Instruction &instruction, StringRef name) {
  auto *made = dyn_cast<CallInst>(&instruction);
  const Function *callee = made ? made->getCalledFunction() : nullptr;
  if (!callee)
    return false;
  StringRef own = callee->getName();
  return own.consume_front(name) && (own.empty() || own.front() == '.');
}

static bool isIntrinsic(const Instruction &instruction, Intrinsic::ID id) {
  auto *made = dyn_cast<CallInst>(&instruction);
  return made && made->getIntrinsicID() == id;
}

bool async::isProduct(const Instruction &instruction) {
  auto *made = dyn_cast<CallInst>(&instruction);
  auto *text = made ? dyn_cast<InlineAsm>(made->getCalledOperand()) : nullptr;
  return text && text->getAsmString().contains("wgmma.mma_async");
}

bool async::isCommit(const Instruction &instruction, Kind kind) {
  return kind == Kind::Copies
             ? calls(instruction, commitCopiesName)
             : isIntrinsic(instruction, Intrinsic::nvvm_wgmma_commit_group_sync_aligned);
}

bool async::isRead(const Instruction &instruction) { return calls(instruction, readProductsName); }

bool async::isAwait(const Instruction &instruction, Kind kind) {
  return calls(instruction, kind == Kind::Copies ? awaitCopiesName : awaitProductsName);
}

bool async::isWait(const Instruction &instruction, Kind kind) {
  return isAwait(instruction, kind) || (kind == Kind::Products && isRead(instruction));
}

/// What an element of a product's results is a result of.
static Value *wholeOf(Value *value) {
  auto *element = dyn_cast<ExtractValueInst>(value);
  return element ? element->getAggregateOperand() : value;
}

Instruction *async::startOf(Value *value, Kind kind) {
  auto *made = dyn_cast<Instruction>(wholeOf(value));
  bool starts = made && (kind == Kind::Copies ? isCommit(*made, kind) : isProduct(*made));
  return starts ? made : nullptr;
}

std::optional<RingOp> async::ringOp(const Instruction &instruction) {
  auto *made = dyn_cast<CallInst>(&instruction);
  const Function *callee = made ? made->getCalledFunction() : nullptr;
  if (!callee || !callee->getName().starts_with(ringNames[0]))
    return std::nullopt;
  auto found = find(ringNames, callee->getName());
  return found == std::end(ringNames) ? std::nullopt
                                      : std::optional(RingOp(found - std::begin(ringNames)));
}

static unsigned constantOf(const Value *value) { return cast<ConstantInt>(value)->getZExtValue(); }

Ring::Ring(const CallInst &make) : make(make), isCounted(ringOp(make) == RingOp::MakeCounted) {
  auto take = [&, next = 0u]() mutable { return constantOf(make.getArgOperand(next++)); };
  shape.first = take();
  shape.stages = take();
  shape.groups = isCounted ? 0 : take();
  shape.fillers = take();
  shape.users = take();
  shape.fillersPublish = !isCounted && take();
}

Ring async::ringOf(const CallInst &op) { return Ring(cast<CallInst>(*op.getArgOperand(0))); }

//===----------------------------------------------------------------------===//
// How long something has been under way
//===----------------------------------------------------------------------===//

Commits::Commits(const Function &function, Kind kind) : kind(kind) {
  for (const Instruction &instruction : instructions(function))
    if (isCommit(instruction, kind))
      ofBlock[instruction.getParent()].push_back(&instruction);
}

unsigned Commits::between(const BasicBlock *block, const Instruction *after,
                          const Instruction *before) const {
  auto found = ofBlock.find(block);
  if (found == ofBlock.end())
    return 0;
  return count_if(found->second, [&](const Instruction *commit) {
    return (!after || after->comesBefore(commit)) && (!before || commit->comesBefore(before));
  });
}

/// Goes backwards along all paths, the one with the fewest commits first; through a loop's or a
/// branch's values to what came to them along each path.
std::optional<unsigned> Commits::minCommitsSince(Value *value, Instruction *wait) const {
  struct Place {
    unsigned commits; ///< from here to the wait
    Value *value;
    BasicBlock *block;
    Instruction *before; ///< null: the block's end
  };
  auto isLater = [](const Place &x, const Place &y) { return x.commits > y.commits; };
  SmallVector<Place> heap{{0, value, wait->getParent(), wait}};
  DenseSet<std::pair<Value *, BasicBlock *>> seen; // at the block's end
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), isLater);
    Place place = heap.pop_back_val();
    if (!place.before && !seen.insert({place.value, place.block}).second)
      continue;
    Instruction *start = startOf(place.value, kind);
    if (start && start->getParent() == place.block)
      return place.commits + between(place.block, start, place.before);
    auto *phi = dyn_cast<PHINode>(place.value);
    if (!start && !phi)
      continue; // nothing that is under way
    unsigned commits = place.commits + between(place.block, nullptr, place.before);
    for (BasicBlock *from : predecessors(place.block)) {
      bool isMade = phi && phi->getParent() == place.block;
      heap.push_back(
          {commits, isMade ? phi->getIncomingValueForBlock(from) : place.value, from, nullptr});
      std::push_heap(heap.begin(), heap.end(), isLater);
    }
  }
  return std::nullopt;
}

std::optional<unsigned> Commits::minCommitsSinceWaitedFor(CallInst &wait) const {
  std::optional<unsigned> fewest;
  for (Value *value : wait.args())
    if (std::optional<unsigned> since = minCommitsSince(value, &wait))
      fewest = std::min(*since, fewest.value_or(*since));
  return fewest;
}
