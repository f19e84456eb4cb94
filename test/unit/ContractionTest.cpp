//===- ContractionTest.cpp - Matrix products of generated host code ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Statements that are matrix products are run at sizes around the edges of tiles and blocks, and
// compared with sums in double. With --gtest_also_run_disabled_tests the rate of a large product is
// printed.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/EmitHost.h"
#include "codegen/cpu/HostAbi.h"
#include "codegen/cpu/HostTarget.h"
#include "codegen/cpu/Jit.h"
#include "codegen/cpu/PackedGemm.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <thread>
#include <time.h>

using namespace llvm;
using namespace tegula;

namespace {

/// Points on `threads` threads, in as many stretches.
void runThreads(HostRun *run, ParallelBody body, void *frame, int64_t count, int64_t) {
  std::vector<std::thread> workers;
  for (int64_t t = 0; t < run->threads; ++t)
    workers.emplace_back([=] {
      int64_t begin = count * t / run->threads, end = count * (t + 1) / run->threads;
      if (begin < end)
        body(begin, end, frame, run);
    });
  for (std::thread &worker : workers)
    worker.join();
}

/// Memory in which what is read before it is written shows.
template <int Kind> void *memory(HostRun *, int64_t bytes) {
  static thread_local std::unique_ptr<void, decltype(&std::free)> space(nullptr, &std::free);
  space.reset(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  std::memset(space.get(), 0xff, bytes);
  return space.get();
}
constexpr auto scratch = memory<0>, panels = memory<1>;

class Kernel {
public:
  Kernel(StringRef text, unsigned vectorBytes) {
    context.loadDialect<tgl::TglDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    tgl::KernelOp kernel = *module->getOps<tgl::KernelOp>().begin();
    kernel.walk([&](tgl::ParallelOp op) { isContraction |= planContraction(op).has_value(); });
    LLVMContext llvmContext;
    Module code("test", llvmContext);
    const HostTarget &target = HostTarget::get();
    std::unique_ptr<TargetMachine> machine = target.createMachine();
    EmitterOptions options;
    options.vectorBytes = vectorBytes;
    HostCode host = cantFail(emitHost(kernel, code, options));
    applyTarget(code, target, *machine);
    EXPECT_FALSE(verifyModule(code, &errs()));
    if (getenv("TEGULA_LLVM"))
      code.print(errs(), nullptr);
    optimize(code, *machine);
    if (getenv("TEGULA_ASM"))
      errs() << emitAssembly(code, *machine);
    loaded = cantFail(LoadedCode::load(emitObject(code, *machine)));
    entry = reinterpret_cast<KernelFunction>(cantFail(loaded->lookup(host.function)));
  }
  void run(ArrayRef<void *> buffers, ArrayRef<int64_t> sizes, int64_t threads) const {
    HostRun run{{}, runThreads, scratch, nullptr, threads, panels};
    entry(buffers.data(), sizes.data(), nullptr, &run);
  }
  bool isContraction = false;

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<LoadedCode> loaded;
  KernelFunction entry = nullptr;
};

std::vector<float> numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> result(count);
  for (float &x : result)
    x = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
  return result;
}

/// The text of y[i, j] = exp2(b[j] + sum_k x * w) with the given order of dims.
std::string productText(bool xTransposed, bool wTransposed) {
  std::string x = xTransposed ? "[K, M]" : "[M, K]", w = wTransposed ? "[N, K]" : "[K, N]";
  std::string xAt = xTransposed ? "[%k, %i]" : "[%i, %k]",
              wAt = wTransposed ? "[%j, %k]" : "[%k, %j]";
  std::string sizes = std::string(xTransposed ? "K = 0 : 0, M = 0 : 1" : "M = 0 : 0, K = 0 : 1") +
                      (wTransposed ? ", N = 1 : 0" : ", N = 1 : 1");
  return "tgl.kernel @product(%x: !tgl.tensor<" + x + R"(, f32> {tgl.name = "x", tgl.role = "in"},
      %w: !tgl.tensor<)" +
         w + R"(, f32> {tgl.name = "w", tgl.role = "in"},
      %b: !tgl.tensor<[N], f32> {tgl.name = "b", tgl.role = "in"},
      %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [)" +
         sizes + R"(] {
    tgl.parallel (%i = 0 to M, %j = 0 to N) {
      %s = tgl.reduce sum (%k = 0 to K) -> f32 {
        %p = tgl.read %x)" +
         xAt + " : !tgl.tensor<" + x + R"(, f32>
        %q = tgl.read %w)" +
         wAt + " : !tgl.tensor<" + w + R"(, f32>
        %c = arith.mulf %p, %q : f32
        tgl.yield %c : f32
      }
      %t = tgl.read %b[%j] : !tgl.tensor<[N], f32>
      %u = arith.addf %s, %t : f32
      tgl.write %u, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
    }
  })";
}

