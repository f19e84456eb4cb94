//===- Cuda.h - Devices, memory and launches through the CUDA driver ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thin layer over libcuda.so.1, loaded when first asked for: a machine without a driver gets a
// MissingDeviceError and everything else of Tegula works. Nothing here needs the CUDA toolkit.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_CUDA_H
#define TEGULA_RUNTIME_CUDA_H

#include "runtime/CudaDriver.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace tegula {

/// No driver, no device, or none that runs the wanted code.
class MissingDeviceError : public llvm::ErrorInfo<MissingDeviceError> {
public:
  static char ID;
  explicit MissingDeviceError(std::string message) : message(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override {
    return std::make_error_code(std::errc::no_such_device);
  }

private:
  std::string message;
};

struct CudaDeviceInfo {
  std::string name;
  int major = 0, minor = 0; // compute capability
  int multiprocessors = 0;
  int maxThreadsPerMultiprocessor = 0;
  int driverVersion = 0; // 13000: CUDA 13.0
  uint64_t memoryBytes = 0;
  int l2Bytes = 0;

  /// What code for this device is compiled for, such as `sm_90a`.
  std::string target() const;
};

class CudaModule;

/// One device with its primary context (the one PyTorch uses too). Calls make the context current
/// on the calling thread, where it stays; Scope puts back what was there.
class CudaDevice {
public:
  /// Costs next to nothing where the context is current already.
  class Scope {
  public:
    explicit Scope(const CudaDevice &device);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    bool entered;
  };

  static llvm::Expected<std::shared_ptr<CudaDevice>> open(int ordinal = 0);
  ~CudaDevice();
  const CudaDeviceInfo &info() const { return deviceInfo; }

  /// Plain allocations, at least 256-byte aligned. Zero bytes give address 0.
  llvm::Expected<DeviceAddress> allocate(uint64_t bytes);
  void free(DeviceAddress address);
  llvm::Error copyToDevice(DeviceAddress to, const void *from, uint64_t bytes);
  llvm::Error copyToHost(void *to, DeviceAddress from, uint64_t bytes);
  llvm::Error fill(DeviceAddress address, uint8_t value, uint64_t bytes, void *stream = nullptr);
  llvm::Error synchronize(void *stream = nullptr);
  llvm::Expected<std::shared_ptr<CudaModule>> load(llvm::ArrayRef<char> image);

  /// Microseconds of device time between two events around `work` on `stream`.
  llvm::Expected<double> time(llvm::function_ref<llvm::Error()> work, void *stream = nullptr);

  /// Makes the context current on this thread, as every call here does by itself.
  llvm::Error enter() const;

private:
  friend class CudaModule;
  CudaDevice() = default;
  int device = 0;
  void *context = nullptr;
  CudaDeviceInfo deviceInfo;
};

/// Code on a device: a cubin, or PTX that the driver assembles. Several threads may use it at once.
class CudaModule {
public:
  ~CudaModule();

  CudaDevice &device() const { return *owner; }
  /// A function's handle, good for as long as the module.
  llvm::Expected<void *> find(const std::string &function);
  /// Blocks of `threads` threads that are resident on the whole device at once.
  llvm::Expected<unsigned> residentBlocks(void *function, unsigned threads, unsigned sharedBytes);
  /// Lets launches of the function have so many bytes of dynamic shared memory a block.
  llvm::Error allowSharedBytes(void *function, unsigned bytes);
  /// More than the 8 blocks in a cluster that every device of a capability has room for.
  llvm::Error allowLargeCluster(void *function);

private:
  friend class CudaDevice;
  CudaModule(std::shared_ptr<CudaDevice> owner, void *handle)
      : owner(std::move(owner)), handle(handle) {}
  std::shared_ptr<CudaDevice> owner;
  void *handle;
  std::mutex mutex; // of what follows
  std::map<std::string, void *> functions;
  std::map<std::pair<void *, unsigned>, unsigned> resident;
};

} // namespace tegula

#endif // TEGULA_RUNTIME_CUDA_H
