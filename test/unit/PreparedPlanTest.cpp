//===- PreparedPlanTest.cpp - What a plan asks of the driver -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/PreparedPlan.h"
#include "FakeCuda.h"
#include "runtime/CudaGraph.h"
#include <gtest/gtest.h>

using namespace tegula;

namespace {

IndexExpr parse(const char *text) { return *IndexExpr::parse(text); }

PlanArgument argument(PlanArgument::Kind kind, unsigned index = 0, IndexExpr size = 0) {
  PlanArgument made;
  made.kind = kind;
  made.index = index;
  made.size = std::move(size);
  return made;
}

/// `f`, a thread for a point, with these arguments.
PlanStep launchOf(const char *function, IndexExpr points, std::vector<PlanArgument> arguments) {
  PlanStep step;
  step.byThread.name = function;
  step.byThread.threads = step.byThread.unitsPerBlock = 256;
  step.points = std::move(points);
  step.arguments = std::move(arguments);
  return step;
}

class PreparedPlanTest : public testing::Test {
protected:
  void SetUp() override {
    auto opened = CudaDevice::open();
    ASSERT_TRUE(bool(opened)) << llvm::toString(opened.takeError());
    device = std::move(*opened);
    std::string text = "fake-cubin sm_90a\n"
                       ".entry f(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .f32 p3)\n"
                       ".entry g(.param .u64 p0, .param .u64 p1)\n"
                       ".entry h(.param .u64 p0, .param .u64 p1, .param .u64 p2)\n";
    auto loaded = device->load(llvm::ArrayRef(text.c_str(), text.size() + 1));
    ASSERT_TRUE(bool(loaded)) << llvm::toString(loaded.takeError());
    module = std::move(*loaded);
    fakecuda::reset();
  }

  std::unique_ptr<PreparedPlan> prepare(llvm::StringMap<int64_t> sizes) {
    auto made = PreparedPlan::make(*module, plan, std::move(sizes));
    EXPECT_TRUE(bool(made)) << llvm::toString(made.takeError());
    return made ? std::move(*made) : nullptr;
  }

  std::string refusal(llvm::StringMap<int64_t> sizes) {
    auto made = PreparedPlan::make(*module, plan, std::move(sizes));
    return made ? "" : llvm::toString(made.takeError());
  }

  void run(const PreparedPlan &prepared, const PlanInputs &inputs) {
    llvm::Error error = prepared.run(inputs);
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
  }

