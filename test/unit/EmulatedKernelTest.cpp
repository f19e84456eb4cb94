//===- EmulatedKernelTest.cpp - Kernels in the emulator, whole and damaged --------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A synchronisation that a strategy forgets must not pass: the device code of kernels is emulated
// without one of its barriers at a time. Then either the emulator finds something, or the barrier
// was not needed (often two stand side by side) and every order of execution gives the right
// result.
//
//===----------------------------------------------------------------------===//
#include "codegen/ptx/Ptx.h"
#include "compiler/Compiler.h"
#include "compiler/EmitDevice.h"
#include "frontend/OpenModule.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/emulator/Emulator.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <gtest/gtest.h>

using namespace llvm;
using namespace tegula;

namespace {

constexpr StringLiteral softmaxText = R"(kernel rows(x: f32[M, N]) -> (y: f32[M, N]) {
  y[i, j] = softmax(x[i, j], over=j)
}
)";
constexpr StringLiteral sortText = R"(kernel rows(x: f32[M, N]) -> (y: f32[M, N]) {
  y[i, j] = sort(x[i, j], over=j)
}
)";
/// A value of each row is used by all of it, twice.
constexpr StringLiteral normText = R"(kernel rows(x: f32[M, N]) -> (y: f32[M, N]) {
  m[i] = mean(x[i, j] for j)
  v[i] = mean(square(x[i, j] - m[i]) for j)
  y[i, j] = (x[i, j] - m[i]) * rsqrt(v[i] + 1)
}
)";

/// The values of a row go round between the blocks of a cluster.
constexpr StringLiteral recurrenceText = R"(kernel rows(x: f32[M, N]) -> (y: f32[M, N]) {
  state h[i in M, j in N] = x[i, j]
  for t in 3 {
    h[i, j] = x[i, j] - 0.125 * sum(x[j % M, k] * h[i, k] for k)
  }
  y[i, j] = h[i, j]
}
)";

/// Rows in tiles, whose blocks look for what others publish; in another order the sums would be
/// rounded otherwise.
constexpr StringLiteral scanText = R"(kernel rows(x: f32[M, N]) -> (y: f32[M, N]) {
  y[i, j] = cumsum(x[i, j] / 3, over=j)
}
)";

struct RowCase {
  StringRef text;
  int64_t n = 300;
  unsigned cluster = 1; // blocks of a cluster, which share a row of known length
  bool isKnown = false; // sizes are, as where there are clusters
};

/// The device code of a kernel of one input and one output, both f32[M, N].
class RowKernel {
public:
  RowKernel(const RowCase &row, int64_t m) : m(m), n(row.n), diagnostics(sources) {
    StringRef text = row.text;
    std::unique_ptr<tegula::Module> parsed =
        openModule(sources, sources.add("rows.tgl", text.str()), diagnostics);
    std::unique_ptr<checked::Program> program = check(*parsed, {}, diagnostics);
    if (!program) {
      ADD_FAILURE() << "the checker refuses the kernel";
      return;
    }
    EmitOptions emit;
    emit.tile = 32;
    mlir::OwningOpRef<mlir::ModuleOp> ir = emitIR(*program, sources, mlirContext, emit);
    mlir::PassManager manager(&mlirContext);
    PipelineOptions pipeline;
    pipeline.target = TargetInfo::gpu(90, true);
    EmitterOptions emitter;
    if (row.isKnown || row.cluster > 1)
      pipeline.sizes = {{"M", m}, {"N", n}};
    if (row.cluster > 1) {
      pipeline.disabled = {"tgl-split-reductions", "tgl-spread-nests"}; // which are for few rows
      emitter.target.clusterBlocks = pipeline.target.clusterBlocks = row.cluster;
      emitter.target.sharedBytes = row.n * 4 / row.cluster + (8 << 10);
    }
    pipeline.matches = std::make_shared<StatementMatches>();
    buildPipeline(manager, pipeline);
    EXPECT_TRUE(succeeded(manager.run(*ir)));
    auto machine = cantFail(createDeviceMachine("sm_90a"));
    module = std::make_unique<llvm::Module>("rows", context);
    applyDeviceTarget(*module, *machine);
    Expected<DeviceCode> device =
        emitDevice(*ir->getOps<tgl::KernelOp>().begin(), *module, emitter, *pipeline.matches);
    EXPECT_TRUE(bool(device)) << toString(device.takeError());
    plan = device->plan;
    optimizeForDevice(*module, *machine);
    x.resize(m * n);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i * 7919 % 1009) / 128;
  }

  unsigned cluster() const {
    unsigned largest = 1;
    for (const PlanStep &step : plan.steps)
      largest = std::max(largest, step.byTeam.cluster);
    return largest;
  }
  bool isGood() const { return module != nullptr; }

  static bool isBarrier(const Instruction &instruction) {
    auto *call = dyn_cast<IntrinsicInst>(&instruction);
    return call && (call->getIntrinsicID() == Intrinsic::nvvm_barrier_cta_sync_aligned_all ||
                    call->getIntrinsicID() == Intrinsic::nvvm_bar_warp_sync ||
                    call->getIntrinsicID() == Intrinsic::nvvm_barrier_cluster_arrive_aligned);
  }

  static Instruction *waitAfter(Instruction &arrival) {
    bool isAfter = false;
    for (Instruction &instruction : instructions(*arrival.getFunction())) {
      auto *call = dyn_cast<IntrinsicInst>(&instruction);
      if (isAfter && call && call->getIntrinsicID() == Intrinsic::nvvm_barrier_cluster_wait_aligned)
        return &instruction;
      isAfter |= &instruction == &arrival;
    }
    llvm_unreachable("who arrives waits");
  }

  unsigned numBarriers() const {
    unsigned count = 0;
    for (const Function &function : *module)
      count += count_if(instructions(function), isBarrier);
    return count;
  }

  std::string message; // of what was found last
  static constexpr unsigned all = ~0u;
  /// Runs the code without one barrier or without all, or as it is. What is found is in `kind`.
  std::vector<float> run(std::optional<unsigned> without, uint64_t seed,
                         std::optional<EmulatorError::Kind> &kind) {
    std::unique_ptr<llvm::Module> damaged = CloneModule(*module);
    unsigned next = 0;
    SmallVector<Instruction *> removed;
    for (Function &function : *damaged)
      for (Instruction &instruction : instructions(function))
        if (isBarrier(instruction) && (next++ == without || without == all)) {
          removed.push_back(&instruction);
          // The barrier of a cluster is two, with other work between them.
          if (cast<IntrinsicInst>(instruction).getIntrinsicID() ==
              Intrinsic::nvvm_barrier_cluster_arrive_aligned)
            removed.push_back(waitAfter(instruction));
        }
    for (Instruction *instruction : removed)
      instruction->eraseFromParent();
    auto code = cantFail(emulate(*damaged));
    std::vector<float> y(x.size());
    EmulatorInputs inputs;
    inputs.arguments = {{x.data(), x.size() * 4, BufferContents::Constant},
                        {y.data(), y.size() * 4, BufferContents::Undefined}};
    ErrorRecord errors;
    inputs.errors = &errors;
    inputs.size = [&](StringRef name) { return std::optional<int64_t>(name == "M" ? m : n); };
    EmulatorOptions options;
    options.seed = seed;
    kind.reset();
    handleAllErrors(
        emulatePlan(*code, plan, inputs, options),
        [&](const EmulatorError &error) {
          kind = error.kind;
          message = error.message;
        },
        [&](const ErrorInfoBase &error) { ADD_FAILURE() << error.message(); });
    return y;
  }

