//===- DTypes.h - Element types and how they are stored -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The element types of the language, the conversions between storage and compute types, and the
// placement of packed elements. Rounding is to nearest, ties to even, once: also from double.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_DTYPES_H
#define TEGULA_IR_DTYPES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace mlir {
class MLIRContext;
class Type;
} // namespace mlir

namespace tegula {

enum class DType {
  F64,
  F32,
  F16,
  BF16,
  F8E4M3,
  F8E5M2,
  I64,
  I32,
  I16,
  I8,
  U8,
  I4,
  U4,
  Bool,
  U16,
  U32,
  U64
};
constexpr unsigned numDTypes = 17;

bool isFloat(DType type);
bool isInteger(DType type);  // not Bool
bool isSigned(DType type);   // has negative values
bool isUnsigned(DType type); // an integer without
/// What reading an element gives: F32 for the small floats, I32 for integers of less than 32 bits.
DType computeType(DType type);
/// 4 for I4 and U4, 8 for Bool, else what the name says.
unsigned bitWidth(DType type);
/// The name in the language: `f8e4m3`, `bool`.
llvm::StringRef toString(DType type);
std::optional<DType> parseDType(llvm::StringRef name);
/// Element types of IR (f8E4M3FN, ui8, i1, ...). Nothing for other types.
std::optional<DType> dtypeOf(mlir::Type type);
mlir::Type mlirType(mlir::MLIRContext *context, DType type);
/// Smallest and largest value of an integer type (Bool: 0 and 1). Of U64, the bits of the largest.
int64_t minValue(DType type);
int64_t maxValue(DType type);
/// The largest number of a float type that is not inf.
double largestFinite(DType type);

//===----------------------------------------------------------------------===//
// Small floats
//===----------------------------------------------------------------------===//

float decodeF16(uint16_t bits);
float decodeBF16(uint16_t bits);
float decodeF8E4M3(uint8_t bits);
float decodeF8E5M2(uint8_t bits);
/// Overflow gives inf; nan stays nan (quiet, its sign kept).
uint16_t encodeF16(double value);
uint16_t encodeBF16(double value);
uint8_t encodeF8E5M2(double value);
/// The format without inf: what rounds beyond 448, and inf, gives nan.
uint8_t encodeF8E4M3(double value);

/// The value rounded to a float type.
double roundToFloat(double value, DType type);
/// The value truncated, or rounded to nearest even, then saturated; nan gives 0. Bool: value != 0.
int64_t convertToInteger(double value, DType type, bool nearest);
/// The nearest value of the type to a signed integer.
int64_t saturate(int64_t value, DType type);
/// The low bits of the value, sign- or zero-extended: what storing an integer and reading it gives.
int64_t wrap(int64_t value, DType type);

//===----------------------------------------------------------------------===//
// Elements in memory
//===----------------------------------------------------------------------===//

/// Elements per row in memory: the last dim, padded to whole bytes for 4-bit types. 1 for rank 0.
int64_t paddedLastDim(DType type, llvm::ArrayRef<int64_t> shape);
/// Bytes of a tensor; nothing where a dim is negative or the size leaves 64 bits.
std::optional<int64_t> storageBytes(DType type, llvm::ArrayRef<int64_t> shape);

/// The element at `index`, counted in elements with rows of paddedLastDim, in the compute type.
double loadFloat(DType type, const void *data, int64_t index);
/// Of a U64, its bits.
int64_t loadInteger(DType type, const void *data, int64_t index);
/// Rounds to nearest even; wraps.
void storeFloat(DType type, void *data, int64_t index, double value);
void storeInteger(DType type, void *data, int64_t index, int64_t value);

} // namespace tegula

#endif // TEGULA_IR_DTYPES_H