  std::shared_ptr<CudaDevice> device;
  std::shared_ptr<CudaModule> module;
  Plan plan;
};

TEST_F(PreparedPlanTest, PutsEachArgumentInItsPlace) {
  plan.buffers.resize(2);
  plan.buffers[0].argument = 0;
  plan.buffers[1].argument = 1;
  plan.steps = {
      launchOf("f", parse("M*N"),
               {argument(PlanArgument::Buffer, 1), argument(PlanArgument::Size, 0, parse("N + 1")),
                argument(PlanArgument::Errors), argument(PlanArgument::Scalar, 0)})};
  auto prepared = prepare({{"M", 1000}, {"N", 10}});
  EXPECT_EQ(prepared->numLaunches(), 1u);
  EXPECT_EQ(prepared->workspaceBytes(), 0);

  fakecuda::reset();
  float scalar = 2.5;
  const void *scalars[] = {&scalar};
  DeviceAddress addresses[] = {0x1000, 0x2000};
  PlanInputs inputs;
  inputs.arguments = addresses;
  inputs.scalars = scalars;
  inputs.errors = 0x3000;
  inputs.stream = reinterpret_cast<void *>(0x77);
  run(*prepared, inputs);
  // Nothing but the launch, whatever was prepared.
  EXPECT_EQ(fakecuda::record().calls, (std::map<std::string, unsigned>{{"cuLaunchKernel", 1}}));
  const fakecuda::Launch &launch = fakecuda::record().launches.at(0);
  EXPECT_EQ(launch.function, "f");
  EXPECT_EQ(launch.blocks, 40u); // 10,000 points, 256 threads
  EXPECT_EQ(launch.threads, 256u);
  EXPECT_EQ(launch.stream, inputs.stream);
  uint32_t bits;
  std::memcpy(&bits, &scalar, 4);
  EXPECT_EQ(launch.parameters, (std::vector<uint64_t>{0x2000, 11, 0x3000, bits}));
}

TEST_F(PreparedPlanTest, LoopsBecomeLaunches) {
  PlanStep loop;
  loop.kind = PlanStep::Loop;
  loop.low = 0;
  loop.high = parse("T");
  loop.reverse = true;
  loop.body = {launchOf("g", parse("max(d0, 0)"),
                        {argument(PlanArgument::Size, 0, parse("3*d0")),
                         argument(PlanArgument::Size, 0, parse("T"))})};
  plan.steps = {loop, launchOf("g", parse("T"),
                               {argument(PlanArgument::Size, 0, parse("T")),
                                argument(PlanArgument::Size, 0, parse("2*T"))})};
  auto prepared = prepare({{"T", 4}});
  EXPECT_EQ(prepared->numLaunches(), 4u); // that for no point is none
  run(*prepared, {});
  std::vector<std::vector<uint64_t>> parameters;
  for (const fakecuda::Launch &launch : fakecuda::record().launches)
    parameters.push_back(launch.parameters);
  EXPECT_EQ(parameters, (std::vector<std::vector<uint64_t>>{{9, 4}, {6, 4}, {3, 4}, {4, 8}}));
}

TEST_F(PreparedPlanTest, AnEmptyLoopShiftsNothing) {
  PlanStep loop;
  loop.kind = PlanStep::Loop;
  loop.low = 0;
  loop.high = parse("T");
  loop.body = {launchOf("f", 1, {argument(PlanArgument::Size, 0, parse("d0"))})};
  plan.steps = {
      loop,
      launchOf("g", 1, {argument(PlanArgument::Size, 0, 5), argument(PlanArgument::Size, 0, 6)})};
  auto prepared = prepare({{"T", -3}});
  run(*prepared, {});
  ASSERT_EQ(fakecuda::record().launches.size(), 1u);
  EXPECT_EQ(fakecuda::record().launches[0].parameters, (std::vector<uint64_t>{5, 6}));
}

TEST_F(PreparedPlanTest, MoreLaunchesThanAreKeptAreTheSame) {
  PlanStep loop;
  loop.kind = PlanStep::Loop;
  loop.low = 0;
  loop.high = parse("T");
  loop.body = {launchOf(
      "g", 1,
      {argument(PlanArgument::Size, 0, parse("d0")), argument(PlanArgument::Size, 0, parse("T"))})};
  plan.steps = {loop};
  auto prepared = prepare({{"T", 70000}});
  EXPECT_EQ(prepared->numLaunches(), 0u);
  run(*prepared, {});
  const auto &launches = fakecuda::record().launches;
  ASSERT_EQ(launches.size(), 70000u);
  for (unsigned at : {0u, 1u, 65536u, 69999u})
    EXPECT_EQ(launches[at].parameters, (std::vector<uint64_t>{at, 70000}));
}

TEST_F(PreparedPlanTest, TilesRunWhereTheirNumbersAreShort) {
  PlanStep step =
      launchOf("g", 1, {argument(PlanArgument::Size, 0, 1), argument(PlanArgument::Size, 0, 2)});
  step.tiles.launches = {{"g", 7, 128, 0, "a tile"}};
  step.tiles.largestNumber = parse("N");
  plan.steps = {step};
  auto threadsFor = [&](int64_t size) {
    fakecuda::reset();
    run(*prepare({{"N", size}}), {});
    return fakecuda::record().launches.at(0).threads;
  };
  EXPECT_EQ(threadsFor(0x7fffffff), 128u);
  EXPECT_EQ(threadsFor(0x80000000), 256u);
}

/// Code that both ways share tells them apart by that.
TEST_F(PreparedPlanTest, TheWorkspaceOfTilesIsNotTheGeneralLaunchs) {
  plan.buffers.resize(1);
  plan.buffers[0].argument = 0;
  PlanStep step =
      launchOf("g", 1, {argument(PlanArgument::Buffer, 0), argument(PlanArgument::Workspace)});
  step.tiles.launches = {{"g", 7, 128, 0, "a tile"}};
  step.tiles.largestNumber = 1;
  step.tiles.aligned = {0};
  step.tiles.workspaceBytes = 100;
  auto workspaceFor = [&](DeviceAddress address, unsigned threads) {
    plan.steps = {step};
    auto prepared = prepare({});
    DeviceAddress addresses[] = {address};
    PlanInputs inputs;
    inputs.arguments = addresses;
    inputs.workspace = 0x10000;
    fakecuda::reset();
    run(*prepared, inputs);
    const fakecuda::Launch &launch = fakecuda::record().launches.at(0);
    EXPECT_EQ(launch.threads, threads);
    EXPECT_EQ(launch.parameters[0], address);
    return launch.parameters[1];
  };
  EXPECT_EQ(workspaceFor(0x5000, 128), 0x10000u);
  EXPECT_EQ(workspaceFor(0x5004, 256), 0u);
  step.byThread.workspaceBytes = 8;
  EXPECT_EQ(workspaceFor(0x5004, 256), 0x10000u);
}

TEST_F(PreparedPlanTest, TemporariesAndAreasShareTheWorkspace) {
  plan.buffers.resize(3);
  plan.buffers[0].argument = 0;
  for (unsigned temporary : {1u, 2u})
    plan.buffers[temporary].bytes = parse("4*N");
  auto step = [&](unsigned from, unsigned to) {
    PlanStep made =
        launchOf("h", parse("N"),
                 {argument(PlanArgument::Buffer, from), argument(PlanArgument::Buffer, to),
                  argument(PlanArgument::Workspace)});
    made.byThread.workspaceBytes = 100;
    return made;
  };
  plan.steps = {step(0, 1), step(1, 0), step(0, 2), step(2, 0)};
  auto prepared = prepare({{"N", 256}});
  EXPECT_EQ(prepared->workspaceBytes(),
            1024 + 256); // one temporary at a time, and the area of one block
  DeviceAddress addresses[] = {0x5000};
  PlanInputs inputs;
  inputs.arguments = addresses;
  inputs.workspace = 0x10000;
  run(*prepared, inputs);
  for (const fakecuda::Launch &launch : fakecuda::record().launches) {
    EXPECT_EQ(launch.parameters[2], 0x10400u);
    EXPECT_TRUE(launch.parameters[0] == 0x5000 || launch.parameters[0] == 0x10000);
  }
}

TEST_F(PreparedPlanTest, OnlyALaunchBehindALaunchOfTheCallStartsEarly) {
  plan.buffers.resize(1);
  plan.buffers[0].bytes = 100;
  PlanStep zero;
  zero.kind = PlanStep::Zero;
  auto launch = [&] {
    return launchOf("g", 1,
                    {argument(PlanArgument::Size, 0, 1), argument(PlanArgument::Size, 0, 2)});
  };
  plan.steps = {launch(), launch(), zero, launch(), launch()};
  auto memory = device->allocate(512);
  ASSERT_TRUE(bool(memory));
  PlanInputs inputs;
  inputs.workspace = *memory;
  inputs.stream = reinterpret_cast<void *>(0x77);
  auto started = [&] {
    fakecuda::reset();
    auto prepared = prepare({});
    run(*prepared, inputs);
    run(*prepared, inputs);
    std::string text;
    for (const fakecuda::Launch &launch : fakecuda::record().launches) {
      EXPECT_EQ(launch.parameters, (std::vector<uint64_t>{1, 2}));
      EXPECT_EQ(launch.stream, inputs.stream);
      text += launch.isDependent ? 'd' : '-';
    }
    return text;
  };
  EXPECT_EQ(started(), "--------");
  plan.dependentLaunches = true;
  EXPECT_EQ(started(), "-d-d-d-d");
  device->free(*memory);
}

TEST_F(PreparedPlanTest, TilesSumsStartEarly) {
  PlanStep step =
      launchOf("g", 1, {argument(PlanArgument::Size, 0, 1), argument(PlanArgument::Size, 0, 2)});
  step.tiles.launches = {
      {"g", parse("N"), 128, 0, "planes"}, {"g", 2, 128, 0, "a tile"}, {"g", 3, 128, 0, "parts"}};
  step.tiles.largestNumber = 1;
  plan.steps = {step, step};
  auto started = [&](int64_t planes) {
    fakecuda::reset();
    run(*prepare({{"N", planes}}), {});
    std::string text;
    for (const fakecuda::Launch &launch : fakecuda::record().launches)
      text += launch.isDependent ? 'd' : '-';
    return text;
  };
  EXPECT_EQ(started(1), "------");
  for (PlanStep &each : plan.steps)
    each.tiles.launches.back().usesDependentLaunch = true;
  EXPECT_EQ(started(1), "--d--d");
  EXPECT_EQ(started(0), "-d-d");
  plan.dependentLaunches = true;
  EXPECT_EQ(started(1), "-ddddd");
}

TEST_F(PreparedPlanTest, ZeroesWhatThePlanZeroes) {
  plan.buffers.resize(1);
  plan.buffers[0].bytes = parse("N");
  PlanStep zero;
  zero.kind = PlanStep::Zero;
  plan.steps = {zero};
  auto memory = device->allocate(512);
  ASSERT_TRUE(bool(memory));
  PlanInputs inputs;
  inputs.workspace = *memory;
  run(*prepare({{"N", 100}}), inputs);
  run(*prepare({{"N", 0}}), inputs);
  EXPECT_EQ(fakecuda::record().count("cuMemsetD8Async"), 1u);
  device->free(*memory);
}

TEST_F(PreparedPlanTest, WhatDoesNotFitIsRefused) {
  plan.steps = {launchOf("g", parse("N*N*N"), {})};
  EXPECT_NE(refusal({{"N", int64_t(1) << 40}}).find("the points of a launch do not fit in 64 bits"),
            std::string::npos);
  plan.steps = {launchOf("g", 1, {argument(PlanArgument::Size, 0, parse("N*N*N"))})};
  EXPECT_NE(refusal({{"N", int64_t(1) << 40}}).find("a size does not fit"), std::string::npos);
  plan.buffers.resize(1);
  plan.buffers[0].name = "t";
  plan.buffers[0].bytes = parse("N*N*N");
  plan.steps = {launchOf("g", 1, {argument(PlanArgument::Buffer, 0)})};
  EXPECT_NE(refusal({{"N", int64_t(1) << 40}}).find("the bytes of 't' do not fit"),
            std::string::npos);
  EXPECT_EQ(fakecuda::record().launches.size(), 0u);
}

TEST_F(PreparedPlanTest, AFailedLaunchIsNamed) {
  plan.steps = {
      launchOf("g", 1, {argument(PlanArgument::Size, 0, 1), argument(PlanArgument::Size, 0, 1)})};
  auto prepared = prepare({});
  fakecuda::failCall("cuLaunchKernel", 700);
  llvm::Error error = prepared->run({});
  ASSERT_TRUE(error.isA<CudaError>());
  llvm::handleAllErrors(std::move(error), [](const CudaError &failure) {
    EXPECT_EQ(failure.kind, CudaError::Fault);
    EXPECT_NE(failure.message.find("cuLaunchKernel"), std::string::npos);
  });
}

} // namespace

