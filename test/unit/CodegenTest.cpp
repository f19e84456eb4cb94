//===- CodegenTest.cpp - From tgl to host and device code -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/AccessShape.h"
#include "codegen/cpu/EmitHost.h"
#include "codegen/cpu/HostAbi.h"
#include "codegen/cpu/HostTarget.h"
#include "codegen/cpu/Jit.h"
#include "codegen/ptx/Assemble.h"
#include "codegen/ptx/Ptx.h"
#include "compiler/EmitDevice.h"
#include "compiler/ParallelCodegen.h"
#include "compiler/Work.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include "passes/Pipeline.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace llvm;
using namespace tegula;

namespace {

constexpr const char *softmaxText = R"(
tgl.kernel @softmax(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] {
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %m = tgl.reduce max (%k = 0 to N) -> f32 {
      %a = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      tgl.yield %a : f32
    }
    %s = tgl.reduce sum (%k = 0 to N) -> f32 {
      %a = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      tgl.yield %e : f32
    }
    %a = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], f32>
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %q = arith.divf %e, %s : f32
    tgl.write %q, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}
)";

void runHere(HostRun *run, ParallelBody body, void *frame, int64_t count, int64_t) {
  body(0, count, frame, run);
}

void *scratchHere(HostRun *, int64_t bytes) {
  static thread_local std::vector<char> space;
  space.resize(bytes + 64);
  return reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(space.data()) + 63) &
                                  ~uintptr_t(63));
}

class Codegen : public ::testing::Test {
protected:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::shared_ptr<StatementMatches> matches = std::make_shared<StatementMatches>();

  tgl::KernelOp schedule(StringRef text, Machine machine) {
    context.loadDialect<tgl::TglDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    mlir::PassManager manager(&context);
    PipelineOptions options;
    options.target = machine == Machine::GPU ? TargetInfo::gpu(90, true) : TargetInfo::host();
    options.matches = matches;
    buildPipeline(manager, options);
    EXPECT_TRUE(succeeded(manager.run(*module)));
    return *module->getOps<tgl::KernelOp>().begin();
  }
};

TEST_F(Codegen, SoftmaxOnTheHost) {
  tgl::KernelOp kernel = schedule(softmaxText, Machine::CPU);
  const HostTarget &target = HostTarget::get();
  for (unsigned vectorBytes : {0u, 16u, target.vectorBytes}) {
    LLVMContext llvmContext;
    Module code("test", llvmContext);
    std::unique_ptr<TargetMachine> machine = target.createMachine();
    applyTarget(code, target, *machine);
    EmitterOptions options;
    options.vectorBytes = vectorBytes;
    Expected<HostCode> host = emitHost(kernel, code, options);
    ASSERT_TRUE(bool(host)) << toString(host.takeError());
    ASSERT_FALSE(verifyModule(code, &errs()));
    optimize(code, *machine);
    auto loaded = LoadedCode::load(emitObject(code, *machine));
    ASSERT_TRUE(bool(loaded)) << toString(loaded.takeError());
    Expected<void *> symbol = (*loaded)->lookup(host->function);
    ASSERT_TRUE(bool(symbol)) << toString(symbol.takeError());

    int64_t sizes[] = {3, 1037};
    std::vector<float> x(sizes[0] * sizes[1]), y(x.size(), NAN);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = std::sin(double(i)) * 4;
    std::vector<void *> buffers = {x.data(), y.data()};
    std::vector<std::vector<char>> temporaries;
    for (const TemporaryInfo &temporary : host->temporaries) {
      auto bytes = tensorBytes(temporary.type, 64).evaluate([&](const IndexVar &var) {
        return std::optional<int64_t>(var.name() == "M" ? sizes[0] : sizes[1]);
      });
      temporaries.emplace_back(*bytes);
      buffers.push_back(temporaries.back().data());
    }
    HostRun run{{}, runHere, scratchHere, nullptr};
    reinterpret_cast<KernelFunction>(*symbol)(buffers.data(), sizes, nullptr, &run);
    for (int64_t i = 0; i < sizes[0]; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < sizes[1]; ++j)
        sum += std::exp(double(x[i * sizes[1] + j]));
      for (int64_t j = 0; j < sizes[1]; ++j)
        ASSERT_NEAR(y[i * sizes[1] + j], std::exp(double(x[i * sizes[1] + j])) / sum, 1e-8)
            << "row " << i << ", column " << j << ", vectors of " << vectorBytes << " bytes";
    }
  }
}

