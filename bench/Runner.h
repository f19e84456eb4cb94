//===- Runner.h - A compiled kernel and the memory of its launches ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `tegula run` and `tegula bench` share: one kernel on one target, sizes and arguments by
// name, and launches whose tensors are made, poisoned and read back here, in host memory or a
// device's.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_RUNNER_H
#define TEGULA_BENCH_RUNNER_H

#include "bench/reference/RefFile.h"
#include "bench/reference/Reference.h"
#include "bench/reference/Tensor.h"
#include "frontend/check/Signature.h"
#include "runtime/Launch.h"
#include "runtime/observe/Observed.h"
#include <map>
#include <memory>

namespace tegula::bench {

class Runner {
public:
  /// For a device target, launches are on the first device, each set of sizes with code of its own;
  /// for `emulate` too, but they are run by the emulator on memory of the host. `module` must
  /// outlive the runner. Null without an error where the program is wrong, as `diagnostics` says.
  static llvm::Expected<std::unique_ptr<Runner>> make(const Module &module, CompileOptions options,
                                                      Diagnostics &diagnostics);

  /// A runner of this kernel on this device, its code for sizes with another schedule.
  std::unique_ptr<Runner> withChoice(const ScheduleChoice &choice) const;

  const CompiledKernel &kernel() const { return *compiled; }
  /// Whether launches use a device's memory.
  bool isDevice() const { return device != nullptr; }
  CudaDevice *cudaDevice() const { return device.get(); }
  /// Threads of host kernels.
  ThreadPool &pool() const { return *threads; }
  void setThreads(unsigned count) { threads = std::make_unique<ThreadPool>(count); }

  /// All sizes, from those that an instance gives by name; guards are checked. Sizes that are bound
  /// by a tensor and not given are errors that name them.
  llvm::Expected<SizeValues> sizes(const Signature &signature, const Instance &instance) const;
  /// The value of a size by name.
  std::optional<int64_t> sizeNamed(llvm::StringRef name, llvm::ArrayRef<int64_t> sizes) const;

private:
  /// Device code for these sizes.
  struct Specialized {
    std::unique_ptr<CompiledKernel> compiled;
    std::unique_ptr<DeviceKernel> loaded; // null: for the emulator
  };

  Runner(const Module &module, CompileOptions options)
      : module(module), options(std::move(options)) {}
  llvm::Expected<Specialized *> specialize(llvm::ArrayRef<int64_t> sizes);

  const Module &module;
  CompileOptions options;
  std::shared_ptr<CompiledKernel> compiled; // on a device without code: what it asks of launches
  std::shared_ptr<CudaDevice> device;
  std::map<std::vector<int64_t>, Specialized> specialized;
  std::unique_ptr<ThreadPool> threads = std::make_unique<ThreadPool>();
  friend class Launch;
};

/// One set of arguments.
class Launch {
public:
  /// Makes inputs from `given`, or filled by `spec` from the seed, and memory for outputs.
  struct Inputs {
    std::map<std::string, Tensor> given; // taken over
    const std::vector<InputSpec> *specs = nullptr;
    std::map<std::string, ScalarSetting> scalars;
    uint64_t seed = 0; // of the emulator's order too
  };
  static llvm::Expected<std::unique_ptr<Launch>> make(Runner &runner, llvm::ArrayRef<int64_t> sizes,
                                                      Inputs inputs);
  ~Launch();

  /// Sets inouts back to what they were and fills outputs, and the workspace of queue(), with NaNs
  /// (integers: -1).
  llvm::Error prepare();
  /// The order of threads and blocks in the emulator, from the next run on.
  void setOrder(uint64_t order) { seed = order; }
  /// Runs once and waits. Seconds: on a device those between two events, on the host those of a
  /// clock. With `watch`, the launches on a device are waited for one by one.
  llvm::Expected<double> run(LaunchWatch *watch = nullptr);
  /// Queues a run on a stream of the device and does not wait. Its workspace stays for later ones.
  llvm::Error queue(void *stream);
  /// Copies of what these arguments hold now.
  llvm::Expected<std::vector<Tensor>> read(llvm::ArrayRef<unsigned> arguments);
  /// What the statements of an observed kernel saw in the run before.
  llvm::Expected<Observed> observed();
  /// What a reference's results are compared with: the outputs, or of a kernel without them the
  /// inouts.
  std::vector<unsigned> resultArguments() const;
  llvm::Expected<std::vector<Tensor>> results() { return read(resultArguments()); }
  const Tensor &host(unsigned argument) const { return *tensors[argument]; }

  /// Everything that a reference may name: tensors, scalars, sizes, constants. Tensors are those of
  /// the launch itself, so inouts must be prepared.
  RefValues refValues() const;
  const CompiledKernel &kernel() const { return runner.kernel(); }
  CudaDevice *cudaDevice() const { return runner.cudaDevice(); }
  /// What runs: on a device the code for these sizes.
  const CompiledKernel &machineCode() const { return code ? *code->compiled : runner.kernel(); }
  unsigned threads() const { return runner.pool().size(); }
  /// Operations of one run, and the most terms of one sum (compiler/Work.h).
  double operations() const;
  double depth() const;
  unsigned roundings() const { return kernel().work.roundings(); }
  /// Bytes of all inputs read once and all outputs written once.
  int64_t bytes() const;

private:
  Launch(Runner &runner, Binding binding) : runner(runner), binding(std::move(binding)) {}
  KernelWork::SizeOf sizeOf() const;
  llvm::Error unpackArgument(size_t index, const KernelArgument &expected,
                             llvm::ArrayRef<int64_t> shape, const Tensor &host);
  llvm::Error upload(unsigned argument, const Tensor &from);

  Runner &runner;
  const Runner::Specialized *code = nullptr; // device code for these sizes
  uint64_t seed = 0;
  Binding binding;
  std::vector<LaunchArgument> arguments;
  /// Host copies; inputs and inouts hold what they were at first, outputs are scratch.
  std::vector<std::optional<Tensor>> tensors;
  /// Inouts on the host: what the kernel works on, the copies above staying as they are.
  std::vector<std::optional<Tensor>> working;
  /// 4-bit inputs as bytes, for references.
  std::vector<std::optional<Tensor>> unpacked;
  std::vector<DeviceAddress> addresses, unpackedAddresses;
  DeviceAddress workspace = 0;                       // of queue()
  std::map<std::string, ScalarSetting> scalarValues; // as the kernel has them
};

/// Inputs of a timed case, each at addresses of its own.
constexpr unsigned numSets = 3;

/// Takes what a device's L2 cache holds out of it.
class DeviceFlush {
public:
  explicit DeviceFlush(CudaDevice *device) : device(device) {}
  ~DeviceFlush();
  llvm::Error run();

private:
  CudaDevice *device;
  DeviceAddress address = 0;
  uint8_t round = 0;
};

} // namespace tegula::bench

#endif // TEGULA_BENCH_RUNNER_H
