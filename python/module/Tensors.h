//===- Tensors.h - Reading and making arrays of other libraries --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// torch tensors are read through DLPack's table of C functions (DlpackExchange.h), or where a torch
// or a subclass has none through their attributes, which costs a quarter of what an export by
// DLPack does. Neither needs a header of libtorch, so that one module serves every version. All
// others are read through DLPack or the buffer protocol. torch is never imported here: a tensor of
// it exists only where it has been.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PYTHON_TENSORS_H
#define TEGULA_PYTHON_TENSORS_H

#include "python/module/Handles.h"
#include <nanobind/ndarray.h>
#include <vector>

namespace tegula::python {

constexpr int cpuDevice = -1;

/// A tensor argument of a call.
struct Tensor {
  nb::object object;            // the argument, or a contiguous copy of it
  nb::ndarray<nb::ro> exported; // what DLPack gave, which may be memory that only lives as long
  void *data = nullptr;
  std::vector<int64_t> shape;
  tegula_dtype dtype = TEGULA_F32;
  int device = cpuDevice; // or the number of a CUDA device
  bool isTorch = false;
};

/// While one lives, functions that torch's modes put around every use of a tensor are left out.
/// That of torch.set_default_device, whose device is never ours to take, would cost ten times the
/// call.
class WithoutTorchModes {
public:
  WithoutTorchModes();
  ~WithoutTorchModes();
  WithoutTorchModes(const WithoutTorchModes &) = delete;

private:
  nb::object guard; // null: there were none
};

/// Reads an argument. What is only read may lie anyhow: it is copied where it is not contiguous.
/// What is written must be contiguous. `name` is for messages.
void readTensor(nb::handle argument, bool isWritten, const char *name, Tensor &tensor);

/// A new tensor of torch, or an array of numpy.
nb::object makeTensor(bool ofTorch, const int64_t *shape, size_t rank, tegula_dtype dtype,
                      int device, const char *name);

/// As readTensor, for what makeTensor made: of torch's tensors only the address is read.
void readMade(nb::handle made, const char *name, Tensor &tensor);

/// Tells autograd that a tensor of torch has been written.
void noteWritten(nb::handle tensor);

/// The stream that torch queues on now, as a CUstream; null where torch was not imported.
void *currentStream(int device);

/// Memory of torch's allocator, at least `bytes` from an address that is a multiple of 256.
nb::object makeWorkspace(size_t bytes, int device, void *&address);

} // namespace tegula::python

#endif // TEGULA_PYTHON_TENSORS_H
