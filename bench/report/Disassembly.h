//===- Disassembly.h - What assembler and disassembler tell of a cubin *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVIDIA's tools are no part of Tegula: nvdisasm (which tells lines) or cuobjdump is found when it
// is needed.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REPORT_DISASSEMBLY_H
#define TEGULA_BENCH_REPORT_DISASSEMBLY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>
#include <vector>

namespace tegula::report {

/// What ptxas and nvJitLink report of a function.
struct AssembledFunction {
  unsigned registers = 0, sharedBytes = 0; // static shared memory
  unsigned stackBytes = 0, spillStores = 0, spillLoads = 0;
  bool isFailure() const { return stackBytes || spillStores || spillLoads; }
};
/// By name. Lines that tell of no function are left out.
std::map<std::string, AssembledFunction> readAssemblerLog(llvm::StringRef log);

/// A line of PTX or machine code.
struct CodeLine {
  std::string text;
  std::string file;  // of the program; empty: none
  unsigned line = 0; // in it
};
/// PTX without its directives `.loc` and `.file`, each line with what the last of them said.
std::vector<CodeLine> linesOfPtx(llvm::StringRef ptx);
/// The same of what nvdisasm or cuobjdump printed.
std::vector<CodeLine> linesOfDisassembly(llvm::StringRef text);

/// What nvdisasm, or where it is not found cuobjdump, prints of the cubin; MissingToolError where
/// there is neither.
llvm::Expected<std::string> disassemble(llvm::ArrayRef<char> cubin);

} // namespace tegula::report

#endif // TEGULA_BENCH_REPORT_DISASSEMBLY_H
