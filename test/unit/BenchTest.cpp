//===- BenchTest.cpp - References, inputs and the pass rule ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Child.h"
#include "bench/Compare.h"
#include "bench/Timing.h"
#include "bench/reference/RefFile.h"
#include "bench/reference/Reference.h"
#include <cmath>
#include <csignal>
#include <ctime>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

using namespace tegula;
using namespace tegula::bench;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Tensor tensor(DType type, std::vector<int64_t> shape, std::vector<double> values) {
  Tensor made = std::move(*Tensor::make(type, shape));
  made.store(values);
  return made;
}

Tensor vec(DType type, std::vector<double> values) {
  return tensor(type, {int64_t(values.size())}, values);
}

std::optional<double> none(llvm::StringRef) { return std::nullopt; }

} // namespace

TEST(BenchTensor, RoundsAsStoringDoes) {
  // bf16 has 8 bits of significand: 1 + 2^-8 is halfway, and 1 is even.
  EXPECT_THAT(vec(DType::BF16, {1 + 0x1p-8, 1 + 3 * 0x1p-8, 1e39}).doubles(),
              ElementsAre(1, 1 + 0x1p-6, INFINITY));
  EXPECT_THAT(vec(DType::F16, {65504, 65520, 0x1p-24, -2.5}).doubles(),
              ElementsAre(65504, INFINITY, 0x1p-24, -2.5));
  EXPECT_THAT(vec(DType::F8E5M2, {1.125, 57344}).doubles(), ElementsAre(1, 57344));
  EXPECT_TRUE(std::isnan(vec(DType::F8E4M3, {1000}).doubles()[0]));
  EXPECT_THAT(vec(DType::Bool, {0, 3}).integers(), ElementsAre(0, 1));
  EXPECT_THAT(vec(DType::I64, {-5, 7}).integers(), ElementsAre(-5, 7));
}

TEST(BenchTensor, PacksNibblesLowFirst) {
  Tensor packed = tensor(DType::I4, {2, 3}, {-8, 7, 1, 2, -1, 0});
  EXPECT_EQ(packed.bytes(), 4u);
  EXPECT_EQ(static_cast<unsigned char>(packed.data()[0]), 0x78);
  EXPECT_THAT(packed.integers(), ElementsAre(-8, 7, 1, 2, -1, 0));
}

TEST(BenchTensor, KnowsWhatDoesNotFit) {
  EXPECT_FALSE(Tensor::make(DType::F32, {int64_t(1) << 40, int64_t(1) << 40}));
  EXPECT_EQ(Tensor::make(DType::F32, {int64_t(1) << 40, 0})->bytes(), 0u);
}

TEST(BenchRefFile, ReadsCasesAndInputs) {
  std::string error;
  std::optional<RefFile> file = parseRefFile("import torch\n"
                                             "# check: M=1, stride=(2, 1)\n"
                                             "# bench: M=64\n"
                                             "# input: ids = integers(0, M)\n"
                                             "def one(x):\n    return x\n"
                                             "# exact\n"
                                             "def two(x):\n    return x\n",
                                             error);
  ASSERT_TRUE(file) << error;
  ASSERT_EQ(file->functions.size(), 2u);
  const RefFunction &one = file->functions[0];
  ASSERT_EQ(one.cases.size(), 2u);
  EXPECT_EQ(one.cases[0].text(), "M=1, stride=(2, 1)");
  EXPECT_FALSE(one.cases[0].timed);
  EXPECT_TRUE(one.cases[1].timed);
  EXPECT_EQ(one.inputs[0].kind, InputSpec::Integers);
  EXPECT_FALSE(one.exact);
  EXPECT_TRUE(file->find("two")->exact);
  EXPECT_EQ(file->find("three"), nullptr);
  EXPECT_EQ(file->source.substr(0, 8), "\n# check");
}

