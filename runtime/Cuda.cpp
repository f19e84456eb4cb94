//===- Cuda.cpp - Devices, memory and launches through the CUDA driver ------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Cuda.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include <dlfcn.h>

using namespace llvm;
using namespace tegula;

char MissingDeviceError::ID = 0;

namespace {
/// The driver's C interface as far as it is used (cuda.h of CUDA 12 and 13). Every function returns
/// a CUresult, 0 on success. Handles are opaque pointers, device addresses 64-bit numbers.
struct Driver {
  int (*init)(unsigned flags);
  int (*driverGetVersion)(int *);
  int (*deviceGetCount)(int *);
  int (*deviceGet)(int *device, int ordinal);
  int (*deviceGetName)(char *, int bytes, int device);
  int (*deviceTotalMem)(size_t *, int device);
  int (*deviceGetAttribute)(int *, int attribute, int device);
  int (*primaryCtxRetain)(void **context, int device);
  int (*primaryCtxRelease)(int device);
  int (*ctxSetCurrent)(void *);
  int (*ctxPushCurrent)(void *);
  int (*ctxPopCurrent)(void **);
  int (*getErrorName)(int, const char **);
  int (*getErrorString)(int, const char **);
  int (*memAlloc)(DeviceAddress *, size_t bytes);
  int (*memFree)(DeviceAddress);
  int (*memAllocAsync)(DeviceAddress *, size_t bytes, void *stream);
  int (*memFreeAsync)(DeviceAddress, void *stream);
  int (*memcpyHtoD)(DeviceAddress, const void *, size_t);
  int (*memcpyDtoH)(void *, DeviceAddress, size_t);
  int (*memsetD8Async)(DeviceAddress, unsigned char, size_t, void *stream);
  int (*streamSynchronize)(void *);
  int (*eventCreate)(void **, unsigned flags);
  int (*eventRecord)(void *, void *stream);
  int (*eventSynchronize)(void *);
  int (*eventElapsedTime)(float *milliseconds, void *start, void *end);
  int (*eventDestroy)(void *);
  int (*moduleLoadData)(void **, const void *);
  int (*moduleUnload)(void *);
  int (*moduleGetFunction)(void **, void *module, const char *);
  int (*launchKernel)(void *function, unsigned gridX, unsigned gridY, unsigned gridZ,
                      unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                      void *stream, void **arguments, void **extra);
  int (*occupancyMaxActiveBlocks)(int *, void *function, int threads, size_t dynamicShared);

  std::string missing; // why the driver cannot be used; empty: it can

  static const Driver &get() {
    static const Driver driver; // thread-safe; the library stays loaded
    return driver;
  }

private:
  Driver() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      missing = "no CUDA driver: libcuda.so.1 was not found";
      return;
    }
    bind(library, init, "cuInit");
    bind(library, driverGetVersion, "cuDriverGetVersion");
    bind(library, deviceGetCount, "cuDeviceGetCount");
    bind(library, deviceGet, "cuDeviceGet");
    bind(library, deviceGetName, "cuDeviceGetName");
    bind(library, deviceTotalMem, "cuDeviceTotalMem_v2");
    bind(library, deviceGetAttribute, "cuDeviceGetAttribute");
    bind(library, primaryCtxRetain, "cuDevicePrimaryCtxRetain");
    bind(library, primaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
    bind(library, ctxSetCurrent, "cuCtxSetCurrent");
    bind(library, ctxPushCurrent, "cuCtxPushCurrent_v2");
    bind(library, ctxPopCurrent, "cuCtxPopCurrent_v2");
    bind(library, getErrorName, "cuGetErrorName");
    bind(library, getErrorString, "cuGetErrorString");
    bind(library, memAlloc, "cuMemAlloc_v2");
    bind(library, memFree, "cuMemFree_v2");
    bind(library, memAllocAsync, "cuMemAllocAsync");
    bind(library, memFreeAsync, "cuMemFreeAsync");
    bind(library, memcpyHtoD, "cuMemcpyHtoD_v2");
    bind(library, memcpyDtoH, "cuMemcpyDtoH_v2");
    bind(library, memsetD8Async, "cuMemsetD8Async");
    bind(library, streamSynchronize, "cuStreamSynchronize");
    bind(library, eventCreate, "cuEventCreate");
    bind(library, eventRecord, "cuEventRecord");
    bind(library, eventSynchronize, "cuEventSynchronize");
    bind(library, eventElapsedTime, "cuEventElapsedTime");
    bind(library, eventDestroy, "cuEventDestroy_v2");
    bind(library, moduleLoadData, "cuModuleLoadData");
    bind(library, moduleUnload, "cuModuleUnload");
    bind(library, moduleGetFunction, "cuModuleGetFunction");
    bind(library, launchKernel, "cuLaunchKernel");
    bind(library, occupancyMaxActiveBlocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    if (!missing.empty())
      return;
    if (int code = init(0))
      missing = describe(code, "cuInit");
  }

  template <typename Function> void bind(void *library, Function &function, const char *name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function && missing.empty())
      missing = std::string("the CUDA driver is too old: it has no ") + name;
  }

public:
  std::string describe(int code, const char *call) const {
    const char *name = nullptr, *text = nullptr;
    getErrorName(code, &name);
    getErrorString(code, &text);
    return (Twine(call) + ": " + (name ? name : "error " + std::to_string(code)) +
            (text ? std::string(" (") + text + ")" : ""))
        .str();
  }
};
} // namespace

