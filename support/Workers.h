//===- Workers.h - A pool of threads ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SUPPORT_WORKERS_H
#define TEGULA_SUPPORT_WORKERS_H

#include <functional>
#include <pthread.h>
#include <vector>

namespace tegula {

/// Threads that all run one function. Where the system has no more of them for this process there
/// are fewer, perhaps none: std::thread would throw and llvm::thread end the process, which may be
/// a library's host.
class Workers {
public:
  explicit Workers(std::function<void()> work) : work(std::move(work)) {}
  Workers(const Workers &) = delete;
  ~Workers() { join(); }

  /// Starts threads until there are `count`. False where there are fewer.
  bool start(size_t count) {
    while (threads.size() < count) {
      pthread_t thread;
      auto *run = +[](void *workers) -> void * {
        static_cast<Workers *>(workers)->work();
        return nullptr;
      };
      if (pthread_create(&thread, nullptr, run, this) != 0)
        return false;
      threads.push_back(thread);
    }
    return true;
  }
  size_t size() const { return threads.size(); }
  void join() {
    for (pthread_t thread : threads)
      pthread_join(thread, nullptr);
    threads.clear();
  }

private:
  std::function<void()> work;
  std::vector<pthread_t> threads;
};

} // namespace tegula

#endif // TEGULA_SUPPORT_WORKERS_H