TEST(BenchRefFile, NamesTheMalformedLine) {
  std::string error;
  EXPECT_FALSE(parseRefFile("\n# check: M\ndef f(x):\n  return x\n", error));
  EXPECT_THAT(error, HasSubstr("line 2"));
  EXPECT_FALSE(parseRefFile("# input: x = gamma(1)\ndef f(x):\n  return x\n", error));
  EXPECT_THAT(error, HasSubstr("distribution"));
  EXPECT_FALSE(parseRefFile("# input: x = normal(1)\ndef f(x):\n  return x\n", error));
  EXPECT_THAT(error, HasSubstr("takes 2 arguments"));
  EXPECT_FALSE(parseRefFile("# nothing\n", error));
}

TEST(BenchRefFile, EvaluatesExpressions) {
  std::string error;
  auto sizes = [](llvm::StringRef name) {
    return name == "M" ? std::optional<double>(6) : std::nullopt;
  };
  EXPECT_EQ(evaluate("(M + 2)*3 - -1", sizes, error), 25);
  EXPECT_EQ(evaluate("1e-3 * 1E+3 / 4", sizes, error), 0.25);
  for (const char *bad : {"", "N", "1 +", "(1", "1 2", "1..2"}) {
    EXPECT_FALSE(evaluate(bad, sizes, error)) << bad;
    EXPECT_NE(error, "");
  }
  EXPECT_FALSE(evaluate(std::string(100000, '('), sizes, error));
}

TEST(BenchInputs, DependOnSeedAndNameAlone) {
  std::string error;
  auto filled = [&](const char *name, uint64_t seed) {
    Tensor made = std::move(*Tensor::make(DType::F32, {1000}));
    EXPECT_TRUE(fill(made, name, nullptr, seed, none, error));
    return made.doubles();
  };
  std::vector<double> x = filled("x", 1);
  EXPECT_EQ(x, filled("x", 1));
  EXPECT_NE(x, filled("x", 2));
  EXPECT_NE(x, filled("y", 1));
  double sum = 0, squares = 0;
  for (double value : x) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 1000, 0, 0.15);
  EXPECT_NEAR(squares / 1000, 1, 0.2);

  Tensor ids = std::move(*Tensor::make(DType::I64, {1000}));
  InputSpec spec{"ids", InputSpec::Integers, {"2", "5"}};
  ASSERT_TRUE(fill(ids, "ids", &spec, 0, none, error));
  EXPECT_THAT(ids.integers(), testing::Each(testing::AllOf(testing::Ge(2), testing::Lt(5))));
  EXPECT_THAT(ids.integers(), testing::Contains(4));
  spec.arguments = {"5", "5"};
  EXPECT_FALSE(fill(ids, "ids", &spec, 0, none, error));
}

TEST(BenchCompare, TakesWhatIsAsGoodAsLibtorch) {
  Tensor exact = vec(DType::F64, {1, 2, 3, 4});
  Tensor torchs = vec(DType::F32, {1, 2, 3.0001, 4});
  EXPECT_TRUE(compare(vec(DType::F32, {1, 2, 3, 4}), torchs, exact, 1, false).passed);
  Comparison close = compare(vec(DType::F32, {1, 2, 3.00015, 4}), torchs, exact, 1, false);
  EXPECT_TRUE(close.passed) << close.reason;
  EXPECT_EQ(close.kernel.ulps[0], 3);
  Comparison far = compare(vec(DType::F32, {1, 2, 3.0005, 4}), torchs, exact, 1, false);
  EXPECT_FALSE(far.passed);
  EXPECT_THAT(far.reason, HasSubstr("[2]"));
  EXPECT_TRUE(close.kernelBench);
}

