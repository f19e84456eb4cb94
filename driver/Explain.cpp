//===- Explain.cpp - tegula explain ------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/Commands.h"
#include "frontend/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("explain", "Show a wrong and a right program for a diagnostic's code");
static cl::opt<std::string> wanted(cl::Positional, cl::desc("CODE (without it: the list of codes)"),
                                   cl::sub(sub));

static StringRef severityName(Severity severity) {
  return severity == Severity::Error ? "error" : severity == Severity::Warning ? "warning" : "remark";
}

static void printIndented(StringRef text) {
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    outs() << (line.empty() ? "" : "    ") << line << '\n';
    text = rest;
  }
}

static ExitCode run() {
  if (wanted.empty()) {
    for (const CodeInfo &info : allCodes())
      outs() << info.code << "  " << info.title << '\n';
    return ExitSuccess;
  }
  ArrayRef<CodeInfo> codes = allCodes();
  const CodeInfo *info = llvm::find_if(codes, [](const CodeInfo &each) {
    return each.code.equals_insensitive(wanted) || each.name.equals_insensitive(wanted);
  });
  if (info == codes.end()) {
    SmallVector<StringRef> names;
    for (const CodeInfo &each : codes)
      names.push_back(each.name);
    StringRef nearest = nearestName(wanted, names);
    errs() << "tegula: there is no code '" << wanted << "'";
    if (!nearest.empty())
      errs() << "; nearest is '" << nearest << "'";
    errs() << "; 'tegula explain' lists all codes\n";
    return ExitWrongCall;
  }
  outs() << info->code << " (" << severityName(info->severity) << ", " << info->name
         << "): " << info->title << "\n\nWrong:\n\n";
  printIndented(info->wrong);
  outs() << "\nRight:\n\n";
  printIndented(info->right);
  return ExitSuccess;
}

const Command explainCommand = {sub, run};

} // namespace tegula
