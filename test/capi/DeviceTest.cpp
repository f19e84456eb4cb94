//===- DeviceTest.cpp - Launches on a device, through the C interface --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a launch asks of the driver, and what is refused before it is asked anything: test/fakecuda
// in the place of the driver, which runs nothing.
//
//===----------------------------------------------------------------------===//
#include <tegula/tegula.h>

#include "FakeCuda.h"
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>

using testing::HasSubstr;
using Calls = std::map<std::string, unsigned>;

namespace {

template <auto release> struct Release {
  template <typename T> void operator()(T *handle) const { release(handle); }
};
using Context = std::unique_ptr<tegula_context, Release<tegula_context_free>>;
using Program = std::unique_ptr<tegula_program, Release<tegula_program_free>>;
using Kernel = std::unique_ptr<tegula_kernel, Release<tegula_free>>;
using Prepared = std::unique_ptr<tegula_prepared, Release<tegula_prepared_free>>;

class DeviceTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("TEGULA_PTXAS", TEGULA_FAKE_PTXAS, 1);
    setenv("TEGULA_CACHE_DIR", "", 1);
    tegula_context *made = nullptr;
    ASSERT_EQ(tegula_context_create(nullptr, &made, nullptr), TEGULA_OK);
    context.reset(made);
  }

  void TearDown() override {
    tegula_message_free(message);
    kernel.reset();
    EXPECT_EQ(fakecuda::record().bytesHeld, 0u) << "device memory is left behind";
    fakecuda::reset();
  }

  tegula_message **out() {
    tegula_message_free(message);
    return &message;
  }
  std::string text() { return tegula_message_text(message); }

  tegula_status compile(const std::string &text, bool dependentLaunches = false) {
    tegula_program *parsed = nullptr;
    EXPECT_EQ(tegula_parse(text.data(), text.size(), nullptr, &parsed, out()), TEGULA_OK)
        << this->text();
    Program program(parsed);
    tegula_compile_options options{};
    options.struct_bytes = sizeof(options);
    options.target = "cuda";
    options.dependent_launches = dependentLaunches;
    options.any_sizes = anySizes;
    options.tuned = tuned;
    tegula_kernel *made = nullptr;
    tegula_status status = tegula_compile(context.get(), program.get(), &options, &made, out());
    kernel.reset(made);
    fakecuda::Record &record = fakecuda::record();
    record.calls.clear();
    record.launches.clear();
    return status;
  }

  /// An address, and shapes that live as long as the test.
  tegula_value tensor(uintptr_t address, std::vector<int64_t> shape = {}) {
    shapes.push_back(std::make_unique<std::vector<int64_t>>(std::move(shape)));
    tegula_value value{};
    value.data = reinterpret_cast<void *>(address);
    value.dtype = TEGULA_F32;
    value.rank = shapes.back()->size();
    value.shape = value.rank ? shapes.back()->data() : nullptr;
    return value;
  }

  tegula_status launch(const std::vector<tegula_value> &arguments, void *stream = nullptr) {
    tegula_launch_options options{};
    options.struct_bytes = sizeof(options);
    options.stream = stream;
    return tegula_launch(kernel.get(), arguments.data(), arguments.size(), &options, out());
  }

  Prepared prepare(const std::vector<tegula_value> &arguments) {
    tegula_prepared *made = nullptr;
    EXPECT_EQ(tegula_prepare(kernel.get(), arguments.data(), arguments.size(), &made, out()),
              TEGULA_OK)
        << text();
    return Prepared(made);
  }

  /// Refused with words that hold all of `words`, and nothing asked of the driver.
  void expectRefused(const std::vector<tegula_value> &arguments, std::vector<std::string> words) {
    fakecuda::record().calls.clear();
    EXPECT_EQ(launch(arguments), TEGULA_WRONG_CALL);
    for (const std::string &word : words)
      EXPECT_THAT(text(), HasSubstr(word));
    for (const char *call :
         {"cuLaunchKernel", "cuLaunchKernelEx", "cuMemAllocAsync", "cuMemsetD8Async"})
      EXPECT_EQ(fakecuda::record().count(call), 0u) << call;
  }

  bool anySizes = false, tuned = false;
  Context context;
  Kernel kernel;
  tegula_message *message = nullptr;
  std::vector<std::unique_ptr<std::vector<int64_t>>> shapes;
};

