//===- Tensor.cpp - Tensors in host memory --===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Tensor.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace llvm;

namespace tegula::bench {
namespace {

struct TypeInfo {
  tegula_dtype type;
  const char *name;
  unsigned bits;
  bool isFloat;
  double roundoff;
};
const TypeInfo types[] = {
    {TEGULA_F64, "f64", 64, true, 0x1p-53},  {TEGULA_F32, "f32", 32, true, 0x1p-24},
    {TEGULA_F16, "f16", 16, true, 0x1p-11},  {TEGULA_BF16, "bf16", 16, true, 0x1p-8},
    {TEGULA_F8E4M3, "f8e4m3", 8, true, 0x1p-4}, {TEGULA_F8E5M2, "f8e5m2", 8, true, 0x1p-3},
    {TEGULA_I64, "i64", 64, false, 0},       {TEGULA_I32, "i32", 32, false, 0},
    {TEGULA_I16, "i16", 16, false, 0},       {TEGULA_I8, "i8", 8, false, 0},
    {TEGULA_U8, "u8", 8, false, 0},          {TEGULA_I4, "i4", 4, false, 0},
    {TEGULA_U4, "u4", 4, false, 0},          {TEGULA_BOOL, "bool", 8, false, 0}};

const TypeInfo &info(tegula_dtype type) {
  const TypeInfo *found = find_if(types, [&](const TypeInfo &t) { return t.type == type; });
  assert(found != std::end(types) && "unknown dtype");
  return *found;
}

const fltSemantics &semantics(tegula_dtype type) {
  switch (type) {
  case TEGULA_F16:
    return APFloat::IEEEhalf();
  case TEGULA_BF16:
    return APFloat::BFloat();
  case TEGULA_F8E4M3:
    return APFloat::Float8E4M3FN();
  default:
    assert(type == TEGULA_F8E5M2 && "no narrow float type");
    return APFloat::Float8E5M2();
  }
}

/// Values of all bit patterns of a narrow float type.
const std::vector<double> &decodeTable(tegula_dtype type) {
  static std::array<std::vector<double>, 4> tables;
  std::vector<double> &table = tables[type - TEGULA_F16];
  if (table.empty()) {
    unsigned bits = info(type).bits;
    for (unsigned pattern = 0; pattern < (1u << bits); ++pattern) {
      APFloat value(semantics(type), APInt(bits, pattern));
      bool lossy;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
      table.push_back(value.convertToDouble());
    }
  }
  return table;
}

/// Nearest-even; beyond the greatest number inf, or NaN where the type has no inf.
uint64_t encode(tegula_dtype type, double value) {
  APFloat narrow(value);
  bool lossy;
  narrow.convert(semantics(type), APFloat::rmNearestTiesToEven, &lossy);
  return narrow.bitcastToAPInt().getZExtValue();
}

template <typename Stored, typename Out> void copyOut(const char *from, std::vector<Out> &to) {
  for (size_t i = 0; i < to.size(); ++i) {
    Stored value;
    std::memcpy(&value, from + i * sizeof(Stored), sizeof(Stored));
    to[i] = static_cast<Out>(value);
  }
}

template <typename Stored> void copyIn(ArrayRef<double> from, char *to) {
  for (size_t i = 0; i < from.size(); ++i) {
    Stored value;
    if constexpr (std::is_integral_v<Stored>)
      value = static_cast<Stored>(static_cast<int64_t>(from[i])); // out of range: wraps
    else
      value = static_cast<Stored>(from[i]);
    std::memcpy(to + i * sizeof(Stored), &value, sizeof(Stored));
  }
}

/// Calls visit(element, byte, shift) for every element of a packed tensor.
template <typename Visit> void forNibbles(ArrayRef<int64_t> shape, int64_t elements, Visit visit) {
  int64_t columns = shape.empty() ? 1 : shape.back(), rowBytes = (columns + 1) / 2;
  for (int64_t i = 0; i < elements; ++i)
    visit(i, i / columns * rowBytes + i % columns / 2, i % columns % 2 * 4);
}

} // namespace

bool isFloat(tegula_dtype type) { return info(type).isFloat; }
StringRef toString(tegula_dtype type) { return info(type).name; }
double unitRoundoff(tegula_dtype type) { return info(type).roundoff; }

std::optional<tegula_dtype> parseDType(StringRef name) {
  for (const TypeInfo &type : types)
    if (name == type.name)
      return type.type;
  return std::nullopt;
}

std::optional<int64_t> tensorBytes(tegula_dtype type, ArrayRef<int64_t> shape) {
  if (is_contained(shape, 0))
    return 0;
  unsigned bits = info(type).bits;
  int64_t bytes = bits < 8 ? 1 : bits / 8;
  for (size_t i = 0; i < shape.size(); ++i) {
    assert(shape[i] >= 0 && "negative size");
    int64_t size = bits < 8 && i + 1 == shape.size() ? shape[i] / 2 + shape[i] % 2 : shape[i];
    if (MulOverflow(bytes, size, bytes))
      return std::nullopt;
  }
  return bytes;
}

void Tensor::Free::operator()(char *memory) const { std::free(memory); }

std::optional<Tensor> Tensor::make(tegula_dtype type, ArrayRef<int64_t> shape) {
  std::optional<int64_t> bytes = tensorBytes(type, shape);
  if (!bytes)
    return std::nullopt;
  // 64 bytes: a cache line, and the widest vector.
  size_t padded = alignTo(std::max<int64_t>(*bytes, 1), 64);
  Tensor tensor;
  tensor.type = type;
  tensor.dims = shape.vec();
  tensor.size = *bytes;
  tensor.memory.reset(static_cast<char *>(std::aligned_alloc(64, padded)));
  if (!tensor.memory)
    return std::nullopt;
  return tensor;
}

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return count;
}

