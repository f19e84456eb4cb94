//===- Mcp.cpp - tegula mcp ---------------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Becomes the Python module tegula.mcp, run by the Python that the command is installed with.
//
//===----------------------------------------------------------------------===//
#include "driver/Commands.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("mcp", "Serve the tools of a model (Model Context Protocol on standard "
                                 "input and output)");

static std::string beside(StringRef folder, const Twine &path) {
  SmallString<128> result(folder);
  sys::path::append(result, path);
  sys::path::remove_dots(result, /*remove_dot_dot=*/true);
  return result.str().str();
}

/// `$TEGULA_PYTHON`, or the one that a build tree's module is for, or the one in the command's
/// folder, as in a virtual environment, or the one on the path.
static std::string findPython(StringRef folder) {
  if (const char *given = std::getenv("TEGULA_PYTHON"))
    return given;
  if (auto named = MemoryBuffer::getFile(beside(folder, "../python/interpreter"))) {
    StringRef path = (*named)->getBuffer().trim();
    if (sys::fs::can_execute(path))
      return path.str();
  }
  std::string python = beside(folder, "python3");
  if (sys::fs::can_execute(python))
    return python;
  if (ErrorOr<std::string> found = sys::findProgramByName("python3"))
    return *found;
  return "";
}

static ExitCode run() {
  static int anchor;
  std::string command = sys::fs::getMainExecutable("tegula", &anchor);
  StringRef folder = sys::path::parent_path(command);
  std::string python = findPython(folder);
  if (python.empty()) {
    errs() << "tegula mcp: there is no python3 on the path; TEGULA_PYTHON names one\n";
    return ExitMissingResource;
  }
  setenv("TEGULA_COMMAND", command.c_str(), /*overwrite=*/0);
  std::string package = beside(folder, "../python");
  if (sys::fs::exists(package + "/tegula/mcp.py")) { // in a build tree
    const char *others = std::getenv("PYTHONPATH");
    std::string path = others && *others ? package + ":" + others : package;
    setenv("PYTHONPATH", path.c_str(), /*overwrite=*/1);
  }
  // Without the working folder on Python's path, where a file named tegula.py may lie.
  setenv("PYTHONSAFEPATH", "1", /*overwrite=*/1);
  execl(python.c_str(), python.c_str(), "-m", "tegula.mcp", nullptr);
  errs() << "tegula mcp: cannot run '" << python << "': " << std::strerror(errno) << '\n';
  return ExitMissingResource;
}

const Command mcpCommand = {sub, run};

} // namespace tegula
