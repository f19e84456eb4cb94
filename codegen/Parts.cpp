//===- Parts.cpp - Machine code of a module, made on several threads ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nearly all of the time of a compilation is LLVM's, and grows with the number of vector instructions. The
// functions of statements do not call each other, so they are dealt out; what they call (elementary
// functions, the tile of a matrix product) is made again in each part that needs it.
//
//===----------------------------------------------------------------------===//
#include "codegen/Parts.h"

#include "codegen/HostTarget.h"
#include "codegen/Jit.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/thread.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace tegula {

void collectErrors(LLVMContext &context, std::string &heard) {
  context.setDiagnosticHandlerCallBack(
      [](const DiagnosticInfo *said, void *to) {
        if (said->getSeverity() != DS_Error)
          return;
        raw_string_ostream stream(*static_cast<std::string *>(to));
        stream << '\n';
        DiagnosticPrinterRawOStream printer(stream);
        said->print(printer);
      },
      &heard);
}

/// Selecting a vector instruction takes several times as long as a scalar one (measured on kernels of many products).
static uint64_t weightOf(const Function &function) {
  uint64_t weight = 0;
  for (const BasicBlock &block : function)
    for (const Instruction &instruction : block)
      weight += instruction.getType()->isVectorTy() ? 4 : 1;
  return weight;
}

/// Functions of statements, and the kernel's own; all others are called by them.
static bool isRoot(const Function &function) {
  return !function.isDeclaration() && (!function.hasLocalLinkage() || function.hasAddressTaken());
}

using Shares = std::vector<std::vector<std::string>>; // names of the roots of each part

/// What a root's code calls, and that calls in turn: each part that needs one makes it.
static void addCallees(const Function &function, SetVector<const Function *> &callees) {
  for (const BasicBlock &block : function)
    for (const Instruction &instruction : block)
      if (auto *call = dyn_cast<CallBase>(&instruction))
        if (const Function *callee = call->getCalledFunction();
            callee && !callee->isDeclaration() && callees.insert(callee))
          addCallees(*callee, callees);
}

/// The heaviest root first, each to the part that it makes least heavy: one where what it calls is made
/// already, where that is much.
static Shares divide(const Module &module, unsigned mostParts) {
  /// A thread and its context cost about a millisecond, which is that much code.
  constexpr uint64_t leastWeight = 1500;
  struct Root {
    uint64_t weight;
    std::string name;
    SetVector<const Function *> callees;
    bool operator>(const Root &other) const { return std::tie(weight, name) > std::tie(other.weight, other.name); }
  };
  std::vector<Root> roots;
  uint64_t total = 0;
  for (const Function &function : module) {
    if (!isRoot(function))
      continue;
    Root root{weightOf(function), function.getName().str(), {}};
    addCallees(function, root.callees);
    total += root.weight;
    roots.push_back(std::move(root));
  }
  llvm::sort(roots, std::greater<>()); // names are distinct
  size_t numParts = std::clamp<size_t>(total / leastWeight, 1, std::min<size_t>(mostParts, roots.size()));
  Shares shares(numParts);
  std::vector<uint64_t> weights(numParts);
  std::vector<DenseSet<const Function *>> made(numParts);
  for (Root &root : roots) {
    auto weightWith = [&](size_t part) {
      uint64_t weight = weights[part] + root.weight;
      for (const Function *callee : root.callees)
        if (!made[part].contains(callee))
          weight += weightOf(*callee);
      return weight;
    };
    size_t best = 0;
    for (size_t part = 1; part < numParts; ++part)
      if (weightWith(part) < weightWith(best))
        best = part;
    weights[best] = weightWith(best);
    made[best].insert_range(root.callees);
    shares[best].push_back(std::move(root.name));
  }
  return shares;
}

/// Leaves the bodies of `share` and of what it calls.
static void keepShare(Module &module, ArrayRef<std::string> share) {
  SmallVector<Function *> roots; // before bodies go, which take their addresses
  for (Function &function : module)
    if (isRoot(function))
      roots.push_back(&function);
  for (Function *function : roots) {
    if (function->hasLocalLinkage()) { // other parts refer to it
      function->setLinkage(GlobalValue::ExternalLinkage);
      function->setVisibility(GlobalValue::HiddenVisibility);
    }
    if (!is_contained(share, function->getName()))
      function->deleteBody();
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (Function &function : make_early_inc_range(module))
      if (function.hasLocalLinkage() && function.use_empty()) {
        function.eraseFromParent();
        changed = true;
      }
  }
}

static std::unique_ptr<MemoryBuffer> assemblePart(Module &module, const HostTarget &target) {
  std::unique_ptr<TargetMachine> machine = target.createMachine();
  optimize(module, *machine);
  return emitObject(module, *machine);
}

std::vector<std::unique_ptr<MemoryBuffer>> assembleInParts(Module &module, const HostTarget &target,
                                                           unsigned mostParts, std::string &heard) {
  Shares shares = divide(module, std::max(1u, mostParts));
  std::vector<std::unique_ptr<MemoryBuffer>> objects(shares.size());
  if (shares.size() == 1) {
    objects[0] = assemblePart(module, target);
    return objects;
  }
  SmallString<0> bitcode; // contexts belong to one thread each
  raw_svector_ostream stream(bitcode);
  WriteBitcodeToFile(module, stream);
  std::vector<std::string> said(shares.size());
  OptPassGate &gate = module.getContext().getOptPassGate();
  auto work = [&](unsigned part) {
    LLVMContext context;
    context.setOptPassGate(gate);
    collectErrors(context, said[part]);
    Expected<std::unique_ptr<Module>> own =
        parseBitcodeFile(MemoryBufferRef(bitcode, module.getName()), context);
    if (!own) {
      said[part] += "\n" + toString(own.takeError());
      return;
    }
    keepShare(**own, shares[part]);
    objects[part] = assemblePart(**own, target);
  };
  std::vector<llvm::thread> threads;
  for (unsigned part = 1; part < shares.size(); ++part)
    threads.emplace_back(work, part);
  keepShare(module, shares[0]);
  objects[0] = assemblePart(module, target);
  for (llvm::thread &thread : threads)
    thread.join();
  for (const std::string &errors : said)
    heard += errors;
  return objects;
}

} // namespace tegula
