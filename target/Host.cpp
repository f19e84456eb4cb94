//===- Host.cpp - CPUs ----------------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "target/TargetInfo.h"

using namespace tegula;

// What a CPU has in vectors is LLVM's to know (codegen/cpu/HostTarget.h).
TargetInfo TargetInfo::host() { return {}; }
