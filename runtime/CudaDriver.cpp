//===- CudaDriver.cpp - The CUDA driver's functions ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/CudaDriver.h"

#include "llvm/ADT/Twine.h"
#include <dlfcn.h>
#include <type_traits>

using namespace llvm;
using namespace tegula;

char CudaError::ID = 0;

const CudaDriver &CudaDriver::get() {
  static const CudaDriver driver;
  return driver;
}

CudaDriver::CudaDriver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    missing = "no CUDA driver: libcuda.so.1 was not found";
    return;
  }
  auto bind = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function && missing.empty())
      missing = std::string("the CUDA driver is too old: it has no ") + name;
  };
  bind(init, "cuInit");
  bind(driverGetVersion, "cuDriverGetVersion");
  bind(deviceGetCount, "cuDeviceGetCount");
  bind(deviceGet, "cuDeviceGet");
  bind(deviceGetName, "cuDeviceGetName");
  bind(deviceTotalMem, "cuDeviceTotalMem_v2");
  bind(deviceGetAttribute, "cuDeviceGetAttribute");
  bind(primaryCtxRetain, "cuDevicePrimaryCtxRetain");
  bind(primaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  bind(ctxGetCurrent, "cuCtxGetCurrent");
  bind(ctxSetCurrent, "cuCtxSetCurrent");
  bind(ctxPushCurrent, "cuCtxPushCurrent_v2");
  bind(ctxPopCurrent, "cuCtxPopCurrent_v2");
  bind(getErrorName, "cuGetErrorName");
  bind(getErrorString, "cuGetErrorString");
  bind(memAlloc, "cuMemAlloc_v2");
  bind(memFree, "cuMemFree_v2");
  bind(memAllocAsync, "cuMemAllocAsync");
  bind(memFreeAsync, "cuMemFreeAsync");
  bind(deviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool");
  bind(memPoolSetAttribute, "cuMemPoolSetAttribute");
  bind(memcpyHtoD, "cuMemcpyHtoD_v2");
  bind(memcpyDtoH, "cuMemcpyDtoH_v2");
  bind(memsetD8Async, "cuMemsetD8Async");
  bind(streamSynchronize, "cuStreamSynchronize");
  bind(streamIsCapturing, "cuStreamIsCapturing");
  auto bindIfThere = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
  };
  bindIfThere(streamGetId, "cuStreamGetId");
  bindIfThere(streamCreate, "cuStreamCreate");
  bindIfThere(streamDestroy, "cuStreamDestroy_v2");
  bindIfThere(streamBeginCapture, "cuStreamBeginCapture_v2");
  bindIfThere(streamEndCapture, "cuStreamEndCapture");
  bindIfThere(graphInstantiate, "cuGraphInstantiateWithFlags");
  bindIfThere(graphLaunch, "cuGraphLaunch");
  bindIfThere(graphExecDestroy, "cuGraphExecDestroy");
  bindIfThere(graphDestroy, "cuGraphDestroy");
  bind(eventCreate, "cuEventCreate");
  bind(eventRecord, "cuEventRecord");
  bind(eventSynchronize, "cuEventSynchronize");
  bind(eventElapsedTime, "cuEventElapsedTime");
  bind(eventDestroy, "cuEventDestroy_v2");
  bind(moduleLoadData, "cuModuleLoadData");
  bind(moduleUnload, "cuModuleUnload");
  bind(moduleGetFunction, "cuModuleGetFunction");
  bind(launchKernel, "cuLaunchKernel");
  bind(funcSetAttribute, "cuFuncSetAttribute");
  bindIfThere(launchKernelEx, "cuLaunchKernelEx");
  bind(occupancyMaxActiveBlocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  if (!missing.empty())
    return;
  if (int code = init(0))
    missing = describe(code, "cuInit");
}

std::string CudaDriver::describe(int code, const char *call) const {
  const char *name = nullptr, *text = nullptr;
  getErrorName(code, &name);
  getErrorString(code, &text);
  return (Twine(call) + ": " + (name ? name : "error " + std::to_string(code)) +
          (text ? std::string(" (") + text + ")" : ""))
      .str();
}

/// By the numbers of CUresult, cuda.h.
static CudaError::Kind kindOf(int code) {
  switch (code) {
  case 2: // OUT_OF_MEMORY
    return CudaError::OutOfMemory;
  case 200: // INVALID_IMAGE
  case 209: // NO_BINARY_FOR_GPU
  case 218: // INVALID_PTX
  case 222: // UNSUPPORTED_PTX_VERSION
    return CudaError::WrongCode;
  case 700: // ILLEGAL_ADDRESS
  case 702: // LAUNCH_TIMEOUT
  case 710: // ASSERT
  case 714: // HARDWARE_STACK_ERROR
  case 715: // ILLEGAL_INSTRUCTION
  case 716: // MISALIGNED_ADDRESS
  case 717: // INVALID_ADDRESS_SPACE
  case 718: // INVALID_PC
  case 719: // LAUNCH_FAILED
    return CudaError::Fault;
  default:
    return CudaError::Other;
  }
}

Error tegula::checkCuda(int code, const char *call) {
  if (!code)
    return Error::success();
  return make_error<CudaError>(kindOf(code), CudaDriver::get().describe(code, call));
}