static Error check(int code, const char *call) {
  if (!code)
    return Error::success();
  return createStringError(inconvertibleErrorCode(), Driver::get().describe(code, call));
}

// CUdevice_attribute values, cuda.h.
static constexpr int attributeMultiprocessors = 16, attributeMaxThreadsPerMultiprocessor = 39,
                     attributeL2Bytes = 38, attributeMajor = 75, attributeMinor = 76;

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

std::string CudaDeviceInfo::target() const {
  // The features of compute capability 9.0 beyond its portable ones have a name of their own.
  return ("sm_" + Twine(major * 10 + minor) + (major == 9 && minor == 0 ? "a" : "")).str();
}

Expected<std::shared_ptr<CudaDevice>> CudaDevice::open(int ordinal) {
  const Driver &driver = Driver::get();
  if (!driver.missing.empty())
    return make_error<MissingDeviceError>(driver.missing);
  int count = 0;
  if (Error error = check(driver.deviceGetCount(&count), "cuDeviceGetCount"))
    return std::move(error);
  if (ordinal < 0 || ordinal >= count)
    return make_error<MissingDeviceError>("no CUDA device " + std::to_string(ordinal) + ": " +
                                          std::to_string(count) + " present");
  std::shared_ptr<CudaDevice> result(new CudaDevice());
  CudaDeviceInfo &info = result->deviceInfo;
  if (Error error = check(driver.deviceGet(&result->device, ordinal), "cuDeviceGet"))
    return std::move(error);
  char name[256] = {};
  size_t bytes = 0;
  auto attribute = [&](int &value, int which) {
    return driver.deviceGetAttribute(&value, which, result->device);
  };
  int code = driver.deviceGetName(name, sizeof(name), result->device);
  code = code ? code : driver.deviceTotalMem(&bytes, result->device);
  code = code ? code : attribute(info.major, attributeMajor);
  code = code ? code : attribute(info.minor, attributeMinor);
  code = code ? code : attribute(info.multiprocessors, attributeMultiprocessors);
  code = code ? code
              : attribute(info.maxThreadsPerMultiprocessor, attributeMaxThreadsPerMultiprocessor);
  code = code ? code : attribute(info.l2Bytes, attributeL2Bytes);
  code = code ? code : driver.driverGetVersion(&info.driverVersion);
  if (Error error = check(code, "reading the device's properties"))
    return std::move(error);
  info.name = name;
  info.memoryBytes = bytes;
  if (Error error = check(driver.primaryCtxRetain(&result->context, result->device),
                          "cuDevicePrimaryCtxRetain"))
    return std::move(error);
  return result;
}

CudaDevice::~CudaDevice() {
  if (context)
    Driver::get().primaryCtxRelease(device);
}

Error CudaDevice::enter() const {
  return check(Driver::get().ctxSetCurrent(context), "cuCtxSetCurrent");
}

CudaDevice::Scope::Scope(const CudaDevice &device)
    : entered(!Driver::get().ctxPushCurrent(device.context)) {}

CudaDevice::Scope::~Scope() {
  void *popped = nullptr;
  if (entered)
    Driver::get().ctxPopCurrent(&popped);
}

Expected<DeviceAddress> CudaDevice::allocate(uint64_t bytes) {
  if (bytes == 0)
    return DeviceAddress(0);
  if (Error error = enter())
    return std::move(error);
  DeviceAddress address = 0;
  if (Error error = check(Driver::get().memAlloc(&address, bytes), "cuMemAlloc"))
    return std::move(error);
  return address;
}