const char *const addText =
    "kernel add(x: f32[N], z: f32[N]) -> (y: f32[N]) { y[i] = x[i] + z[i] }";
/// Two launches, and a temporary of N elements between them.
const char *const chainText = "kernel chain(x: f32[N]) -> (y: f32[N]) {\n"
                              "  total = sum(x[i] for i)\n"
                              "  y[i] = x[i] - total\n"
                              "}";

//===----------------------------------------------------------------------===//
// What a launch costs
//===----------------------------------------------------------------------===//

TEST_F(DeviceTest, ALaunchIsOneCallOfTheDriver) {
  ASSERT_EQ(compile(addText), TEGULA_OK) << text();
  std::vector<tegula_value> arguments = {tensor(0x1000, {100}), tensor(0x2000, {100}),
                                         tensor(0x3000)};
  ASSERT_EQ(launch(arguments), TEGULA_OK) << text();
  for (int again = 0; again < 3; ++again) {
    fakecuda::record().calls.clear();
    ASSERT_EQ(launch(arguments), TEGULA_OK);
    // The caller's context is another, and is put back.
    EXPECT_EQ(fakecuda::record().calls, (Calls{{"cuCtxGetCurrent", 1},
                                               {"cuCtxPushCurrent_v2", 1},
                                               {"cuLaunchKernel", 1},
                                               {"cuCtxPopCurrent_v2", 1}}));
  }
}

TEST_F(DeviceTest, SizesHaveCodeOfTheirOwn) {
  ASSERT_EQ(compile(addText), TEGULA_OK) << text();
  auto launchOf = [&](int64_t size, uintptr_t address = 0x1000) {
    fakecuda::record().calls.clear();
    fakecuda::record().launches.clear();
    EXPECT_EQ(launch({tensor(address, {size}), tensor(0x200000, {size}), tensor(0x300000)}),
              TEGULA_OK)
        << text();
    EXPECT_EQ(fakecuda::record().launches.size(), 1u);
    return fakecuda::record().launches[0];
  };
  fakecuda::Launch first = launchOf(4096);
  EXPECT_EQ(fakecuda::record().count("cuModuleLoadData"), 1u);
  EXPECT_EQ(first.blocks, 4u) << "four elements for a thread";
  launchOf(4096);
  EXPECT_EQ(fakecuda::record().count("cuModuleLoadData"), 0u) << "sizes are remembered";
  launchOf(8192);
  EXPECT_EQ(fakecuda::record().count("cuModuleLoadData"), 1u);
  // What is not aligned to a vector keeps to code for single elements.
  EXPECT_EQ(launchOf(4096, 0x1004).blocks, 16u);
  EXPECT_EQ(fakecuda::record().count("cuModuleLoadData"), 0u);
  // Only so many sets of sizes.
  for (int64_t size = 1; size <= 20; ++size)
    launchOf(size);
  EXPECT_EQ(launchOf(4096 * 3).blocks, 48u);
  EXPECT_EQ(fakecuda::record().count("cuModuleLoadData"), 0u);
  EXPECT_EQ(launchOf(4096).blocks, 4u) << "earlier ones stay";
}

TEST_F(DeviceTest, CodeForAnySizesOnRequest) {
  anySizes = true;
  ASSERT_EQ(compile(addText), TEGULA_OK) << text();
  ASSERT_EQ(launch({tensor(0x1000, {4096}), tensor(0x20000, {4096}), tensor(0x30000)}), TEGULA_OK)
      << text();
  EXPECT_EQ(fakecuda::record().count("cuModuleLoadData"), 0u);
  EXPECT_EQ(fakecuda::record().launches[0].blocks, 16u);
}

