//===- Tune.cpp - The schedule that is fastest when timed -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Tune.h"

#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace llvm;

namespace tegula::bench {

/// Alternatives that the model expects to take longer by more than this are not tried.
static constexpr double maxExpected = 4;
/// Of the blocks that share a sum, for one shape of tile.
static constexpr unsigned splitsOfShape = 2;
/// What decides on the form of a kernel and may be left out, in the order of the pipeline. Code
/// without it differs in the order of additions at most.
static constexpr StringRef optionalSteps[] = {"tgl-split-polyphase",
                                              "tgl-order-windows",
                                              "tgl-split-reductions",
                                              "tgl-spread-nests",
                                              "tgl-split-scans",
                                              "contraction",
                                              "tile-loop"};

//===----------------------------------------------------------------------===//
// What there is to try
//===----------------------------------------------------------------------===//

/// By statement tiles other than the first, with the share of its time that the model expects them
/// to take.
static void addTiles(const CompiledKernel &code,
                     std::vector<std::pair<double, ScheduleChoice>> &found) {
  for (auto [statement, options] : enumerate(code.tiles)) {
    std::map<StringRef, unsigned> seen; // by shape
    for (const TileOption &option : options) {
      double expected = options.front().clocks > 0 ? option.clocks / options.front().clocks : 1;
      StringRef shape = StringRef(option.name).split('/').first;
      if (seen[shape]++ >= splitsOfShape || &option == &options.front() || expected > maxExpected)
        continue;
      ScheduleChoice choice;
      choice.tiles.resize(statement + 1);
      choice.tiles.back() = option.name;
      found.push_back({expected, std::move(choice)});
    }
  }
  stable_sort(found, [](const auto &a, const auto &b) { return a.first < b.first; });
}

/// By statement the model's tile with another number of stages in its ring, and neighbours in
/// another order. What does not fit, or is what there is, gives the same code.
static void addSettings(const CompiledKernel &code,
                        std::vector<std::pair<double, ScheduleChoice>> &found) {
  constexpr StringRef settings[] = {"stages=6", "stages=3",
                                    "raster=2"}; // the more the fewer statements there are
  for (auto [statement, options] : enumerate(code.tiles)) {
    if (options.empty())
      continue;
    for (StringRef setting :
         ArrayRef(settings).take_front(std::max<size_t>(1, 4 / code.tiles.size()))) {
      ScheduleChoice choice;
      choice.tiles.resize(statement + 1);
      choice.tiles.back() = options.front().name + ":" + setting.str();
      found.push_back({1, std::move(choice)});
    }
  }
}

/// Steps with a function by threads and one by teams of which the other than the default's.
static void addUnits(const CompiledKernel &code, const CudaDeviceInfo &device,
                     std::vector<ScheduleChoice> &found) {
  Plan plan = code.plan;
  uint64_t threads = uint64_t(device.multiprocessors) * device.maxThreadsPerMultiprocessor;
  for (auto [index, step] : enumerate(launchSteps(plan))) {
    std::optional<int64_t> points = step->points.asConstant();
    if (step->byThread.name.empty() || step->byTeam.name.empty() || !step->tiles.launches.empty() ||
        !points)
      continue;
    bool isThread = &step->functionFor(*points, threads) == &step->byThread;
    ScheduleChoice choice;
    choice.units.resize(index + 1);
    choice.units.back() = isThread ? PlanStep::Team : PlanStep::Thread;
    found.push_back(std::move(choice));
  }
}

std::vector<ScheduleChoice> alternatives(const CompiledKernel &code, const CudaDeviceInfo &device,
                                         unsigned most) {
  std::vector<std::pair<double, ScheduleChoice>> tiles;
  addSettings(code, tiles);
  addTiles(code, tiles);
  std::vector<ScheduleChoice> others;
  addUnits(code, device, others);
  for (StringRef step : optionalSteps) {
    ScheduleChoice choice;
    choice.without = {step.str()};
    others.push_back(std::move(choice));
  }
  // Of what the model says nothing of there shall be room for some, however many tiles there are.
  size_t room = std::min<size_t>(
      others.size(), std::max<size_t>(most / 4, most - std::min<size_t>(most, tiles.size())));
  std::vector<ScheduleChoice> found;
  for (const auto &[expected, choice] : ArrayRef(tiles).take_front(most - room))
    found.push_back(choice);
  found.insert(found.end(), others.begin(), others.begin() + room);
  return found;
}

ScheduleChoice combine(ArrayRef<Tried> tried) {
  std::vector<const Tried *> faster;
  for (const Tried &one : tried)
    if (one.isFaster())
      faster.push_back(&one);
  // The best last: its parts replace those of the others.
  stable_sort(faster, [](const Tried *a, const Tried *b) { return a->ratio > b->ratio; });
  ScheduleChoice choice;
  for (const Tried *one : faster)
    choice = choice.with(one->choice);
  return choice;
}

std::string whyDropped(const CodeFacts &facts, const CodeFacts &base) {
  if (facts.spillBytes > base.spillBytes)
    return "spills " + std::to_string(facts.spillBytes) + " bytes";
  // The performance losses that ptxas tells of, such as C7510: warpgroups' products are serialized.
  size_t at = StringRef(facts.log).find("(C75");
  if (at != StringRef::npos && !StringRef(base.log).contains("(C75"))
    return "ptxas: " +
           StringRef(facts.log).substr(at + 1).take_until([](char c) { return c == ')'; }).str();
  return "";
}

//===----------------------------------------------------------------------===//
// One case
//===----------------------------------------------------------------------===//

namespace {
class Tuner {
public:
  Tuner(Study &study, Study::Way &base, function_ref<void(json::Object)> send)
      : study(study), base(base), send(send) {}

