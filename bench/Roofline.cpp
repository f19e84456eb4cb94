//===- Roofline.cpp - What this machine can do at most ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Roofline.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace tegula::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// So many bytes lie beyond every cache that a core sees.
constexpr size_t memoryBytes = size_t(256) << 20;
constexpr int rounds = 5;
constexpr int64_t steps = 2'000'000;

/// Seconds that all threads take for `work(thread)`, begun together; the best of some rounds.
template <typename Work> double bestSeconds(unsigned threads, Work work) {
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) {
    std::atomic<unsigned> ready{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> pool;
    for (unsigned t = 0; t < threads; ++t)
      pool.emplace_back([&, t] {
        ++ready;
        while (!go)
          std::this_thread::yield();
        work(t);
      });
    while (ready < threads)
      std::this_thread::yield();
    Clock::time_point begin = Clock::now();
    go = true;
    for (std::thread &thread : pool)
      thread.join();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

/// Independent chains, as many as hide the latency of two units.
constexpr unsigned chains = 12;

/// One function for each vector length: types and target have to go together.
#define TEGULA_MULTIPLY_ADD(NAME, BYTES, ...)                                                      \
  __VA_ARGS__ float NAME() {                                                                       \
    typedef float Vector __attribute__((vector_size(BYTES)));                                      \
    Vector factor = Vector{} + 0.5f, addend = Vector{} + 1.0f, sums[chains];                       \
    for (Vector &sum : sums)                                                                       \
      sum = addend;                                                                                \
    for (int64_t step = 0; step < steps; ++step)                                                   \
      _Pragma("clang loop unroll(full)") for (unsigned k = 0; k < chains; ++k) {                   \
        _Pragma("clang fp contract(fast)") sums[k] = sums[k] * factor + addend;                    \
      }                                                                                            \
    float total = 0;                                                                               \
    for (Vector &sum : sums)                                                                       \
      total += sum[0];                                                                             \
    return total;                                                                                  \
  }
TEGULA_MULTIPLY_ADD(multiplyAdd16, 16)
#if defined(__x86_64__)
TEGULA_MULTIPLY_ADD(multiplyAdd32, 32, __attribute__((target("avx2,fma"))))
TEGULA_MULTIPLY_ADD(multiplyAdd64, 64, __attribute__((target("avx512f"))))
#endif
#undef TEGULA_MULTIPLY_ADD

double operationRate(unsigned threads) {
  float (*kernel)() = multiplyAdd16;
  double lanes = 4;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    kernel = multiplyAdd64;
    lanes = 16;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    kernel = multiplyAdd32;
    lanes = 8;
  }
#endif
  std::atomic<float> sink{0};
  double seconds = bestSeconds(threads, [&](unsigned) { sink = kernel(); });
  return 2.0 * lanes * chains * steps * threads / seconds;
}

double byteRate(unsigned threads) {
  std::vector<uint64_t> memory(memoryBytes / sizeof(uint64_t), 1);
  size_t part = memory.size() / threads;
  std::atomic<uint64_t> sink{0};
  double seconds = bestSeconds(threads, [&](unsigned thread) {
    uint64_t sums[8] = {};
    const uint64_t *words = memory.data() + thread * part;
    for (size_t n = 0; n + 8 <= part; n += 8)
      for (unsigned k = 0; k < 8; ++k)
        sums[k] += words[n + k];
    for (uint64_t sum : sums)
      sink += sum;
  });
  return part * threads * sizeof(uint64_t) / seconds;
}

} // namespace

Roofline Roofline::measure(unsigned threads) {
  threads = std::max(1u, threads);
  return {byteRate(threads), operationRate(threads)};
}

} // namespace tegula::bench