TEST_F(DeviceTest, APreparedCallPutsAddressesAndScalarsInPlace) {
  ASSERT_EQ(compile("kernel scale(x: f32[M, N], s: f32, n: i32) -> (y: f32[M, N]) { y[i, j] = s * "
                    "x[i, j] + n }"),
            TEGULA_OK)
      << text();
  tegula_value number = tensor(0);
  number.number = 1;
  Prepared call = prepare({tensor(0, {3, 4}), tensor(0), number, number});
  EXPECT_EQ(tegula_prepared_workspace_bytes(call.get()), 0u);
  float s = 2.5;
  int32_t n = -7;
  void *data[] = {reinterpret_cast<void *>(0x1000), reinterpret_cast<void *>(0x2000), &s, &n};
  fakecuda::record().calls.clear();
  ASSERT_EQ(tegula_launch_prepared(call.get(), data, 4, nullptr, out()), TEGULA_OK) << text();
  ASSERT_EQ(fakecuda::record().launches.size(), 1u);
  EXPECT_EQ(fakecuda::record().count("cuLaunchKernel"), 1u);
  std::vector<uint64_t> given = fakecuda::record().launches[0].parameters;
  uint32_t bits;
  std::memcpy(&bits, &s, 4);
  for (uint64_t value : {uint64_t(0x1000), uint64_t(0x2000), uint64_t(bits), uint64_t(uint32_t(n))})
    EXPECT_THAT(given, testing::Contains(value));
  // As the ordinary call does.
  std::vector<tegula_value> values = {tensor(0x1000, {3, 4}), tensor(0x2000), tensor(0), tensor(0)};
  values[2].number = s;
  values[3].integer = n;
  ASSERT_EQ(launch(values), TEGULA_OK) << text();
  EXPECT_EQ(fakecuda::record().launches[1].parameters, given);
}

TEST_F(DeviceTest, TemporariesAreOneAllocationInTheOrderOfTheStream) {
  ASSERT_EQ(compile(chainText), TEGULA_OK) << text();
  std::vector<tegula_value> arguments = {tensor(0x100000, {1000}), tensor(0x200000)};
  ASSERT_EQ(launch(arguments), TEGULA_OK) << text();
  EXPECT_GE(fakecuda::record().launches.size(), 2u);
  EXPECT_EQ(fakecuda::record().count("cuMemAllocAsync"), 1u);
  EXPECT_EQ(fakecuda::record().count("cuMemFreeAsync"), 1u);
  EXPECT_EQ(fakecuda::record().count("cuStreamSynchronize"), 0u);
  EXPECT_EQ(fakecuda::record().bytesHeld, 0u);
}

TEST_F(DeviceTest, DependentLaunchesWaitOnTheDevice) {
  std::vector<tegula_value> arguments = {tensor(0x100000, {1000}), tensor(0x200000)};
  for (bool dependent : {false, true}) {
    ASSERT_EQ(compile(chainText, dependent), TEGULA_OK) << text();
    // Every function waits, before it touches memory; or none.
    std::string ptx = tegula_stage(kernel.get(), "ptx");
    size_t entries = 0;
    for (size_t at = ptx.find(".entry"); at != std::string::npos; at = ptx.find(".entry", at + 1)) {
      std::string body = ptx.substr(ptx.find('{', at));
      body = body.substr(0, body.find(".entry"));
      size_t wait = body.find("griddepcontrol.wait");
      EXPECT_EQ(wait != std::string::npos, dependent);
      if (dependent)
        EXPECT_LT(wait, body.find(".global")) << body;
      ++entries;
    }
    EXPECT_GE(entries, 2u);
    ASSERT_EQ(launch(arguments), TEGULA_OK) << text();
    ASSERT_EQ(launch(arguments), TEGULA_OK) << text();
    std::vector<bool> early;
    for (const fakecuda::Launch &one : fakecuda::record().launches)
      early.push_back(one.isDependent);
    EXPECT_EQ(early, (std::vector<bool>{false, dependent, false, dependent}));
  }
}