TEST(Contraction, ProductsOfAllShapes) {
  const HostTarget &target = HostTarget::get();
  for (bool xTransposed : {false, true})
    for (bool wTransposed : {false, true})
      for (unsigned vectorBytes : {16u, target.vectorBytes}) {
        Kernel kernel(productText(xTransposed, wTransposed), vectorBytes);
        EXPECT_TRUE(kernel.isContraction);
        for (auto [m, n, k] : {std::array<int64_t, 3>{64, 64, 64},
                               {65, 97, 257},
                               {7, 49, 515},
                               {130, 16, 31},
                               {1, 1000, 40},
                               {9, 5, 1000},
                               {200, 700, 300},
                               {70, 70, 0},
                               {40, 40, 9},
                               {0, 5, 5}}) {
          std::vector<float> x = numbers(m * k, 1), w = numbers(k * n, 2), b = numbers(n, 3),
                             y(m * n + 64, -7);
          SmallVector<int64_t> sizes =
              xTransposed ? SmallVector<int64_t>{k, m, n} : SmallVector<int64_t>{m, k, n};
          for (int64_t threads : {1, 3}) {
            std::fill(y.begin(), y.end(), -7.0f);
            kernel.run({x.data(), w.data(), b.data(), y.data()}, sizes, threads);
            for (int64_t i = 0; i < m; ++i)
              for (int64_t j = 0; j < n; ++j) {
                double sum = b[j], scale = 1;
                for (int64_t l = 0; l < k; ++l) {
                  double p = double(xTransposed ? x[l * m + i] : x[i * k + l]) *
                             double(wTransposed ? w[j * k + l] : w[l * n + j]);
                  sum += p;
                  scale += std::abs(p);
                }
                ASSERT_NEAR(y[i * n + j], sum, 1e-6 * scale)
                    << m << ' ' << n << ' ' << k << " at " << i << ' ' << j << " transposed "
                    << xTransposed << wTransposed << " threads " << threads << " bytes "
                    << vectorBytes;
              }
            for (int64_t i = m * n; i < m * n + 64; ++i)
              ASSERT_EQ(y[i], -7.0f);
          }
        }
      }
}

constexpr const char *convolutionText = R"(
tgl.kernel @conv(%x: !tgl.tensor<[N, C, H, W], f32> {tgl.name = "x", tgl.role = "in"},
                 %w: !tgl.tensor<[O, C, R, S], f32> {tgl.name = "w", tgl.role = "in"},
                 %y: !tgl.tensor<[N, O, P, Q], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [N = 0 : 0, C = 0 : 1, H = 0 : 2, W = 0 : 3, O = 1 : 0, R = 1 : 2, S = 1 : 3, P = H - R + 3, Q = W - S + 3] {
  %zero = arith.constant 0.0 : f32
  tgl.parallel (%n = 0 to N, %o = 0 to O, %p = 0 to P, %q = 0 to Q) {
    %s = tgl.reduce sum (%c = 0 to C, %r = 0 to R, %t = 0 to S) -> f32 {
      %a = tgl.read %x[%n, %c, %p + %r - 1, %q + %t - 1] fill %zero : !tgl.tensor<[N, C, H, W], f32>
      %b = tgl.read %w[%o, %c, %r, %t] : !tgl.tensor<[O, C, R, S], f32>
      %m = arith.mulf %a, %b : f32
      tgl.yield %m : f32
    }
    %l = arith.maximumf %s, %zero : f32
    tgl.write %l, %y[%n, %o, %p, %q] : f32, !tgl.tensor<[N, O, P, Q], f32>
  }
}
)";

