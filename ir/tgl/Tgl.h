//===- Tgl.h - The tgl dialect ------------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dialect, types, attributes and operations; TglDialect.td and TglOps.td say what they mean.
// TglUtils.h has what passes ask of them.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGL_TGL_H
#define TEGULA_IR_TGL_TGL_H

#include "ir/tgl/ValueExpr.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tegula::tgl {

/// One argument of a kernel to be built: a tensor or a scalar.
struct KernelArgument {
  std::string name;
  std::string role; // in, inout, out, scalar
  mlir::Type type;
};

/// What a tensor may hold, and what reading such an element gives (TglTensorType's description).
bool isElementType(mlir::Type type);
mlir::Type getComputeType(mlir::Type elementType);

} // namespace tegula::tgl

#include "ir/tgl/TglDialect.h.inc"
#include "ir/tgl/TglEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/tgl/TglAttributes.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/tgl/TglInterfaces.h.inc"
#include "ir/tgl/TglTypes.h.inc"
#define GET_OP_CLASSES
#include "ir/tgl/TglOps.h.inc"

#endif // TEGULA_IR_TGL_TGL_H
