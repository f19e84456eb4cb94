//===- Tensor.cpp - Tensors in host memory --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/reference/Tensor.h"
#include "support/HostMemory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace llvm;

namespace tegula::bench {

double unitRoundoff(DType type) {
  switch (type) {
  case DType::F64:
    return 0x1p-53;
  case DType::F32:
    return 0x1p-24;
  case DType::F16:
    return 0x1p-11;
  case DType::BF16:
    return 0x1p-8;
  case DType::F8E4M3:
    return 0x1p-4;
  case DType::F8E5M2:
    return 0x1p-3;
  default:
    return 0;
  }
}

void Tensor::Free::operator()(char *memory) const { std::free(memory); }

std::optional<Tensor> Tensor::make(DType type, ArrayRef<int64_t> shape) {
  std::optional<int64_t> bytes = storageBytes(type, shape);
  if (!bytes)
    return std::nullopt;
  size_t padded = alignTo(std::max<int64_t>(*bytes, 1), 64);
  Tensor tensor;
  tensor.type = type;
  tensor.dims = shape.vec();
  tensor.size = *bytes;
  if (!shape.empty()) {
    tensor.columns = shape.back();
    tensor.paddedColumns = paddedLastDim(type, shape);
  }
  tensor.memory.reset(static_cast<char *>(allocateAligned(64, padded)));
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

int64_t Tensor::position(int64_t n) const {
  return columns == paddedColumns ? n : n / columns * paddedColumns + n % columns;
}

double Tensor::real(int64_t n) const {
  if (isFloat(type))
    return loadFloat(type, data(), n);
  return type == DType::U64 ? double(uint64_t(integer(n))) : double(integer(n));
}

int64_t Tensor::integer(int64_t n) const {
  assert(!isFloat(type) && "floats are not integers");
  return loadInteger(type, data(), position(n));
}

std::vector<double> Tensor::doubles() const {
  std::vector<double> values(elements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = real(i);
  return values;
}

std::vector<int64_t> Tensor::integers() const {
  std::vector<int64_t> values(elements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = integer(i);
  return values;
}

void Tensor::store(ArrayRef<double> values) {
  assert(values.size() == static_cast<size_t>(elements()) && "values do not fit the shape");
  if (isFloat(type)) {
    for (size_t i = 0; i < values.size(); ++i)
      storeFloat(type, data(), i, values[i]);
    return;
  }
  std::fill_n(data(), bytes(), 0); // the padding of 4-bit rows
  for (size_t i = 0; i < values.size(); ++i)
    storeInteger(type, data(), position(i),
                 type == DType::Bool ? values[i] != 0 : convertToInteger(values[i], type, false));
}

std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  raw_string_ostream stream(text);
  stream << '[';
  interleaveComma(shape, stream);
  stream << ']';
  return text;
}

} // namespace tegula::bench
