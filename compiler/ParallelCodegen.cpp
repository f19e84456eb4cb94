//===- ParallelCodegen.cpp - Generates machine code on several threads ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nearly all of the time of a compilation is LLVM's, and grows with the number of vector
// instructions. The functions of statements do not call each other, so they are dealt out; what
// they call (elementary functions, the tile of a matrix product) is made again in each part that
// needs it.
//
//===----------------------------------------------------------------------===//
#include "compiler/ParallelCodegen.h"

#include "codegen/cpu/HostTarget.h"
#include "codegen/cpu/Jit.h"
#include "codegen/llvm/PtxVersion.h"
#include "codegen/ptx/Ptx.h"
#include "support/Workers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include <atomic>

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

/// Selecting a vector instruction takes several times as long as a scalar one (measured on kernels
/// of many products).
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

/// Names of the roots of each part, in the order of the module.
using Shares = std::vector<std::vector<std::string>>;

/// What a root's code calls, and that calls in turn: each part that needs one makes it.
static void addCallees(const Function &function, SetVector<const Function *> &callees) {
  for (const BasicBlock &block : function)
    for (const Instruction &instruction : block)
      if (auto *call = dyn_cast<CallBase>(&instruction))
        if (const Function *callee = call->getCalledFunction();
            callee && !callee->isDeclaration() && callees.insert(callee))
          addCallees(*callee, callees);
}

/// The heaviest root first, each to the part that it makes least heavy: one where what it calls is
/// made already, where that is much.
static Shares divide(const Module &module, unsigned maxParts, uint64_t minWeight) {
  struct Root {
    uint64_t weight;
    unsigned place;
    std::string name;
    SetVector<const Function *> callees;
    bool operator>(const Root &other) const {
      return std::tie(weight, name) > std::tie(other.weight, other.name);
    }
  };
  std::vector<Root> roots;
  uint64_t total = 0;
  for (const Function &function : module) {
    if (!isRoot(function))
      continue;
    Root root{weightOf(function), unsigned(roots.size()), function.getName().str(), {}};
    addCallees(function, root.callees);
    total += root.weight;
    roots.push_back(std::move(root));
  }
  llvm::sort(roots, std::greater<>()); // names are distinct
  size_t numParts =
      std::clamp<size_t>(total / minWeight, 1, std::min<size_t>(maxParts, roots.size()));
  Shares shares(numParts);
  std::vector<uint64_t> weights(numParts);
  std::vector<DenseSet<const Function *>> made(numParts);
  std::vector<std::vector<Root>> parts(numParts);
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
    parts[best].push_back(std::move(root));
  }
  for (auto [share, part] : zip(shares, parts)) {
    llvm::sort(part, [](const Root &lhs, const Root &rhs) { return lhs.place < rhs.place; });
    for (Root &root : part)
      share.push_back(std::move(root.name));
  }
  return shares;
}

/// Leaves the bodies of `share` and of what it calls. Of a module that is read lazily, only they
/// are read.
static Error keepShare(Module &module, const Shares &shares, unsigned part) {
  for (auto [number, share] : enumerate(shares))
    for (const std::string &name : share) {
      Function *function = module.getFunction(name);
      if (function->hasLocalLinkage()) { // other parts refer to it
        function->setLinkage(GlobalValue::ExternalLinkage);
        function->setVisibility(GlobalValue::HiddenVisibility);
      }
      if (number != part)
        function->deleteBody();
    }
  if (Error error = module.materializeAll())
    return error;
  for (bool changed = true; changed;) {
    changed = false;
    for (Function &function : make_early_inc_range(module))
      if (function.hasLocalLinkage() && function.use_empty()) {
        function.eraseFromParent();
        changed = true;
      }
  }
  return Error::success();
}