void CudaDevice::free(DeviceAddress address) {
  if (address && !Driver::get().ctxSetCurrent(context))
    Driver::get().memFree(address);
}

Error CudaDevice::copyToDevice(DeviceAddress to, const void *from, uint64_t bytes) {
  if (bytes == 0)
    return Error::success();
  if (Error error = enter())
    return error;
  return check(Driver::get().memcpyHtoD(to, from, bytes), "cuMemcpyHtoD");
}

Error CudaDevice::copyToHost(void *to, DeviceAddress from, uint64_t bytes) {
  if (bytes == 0)
    return Error::success();
  if (Error error = enter())
    return error;
  return check(Driver::get().memcpyDtoH(to, from, bytes), "cuMemcpyDtoH");
}

Error CudaDevice::fill(DeviceAddress address, uint8_t value, uint64_t bytes, void *stream) {
  if (bytes == 0)
    return Error::success();
  if (Error error = enter())
    return error;
  return check(Driver::get().memsetD8Async(address, value, bytes, stream), "cuMemsetD8Async");
}

Error CudaDevice::synchronize(void *stream) {
  if (Error error = enter())
    return error;
  return check(Driver::get().streamSynchronize(stream), "cuStreamSynchronize");
}

Expected<double> CudaDevice::time(function_ref<Error()> work, void *stream) {
  const Driver &driver = Driver::get();
  if (Error error = enter())
    return std::move(error);
  void *start = nullptr, *end = nullptr;
  if (Error error = check(driver.eventCreate(&start, 0), "cuEventCreate"))
    return std::move(error);
  llvm::scope_exit destroyStart([&] { driver.eventDestroy(start); });
  if (Error error = check(driver.eventCreate(&end, 0), "cuEventCreate"))
    return std::move(error);
  llvm::scope_exit destroyEnd([&] { driver.eventDestroy(end); });
  if (Error error = check(driver.eventRecord(start, stream), "cuEventRecord"))
    return std::move(error);
  if (Error error = work())
    return std::move(error);
  if (Error error = check(driver.eventRecord(end, stream), "cuEventRecord"))
    return std::move(error);
  if (Error error = check(driver.eventSynchronize(end), "cuEventSynchronize"))
    return std::move(error);
  float milliseconds = 0;
  if (Error error = check(driver.eventElapsedTime(&milliseconds, start, end), "cuEventElapsedTime"))
    return std::move(error);
  return milliseconds * 1e3;
}

