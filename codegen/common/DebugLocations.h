//===- DebugLocations.h - Debug locations of LLVM instructions --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_DEBUGLOCATIONS_H
#define TEGULA_CODEGEN_COMMON_DEBUGLOCATIONS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DebugLoc.h"

namespace mlir {
class Location;
} // namespace mlir

namespace tegula {

/// Debug locations for the instructions of one function.
class DebugLocations {
public:
  DebugLocations(llvm::Function &function, bool writesLines);
  /// Empty where the location has no line.
  llvm::DebugLoc locationOf(mlir::Location location);

private:
  llvm::DIFile *fileNamed(llvm::StringRef name);
  llvm::DIBuilder builder;
  llvm::DISubprogram *scope = nullptr;
  llvm::DenseMap<mlir::StringAttr, llvm::DIScope *> files;
};

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_DEBUGLOCATIONS_H
