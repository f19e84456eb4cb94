//===- TmaDescriptor.h - Descriptors, and copies of boxes by TMA ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// sm_90 and later copy a box of a tensor of two to five dims to shared memory by one instruction of
// one thread, in the swizzle of 128 bytes that wgmma reads (SharedLayout.h). A TMA descriptor of
// 128 bytes in global memory says where the tensor is; device code writes it field by field, so
// that whoever launches knows nothing of it. What lies outside of the tensor is 0 (PTX ISA,
// "Tensors", "tensormap.replace", "cp.async.bulk.tensor").
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_NVGPU_TMADESCRIPTOR_H
#define TEGULA_CODEGEN_NVGPU_TMADESCRIPTOR_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

/// Writes and uses one TMA descriptor. All by one thread; other threads may use a descriptor that
/// they have acquired after it was published.
class TmaDescriptor {
public:
  using Value = llvm::Value;
  static constexpr unsigned bytes = 128, maxDims = 5;

  /// `descriptor`: where its bytes are, at a multiple of 64, in memory of address space 1.
  TmaDescriptor(llvm::IRBuilder<> &builder, Value *descriptor)
      : b(builder), descriptor(descriptor) {}

  struct Dim {
    Value *extent; ///< elements (i32)
    Value *stride; ///< bytes (i64), a multiple of 16; null: neighbours, of the first dim
    unsigned box;  ///< elements of a box, at most 256
  };
  /// `address`: of the first element, a multiple of 16. Elements have 1 or 2 bytes and are only
  /// copied; those of a box along the first dim are 128 bytes.
  void write(Value *address, llvm::ArrayRef<Dim> dims, unsigned elementBytes);
  /// What the thread has written of maps is for all that acquire them.
  static void publish(llvm::IRBuilder<> &builder);
  /// The thread's copies see the descriptor as it was published.
  void acquire();
  /// Starts the copy of the box at `at` (i32, the first dim first) to shared memory; `barrier`
  /// counts its bytes.
  void copyBox(Value *to, llvm::ArrayRef<Value *> at, Value *barrier);

private:
  llvm::IRBuilder<> &b;
  Value *descriptor;
};

} // namespace tegula

#endif // TEGULA_CODEGEN_NVGPU_TMADESCRIPTOR_H