Expected<std::shared_ptr<CudaModule>> CudaDevice::load(ArrayRef<char> image) {
  if (Error error = enter())
    return std::move(error);
  void *handle = nullptr;
  if (Error error = check(Driver::get().moduleLoadData(&handle, image.data()), "cuModuleLoadData"))
    return std::move(error);
  // Modules keep their device's context alive by holding a reference of their own.
  void *context = nullptr;
  if (Error error =
          check(Driver::get().primaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain"))
    return std::move(error);
  std::shared_ptr<CudaDevice> owner(new CudaDevice());
  owner->device = device;
  owner->context = context;
  owner->deviceInfo = deviceInfo;
  return std::shared_ptr<CudaModule>(new CudaModule(std::move(owner), handle));
}

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

CudaModule::~CudaModule() {
  if (!Driver::get().ctxSetCurrent(owner->context))
    Driver::get().moduleUnload(handle);
}

Expected<void *> CudaModule::find(const std::string &function) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = functions.find(function);
  if (found != functions.end())
    return found->second;
  void *result = nullptr;
  if (Error error = check(Driver::get().moduleGetFunction(&result, handle, function.c_str()),
                          "cuModuleGetFunction"))
    return std::move(error);
  functions[function] = result;
  return result;
}

Expected<unsigned> CudaModule::residentBlocks(const std::string &function, unsigned threads) {
  Expected<void *> code = find(function);
  if (!code)
    return code.takeError();
  std::lock_guard<std::mutex> lock(mutex);
  auto found = resident.find({function, threads});
  if (found != resident.end())
    return found->second;
  int perMultiprocessor = 0;
  if (Error error =
          check(Driver::get().occupancyMaxActiveBlocks(&perMultiprocessor, *code, threads, 0),
                "cuOccupancyMaxActiveBlocksPerMultiprocessor"))
    return std::move(error);
  unsigned result = std::max(perMultiprocessor, 1) * owner->info().multiprocessors;
  resident[{function, threads}] = result;
  return result;
}

Error CudaModule::launch(const std::string &function, uint64_t blocks, unsigned threads,
                         ArrayRef<void *> arguments, void *stream) {
  if (blocks == 0)
    return Error::success();
  if (Error error = owner->enter())
    return error;
  Expected<void *> code = find(function);
  if (!code)
    return code.takeError();
  assert(blocks <= 0x7fffffff && "callers bound the grid; blocks walk their points with a stride");
  return check(Driver::get().launchKernel(*code, blocks, 1, 1, threads, 1, 1, 0, stream,
                                          const_cast<void **>(arguments.data()), nullptr),
               "cuLaunchKernel");
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

namespace {
/// Walks a plan once, to run it or to measure its workspace: first the temporaries, which live from the
/// first step to the last, then one area that the launches use after each other.
class PlanRun {
public:
  PlanRun(CudaDevice &device, CudaModule &module, const Plan &plan, const PlanInputs &inputs)
      : device(device), module(module), plan(plan), inputs(inputs) {}

  /// The stream orders the release after the launches.
  ~PlanRun() {
    for (DeviceAddress address : allocated)
      Driver::get().memFreeAsync(address, inputs.stream);
  }

  Expected<int64_t> measure() {
    isMeasuring = true;
    if (Error error = walk())
      return std::move(error);
    int64_t total;
    if (AddOverflow(temporaryBytes, areaBytes, total))
      return overflow();
    return total;
  }

  Error run() { return walk(); }

private:
  static Error overflow() {
    return createStringError(inconvertibleErrorCode(), "the temporaries overflow 64 bits");
  }

  Error walk() {
    for (const PlanBuffer &buffer : plan.buffers) {
      if (buffer.argument >= 0) {
        addresses.push_back(isMeasuring ? 0 : inputs.arguments[buffer.argument]);
        continue;
      }
      Expected<int64_t> bytes = evaluate(buffer.bytes, "the bytes of '" + buffer.name + "'");
      if (!bytes)
        return bytes.takeError();
      Expected<DeviceAddress> address = temporary(*bytes);
      if (!address)
        return address.takeError();
      addresses.push_back(*address);
    }
    return runSteps(plan.steps);
  }

  Expected<int64_t> evaluate(const IndexExpr &expr, const Twine &what) {
    std::optional<int64_t> value = expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
      if (var.isSymbol())
        return inputs.size(var.name());
      if (var.position() < loopValues.size())
        return loopValues[var.position()];
      return std::nullopt;
    });
    if (!value || *value < 0)
      return createStringError(inconvertibleErrorCode(),
                               what + " do not fit in 64 bits: " + expr.str());
    return *value;
  }

  static constexpr int64_t alignment = 256; // what the driver's own allocations have

  Expected<DeviceAddress> allocate(int64_t bytes) {
    DeviceAddress address = 0;
    if (Error error =
            check(Driver::get().memAllocAsync(&address, bytes, inputs.stream), "cuMemAllocAsync"))
      return std::move(error);
    allocated.push_back(address);
    return address;
  }

  Expected<DeviceAddress> temporary(int64_t bytes) {
    if (bytes == 0)
      return DeviceAddress(0);
    DeviceAddress address = inputs.workspace + temporaryBytes;
    if (bytes > INT64_MAX - alignment || AddOverflow<int64_t>(temporaryBytes, alignTo(bytes, alignment),
                                                              temporaryBytes))
      return overflow();
    if (isMeasuring || inputs.workspace)
      return address;
    return allocate(bytes);
  }

  Expected<DeviceAddress> area(int64_t bytes) {
    if (!isMeasuring && !inputs.workspace && bytes > areaBytes) {
      Expected<DeviceAddress> address = allocate(bytes);
      if (!address)
        return address.takeError();
      areaAddress = *address;
    }
    areaBytes = std::max(areaBytes, bytes);
    return inputs.workspace ? inputs.workspace + temporaryBytes : areaAddress;
  }

  Error runSteps(ArrayRef<PlanStep> steps) {
    for (const PlanStep &step : steps)
      if (Error error = runStep(step))
        return error;
    return Error::success();
  }

  Error runStep(const PlanStep &step) {
    switch (step.kind) {
    case PlanStep::Launch:
      return launch(step);
    case PlanStep::Loop:
      return loop(step);
    case PlanStep::Zero:
      return zero(step);
    }
    llvm_unreachable("all kinds of steps are handled");
  }

  Error zero(const PlanStep &step) {
    Expected<int64_t> bytes =
        evaluate(plan.buffers[step.buffer].bytes, "the bytes of a buffer");
    if (!bytes)
      return bytes.takeError();
    return isMeasuring ? Error::success()
                       : device.fill(addresses[step.buffer], 0, *bytes, inputs.stream);
  }

  Error loop(const PlanStep &step) {
    // Bounds may be negative (an empty range), so they are not sizes.
    auto bound = [&](const IndexExpr &expr) {
      return expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
        if (var.isSymbol())
          return inputs.size(var.name());
        return loopValues[var.position()];
      });
    };
    std::optional<int64_t> low = bound(step.low), high = bound(step.high);
    if (!low || !high)
      return createStringError(inconvertibleErrorCode(), "a loop bound does not fit in 64 bits");
    for (int64_t count = 0; *low + count < *high; ++count) {
      loopValues.push_back(step.reverse ? *high - 1 - count : *low + count);
      if (Error error = runSteps(step.body))
        return error;
      loopValues.pop_back();
    }
    return Error::success();
  }

  Error launch(const PlanStep &step) {
    Expected<int64_t> points = evaluate(step.points, "the points of a launch");
    if (!points)
      return points.takeError();
    if (*points == 0)
      return Error::success();
    // A thread for a point pays where that fills a good part of the device.
    const CudaDeviceInfo &info = device.info();
    uint64_t half = uint64_t(info.multiprocessors) * info.maxThreadsPerMultiprocessor / 2;
    bool byThread = step.blockFunction.empty() ||
                    (!step.threadFunction.empty() && uint64_t(*points) >= half);
    const std::string &function = byThread ? step.threadFunction : step.blockFunction;
    Expected<unsigned> resident = module.residentBlocks(function, step.threads);
    if (!resident)
      return resident.takeError();
    uint64_t wanted = byThread ? divideCeil(uint64_t(*points), uint64_t(step.threads)) : *points;
    uint64_t blocks = std::min<uint64_t>(wanted, uint64_t(*resident) * wavesPerLaunch);

    SmallVector<uint64_t, 16> values(step.arguments.size());
    SmallVector<void *, 16> pointers;
    for (auto [value, argument] : zip_equal(values, step.arguments)) {
      switch (argument.kind) {
      case PlanArgument::Buffer:
        value = addresses[argument.index];
        break;
      case PlanArgument::Size: {
        std::optional<int64_t> size =
            argument.size.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
              if (var.isSymbol())
                return inputs.size(var.name());
              return loopValues[var.position()];
            });
        if (!size)
          return createStringError(inconvertibleErrorCode(),
                                   "a size does not fit in 64 bits: " + argument.size.str());
        value = *size;
        break;
      }
      case PlanArgument::Scalar:
        if (!isMeasuring)
          pointers.push_back(const_cast<void *>(inputs.scalars[argument.index]));
        continue;
      case PlanArgument::Errors:
        value = inputs.errors;
        break;
      case PlanArgument::Workspace: {
        Expected<int64_t> bytes = evaluate(step.workspaceBytes, "the workspace's bytes");
        if (!bytes)
          return bytes.takeError();
        int64_t total;
        if (MulOverflow<int64_t>(*bytes, blocks, total))
          return createStringError(inconvertibleErrorCode(), "the workspace overflows 64 bits");
        Expected<DeviceAddress> address = area(total);
        if (!address)
          return address.takeError();
        value = *address;
        break;
      }
      }
      pointers.push_back(&value);
    }
    return isMeasuring ? Error::success()
                       : module.launch(function, blocks, step.threads, pointers, inputs.stream);
  }

  /// Blocks beyond what is resident cost a little each; four waves even out unequal points.
  static constexpr unsigned wavesPerLaunch = 4;
  CudaDevice &device;
  CudaModule &module;
  const Plan &plan;
  const PlanInputs &inputs;
  SmallVector<DeviceAddress> addresses;
  SmallVector<DeviceAddress> allocated;
  SmallVector<int64_t> loopValues;
  bool isMeasuring = false;
  int64_t temporaryBytes = 0, areaBytes = 0;
  DeviceAddress areaAddress = 0;
};
} // namespace

Expected<int64_t> tegula::planWorkspace(CudaDevice &device, CudaModule &module, const Plan &plan,
                                        const PlanInputs &inputs) {
  if (Error error = device.enter())
    return std::move(error);
  return PlanRun(device, module, plan, inputs).measure();
}

Error tegula::runPlan(CudaDevice &device, CudaModule &module, const Plan &plan,
                      const PlanInputs &inputs) {
  if (Error error = device.enter())
    return error;
  return PlanRun(device, module, plan, inputs).run();
}