tegula_tensor Tensor::view() const {
  return {memory.get(), type, dims.size(), dims.data(), nullptr};
}

std::vector<double> Tensor::doubles() const {
  std::vector<double> values(elements());
  const char *from = data();
  switch (type) {
  case TEGULA_F64:
    copyOut<double>(from, values);
    break;
  case TEGULA_F32:
    copyOut<float>(from, values);
    break;
  case TEGULA_F16:
  case TEGULA_BF16: {
    const std::vector<double> &table = decodeTable(type);
    copyOut<uint16_t>(from, values);
    for (double &value : values)
      value = table[static_cast<size_t>(value)];
    break;
  }
  case TEGULA_F8E4M3:
  case TEGULA_F8E5M2: {
    const std::vector<double> &table = decodeTable(type);
    copyOut<uint8_t>(from, values);
    for (double &value : values)
      value = table[static_cast<size_t>(value)];
    break;
  }
  default: {
    std::vector<int64_t> whole = integers();
    values.assign(whole.begin(), whole.end());
  }
  }
  return values;
}

std::vector<int64_t> Tensor::integers() const {
  assert(!isFloat(type) && "floats are not integers");
  std::vector<int64_t> values(elements());
  const char *from = data();
  switch (type) {
  case TEGULA_I64:
    copyOut<int64_t>(from, values);
    break;
  case TEGULA_I32:
    copyOut<int32_t>(from, values);
    break;
  case TEGULA_I16:
    copyOut<int16_t>(from, values);
    break;
  case TEGULA_I8:
    copyOut<int8_t>(from, values);
    break;
  case TEGULA_I4:
  case TEGULA_U4:
    forNibbles(dims, elements(), [&](int64_t i, int64_t byte, unsigned shift) {
      unsigned nibble = static_cast<unsigned char>(from[byte]) >> shift & 15;
      values[i] = type == TEGULA_I4 ? SignExtend64<4>(nibble) : nibble;
    });
    break;
  default: // u8, bool
    copyOut<uint8_t>(from, values);
  }
  return values;
}

void Tensor::store(ArrayRef<double> values) {
  assert(values.size() == static_cast<size_t>(elements()) && "values do not fit the shape");
  char *to = data();
  switch (type) {
  case TEGULA_F64:
    return copyIn<double>(values, to);
  case TEGULA_F32:
    return copyIn<float>(values, to);
  case TEGULA_F16:
    return copyIn<_Float16>(values, to);
  case TEGULA_BF16:
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t pattern = encode(type, values[i]);
      std::memcpy(to + 2 * i, &pattern, 2);
    }
    return;
  case TEGULA_F8E4M3:
  case TEGULA_F8E5M2:
    for (size_t i = 0; i < values.size(); ++i)
      to[i] = static_cast<char>(encode(type, values[i]));
    return;
  case TEGULA_I64:
    return copyIn<int64_t>(values, to);
  case TEGULA_I32:
    return copyIn<int32_t>(values, to);
  case TEGULA_I16:
    return copyIn<int16_t>(values, to);
  case TEGULA_I8:
    return copyIn<int8_t>(values, to);
  case TEGULA_U8:
    return copyIn<uint8_t>(values, to);
  case TEGULA_BOOL:
    for (size_t i = 0; i < values.size(); ++i)
      to[i] = values[i] != 0;
    return;
  case TEGULA_I4:
  case TEGULA_U4:
    std::memset(to, 0, bytes());
    forNibbles(dims, elements(), [&](int64_t i, int64_t byte, unsigned shift) {
      to[byte] |= (static_cast<int>(values[i]) & 15) << shift;
    });
  }
}

std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  raw_string_ostream stream(text);
  stream << '[';
  interleave(shape, stream, ", ");
  stream << ']';
  return text;
}

} // namespace tegula::bench
