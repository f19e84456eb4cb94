//===- AccessShape.cpp - How accesses move through memory -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/AccessShape.h"

#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

unsigned tegula::storageBytes(mlir::Type element) {
  return std::max(1u, element.getIntOrFloatBitWidth() / 8);
}

IndexExpr tegula::tensorBytes(tgl::TglTensorType type, int64_t alignment) {
  IndexExpr bytes = storageBytes(type.getElementType());
  for (auto [index, dim] : enumerate(type.getDims())) {
    IndexExpr extent = dim.getExpr();
    if (isPacked(type.getElementType()) && index + 1 == type.getRank()) // rows of whole bytes
      extent = IndexExpr::floorDiv(extent + 1, 2);
    bytes = bytes * extent;
  }
  return IndexExpr::floorDiv(bytes + (alignment - 1), alignment) * alignment;
}

std::optional<int64_t> tegula::stepAlong(const ValueExpr &offset, mlir::Value axis,
                                         function_ref<bool(mlir::Value)> variesOtherwise) {
  for (mlir::Value operand : offset.operands())
    if (operand != axis && variesOtherwise(operand))
      return std::nullopt;
  return tgl::stepAlong(offset, axis);
}

Stride tegula::strideAlong(const ValueExpr &offset, mlir::Value axis,
                           function_ref<bool(mlir::Value)> variesOtherwise) {
  std::optional<int64_t> step = stepAlong(offset, axis, variesOtherwise);
  return step == 1 ? Stride::Unit : step == 0 ? Stride::Uniform : Stride::Other;
}