/// What `make` makes of the parts, by as many threads. Contexts belong to one thread each.
static std::vector<std::unique_ptr<MemoryBuffer>>
makeParts(Module &module, const Shares &shares, unsigned threads, std::string &heard,
          function_ref<std::unique_ptr<MemoryBuffer>(Module &, unsigned part)> make) {
  std::vector<std::unique_ptr<MemoryBuffer>> made(shares.size());
  if (shares.size() == 1) {
    made[0] = make(module, 0);
    return made;
  }
  SmallString<0> bitcode;
  raw_svector_ostream stream(bitcode);
  WriteBitcodeToFile(module, stream);
  std::vector<std::string> said(shares.size());
  OptPassGate &gate = module.getContext().getOptPassGate();
  auto makeOwn = [&](unsigned part) {
    LLVMContext context;
    context.setOptPassGate(gate);
    collectErrors(context, said[part]);
    Expected<std::unique_ptr<Module>> own =
        getLazyBitcodeModule(MemoryBufferRef(bitcode, module.getName()), context);
    Error error = own ? keepShare(**own, shares, part) : own.takeError();
    if (error)
      said[part] += "\n" + toString(std::move(error));
    else
      made[part] = make(**own, part);
  };
  std::atomic<unsigned> next = 1;
  auto work = [&] {
    for (unsigned part; (part = next++) < shares.size();)
      makeOwn(part);
  };
  Workers others(work);
  others.start(std::clamp<size_t>(threads, 1, shares.size()) - 1); // this one does what they do not
  if (Error error = keepShare(module, shares, 0))
    said[0] += "\n" + toString(std::move(error));
  else
    made[0] = make(module, 0);
  work();
  others.join();
  for (const std::string &errors : said)
    heard += errors;
  return made;
}

std::vector<std::unique_ptr<MemoryBuffer>> assembleInParallel(Module &module,
                                                              const HostTarget &target,
                                                              unsigned maxParts,
                                                              std::string &heard) {
  /// A thread and its context cost about a millisecond, which is that much code.
  constexpr uint64_t minWeight = 1500;
  Shares shares = divide(module, std::max(1u, maxParts), minWeight);
  return makeParts(module, shares, shares.size(), heard, [&](Module &part, unsigned) {
    std::unique_ptr<TargetMachine> machine = target.createMachine();
    optimize(part, *machine);
    return emitObject(part, *machine);
  });
}

/// A text has no linkage: what several parts made has a name in each.
static void nameAfter(unsigned part, Module &module) {
  for (GlobalValue &value : module.global_values())
    if (value.hasLocalLinkage())
      value.setName(value.getName() + "." + Twine(part));
}

/// Appends a text of PTX to another of the same target: without its directives, and declarations
/// that were made.
static void appendPtx(std::string &whole, StringRef part) {
  constexpr StringLiteral lastDirective = ".address_size 64\n";
  part = part.substr(part.find(lastDirective) + lastDirective.size());
  for (StringRef line; !part.empty();) {
    std::tie(line, part) = part.split('\n');
    if (line.starts_with(".extern") && StringRef(whole).contains(line))
      continue;
    whole += line;
    whole += '\n';
  }
}

/// ptxas has threads take functions in the order of the text: none is to begin the longest when
/// others have nothing left.
static void putHeaviestFirst(Module &module) {
  DenseMap<const Function *, uint64_t> weights;
  for (const Function &function : module)
    weights[&function] = weightOf(function);
  module.getFunctionList().sort([&](const Function &lhs, const Function &rhs) {
    return weights.lookup(&lhs) > weights.lookup(&rhs);
  });
}

std::string emitPtxInParallel(Module &module, StringRef target, unsigned threads, PassRuns *runs,
                              std::string &heard) {
  // More parts than threads of a small machine: each should cost little beside what it makes.
  constexpr unsigned maxParts = 16;
  constexpr uint64_t minWeight = 4000;
  // Lines are told by numbers of files, which are those of one text.
  bool hasLines = any_of(module.debug_compile_units(), [](const DICompileUnit *unit) {
    return unit->getEmissionKind() == DICompileUnit::DebugDirectivesOnly;
  });
  unsigned minPtxVersion = neededPtx(module);
  putHeaviestFirst(module);
  Shares shares = divide(module, hasLines ? 1 : maxParts, minWeight);
  std::vector<std::unique_ptr<MemoryBuffer>> texts =
      makeParts(module, shares, threads, heard, [&](Module &part, unsigned number) {
        std::unique_ptr<TargetMachine> machine =
            cantFail(createDeviceMachine(target, minPtxVersion));
        if (shares.size() > 1)
          nameAfter(number, part);
        optimizeForDevice(part, *machine);
        return MemoryBuffer::getMemBufferCopy(emitPtx(part, *machine, runs));
      });
  std::string whole;
  for (const std::unique_ptr<MemoryBuffer> &text : texts) {
    if (!text)
      continue; // `heard` says why
    if (whole.empty())
      whole = text->getBuffer();
    else
      appendPtx(whole, text->getBuffer());
  }
  return whole;
}

} // namespace tegula
