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
#include "driver/Programs.h"
#include "driver/UnifiedDiff.h"
#include "frontend/diagnostics/FixUntilStable.h"

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("fix", "Apply the safe edits of diagnostics to programs");
static cl::list<std::string> paths(cl::Positional, cl::OneOrMore, cl::desc("FILE-OR-FOLDER..."),
                                   cl::sub(sub));
static cl::opt<bool> maybe("maybe", cl::desc("Apply the first suggestion where none is safe, too"),
                           cl::cat(outputOptions), cl::sub(sub));
static cl::opt<bool> diff("diff", cl::desc("Show what would change as a patch, and write nothing"),
                          cl::cat(outputOptions), cl::sub(sub));

static ExitCode fixFile(StringRef path) {
  std::unique_ptr<LoadedFile> loaded = load(path);
  if (!loaded)
    return ExitWrongCall;
  StringRef original = loaded->sources.text(loaded->file);
  std::unique_ptr<LoadedFile> last;
  FixedText fixed = fixUntilStable(original, maybe, [&](StringRef text, auto visit) {
    last = loadText(path, text.str());
    checkKernels(*last);
    visit(last->diagnostics, last->file);
  });
  if (last->sources.text(last->file) != fixed.text) { // no end was found
    last = loadText(path, fixed.text);
    checkKernels(*last);
  }
  if (diff)
    printUnifiedDiff(outs(), path, original, fixed.text);
  else if (fixed.text != original || path == "-")
    if (Error error = writeFile(path, fixed.text)) {
      errs() << "tegula: " << toString(std::move(error)) << '\n';
      return ExitMissingResource;
    }
  for (const std::string &line : fixed.done)
    errs() << path << ':' << line << '\n';
  last->print(/*json=*/false);
  return last->diagnostics.hasErrors() ? ExitWrongProgram : ExitSuccess;
}

static ExitCode run() {
  std::vector<std::string> files;
  if (!findPrograms(paths, files))
    return ExitWrongCall;
  ExitCode result = ExitSuccess;
  for (const std::string &path : files)
    if (ExitCode code = fixFile(path)) {
      if (code != ExitWrongProgram)
        return code;
      result = code;
    }
  return result;
}

const Command fixCommand = {sub, run};

} // namespace tegula
