//===- EmulatorFixture.h - Device code as text, in the emulator --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TEST_UNIT_EMULATORFIXTURE_H
#define TEGULA_TEST_UNIT_EMULATORFIXTURE_H

#include "codegen/ptx/Ptx.h"
#include "runtime/emulator/Emulator.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tegula {

using namespace llvm;
using ::testing::HasSubstr;

/// What every text below may use. %i is the thread's number in its block, %at its element of x.
inline constexpr const char *prelude = R"(
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.barrier.cta.sync.aligned.count(i32, i32)
declare void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32, i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.membar.gl()
declare <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn(float, float)
declare i16 @llvm.nvvm.ff.to.e4m3x2.rn(float, float)
declare <2 x half> @llvm.nvvm.e5m2x2.to.f16x2.rn(i16)
declare i32 @llvm.nvvm.shfl.sync.down.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.up.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare {i32, i1} @llvm.nvvm.shfl.sync.idx.i32p(i32, i32, i32, i32)
declare void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.ca.shared.global.16.s(ptr addrspace(3), ptr addrspace(1), i32)
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
declare void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1), ptr addrspace(3), i32, i64, i1)
declare void @llvm.nvvm.cp.async.bulk.commit.group()
declare void @llvm.nvvm.cp.async.bulk.wait.group(i32)
declare void @llvm.nvvm.cp.async.bulk.wait.group.read(i32)
declare float @llvm.nvvm.ex2.approx.ftz.f32(float)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare void @llvm.nvvm.barrier.cluster.arrive.aligned()
declare void @llvm.nvvm.barrier.cluster.wait.aligned()
declare ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3), i32)
declare void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)
declare i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3), i32)
declare i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta(ptr addrspace(3), i32)
declare i32 @llvm.nvvm.redux.sync.add(i32, i32)
declare void @llvm.nvvm.tensormap.replace.global.address.p1(ptr addrspace(1), i64)
declare void @llvm.nvvm.tensormap.replace.rank.p1(ptr addrspace(1), i32)
declare void @llvm.nvvm.tensormap.replace.box.dim.p1(ptr addrspace(1), i32 immarg, i32)
declare void @llvm.nvvm.tensormap.replace.global.dim.p1(ptr addrspace(1), i32 immarg, i32)
declare void @llvm.nvvm.tensormap.replace.element.stride.p1(ptr addrspace(1), i32 immarg, i32)
declare void @llvm.nvvm.tensormap.replace.global.stride.p1(ptr addrspace(1), i32 immarg, i64)
declare void @llvm.nvvm.tensormap.replace.elemtype.p1(ptr addrspace(1), i32 immarg)
declare void @llvm.nvvm.tensormap.replace.interleave.layout.p1(ptr addrspace(1), i32 immarg)
declare void @llvm.nvvm.tensormap.replace.swizzle.mode.p1(ptr addrspace(1), i32 immarg)
declare void @llvm.nvvm.tensormap.replace.fill.mode.p1(ptr addrspace(1), i32 immarg)
@s = internal addrspace(3) global [64 x i32] undef, align 1024
@t = internal addrspace(3) global [64 x i32] undef, align 16
declare void @llvm.nvvm.wgmma.fence.sync.aligned()
declare void @llvm.nvvm.wgmma.commit_group.sync.aligned()
@ring = internal addrspace(3) global [2048 x i32] undef, align 1024
@large = internal addrspace(3) global [16384 x i32] undef, align 16
define ptx_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %at = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %own = getelementptr i32, ptr addrspace(3) @s, i32 %i
  %partner = xor i32 %i, 1
  %other = getelementptr i32, ptr addrspace(3) @s, i32 %partner
)";

class Emulator : public ::testing::Test {
protected:
  std::vector<int32_t> x = std::vector<int32_t>(64), y = std::vector<int32_t>(64);
  EmulatorOptions options;
  unsigned dynamicBytes = 0; // that the launch gives
  std::string failure;

  /// Runs `body` as a kernel of x and y; the finding, or nothing. `failure` says the rest.
  std::optional<EmulatorError::Kind> run(StringRef body, unsigned blocks = 1,
                                         unsigned threads = 64) {
    failure.clear();
    LLVMContext context;
    SMDiagnostic diagnostic;
    std::string text = prelude + body.str() + "\n  ret void\n}\n";
    std::unique_ptr<llvm::Module> module = parseAssemblyString(text, diagnostic, context);
    if (!module) {
      ADD_FAILURE() << diagnostic.getMessage().str() << ": " << diagnostic.getLineContents().str();
      return std::nullopt;
    }
    auto machine = cantFail(createDeviceMachine("sm_90a"));
    applyDeviceTarget(*module, *machine);
    Expected<std::unique_ptr<EmulatedCode>> code = emulate(*module);
    if (!code) {
      failure = toString(code.takeError());
      return std::nullopt;
    }
    Plan plan;
    EmulatorInputs inputs;
    PlanStep step;
    std::vector<int32_t> *buffers[] = {&x, &y};
    for (auto [index, data] : enumerate(buffers)) {
      PlanBuffer buffer;
      buffer.name = index ? "y" : "x";
      buffer.argument = index;
      plan.buffers.push_back(buffer);
      inputs.arguments.push_back(
          {data->data(), data->size() * 4, index ? BufferContents::Defined : xContents});
      PlanArgument argument;
      argument.index = index;
      step.arguments.push_back(argument);
    }
    step.byThread.name = "k";
    step.byThread.threads = step.byThread.unitsPerBlock = threads;
    step.byThread.cluster = cluster;
    step.byThread.sharedBytes = dynamicBytes;
    step.points = IndexExpr(int64_t(blocks) / cluster * threads);
    plan.steps.push_back(step);
    inputs.size = [](StringRef) { return std::nullopt; };
    std::optional<EmulatorError::Kind> kind;
    handleAllErrors(
        emulatePlan(**code, plan, inputs, options),
        [&](const EmulatorError &error) {
          kind = error.kind;
          failure = error.message;
        },
        [&](const ErrorInfoBase &error) { failure = error.message(); });
    return kind;
  }

  BufferContents xContents = BufferContents::Defined;
  unsigned cluster = 1; // blocks

  void expectGood() { EXPECT_EQ(failure, ""); }
};

} // namespace tegula

#endif // TEGULA_TEST_UNIT_EMULATORFIXTURE_H