TEST_F(DeviceTest, NothingIsAllocatedInAWorkspaceThatIsGiven) {
  ASSERT_EQ(compile(chainText), TEGULA_OK) << text();
  std::vector<tegula_value> arguments = {tensor(0x100000, {1000}), tensor(0x200000)};
  size_t bytes = 0;
  int64_t shape[1];
  ASSERT_EQ(tegula_infer(kernel.get(), arguments.data(), 2, shape, &bytes, out()), TEGULA_OK);
  EXPECT_GT(bytes, 0u);
  tegula_launch_options options{};
  options.struct_bytes = sizeof(options);
  options.workspace = reinterpret_cast<void *>(0x400000);
  options.workspace_bytes = bytes;
  ASSERT_EQ(tegula_launch(kernel.get(), arguments.data(), 2, &options, out()), TEGULA_OK) << text();
  EXPECT_EQ(fakecuda::record().count("cuMemAllocAsync"), 0u);
  EXPECT_GE(fakecuda::record().launches.size(), 2u);
}

TEST_F(DeviceTest, APreparedCallKeepsAWorkspaceForEachStream) {
  ASSERT_EQ(compile(chainText), TEGULA_OK) << text();
  uint64_t before = fakecuda::record().bytesHeld;
  Prepared call = prepare({tensor(0, {1000}), tensor(0)});
  EXPECT_EQ(fakecuda::record().bytesHeld, before); // before it runs it holds nothing
  void *data[] = {reinterpret_cast<void *>(0x100000), reinterpret_cast<void *>(0x200000)};
  void *first = reinterpret_cast<void *>(0x10), *second = reinterpret_cast<void *>(0x20);
  auto run = [&](void *stream) {
    tegula_launch_options options{};
    options.struct_bytes = sizeof(options);
    options.stream = stream;
    fakecuda::record().calls.clear();
    fakecuda::record().launches.clear();
    EXPECT_EQ(tegula_launch_prepared(call.get(), data, 2, &options, out()), TEGULA_OK) << text();
    EXPECT_EQ(fakecuda::record().count("cuStreamSynchronize"), 0u);
    EXPECT_EQ(fakecuda::record().launches.size(), 2u);
    return fakecuda::record().launches[0].parameters;
  };
  auto inFirst = run(first);
  EXPECT_EQ(fakecuda::record().count("cuMemAllocAsync"), 1u);
  EXPECT_EQ(run(first), inFirst); // the same memory
  EXPECT_EQ(fakecuda::record().count("cuMemAllocAsync"), 0u);
  EXPECT_EQ(fakecuda::record().count("cuMemFreeAsync"), 0u);
  EXPECT_NE(run(second), inFirst);
  EXPECT_EQ(fakecuda::record().count("cuMemAllocAsync"), 1u);
  EXPECT_NE(run(second), inFirst);
  EXPECT_EQ(fakecuda::record().count("cuMemAllocAsync"), 0u);

  // A graph may run beside later calls on its stream.
  fakecuda::setCapturing(first, true);
  EXPECT_NE(run(first), inFirst);
  EXPECT_EQ(fakecuda::record().count("cuMemAllocAsync"), 1u);
  EXPECT_EQ(fakecuda::record().count("cuMemFreeAsync"), 1u);
  fakecuda::setCapturing(first, false);

  // A new stream with the handle of one that was destroyed.
  fakecuda::replaceStream(first);
  EXPECT_NE(run(first), inFirst);
  for (uintptr_t stream = 0x100; stream < 0x180; stream += 0x10)
    run(reinterpret_cast<void *>(stream));
  EXPECT_EQ(fakecuda::record().count("cuMemFreeAsync"), 1u); // the last of them are not kept
  call.reset();
  EXPECT_EQ(fakecuda::record().bytesHeld, before);
}