TEST_F(Codegen, SoftmaxOnTheDevice) {
  tgl::KernelOp kernel = schedule(softmaxText, Machine::GPU);
  for (StringRef arch : {"sm_80", "sm_90a"}) {
    LLVMContext llvmContext;
    Module code("test", llvmContext);
    auto machine = createDeviceMachine(arch);
    ASSERT_TRUE(bool(machine)) << toString(machine.takeError());
    applyDeviceTarget(code, **machine);
    Expected<DeviceCode> device = emitDevice(kernel, code, EmitterOptions(), *matches);
    ASSERT_TRUE(bool(device)) << toString(device.takeError());
    ASSERT_FALSE(verifyModule(code, &errs()));
    optimizeForDevice(code, **machine);
    std::string ptx = emitPtx(code, **machine);
    EXPECT_NE(ptx.find(".entry"), std::string::npos);
    EXPECT_NE(ptx.find((".target " + arch).str()), std::string::npos);
    EXPECT_FALSE(device->plan.steps.empty());
    Expected<Cubin> cubin = assemble(ptx, arch);
    if (!cubin && cubin.errorIsA<MissingToolError>()) {
      consumeError(cubin.takeError());
      GTEST_SKIP() << "no assembler here";
    }
    ASSERT_TRUE(bool(cubin)) << toString(cubin.takeError()) << ptx;
  }
}

TEST(DeviceTargets, AreThoseThatLLVMKnows) {
  std::unique_ptr<TargetMachine> any = cantFail(createDeviceMachine("sm_80"));
  SmallVector<StringRef> wanted;
  for (const SubtargetSubTypeKV &one : any->getMCSubtargetInfo()->getAllProcessorDescriptions())
    if (deviceCapability(one.Key) >= 80)
      wanted.push_back(one.Key);
  SmallVector<StringRef> known = deviceTargets();
  sort(wanted);
  sort(known);
  EXPECT_EQ(known, wanted);
  // LLVM ends the process where the version of PTX is too old for the architecture.
  for (StringRef target : known) {
    LLVMContext llvmContext;
    Module code("test", llvmContext);
    std::unique_ptr<TargetMachine> machine = cantFail(createDeviceMachine(target));
    applyDeviceTarget(code, *machine);
    EXPECT_NE(emitPtx(code, *machine).find((".target " + target + "\n").str()), std::string::npos);
  }
}

TEST(DeviceTargets, RefuseOthers) {
  for (StringRef target :
       {"", "cpu", "sm_75", "sm_90b", "sm_90aa", "sm_102", "sm_999", "SM_90", "sm_ 90"}) {
    EXPECT_FALSE(isDeviceTarget(target)) << target.str();
    Expected<std::unique_ptr<TargetMachine>> machine = createDeviceMachine(target);
    ASSERT_FALSE(machine) << target.str();
    EXPECT_NE(toString(machine.takeError()).find("sm_121f"), std::string::npos);
  }
}

constexpr const char *productText = R"(
tgl.kernel @product(%a: !tgl.tensor<[M, 512], f16> {tgl.name = "a", tgl.role = "in"},
                    %b: !tgl.tensor<[512, N], f16> {tgl.name = "b", tgl.role = "in"},
                    %c: !tgl.tensor<[M, N], f32> {tgl.name = "c", tgl.role = "out"})
    sizes [M = 0 : 0, N = 1 : 1] {
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %s = tgl.reduce sum (%k = 0 to 512) -> f32 {
      %x = tgl.read %a[%i, %k] : !tgl.tensor<[M, 512], f16>
      %y = tgl.read %b[%k, %j] : !tgl.tensor<[512, N], f16>
      %p = arith.mulf %x, %y : f32
      tgl.yield %p : f32
    }
    tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}
)";

TEST_F(Codegen, MatchOfTheScheduleIsLowered) {
  tgl::KernelOp kernel = schedule(productText, Machine::GPU);
  EmitterOptions options;
  options.target = TargetInfo::gpu(90, true);
  auto codeOf = [&](StatementMatches &from) {
    LLVMContext llvmContext;
    Module code("test", llvmContext);
    Expected<DeviceCode> device = emitDevice(kernel, code, options, from);
    EXPECT_TRUE(bool(device)) << toString(device.takeError());
    std::string text;
    raw_string_ostream stream(text);
    code.print(stream, nullptr);
    return text;
  };
  std::string kept = codeOf(*matches);
  EXPECT_EQ(matches->numRestored(), 0u);
  EXPECT_NE(kept.find("_tile("), std::string::npos);
  // From the attribute alone the same match is made again, once.
  StatementMatches restored;
  EXPECT_EQ(codeOf(restored), kept);
  EXPECT_EQ(codeOf(restored), kept);
  EXPECT_EQ(restored.numRestored(), 1u);
}

