//===- DTypes.cpp - Element types and how they are stored ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/DTypes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

using namespace tegula;

namespace {
struct Info {
  llvm::StringLiteral name;
  unsigned bits;
  bool isFloat;
  bool isSigned;
};
} // namespace

static constexpr Info infos[numDTypes] = {
    {"f64", 64, true, true},   {"f32", 32, true, true},   {"f16", 16, true, true},
    {"bf16", 16, true, true},  {"f8e4m3", 8, true, true}, {"f8e5m2", 8, true, true},
    {"i64", 64, false, true},  {"i32", 32, false, true},  {"i16", 16, false, true},
    {"i8", 8, false, true},    {"u8", 8, false, false},   {"i4", 4, false, true},
    {"u4", 4, false, false},   {"bool", 8, false, false}, {"u16", 16, false, false},
    {"u32", 32, false, false}, {"u64", 64, false, false},
};
static const Info &info(DType type) { return infos[unsigned(type)]; }

bool tegula::isFloat(DType type) { return info(type).isFloat; }
bool tegula::isInteger(DType type) { return !isFloat(type) && type != DType::Bool; }
bool tegula::isSigned(DType type) { return info(type).isSigned; }
bool tegula::isUnsigned(DType type) { return isInteger(type) && !isSigned(type); }
unsigned tegula::bitWidth(DType type) { return info(type).bits; }
llvm::StringRef tegula::toString(DType type) { return info(type).name; }

DType tegula::computeType(DType type) {
  if (isFloat(type))
    return type == DType::F64 ? DType::F64 : DType::F32;
  bool isWide = type == DType::I64 || type == DType::U32 || type == DType::U64;
  return type == DType::Bool || isWide ? type : DType::I32;
}

std::optional<DType> tegula::parseDType(llvm::StringRef name) {
  for (unsigned i = 0; i < numDTypes; ++i)
    if (infos[i].name == name)
      return DType(i);
  return std::nullopt;
}

std::optional<DType> tegula::dtypeOf(mlir::Type type) {
  using namespace mlir;
  if (isa<Float64Type>(type))
    return DType::F64;
  if (isa<Float32Type>(type))
    return DType::F32;
  if (isa<Float16Type>(type))
    return DType::F16;
  if (isa<BFloat16Type>(type))
    return DType::BF16;
  if (isa<Float8E4M3FNType>(type))
    return DType::F8E4M3;
  if (isa<Float8E5M2Type>(type))
    return DType::F8E5M2;
  if (type.isSignlessInteger(64))
    return DType::I64;
  if (type.isSignlessInteger(32))
    return DType::I32;
  if (type.isSignlessInteger(16))
    return DType::I16;
  if (type.isSignlessInteger(8))
    return DType::I8;
  if (type.isUnsignedInteger(64))
    return DType::U64;
  if (type.isUnsignedInteger(32))
    return DType::U32;
  if (type.isUnsignedInteger(16))
    return DType::U16;
  if (type.isUnsignedInteger(8))
    return DType::U8;
  if (type.isSignlessInteger(4))
    return DType::I4;
  if (type.isUnsignedInteger(4))
    return DType::U4;
  if (type.isSignlessInteger(1))
    return DType::Bool;
  return std::nullopt;
}

mlir::Type tegula::mlirType(mlir::MLIRContext *context, DType type) {
  using namespace mlir;
  switch (type) {
  case DType::F64:
    return Float64Type::get(context);
  case DType::F32:
    return Float32Type::get(context);
  case DType::F16:
    return Float16Type::get(context);
  case DType::BF16:
    return BFloat16Type::get(context);
  case DType::F8E4M3:
    return Float8E4M3FNType::get(context);
  case DType::F8E5M2:
    return Float8E5M2Type::get(context);
  case DType::U64:
  case DType::U32:
  case DType::U16:
  case DType::U8:
  case DType::U4:
    return IntegerType::get(context, bitWidth(type), IntegerType::Unsigned);
  case DType::Bool:
    return IntegerType::get(context, 1);
  default:
    return IntegerType::get(context, bitWidth(type));
  }
}

int64_t tegula::minValue(DType type) {
  return info(type).isSigned ? llvm::minIntN(info(type).bits) : 0;
}
int64_t tegula::maxValue(DType type) {
  if (type == DType::Bool)
    return 1;
  return info(type).isSigned ? llvm::maxIntN(info(type).bits)
                             : int64_t(llvm::maxUIntN(info(type).bits));
}

double tegula::largestFinite(DType type) {
  switch (type) {
  case DType::F16:
    return 65504;
  case DType::BF16:
    return decodeBF16(0x7f7f);
  case DType::F8E4M3:
    return 448;
  case DType::F8E5M2:
    return 57344;
  case DType::F32:
    return std::numeric_limits<float>::max();
  case DType::F64:
    return std::numeric_limits<double>::max();
  default:
    llvm_unreachable("integers have maxValue");
  }
}

