//===- OptionGroups.h - The headings of --help -----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every option of every command belongs to one of these groups (cl::cat); --help prints a heading
// for each that the command has options in.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_OPTIONGROUPS_H
#define TEGULA_DRIVER_OPTIONGROUPS_H

#include "llvm/Support/CommandLine.h"

namespace tegula {

extern llvm::cl::OptionCategory inputOptions, targetOptions, outputOptions, precisionOptions,
    schedulingOptions, measuringOptions, debuggingOptions;

} // namespace tegula

#endif // TEGULA_DRIVER_OPTIONGROUPS_H