  /// Times `choice`; an error is the end of the process.
  Expected<Tried> attempt(const ScheduleChoice &choice, json::Object &told) {
    Tried tried;
    tried.choice = choice;
    auto end = [&](StringRef outcome, const Twine &reason) {
      tried.outcome = outcome.str();
      told["outcome"] = outcome;
      if (!reason.isTriviallyEmpty())
        told["reason"] = reason.str();
      return tried;
    };
    Expected<Study::Way> way = study.tryChoice(choice, &base);
    if (!way) {
      if (!way.errorIsA<NeededError>())
        return way.takeError();
      return end("dropped", "no code: " + toString(way.takeError()));
    }
    if (isSame(*way))
      return end("same", "");
    if (std::string why = whyDropped(way->facts, base.facts); !why.empty())
      return end("dropped", why);
    if (std::string wrong = study.differ(*way, base, /*exact=*/false); !wrong.empty())
      return end("wrong", wrong);
    Expected<TimedPair> pair = study.time(base, *way);
    if (!pair)
      return pair.takeError();
    tried.ratio = pair->ratio;
    tried.lower = pair->ratioLower;
    tried.upper = pair->ratioUpper;
    told["ratio"] = pair->ratio;
    told["lower"] = pair->ratioLower;
    told["upper"] = pair->ratioUpper;
    told["seconds"] = pair->second.median;
    return end("timed", "");
  }

private:
  /// The same code, of which the same functions run.
  bool isSame(const Study::Way &way) {
    return way.facts.text == base.facts.text && isEqual(way.choice.units);
  }
  static bool isEqual(ArrayRef<PlanStep::Unit> units) {
    return all_of(units, [](PlanStep::Unit unit) { return unit == PlanStep::ByPoints; });
  }