TEST_F(PreparedPlanTest, WatchedLaunchesRunOneByOne) {
  struct Watch final : LaunchWatch {
    std::vector<std::string> notes;
    std::vector<unsigned> waits; // for the stream, at each note
    void begin(const LaunchNote &launch) override { note(launch.text()); }
    void end() override { note("end"); }
    void note(std::string text) {
      notes.push_back(std::move(text));
      waits.push_back(fakecuda::record().count("cuStreamSynchronize"));
    }
  } watch;
  PlanArgument size = argument(PlanArgument::Size, 0, parse("M"));
  plan.steps = {launchOf("g", parse("M"), {size, size}),
                launchOf("h", parse("1"), {size, size, size})};
  auto prepared = prepare({{"M", 1000}});
  fakecuda::reset();
  PlanInputs inputs;
  inputs.watch = &watch;
  run(*prepared, inputs);
  EXPECT_EQ(watch.notes, (std::vector<std::string>{"launch 'g' (4 blocks of 256 threads)", "end",
                                                   "launch 'h' (1 block of 256 threads)", "end"}));
  EXPECT_EQ(watch.waits, (std::vector<unsigned>{0, 1, 1, 2}));

  // What the device says of the second is an error with its name, of the kind that the code has.
  fakecuda::reset();
  fakecuda::failCall("cuStreamSynchronize", 716, 1);
  llvm::Error error = prepared->run(inputs);
  EXPECT_TRUE(error.isA<CudaError>());
  llvm::handleAllErrors(std::move(error), [](const CudaError &failed) {
    EXPECT_EQ(failed.kind, CudaError::Fault);
    EXPECT_EQ(failed.message.rfind("launch 'h' (1 block of 256 threads): cuStreamSynchronize: ", 0),
              0u)
        << failed.message;
  });
}

