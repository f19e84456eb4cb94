//===- Bisect.cpp - tegula bisect -------------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Bisect.h"
#include "bench/Child.h"
#include "driver/CheckKernels.h"
#include "driver/Commands.h"
#include "driver/InstanceArgs.h"
#include "driver/Load.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace llvm;
using namespace tegula::bench;

namespace tegula {

static cl::SubCommand sub("bisect", "Find the pass after which a result or a time goes wrong");
static cl::opt<std::string> path(cl::Positional, cl::Required, cl::desc("FILE"), cl::sub(sub));
static cl::opt<std::string> kernelName("kernel", cl::value_desc("NAME"),
                                       cl::desc("The kernel (default: the file's last)"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> sizeTexts("d", cl::value_desc("M=64,N=128"),
                                       cl::desc("Sizes (default: the first case of FILE.ref.py)"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> constantTexts("p", cl::value_desc("eps=1e-3"),
                                           cl::desc("Constants, scalars"), cl::cat(inputOptions),
                                           cl::sub(sub));
static cl::list<std::string> typeTexts("type", cl::value_desc("T=f16"),
                                       cl::desc("Types of generic parameters"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::opt<std::string> target("target", cl::value_desc("cpu|cuda|emulate"),
                                   cl::desc("The machine"), cl::init("cpu"), cl::cat(targetOptions),
                                   cl::sub(sub));
static cl::opt<bool> exact("exact", cl::desc("Every bit must stay"), cl::cat(measuringOptions),
                           cl::sub(sub));
static cl::opt<bool>
    timeMode("time", cl::desc("Look for the run after which the kernel is slower, not wrong"),
             cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<double> slower("slower", cl::value_desc("1.1"), cl::init(1.1),
                              cl::desc("With --time: how many times as long is wrong"),
                              cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<uint64_t> from("from", cl::desc("With --time: the first run"), cl::init(1),
                              cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<uint64_t> to("to", cl::desc("With --time: the last run (default: of all)"),
                            cl::init(PassRuns::all), cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<unsigned> threads("threads", cl::desc("Threads of the kernel (default: all)"),
                                 cl::init(0), cl::cat(targetOptions), cl::sub(sub));
static cl::opt<uint64_t> seed("seed", cl::desc("Seed of the inputs"), cl::init(0),
                              cl::cat(inputOptions), cl::sub(sub));
static cl::opt<double> seconds("seconds", cl::desc("With --time: time to measure for, each run"),
                               cl::init(0.2), cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<double> deadline("deadline",
                                cl::desc("Seconds after which code that hangs is given up"),
                                cl::init(300), cl::cat(measuringOptions), cl::sub(sub));

namespace {

using Send = function_ref<void(json::Object)>;

/// What the command is asked about, found out in children.
class Bisection {
public:
  explicit Bisection(StudyOptions options) : options(std::move(options)) {}

  ExitCode run() {
    auto find = [&](Study &study, Send send) -> Error {
      Expected<std::vector<std::string>> found = findNeeded(study);
      if (!found)
        return found.takeError();
      send(json::Object{{"event", "needed"}, {"passes", json::Array(*found)}});
      return Error::success();
    };
    inChild(find, [&](const json::Object &event) {
      for (const json::Value &pass : *event.getArray("passes"))
        needed.push_back(pass.getAsString()->str());
    });
    if (exit != ExitSuccess)
      return exit;
    return timeMode ? timeAll() : judgeAll();
  }

private:
  /// Runs `work` on the study in a child. What it sends goes to `receive`, errors to `exit`. How it
  /// ended.
  ChildEnd inChild(function_ref<Error(Study &, Send)> work,
                   function_ref<void(const json::Object &)> receive) {
    bool isDone = false;
    ChildEnd end = runInChild(
        [&](function_ref<void(StringRef)> sendLine) -> int {
          auto send = [&](json::Object event) {
            std::string text;
            raw_string_ostream(text) << json::Value(std::move(event));
            sendLine(text);
          };
          ::setenv("TEGULA_CACHE_DIR", "", 1);
          std::pair<int, std::string> failure = studyWith(work, send);
          send(
              json::Object{{"event", "end"}, {"exit", failure.first}, {"message", failure.second}});
          return 0;
        },
        [&](StringRef line) {
          Expected<json::Value> event = json::parse(line);
          if (!event)
            return consumeError(event.takeError()); // a broken line is the child's death
          const json::Object &object = *event->getAsObject();
          if (*object.getString("event") != "end")
            return receive(object);
          isDone = true;
          exit = static_cast<ExitCode>(*object.getInteger("exit"));
          StringRef message = *object.getString("message");
          if (!message.empty())
            errs() << "tegula: " << path << ": " << message
                   << (message.ends_with("\n") ? "" : "\n");
        },
        deadline);
    if (!isDone && end.ok())
      end = {ChildEnd::Failed, 0, "ended early"};
    return isDone ? ChildEnd() : end;
  }

  std::pair<int, std::string> studyWith(function_ref<Error(Study &, Send)> work, Send send) {
    std::unique_ptr<LoadedFile> loaded = load(path);
    if (!loaded)
      return {ExitWrongCall, ""};
    if (tellSyntaxErrors(*loaded))
      return {ExitWrongProgram, ""};
    auto failure = [&](Error error) -> std::pair<int, std::string> {
      int code = isMissingResource(error)          ? ExitMissingResource
                 : error.isA<LaunchError>()        ? ExitWrongCall
                 : loaded->diagnostics.hasErrors() ? ExitWrongProgram
                                                   : ExitInternalError;
      return {code, toString(std::move(error))};
    };
    Expected<std::unique_ptr<Study>> study =
        Study::make(path, *loaded->module, loaded->diagnostics, options);
    if (!study)
      return failure(study.takeError());
    if (Error error = (*study)->select((*study)->cases().front()))
      return failure(std::move(error));
    if (Error error = work(**study, send))
      return failure(std::move(error));
    return {ExitSuccess, ""};
  }

  Prefix ask(uint64_t count) {
    Prefix prefix;
    auto work = [&](Study &study, Send send) -> Error {
      std::vector<PassRuns::Run> made;
      Expected<Prefix> judged = judge(study, needed, count, exact, made);
      if (!judged)
        return judged.takeError();
      json::Array runs;
      for (const PassRuns::Run &run : made)
        runs.push_back(json::Array{run.pass, run.where});
      send(json::Object{{"event", "prefix"},
                        {"state", static_cast<int>(judged->state)},
                        {"reason", judged->reason},
                        {"runs", std::move(runs)}});
      return Error::success();
    };
    ChildEnd end = inChild(work, [&](const json::Object &event) {
      prefix.state = static_cast<Prefix::State>(*event.getInteger("state"));
      prefix.reason = event.getString("reason")->str();
      if (const json::Array *made = event.getArray("runs"); made && made->size() >= runs.size()) {
        runs.clear();
        for (const json::Value &one : *made)
          runs.push_back({(*one.getAsArray())[0].getAsString()->str(),
                          (*one.getAsArray())[1].getAsString()->str()});
      }
    });
    if (!end.ok() && prefix.state == Prefix::Unknown)
      prefix = {Prefix::Bad, "the process " + end.text};
    return prefix;
  }

  ExitCode judgeAll() {
    Prefix none = ask(0);
    if (exit != ExitSuccess)
      return exit;
    uint64_t start = 0;
    // Passes that are needed together only: those of the beginning.
    while (none.state == Prefix::None && start < 64)
      none = ask(++start);
    Prefix all = ask(PassRuns::all);
    if (exit != ExitSuccess)
      return exit;
    if (all.state == Prefix::Good) {
      outs() << "the results after all " << runs.size()
             << " runs of passes are those of none: nothing is wrong\n";
      return ExitSuccess;
    }
    if (runs.empty() && all.state != Prefix::Good) { // it crashed: the code of fewer tells the runs
      errs() << "tegula: " << path << ": the compilation of all passes " << all.reason << '\n';
      return ExitInternalError;
    }
    std::string reason = all.reason;
    Culprit found = bisect(start, runs.size(), [&](uint64_t count) {
      Prefix prefix = ask(count);
      if (prefix.state == Prefix::Bad)
        reason = prefix.reason;
      return prefix.state;
    });
    if (exit != ExitSuccess)
      return exit;
    tell(found.bad);
    if (found.bad - found.good > 1)
      outs() << "  or one of the " << found.bad - found.good - 1
             << " before it, with which alone there is no code\n";
    outs() << "  " << reason << '\n';
    return ExitWrongResult;
  }

  void tell(uint64_t count) {
    const PassRuns::Run &run = runs[count - 1];
    outs() << "after run " << count << " of " << runs.size() << ", " << run.pass
           << (run.where.empty() ? "" : " on " + run.where) << '\n';
  }

  ExitCode timeAll() {
    bool isSlower = false;
    outs() << "   run    time  kernel takes  after\n";
    auto work = [&](Study &study, Send send) -> Error {
      auto step = [&](uint64_t count, const PassRuns::Run &run, double ratio, double taken) {
        send(json::Object{{"event", "step"},
                          {"count", static_cast<int64_t>(count)},
                          {"pass", run.pass},
                          {"where", run.where},
                          {"ratio", ratio},
                          {"seconds", taken}});
      };
      return timeSteps(study, needed, from, to, step);
    };
    ChildEnd end = inChild(work, [&](const json::Object &event) {
      double ratio = *event.getNumber("ratio");
      bool isWrong = ratio > slower;
      isSlower |= isWrong;
      outs() << format("%6lld  %5.2fx  %9.2f us  ",
                       static_cast<long long>(*event.getInteger("count")), ratio,
                       1e6 * *event.getNumber("seconds"))
             << *event.getString("pass");
      if (!event.getString("where")->empty())
        outs() << " on " << *event.getString("where");
      outs() << (isWrong ? "  <- slower\n" : "\n");
      outs().flush();
    });
    if (!end.ok()) {
      errs() << "tegula: " << path << ": the process for the next run " << end.text << '\n';
      return ExitInternalError;
    }
    if (exit != ExitSuccess)
      return exit;
    return isSlower ? ExitWrongResult : ExitSuccess;
  }

  StudyOptions options;
  std::vector<std::string> needed;
  std::vector<PassRuns::Run> runs; // the longest list that some prefix has told
  ExitCode exit = ExitSuccess;
};

ExitCode run() {
  if (target != "cpu" && target != "cuda" && target != "emulate") {
    errs() << "tegula: --target takes cpu, cuda or emulate, not '" << target << "'\n";
    return ExitWrongCall;
  }
  if (timeMode && (exact || target == "emulate")) {
    errs() << "tegula: --time takes no --exact, and no --target=emulate, whose time says nothing\n";
    return ExitWrongCall;
  }
  StudyOptions options;
  options.kernel = kernelName;
  options.target = target;
  options.threads = threads;
  options.seed = seed;
  options.timedCases = timeMode;
  options.limits.seconds = seconds;
  if (!readSettings({sizeTexts, constantTexts, typeTexts}, options.settings))
    return ExitWrongCall;
  return Bisection(std::move(options)).run();
}

} // namespace

const Command bisectCommand = {sub, run};

} // namespace tegula
