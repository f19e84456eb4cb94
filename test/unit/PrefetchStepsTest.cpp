//===- PrefetchStepsTest.cpp - Loops whose loads are some steps ahead -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/llvm/PrefetchSteps.h"
#include "codegen/cpu/HostTarget.h"
#include "codegen/cpu/Jit.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"
#include "gtest/gtest.h"
#include <sys/mman.h>
#include <vector>

using namespace llvm;
using namespace tegula;

namespace {

/// A recurrence over n steps; what a step loads are a number and four neighbours, `stride` floats
/// behind those of the step before.
constexpr const char *text = R"(
define internal float @exchange(float %x) convergent noinline {
  %half = fmul float %x, 0.5
  ret float %half
}

define float @steps(ptr %x, ptr %y, i64 %n, i64 %stride) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end

loop:
  %t = phi i64 [ 0, %entry ], [ %following, %loop ]
  %state = phi float [ 1.0, %entry ], [ %next, %loop ]
  %place = getelementptr float, ptr %x, i64 %t
  %value = load float, ptr %place, align 4, !invariant.load !0
  %other = call float @exchange(float %state)
  %first = mul i64 %t, %stride
  %row = getelementptr float, ptr %y, i64 %first
  %four = load <4 x float>, ptr %row, align 4, !invariant.load !0
  %fourth = extractelement <4 x float> %four, i64 3
  %sum = fadd float %other, %value
  %next = fadd float %sum, %fourth
  %following = add nsw i64 %t, 1
  %more = icmp slt i64 %following, %n
  br i1 %more, label %loop, label %end

end:
  %result = phi float [ 1.0, %entry ], [ %next, %loop ]
  ret float %result
}

!0 = !{}
)";

/// So many floats that end where memory does: one more is no memory of the process.
class Floats {
public:
  explicit Floats(size_t count) : page(sys::Process::getPageSizeEstimate()) {
    bytes = alignTo(count * sizeof(float), page);
    area = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(area, MAP_FAILED);
    EXPECT_EQ(mprotect(static_cast<char *>(area) + bytes, page, PROT_NONE), 0);
    data = reinterpret_cast<float *>(static_cast<char *>(area) + bytes) - count;
    for (size_t n = 0; n < count; ++n)
      data[n] = float(n % 13) - 4;
  }
  ~Floats() { munmap(area, bytes + page); }
  Floats(const Floats &) = delete;
  float *data;

private:
  size_t page, bytes;
  void *area;
};

float expected(const float *x, const float *y, int64_t n, int64_t stride) {
  float state = 1;
  for (int64_t t = 0; t < n; ++t)
    state = state * 0.5f + x[t] + y[t * stride + 3];
  return state;
}

TEST(PrefetchSteps, TakesTheSameElementsAndNoOthers) {
  LLVMContext context;
  SMDiagnostic problem;
  std::unique_ptr<Module> module = parseAssemblyString(text, problem, context);
  ASSERT_TRUE(module) << problem.getMessage().str();
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager graph;
  ModuleAnalysisManager modules;
  PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  Function &function = *module->getFunction("steps");
  PrefetchStepsPass().run(function, functions);
  ASSERT_FALSE(verifyModule(*module, &errs()));
  // Two steps before the loop, one load of each kind in it.
  EXPECT_EQ(llvm::count_if(instructions(function), [](auto &each) { return isa<LoadInst>(each); }),
            6);

  const HostTarget &target = HostTarget::get();
  std::unique_ptr<TargetMachine> machine = target.createMachine();
  applyTarget(*module, target, *machine);
  std::unique_ptr<LoadedCode> loaded = cantFail(LoadedCode::load(emitObject(*module, *machine)));
  using Code = float (*)(const float *, const float *, int64_t, int64_t);
  auto run = reinterpret_cast<Code>(cantFail(loaded->lookup("steps")));
  for (int64_t n : {0, 1, 2, 3, 4, 5, 17})
    for (int64_t stride : {0, 4, 7}) {
      Floats x(n), y(n ? (n - 1) * stride + 4 : 0);
      EXPECT_EQ(run(x.data, y.data, n, stride), expected(x.data, y.data, n, stride))
          << n << " steps, " << stride << " apart";
    }
}

} // namespace
