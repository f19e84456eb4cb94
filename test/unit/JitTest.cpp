//===- JitTest.cpp - Objects of one kernel in process ----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Jit.h"
#include "codegen/cpu/HostTarget.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"
#include <gtest/gtest.h>
#include <sys/mman.h>

using namespace llvm;
using namespace tegula;

namespace {

std::unique_ptr<MemoryBuffer> assemble(StringRef text, const char *name) {
  LLVMContext context;
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> module = parseAssemblyString(text, diagnostic, context);
  EXPECT_TRUE(module) << diagnostic.getMessage().str();
  module->setModuleIdentifier(name);
  const HostTarget &target = HostTarget::get();
  std::unique_ptr<TargetMachine> machine = target.createMachine();
  applyTarget(*module, target, *machine);
  return emitObject(*module, *machine);
}

/// Maps so much that whatever is mapped next lies 4 GB away from what has been mapped up to now.
class FarAway {
public:
  FarAway() {
    char *gap = map(size_t(4) << 30);
    for (size_t bytes = size_t(1) << 30; bytes >= 4096; bytes /= 2) // what is left above it
      while (map(bytes) > gap)
        continue;
    for (auto &[begin, bytes] : mapped)
      if (begin < gap)
        munmap(std::exchange(begin, nullptr), bytes);
  }
  ~FarAway() {
    for (auto [begin, bytes] : mapped)
      if (begin)
        munmap(begin, bytes);
  }

private:
  char *map(size_t bytes) {
    void *begin =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(begin, MAP_FAILED);
    if (begin == MAP_FAILED)
      return nullptr;
    mapped.push_back({static_cast<char *>(begin), bytes});
    return static_cast<char *>(begin);
  }
  std::vector<std::pair<char *, size_t>> mapped;
};

TEST(Jit, ObjectsReachEachOtherWhateverElseIsMapped) {
  std::vector<std::unique_ptr<MemoryBuffer>> objects;
  objects.push_back(assemble("define i32 @first() { ret i32 7 }\n"
                             "define hidden i32 @shared() { ret i32 35 }",
                             "a"));
  objects.push_back(assemble("declare hidden i32 @shared()\n"
                             "define ptr @address() { ret ptr @shared }\n"
                             "define i32 @second() { %r = call i32 @shared()\n ret i32 %r }",
                             "b"));
  Expected<std::unique_ptr<LoadedCode>> loaded = LoadedCode::load(std::move(objects));
  ASSERT_TRUE(static_cast<bool>(loaded)) << toString(loaded.takeError());
  Expected<void *> first = (*loaded)->lookup("first"); // which places the first object
  ASSERT_TRUE(static_cast<bool>(first)) << toString(first.takeError());
  FarAway farAway;
  Expected<void *> second = (*loaded)->lookup("second"), address = (*loaded)->lookup("address");
  ASSERT_TRUE(static_cast<bool>(second)) << toString(second.takeError());
  ASSERT_TRUE(static_cast<bool>(address)) << toString(address.takeError());
  EXPECT_EQ(reinterpret_cast<int (*)()>(*first)(), 7);
  EXPECT_EQ(reinterpret_cast<int (*)()>(*second)(), 35);
  EXPECT_EQ(reinterpret_cast<int (*(*)())()>(*address)()(), 35);
}

} // namespace
