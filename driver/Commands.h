//===- Commands.h - The subcommands of `tegula` ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A command is a file of this folder: its options, each with its cl::SubCommand and a group of
// OptionGroups.h, and a function that does it. It is declared here and listed in main.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_COMMANDS_H
#define TEGULA_DRIVER_COMMANDS_H

#include "driver/ExitCode.h"
#include "driver/OptionGroups.h"

namespace tegula {

struct Command {
  llvm::cl::SubCommand &options;
  ExitCode (*run)();
};

extern const Command benchCommand, bisectCommand, checkCommand, compileCommand, explainCommand,
    explainLayoutCommand, fixCommand, fmtCommand, gradCommand, grammarCommand, lspCommand,
    mcpCommand, passesCommand, promptCommand, proveCommand, publishCommand, runCommand, tuneCommand;

} // namespace tegula

#endif // TEGULA_DRIVER_COMMANDS_H
