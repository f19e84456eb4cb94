//===- StdFolder.cpp - The library's text as files ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lsp/StdFolder.h"

#include "dsl/StdText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LSP/Protocol.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tegula {

StdFolder::~StdFolder() {
  for (const std::string &path : written)
    sys::fs::remove(path);
  if (!folder.empty())
    sys::fs::remove(folder);
}

static bool write(StringRef path, StringRef text) {
  std::error_code error;
  raw_fd_ostream os(path, error);
  if (error)
    return false;
  os << text;
  os.close();
  if (os.has_error()) {
    os.clear_error();
    return false;
  }
  return !sys::fs::setPermissions(path, sys::fs::perms::all_read);
}

std::string StdFolder::uriOf(StringRef name) {
  const StdFile *file =
      llvm::find_if(stdFiles(), [&](const StdFile &one) { return one.name == name; });
  if (file == stdFiles().end())
    return "";
  if (folder.empty()) {
    SmallString<128> made;
    if (sys::fs::createUniqueDirectory("tegula-std", made))
      return "";
    folder = made.str().str();
  }
  SmallString<128> path(folder);
  sys::path::append(path, sys::path::filename(name));
  if (!is_contained(written, path.str())) {
    if (!write(path, file->text))
      return "";
    written.push_back(path.str().str());
  }
  Expected<lsp::URIForFile> uri = lsp::URIForFile::fromFile(path);
  if (uri)
    return uri->uri().str();
  consumeError(uri.takeError());
  return "";
}

} // namespace tegula
