//===- Certificate.cpp - What was proved, so that it can be repeated ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Certificate.h"
#include "prove/EvaluateImpl.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::prove;

std::string tegula::prove::hashOf(StringRef text) {
  SHA256 hash;
  hash.update(text);
  return toHex(hash.final(), /*LowerCase=*/true);
}

static json::Object sizesJson(const Sizes &sizes) {
  json::Object object;
  for (const auto &[name, value] : sizes)
    object[name] = value;
  return object;
}

/// A number of a counterexample; JSON has no infinities.
static json::Value numberJson(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

json::Object tegula::prove::toJson(const Judgement &judgement, uint64_t seed) {
  json::Array trials;
  for (const Trial &trial : judgement.trials)
    trials.push_back(json::Object{{"sizes", sizesJson(trial.sizes)},
                                  {"size_kind", toString(trial.sizeKind)},
                                  {"data", toString(trial.kind.data)},
                                  {"integers", toString(trial.kind.integers)},
                                  {"scalars", toString(trial.kind.scalars)},
                                  {"seed", formatv("{0:x16}", trial.seed).str()},
                                  {"integers_below", trial.kind.integerLimit},
                                  {"tile", trial.tileSize},
                                  {"elements", int64_t(trial.elements)},
                                  {"finite", int64_t(trial.finite)},
                                  {"largest_value", numberJson(trial.magnitude)},
                                  {"error_at_most", numberJson(trial.error)}});
  json::Object result{{"verdict", toString(judgement.verdict)},
                      {"method", "evaluation over finite fields and long double reals"},
                      {"seed", int64_t(seed)},
                      {"chains", int64_t(judgement.chains)},
                      {"comparisons", int64_t(judgement.comparisons)},
                      {"roundings", int64_t(judgement.roundings)},
                      {"points", std::move(trials)}};
  if (!judgement.reason.empty())
    result["reason"] = judgement.reason;
  if (judgement.differsAtInfinity)
    result["differs_at_infinity"] = true;
  if (judgement.bits > 0)
    result["error_below"] = formatv("2^-{0}", int64_t(judgement.bits)).str();
  if (!judgement.untaken.empty())
    result["one_way"] = json::Array(judgement.untaken);
  if (const auto &example = judgement.counterexample) {
    json::Array index;
    for (int64_t at : example->index)
      index.push_back(at);
    result["counterexample"] = json::Object{{"point", int64_t(example->trial)},
                                            {"output", example->output},
                                            {"index", std::move(index)},
                                            {"first", numberJson(example->first)},
                                            {"second", numberJson(example->second)}};
  }
  return result;
}

static std::string sizesText(const Sizes &sizes) {
  std::vector<std::string> parts;
  for (const auto &[name, value] : sizes)
    parts.push_back(name + "=" + std::to_string(value));
  return join(parts, " ");
}

std::string tegula::prove::toText(const Judgement &judgement) {
  std::string text;
  raw_string_ostream os(text);
  os << toString(judgement.verdict);
  if (!judgement.reason.empty())
    os << ": " << judgement.reason;
  os << '\n';
  for (const std::string &place : judgement.untaken)
    os << "  " << place << '\n';
  if (const auto &example = judgement.counterexample) {
    const Trial &trial = judgement.trials[example->trial];
    os << "  " << example->output << '[';
    interleaveComma(example->index, os);
    os << "] is " << format("%.9g", example->first) << " by the first program and "
       << format("%.9g", example->second) << " by the second\n";
    os << "  at " << (trial.sizes.empty() ? "fixed sizes" : sizesText(trial.sizes)) << ", "
       << toString(trial.kind.data) << formatv(" data of seed {0:x16}\n", trial.seed);
    return text;
  }
  if (judgement.trials.empty() || judgement.verdict == Verdict::NotEqual)
    return text;
  uint64_t elements = 0;
  for (const Trial &trial : judgement.trials)
    elements += trial.elements;
  const Trial &widest =
      *std::max_element(judgement.trials.begin(), judgement.trials.end(),
                        [](const Trial &a, const Trial &b) { return a.elements < b.elements; });
  os << "  " << elements << " elements of " << judgement.trials.size() << " points";
  if (!widest.sizes.empty())
    os << ", the widest at " << sizesText(widest.sizes);
  os << "\n  " << judgement.chains << " chains of primes miss a difference of polynomials with a "
     << "probability below 2^-" << int64_t(std::max(judgement.bits, 0.0)) << '\n';
  if (judgement.differsAtInfinity)
    os << "  where data are infinite, one gives inf or nan and the other one does not\n";
  return text;
}
