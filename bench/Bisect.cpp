//===- Bisect.cpp - The pass after which something goes wrong -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Bisect.h"
#include "passes/Pipeline.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tegula::bench {

static std::shared_ptr<PassRuns> first(uint64_t count, const std::vector<std::string> &needed) {
  return std::make_shared<PassRuns>(std::vector<std::string>(), count, needed);
}

Expected<std::vector<std::string>> findNeeded(const Study &study) {
  Expected<Study::Way> whole = study.compile(std::make_shared<PassRuns>());
  if (!whole)
    return whole.takeError();
  std::vector<std::string> needed;
  for (const std::string &pass : whole->runs->passes()) {
    if (!StringRef(pass).starts_with("tgl-"))
      continue; // others ask because they can be left out
    Expected<Study::Way> without =
        study.compile(std::make_shared<PassRuns>(std::vector<std::string>{pass}));
    if (without)
      continue;
    if (!without.errorIsA<NeededError>())
      return without.takeError();
    consumeError(without.takeError());
    needed.push_back(pass);
  }
  return needed;
}

Expected<Prefix> judge(const Study &study, const std::vector<std::string> &needed, uint64_t count,
                       bool exact, std::vector<PassRuns::Run> &runs) {
  Expected<Study::Way> way = study.compile(first(count, needed));
  if (!way) {
    if (!way.errorIsA<NeededError>())
      return way.takeError();
    return Prefix{Prefix::None, toString(way.takeError())};
  }
  runs = way->runs->runs();
  Expected<Study::Way> plain = study.compile(first(0, needed));
  if (!plain)
    return plain.takeError();
  if (way->facts.text == plain->facts.text && !way->facts.text.empty())
    return Prefix{Prefix::Good, ""};
  if (Error error = study.prepare(*plain))
    return std::move(error);
  if (Error error = study.prepare(*way))
    return Prefix{Prefix::Bad, "it does not run: " + toString(std::move(error))};
  std::string difference = study.differ(*way, *plain, exact);
  return Prefix{difference.empty() ? Prefix::Good : Prefix::Bad, difference};
}

Culprit bisect(uint64_t good, uint64_t bad, function_ref<Prefix::State(uint64_t)> ask) {
  while (bad - good > 1) {
    uint64_t middle = good + (bad - good) / 2, distance = 0;
    Prefix::State state = Prefix::None;
    uint64_t at = middle;
    // Some have no code: what needs another pass without which it can be left out. The nearest that
    // has some.
    for (; state == Prefix::None; ++distance) {
      bool isInside = false;
      for (uint64_t candidate : {middle + distance, middle - distance}) {
        if (candidate <= good || candidate >= bad || state != Prefix::None)
          continue;
        isInside = true;
        at = candidate;
        state = ask(candidate);
      }
      if (!isInside)
        return {good, bad};
    }
    (state == Prefix::Bad ? bad : good) = at;
  }
  return {good, bad};
}

Error timeSteps(const Study &study, const std::vector<std::string> &needed, uint64_t from,
                uint64_t to,
                function_ref<void(uint64_t, const PassRuns::Run &, double, double)> step) {
  std::optional<Study::Way> before;
  for (uint64_t count = from ? from - 1 : 0; count <= to; ++count) {
    Expected<Study::Way> way = study.compile(first(count, needed));
    if (!way) {
      if (!way.errorIsA<NeededError>())
        return way.takeError();
      consumeError(way.takeError()); // its effect shows with the next that has code
      continue;
    }
    bool isLast = !way->runs->hasMore();
    if (!before || way->facts.text != before->facts.text) {
      if (Error error = study.prepare(*way))
        return error;
      if (before) {
        Expected<TimedPair> pair = study.time(*way, *before);
        if (!pair)
          return pair.takeError();
        if (pair->ratio > 0)
          step(count, way->runs->runs().back(), 1 / pair->ratio, pair->first.median);
      }
      before.emplace(std::move(*way));
    }
    if (isLast)
      break;
  }
  return Error::success();
}

} // namespace tegula::bench