TEST_F(PreparedPlanTest, AGraphRunsWhatWasCaptured) {
  PlanArgument size = argument(PlanArgument::Size, 0, parse("M"));
  plan.steps = {launchOf("g", parse("M"), {size, size}),
                launchOf("h", parse("1"), {size, size, size})};
  auto prepared = prepare({{"M", 1000}});
  fakecuda::reset();
  void *captured = nullptr;
  DeviceAddress workspace = 0; // may be made only now
  auto graph = CudaGraph::capture(*device, [&](void *stream) -> llvm::Error {
    captured = stream;
    auto allocated = device->allocate(1000);
    if (!allocated)
      return allocated.takeError();
    workspace = *allocated;
    PlanInputs inputs;
    inputs.stream = stream;
    inputs.workspace = workspace;
    return prepared->run(inputs);
  });
  ASSERT_TRUE(bool(graph)) << llvm::toString(graph.takeError());
  EXPECT_TRUE(fakecuda::record().launches.empty()); // queued, not run
  for (unsigned times = 1; times <= 2; ++times) {
    auto taken = (*graph)->replay();
    ASSERT_TRUE(bool(taken)) << llvm::toString(taken.takeError());
    EXPECT_EQ(fakecuda::record().launches.size(), 2 * times);
  }
  EXPECT_EQ(fakecuda::record().launches[1].function, "h");
  EXPECT_EQ(fakecuda::record().launches[1].stream, captured);
  graph->reset();
  device->free(workspace);
  EXPECT_EQ(fakecuda::record().count("cuGraphExecDestroy"), 1u);
  EXPECT_EQ(fakecuda::record().count("cuStreamDestroy_v2"), 1u);

  // Work that fails ends the capture, and nothing is left of it.
  fakecuda::reset();
  fakecuda::failCall("cuLaunchKernel", 1, 1);
  auto failed = CudaGraph::capture(*device, [&](void *stream) {
    PlanInputs inputs;
    inputs.stream = stream;
    return prepared->run(inputs);
  });
  ASSERT_FALSE(bool(failed));
  llvm::consumeError(failed.takeError());
  EXPECT_EQ(fakecuda::record().count("cuGraphDestroy"), 1u);
  EXPECT_EQ(fakecuda::record().count("cuStreamDestroy_v2"), 1u);
  EXPECT_EQ(fakecuda::record().count("cuGraphInstantiateWithFlags"), 0u);
}