TEST(BenchCompare, AllowsWhatDepthAndTypeAllow) {
  Tensor exact = vec(DType::F64, {1});
  Tensor torchs = vec(DType::F32, {1});
  Tensor off = vec(DType::F32, {1 + 40 * 0x1p-23});
  EXPECT_FALSE(compare(off, torchs, exact, 1, false).passed);
  EXPECT_TRUE(compare(off, torchs, exact, 4096, false).passed);
  // The nearest bf16 to the exact value is right, whatever libtorch has.
  EXPECT_TRUE(
      compare(vec(DType::BF16, {1}), vec(DType::BF16, {1}), vec(DType::F64, {1 + 0x1p-9}), 1, false)
          .passed);
  EXPECT_FALSE(
      compare(vec(DType::BF16, {1 + 0x1p-6}), vec(DType::BF16, {1}), exact, 1, false).passed);
  // Neighbours: roundings of nearly the same value.
  EXPECT_FALSE(compare(vec(DType::BF16, {1 + 0x1p-7}), vec(DType::BF16, {1}), vec(DType::BF16, {1}),
                       1, false)
                   .passed);
  EXPECT_TRUE(compare(vec(DType::BF16, {1 + 0x1p-7}), vec(DType::BF16, {1}), vec(DType::BF16, {1}),
                      1, false, 2)
                  .passed);
  EXPECT_FALSE(compare(vec(DType::BF16, {1 + 0x1p-6}), vec(DType::BF16, {1}), vec(DType::BF16, {1}),
                       1, false, 2)
                   .passed);
}

TEST(BenchCompare, JudgesWhatIsNotFinite) {
  double nan = std::nan("");
  Tensor exact = vec(DType::F64, {nan, INFINITY, 70000, 1});
  Tensor torchs = vec(DType::F16, {nan, INFINITY, INFINITY, 1});
  EXPECT_TRUE(compare(torchs, torchs, exact, 1, false).passed);
  EXPECT_FALSE(
      compare(vec(DType::F16, {0, INFINITY, INFINITY, 1}), torchs, exact, 1, false).passed);
  EXPECT_FALSE(
      compare(vec(DType::F16, {nan, -INFINITY, INFINITY, 1}), torchs, exact, 1, false).passed);
  EXPECT_FALSE(
      compare(vec(DType::F16, {nan, INFINITY, INFINITY, nan}), torchs, exact, 1, false).passed);
}

TEST(BenchCompare, WantsIntegersExactly) {
  Tensor exact = vec(DType::I64, {1, 2}), torchs = vec(DType::I64, {1, 3});
  EXPECT_TRUE(compare(vec(DType::I64, {1, 2}), torchs, exact, 1, false).passed);
  EXPECT_TRUE(compare(vec(DType::I64, {1, 3}), torchs, exact, 1, false).passed);
  EXPECT_FALSE(compare(vec(DType::I64, {2, 2}), torchs, exact, 1, false).passed);
  EXPECT_FALSE(compare(vec(DType::I64, {1, 2, 3}), torchs, exact, 1, false).passed);
  EXPECT_FALSE(
      compare(vec(DType::F32, {1}), vec(DType::F32, {1}), vec(DType::F64, {1.00001}), 1, true)
          .passed);
}

namespace {

/// The tests below run libtorch itself.
struct BenchTorch : testing::Test {
  std::string error;
  const TegulaTorchApi *api = TorchLibrary::get(error);
  void SetUp() override { ASSERT_TRUE(api) << error; }

  std::unique_ptr<Reference> reference(const char *text) {
    std::unique_ptr<Reference> made = Reference::compile(*api, text, "ref", error);
    EXPECT_TRUE(made) << error;
    return made;
  }
};

} // namespace

