//===- Tune.cpp - tegula tune -----------------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Tune.h"
#include "driver/CaseStudies.h"
#include "driver/Commands.h"
#include "driver/InstanceArgs.h"
#include "support/DiskCache.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;
using namespace tegula::bench;

namespace tegula {

static cl::SubCommand sub("tune", "Time other schedules of kernels and keep those that are faster");
static cl::list<std::string> paths(cl::Positional, cl::OneOrMore, cl::desc("FILE..."),
                                   cl::sub(sub));
static cl::opt<std::string>
    kernelName("kernel", cl::value_desc("NAME"),
               cl::desc("The kernel (default: those that FILE.ref.py has cases for)"),
               cl::cat(inputOptions), cl::sub(sub));
static cl::opt<std::string>
    reference("ref", cl::value_desc("FILE"),
              cl::desc("Where the cases are (default: FILE.ref.py beside FILE.tgl)"),
              cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> sizeTexts("d", cl::value_desc("M=64,N=128"),
                                       cl::desc("Sizes (default: the cases that are timed)"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> constantTexts("p", cl::value_desc("eps=1e-3"),
                                           cl::desc("Constants, scalars"), cl::cat(inputOptions),
                                           cl::sub(sub));
static cl::list<std::string> typeTexts("type", cl::value_desc("T=f16"),
                                       cl::desc("Types of generic parameters"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::opt<std::string> target("target", cl::value_desc("cuda"), cl::desc("The machine"),
                                   cl::init("cuda"), cl::cat(targetOptions), cl::sub(sub));
static cl::opt<unsigned> most("configurations",
                              cl::desc("To be timed for a case, at most (2 to 16)"), cl::init(16),
                              cl::cat(schedulingOptions), cl::sub(sub));
static cl::opt<double> seconds("seconds", cl::desc("Time to measure for, each configuration"),
                               cl::init(0.1), cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<double>
    deadline("deadline", cl::desc("Seconds after which a configuration that hangs is given up"),
             cl::init(60), cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<uint64_t> seed("seed", cl::desc("Seed of the inputs"), cl::init(0),
                              cl::cat(inputOptions), cl::sub(sub));
static cl::opt<bool> json("json", cl::desc("Print one JSON object an event (docs/bench.md)"),
                          cl::cat(outputOptions), cl::sub(sub));

namespace {

/// What an event tells of a configuration.
Tried triedOf(const json::Object &event) {
  Tried tried;
  tried.choice = *ScheduleChoice::parse(*event.getString("choice"));
  tried.outcome = event.getString("outcome")->str();
  if (tried.outcome == "timed") {
    tried.ratio = *event.getNumber("ratio");
    tried.lower = *event.getNumber("lower");
    tried.upper = *event.getNumber("upper");
  }
  return tried;
}

/// Times schedules of each case, prints what came of them and keeps what a case ends with.
class Tuning : public CaseStudies {
public:
  Expected<bool> runTrials(Study &study, const StudyCase &one, Send send) override {
    return tune(study, one, most, tried, send);
  }
  StringRef trialName() const override { return "tried"; }

  void forgetCase() override {
    tried.clear();
    same.clear();
  }

  void beginCase(StringRef path, StringRef text) override {
    title = (sys::path::stem(path) + "  " + text).str();
    isTitled = json;
  }

  void add(json::Object event) override {
    // Told once there is something to tell of it: a device, for one.
    if (!isTitled)
      outs() << title << '\n';
    isTitled = true;
    if (json) {
      json::Object line = event;
      line["case"] = title;
      line.erase("program");
      outs() << json::Value(std::move(line)) << '\n';
    }
    StringRef kind = *event.getString("event");
    if (kind == "base") {
      row("default", *event.getNumber("seconds"), "");
    } else if (kind == "tried") {
      tried.push_back(triedOf(event));
      addTried(event);
    } else {
      keep(event);
    }
    outs().flush();
  }

  void endCase() override {}

  void end() {
    if (!json && cases)
      outs() << "default schedule against the tuned one: " << format("%.3f", std::exp(logs / cases))
             << " geometric mean over " << cases << (cases == 1 ? " case\n" : " cases\n");
  }

private:
  void row(StringRef choice, double time, const Twine &rest) {
    if (!json)
      outs() << "  " << left_justify(choice, 44) << format("%10.2f us", time * 1e6) << rest << '\n';
  }

  static std::string share(const json::Object &event) {
    std::string text;
    raw_string_ostream(text) << format("%.3f (%.3f to %.3f)", *event.getNumber("ratio"),
                                       *event.getNumber("lower"), *event.getNumber("upper"));
    return text;
  }

  void addTried(const json::Object &event) {
    StringRef outcome = *event.getString("outcome"), phase = *event.getString("phase");
    std::string choice =
        ((phase == "alone" ? "" : phase + ": ") + *event.getString("choice")).str();
    if (outcome == "same") {
      same.push_back(std::move(choice));
      return;
    }
    if (outcome == "timed")
      return row(choice, *event.getNumber("seconds"), "  " + share(event));
    if (outcome != "dropped")
      exit = worse(exit, ExitWrongResult);
    if (!json)
      outs() << "  " << left_justify(choice, 44) << outcome << ": "
             << event.getString("reason")->rtrim() << '\n';
  }

  /// All is known of the case: now it is kept.
  void keep(const json::Object &event) {
    TunedKey key;
    key.program = event.getString("program")->str();
    for (const auto &[name, value] : *event.getObject("sizes"))
      key.sizes[name.str()] = *value.getAsInteger();
    key.target = event.getString("target")->str();
    key.device = event.getString("device")->str();
    StringRef text = *event.getString("choice");
    keepTuned(key, *ScheduleChoice::parse(text));
    ++cases;
    logs += std::log(*event.getNumber("ratio"));
    if (json)
      return;
    if (!same.empty())
      outs() << "  the same code: " << join(same, ", ") << '\n';
    if (text == "default")
      outs() << "  kept: the default; nothing is faster beyond doubt\n\n";
    else
      outs() << "  kept: " << text << ", " << share(event) << " of the default's time\n\n";
  }

  std::vector<Tried> tried; // of this case
  std::string title;
  bool isTitled = false;
  std::vector<std::string> same;
  double logs = 0;
  unsigned cases = 0;
};

ExitCode run() {
  auto wrongCall = [](const Twine &message) {
    errs() << "tegula: " << message << '\n';
    return ExitWrongCall;
  };
  if (target != "cuda")
    return wrongCall(
        "tune takes --target=cuda, whose code is made for the sizes of a launch, not '" + target +
        "'");
  if (most < 2 || most > 16)
    return wrongCall("--configurations takes 2 to 16, not " + Twine(most));
  StudyOptions options;
  options.kernel = kernelName;
  options.reference = reference;
  options.target = target;
  options.seed = seed;
  options.sets = 1;
  options.listTiles = true;
  options.limits.seconds = seconds;
  if (!readSettings({sizeTexts, constantTexts, typeTexts}, options.settings))
    return ExitWrongCall;
  if (DiskCache::fromEnvironment().isOff())
    errs() << "tegula: the cache on disk is off, so nothing is kept\n";
  Tuning tuning;
  tuning.run(paths, options, deadline);
  tuning.end();
  return tuning.exit;
}

} // namespace

const Command tuneCommand = {sub, run};

} // namespace tegula
