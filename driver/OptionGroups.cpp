//===- OptionGroups.cpp - The headings of --help -------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/OptionGroups.h"

using namespace llvm;

namespace tegula {

cl::OptionCategory inputOptions("Input Options",
                                "Which kernel, and the sizes, constants and tensors it gets"),
    targetOptions("Target Options", "The machine that code is made for or runs on"),
    outputOptions("Output Options", "What is printed or written, in which form, and where"),
    precisionOptions("Precision Options", "How matrix products round"),
    schedulingOptions("Scheduling Options",
                      "Tiles, passes and strategies that are not the default"),
    measuringOptions("Measuring Options", "What is compared or timed, and for how long"),
    debuggingOptions("Debugging Options", "Looking into the compiler, and checks while code runs");

} // namespace tegula
