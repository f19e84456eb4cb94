//===- Report.h - A page on what a program becomes *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Source, IR after each phase, layouts, PTX and machine code with lines of the program, registers
// and occupancy, bytes and operations counted, and how far that is from what a device can do.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REPORT_REPORT_H
#define TEGULA_BENCH_REPORT_REPORT_H

#include "bench/report/Occupancy.h"
#include "compiler/Compiler.h"

namespace tegula::report {

struct ReportOptions {
  std::string path;                      // of the program, as locations name it
  std::string text;                      // of it
  const DeviceLimits *machine = nullptr; // null: none to reckon with
  double microseconds = 0;               // what a run took on it; 0: not known
};

/// The page; nothing where the program is wrong, which `diagnostics` then tell. A missing assembler
/// or disassembler is said on the page.
llvm::Expected<std::optional<std::string>> makeReport(const Module &module, CompileOptions compile,
                                                      Diagnostics &diagnostics,
                                                      const ReportOptions &options);

} // namespace tegula::report

#endif // TEGULA_BENCH_REPORT_REPORT_H
