//===- DiskCache.cpp - A cache on disk ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "support/DiskCache.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <chrono>
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;
using namespace tegula;

namespace fs = sys::fs;

static constexpr StringRef suffix = ".entry", temporarySuffix = ".new";

/// What an entry begins with: `tegula-cache 1 KEY HASH BYTES`, hashes in hex, and a line end.
/// Whoever changes what follows gives it another number.
static constexpr StringRef magic = "tegula-cache 1 ";

static std::string hashOf(ArrayRef<StringRef> parts) {
  BLAKE3 hasher;
  for (StringRef part : parts) { // lengths keep parts apart
    uint64_t length = part.size();
    hasher.update(StringRef(reinterpret_cast<const char *>(&length), sizeof(length)));
    hasher.update(part);
  }
  return toHex(hasher.final<20>(), /*LowerCase=*/true);
}

static std::string headerOf(StringRef keyHash, StringRef entry) {
  return (magic + keyHash + " " + hashOf({entry}) + " " + Twine(entry.size()) + "\n").str();
}

DiskCache DiskCache::below(StringRef name, uint64_t maxBytes) const {
  if (isOff())
    return DiskCache("");
  SmallString<128> path(folder);
  sys::path::append(path, name);
  return DiskCache(path.str().str(), maxBytes);
}

DiskCache DiskCache::fromEnvironment() {
  uint64_t bytes = defaultBytes;
  if (std::optional<std::string> text = sys::Process::GetEnv("TEGULA_CACHE_BYTES"))
    if (StringRef(*text).getAsInteger(10, bytes))
      bytes = defaultBytes;
  if (std::optional<std::string> folder = sys::Process::GetEnv("TEGULA_CACHE_DIR"))
    return DiskCache(*folder, bytes);
  SmallString<128> folder;
  std::optional<std::string> base = sys::Process::GetEnv("XDG_CACHE_HOME");
  if (base && sys::path::is_absolute(*base)) { // as its specification has it
    folder = *base;
  } else if (std::optional<std::string> home = sys::Process::GetEnv("HOME");
             home && !home->empty()) {
    folder = *home;
    sys::path::append(folder, ".cache");
  } else {
    return DiskCache("");
  }
  sys::path::append(folder, "tegula");
  return DiskCache(std::string(folder), bytes);
}

std::string DiskCache::pathOf(StringRef hash) const {
  SmallString<128> path(folder);
  sys::path::append(path, hash + suffix);
  return std::string(path);
}

std::optional<std::string> DiskCache::find(ArrayRef<StringRef> key) const {
  if (isOff())
    return std::nullopt;
  std::string hash = hashOf(key), path = pathOf(hash);
  // To open a pipe that nobody writes into would wait, and what is there may change before it is
  // opened.
  int file = sys::RetryAfterSignal(-1, ::open, path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return std::nullopt;
  scope_exit close([&] { ::close(file); });
  fs::file_status status;
  if (fs::status(file, status) || status.type() != fs::file_type::regular_file ||
      status.getSize() > maxBytes)
    return std::nullopt;
  // Read, not mapped: a mapping ends the process where the file becomes shorter.
  ErrorOr<std::unique_ptr<MemoryBuffer>> contents = MemoryBuffer::getOpenFile(
      file, path, status.getSize(), /*RequiresNullTerminator=*/false, /*IsVolatile=*/true);
  if (!contents)
    return std::nullopt;
  StringRef text = (*contents)->getBuffer(), entry = text.split('\n').second;
  if (text.drop_back(entry.size()) != headerOf(hash, entry)) {
    fs::remove(path);
    return std::nullopt;
  }
  fs::setLastAccessAndModificationTime(file, std::chrono::system_clock::now());
  return entry.str();
}

static bool writeAll(int file, StringRef bytes) {
  while (!bytes.empty()) {
    ssize_t written = sys::RetryAfterSignal(-1, ::write, file, bytes.data(), bytes.size());
    if (written <= 0)
      return false;
    bytes = bytes.drop_front(written);
  }
  return true;
}

void DiskCache::insert(ArrayRef<StringRef> key, StringRef entry) const {
  if (isOff() || entry.size() > maxBytes / 2)
    return;
  std::string hash = hashOf(key);
  SmallString<128> model(folder), temporary;
  sys::path::append(model, hash + "-%%%%%%%%%%%%" + temporarySuffix);
  int file;
  if (fs::create_directories(folder, /*IgnoreExisting=*/true, fs::owner_all) ||
      fs::createUniqueFile(model, file, temporary))
    return;
  bool isWhole =
      writeAll(file, headerOf(hash, entry)) && writeAll(file, entry) && ::fsync(file) == 0;
  isWhole &= ::close(file) == 0;
  if (!isWhole || fs::rename(temporary, pathOf(hash))) {
    fs::remove(temporary);
    return;
  }
  // Counting what there is takes a while where there is much: every sixteenth insertion is often
  // enough for entries that are small beside the bound.
  if (entry.size() > maxBytes / 256 || StringRef(hash).back() == '0')
    makeRoom();
}

void DiskCache::makeRoom() const {
  struct Found {
    std::string path;
    sys::TimePoint<> used;
    uint64_t bytes;
  };
  std::vector<Found> entries;
  uint64_t total = 0;
  sys::TimePoint<> now = std::chrono::system_clock::now();
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    ErrorOr<fs::basic_file_status> status = at->status();
    if (!status)
      continue; // another process was faster
    StringRef path = at->path();
    if (path.ends_with(temporarySuffix)) {
      // Of a process that was killed: nobody writes for an hour.
      if (now - status->getLastModificationTime() > std::chrono::hours(1))
        fs::remove(path);
    } else if (path.ends_with(suffix)) {
      entries.push_back({path.str(), status->getLastModificationTime(), status->getSize()});
      total += status->getSize();
    }
  }
  if (total <= maxBytes)
    return;
  llvm::sort(entries, [](const Found &lhs, const Found &rhs) {
    return std::tie(lhs.used, lhs.path) < std::tie(rhs.used, rhs.path);
  });
  // A quarter more than must be, so that the next insertion need not do it again.
  for (const Found &entry : entries) {
    if (total <= maxBytes / 4 * 3)
      return;
    if (!fs::remove(entry.path))
      total -= entry.bytes;
  }
}
