//===- PtxVersion.cpp - The PTX version that a module needs ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/llvm/PtxVersion.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"

using namespace llvm;

static constexpr StringRef neededVersion = "tegula.ptx";

void tegula::needPtx(Module &module, unsigned version) {
  if (neededPtx(module) < version)
    module.setModuleFlag(Module::Max, neededVersion, version);
}

unsigned tegula::neededPtx(const Module &module) {
  auto *flag = mdconst::extract_or_null<ConstantInt>(module.getModuleFlag(neededVersion));
  return flag ? flag->getZExtValue() : 0;
}
