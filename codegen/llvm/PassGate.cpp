//===- PassGate.cpp - LLVM's passes, left out by name -------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/llvm/PassGate.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Analysis/LazyCallGraph.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/InitializePasses.h"
#include "llvm/Pass.h"
#include "llvm/PassRegistry.h"

using namespace llvm;

namespace tegula {

namespace {
/// The names of passes of the older pass manager by the texts that it has for them.
class LegacyNames : PassRegistrationListener {
public:
  LegacyNames() {
    PassRegistry &registry = *PassRegistry::getPassRegistry();
    initializeCore(registry);
    initializeAnalysis(registry);
    initializeCodeGen(registry);
    initializeScalarOpts(registry);
    initializeTransformUtils(registry);
    initializeVectorization(registry);
    initializeTarget(registry);
    registry.enumerateWith(this);
  }

  void passEnumerate(const PassInfo *info) override {
    if (!info->getPassArgument().empty())
      names.try_emplace(info->getPassName(), info->getPassArgument());
  }

  StringMap<StringRef> names;
};

/// `CodeGen Prepare` as a name: what the registry does not know keeps its text.
std::string asName(StringRef text) {
  std::string name;
  for (char letter : text)
    name += letter == ' ' ? '-' : toLower(letter);
  return name;
}

std::string nameOfLegacy(StringRef text) {
  static const LegacyNames legacy;
  auto known = legacy.names.find(text);
  return known == legacy.names.end() ? asName(text) : known->second.str();
}

/// The function that a pass is about to look at; the name of the module for one that looks at all.
std::string placeOf(const Any &unit) {
  if (const auto *function = any_cast<const Function *>(&unit))
    return (*function)->getName().str();
  if (const auto *loop = any_cast<const Loop *>(&unit))
    return (*loop)->getHeader()->getParent()->getName().str();
  if (const auto *component = any_cast<const LazyCallGraph::SCC *>(&unit))
    return (*component)->begin()->getFunction().getName().str();
  return "";
}
} // namespace

PassGate::PassGate(LLVMContext &context, PassRuns *runs) : runs(runs) {
  context.setOptPassGate(*this);
}

bool PassGate::shouldRunPass(StringRef name, StringRef where) const {
  if (!runs)
    return true;
  if (where.consume_front("function (")) // as the older pass manager says it
    where.consume_back(")");
  bool isText = any_of(name, [](char letter) { return letter == ' ' || isUpper(letter); });
  if (isText)
    return runs->shouldRun(nameOfLegacy(name), where);
  return runs->shouldRun(name, where);
}

std::unique_ptr<PassInstrumentationCallbacks> gateCallbacks(LLVMContext &context) {
  OptPassGate &gate = context.getOptPassGate();
  if (!gate.isEnabled())
    return nullptr;
  auto callbacks = std::make_unique<PassInstrumentationCallbacks>();
  callbacks->registerShouldRunOptionalPassCallback(
      [&gate, own = callbacks.get()](StringRef type, Any unit) {
        StringRef name = own->getPassNameForClassName(type);
        // Pass managers, adaptors and what is ours have none.
        return name.empty() || gate.shouldRunPass(name, placeOf(unit));
      });
  return callbacks;
}

} // namespace tegula