TEST_F(BenchTorch, RunsTextOnOurBuffers) {
  auto ref = reference("def ref(x, k: int, eps: float, s: List[int]):\n"
                       "    return torch.sum(x * k + eps, 1), x.sum() + s[1]\n");
  EXPECT_THAT(ref->parameters(), ElementsAre("x", "k", "eps", "s"));
  Tensor x = tensor(DType::F32, {2, 2}, {1, 2, 3, 4});
  RefValues values;
  values.insert_or_assign("x", RefTensor(x));
  values.insert_or_assign("k", int64_t(2));
  values.insert_or_assign("eps", 0.5);
  values.insert_or_assign("s", std::vector<int64_t>{7, 100});
  auto outputs = ref->run(values, false, error);
  ASSERT_TRUE(outputs) << error;
  ASSERT_EQ(outputs->size(), 2u);
  EXPECT_EQ((*outputs)[0].dtype(), DType::F32);
  EXPECT_THAT((*outputs)[0].doubles(), ElementsAre(7, 15));
  EXPECT_TRUE((*outputs)[1].shape().empty());
  EXPECT_THAT((*outputs)[1].doubles(), ElementsAre(110));
  values.erase("eps");
  EXPECT_FALSE(ref->run(values, false, error));
  EXPECT_THAT(error, HasSubstr("'eps'"));
}

TEST_F(BenchTorch, RunsInFloat64) {
  auto ref = reference("def ref(x):\n    return torch.exp(x) + torch.ones([1])\n");
  Tensor x = vec(DType::F32, {1});
  RefValues values;
  values.insert_or_assign("x", RefTensor(x));
  auto wide = ref->run(values, true, error);
  ASSERT_TRUE(wide) << error;
  EXPECT_EQ((*wide)[0].dtype(), DType::F64);
  EXPECT_DOUBLE_EQ((*wide)[0].doubles()[0], std::exp(1.0) + 1);
  EXPECT_EQ((*ref->run(values, false, error))[0].dtype(), DType::F32);
}

TEST_F(BenchTorch, TakesEveryType) {
  auto ref = reference("def ref(x):\n    return x\n");
  for (auto type : {DType::F64, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2, DType::I64,
                    DType::I32, DType::I16, DType::I8, DType::U8, DType::Bool}) {
    Tensor x = vec(type, {1, 0, 1});
    RefValues values;
    values.insert_or_assign("x", RefTensor(x));
    auto outputs = ref->run(values, false, error);
    ASSERT_TRUE(outputs) << error;
    EXPECT_EQ((*outputs)[0].dtype(), type);
    EXPECT_EQ((*outputs)[0].doubles(), x.doubles());
  }
  Tensor empty = tensor(DType::F32, {0, 3}, {}), bytes = vec(DType::I8, {-3, 5});
  RefValues values;
  values.insert_or_assign("x", RefTensor(empty));
  EXPECT_THAT((*ref->run(values, false, error))[0].shape(), ElementsAre(0, 3));
  values.insert_or_assign("x", RefTensor(bytes));
  EXPECT_THAT((*ref->run(values, false, error))[0].integers(), ElementsAre(-3, 5));
}

TEST_F(BenchTorch, ReportsErrorsAsText) {
  EXPECT_FALSE(Reference::compile(*api, "def ref(x)\n    return x\n", "ref", error));
  EXPECT_NE(error, "");
  EXPECT_FALSE(Reference::compile(*api, "def other(x):\n    return x\n", "ref", error));
  EXPECT_THAT(error, HasSubstr("'ref'"));
  EXPECT_FALSE(Reference::load(*api, "/no/such/file.pt", error));
  auto ref = reference("def ref(x, y):\n    return torch.matmul(x, y)\n");
  Tensor x = tensor(DType::F32, {2, 3}, std::vector<double>(6));
  RefValues values;
  values.emplace("x", RefTensor(x));
  values.emplace("y", RefTensor(x));
  EXPECT_FALSE(ref->run(values, false, error));
  EXPECT_THAT(error, HasSubstr("mat1 and mat2"));
  auto text = reference("def ref():\n    return 'a'\n");
  EXPECT_FALSE(text->run({}, false, error));
}

