//===- Async.h - What goes on while a thread does other things ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Device code starts copies and products of tensor cores and goes on. It says what it waits for, not how: operations
// that only LLVM IR has, calls of functions `tegula.*`, which passes over it turn into the hardware's before anything
// else is done with it.
//
//   copies     %c = call i32 @tegula.cp.async.commit()     the copies that the thread has started since the last commit: one
//              call void @tegula.cp.async.await(i32 %c)    thing under way, %c. Waits until it has come.
//   products   wgmma's results are under way as well: registers that only products, commits and waits may take.
//              call void @tegula.wgmma.await(float %sum)   Waits until the product that %sum is of has read its operands;
//              %s = call { .. } @tegula.wgmma.read(..)     the same, and its results, of which all that is known is that
//                                                          they are ready. Values that are not under way come out as they are.
//
// Hardware knows no names for what is under way: it waits until all but the last N commits are done. `count-groups` finds
// every N. `verify-async` refuses code in which sums under way are used, or a wait is for what was not committed.
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

/// All copies that the thread has started since the last commit; an i32 that only `awaitCopies` and loops take.
Value *commitCopies(llvm::IRBuilder<> &builder);
/// What a loop carries where nothing has been committed yet: a wait for it is none.
Value *noCopies(llvm::IRBuilder<> &builder);
void awaitCopies(llvm::IRBuilder<> &builder, Value *copies);
/// Until all copies that were committed have come.
void awaitAllCopies(llvm::IRBuilder<> &builder);

void commitProducts(llvm::IRBuilder<> &builder);
/// Until the product of which `sum` is a result has read what it multiplies.
void awaitProducts(llvm::IRBuilder<> &builder, Value *sum);
/// The values, with those of products ready.
llvm::SmallVector<Value *> readProducts(llvm::IRBuilder<> &builder, llvm::ArrayRef<Value *> values);

/// Whether the instruction starts a product of a warpgroup.
bool isProduct(const llvm::Instruction &instruction);

/// Waits as the hardware has them: until all but the last N commits are done, N the fewest that come after what is waited
/// for on any path there. Commits without a value. Its name is `count-groups`.
class CountGroupsPass : public llvm::PassInfoMixin<CountGroupsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
  static bool isRequired() { return true; }
};

/// What is wrong with operations of a function, or of a module's, a line for each: a defect of the compiler.
llvm::Error verifyAsync(const llvm::Function &function);
llvm::Error verifyAsync(const llvm::Module &module);

} // namespace tegula::async

#endif // TEGULA_CODEGEN_ASYNC_ASYNC_H
