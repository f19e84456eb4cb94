//===- Cuda.cpp - Devices, memory and launches through the CUDA driver ------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Cuda.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using namespace tegula;

char MissingDeviceError::ID = 0;

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
  const CudaDriver &driver = CudaDriver::get();
  if (!driver.missing.empty())
    return make_error<MissingDeviceError>(driver.missing);
  int count = 0;
  if (Error error = checkCuda(driver.deviceGetCount(&count), "cuDeviceGetCount"))
    return std::move(error);
  if (ordinal < 0 || ordinal >= count)
    return make_error<MissingDeviceError>("no CUDA device " + std::to_string(ordinal) + ": " +
                                          std::to_string(count) + " present");
  std::shared_ptr<CudaDevice> result(new CudaDevice());
  CudaDeviceInfo &info = result->deviceInfo;
  if (Error error = checkCuda(driver.deviceGet(&result->device, ordinal), "cuDeviceGet"))
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
  if (Error error = checkCuda(code, "reading the device's properties"))
    return std::move(error);
  info.name = name;
  info.memoryBytes = bytes;
  if (Error error = checkCuda(driver.primaryCtxRetain(&result->context, result->device),
                              "cuDevicePrimaryCtxRetain"))
    return std::move(error);
  // By default the pool of stream-ordered allocations returns all that is free whenever something
  // waits for the stream, and each launch with a temporary would map it again.
  constexpr int releaseThreshold = 4; // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
  uint64_t kept = uint64_t(1) << 30;
  void *pool = nullptr;
  code = driver.deviceGetDefaultMemPool(&pool, result->device);
  code = code ? code : driver.memPoolSetAttribute(pool, releaseThreshold, &kept);
  if (Error error = checkCuda(code, "setting up the device's memory pool"))
    return std::move(error);
  return result;
}

CudaDevice::~CudaDevice() {
  if (context)
    CudaDriver::get().primaryCtxRelease(device);
}

Error CudaDevice::enter() const {
  return checkCuda(CudaDriver::get().ctxSetCurrent(context), "cuCtxSetCurrent");
}

CudaDevice::Scope::Scope(const CudaDevice &device) {
  void *current = nullptr;
  entered = (CudaDriver::get().ctxGetCurrent(&current) || current != device.context) &&
            !CudaDriver::get().ctxPushCurrent(device.context);
}

CudaDevice::Scope::~Scope() {
  void *popped = nullptr;
  if (entered)
    CudaDriver::get().ctxPopCurrent(&popped);
}

Expected<DeviceAddress> CudaDevice::allocate(uint64_t bytes) {
  if (bytes == 0)
    return DeviceAddress(0);
  if (Error error = enter())
    return std::move(error);
  DeviceAddress address = 0;
  if (Error error = checkCuda(CudaDriver::get().memAlloc(&address, bytes), "cuMemAlloc"))
    return std::move(error);
  return address;
}

void CudaDevice::free(DeviceAddress address) {
  if (address && !CudaDriver::get().ctxSetCurrent(context))
    CudaDriver::get().memFree(address);
}

Error CudaDevice::copyToDevice(DeviceAddress to, const void *from, uint64_t bytes) {
  if (bytes == 0)
    return Error::success();
  if (Error error = enter())
    return error;
  return checkCuda(CudaDriver::get().memcpyHtoD(to, from, bytes), "cuMemcpyHtoD");
}

Error CudaDevice::copyToHost(void *to, DeviceAddress from, uint64_t bytes) {
  if (bytes == 0)
    return Error::success();
  if (Error error = enter())
    return error;
  return checkCuda(CudaDriver::get().memcpyDtoH(to, from, bytes), "cuMemcpyDtoH");
}

Error CudaDevice::fill(DeviceAddress address, uint8_t value, uint64_t bytes, void *stream) {
  if (bytes == 0)
    return Error::success();
  if (Error error = enter())
    return error;
  return checkCuda(CudaDriver::get().memsetD8Async(address, value, bytes, stream),
                   "cuMemsetD8Async");
}