TEST_F(BenchTorch, TimesCallsOnSetsInTurn) {
  auto ref = reference("def ref(x):\n    return torch.exp(x)\n");
  Tensor small = tensor(DType::F32, {1}, {1});
  Tensor large = std::move(*Tensor::make(DType::F32, {1 << 22}));
  ASSERT_TRUE(fill(large, "x", nullptr, 0, none, error));
  RefValues one, two;
  one.insert_or_assign("x", RefTensor(small));
  two.insert_or_assign("x", RefTensor(large));
  auto seconds = ref->time({one, two}, 6, error);
  ASSERT_TRUE(seconds) << error;
  ASSERT_EQ(seconds->size(), 6u);
  // Another process may delay a call: the faster of the small ones counts.
  double quickest = std::min((*seconds)[2], (*seconds)[4]);
  for (int i = 3; i < 6; i += 2)
    EXPECT_LT(quickest * 5, (*seconds)[i]);
}

TEST(BenchChild, SendsLinesAndEnds) {
  std::vector<std::string> lines;
  auto receive = [&](llvm::StringRef line) { lines.push_back(line.str()); };
  ChildEnd end = runInChild(
      [](auto send) {
        send("one");
        send(std::string(200000, 'x'));
        return 3;
      },
      receive, 30);
  EXPECT_EQ(end.kind, ChildEnd::Exited);
  EXPECT_EQ(end.code, 3);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "one");
  EXPECT_EQ(lines[1].size(), 200000u);
}

TEST(BenchChild, OutlivesAChildThatDoesNot) {
  auto ignore = [](llvm::StringRef) {};
  ChildEnd crashed = runInChild(
      [](auto) {
        *static_cast<volatile int *>(nullptr) = 1;
        return 0;
      },
      ignore, 30);
  EXPECT_EQ(crashed.kind, ChildEnd::Signalled);
  EXPECT_EQ(crashed.code, SIGSEGV);
  ChildEnd hung = runInChild(
      [](auto) {
        for (;;)
          pause();
        return 0;
      },
      ignore, 0.2);
  EXPECT_EQ(hung.kind, ChildEnd::TimedOut);
}

TEST(BenchTiming, WaitsForWorkersThatSpin) {
  // Both readings of a wait: two waits in which the others work, one in which they do nearly
  // nothing.
  std::vector<double> readings = {0, 5e-4, 5e-4, 10e-4, 10e-4, 10.1e-4, 2, 3};
  unsigned reads = 0;
  awaitRest([&] { return readings[reads++]; });
  EXPECT_EQ(reads, 6u);
  unsigned waits = 0;
  awaitRest([&] { return double(++waits); }); // gives up on those that never rest
  EXPECT_GT(waits, 10u);
}

TEST(BenchTiming, KnowsTheWorkOfOtherThreads) {
  double before = secondsOfOtherThreads();
  std::thread worker([] {
    timespec used;
    do
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < 5'000'000);
  });
  worker.join();
  EXPECT_GE(secondsOfOtherThreads() - before, 5e-3);
}

TEST(BenchTiming, TakesMediansInTurns) {
  Timing timing = summarize({3, 1, 2, 100});
  EXPECT_DOUBLE_EQ(timing.median, 2.5);
  EXPECT_DOUBLE_EQ(timing.lower, 1.75);
  CacheFlush flush;
  std::string order;
  TimingLimits limits;
  limits.minCalls = 5;
  limits.seconds = 0;
  auto pair = timeInTurns(
      [&](unsigned turn) {
        order += 'a';
        return std::optional<double>(turn < 2 ? 1e9 : 2);
      },
      [&](unsigned turn) {
        order += 'b';
        return std::optional<double>(5);
      },
      limits, [&] { flush.run(); });
  ASSERT_TRUE(pair);
  EXPECT_EQ(order, "ababababababab");
  EXPECT_DOUBLE_EQ(pair->first.median, 2);
  EXPECT_DOUBLE_EQ(pair->ratio, 2.5);
  EXPECT_FALSE(timeInTurns([](unsigned) { return std::optional<double>(); }, {}, limits, [] {}));
}