private:
  int64_t m, n;
  SourceManager sources;
  Diagnostics diagnostics;
  mlir::MLIRContext mlirContext;
  LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  Plan plan;
  std::vector<float> x;
};

class DamagedKernel : public ::testing::TestWithParam<RowCase> {};

TEST_P(DamagedKernel, IsFoundWithoutItsBarriers) {
  RowKernel kernel(GetParam(), 3);
  ASSERT_TRUE(kernel.isGood());
  EXPECT_EQ(kernel.cluster(), GetParam().cluster);
  std::optional<EmulatorError::Kind> kind;
  std::vector<float> expected = kernel.run(std::nullopt, 0, kind);
  ASSERT_FALSE(kind.has_value()) << kernel.message;
  unsigned count = kernel.numBarriers();
  for (unsigned barrier = 0; barrier < count; ++barrier)
    for (uint64_t seed : {0, 1}) {
      std::vector<float> got = kernel.run(barrier, seed, kind);
      if (!kind)
        EXPECT_EQ(got, expected) << "without barrier " << barrier << ", seed " << seed;
    }
  kernel.run(RowKernel::all, 0, kind);
  EXPECT_TRUE(kind == EmulatorError::Race || kind == EmulatorError::Undefined);
}

INSTANTIATE_TEST_SUITE_P(Kernels, DamagedKernel,
                         ::testing::Values(RowCase{softmaxText}, RowCase{normText},
                                           RowCase{sortText}, RowCase{softmaxText, 40000, 4},
                                           RowCase{normText, 8219, 2},
                                           RowCase{recurrenceText, 200, 2},
                                           RowCase{scanText, 2501, 1, true}));

/// Tiles of 1024 elements, in groups of 8 parts, of which the second has one.
TEST(EmulatedKernel, ScansAlikeInAnyOrder) {
  RowKernel kernel(RowCase{scanText, 9001, 1, true}, 65);
  ASSERT_TRUE(kernel.isGood());
  std::optional<EmulatorError::Kind> kind;
  std::vector<float> expected = kernel.run(std::nullopt, 0, kind);
  ASSERT_FALSE(kind.has_value()) << kernel.message;
  double sum = 0;
  for (int64_t j = 0; j < 9001; ++j)
    sum += double(j * 7919 % 1009) / 128 / 3;
  EXPECT_NEAR(expected[9000], sum, 1e-5 * sum);
  for (uint64_t seed : {1, 2, 3}) {
    std::vector<float> got = kernel.run(std::nullopt, seed, kind);
    EXPECT_FALSE(kind.has_value()) << kernel.message;
    EXPECT_EQ(got, expected) << "seed " << seed;
  }
}

TEST(EmulatedKernel, KnowsTheLinesOfItsProgram) {
  SourceManager sources;
  Diagnostics diagnostics(sources);
  std::unique_ptr<tegula::Module> module =
      openModule(sources, sources.add("rows.tgl", normText.str()), diagnostics);
  CompileOptions options;
  options.target = "emulate";
  auto kernel = compileKernel(*module, options, diagnostics);
  ASSERT_TRUE(bool(kernel)) << toString(kernel.takeError());
  ASSERT_FALSE(diagnostics.hasErrors());
  bool hasSum = false, hasResult = false;
  for (const EmulatedAccess &access : (*kernel)->emulated->accesses) {
    StringRef place = (*kernel)->emulated->places[access.place].text;
    EXPECT_TRUE(place.starts_with("rows.tgl:")) << place.str();
    hasSum |= access.reads && place.starts_with("rows.tgl:2:");
    hasResult |= access.writes && place.starts_with("rows.tgl:4:");
  }
  EXPECT_TRUE(hasSum);
  EXPECT_TRUE(hasResult);
}

} // namespace