/// Kernels of so many steps each, all of which call a function of the module and use its table and
/// shared memory.
std::string modulesText(unsigned kernels, unsigned steps) {
  std::string text =
      "target triple = \"nvptx64-nvidia-cuda\"\n"
      "@space = external addrspace(3) global [0 x float], align 16\n"
      "@table = internal addrspace(1) constant [4 x float] [float 1.0, float 2.0, float 4.0, float "
      "8.0]\n"
      "define internal float @step(float %x, i64 %n) noinline {\n"
      "  %p = getelementptr float, ptr addrspace(1) @table, i64 %n\n"
      "  %t = load float, ptr addrspace(1) %p\n  %y = fmul float %x, %t\n  ret float %y\n}\n";
  for (unsigned kernel = 0; kernel < kernels; ++kernel) {
    std::string name = std::to_string(kernel);
    text += "define ptx_kernel void @kernel" + name +
            "(ptr addrspace(1) %to, float %x, i64 %n) {\n"
            "  %s = load volatile float, ptr addrspace(3) @space\n"
            "  %v0 = call float @step(float %s, i64 %n)\n";
    for (unsigned step = 0; step < steps; ++step)
      text += "  store volatile float %v0, ptr addrspace(1) %to\n";
    text += "  ret void\n}\n";
  }
  return text;
}

/// The PTX of such a module, made by so many threads.
std::string ptxOf(const std::string &text, unsigned threads) {
  LLVMContext context;
  SMDiagnostic problem;
  std::unique_ptr<Module> module = parseAssemblyString(text, problem, context);
  EXPECT_TRUE(module) << problem.getMessage().str();
  if (!module)
    return "";
  std::string heard;
  applyDeviceTarget(*module, *cantFail(createDeviceMachine("sm_90a")));
  std::string ptx = emitPtxInParallel(*module, "sm_90a", threads, /*runs=*/nullptr, heard);
  EXPECT_EQ(heard, "");
  return ptx;
}

unsigned countOf(StringRef text, StringRef part) { return text.count(part); }

/// The result's rounding is one; a temporary of fewer than 32 bits has two more, of integers none.
TEST_F(Codegen, CountsRoundingsOfNarrowTemporaries) {
  context.loadDialect<tgl::TglDialect, mlir::arith::ArithDialect>();
  auto roundings = [&](ArrayRef<StringRef> types) {
    std::string text =
        "tgl.kernel @k(%y: !tgl.tensor<[4], f16> {tgl.name = \"y\", tgl.role = \"out\"}) {\n";
    for (auto [number, type] : enumerate(types))
      text += ("%t" + Twine(number) + " = tgl.temp \"t\" : !tgl.tensor<[4], " + type + ">\n").str();
    module = mlir::parseSourceString<mlir::ModuleOp>(text + "}", &context);
    return module ? KernelWork::count(*module).roundings() : 0;
  };
  EXPECT_EQ(roundings({}), 1u);
  EXPECT_EQ(roundings({"f32", "f64", "i8"}), 1u);
  EXPECT_EQ(roundings({"f16"}), 3u);
  EXPECT_EQ(roundings({"bf16", "f32", "f8E4M3FN"}), 5u);
}

TEST(Parts, OfADeviceAreOneText) {
  std::string text = modulesText(6, 2000), ptx = ptxOf(text, 1);
  EXPECT_EQ(ptxOf(text, 4), ptx); // whatever the machine
  EXPECT_EQ(countOf(ptx, ".version"), 1u);
  EXPECT_EQ(countOf(ptx, ".target"), 1u);
  EXPECT_EQ(countOf(ptx, ".extern .shared"), 1u);
  for (unsigned kernel = 0; kernel < 6; ++kernel)
    EXPECT_EQ(countOf(ptx, ".entry kernel" + std::to_string(kernel) + "("), 1u);
  // Each part has its own of what its kernels share, under its own name.
  unsigned parts = countOf(ptx, "\n.global .align");
  EXPECT_GT(parts, 1u);
  for (unsigned part = 0; part < parts; ++part)
    EXPECT_EQ(countOf(ptx, "table_$_" + std::to_string(part) + "[16]"), 1u);
  Expected<Cubin> cubin = assemble(ptx, "sm_90a");
  if (!cubin && cubin.errorIsA<MissingToolError>()) {
    consumeError(cubin.takeError());
    GTEST_SKIP() << "no assembler here";
  }
  EXPECT_TRUE(bool(cubin)) << toString(cubin.takeError());
}

TEST(Parts, OfASmallModuleAreOne) {
  std::string ptx = ptxOf(modulesText(2, 10), 4);
  EXPECT_EQ(countOf(ptx, ".entry"), 2u);
  EXPECT_EQ(countOf(ptx, " table["), 1u) << ptx;
}

} // namespace
