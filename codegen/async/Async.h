//===- Async.h - Asynchronous copies, MMAs and barriers as calls in LLVM IR -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Device code starts copies and products of tensor cores and goes on. It says what it waits for,
// not how: operations that only LLVM IR has, calls of functions `tegula.*`, which passes over it
// turn into the hardware's before anything else is done with it.
//
//   copies     %c = call i32 @tegula.cp.async.commit()     the copies that the thread has started
//   since the last commit: one
//              call void @tegula.cp.async.await(i32 %c)    thing under way, %c. Waits until it has
//              come.
//   products   wgmma's results are under way as well: registers that only products, commits and
//   waits may take.
//              call void @tegula.wgmma.await(float %sum)   Waits until the product that %sum is of
//              has read its operands; %s = call { .. } @tegula.wgmma.read(..)     the same, and its
//              results, of which all that is known is that
//                                                          they are ready. Values that are not
//                                                          under way come out as they are.
//   rings      Stages of shared memory that some threads fill and others use, one after the other;
//   stage n of all that go
//              through a ring is its n % stages-th. A barrier for each says that it is full,
//              another that it is empty. %r = call i32 @tegula.ring(i32 first, i32 stages, i32
//              groups, i32 fillers, i32 users, i1 fillersPublish) call void
//              @tegula.ring.acquire(i32 %r, i32 %n)           by all fillers: until nobody uses
//              what lies there call void @tegula.ring.commit(i32 %r, i32 %n)            it is full:
//              what they have stored is for users call void @tegula.ring.wait(i32 %r, i32 %n, i32
//              %group)  by a group of users: until it is full call void @tegula.ring.release(i32
//              %r, i32 %n)           by all users; only where it is filled again
//   counted    rings are filled by copies in bulk, whose bytes barriers in shared memory count.
//              %r = call i32 @tegula.ring.counted(i32 first, i32 stages, i32 fillers, i32 users,
//              ptr addrspace(3) %barriers) call void @tegula.ring.init(i32 %r) by one thread,
//              before the others come to a barrier %b = call ptr addrspace(3)
//              @tegula.ring.expect(i32 %r, i32 %n, i32 %bytes)
//                                                                       by one filler, in place of
//                                                                       a commit: copies of so many
//                                                                       bytes are started, which
//                                                                       tell %b
//              call void @tegula.ring.leave(i32 %r, i32 %n)             by one filler, of one of
//              the ring's first stages, in place
//                                                                       of acquire and expect:
//                                                                       users fill it themselves,
//                                                                       wait for their copies as
//                                                                       well as for the stage,
//                                                                       publish, and meet
//
// Hardware knows no names for what is under way: it waits until all but the last N commits are
// done. `count-groups` finds every N. `place-fences` makes what is stored in the ordinary way
// visible to products and copies in bulk, `lower-rings` makes barriers of rings. `verify-async`
// refuses code in which sums under way are used, a wait is for what was not committed, a thread
// fills a ring and uses it, rings share barriers, or bytes are expected of a ring that counts none.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_ASYNC_ASYNC_H
#define TEGULA_CODEGEN_ASYNC_ASYNC_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Support/Error.h"

