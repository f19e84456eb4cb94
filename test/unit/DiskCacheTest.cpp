//===- DiskCacheTest.cpp - Entries that are there whole, or not at all -------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "support/DiskCache.h"
#include "codegen/ptx/Assemble.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tegula;
namespace fs = llvm::sys::fs;

namespace {

class DiskCacheTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(fs::createUniqueDirectory("tegula-cache", folder)); }
  void TearDown() override { fs::remove_directories(folder); }

  DiskCache cache(uint64_t bytes = DiskCache::defaultBytes) {
    return DiskCache(std::string(folder), bytes);
  }

  std::vector<std::string> files() {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      names.push_back(at->path());
    std::sort(names.begin(), names.end());
    return names;
  }

  static std::string read(const std::string &path) {
    return (*llvm::MemoryBuffer::getFile(path))->getBuffer().str();
  }
  static void write(const std::string &path, llvm::StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << text;
    ASSERT_FALSE(error);
  }
  static void setAge(const std::string &path, int seconds) {
    timespec times[2];
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= seconds;
    times[1] = times[0];
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  llvm::SmallString<128> folder;
};

std::string contents(int which) {
  return std::string(1000 + 37 * which, char('a' + which % 26)) + '\n';
}

TEST_F(DiskCacheTest, GivesBackWhatWasPutIn) {
  std::string binary("\0\n\xff entry", 9);
  cache().insert({"a", "b"}, binary);
  EXPECT_EQ(cache().find({"a", "b"}), binary);
  EXPECT_FALSE(cache().find({"ab", ""}));
  EXPECT_FALSE(cache().find({"a"}));
  cache().insert({"a", "b"}, "another");
  EXPECT_EQ(cache().find({"a", "b"}), "another");
  cache().insert({"empty"}, "");
  EXPECT_EQ(cache().find({"empty"}), "");
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(DiskCacheTest, OffKeepsNothing) {
  for (const DiskCache &off : {DiskCache(""), cache(0)}) {
    off.insert({"a"}, "entry");
    EXPECT_FALSE(off.find({"a"}));
    EXPECT_TRUE(off.isOff());
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(DiskCacheTest, WhatIsDamagedIsNotThere) {
  cache().insert({"a"}, "the entry, some bytes long");
  std::string path = files().at(0), whole = read(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    write(path, damaged);
    EXPECT_FALSE(cache().find({"a"})) << "byte " << at;
    EXPECT_TRUE(files().empty()) << "byte " << at;
    write(path, whole.substr(0, at)); // what a machine leaves that loses power without fsync
    EXPECT_FALSE(cache().find({"a"})) << "length " << at;
  }
  write(path, whole + "more");
  EXPECT_FALSE(cache().find({"a"}));
  // A pipe, which nobody writes into, by itself and through a link; a folder; a socket; a link to
  // itself; devices.
  ASSERT_FALSE(fs::remove(path));
  std::string pipe = path + ".pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::function<int()> make[] = {[&] { return mkfifo(path.c_str(), 0600); },
                                 [&] { return symlink(pipe.c_str(), path.c_str()); },
                                 [&] { return mkdir(path.c_str(), 0700); },
                                 [&] { return mknod(path.c_str(), S_IFSOCK | 0600, 0); },
                                 [&] { return symlink(path.c_str(), path.c_str()); },
                                 [&] { return symlink("/dev/zero", path.c_str()); },
                                 [&] { return symlink("/dev/tty", path.c_str()); }};
  for (auto [at, one] : llvm::enumerate(make)) {
    ASSERT_EQ(one(), 0) << at;
    EXPECT_FALSE(cache().find({"a"})) << at;
    cache().insert({"a"}, "in its place"); // but for a folder's
    EXPECT_EQ(cache().find({"a"}).has_value(), at != 2) << at;
    ASSERT_EQ(remove(path.c_str()), 0) << at;
  }
  ASSERT_EQ(unlink(pipe.c_str()), 0);
  write(path, whole);
  EXPECT_EQ(cache().find({"a"}), "the entry, some bytes long");
  // An entry under another's name.
  ASSERT_FALSE(fs::remove(path));
  cache().insert({"b"}, "of b");
  fs::rename(files().at(0), path);
  EXPECT_FALSE(cache().find({"a"}));
  cache().insert({"a"}, "anew");
  EXPECT_EQ(cache().find({"a"}), "anew");
}

TEST_F(DiskCacheTest, AHundredProcesses) {
  std::vector<pid_t> children;
  for (int child = 0; child < 100; ++child) {
    pid_t id = fork();
    ASSERT_GE(id, 0);
    if (id == 0) {
      for (int round = 0; round < 20; ++round) {
        int which = (child + round) % 7;
        std::string key = std::to_string(which);
        if (std::optional<std::string> entry = cache().find({key})) {
          if (*entry != contents(which))
            _exit(1);
        } else {
          cache().insert({key}, contents(which));
        }
      }
      _exit(0);
    }
    children.push_back(id);
  }
  for (pid_t id : children) {
    int status;
    waitpid(id, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (int which = 0; which < 7; ++which)
    EXPECT_EQ(cache().find({std::to_string(which)}), contents(which));
  EXPECT_EQ(files().size(), 7u);
}

TEST_F(DiskCacheTest, AKillInMidWrite) {
  std::string large(1 << 20, 'x');
  for (int round = 0; round < 20; ++round) {
    pid_t id = fork();
    ASSERT_GE(id, 0);
    if (id == 0)
      for (int n = 0;; ++n)
        cache().insert({std::to_string(n % 3)}, large);
    usleep(1000 + 700 * round);
    kill(id, SIGKILL);
    waitpid(id, nullptr, 0);
    for (int n = 0; n < 3; ++n)
      if (std::optional<std::string> entry = cache().find({std::to_string(n)}))
        EXPECT_TRUE(*entry == large);
  }
  // What was being written is left, and goes when it is old.
  write((folder + "/left.new").str(), "half an ent");
  write((folder + "/young.new").str(), "half an ent");
  for (const std::string &path : files())
    if (llvm::StringRef(path).ends_with(".new") && !llvm::StringRef(path).contains("young"))
      setAge(path, 7200);
  cache(1 << 20).insert({"last"}, std::string(100000, 'y'));
  size_t temporaries = 0;
  for (const std::string &path : files())
    temporaries += llvm::StringRef(path).ends_with(".new");
  EXPECT_EQ(temporaries, 1u);
}

TEST_F(DiskCacheTest, AFullDiskLosesNothing) {
  cache().insert({"small"}, "entry");
  pid_t id = fork();
  ASSERT_GE(id, 0);
  if (id == 0) {
    signal(SIGXFSZ, SIG_IGN); // writes fail as they do on a full disk
    rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    cache().insert({"large"}, std::string(100000, 'x'));
    bool isRight = !cache().find({"large"}) && cache().find({"small"}) == "entry";
    _exit(isRight ? 0 : 1);
  }
  int status;
  waitpid(id, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(files().size(), 1u); // nothing half-written either
  EXPECT_EQ(cache().find({"small"}), "entry");
}

TEST_F(DiskCacheTest, AFolderThatCannotBeIsNone) {
  write((folder + "/file").str(), "");
  DiskCache impossible((folder + "/file/folder").str());
  impossible.insert({"a"}, "entry");
  EXPECT_FALSE(impossible.find({"a"}));
}

TEST_F(DiskCacheTest, WhatWasUsedLongestAgoGoesFirst) {
  std::string entry(10000, 'x');
  DiskCache small = cache(100000);
  for (int n = 0; n < 9; ++n) {
    small.insert({std::to_string(n)}, entry);
    for (const std::string &path : files())
      setAge(path, 1000 - n); // all at once: order by what follows
  }
  EXPECT_TRUE(small.find({"0"})); // used now
  for (int n = 9; n < 12; ++n)
    small.insert({std::to_string(n)}, entry);
  EXPECT_TRUE(small.find({"0"}));
  EXPECT_TRUE(small.find({"11"}));
  EXPECT_LE(files().size(), 10u);
  EXPECT_LT(files().size(), 12u);
  // What alone is larger than half is not worth all the others.
  small.insert({"huge"}, std::string(60000, 'x'));
  EXPECT_FALSE(small.find({"huge"}));
}

TEST_F(DiskCacheTest, WhereItLies) {
  setenv("TEGULA_CACHE_DIR", "", 1);
  EXPECT_TRUE(DiskCache::fromEnvironment().isOff());
  unsetenv("TEGULA_CACHE_DIR");
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  DiskCache::fromEnvironment().insert({"a"}, "entry");
  EXPECT_EQ(DiskCache((folder + "/tegula").str()).find({"a"}), "entry");
  setenv("TEGULA_CACHE_BYTES", "0", 1);
  EXPECT_TRUE(DiskCache::fromEnvironment().isOff());
  unsetenv("TEGULA_CACHE_BYTES");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", folder.c_str(), 1);
  DiskCache::fromEnvironment().insert({"a"}, "entry");
  EXPECT_EQ(DiskCache((folder + "/.cache/tegula").str()).find({"a"}), "entry");
}

/// What is assembled is assembled once: for one text, target and assembler.
TEST_F(DiskCacheTest, CubinsAreKept) {
  std::string log = (folder + "/log").str(), ptxas = (folder + "/ptxas").str();
  ASSERT_FALSE(fs::copy_file(TEGULA_FAKE_PTXAS, ptxas));
  ASSERT_EQ(chmod(ptxas.c_str(), 0755), 0);
  setenv("TEGULA_CACHE_DIR", (folder + "/cache").str().c_str(), 1);
  setenv("TEGULA_PTXAS", ptxas.c_str(), 1);
  setenv("FAKE_PTXAS_LOG", log.c_str(), 1);
  auto timesRun = [&] { return fs::exists(log) ? llvm::StringRef(read(log)).count('\n') : 0; };
  auto make = [&](llvm::StringRef text, llvm::StringRef arch) {
    llvm::Expected<Cubin> cubin = assemble(text, arch);
    EXPECT_TRUE(bool(cubin)) << llvm::toString(cubin.takeError());
    return cubin ? std::move(*cubin) : Cubin();
  };
  Cubin first = make(".version 8", "sm_90a");
  EXPECT_EQ(timesRun(), 1u);
  Cubin second = make(".version 8", "sm_90a");
  EXPECT_EQ(timesRun(), 1u);
  EXPECT_EQ(first.image, second.image);
  EXPECT_EQ(first.log, second.log);
  EXPECT_EQ(first.assembler, second.assembler);
  EXPECT_EQ(first.assembler, "ptxas V13.0.0-fake");
  make(".version 9", "sm_90a");
  make(".version 8", "sm_80");
  EXPECT_EQ(timesRun(), 3u);
  write(ptxas, read(TEGULA_FAKE_PTXAS) + "# another\n"); // an update of the toolkit
  make(".version 8", "sm_90a");
  EXPECT_EQ(timesRun(), 4u);
  setenv("TEGULA_CACHE_DIR", "", 1);
  make(".version 8", "sm_90a");
  EXPECT_EQ(timesRun(), 5u);
}

/// The assembler has huge pages, unless the user says what memory it has; and all that the user's
/// environment says.
TEST_F(DiskCacheTest, TheAssemblerHasHugePages) {
  std::string file = (folder + "/environment").str();
  setenv("TEGULA_CACHE_DIR", "", 1);
  setenv("TEGULA_PTXAS", TEGULA_FAKE_PTXAS, 1);
  setenv("FAKE_PTXAS_ENVIRONMENT", file.c_str(), 1);
  auto tunables = [&]() -> std::string {
    llvm::Expected<Cubin> cubin = assemble(".version 8", "sm_90a");
    EXPECT_TRUE(bool(cubin)) << llvm::toString(cubin.takeError());
    std::string lines = "\n" + read(file);
    EXPECT_NE(lines.find("\nFAKE_PTXAS_ENVIRONMENT=" + file + "\n"), std::string::npos);
    constexpr llvm::StringRef name = "\nGLIBC_TUNABLES=";
    EXPECT_EQ(llvm::StringRef(lines).count(name), 1u);
    return llvm::StringRef(lines).split(name).second.split('\n').first.str();
  };
  EXPECT_TRUE(llvm::StringRef(tunables()).contains("glibc.malloc.hugetlb=1"));
  setenv("GLIBC_TUNABLES", "glibc.malloc.perturb=0", 1);
  EXPECT_EQ(tunables(), "glibc.malloc.perturb=0");
  unsetenv("GLIBC_TUNABLES");
  unsetenv("FAKE_PTXAS_ENVIRONMENT");
}

/// Several functions are assembled by several threads where the assembler knows how.
TEST_F(DiskCacheTest, AnOldAssemblerTakesOneThread) {
  if (llvm::hardware_concurrency().compute_thread_count() < 2)
    return; // it takes one in any case
  std::string log = (folder + "/log").str();
  setenv("TEGULA_CACHE_DIR", "", 1);
  setenv("TEGULA_PTXAS", TEGULA_FAKE_PTXAS, 1);
  setenv("FAKE_PTXAS_LOG", log.c_str(), 1);
  llvm::StringRef text = ".entry one\n.entry two\n";
  llvm::Expected<Cubin> plain = assemble(text, "sm_90a");
  ASSERT_TRUE(bool(plain)) << llvm::toString(plain.takeError());
  EXPECT_EQ(read(log), "assembled by 2\n");
  setenv("FAKE_PTXAS_OLD", "1", 1);
  llvm::Expected<Cubin> old = assemble(text, "sm_90a");
  unsetenv("FAKE_PTXAS_OLD");
  ASSERT_TRUE(bool(old)) << llvm::toString(old.takeError());
  EXPECT_EQ(old->image, plain->image);
  EXPECT_EQ(read(log), "assembled by 2\nassembled\n");
}

} // namespace