Error CudaDevice::synchronize(void *stream) {
  if (Error error = enter())
    return error;
  return checkCuda(CudaDriver::get().streamSynchronize(stream), "cuStreamSynchronize");
}

Expected<double> CudaDevice::time(function_ref<Error()> work, void *stream) {
  const CudaDriver &driver = CudaDriver::get();
  if (Error error = enter())
    return std::move(error);
  void *start = nullptr, *end = nullptr;
  if (Error error = checkCuda(driver.eventCreate(&start, 0), "cuEventCreate"))
    return std::move(error);
  llvm::scope_exit destroyStart([&] { driver.eventDestroy(start); });
  if (Error error = checkCuda(driver.eventCreate(&end, 0), "cuEventCreate"))
    return std::move(error);
  llvm::scope_exit destroyEnd([&] { driver.eventDestroy(end); });
  if (Error error = checkCuda(driver.eventRecord(start, stream), "cuEventRecord"))
    return std::move(error);
  if (Error error = work())
    return std::move(error);
  if (Error error = checkCuda(driver.eventRecord(end, stream), "cuEventRecord"))
    return std::move(error);
  if (Error error = checkCuda(driver.eventSynchronize(end), "cuEventSynchronize"))
    return std::move(error);
  float milliseconds = 0;
  if (Error error =
          checkCuda(driver.eventElapsedTime(&milliseconds, start, end), "cuEventElapsedTime"))
    return std::move(error);
  return milliseconds * 1e3;
}

Expected<std::shared_ptr<CudaModule>> CudaDevice::load(ArrayRef<char> image) {
  if (Error error = enter())
    return std::move(error);
  void *handle = nullptr;
  if (Error error =
          checkCuda(CudaDriver::get().moduleLoadData(&handle, image.data()), "cuModuleLoadData"))
    return std::move(error);
  // Modules keep their device's context alive by holding a reference of their own.
  void *context = nullptr;
  if (Error error = checkCuda(CudaDriver::get().primaryCtxRetain(&context, device),
                              "cuDevicePrimaryCtxRetain"))
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
  if (!CudaDriver::get().ctxSetCurrent(owner->context))
    CudaDriver::get().moduleUnload(handle);
}

Expected<void *> CudaModule::find(const std::string &function) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = functions.find(function);
  if (found != functions.end())
    return found->second;
  void *result = nullptr;
  if (Error error =
          checkCuda(CudaDriver::get().moduleGetFunction(&result, handle, function.c_str()),
                    "cuModuleGetFunction"))
    return std::move(error);
  functions[function] = result;
  return result;
}

Error CudaModule::allowSharedBytes(void *function, unsigned bytes) {
  constexpr int maxDynamicSharedBytes = 8; // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  return checkCuda(CudaDriver::get().funcSetAttribute(function, maxDynamicSharedBytes, bytes),
                   "cuFuncSetAttribute");
}

Error CudaModule::allowLargeCluster(void *function) {
  constexpr int nonPortableClusterSize = 14; // CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
  return checkCuda(CudaDriver::get().funcSetAttribute(function, nonPortableClusterSize, 1),
                   "cuFuncSetAttribute");
}

Expected<unsigned> CudaModule::residentBlocks(void *function, unsigned threads,
                                              unsigned sharedBytes) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = resident.find({function, threads});
  if (found != resident.end())
    return found->second;
  int perMultiprocessor = 0;
  if (Error error = checkCuda(CudaDriver::get().occupancyMaxActiveBlocks(
                                  &perMultiprocessor, function, threads, sharedBytes),
                              "cuOccupancyMaxActiveBlocksPerMultiprocessor"))
    return std::move(error);
  unsigned result = std::max(perMultiprocessor, 1) * owner->info().multiprocessors;
  resident[{function, threads}] = result;
  return result;
}