TEST(Contraction, Convolutions) {
  Kernel kernel(convolutionText, HostTarget::get().vectorBytes);
  EXPECT_TRUE(kernel.isContraction);
  for (auto [n, c, h, w, o, r, s] : {std::array<int64_t, 7>{2, 5, 9, 11, 8, 3, 3},
                                     {1, 64, 14, 14, 10, 3, 3},
                                     {1, 3, 40, 7, 6, 5, 1},
                                     {3, 40, 5, 64, 4, 1, 3}}) {
    int64_t p = h - r + 3, q = w - s + 3;
    std::vector<float> x = numbers(n * c * h * w, 1), f = numbers(o * c * r * s, 2),
                       y(n * o * p * q + 64, -7);
    int64_t sizes[] = {n, c, h, w, o, r, s, p, q};
    kernel.run({x.data(), f.data(), y.data()}, sizes, 2);
    for (int64_t in = 0; in < n; ++in)
      for (int64_t io = 0; io < o; ++io)
        for (int64_t ip = 0; ip < p; ++ip)
          for (int64_t iq = 0; iq < q; ++iq) {
            double sum = 0, scale = 1;
            for (int64_t ic = 0; ic < c; ++ic)
              for (int64_t ir = 0; ir < r; ++ir)
                for (int64_t is = 0; is < s; ++is) {
                  int64_t row = ip + ir - 1, column = iq + is - 1;
                  if (row < 0 || row >= h || column < 0 || column >= w)
                    continue;
                  double term = double(x[((in * c + ic) * h + row) * w + column]) *
                                double(f[((io * c + ic) * r + ir) * s + is]);
                  sum += term;
                  scale += std::abs(term);
                }
            ASSERT_NEAR(y[((in * o + io) * p + ip) * q + iq], std::max(0.0, sum), 1e-6 * scale)
                << n << ' ' << c << ' ' << h << ' ' << w << ' ' << o << " at " << in << ' ' << io
                << ' ' << ip << ' ' << iq;
          }
    for (int64_t i = n * o * p * q; i < n * o * p * q + 64; ++i)
      ASSERT_EQ(y[i], -7.0f);
  }
}

/// Least time of the processor, so that other work on the machine does not count; wall time for
/// several threads.
double seconds(bool alone) {
  timespec time;
  clock_gettime(alone ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double best(int64_t threads, const std::function<void()> &work) {
  double least = 1e30;
  for (int k = 0; k < 8; ++k) {
    double start = seconds(threads == 1);
    work();
    least = std::min(least, seconds(threads == 1) - start);
  }
  return least;
}

TEST(Contraction, DISABLED_Rate) { // measures
  for (bool transposed : {false, true}) {
    Kernel kernel(productText(false, transposed), HostTarget::get().vectorBytes);
    int64_t n = 1024;
    std::vector<float> x = numbers(n * n, 1), w = numbers(n * n, 2), b = numbers(n, 3), y(n * n);
    int64_t sizes[] = {n, n, n};
    for (int64_t threads : {1, 2}) {
      double time = best(
          threads, [&] { kernel.run({x.data(), w.data(), b.data(), y.data()}, sizes, threads); });
      printf("1024^3, w %s, %d threads: %.2f ms, %.0f GFLOP/s\n", transposed ? "[n, k]" : "[k, n]",
             int(threads), time * 1e3, 2e-9 * n * n * n / time);
    }
  }
  Kernel kernel(convolutionText, HostTarget::get().vectorBytes);
  int64_t n = 8, c = 64, h = 56, o = 64;
  std::vector<float> x = numbers(n * c * h * h, 1), f = numbers(o * c * 9, 2), y(n * o * h * h);
  int64_t sizes[] = {n, c, h, h, o, 3, 3, h, h};
  for (int64_t threads : {1, 2}) {
    double time =
        best(threads, [&] { kernel.run({x.data(), f.data(), y.data()}, sizes, threads); });
    printf("conv 8x64x56x56 3x3 64, %d threads: %.2f ms, %.0f GFLOP/s\n", int(threads), time * 1e3,
           2e-9 * n * o * h * h * c * 9 / time);
  }
}

} // namespace