//===----------------------------------------------------------------------===//
// Small floats
//===----------------------------------------------------------------------===//

/// Sign, exponent, mantissa; subnormals; all-ones exponents are inf and nan where `hasInfinity`,
/// else only all-ones exponent and mantissa together are nan.
template <unsigned exponentBits, unsigned mantissaBits, bool hasInfinity>
static float decode(unsigned bits) {
  constexpr unsigned exponentMask = (1u << exponentBits) - 1;
  constexpr unsigned mantissaMask = (1u << mantissaBits) - 1;
  constexpr int bias = (1 << (exponentBits - 1)) - 1;
  unsigned sign = bits >> (exponentBits + mantissaBits);
  unsigned exponent = (bits >> mantissaBits) & exponentMask, mantissa = bits & mantissaMask;
  float magnitude;
  if (exponent == exponentMask && (hasInfinity || mantissa == mantissaMask))
    magnitude = hasInfinity && mantissa == 0 ? std::numeric_limits<float>::infinity()
                                             : std::numeric_limits<float>::quiet_NaN();
  else if (exponent == 0)
    magnitude = std::ldexp(float(mantissa), 1 - bias - int(mantissaBits));
  else
    magnitude = std::ldexp(float(mantissa | (1u << mantissaBits)),
                           int(exponent) - bias - int(mantissaBits));
  return sign ? -magnitude : magnitude;
}

template <unsigned exponentBits, unsigned mantissaBits, bool hasInfinity>
static unsigned encode(double value) {
  constexpr unsigned exponentMask = (1u << exponentBits) - 1;
  constexpr unsigned mantissaMask = (1u << mantissaBits) - 1;
  constexpr int bias = (1 << (exponentBits - 1)) - 1;
  constexpr unsigned signShift = exponentBits + mantissaBits;
  constexpr unsigned infinity = exponentMask << mantissaBits;
  constexpr unsigned nan =
      hasInfinity ? infinity | (1u << (mantissaBits - 1)) : infinity | mantissaMask;
  constexpr unsigned overflow = hasInfinity ? infinity : nan;
  unsigned sign = std::signbit(value) ? 1u << signShift : 0;
  if (std::isnan(value))
    return sign | nan;
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude))
    return sign | overflow;
  if (magnitude == 0)
    return sign;
  // The unit in the last place of this binade, not below the subnormals'. Scaling by a power of two
  // is exact, so nearbyint (nearest even) is the only rounding.
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  auto units = uint64_t(std::nearbyint(std::scalbn(magnitude, int(mantissaBits) - exponent)));
  // A mantissa that rounds up to the next power of two carries into the exponent by itself.
  uint64_t bits = (uint64_t(exponent + bias - 1) << mantissaBits) + units;
  constexpr unsigned largest = hasInfinity ? infinity - 1 : nan - 1;
  return sign | (bits > largest ? overflow : unsigned(bits));
}

float tegula::decodeF16(uint16_t bits) { return decode<5, 10, true>(bits); }
float tegula::decodeBF16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
float tegula::decodeF8E4M3(uint8_t bits) { return decode<4, 3, false>(bits); }
float tegula::decodeF8E5M2(uint8_t bits) { return decode<5, 2, true>(bits); }
uint16_t tegula::encodeF16(double value) { return encode<5, 10, true>(value); }
uint16_t tegula::encodeBF16(double value) { return encode<8, 7, true>(value); }
uint8_t tegula::encodeF8E4M3(double value) { return encode<4, 3, false>(value); }
uint8_t tegula::encodeF8E5M2(double value) { return encode<5, 2, true>(value); }

double tegula::roundToFloat(double value, DType type) {
  switch (type) {
  case DType::F64:
    return value;
  case DType::F32:
    return float(value);
  case DType::F16:
    return decodeF16(encodeF16(value));
  case DType::BF16:
    return decodeBF16(encodeBF16(value));
  case DType::F8E4M3:
    return decodeF8E4M3(encodeF8E4M3(value));
  case DType::F8E5M2:
    return decodeF8E5M2(encodeF8E5M2(value));
  default:
    llvm_unreachable("not a float type");
  }
}

int64_t tegula::saturate(int64_t value, DType type) {
  if (type == DType::U64)
    return std::max<int64_t>(value, 0);
  return std::min(std::max(value, minValue(type)), maxValue(type));
}

int64_t tegula::convertToInteger(double value, DType type, bool nearest) {
  if (type == DType::Bool)
    return value != 0;
  if (std::isnan(value))
    return 0;
  double whole = nearest ? std::nearbyint(value) : std::trunc(value);
  if (type == DType::U64 && whole >= 0x1p63)
    return whole >= 0x1p64 ? maxValue(type) : static_cast<int64_t>(static_cast<uint64_t>(whole));
  // 2^63 is a double, its predecessor in int64 is not.
  if (whole >= 0x1p63)
    return maxValue(type);
  if (whole < -0x1p63)
    return minValue(type);
  return saturate(int64_t(whole), type);
}

