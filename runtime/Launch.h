//===- Launch.h - Binding arguments and running compiled kernels -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_LAUNCH_H
#define TEGULA_RUNTIME_LAUNCH_H

#include "compiler/Compiler.h"
#include "runtime/PreparedPlan.h"
#include "runtime/StreamMemory.h"
#include "runtime/Threads.h"
#include "runtime/emulator/Emulator.h"
#include <functional>
#include <mutex>

namespace tegula {

/// Why a kernel did not run, or ran into something.
class LaunchError : public llvm::ErrorInfo<LaunchError> {
public:
  static char ID;
  enum Kind {
    WrongCall, ///< shapes, dtypes, aliasing, a guard
    OutOfMemory,
    WrongResult, ///< a data-dependent subscript left its tensor: results hold 0 or nothing there
    Stopped,     ///< by who asked for it
  };
  LaunchError(Kind kind, std::string message) : kind(kind), message(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
  Kind kind;
  std::string message;
};

/// Whether the machine lacks something: a device, a driver that knows the code, memory, an
/// assembler.
bool isMissingResource(const llvm::ErrorInfoBase &error);
bool isMissingResource(const llvm::Error &error);

/// Compiles a kernel that has been found right for the sizes of a launch. What its `schedule` asks
/// for and these sizes cannot have is a LaunchError (WrongCall) with the diagnostic.
llvm::Expected<std::unique_ptr<CompiledKernel>> compileForSizes(const Module &module,
                                                                const CompileOptions &options);

/// One argument: a contiguous row-major tensor in memory of the kernel's target, or a scalar.
struct LaunchArgument {
  void *data = nullptr;
  DType dtype = DType::F32;
  llvm::ArrayRef<int64_t> shape;
  double number = 0;   // scalars of a float type
  int64_t integer = 0; // other scalars; of u64, its bits
};

/// The fewest digits that give this double when they are read: `0.1`, `1e+300`, `inf`.
std::string shortestText(double value);

/// That a scalar is not of its type, or outside of it.
llvm::Error wrongScalar(const KernelArgument &expected, const llvm::Twine &value);

/// Makes a scalar one of the type that it is declared with: floats are rounded, and what is out of
/// range is refused.
llvm::Error takeScalar(const KernelArgument &expected, LaunchArgument &given);

/// Values of the kernel's sizes for a launch, all guards checked.
using SizeValues = llvm::SmallVector<int64_t>;

/// Computes sizes from the shapes of inputs and inouts and decides the guards. `arguments` are the
/// kernel's, in order; outputs need no shape yet. Refusals are LaunchErrors.
llvm::Expected<SizeValues> bindSizes(const CompiledKernel &kernel,
                                     llvm::ArrayRef<LaunchArgument> arguments);

/// The shape that argument `index` has, or must have.
llvm::Expected<llvm::SmallVector<int64_t>> shapeOf(const CompiledKernel &kernel, unsigned index,
                                                   llvm::ArrayRef<int64_t> sizes);

struct SpecialKernel;

/// Everything that follows from the sizes of a launch: computed once, good for many launches.
struct Binding {
  struct Tensor {
    llvm::SmallVector<int64_t> shape;
    int64_t bytes = 0;
    unsigned alignment = 1; // bytes
    bool isWritten = false;
  };
  SizeValues sizes;
  std::vector<Tensor> arguments; // scalars: rank 0, 0 bytes
  /// Host kernels: where temporaries begin in the workspace (multiples of 64), and its bytes.
  llvm::SmallVector<int64_t> temporaryOffsets;
  int64_t workspaceBytes = 0;
  /// Device kernels: the launches, and code for these sizes alone, if there is any, with what
  /// follows from them for it.
  std::shared_ptr<const PreparedPlan> plan;
  SpecialKernel *special = nullptr;
  std::shared_ptr<const Binding> specialBinding;
};
/// For a device kernel see DeviceKernel::bind.
llvm::Expected<Binding> bind(const CompiledKernel &kernel, llvm::ArrayRef<int64_t> sizes);

/// By argument of the kernel, what its code is given: the address of a tensor's first element, in
/// memory of the target, or that of a scalar in its own type, in the host's.
using LaunchData = llvm::ArrayRef<void *>;

/// Checks dtype and shape of one argument.
llvm::Error checkShape(const CompiledKernel &kernel, unsigned index, const LaunchArgument &argument,
                       const Binding &binding);
/// Checks the memory of all tensors: that it is there, aligned, and that what is written overlaps
/// nothing. Scalars are not looked at.
llvm::Error checkMemory(const CompiledKernel &kernel, LaunchData data, const Binding &binding);
/// Checks dtypes, shapes and memory of all arguments.
llvm::Error checkArguments(const CompiledKernel &kernel, llvm::ArrayRef<LaunchArgument> arguments,
                           const Binding &binding);

/// Runs on the CPU; returns when done. Arguments have been checked. Without a workspace (64-byte
/// aligned, binding.workspaceBytes long) one is allocated where temporaries need it. `stop`: see
/// HostLaunch.
llvm::Error runOnHost(const CompiledKernel &kernel, LaunchData data, const Binding &binding,
                      ThreadPool &pool = ThreadPool::shared(), void *workspace = nullptr,
                      const int *stop = nullptr);
llvm::Error runOnHost(const CompiledKernel &kernel, llvm::ArrayRef<LaunchArgument> arguments,
                      const Binding &binding, ThreadPool &pool = ThreadPool::shared(),
                      void *workspace = nullptr, const int *stop = nullptr);

/// Runs a kernel for target `emulate`: on one thread, every access checked. Arguments are in host
/// memory and have been checked. What only a defect of the compiler can do is an EmulatorError.
llvm::Error runEmulated(const CompiledKernel &kernel, llvm::ArrayRef<LaunchArgument> arguments,
                        const Binding &binding, const EmulatorOptions &options = {});

/// A device kernel loaded on a device. Arguments' data are device addresses. Several threads may
/// launch it at once; data-dependent subscripts of launches on different streams are reported
/// together.
class DeviceKernel {
public:
  static llvm::Expected<std::unique_ptr<DeviceKernel>> load(const CompiledKernel &kernel,
                                                            std::shared_ptr<CudaDevice> device);
  ~DeviceKernel();
  CudaDevice &device() { return *owner; }
  /// Compiles the kernel for sizes that are known and tensors aligned to `specialAlignment`.
  using Specializer =
      std::function<llvm::Expected<std::unique_ptr<CompiledKernel>>(llvm::ArrayRef<int64_t> sizes)>;
  static constexpr unsigned specialAlignment = 16;
  /// From now on bind() makes code for its sizes alone, which takes some tens of milliseconds,
  /// until there are `maxSpecializations`. Launches with tensors that are aligned to less keep to
  /// the kernel's own code. Of a kernel with `invariant` sizes code is for all of these, whatever
  /// the number of other sizes is, and tensors that are aligned to less are refused: other code
  /// would add in another order.
  void specializeWith(Specializer make) { specializer = std::move(make); }
  static constexpr unsigned maxSpecializations = 16;
  /// All that follows from the sizes. Good for as long as this object.
  llvm::Expected<Binding> bind(llvm::ArrayRef<int64_t> sizes);
  /// Queues the launches on `stream`; arguments have been checked. The workspace is 256-byte
  /// aligned and binding.workspaceBytes long, or 0: memory then is `kept`, or comes from the
  /// device's pool in the order of the stream. Under watch it has run when this returns.
  llvm::Error run(LaunchData data, const Binding &binding, void *stream = nullptr,
                  DeviceAddress workspace = 0, StreamMemory *kept = nullptr,
                  LaunchWatch *watch = nullptr);
  llvm::Error run(llvm::ArrayRef<LaunchArgument> arguments, const Binding &binding,
                  void *stream = nullptr, DeviceAddress workspace = 0,
                  LaunchWatch *watch = nullptr);
  /// Waits, and reports what data-dependent subscripts did since the last call.
  llvm::Error synchronize(void *stream = nullptr);

private:
  DeviceKernel(const CompiledKernel &kernel, std::shared_ptr<CudaDevice> device,
               std::shared_ptr<CudaModule> module, DeviceAddress errors)
      : kernel(kernel), owner(std::move(device)), module(std::move(module)), errors(errors) {}
  const CompiledKernel &kernel;
  std::shared_ptr<CudaDevice> owner;
  std::shared_ptr<CudaModule> module;
  DeviceAddress errors; // an ErrorRecord; 0 where no access can fail
  llvm::Expected<SpecialKernel *> specialFor(llvm::ArrayRef<int64_t> sizes);

  Specializer specializer;
  std::mutex mutex; // of what follows
  std::vector<std::unique_ptr<SpecialKernel>> specials;
};

/// A kernel's code for one set of sizes.
struct SpecialKernel {
  SizeValues sizes;
  std::unique_ptr<CompiledKernel> compiled;
  std::unique_ptr<DeviceKernel> loaded;
};

} // namespace tegula

#endif // TEGULA_RUNTIME_LAUNCH_H
