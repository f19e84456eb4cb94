//===- StorageTypes.h - Element types of tensors as LLVM IR ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions between what lies in memory and compute types (f32, f64, i32, i64, i1), on scalars
// and vectors alike. bf16, f8 and integers are done on bits, so that host and device agree; f16
// uses the hardware's conversions, which round to nearest even everywhere. ir/DTypes.h has the same
// functions on host scalars.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_STORAGETYPES_H
#define TEGULA_CODEGEN_COMMON_STORAGETYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "target/TargetInfo.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class StorageConverter {
public:
  /// By the target's instructions where it has some: two f32 become bf16 by one, nan aside
  /// (`hasPackedBF16Convert`), or f8 (`hasF8`), and two f8 become f16.
  explicit StorageConverter(llvm::IRBuilder<> &b, const TargetInfo &target = TargetInfo())
      : b(b), hasPackedBF16Convert(target.hasPackedBF16Convert), hasF8Convert(target.hasF8),
        hasPackedMinimum(target.capability >= 90) {}

  /// Storage bits to the element's compute type.
  llvm::Value *decode(llvm::Value *raw, mlir::Type element);
  /// A value of the compute type to storage: floats round to nearest even, integers wrap.
  llvm::Value *encode(llvm::Value *value, mlir::Type element);
  /// A value of any compute type to storage of `element`, as `T(v)` does: floats to integers
  /// truncate
  /// (`nearest`: round to nearest even), saturate, and take nan to 0; integers saturate.
  llvm::Value *saturate(llvm::Value *value, mlir::Type element, bool nearest);

private:
  struct Format { // a small float: bits of significand and exponent, and where values end
    unsigned mantissa, exponent, bias;
    bool hasInfinity;
    unsigned largest; // bits of the largest finite magnitude
    unsigned nan;
    double halfwayBeyond = 0; // of f8: between the largest and the number that would come next
  };
  static Format formatOf(mlir::Type element);
  llvm::Type *like(llvm::Value *shape, llvm::Type *scalar);
  llvm::Value *constant(llvm::Value *shape, uint64_t bits, unsigned width);
  llvm::Value *toF32(llvm::Value *value);
  llvm::Value *decodeSmall(llvm::Value *raw, const Format &format);
  llvm::Value *encodeSmall(llvm::Value *value, const Format &format);
  llvm::Value *encodePackedBF16(llvm::Value *value, unsigned nan);
  llvm::Value *mendPair(llvm::Value *pair, llvm::Value *low, llvm::Value *high, unsigned nan);
  llvm::Value *decodeBF16Words(llvm::Value *raw);
  llvm::Value *decodeF8Pairs(llvm::Value *raw, const Format &format);
  llvm::Value *encodeF8Pairs(llvm::Value *value, const Format &format);
  llvm::IRBuilder<> &b;
  bool hasPackedBF16Convert, hasF8Convert;
  bool hasPackedMinimum; // PTX ISA, "min": .s16x2
};

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_STORAGETYPES_H
