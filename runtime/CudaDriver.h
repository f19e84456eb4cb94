//===- CudaDriver.h - The CUDA driver's functions ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver is libcuda.so.1, loaded when first asked for. Tests put a library of that name in its
// place that keeps a record of every call (test/fakecuda): nothing here knows of it.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_CUDADRIVER_H
#define TEGULA_RUNTIME_CUDADRIVER_H

#include "llvm/Support/Error.h"
#include <cstddef>
#include <cstdint>
#include <string>

namespace tegula {

/// An address in device memory. Plain numbers, as in the driver's interface.
using DeviceAddress = uint64_t;

/// CUlaunchAttribute and CUlaunchConfig, cuda.h.
struct CudaLaunchAttribute {
  static constexpr int programmaticStreamSerialization = 6;
  int id;
  int padding;
  int value[16];
};
struct CudaLaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  void *stream;
  const CudaLaunchAttribute *attributes;
  unsigned numAttributes;
};

/// The driver's C interface as far as it is used (cuda.h of CUDA 12 and 13). Every function returns
/// a CUresult, 0 on success. Handles are opaque pointers, device addresses 64-bit numbers.
struct CudaDriver {
  int (*init)(unsigned flags);
  int (*driverGetVersion)(int *);
  int (*deviceGetCount)(int *);
  int (*deviceGet)(int *device, int ordinal);
  int (*deviceGetName)(char *, int bytes, int device);
  int (*deviceTotalMem)(size_t *, int device);
  int (*deviceGetAttribute)(int *, int attribute, int device);
  int (*primaryCtxRetain)(void **context, int device);
  int (*primaryCtxRelease)(int device);
  int (*ctxGetCurrent)(void **);
  int (*ctxSetCurrent)(void *);
  int (*ctxPushCurrent)(void *);
  int (*ctxPopCurrent)(void **);
  int (*getErrorName)(int, const char **);
  int (*getErrorString)(int, const char **);
  int (*memAlloc)(DeviceAddress *, size_t bytes);
  int (*memFree)(DeviceAddress);
  int (*memAllocAsync)(DeviceAddress *, size_t bytes, void *stream);
  int (*memFreeAsync)(DeviceAddress, void *stream);
  int (*deviceGetDefaultMemPool)(void **pool, int device);
  int (*memPoolSetAttribute)(void *pool, int attribute, void *value);
  int (*memcpyHtoD)(DeviceAddress, const void *, size_t);
  int (*memcpyDtoH)(void *, DeviceAddress, size_t);
  int (*memsetD8Async)(DeviceAddress, unsigned char, size_t, void *stream);
  int (*streamSynchronize)(void *);
  int (*streamIsCapturing)(void *, int *status);
  int (*streamGetId)(void *, unsigned long long *); // CUDA 12; may be null
  // For graphs; any may be null.
  int (*streamCreate)(void **, unsigned flags);
  int (*streamDestroy)(void *);
  int (*streamBeginCapture)(void *, int mode);
  int (*streamEndCapture)(void *, void **graph);
  int (*graphInstantiate)(void **executable, void *graph, unsigned long long flags);
  int (*graphLaunch)(void *executable, void *stream);
  int (*graphExecDestroy)(void *executable);
  int (*graphDestroy)(void *graph);
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
  int (*launchKernelEx)(const CudaLaunchConfig *, void *function, void **arguments,
                        void **extra); // CUDA 11.8; may be null
  int (*occupancyMaxActiveBlocks)(int *, void *function, int threads, size_t dynamicShared);
  int (*funcSetAttribute)(void *function, int attribute, int value);

  std::string missing; // why the driver cannot be used; empty: it can

  bool hasGraphs() const {
    return streamCreate && streamDestroy && streamBeginCapture && streamEndCapture &&
           graphInstantiate && graphLaunch && graphExecDestroy && graphDestroy;
  }

  /// The one of this process; it stays loaded.
  static const CudaDriver &get();
  /// `cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)`.
  std::string describe(int code, const char *call) const;

private:
  CudaDriver();
};

/// A call of the driver failed.
class CudaError : public llvm::ErrorInfo<CudaError> {
public:
  static char ID;
  enum Kind {
    OutOfMemory,
    WrongCode, ///< code for another device, or from a newer toolkit than the driver knows
    Fault, ///< a kernel did what the device forbids; the context is lost, and with it the process's
           ///< use of it
    Other
  };
  CudaError(Kind kind, std::string message) : kind(kind), message(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
  /// Whether the machine lacks something, as against a defect.
  bool isMissing() const { return kind == OutOfMemory || kind == WrongCode; }
  Kind kind;
  std::string message;
};

/// Success for 0, else what `call` failed with, a CudaError.
llvm::Error checkCuda(int code, const char *call);

} // namespace tegula

#endif // TEGULA_RUNTIME_CUDADRIVER_H
