//===- ScalarEmitter.cpp - Scheduled tgl to LLVM IR: environment ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ScalarEmitter.h"

#include "llvm/IR/MDBuilder.h"

using namespace llvm;
using namespace tegula;

ScalarEmitter::ScalarEmitter(Module &module, const EmitterOptions &options,
                             std::vector<ErrorSite> &sites)
    : b(module.getContext()), module(module), options(options), checks(*this, sites),
      shadow(*this, checks) {}

void ScalarEmitter::fail(mlir::Operation *op, const Twine &why) {
  if (!failure.empty())
    return;
  raw_string_ostream stream(failure);
  stream << op->getLoc() << ": " << why;
}

Value *ScalarEmitter::valueOf(mlir::Value value) {
  if (Value *found = values.lookup(value))
    return found;
  // Reached only when an op failed before: any value of the type keeps the walk going.
  assert(failed() && "a value is emitted before it is used");
  return PoisonValue::get(typeOf(value.getType()));
}

Value *ScalarEmitter::sizeOf(StringRef symbol) {
  Value *found = sizes.lookup(symbol);
  assert(found && "every symbol is among the kernel's sizes");
  return found;
}

Type *ScalarEmitter::typeOf(mlir::Type type) {
  if (type.isF32())
    return b.getFloatTy();
  if (type.isF64())
    return b.getDoubleTy();
  if (type.isF16())
    return b.getHalfTy();
  if (type.isIndex())
    return b.getInt64Ty();
  return b.getIntNTy(type.getIntOrFloatBitWidth());
}

Value *ScalarEmitter::splat(Value *value) {
  if (!lanes || isVector(value))
    return value;
  return b.CreateVectorSplat(lanes->width, value);
}

void ScalarEmitter::align(MutableArrayRef<Value *> operands) {
  if (none_of(operands, [&](Value *value) { return isVector(value); }))
    return;
  for (Value *&operand : operands)
    operand = splat(operand);
}

void ScalarEmitter::addAliasScopes(MutableArrayRef<Buffer *> all) {
  MDBuilder metadata(module.getContext());
  MDNode *domain = metadata.createAnonymousAliasScopeDomain("tensors");
  SmallVector<Metadata *> scopes;
  for (unsigned i = 0; i < all.size(); ++i)
    scopes.push_back(metadata.createAnonymousAliasScope(domain));
  for (auto [i, buffer] : enumerate(all)) {
    SmallVector<Metadata *> others;
    for (auto [j, scope] : enumerate(scopes))
      if (i != j)
        others.push_back(scope);
    buffer->scope = MDNode::get(module.getContext(), {scopes[i]});
    buffer->noalias = MDNode::get(module.getContext(), others);
  }
}

Value *ScalarEmitter::emitAnd(Value *lhs, Value *rhs) {
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  Value *operands[] = {lhs, rhs};
  align(operands);
  return b.CreateAnd(operands[0], operands[1]);
}
