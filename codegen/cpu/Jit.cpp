//===- Jit.cpp - Machine code of the host, in process -------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Jit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/MapperJITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/MemoryMapper.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include <cmath>
#include <cstring>

using namespace llvm;

namespace tegula {

static SmallVector<char, 0> emit(Module &module, TargetMachine &machine, CodeGenFileType type) {
  SmallVector<char, 0> bytes;
  raw_svector_ostream os(bytes);
  legacy::PassManager passes;
  bool unsupported = machine.addPassesToEmitFile(passes, os, nullptr, type);
  assert(!unsupported && "the host target emits files");
  (void)unsupported;
  passes.run(module);
  return bytes;
}

std::unique_ptr<MemoryBuffer> emitObject(Module &module, TargetMachine &machine) {
  return std::make_unique<SmallVectorMemoryBuffer>(
      emit(module, machine, CodeGenFileType::ObjectFile), module.getName(), false);
}

std::string emitAssembly(Module &module, TargetMachine &machine) {
  SmallVector<char, 0> bytes = emit(module, machine, CodeGenFileType::AssemblyFile);
  return std::string(bytes.data(), bytes.size());
}

struct LoadedCode::State {
  std::unique_ptr<orc::ExecutionSession> session;
  std::unique_ptr<orc::ObjectLinkingLayer> layer;
  orc::JITDylib *library = nullptr;
  std::string trouble;
};

LoadedCode::LoadedCode() : state(std::make_unique<State>()) {}

LoadedCode::~LoadedCode() {
  if (!state->session)
    return;
  // Ending a session fails only where memory cannot be unmapped: nothing can be done about it here.
  if (Error error = state->session->endSession())
    consumeError(std::move(error));
}

// Conversions of the compiler's own library; their results and arguments travel as _Float16 does.
extern "C" {
_Float16 __truncsfhf2(float);
_Float16 __truncdfhf2(double);
float __extendhfsf2(_Float16);
}

/// The nearest bf16, to even; the compiler's own library may have no such function.
static __bf16 roundToBF16(float value) {
  auto bits = llvm::bit_cast<uint32_t>(value);
  constexpr uint32_t quiet = 0x400000;
  uint32_t rounded = value != value ? bits | quiet : bits + 0x7fff + (bits >> 16 & 1);
  return llvm::bit_cast<__bf16>(static_cast<uint16_t>(rounded >> 16));
}

/// What code generation calls where a processor lacks an instruction for it.
static void defineLibraryCalls(function_ref<void(const char *name, void *address)> define) {
  auto math = [&](const char *single, float (*ofFloat)(float), const char *twice,
                  double (*ofDouble)(double)) {
    define(single, reinterpret_cast<void *>(ofFloat));
    define(twice, reinterpret_cast<void *>(ofDouble));
  };
  define("memcpy", reinterpret_cast<void *>(&memcpy));
  define("memmove", reinterpret_cast<void *>(&memmove));
  define("memset", reinterpret_cast<void *>(&memset));
  define("fma", reinterpret_cast<void *>(static_cast<double (*)(double, double, double)>(&fma)));
  define("fmaf", reinterpret_cast<void *>(&fmaf));
  math("floorf", &floorf, "floor", &floor);
  math("ceilf", &ceilf, "ceil", &ceil);
  math("truncf", &truncf, "trunc", &trunc);
  math("roundevenf", &roundevenf, "roundeven", &roundeven);
  define("__truncsfhf2", reinterpret_cast<void *>(&__truncsfhf2));
  define("__truncdfhf2", reinterpret_cast<void *>(&__truncdfhf2));
  define("__truncsfbf2", reinterpret_cast<void *>(&roundToBF16));
  define("__extendhfsf2", reinterpret_cast<void *>(&__extendhfsf2));
}

Expected<std::unique_ptr<LoadedCode>> LoadedCode::load(std::unique_ptr<MemoryBuffer> object) {
  std::vector<std::unique_ptr<MemoryBuffer>> objects;
  objects.push_back(std::move(object));
  return load(std::move(objects));
}

/// Room for the sections of all objects, each in pages of its own, with tables of what they call
/// elsewhere. Their references to each other reach 2 GB, and in a process that maps much there is
/// no telling what is how far apart: so all are in one range.
static size_t bytesForAll(ArrayRef<std::unique_ptr<MemoryBuffer>> objects) {
  size_t pageBytes = sys::Process::getPageSizeEstimate(), bytes = 0;
  for (const std::unique_ptr<MemoryBuffer> &object : objects)
    bytes += alignTo(2 * object->getBufferSize(), pageBytes) + 16 * pageBytes;
  return bytes;
}

Expected<std::unique_ptr<LoadedCode>>
LoadedCode::load(std::vector<std::unique_ptr<MemoryBuffer>> objects) {
  auto memory = orc::MapperJITLinkMemoryManager::CreateWithMapper<orc::InProcessMemoryMapper>(
      bytesForAll(objects));
  if (!memory)
    return memory.takeError();
  auto control = orc::SelfExecutorProcessControl::Create();
  if (!control)
    return control.takeError();
  std::unique_ptr<LoadedCode> code(new LoadedCode());
  State &state = *code->state;
  state.session = std::make_unique<orc::ExecutionSession>(std::move(*control));
  // The session says which symbol is missing, the lookup that fails only that one is.
  state.session->setErrorReporter(
      [&state](Error error) { state.trouble += toString(std::move(error)) + "; "; });
  state.layer = std::make_unique<orc::ObjectLinkingLayer>(*state.session, std::move(*memory));
  state.library = &state.session->createBareJITDylib("kernel");
  orc::SymbolMap symbols;
  auto define = [&](const char *name, void *address) {
    symbols[state.session->intern(name)] = {orc::ExecutorAddr::fromPtr(address),
                                            JITSymbolFlags::Exported};
  };
  defineLibraryCalls(define);
  if (Error error = state.library->define(orc::absoluteSymbols(std::move(symbols))))
    return std::move(error);
  for (std::unique_ptr<MemoryBuffer> &object : objects)
    if (Error error = state.layer->add(*state.library, std::move(object)))
      return std::move(error);
  return std::move(code);
}

Expected<void *> LoadedCode::lookup(StringRef symbol) {
  auto found = state->session->lookup({state->library}, symbol);
  if (!found)
    return createStringError(state->trouble + toString(found.takeError()));
  return found->getAddress().toPtr<void *>();
}

} // namespace tegula
