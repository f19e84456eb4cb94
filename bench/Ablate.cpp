//===- Ablate.cpp - What each pass is worth for a case --------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Ablate.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tegula::bench {

/// Compilations of which the fastest counts.
static constexpr unsigned repeats = 3;

static json::Object toJson(const CodeFacts &facts) {
  json::Object object{{"milliseconds", facts.milliseconds},
                      {"instructions", static_cast<int64_t>(facts.instructions)},
                      {"spillBytes", static_cast<int64_t>(facts.spillBytes)}};
  if (facts.registers)
    object["registers"] = static_cast<int64_t>(*facts.registers);
  return object;
}

/// Compares `way` with `base`. The outcome, with what there is to say of it.
static Error weigh(Study &study, Study::Way &base, Study::Way &way, json::Object &told) {
  for (auto &entry : toJson(way.facts))
    told[entry.first] = std::move(entry.second);
  if (way.facts.text == base.facts.text) {
    told["outcome"] = "same";
    return Error::success();
  }
  if (Error error = study.prepare(way))
    return error;
  std::string difference = study.differ(way, base, /*exact=*/false);
  if (!difference.empty()) {
    told["outcome"] = "wrong";
    told["reason"] = difference;
    return Error::success();
  }
  Expected<TimedPair> pair = study.time(base, way);
  if (!pair)
    return pair.takeError();
  told["outcome"] = "worth";
  told["time"] = pair->ratio; // of this way's time to the base's
  told["timeLower"] = pair->ratioLower;
  told["timeUpper"] = pair->ratioUpper;
  return Error::success();
}

Expected<bool> ablate(Study &study, const StudyCase &one, ArrayRef<StringRef> chosen,
                      size_t firstPass, function_ref<void(json::Object)> send) {
  if (Error error = study.select(one))
    return std::move(error);
  Expected<Study::Way> base = study.compile(std::make_shared<PassRuns>(), repeats);
  if (!base)
    return base.takeError();
  std::vector<std::string> passes = base->runs->passes(), spares = base->runs->spares();
  passes.insert(passes.end(), spares.begin(), spares.end());
  for (StringRef name : chosen)
    if (!is_contained(passes, name))
      return make_error<LaunchError>(LaunchError::WrongCall,
                                     "the compilation of " + one.kernel->name.name +
                                         " has no pass '" + name.str() + "' that can be left out");
  if (!chosen.empty())
    passes.assign(chosen.begin(), chosen.end());
  if (Error error = study.prepare(*base))
    return std::move(error);
  if (firstPass == 0) {
    Expected<TimedPair> alone = study.time(*base, *base);
    if (!alone)
      return alone.takeError();
    json::Object event = toJson(base->facts);
    event["event"] = "base";
    event["seconds"] = alone->first.median;
    event["noiseLower"] = alone->ratioLower;
    event["noiseUpper"] = alone->ratioUpper;
    event["passes"] = json::Array(passes);
    send(std::move(event));
  }
  for (size_t index = firstPass; index < passes.size(); ++index) {
    bool isAdded = is_contained(spares, passes[index]);
    json::Object told{
        {"pass", passes[index]}, {"index", static_cast<int64_t>(index)}, {"added", isAdded}};
    json::Object begin = told;
    begin["event"] = "begin";
    send(std::move(begin));
    told["event"] = "pass";
    using Names = std::vector<std::string>;
    Names name = {passes[index]};
    Expected<Study::Way> way =
        study.compile(isAdded ? std::make_shared<PassRuns>(Names(), PassRuns::all, Names(), name)
                              : std::make_shared<PassRuns>(name),
                      repeats);
    if (!way) {
      if (!way.errorIsA<NeededError>())
        return way.takeError();
      told["outcome"] = isAdded ? "failed" : "needed";
      told["reason"] = toString(way.takeError());
    } else if (Error error = weigh(study, *base, *way, told)) {
      bool isLost = false;
      error = handleErrors(std::move(error), [&](std::unique_ptr<CudaError> fault) -> Error {
        isLost = fault->kind == CudaError::Fault;
        return Error(std::move(fault));
      });
      told["outcome"] = "failed";
      told["reason"] = toString(std::move(error));
      if (isLost) {
        send(std::move(told));
        return false;
      }
    }
    send(std::move(told));
  }
  return true;
}

} // namespace tegula::bench
