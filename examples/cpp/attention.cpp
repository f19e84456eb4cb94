//===- attention.cpp - A kernel from C++: compile, ask, run, check ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Needs a C++20 compiler, tegula.hpp and libtegula alone. Prints what it does, ends with 0 when all
// is right and 1 otherwise.
//
//===----------------------------------------------------------------------===//
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tegula/tegula.hpp>
#include <vector>

using tegula::tensor;

static const char source[] = R"(
kernel attention(q: f32[M, D], k: f32[N, D], v: f32[N, E], scale: f32) -> (o: f32[M, E]) {
  s[i, j] = scale * sum(q[i, d] * k[j, d] for d)
  p[i, j] = exp(s[i, j] - max(s[i, l] for l))
  o[i, e] = sum(p[i, j] * v[j, e] for j) / sum(p[i, j] for j)
}
)";

// A row's softmax as PyTorch has it: of a tensor, not of an element.
static const char wrongSource[] = R"(
kernel wrong(x: f32[M, N]) -> (y: f32[M, N]) {
  y[i, j] = softmax(x[i, j], dim=1)
}
)";

static constexpr int64_t M = 37, N = 50, D = 16, E = 24;

static std::vector<float> numbers(int64_t count, int step) {
  std::vector<float> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<float>(static_cast<int>(i) * step % 23 - 11) / 8;
  return result;
}

/// The largest difference from plain loops in double precision.
static double error(const std::vector<float> &q, const std::vector<float> &k,
                    const std::vector<float> &v, double scale, const std::vector<float> &o) {
  double worst = 0;
  for (int64_t i = 0; i < M; ++i) {
    std::vector<double> p(N);
    for (int64_t j = 0; j < N; ++j)
      for (int64_t d = 0; d < D; ++d)
        p[size_t(j)] += scale * double(q[size_t(i * D + d)]) * double(k[size_t(j * D + d)]);
    double total = 0, most = *std::max_element(p.begin(), p.end());
    for (double &one : p)
      total += one = std::exp(one - most);
    for (int64_t e = 0; e < E; ++e) {
      double sum = 0;
      for (int64_t j = 0; j < N; ++j)
        sum += p[size_t(j)] * double(v[size_t(j * E + e)]);
      worst = std::max(worst, std::abs(sum / total - double(o[size_t(i * E + e)])));
    }
  }
  return worst;
}

/// Whether the call throws an error of this kind, which is printed.
template <typename Kind, typename Call> static bool throws(const char *what, Call call) {
  try {
    call();
  } catch (const Kind &told) {
    std::printf("%s:\n%s\n", what, told.what());
    return true;
  }
  std::printf("%s: no error\n", what);
  return false;
}

static bool run() {
  std::printf("tegula %s\n", tegula_version());
  tegula::Context context;
  tegula::Kernel attention(context, tegula::Program(source, "attention.tgl"));
  for (const tegula_argument_info &argument : attention.signature())
    std::printf("  %s: %s, %zu dims\n", argument.name, tegula_dtype_name(argument.dtype),
                argument.rank);

  std::vector<float> q = numbers(M * D, 7), k = numbers(N * D, 5), v = numbers(N * E, 3);
  const double scale = 0.25;
  tegula::Tensor qs = tensor(q, {M, D}), ks = tensor(k, {N, D}), vs = tensor(v, {N, E});
  tegula::Shape shape =
      attention.infer({qs, ks, vs, tegula::Argument::output(), scale}).outputs.front();
  std::vector<float> o(size_t(shape[0] * shape[1]));
  attention(qs, ks, vs, tensor(o, shape), scale);
  double worst = error(q, k, v, scale, o);
  std::printf("o is [%d, %d], largest error %.2g\n", int(shape[0]), int(shape[1]), worst);

  bool isRight = worst < 1e-5;
  isRight &= throws<tegula::ProgramError>("a wrong program", [&] {
    tegula::Kernel(context, tegula::Program(wrongSource, "wrong.tgl"));
  });
  isRight &= throws<tegula::CallError>(
      "a wrong shape", [&] { attention(qs, tensor(k, {D, N}), vs, tensor(o, shape), scale); });
  return isRight;
}

int main() {
  try {
    return run() ? 0 : 1;
  } catch (const tegula::Error &told) {
    std::fprintf(stderr, "status %d: %s\n", int(told.status()), told.what());
    return 1;
  }
}
