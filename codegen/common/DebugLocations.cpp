//===- DebugLocations.cpp - Debug locations of LLVM instructions ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions carry the line of the program as debug locations, which passes keep and merge as
// they do those of any language. The compile unit emits nothing into PTX or objects, or the lines
// alone (`.loc`).
//
//===----------------------------------------------------------------------===//
#include "codegen/common/DebugLocations.h"

#include "mlir/IR/Location.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"

using namespace llvm;
using namespace tegula;

DebugLocations::DebugLocations(Function &function, bool writesLines)
    : builder(*function.getParent()) {
  Module &module = *function.getParent();
  // Without its version LLVM drops what it does not know how to read.
  module.setModuleFlag(Module::Warning, "Debug Info Version", DEBUG_METADATA_VERSION);
  DIFile *file = fileNamed(module.getName());
  builder.createCompileUnit(dwarf::DW_LANG_C, file, "tegula", /*isOptimized=*/true, "", 0, "",
                            writesLines ? DICompileUnit::DebugDirectivesOnly
                                        : DICompileUnit::NoDebug);
  scope = builder.createFunction(file, function.getName(), function.getName(), file, 1,
                                 builder.createSubroutineType(builder.getOrCreateTypeArray({})), 1,
                                 DINode::FlagZero,
                                 DISubprogram::SPFlagDefinition | DISubprogram::SPFlagOptimized);
  function.setSubprogram(scope);
  builder.finalize();
}

DIFile *DebugLocations::fileNamed(StringRef name) { return builder.createFile(name, ""); }

DebugLoc DebugLocations::locationOf(mlir::Location location) {
  DebugLoc found;
  location->walk([&](mlir::Location part) {
    auto place = dyn_cast<mlir::FileLineColLoc>(part);
    if (!place)
      return mlir::WalkResult::advance();
    DIScope *&in = files[place.getFilename()];
    if (!in)
      in = builder.createLexicalBlockFile(scope, fileNamed(place.getFilename().getValue()));
    found = DILocation::get(scope->getContext(), place.getLine(), place.getColumn(), in);
    return mlir::WalkResult::interrupt();
  });
  return found;
}
