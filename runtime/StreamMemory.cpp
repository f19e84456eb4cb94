//===- StreamMemory.cpp - Workspaces that are kept between calls ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/StreamMemory.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula;

StreamMemory::~StreamMemory() {
  CudaDevice::Scope scope(device);
  for (const Kept &one : kept)
    CudaDriver::get().memFree(one.address); // the stream may be gone
}

Error StreamMemory::runOnce(void *stream, int64_t bytes, function_ref<Error(DeviceAddress)> work) {
  const CudaDriver &driver = CudaDriver::get();
  DeviceAddress address = 0;
  if (Error error = checkCuda(driver.memAllocAsync(&address, bytes, stream), "cuMemAllocAsync"))
    return error;
  Error error = work(address);
  // The stream orders the release after the launches.
  return joinErrors(std::move(error),
                    checkCuda(driver.memFreeAsync(address, stream), "cuMemFreeAsync"));
}

Error StreamMemory::run(void *stream, function_ref<Error(DeviceAddress)> work) {
  const CudaDriver &driver = CudaDriver::get();
  int isCapturing = 0;
  unsigned long long number = 0;
  if (Error error =
          checkCuda(driver.streamIsCapturing(stream, &isCapturing), "cuStreamIsCapturing"))
    return error;
  if (isCapturing || !driver.streamGetId || driver.streamGetId(stream, &number))
    return runOnce(stream, bytes, work);
  std::lock_guard<std::mutex> lock(mutex);
  Kept *found = find_if(kept, [&](const Kept &one) { return one.stream == number; });
  if (found == kept.end()) {
    if (kept.size() == maxStreams)
      return runOnce(stream, bytes, work);
    DeviceAddress address = 0;
    if (Error error = checkCuda(driver.memAllocAsync(&address, bytes, stream), "cuMemAllocAsync"))
      return error;
    kept.push_back({number, address});
    found = &kept.back();
  }
  return work(found->address);
}