int64_t tegula::wrap(int64_t value, DType type) {
  if (type == DType::Bool)
    return value & 1;
  unsigned bits = info(type).bits;
  if (bits == 64)
    return value;
  return info(type).isSigned ? llvm::SignExtend64(uint64_t(value), bits)
                             : int64_t(uint64_t(value) & llvm::maskTrailingOnes<uint64_t>(bits));
}

//===----------------------------------------------------------------------===//
// Elements in memory
//===----------------------------------------------------------------------===//

int64_t tegula::paddedLastDim(DType type, llvm::ArrayRef<int64_t> shape) {
  int64_t last = shape.empty() ? 1 : shape.back();
  return bitWidth(type) == 4 && last < INT64_MAX ? last + (last & 1) : last;
}

std::optional<int64_t> tegula::storageBytes(DType type, llvm::ArrayRef<int64_t> shape) {
  for (int64_t dim : shape)
    if (dim < 0)
      return std::nullopt;
  int64_t bytes = paddedLastDim(type, shape);
  if (bitWidth(type) == 4)
    bytes = shape.empty() ? 1 : bytes / 2;
  else if (llvm::MulOverflow(bytes, int64_t(bitWidth(type) / 8), bytes))
    return std::nullopt;
  for (int64_t dim : shape.drop_back(shape.empty() ? 0 : 1))
    if (llvm::MulOverflow(bytes, dim, bytes))
      return std::nullopt;
  return bytes;
}

template <typename T> static T at(const void *data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char *>(data) + index * int64_t(sizeof(T)), sizeof(T));
  return value;
}
template <typename T> static void put(void *data, int64_t index, T value) {
  std::memcpy(static_cast<char *>(data) + index * int64_t(sizeof(T)), &value, sizeof(T));
}

double tegula::loadFloat(DType type, const void *data, int64_t index) {
  switch (type) {
  case DType::F64:
    return at<double>(data, index);
  case DType::F32:
    return at<float>(data, index);
  case DType::F16:
    return decodeF16(at<uint16_t>(data, index));
  case DType::BF16:
    return decodeBF16(at<uint16_t>(data, index));
  case DType::F8E4M3:
    return decodeF8E4M3(at<uint8_t>(data, index));
  case DType::F8E5M2:
    return decodeF8E5M2(at<uint8_t>(data, index));
  default:
    llvm_unreachable("not a float type");
  }
}

int64_t tegula::loadInteger(DType type, const void *data, int64_t index) {
  switch (type) {
  case DType::I64:
    return at<int64_t>(data, index);
  case DType::I32:
    return at<int32_t>(data, index);
  case DType::I16:
    return at<int16_t>(data, index);
  case DType::I8:
    return at<int8_t>(data, index);
  case DType::U8:
    return at<uint8_t>(data, index);
  case DType::U16:
    return at<uint16_t>(data, index);
  case DType::U32:
    return at<uint32_t>(data, index);
  case DType::U64:
    return at<int64_t>(data, index);
  case DType::Bool:
    return at<uint8_t>(data, index) != 0;
  case DType::I4:
  case DType::U4:
    return wrap(at<uint8_t>(data, index / 2) >> (index % 2 * 4), type);
  default:
    llvm_unreachable("not an integer type");
  }
}

void tegula::storeFloat(DType type, void *data, int64_t index, double value) {
  switch (type) {
  case DType::F64:
    return put<double>(data, index, value);
  case DType::F32:
    return put<float>(data, index, float(value));
  case DType::F16:
    return put<uint16_t>(data, index, encodeF16(value));
  case DType::BF16:
    return put<uint16_t>(data, index, encodeBF16(value));
  case DType::F8E4M3:
    return put<uint8_t>(data, index, encodeF8E4M3(value));
  case DType::F8E5M2:
    return put<uint8_t>(data, index, encodeF8E5M2(value));
  default:
    llvm_unreachable("not a float type");
  }
}

void tegula::storeInteger(DType type, void *data, int64_t index, int64_t value) {
  switch (type) {
  case DType::I64:
  case DType::U64:
    return put<int64_t>(data, index, value);
  case DType::I32:
  case DType::U32:
    return put<int32_t>(data, index, int32_t(value));
  case DType::I16:
  case DType::U16:
    return put<int16_t>(data, index, int16_t(value));
  case DType::I8:
  case DType::U8:
    return put<uint8_t>(data, index, uint8_t(value));
  case DType::Bool:
    return put<uint8_t>(data, index, value != 0);
  case DType::I4:
  case DType::U4: {
    unsigned shift = index % 2 * 4;
    auto byte = at<uint8_t>(data, index / 2);
    return put<uint8_t>(data, index / 2,
                        uint8_t((byte & ~(0xf << shift)) | ((value & 0xf) << shift)));
  }
  default:
    llvm_unreachable("not an integer type");
  }
}