  Study &study;
  Study::Way &base;
  function_ref<void(json::Object)> send;
};
} // namespace

/// Puts what an alternative failed with into `reason`, and whether the process can go no further
/// since its device is lost to it. What is not its fault stays an error.
static Error describeFailure(Error error, std::string &reason, bool &isLost) {
  return handleErrors(std::move(error), [&](std::unique_ptr<ErrorInfoBase> failed) -> Error {
    if (isMissingResource(*failed) && !failed->isA<CudaError>())
      return Error(std::move(failed)); // an assembler, not this schedule
    if (failed->isA<CudaError>())
      isLost = static_cast<CudaError &>(*failed).kind == CudaError::Fault;
    reason = failed->message();
    return Error::success();
  });
}

Expected<bool> tune(Study &study, const StudyCase &one, unsigned most, std::vector<Tried> tried,
                    function_ref<void(json::Object)> send) {
  if (Error error = study.select(one))
    return std::move(error);
  Expected<Study::Way> base = study.tryChoice({}, nullptr);
  if (!base)
    return base.takeError();
  const CompiledKernel &code = base->sets.front()->machineCode();
  const CudaDeviceInfo &device = base->sets.front()->cudaDevice()->info();
  if (tried.empty()) {
    Expected<TimedPair> alone = study.time(*base, *base);
    if (!alone)
      return alone.takeError();
    send(json::Object{{"event", "base"},
                      {"seconds", alone->first.median},
                      {"spillBytes", static_cast<int64_t>(base->facts.spillBytes)}});
  }

  Tuner tuner(study, *base, send);
  bool isLost = false;
  auto attempt = [&](const ScheduleChoice &choice, size_t index, StringRef phase) -> Error {
    json::Object told{{"event", "begin"},
                      {"index", static_cast<int64_t>(index)},
                      {"choice", choice.text()},
                      {"phase", phase}};
    send(json::Object(told));
    told["event"] = "tried";
    Expected<Tried> result = tuner.attempt(choice, told);
    Tried made;
    made.choice = choice;
    if (result) {
      made = std::move(*result);
    } else {
      std::string reason;
      if (Error error = describeFailure(result.takeError(), reason, isLost))
        return error;
      made.outcome = "failed";
      told["outcome"] = "failed";
      told["reason"] = reason;
    }
    tried.push_back(std::move(made));
    send(std::move(told));
    return Error::success();
  };
  // The default is one configuration, all changes together may be another.
  std::vector<ScheduleChoice> choices = alternatives(code, device, most - 2);
  for (size_t index = tried.size(); index < choices.size() && !isLost; ++index)
    if (Error error = attempt(choices[index], index, "alone"))
      return std::move(error);
  if (isLost)
    return false;

  // Together, unless that is one of them; then whatever is best once more.
  size_t singles = choices.size();
  ArrayRef<Tried> single = ArrayRef(tried).take_front(singles);
  ScheduleChoice together = combine(single);
  bool isNew =
      none_of(single, [&](const Tried &it) { return it.choice.text() == together.text(); });
  Tried result; // the default
  if (!together.isDefault()) {
    if (isNew && tried.size() == singles)
      if (Error error = attempt(together, singles, "together"))
        return std::move(error);
    if (isLost)
      return false;
    if (tried.size() == singles + isNew) {
      const Tried *best = nullptr;
      for (const Tried &it : tried)
        if (it.isFaster() && (!best || it.ratio < best->ratio))
          best = &it;
      if (Error error = attempt(ScheduleChoice(best->choice), tried.size(), "again"))
        return std::move(error);
    }
    if (isLost)
      return false;
    if (tried.back().isFaster())
      result = tried.back();
  }
  json::Object sizes;
  for (const auto &[name, value] : study.sizeValues())
    sizes[name] = value;
  send(json::Object{{"event", "tuned"},
                    {"choice", result.choice.text()},
                    {"ratio", result.ratio},
                    {"lower", result.lower},
                    {"upper", result.upper},
                    {"program", code.program},
                    {"sizes", std::move(sizes)},
                    {"target", code.target},
                    {"device", device.name}});
  return true;
}

} // namespace tegula::bench
