//===- Programs.cpp - The files that a command is given ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/Programs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

using namespace llvm;

namespace tegula {

bool findPrograms(ArrayRef<std::string> paths, std::vector<std::string> &files,
                  bool withReference) {
  std::set<sys::fs::UniqueID> seen; // of folders: a link may lead to a file that is there, too
  for (const std::string &path : paths) {
    if (!sys::fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    std::error_code error;
    sys::fs::recursive_directory_iterator at(path, error, /*follow_symlinks=*/false), end;
    for (; !error && at != end; at.increment(error)) {
      StringRef name = at->path();
      // A link that leads nowhere is no program.
      if (!name.ends_with(".tgl") || !sys::fs::exists(name) || sys::fs::is_directory(name) ||
          (withReference && !sys::fs::exists(name.drop_back(4) + ".ref.py")))
        continue;
      found.push_back(name.str());
    }
    llvm::sort(found);
    for (std::string &one : found) {
      sys::fs::UniqueID id;
      if (sys::fs::getUniqueID(one, id) || seen.insert(id).second)
        files.push_back(std::move(one));
    }
    if (error || found.empty()) {
      errs() << "tegula: '" << path << "' "
             << (error           ? "cannot be read: " + error.message()
                 : withReference ? "holds no program (.tgl) with a reference (.ref.py) beside it"
                                 : "holds no program (.tgl)")
             << '\n';
      return false;
    }
  }
  return true;
}

} // namespace tegula