TEST_F(DeviceTest, CallsInOneWorkspaceDoNotMix) {
  ASSERT_EQ(compile(chainText), TEGULA_OK) << text();
  Prepared call = prepare({tensor(0, {1000}), tensor(0)});
  std::vector<std::thread> threads;
  for (uintptr_t number = 1; number <= 4; ++number)
    threads.emplace_back([&, number] {
      void *data[] = {reinterpret_cast<void *>(number << 20),
                      reinterpret_cast<void *>(number << 24)};
      for (int n = 0; n < 100; ++n)
        EXPECT_EQ(tegula_launch_prepared(call.get(), data, 2, nullptr, nullptr), TEGULA_OK);
    });
  for (std::thread &thread : threads)
    thread.join();
  const auto &launches = fakecuda::record().launches;
  ASSERT_EQ(launches.size(), 800u);
  for (size_t at = 0; at < launches.size(); at += 2) {
    EXPECT_NE(launches[at].function, launches[at + 1].function);
    // Both read the same x.
    EXPECT_THAT(launches[at + 1].parameters, testing::Contains(launches[at].parameters[0]));
  }
}

TEST_F(DeviceTest, ThreadsShareAPreparedCall) {
  ASSERT_EQ(compile(addText), TEGULA_OK) << text();
  Prepared call = prepare({tensor(0, {100}), tensor(0, {100}), tensor(0)});
  std::vector<std::thread> threads;
  for (uintptr_t number = 1; number <= 4; ++number)
    threads.emplace_back([&, number] {
      uintptr_t base = number << 20;
      void *data[] = {reinterpret_cast<void *>(base), reinterpret_cast<void *>(base + 0x1000),
                      reinterpret_cast<void *>(base + 0x2000)};
      for (int n = 0; n < 200; ++n)
        EXPECT_EQ(tegula_launch_prepared(call.get(), data, 3, nullptr, nullptr), TEGULA_OK);
    });
  for (std::thread &thread : threads)
    thread.join();
  ASSERT_EQ(fakecuda::record().launches.size(), 800u);
  for (const fakecuda::Launch &one : fakecuda::record().launches) {
    uint64_t base = one.parameters[0] >> 20 << 20;
    EXPECT_THAT(one.parameters, testing::IsSupersetOf({base, base + 0x1000, base + 0x2000}));
  }
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

TEST_F(DeviceTest, WhatCannotRunIsRefusedByName) {
  ASSERT_EQ(compile(addText), TEGULA_OK) << text();
  tegula_value x = tensor(0x1000, {100}), z = tensor(0x2000, {100}), y = tensor(0x3000);
  ASSERT_EQ(launch({x, z, y}), TEGULA_OK) << text();
  expectRefused({x, z}, {"takes 3 arguments, 2 given"});
  expectRefused({tensor(0x1000, {10, 10}), z, y}, {"'x' has dims [N]", "shape [10, 10]"});
  expectRefused({x, tensor(0x2000, {99}), y}, {"'z'", "100", "99"});
  expectRefused({x, z, tensor(0x3000, {101})},
                {"'y' has dims [N] = [100], the argument has shape [101]"});
  expectRefused({tensor(0x1000, {-1}), z, y}, {"'x' has a negative dim"});
  tegula_value other = z;
  other.dtype = TEGULA_F16;
  expectRefused({x, other, y}, {"'z' is f32, the argument is f16"});
  other.dtype = static_cast<tegula_dtype>(77);
  expectRefused({x, other, y}, {"'z' has the dtype 77"});
  expectRefused({x, tensor(0x2002, {100}), y}, {"'z' is not aligned"});
  expectRefused({x, tensor(0, {100}), y}, {"'z' has no memory"});
  expectRefused({x, z, tensor(0x1000 + 396)}, {"'x' and 'y' overlap in memory"});
  expectRefused({x, z, tensor(0x2000 - 4)}, {"'z' and 'y' overlap in memory"});
  expectRefused({x, z, tensor(UINTPTR_MAX - 99)}, {"'y' reaches beyond the address space"});
  int64_t stride[] = {2};
  tegula_value strided = x;
  strided.strides = stride;
  expectRefused({strided, z, y}, {"'x' is not contiguous: dim 0 has stride 2, not 1"});
  // What touches without overlapping, and inputs that are one, are as good as any.
  EXPECT_EQ(launch({x, x, tensor(0x1000 + 400)}), TEGULA_OK) << text();
}

TEST_F(DeviceTest, PreparedCallsKeepTheGuardsOfMemory) {
  ASSERT_EQ(compile(addText), TEGULA_OK) << text();
  Prepared call = prepare({tensor(0, {100}), tensor(0, {100}), tensor(0)});
  auto run = [&](uintptr_t x, uintptr_t z, uintptr_t y) {
    void *data[] = {reinterpret_cast<void *>(x), reinterpret_cast<void *>(z),
                    reinterpret_cast<void *>(y)};
    fakecuda::record().calls.clear();
    tegula_status status = tegula_launch_prepared(call.get(), data, 3, nullptr, out());
    EXPECT_EQ(fakecuda::record().count("cuLaunchKernel"), status == TEGULA_OK ? 1u : 0u);
    return status == TEGULA_OK ? std::string() : text();
  };
  EXPECT_EQ(run(0x1000, 0x2000, 0x3000), "");
  EXPECT_THAT(run(0x1001, 0x2000, 0x3000), HasSubstr("'x' is not aligned"));
  EXPECT_THAT(run(0x1000, 0, 0x3000), HasSubstr("'z' has no memory"));
  EXPECT_THAT(run(0x1000, 0x2000, 0x2004), HasSubstr("'z' and 'y' overlap"));
  EXPECT_EQ(tegula_launch_prepared(call.get(), nullptr, 3, nullptr, out()), TEGULA_WRONG_CALL);
  EXPECT_EQ(tegula_launch_prepared(nullptr, nullptr, 0, nullptr, out()), TEGULA_WRONG_CALL);
  void *two[2] = {};
  EXPECT_EQ(tegula_launch_prepared(call.get(), two, 2, nullptr, out()), TEGULA_WRONG_CALL);
  EXPECT_THAT(text(), HasSubstr("takes 3 arguments, 2 given"));
}

TEST_F(DeviceTest, GuardsOfTheProgram) {
  ASSERT_EQ(compile("kernel pairs(x: f32[N], z: f32[2*N]) -> (y: f32[P]) where P = N - 2 {\n"
                    "  y[i] = x[i + 2] + z[2*i]\n"
                    "}"),
            TEGULA_OK)
      << text();
  expectRefused({tensor(0x1000, {5}), tensor(0x2000, {9}), tensor(0x3000)}, {"'z'", "2*N", "9"});
  expectRefused({tensor(0x1000, {1}), tensor(0x2000, {2}), tensor(0x3000)},
                {"dim 1 of 'y' is negative: N - 2 (N = 1)"});
  EXPECT_EQ(launch({tensor(0x1000, {5}), tensor(0x2000, {10}), tensor(0x3000)}), TEGULA_OK)
      << text();
}

TEST_F(DeviceTest, SizesBeyond64Bits) {
  ASSERT_EQ(
      compile("kernel outer(x: f32[M], z: f32[N]) -> (y: f32[M, N]) { y[i, j] = x[i] * z[j] }"),
      TEGULA_OK)
      << text();
  int64_t huge = int64_t(1) << 40;
  expectRefused({tensor(0x1000, {huge}), tensor(0x2000, {huge}), tensor(0x3000)},
                {"'y' has more bytes than 64 bits count"});
  tegula_value x = tensor(0x1000, {huge}), z = tensor(0x2000, {huge});
  tegula_prepared *made = nullptr;
  tegula_value arguments[] = {x, z, tensor(0)};
  EXPECT_EQ(tegula_prepare(kernel.get(), arguments, 3, &made, out()), TEGULA_WRONG_CALL);
  EXPECT_EQ(made, nullptr);
}

//===----------------------------------------------------------------------===//
// What goes wrong
//===----------------------------------------------------------------------===//

TEST_F(DeviceTest, WhatIsMissingIsSaidAndNothingIsKept) {
  setenv("FAKE_PTXAS_ARCH", "sm_80", 1);
  EXPECT_EQ(compile(addText), TEGULA_MISSING);
  EXPECT_THAT(text(), HasSubstr("does not run what ptxas V13.0.0-fake makes for sm_90a"));
  unsetenv("FAKE_PTXAS_ARCH");
  setenv("TEGULA_PTXAS", "/nonexistent/ptxas", 1);
  EXPECT_EQ(compile(addText), TEGULA_MISSING);
  EXPECT_EQ(kernel, nullptr);
}

TEST_F(DeviceTest, NoMemoryForTemporaries) {
  ASSERT_EQ(compile(chainText), TEGULA_OK) << text();
  std::vector<tegula_value> arguments = {tensor(0x100000, {1000}), tensor(0x200000)};
  fakecuda::failCall("cuMemAllocAsync", 2);
  EXPECT_EQ(launch(arguments), TEGULA_MISSING);
  EXPECT_THAT(text(), HasSubstr("cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_EQ(fakecuda::record().launches.size(), 0u);
  EXPECT_EQ(launch(arguments), TEGULA_OK) << text(); // there is some again
}

TEST_F(DeviceTest, AFailedLaunchReleasesWhatItHeld) {
  ASSERT_EQ(compile(chainText), TEGULA_OK) << text();
  std::vector<tegula_value> arguments = {tensor(0x100000, {1000}), tensor(0x200000)};
  fakecuda::failCall("cuLaunchKernel", 719, 1);
  EXPECT_EQ(launch(arguments), TEGULA_INTERNAL);
  EXPECT_EQ(fakecuda::record().launches.size(), 1u); // nothing follows the one that failed
  EXPECT_EQ(fakecuda::record().bytesHeld, 0u);
}

TEST_F(DeviceTest, EmptyTensorsNeedNoMemory) {
  ASSERT_EQ(compile(addText), TEGULA_OK) << text();
  ASSERT_EQ(launch({tensor(0, {0}), tensor(0, {0}), tensor(0)}), TEGULA_OK) << text();
  EXPECT_EQ(fakecuda::record().launches.size(), 0u);
}

} // namespace

/// On the pretended device, where a launch takes as long as it has blocks, larger tiles than the
/// default's win.
TEST_F(DeviceTest, TunedSchedulesAreUsedWhereTheyAreAskedFor) {
  const std::string program = "kernel product(a: f32[M, K], b: f32[N, K]) -> (c: f32[M, N]) { c[i, "
                              "j] = sum(a[i, k]*b[j, k] for k) }";
  std::string folder = testing::TempDir() + "tegula-tuned-" + std::to_string(getpid()),
              file = folder + "/k.tgl";
  std::filesystem::create_directories(folder);
  std::ofstream(file) << program << '\n';
  setenv("TEGULA_CACHE_DIR", folder.c_str(), 1);
  std::string command = "FAKE_CUDA_CLOCK=blocks LD_LIBRARY_PATH=" TEGULA_FAKE_DRIVER
                        " " TEGULA_BINARY " tune " +
                        file + " -d M=256,N=256,K=256 --configurations=16 > " + folder + "/log";
  ASSERT_EQ(std::system(command.c_str()), 0);

  auto blocks = [&](int64_t k) {
    EXPECT_EQ(compile(program), TEGULA_OK) << text();
    EXPECT_EQ(launch({tensor(0x100000, {256, k}), tensor(0x200000, {256, k}),
                      tensor(0x300000, {256, 256})}),
              TEGULA_OK)
        << text();
    unsigned total = 0;
    for (const fakecuda::Launch &one : fakecuda::record().launches)
      total += one.blocks;
    return total;
  };
  unsigned byModel = blocks(256), ofOthers = blocks(128);
  tuned = true;
  EXPECT_LT(blocks(256), byModel);
  EXPECT_EQ(blocks(128), ofOthers); // sizes for which nothing was tuned
  std::filesystem::remove_all(folder);
}
