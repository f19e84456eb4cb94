//===- FileIO.cpp - Reading inputs, writing outputs as a whole ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/FileIO.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace tegula {

static Error failure(StringRef what, StringRef path, int code) {
  std::error_code reason(code, std::generic_category());
  return createStringError(reason, "cannot " + what + " '" + path + "': " + reason.message());
}

Expected<std::string> readFile(StringRef path, size_t limit) {
  int file = path == "-" ? STDIN_FILENO : open(path.str().c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return failure("read", path, errno);
  llvm::scope_exit closeFile([&] {
    if (file != STDIN_FILENO)
      close(file);
  });
  std::string contents;
  char buffer[65536];
  while (contents.size() < limit) {
    ssize_t count = read(file, buffer, std::min(sizeof buffer, limit - contents.size()));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failure("read", path, errno);
    if (count == 0)
      break;
    contents.append(buffer, static_cast<size_t>(count));
  }
  return contents;
}

/// Zero, or the error's number.
static int writeAll(int file, StringRef contents) {
  while (!contents.empty()) {
    ssize_t count = write(file, contents.data(), contents.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return errno;
    contents = contents.drop_front(static_cast<size_t>(count));
  }
  return 0;
}

static Error writeDirectly(StringRef path, StringRef contents) {
  int file = open(path.str().c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0)
    return failure("write", path, errno);
  int code = writeAll(file, contents);
  if (close(file) != 0 && code == 0)
    code = errno;
  return code ? failure("write", path, code) : Error::success();
}

Error writeFile(StringRef path, StringRef contents) {
  if (path == "-") {
    outs() << contents;
    outs().flush();
    if (!outs().has_error())
      return Error::success();
    int code = outs().error().value();
    outs().clear_error();
    return failure("write", "standard output", code);
  }
  // A link stays a link: what it names is replaced.
  SmallString<256> target(path);
  if (char *resolved = realpath(path.str().c_str(), nullptr)) {
    target = StringRef(resolved);
    free(resolved);
  }
  struct stat old;
  bool exists = stat(target.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode))
    return failure("write", path, EISDIR);
  if (exists && !S_ISREG(old.st_mode))
    return writeDirectly(path, contents);
  if (exists && access(target.c_str(), W_OK) != 0)
    return failure("write", path, errno);

  std::string temporary =
      (sys::path::parent_path(target) + (sys::path::has_parent_path(target) ? "/" : "") + "." +
       sys::path::filename(target) + ".XXXXXX")
          .str();
  int file = mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0)
    return failure("write", path, errno);
  sys::RemoveFileOnSignal(temporary);
  mode_t mask = umask(0);
  umask(mask);
  int code = fchmod(file, exists ? old.st_mode & 07777 : 0666 & ~mask) ? errno : 0;
  if (code == 0)
    code = writeAll(file, contents);
  if (code == 0 && fsync(file) != 0)
    code = errno;
  if (close(file) != 0 && code == 0)
    code = errno;
  if (code == 0 && rename(temporary.c_str(), target.c_str()) != 0)
    code = errno;
  if (code != 0)
    unlink(temporary.c_str());
  sys::DontRemoveFileOnSignal(temporary);
  return code ? failure("write", path, code) : Error::success();
}

} // namespace tegula
