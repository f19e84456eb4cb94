//===- Explain.cpp - tegula explain ------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/Commands.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <climits>

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("explain", "Show a wrong and a right program for a diagnostic's code");
static cl::opt<std::string> wanted(cl::Positional, cl::desc("CODE (without it: the list of codes)"),
                                   cl::sub(sub));
static cl::opt<bool>
    asJson("json",
           cl::desc("Print one JSON object a line: code, name, severity, title, wrong, right"),
           cl::cat(outputOptions), cl::sub(sub));

static StringRef severityName(Severity severity) {
  return severity == Severity::Error     ? "error"
         : severity == Severity::Warning ? "warning"
                                         : "remark";
}

static void printIndented(StringRef text) {
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    outs() << (line.empty() ? "" : "    ") << line << '\n';
    text = rest;
  }
}

/// The code that was probably meant: by name, or by number within its group.
static const CodeInfo *nearestCode(StringRef text) {
  SmallVector<StringRef> names;
  for (const CodeInfo &each : allCodes())
    names.push_back(each.name);
  StringRef nearest = nearestName(text, names);
  for (const CodeInfo &each : allCodes())
    if (!nearest.empty() && each.name == nearest)
      return &each;
  unsigned wanted, number;
  StringRef digits = text.drop_while([](char c) { return isAlpha(c); });
  if (digits.empty() || digits.getAsInteger(10, wanted))
    return nullptr;
  char letter = text.starts_with_insensitive("W") ? 'W' : 'E';
  const CodeInfo *best = nullptr;
  unsigned bestDistance = UINT_MAX;
  for (const CodeInfo &each : allCodes()) {
    if (each.code[0] != letter || each.code.drop_front().getAsInteger(10, number))
      continue;
    // Only codes of one group are near: `E9999` is near to none.
    unsigned distance = number > wanted ? number - wanted : wanted - number;
    if (number / 100 == wanted / 100 && distance < bestDistance) {
      best = &each;
      bestDistance = distance;
    }
  }
  return best;
}

static void printJson(const CodeInfo &info) {
  auto utf8 = [](StringRef program) { // one of the wrong ones is none
    return json::isUTF8(program) ? program.str() : json::fixUTF8(program);
  };
  outs() << json::Value(json::Object{{"schema", "tegula.code"},
                                     {"version", 1},
                                     {"code", info.code},
                                     {"name", info.name},
                                     {"severity", severityName(info.severity)},
                                     {"title", info.title},
                                     {"wrong", utf8(info.wrong)},
                                     {"right", utf8(info.right)}})
         << '\n';
}

static ExitCode run() {
  if (wanted.empty()) {
    for (const CodeInfo &info : allCodes())
      if (asJson)
        printJson(info);
      else
        outs() << info.code << "  " << info.title << '\n';
    return ExitSuccess;
  }
  ArrayRef<CodeInfo> codes = allCodes();
  const CodeInfo *info = llvm::find_if(codes, [](const CodeInfo &each) {
    return each.code.equals_insensitive(wanted) || each.name.equals_insensitive(wanted);
  });
  if (info == codes.end()) {
    errs() << "tegula: there is no code '" << wanted << "'";
    if (const CodeInfo *nearest = nearestCode(wanted))
      errs() << "; nearest is " << nearest->code << " (" << nearest->name << ")";
    errs() << "; 'tegula explain' lists all codes\n";
    // A word of a title is a way to ask, too.
    StringRef word = wanted;
    for (const CodeInfo &each : codes)
      if (word.size() > 2 && each.title.contains_insensitive(word))
        errs() << each.code << "  " << each.title << '\n';
    return ExitWrongCall;
  }
  if (asJson) {
    printJson(*info);
    return ExitSuccess;
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
