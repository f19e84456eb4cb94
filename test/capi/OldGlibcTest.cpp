//===- OldGlibcTest.cpp - What stands in for a newer C library ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Linked as users' files are, with cmake/OldGlibc.c: functions that are written there do what the C
// library's do, and constructors have run before main.
//
//===----------------------------------------------------------------------===//
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;

static int constructed = [] { return getpid(); }(); // NOLINT

namespace {

TEST(OldGlibc, RunsConstructorsOnce) { EXPECT_EQ(constructed, getpid()); }

TEST(OldGlibc, DescribesFiles) {
  char name[] = "/tmp/tegula-old-glibc-XXXXXX";
  int file = mkstemp(name);
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, "12345", 5), 5);
  std::string link = std::string(name) + "-link";
  ASSERT_EQ(symlink(name, link.c_str()), 0);
  struct stat byName, byLink, ofLink, byNumber;
  EXPECT_EQ(stat(name, &byName), 0);
  EXPECT_EQ(stat(link.c_str(), &byLink), 0);
  EXPECT_EQ(lstat(link.c_str(), &ofLink), 0);
  EXPECT_EQ(fstat(file, &byNumber), 0);
  EXPECT_EQ(byName.st_size, 5);
  EXPECT_TRUE(S_ISREG(byName.st_mode) && S_ISREG(byLink.st_mode) && S_ISLNK(ofLink.st_mode));
  EXPECT_EQ(byName.st_ino, byNumber.st_ino);
  EXPECT_EQ(byName.st_ino, byLink.st_ino);
  EXPECT_EQ(byName.st_mtim.tv_nsec, byNumber.st_mtim.tv_nsec);
  EXPECT_EQ(byName.st_uid, getuid());
  close(file);
  unlink(link.c_str());
  unlink(name);
  errno = 0;
  EXPECT_EQ(stat(name, &byName), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(fstat(-1, &byName), -1);
  EXPECT_EQ(errno, EBADF);
}

void throwDeep(int depth) {
  if (depth == 0)
    throw std::runtime_error("deep");
  std::string keepsAFrame(size_t(depth), 'x');
  throwDeep(depth - 1);
}

TEST(OldGlibc, UnwindsInEveryThread) {
  std::vector<std::thread> threads;
  std::vector<int> caught(8);
  for (int &count : caught)
    threads.emplace_back([&count] {
      for (int i = 0; i < 100; ++i)
        try {
          throwDeep(20);
        } catch (const std::exception &) {
          ++count;
        }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(caught, std::vector<int>(8, 100));
}

TEST(OldGlibc, WaitsUntilATime) {
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  using Clock = std::chrono::steady_clock;
  EXPECT_EQ(condition.wait_until(lock, Clock::now() - 1h), std::cv_status::timeout);
  EXPECT_EQ(condition.wait_until(lock, Clock::time_point()), std::cv_status::timeout);
  Clock::time_point begin = Clock::now();
  EXPECT_FALSE(condition.wait_for(lock, 20ms, [] { return false; }));
  EXPECT_GE(Clock::now() - begin, 20ms);
  bool isSet = false;
  std::thread other([&] {
    std::lock_guard guard(mutex);
    isSet = true;
    condition.notify_one();
  });
  EXPECT_TRUE(condition.wait_for(lock, 1h, [&] { return isSet; }));
  lock.unlock();
  other.join();
}

TEST(OldGlibc, Computes) {
  volatile double two = 2, half = 0.5, negative = -1;
  EXPECT_EQ(std::pow(two, 10.5), 1448.1546878700494);
  EXPECT_EQ(std::exp(two), 7.38905609893065);
  EXPECT_EQ(std::exp2(half), 1.4142135623730951);
  EXPECT_EQ(std::log(two), 0.6931471805599453);
  EXPECT_EQ(std::log2(half), -1);
  EXPECT_EQ(std::hypot(3 * two, 4 * two), 10);
  EXPECT_TRUE(std::isnan(std::log(negative)));
  EXPECT_EQ(std::exp(two * 1000), std::numeric_limits<double>::infinity());
}

TEST(OldGlibc, FindsRandomNumbers) {
  std::random_device device;
  std::set<unsigned> numbers;
  for (int i = 0; i < 100; ++i)
    numbers.insert(device());
  EXPECT_GT(numbers.size(), 90u);
}

TEST(OldGlibc, CountsMemory) {
  size_t before = mallinfo2().uordblks;
  std::vector<std::unique_ptr<char[]>> kept;
  for (int i = 0; i < 1000; ++i)
    kept.emplace_back(new char[1000]);
  EXPECT_GE(mallinfo2().uordblks, before + 1000000);
}

TEST(OldGlibc, NamesSymbols) {
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void *>(&dladdr), &info), 0);
  EXPECT_NE(dlsym(RTLD_DEFAULT, "getpid"), nullptr);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "tegula_no_such_function"), nullptr);
  EXPECT_NE(dlerror(), nullptr);
}

} // namespace