namespace tegula::async {

using Value = llvm::Value;

/// All copies that the thread has started since the last commit; an i32 that only `awaitCopies` and
/// loops take.
Value *commitCopies(llvm::IRBuilder<> &builder);
/// An initial value for a loop that carries copies: waiting for it is a no-op.
Value *noCopies(llvm::IRBuilder<> &builder);
void awaitCopies(llvm::IRBuilder<> &builder, Value *copies);
/// Waits for all committed copies.
void awaitAllCopies(llvm::IRBuilder<> &builder);

void commitProducts(llvm::IRBuilder<> &builder);
/// Waits until the MMA that produces `sum` has read its operands.
void awaitProducts(llvm::IRBuilder<> &builder, Value *sum);
/// The values, with those of products ready.
llvm::SmallVector<Value *> readProducts(llvm::IRBuilder<> &builder, llvm::ArrayRef<Value *> values);

/// A ring that threads fill by loads and stores, or copies of their own.
struct RingShape {
  unsigned first; ///< of the named barriers that are its own: (groups + 1) * stages; those for
                  ///< empty stages come last
  unsigned stages;
  unsigned groups;  ///< of users, each told that a stage is full by barriers of its own; 0: users
                    ///< know by another ring
  unsigned fillers; ///< threads that come to its barriers
  unsigned users;   ///< the same, of all groups
  /// A fence makes stores visible to products. Either side can have it: fillers, where nothing of
  /// theirs is under way that it would wait for; else users.
  bool fillersPublish;
};
Value *makeRing(llvm::IRBuilder<> &builder, const RingShape &shape);
/// One whose stages have a barrier of 8 bytes each from `barriers` on, and named ones, from
/// `shape.first` on, where empty.
Value *makeCountedRing(llvm::IRBuilder<> &builder, const RingShape &shape, Value *barriers);
/// `number`, `group`: i32.
void acquire(llvm::IRBuilder<> &builder, Value *ring, Value *number);
void commit(llvm::IRBuilder<> &builder, Value *ring, Value *number);
void wait(llvm::IRBuilder<> &builder, Value *ring, Value *number, Value *group);
void release(llvm::IRBuilder<> &builder, Value *ring, Value *number);
void initRing(llvm::IRBuilder<> &builder, Value *ring);
Value *expectBytes(llvm::IRBuilder<> &builder, Value *ring, Value *number, unsigned bytes);
void leave(llvm::IRBuilder<> &builder, Value *ring, Value *number);

/// Barriers in shared memory, of 8 bytes, that count the bytes of copies and stores: a phase is
/// over when all that `expect` told have come. By one thread; others may use them after a barrier
/// of the block, or of the cluster.
void initCounts(llvm::IRBuilder<> &builder, llvm::ArrayRef<Value *> barriers);
void expect(llvm::IRBuilder<> &builder, Value *barrier, Value *bytes);
/// Floats (one, or four at a multiple of 16 bytes) to `to` of a block of the cluster, whose barrier
/// counts them; addresses of the cluster's shared memory.
void storeToCluster(llvm::IRBuilder<> &builder, Value *to, llvm::ArrayRef<Value *> floats,
                    Value *barrier);
/// Waits for the end of the mbarrier's phase of this parity (i32). `ofCluster`: stores of the
/// cluster's blocks are visible then.
void awaitPhase(llvm::IRBuilder<> &builder, Value *barrier, Value *parity, bool ofCluster);
/// Cluster barrier: all threads that have not exited arrive and wait, and see all earlier writes.
void syncCluster(llvm::IRBuilder<> &builder);
/// Split cluster barrier, which is cheaper: of earlier writes of other threads only the mbarriers
/// of initCounts are visible.
void arriveAtCluster(llvm::IRBuilder<> &builder);
void awaitCluster(llvm::IRBuilder<> &builder);

/// Makes the thread's accesses to shared memory so far come before those of products and of copies
/// in bulk (a proxy of their own; PTX ISA, "Proxies"), after the next barrier for other threads'.
void publish(llvm::IRBuilder<> &builder);

/// Whether the instruction starts a product of a warpgroup.
bool isProduct(const llvm::Instruction &instruction);

/// Waits as the hardware has them: until all but the last N commits are done, N the fewest that
/// come after what is waited for on any path there. Commits without a value. Its name is
/// `count-groups`.
class CountGroupsPass : public llvm::PassInfoMixin<CountGroupsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
  static bool isRequired() { return true; }
};

/// Fences for what goes through rings, and between registers and products. Its name is
/// `place-fences`.
class PlaceFencesPass : public llvm::PassInfoMixin<PlaceFencesPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
  static bool isRequired() { return true; }
};

/// Barriers in place of rings. Its name is `lower-rings`.
class LowerRingsPass : public llvm::PassInfoMixin<LowerRingsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
  static bool isRequired() { return true; }
};

/// Reports misuse of the asynchronous operations in a function or module, a line each: a defect of
/// the compiler.
llvm::Error verifyAsync(const llvm::Function &function);
llvm::Error verifyAsync(const llvm::Module &module);

} // namespace tegula::async

#endif // TEGULA_CODEGEN_ASYNC_ASYNC_H
