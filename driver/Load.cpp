//===- Load.cpp - From a path to a parsed program ----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/Load.h"

#include "driver/Crash.h"
#include "driver/FileIO.h"
#include "frontend/OpenModule.h"
#include "frontend/parse/Parser.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tegula {

void LoadedFile::print(bool json) const {
  if (json)
    diagnostics.printJson(outs());
  else
    diagnostics.printText(errs(), errs().has_colors());
}

std::unique_ptr<LoadedFile> loadText(StringRef path, std::string text) {
  auto loaded = std::make_unique<LoadedFile>();
  setCrashProgram(path, text);
  loaded->file = loaded->sources.add(path == "-" ? "<stdin>" : path.str(), std::move(text));
  loaded->module = openModule(loaded->sources, loaded->file, loaded->diagnostics);
  return loaded;
}

std::unique_ptr<LoadedFile> load(StringRef path) {
  // One byte more than the parser allows, so that it sees that there are more.
  Expected<std::string> text = readFile(path, limits::fileBytes + 1);
  if (!text) {
    errs() << "tegula: " << toString(text.takeError()) << '\n';
    return nullptr;
  }
  return loadText(path, std::move(*text));
}

} // namespace tegula
