//===- Fix.cpp - tegula fix --------------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/CheckKernels.h"
#include "driver/Commands.h"
#include "driver/FileIO.h"
#include "driver/Load.h"

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("fix", "Apply the safe edits of diagnostics to programs");
static cl::list<std::string> paths(cl::Positional, cl::OneOrMore, cl::desc("FILE..."), cl::sub(sub));

/// What is repaired may show what else is wrong, so the program is checked again after each round.
static cl::opt<bool> maybe("maybe", cl::desc("Apply the first suggestion where none is safe, too"),
                           cl::sub(sub));

static ExitCode fixFile(StringRef path) {
  std::unique_ptr<LoadedFile> loaded = load(path);
  if (!loaded)
    return ExitWrongCall;
  StringRef original = loaded->sources.text(loaded->file);
  std::unique_ptr<LoadedFile> current;
  constexpr int rounds = 50; // edits that undo each other must not go on for ever
  std::string text = original.str();
  for (int round = 0; round != rounds; ++round) {
    current = loadText(path, text);
    checkKernels(*current);
    std::string fixed = applyFixes(current->diagnostics, current->file, maybe);
    if (fixed == text)
      break;
    text = std::move(fixed);
  }
  if (text != original || path == "-")
    if (Error error = writeFile(path, text)) {
      errs() << "tegula: " << toString(std::move(error)) << '\n';
      return ExitMissingResource;
    }
  current->print(/*json=*/false);
  return current->diagnostics.hasErrors() ? ExitWrongProgram : ExitSuccess;
}

static ExitCode run() {
  ExitCode result = ExitSuccess;
  for (const std::string &path : paths)
    if (ExitCode code = fixFile(path)) {
      if (code != ExitWrongProgram)
        return code;
      result = code;
    }
  return result;
}

const Command fixCommand = {sub, run};

} // namespace tegula
