//===- Bench.cpp - tegula bench ---------------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Child.h"
#include "bench/Harness.h"
#include "driver/Ablate.h"
#include "driver/CheckKernels.h"
#include "driver/Commands.h"
#include "driver/FileIO.h"
#include "driver/InstanceArgs.h"
#include "driver/Load.h"
#include "driver/Programs.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tegula::bench;

namespace tegula {

static cl::SubCommand sub("bench", "Compare kernels with libtorch, in error and in time");
static cl::list<std::string> paths(cl::Positional, cl::OneOrMore, cl::desc("FILE-OR-FOLDER..."),
                                   cl::sub(sub));
static cl::opt<std::string> kernelName("kernel", cl::value_desc("NAME"),
                                       cl::desc("This kernel alone (default: those that the "
                                                "reference has a function for)"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::opt<std::string> reference("ref", cl::value_desc("FILE"),
                                      cl::desc("The reference: TorchScript text or a .pt module "
                                               "(default: FILE.ref.py beside FILE.tgl)"),
                                      cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> sizeTexts("d", cl::value_desc("M=64,N=128"),
                                       cl::desc("Run at these sizes instead of the reference's"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> constantTexts("p", cl::value_desc("eps=1e-3"),
                                           cl::desc("Constants, scalars"), cl::cat(inputOptions),
                                           cl::sub(sub));
static cl::list<std::string> typeTexts("type", cl::value_desc("T=f16"),
                                       cl::desc("Types of generic parameters"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::opt<std::string> precision("precision", cl::value_desc("f32|tf32|conv_tf32|bf16"),
                                      cl::desc("Of products, for a kernel that does not say"),
                                      cl::cat(precisionOptions), cl::sub(sub));
static cl::opt<std::string>
    tensorTile("tensor-tile", cl::value_desc("128x128-packed"),
               cl::desc("The tile of matrix products on tensor cores, where it is possible"),
               cl::cat(schedulingOptions), cl::sub(sub));
static cl::opt<std::string> target("target", cl::value_desc("cpu|cuda|emulate"),
                                   cl::desc("The machine"), cl::init("cpu"), cl::cat(targetOptions),
                                   cl::sub(sub));
static cl::opt<bool> tuned("tuned",
                           cl::desc("On a device: with the schedules that `tegula tune` kept"),
                           cl::cat(schedulingOptions), cl::sub(sub));
static cl::opt<bool> gradient("grad",
                              cl::desc("Compare the kernels' gradients with autograd's of the "
                                       "references, and the times of the backward passes alone"),
                              cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<bool> checkOnly("check", cl::desc("Only the cases for correctness"),
                               cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<std::string>
    ablatePasses("ablate", cl::ValueOptional, cl::value_desc("licm,gvn"),
                 cl::desc("Leave out each pass in turn, ours and LLVM's, or those named, "
                          "and tell what it is worth; without libtorch"),
                 cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<bool> dependentLaunches(
    "dependent-launches",
    cl::desc("Let a kernel's launches start early and wait on the device (sm_90)"),
    cl::cat(schedulingOptions), cl::sub(sub));
static cl::opt<unsigned>
    graphCalls("graph", cl::value_desc("CALLS"),
               cl::desc("Time so many calls captured in a CUDA graph, libtorch's too (at least 1)"),
               cl::init(0), cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<bool> checkedMode("checked",
                                 cl::desc("Verify every access and definition while running"),
                                 cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<std::string> timelineFile(
    "timeline", cl::value_desc("FILE"),
    cl::desc("On a device: what each warp does in a run of the first case, in time, as "
             "a trace for Perfetto; of code with marks, beside what is timed"),
    cl::cat(outputOptions), cl::sub(sub));
static cl::opt<bool> summary("summary", cl::desc("One table of the timed cases of all files"),
                             cl::cat(outputOptions), cl::sub(sub));
static cl::opt<bool>
    lock("lock",
         cl::desc("Record the times of timed cases and their noise in FILE.lock.json beside "
                  "FILE.tgl, to which later runs are held"),
         cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<bool> json("json", cl::desc("Print one JSON object a case (docs/bench.md)"),
                          cl::cat(outputOptions), cl::sub(sub));
static cl::opt<unsigned> threads("threads",
                                 cl::desc("Threads of kernel and libtorch (default: all)"),
                                 cl::init(0), cl::cat(targetOptions), cl::sub(sub));
static cl::opt<uint64_t> seed("seed", cl::desc("Seed of the inputs"), cl::init(0),
                              cl::cat(inputOptions), cl::sub(sub));
static cl::opt<double> seconds("seconds", cl::desc("Time to measure for, each case"), cl::init(1),
                               cl::cat(measuringOptions), cl::sub(sub));
static cl::opt<double> deadline("deadline",
                                cl::desc("Seconds after which a case that hangs is given up"),
                                cl::init(300), cl::cat(measuringOptions), cl::sub(sub));

namespace {

std::string timeText(double value) {
  const char *units[] = {"s", "ms", "us", "ns"};
  size_t unit = 0;
  while (unit + 1 < std::size(units) && value < 1) {
    value *= 1000;
    ++unit;
  }
  std::string text;
  raw_string_ostream(text) << format(value < 10    ? "%.2f "
                                     : value < 100 ? "%.1f "
                                                   : "%.0f ",
                                     value)
                           << units[unit];
  return text;
}

std::string errorText(double value) {
  std::string text;
  raw_string_ostream(text) << format(value == 0 ? "%.0f" : "%.1e", value);
  return text;
}

std::string quotient(double value) {
  std::string text;
  raw_string_ostream(text) << format("%.2fx", value);
  return text;
}

std::string percent(double share) {
  std::string text;
  raw_string_ostream(text) << format("%.0f %%", 100 * share);
  return text;
}

/// The share of the roofline. It is of data that are read in full from memory, and says nothing
/// where it is beyond 100 %: they were in a cache, or were not all needed.
std::string shareText(const json::Object &roofline) {
  double share = *roofline.getNumber("share");
  return share > 1 ? "n/a" : percent(share);
}

/// What makes times doubtful, or nothing: other programs that work beside, or calls that differ
/// much.
std::string doubtOf(const json::Object &event) {
  constexpr double fewProcessors = 0.2, wideSpread = 0.3;
  auto spreadOf = [&](StringRef name) {
    const json::Object *time = event.getObject(name);
    double median = *time->getNumber("median");
    return median > 0 ? (*time->getNumber("upper") - *time->getNumber("lower")) / median : 0;
  };
  double others = event.getNumber("otherProcessors").value_or(0);
  double spread = std::max(spreadOf("time"), spreadOf("libtorchTime"));
  std::string text;
  raw_string_ostream os(text);
  if (others > fewProcessors)
    os << "other programs kept " << format("%.1f", others) << " processors from it";
  if (spread > wideSpread)
    os << (text.empty() ? "" : ", ") << "quartiles are " << percent(spread) << " apart";
  return text;
}

/// Counts and prints what children say.
class Report {
public:
  unsigned passed = 0, failed = 0;
  ExitCode exit = ExitSuccess;

  void worsen(ExitCode code) { exit = worse(exit, code); }

  void caseEnded(StringRef path, json::Object event) {
    bool good = event.getBoolean("passed").value_or(false);
    ++(good ? passed : failed);
    if (!good)
      worsen(ExitWrongResult);
    if (::tegula::json) {
      event["file"] = path.str();
      outs() << json::Value(std::move(event)) << '\n';
    } else if (!good || !summary) {
      line(path, event, good);
    } else if (event.getObject("time")) {
      row(path, event);
    }
    outs().flush();
  }

private:
  /// Error of the worst output, the kernel's and libtorch's.
  static std::pair<double, double> errors(const json::Object &event) {
    std::pair<double, double> worst;
    if (const json::Array *outputs = event.getArray("outputs"))
      for (const json::Value &output : *outputs) {
        const json::Object &one = *output.getAsObject();
        worst.first = std::max(worst.first, *one.getObject("kernel")->getNumber("norm"));
        worst.second = std::max(worst.second, *one.getObject("libtorch")->getNumber("norm"));
      }
    return worst;
  }

  /// Of the worst output, or of a gradient of each, beside libtorch's.
  static std::string errorsText(const json::Object &event) {
    if (!event.get("backwardOf")) {
      auto [ours, torchs] = errors(event);
      return errorText(ours) + " (libtorch " + errorText(torchs) + ")";
    }
    std::string text;
    raw_string_ostream os(text);
    interleaveComma(*event.getArray("outputs"), os, [&](const json::Value &output) {
      const json::Object &one = *output.getAsObject();
      os << *one.getString("name") << ' ' << errorText(*one.getObject("kernel")->getNumber("norm"))
         << " (autograd " << errorText(*one.getObject("libtorch")->getNumber("norm")) << ")";
    });
    return text;
  }

  /// The speed's range in 95 of 100 measurements.
  static std::string interval(const json::Object &event) {
    std::string text;
    raw_string_ostream(text) << format("%.2f to %.2f", *event.getNumber("speedupLower"),
                                       *event.getNumber("speedupUpper"));
    return text;
  }

  static std::string label(StringRef path, const json::Object &event) {
    StringRef kernel = *event.getString("kernel"), stem = sys::path::stem(path);
    StringRef entry = event.getString("backwardOf").value_or(kernel);
    return entry == stem ? kernel.str() : (stem + ":" + kernel).str();
  }

  void line(StringRef path, const json::Object &event, bool good) {
    outs() << event.getString("prints").value_or("");
    outs() << (good ? "ok    " : "FAIL  ") << label(path, event) << "  "
           << *event.getString("case");
    if (!good) {
      outs() << "\n      " << event.getString("reason").value_or("") << '\n';
      return;
    }
    outs() << "  error " << errorsText(event);
    if (const json::Object *time = event.getObject("time")) {
      const json::Object &other = *event.getObject("libtorchTime");
      outs() << "\n      " << timeText(*time->getNumber("median")) << " ("
             << timeText(*time->getNumber("lower")) << " to " << timeText(*time->getNumber("upper"))
             << ", " << *time->getInteger("calls") << " calls), "
             << (event.get("backwardOf") ? "autograd " : "libtorch ")
             << timeText(*other.getNumber("median")) << " (" << timeText(*other.getNumber("lower"))
             << " to " << timeText(*other.getNumber("upper"))
             << "): " << quotient(*event.getNumber("speedup")) << " ("
             << quotient(*event.getNumber("speedupLower")) << " to "
             << quotient(*event.getNumber("speedupUpper")) << "); "
             << format("%.1f GB/s, %.1f GFLOP/s", *event.getNumber("gigabytesPerSecond"),
                       *event.getNumber("gigaflopsPerSecond"));
      if (const json::Object *roofline = event.getObject("roofline"))
        outs() << ", "
               << (*roofline->getNumber("share") > 1 ? "beyond the roofline of memory"
                                                     : shareText(*roofline) + " of the roofline");
      if (const json::Object *bound = event.getObject("bound"))
        outs() << format(", %.2f of the bound (expected %.2f)", *bound->getNumber("share"),
                         *bound->getNumber("expectedShare"));
      if (std::string doubt = doubtOf(event); !doubt.empty())
        outs() << "\n      the machine is busy: " << doubt;
    }
    outs() << '\n';
  }

  void row(StringRef path, const json::Object &event) {
    if (!hasHeader)
      outs() << left_justify("kernel", 20) << left_justify("sizes", 44) << right_justify("error", 9)
             << right_justify("libtorch", 10) << right_justify("time", 10)
             << right_justify("libtorch", 10) << right_justify("speed", 8)
             << right_justify("interval", 16) << right_justify("roofline", 10) << '\n';
    hasHeader = true;
    auto [ours, torchs] = errors(event);
    outs() << left_justify(label(path, event), 20) << left_justify(*event.getString("case"), 44)
           << right_justify(errorText(ours), 9) << right_justify(errorText(torchs), 10)
           << right_justify(timeText(*event.getObject("time")->getNumber("median")), 10)
           << right_justify(timeText(*event.getObject("libtorchTime")->getNumber("median")), 10)
           << right_justify(quotient(*event.getNumber("speedup")), 8)
           << right_justify(interval(event), 16);
    const json::Object *roofline = event.getObject("roofline");
    outs() << right_justify(roofline ? shareText(*roofline) : "", 10);
    outs() << (doubtOf(event).empty() ? "" : "  busy") << '\n';
  }

  bool hasHeader = false;
};

/// The first one is written: of the first case of the first file.
void writeTimeline(StringRef trace, Report &report) {
  static bool isWritten = false;
  if (std::exchange(isWritten, true))
    return;
  if (Error error = writeFile(timelineFile, trace)) {
    report.worsen(ExitMissingResource);
    errs() << "tegula: " << toString(std::move(error)) << '\n';
  }
}

/// Runs all cases of one file, in as many children as it takes. Times to record go to `taken`.
void benchCases(const std::string &path, const HarnessOptions &options, Report &report,
                std::vector<LockedTime> &taken) {
  for (unsigned firstCase = 0;;) {
    json::Object begun;
    std::string running; // the launch
    bool stopped = false;
    auto work = [&](function_ref<void(StringRef)> send) -> int {
      std::unique_ptr<LoadedFile> loaded = load(path);
      auto sendObject = [&](json::Object event) {
        std::string text;
        raw_string_ostream(text) << json::Value(std::move(event));
        send(text);
      };
      if (!loaded) {
        sendObject(json::Object{{"event", "error"}, {"exit", int(ExitWrongCall)}, {"message", ""}});
        return 0;
      }
      if (tellSyntaxErrors(*loaded)) {
        sendObject(
            json::Object{{"event", "error"}, {"exit", int(ExitWrongProgram)}, {"message", ""}});
        return 0;
      }
      return !runCases(path, *loaded->module, loaded->diagnostics, options, firstCase, sendObject);
    };
    auto receive = [&](StringRef line) {
      Expected<json::Value> event = json::parse(line);
      if (!event) {
        consumeError(event.takeError());
        return; // a library's own chatter cannot reach this pipe; a broken line is the child's
                // death
      }
      json::Object &object = *event->getAsObject();
      StringRef kind = *object.getString("event");
      if (kind == "begin") {
        begun = object;
      } else if (kind == "launch") {
        running = object.getString("text")->str();
      } else if (kind == "case") {
        firstCase = *object.getInteger("index") + 1;
        begun = json::Object();
        if (const json::Object *time = object.getObject("lock"))
          if (std::optional<LockedTime> one = lockedTime(*time);
              one && object.getBoolean("passed").value_or(false))
            taken.push_back(std::move(*one));
        if (std::optional<StringRef> trace = object.getString("timeline")) {
          writeTimeline(*trace, report);
          object.erase("timeline");
        }
        report.caseEnded(path, std::move(object));
      } else if (kind == "lost") {
        begun["reason"] = object.getString("reason")->str();
      } else {
        stopped = true;
        report.worsen(static_cast<ExitCode>(*object.getInteger("exit")));
        StringRef message = *object.getString("message");
        if (!message.empty())
          errs() << "tegula: " << path << ": " << message << (message.ends_with("\n") ? "" : "\n");
      }
    };
    ChildEnd end = runInChild(work, receive, deadline);
    if (end.ok() || stopped)
      return;
    if (begun.empty()) {
      report.worsen(ExitInternalError);
      errs() << "tegula: " << path << ": the process for its cases " << end.text << '\n';
      return;
    }
    // The case in which the child died has failed; the next child goes on behind it.
    firstCase = *begun.getInteger("index") + 1;
    begun["passed"] = false;
    if (!begun.getString("reason"))
      begun["reason"] = (running.empty() ? "" : running + ": ") + "the process " + end.text;
    report.caseEnded(path, std::move(begun));
  }
}

/// The same, held to the lock file beside the program, or with --lock writing it.
void benchFile(const std::string &path, HarnessOptions options, Report &report) {
  std::string beside = lockPath(path);
  auto tell = [&](Error error, ExitCode code) {
    errs() << "tegula: " << toString(std::move(error)) << '\n';
    report.worsen(code);
  };
  Expected<std::vector<LockedTime>> locked = readLock(beside);
  if (!locked)
    return tell(locked.takeError(), ExitWrongCall);
  options.lock = std::move(*locked);
  std::vector<LockedTime> taken;
  benchCases(path, options, report, taken);
  if (taken.empty())
    return;
  if (Error error = writeLock(beside, taken))
    return tell(std::move(error), ExitMissingResource);
  errs() << "tegula: " << beside << ": " << taken.size() << " times recorded\n";
}

ExitCode run() {
  if (target != "cpu" && target != "cuda" && target != "emulate") {
    errs() << "tegula: --target takes cpu, cuda or emulate, not '" << target << "'\n";
    return ExitWrongCall;
  }
  std::vector<std::string> files;
  if (!findPrograms(paths, files, /*withReference=*/reference.empty()))
    return ExitWrongCall;
  HarnessOptions options;
  options.kernel = kernelName;
  options.reference = reference;
  options.target = target;
  options.checkOnly = checkOnly || target == "emulate"; // whose time says nothing
  options.checked = checkedMode;
  options.gradient = gradient;
  options.dependentLaunches = dependentLaunches;
  options.graphCalls = graphCalls;
  if (graphCalls.getNumOccurrences() &&
      (graphCalls < 1 || graphCalls > 10000 || target != "cuda")) {
    errs() << "tegula: --graph takes 1 to 10000 calls, with --target=cuda\n";
    return ExitWrongCall;
  }
  if (gradient && (graphCalls || ablatePasses.getNumOccurrences())) {
    errs() << "tegula: --grad times backward passes call by call: it takes no --graph and no "
              "--ablate\n";
    return ExitWrongCall;
  }
  options.tensorTile = tensorTile;
  options.tuned = tuned;
  options.precision = precision;
  if (!isTensorTile(tensorTile) || !isPrecision(precision))
    return ExitWrongCall;
  options.threads = threads;
  options.seed = seed;
  options.limits.seconds = seconds;
  options.takesLock = lock;
  options.takesTimeline = !timelineFile.empty();
  if (options.takesTimeline && (target == "cpu" || gradient)) {
    errs() << "tegula: --timeline is of a kernel's launches on --target=cuda or emulate, without "
              "--grad\n";
    return ExitWrongCall;
  }
  if (lock && options.checkOnly) {
    errs() << "tegula: --lock records times: it takes no --check, and no --target=emulate\n";
    return ExitWrongCall;
  }
  if (!readSettings({sizeTexts, constantTexts, typeTexts}, options.settings))
    return ExitWrongCall;
  if (ablatePasses.getNumOccurrences()) {
    if (options.checkOnly || checkedMode || dependentLaunches || summary || lock ||
        graphCalls) { // checkOnly: also the emulator
      errs() << "tegula: --ablate times on cpu or cuda: it takes no --check, --checked, --summary, "
                "--lock, --graph or "
                "--dependent-launches\n";
      return ExitWrongCall;
    }
    StudyOptions study;
    study.kernel = kernelName;
    study.reference = reference;
    study.settings = options.settings;
    study.target = target;
    study.threads = threads;
    study.seed = seed;
    study.limits.seconds = seconds.getNumOccurrences() ? seconds : 0.2; // for each pass
    SmallVector<StringRef> passes;
    StringRef(ablatePasses).split(passes, ',', -1, /*KeepEmpty=*/false);
    return runAblation(files, study, passes, deadline, json);
  }
  Report report;
  for (const std::string &path : files)
    benchFile(path, options, report);
  if (!json)
    outs() << report.passed << " passed, " << report.failed << " failed\n";
  return report.exit;
}

} // namespace

const Command benchCommand = {sub, run};

} // namespace tegula
