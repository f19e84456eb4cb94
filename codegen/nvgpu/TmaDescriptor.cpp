//===- TmaDescriptor.cpp - Descriptors, and copies of boxes by TMA ------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/nvgpu/TmaDescriptor.h"

#include "codegen/llvm/PtxVersion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// ptxas of before PTX 8.5 takes strides in units of 16 bytes.
static constexpr unsigned minPtxVersion = 85;

/// PTX ISA, "tensormap.replace": bytes or words of 16 bits, no interleaving, the swizzle of 128
/// bytes, zeros outside.
void TmaDescriptor::write(Value *address, ArrayRef<Dim> dims, unsigned elementBytes) {
  needPtx(*b.GetInsertBlock()->getModule(), minPtxVersion);
  constexpr unsigned noInterleaving = 0, swizzleOf128 = 3, zeros = 0;
  for (unsigned n = 0; n < bytes / 8; ++n)
    b.CreateAlignedStore(
        b.getInt64(0), b.CreateInBoundsGEP(b.getInt8Ty(), descriptor, b.getInt64(8 * n)), Align(8));
  auto replace = [&](Intrinsic::ID field, ArrayRef<Value *> values) {
    SmallVector<Value *> arguments{descriptor};
    arguments.append(values.begin(), values.end());
    b.CreateIntrinsic(b.getVoidTy(), field, arguments);
  };
  auto i32 = [&](unsigned value) { return b.getInt32(value); };
  replace(Intrinsic::nvvm_tensormap_replace_global_address,
          b.CreatePtrToInt(address, b.getInt64Ty()));
  replace(Intrinsic::nvvm_tensormap_replace_rank, i32(dims.size() - 1));
  for (auto [number, dim] : enumerate(dims)) {
    replace(Intrinsic::nvvm_tensormap_replace_box_dim, {i32(number), i32(dim.box)});
    replace(Intrinsic::nvvm_tensormap_replace_global_dim, {i32(number), dim.extent});
    replace(Intrinsic::nvvm_tensormap_replace_element_stride, {i32(number), i32(1)});
    if (number > 0)
      replace(Intrinsic::nvvm_tensormap_replace_global_stride, {i32(number - 1), dim.stride});
  }
  replace(Intrinsic::nvvm_tensormap_replace_elemtype, i32(elementBytes - 1));
  replace(Intrinsic::nvvm_tensormap_replace_interleave_layout, i32(noInterleaving));
  replace(Intrinsic::nvvm_tensormap_replace_swizzle_mode, i32(swizzleOf128));
  replace(Intrinsic::nvvm_tensormap_replace_fill_mode, i32(zeros));
}

void TmaDescriptor::publish(IRBuilder<> &b) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_fence_proxy_tensormap_generic_release_gpu, {});
}

void TmaDescriptor::acquire() {
  auto *type = FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false);
  InlineAsm *fence =
      InlineAsm::get(type, "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l,~{memory}",
                     /*hasSideEffects=*/true);
  b.CreateCall(fence, b.CreateAddrSpaceCast(descriptor, b.getPtrTy()));
}

void TmaDescriptor::copyBox(Value *to, ArrayRef<Value *> at, Value *barrier) {
  SmallVector<Value *> arguments{b.CreatePtrToInt(to, b.getInt32Ty()),
                                 b.CreateAddrSpaceCast(descriptor, b.getPtrTy())};
  append_range(arguments, at);
  arguments.push_back(b.CreatePtrToInt(barrier, b.getInt32Ty()));
  std::string text = "cp.async.bulk.tensor." + std::to_string(at.size()) +
                     "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {",
              constraints = "r,l";
  for (unsigned dim = 0; dim < at.size(); ++dim) {
    text += (dim ? ", $" : "$") + std::to_string(2 + dim);
    constraints += ",r";
  }
  text += "}], [$" + std::to_string(2 + at.size()) + "];";
  constraints += ",r,~{memory}";
  SmallVector<Type *> types(arguments.size(), b.getInt32Ty());
  types[1] = b.getPtrTy();
  InlineAsm *copy =
      InlineAsm::get(FunctionType::get(b.getVoidTy(), types, false), text, constraints,
                     /*hasSideEffects=*/true);
  b.CreateCall(copy, arguments);
}
