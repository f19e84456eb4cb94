//===- Harness.cpp - Kernels held against their references ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Harness.h"

#include "bench/Compare.h"
#include "bench/GradientProgram.h"
#include "bench/Replay.h"
#include "bench/Roofline.h"
#include "bench/Runner.h"
#include "bench/report/LaunchTimes.h"
#include "bench/report/Trace.h"
#include "codegen/ptx/Assemble.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include <cstring>

using namespace llvm;

namespace tegula::bench {
namespace {

json::Object toJson(const Timing &timing) {
  return json::Object{{"median", timing.median},
                      {"lower", timing.lower},
                      {"upper", timing.upper},
                      {"calls", timing.calls}};
}

json::Object toJson(const ErrorMeasure &measure) {
  json::Object ulps;
  for (auto [label, count] : zip(ulpLabels, measure.ulps))
    if (count)
      ulps[label] = count;
  return json::Object{{"norm", measure.norm}, {"worst", measure.worst}, {"ulps", std::move(ulps)}};
}

/// Tells which launch runs, for the case that none comes after it.
class NotedLaunches : public LaunchWatch {
public:
  explicit NotedLaunches(function_ref<void(json::Object)> send) : send(send) {}
  ~NotedLaunches() override { send(json::Object{{"event", "launch"}, {"text", ""}}); }
  void begin(const LaunchNote &launch) override {
    send(json::Object{{"event", "launch"}, {"text", launch.text()}});
  }
  void end() override {}

private:
  function_ref<void(json::Object)> send;
};

/// Runs a launch whose code has marks, once to warm up and once for the trace, and gives the trace.
Expected<std::string> traceOf(Launch &launch) {
  const CompiledKernel &kernel = launch.machineCode();
  auto argument = find_if(kernel.arguments, [](const KernelArgument &one) {
    return one.name == async::Timeline::tensorName;
  });
  unsigned index = argument - kernel.arguments.begin();
  for (unsigned run = 0; run < 2; ++run) { // the first brings code and data into caches
    if (Error error = launch.prepare())
      return std::move(error);
    if (Expected<double> seconds = launch.run(); !seconds)
      return seconds.takeError();
  }
  Expected<std::vector<Tensor>> marks = launch.read(index);
  if (!marks)
    return marks.takeError();
  return report::traceText(kernel.timeline, marks->front().integers());
}

class Harness {
public:
  Harness(const std::string &path, const Module &module, Diagnostics &diagnostics,
          const HarnessOptions &options, function_ref<void(json::Object)> send)
      : path(path), module(module), diagnostics(diagnostics), options(options), send(send) {}

  bool run(unsigned firstCase) {
    if (!readReference())
      return true;
    unsigned index = 0;
    for (const auto &kernel : kernels) {
      Signature signature(*kernel.ast);
      for (const Case &one : casesOf(*kernel.function)) {
        if (index++ < firstCase)
          continue;
        if (!runCase(signature, kernel, one, index - 1))
          return !isLost;
      }
    }
    if (index == 0)
      fail(2,
           "'" + refPath + "' has no case; write one (# check: M=4, N=8), or give sizes with -d");
    return true;
  }

private:
  struct Tested {
    const ast::Kernel *ast;
    const RefFunction *function;
  };

  /// What the sets of inputs of one case are made of.
  struct Subjects {
    Runner &runner;
    const Signature &signature;
    const Tested &kernel;
    const Reference &reference;
    const Instance &instance;
    const ast::Kernel *measured; // the kernel, or its gradient
    GradientProgram *gradient;   // null: the kernel itself is measured
  };

  void fail(int exit, const Twine &message) {
    send(json::Object{{"event", "error"}, {"exit", exit}, {"message", message.str()}});
  }

  bool readReference() {
    refPath = options.reference;
    if (refPath.empty()) {
      SmallString<128> beside(path);
      sys::path::replace_extension(beside, "ref.py");
      refPath = beside.str().str();
    }
    std::string error;
    api = TorchLibrary::get(error);
    if (!api)
      return fail(3, error), false;
    bool isModule = StringRef(refPath).ends_with(".pt");
    if (isModule) {
      ref.functions.push_back({});
      ref.functions.back().name = "ref";
    } else {
      auto buffer = MemoryBuffer::getFile(refPath);
      if (!buffer)
        return fail(2,
                    "cannot read the reference '" + refPath + "': " + buffer.getError().message()),
               false;
      std::optional<RefFile> parsed = parseRefFile((*buffer)->getBuffer(), error);
      if (!parsed)
        return fail(2, "'" + refPath + "': " + error), false;
      ref = std::move(*parsed);
    }

    if (options.kernel.empty())
      for (const auto &kernel : module.file().kernels)
        for (const RefFunction &function : ref.functions)
          if (function.name == kernel->name.name)
            kernels.push_back({kernel.get(), &function});
    if (kernels.empty()) {
      const ast::Kernel *entry = module.entry(options.kernel);
      if (!entry)
        return fail(2, "'" + path + "' has no kernel" +
                           (options.kernel.empty() ? "" : " '" + options.kernel + "'")),
               false;
      const RefFunction *function = ref.find(entry->name.name);
      if (!function)
        return fail(2, "'" + refPath + "' has no function '" + entry->name.name + "' or 'ref'"),
               false;
      kernels.push_back({entry, function});
    }
    for (const Tested &kernel : kernels) {
      std::unique_ptr<Reference> compiled =
          isModule ? Reference::load(*api, refPath, error)
                   : Reference::compile(*api, ref.source, kernel.function->name, error);
      if (!compiled)
        return fail(2, "the reference '" + refPath + "' does not compile: " + error), false;
      references[kernel.function] = std::move(compiled);
    }
    return true;
  }

  std::vector<Case> casesOf(const RefFunction &function) {
    // Types and constants alone modify the file's cases, sizes replace them.
    bool hasSizes = any_of(options.settings, [&](const auto &setting) {
      return none_of(kernels, [&](const Tested &kernel) {
        Signature signature(*kernel.ast);
        return signature.find(setting.first) || is_contained(signature.genericTypes, setting.first);
      });
    });
    std::vector<Case> cases;
    if (hasSizes || function.cases.empty()) {
      cases.push_back({});
      cases.back().timed = !options.checkOnly;
    } else {
      for (const Case &one : function.cases)
        if (!one.timed || !options.checkOnly)
          cases.push_back(one);
    }
    for (Case &one : cases)
      for (const auto &setting : options.settings) {
        erase_if(one.values, [&](const auto &value) { return value.first == setting.first; });
        one.values.push_back(setting);
      }
    return cases;
  }

  /// False where the whole file can go no further.
  bool runCase(const Signature &signature, const Tested &kernel, const Case &one, unsigned index) {
    json::Object about{{"index", index},
                       {"kernel", kernel.ast->name.name},
                       {"case", one.text()},
                       {"timed", one.timed}};
    json::Object begin = about;
    begin["event"] = "begin";
    send(std::move(begin));
    about["event"] = "case";
    about["passed"] = false;

    const Reference &reference = *references.at(kernel.function);
    Instance instance;
    std::string error;
    if (!signature.sort(one.values, instance, error, evaluateConstant)) {
      about["reason"] = error;
      send(std::move(about));
      return true;
    }
    instance.options.kernel = kernel.ast->name.name;
    instance.options.precision = options.precision;
    // An optional tensor is passed where the reference wants it.
    for (const Signature::Parameter &parameter : signature.parameters)
      if (parameter.kind == Signature::Parameter::Tensor && parameter.isOptional &&
          is_contained(reference.parameters(), parameter.name))
        instance.options.givenOptionals.push_back(parameter.name);
    Runner *runner = compile(instance);
    if (!runner)
      return false;
    Subjects subjects{*runner, signature, kernel, reference, instance, kernel.ast, nullptr};
    if (options.gradient) {
      if (!hasFloatResult(*runner))
        return true; // of integers there is nothing to compare
      subjects.gradient = differentiate(kernel, instance);
      if (!subjects.gradient)
        return false;
      subjects.measured = &subjects.gradient->kernel();
      about["kernel"] = subjects.measured->name.name;
      about["backwardOf"] = kernel.ast->name.name;
    }
    if (Error failed = measure(subjects, one, about)) {
      failed = handleErrors(std::move(failed), [&](std::unique_ptr<CudaError> error) -> Error {
        isLost |= error->kind == CudaError::Fault;
        return Error(std::move(error));
      });
      about["passed"] = false;
      about["reason"] = toString(std::move(failed));
      if (isLost) {
        send(json::Object{{"event", "lost"}, {"reason", about.getString("reason")->str()}});
        return false;
      }
    }
    send(std::move(about));
    return true;
  }

  Runner *compile(const Instance &instance) {
    std::string key = instance.options.kernel + " " + instance.key();
    auto known = runners.find(key);
    if (known != runners.end())
      return known->second.get();
    CompileOptions compileOptions = optionsOf(instance);
    Expected<std::unique_ptr<Runner>> made = Runner::make(module, compileOptions, diagnostics);
    if (!made) {
      notCompiled(made.takeError());
      return nullptr;
    }
    if (!*made) {
      std::string text;
      raw_string_ostream stream(text);
      diagnostics.printText(stream, /*colors=*/false);
      fail(1, text);
      return nullptr;
    }
    (*made)->setThreads(options.threads);
    return (runners[key] = std::move(*made)).get();
  }

  CompileOptions optionsOf(const Instance &instance) const {
    CompileOptions result;
    result.instance = instance.options;
    result.target = options.target;
    result.checked = options.checked;
    result.dependentLaunches = options.dependentLaunches;
    result.pipeline.tensorTile = options.tensorTile;
    result.tuned = options.tuned;
    result.explain = options.target == "cuda";
    return result;
  }

  /// The first inputs for other code of the case, which `runner` holds.
  Expected<std::unique_ptr<Subject>> makeOther(const Subjects &subjects, ArrayRef<int64_t> sizes,
                                               const CompileOptions &compileOptions,
                                               std::unique_ptr<Runner> &runner) {
    Expected<std::unique_ptr<Runner>> made = Runner::make(module, compileOptions, diagnostics);
    if (!made)
      return made.takeError();
    if (!*made)
      return wrong("the program is refused with what a run looks at");
    runner = std::move(*made);
    Subjects other{*runner,           subjects.signature, subjects.kernel, subjects.reference,
                   subjects.instance, subjects.measured,  nullptr};
    return makeSet(other, sizes, 0);
  }

  /// The time line of a run of the first case, by code with marks, which is not timed.
  Error trace(const Subjects &subjects, ArrayRef<int64_t> sizes, json::Object &about) {
    if (!options.takesTimeline || isTraced || subjects.gradient)
      return Error::success();
    CompileOptions compileOptions = optionsOf(subjects.instance);
    compileOptions.timeline = true;
    std::unique_ptr<Runner> runner;
    Expected<std::unique_ptr<Subject>> subject = makeOther(subjects, sizes, compileOptions, runner);
    if (!subject)
      return subject.takeError();
    Expected<std::string> text = traceOf((*subject)->launch());
    if (!text)
      return text.takeError();
    about["timeline"] = std::move(*text);
    isTraced = true;
    return Error::success();
  }

  /// With `checked`: a run of the first inputs in which `print` and `assert` of the program look at
  /// it. It is none of those that are compared or timed, whose code has no trace of them.
  Error observe(const Subjects &subjects, ArrayRef<int64_t> sizes, json::Object &about) {
    if (!options.checked || subjects.gradient)
      return Error::success();
    CompileOptions compileOptions = optionsOf(subjects.instance);
    compileOptions.instance.observe = true;
    std::unique_ptr<Runner> runner;
    Expected<std::unique_ptr<Subject>> subject = makeOther(subjects, sizes, compileOptions, runner);
    if (!subject)
      return subject.takeError();
    Launch &launch = (*subject)->launch();
    // Without such statements there is nothing to run for.
    if (launch.kernel().observations.empty())
      return Error::success();
    if (Expected<double> seconds = launch.run(); !seconds)
      return seconds.takeError();
    Expected<Observed> seen = launch.observed();
    if (!seen)
      return seen.takeError();
    about["prints"] = seen->lines(defaultPrintPoints);
    std::optional<std::string> failure = seen->failure();
    return failure ? wrong(*failure) : Error::success();
  }

  void notCompiled(Error error) {
    int code = isMissingResource(error) ? 3 : error.isA<LaunchError>() ? 2 : 70;
    fail(code, toString(std::move(error)));
  }

  /// Whether the kernel gives floats at its types in this case.
  static bool hasFloatResult(const Runner &runner) {
    return any_of(runner.kernel().arguments, [](const KernelArgument &argument) {
      return isFloat(argument.dtype) &&
             (argument.role == KernelArgument::Out || argument.role == KernelArgument::Inout);
    });
  }

  /// The program of the kernel's gradients; null, told, where it has none.
  GradientProgram *differentiate(const Tested &kernel, const Instance &instance) {
    std::unique_ptr<GradientProgram> &known =
        gradients[instance.options.kernel + " " + instance.key()];
    if (known)
      return known.get();
    std::string refusal;
    Expected<std::unique_ptr<GradientProgram>> made =
        GradientProgram::make(module, *kernel.ast, instance, kernel.function->wrt,
                              optionsOf(instance), diagnostics, refusal);
    if (!made) {
      notCompiled(made.takeError());
      return nullptr;
    }
    if (!*made) {
      fail(1, refusal);
      return nullptr;
    }
    (*made)->setThreads(options.threads);
    known = std::move(*made);
    return known.get();
  }

  /// Set number `set` of the inputs.
  Expected<std::unique_ptr<Subject>> makeSet(const Subjects &subjects, ArrayRef<int64_t> sizes,
                                             unsigned set) const {
    Launch::Inputs inputs;
    inputs.specs = &subjects.kernel.function->inputs;
    inputs.scalars = subjects.instance.scalars;
    inputs.seed = options.seed * numSets + set;
    Launch::Inputs again;
    again.specs = inputs.specs;
    again.scalars = inputs.scalars;
    again.seed = inputs.seed;
    Expected<std::unique_ptr<Launch>> launch =
        Launch::make(subjects.runner, sizes, std::move(inputs));
    if (!launch)
      return launch.takeError();
    if (subjects.gradient)
      return subjects.gradient->subject(std::move(*launch), subjects.reference, std::move(again));
    return std::make_unique<ForwardSubject>(std::move(*launch), subjects.reference);
  }

  Error measure(const Subjects &subjects, const Case &one, json::Object &about) {
    Expected<SizeValues> sizes = subjects.runner.sizes(subjects.signature, subjects.instance);
    if (!sizes)
      return sizes.takeError();
    if (Error error = observe(subjects, *sizes, about))
      return error;
    // Bits of a gradient depend on the order of its sums, whatever the kernel's own are.
    bool exact = subjects.kernel.function->exact && !subjects.gradient;
    std::vector<std::unique_ptr<Subject>> sets;
    std::vector<std::vector<Tensor>> verified;
    for (unsigned set = 0; set < (one.timed ? numSets : 1); ++set) {
      Expected<std::unique_ptr<Subject>> subject = makeSet(subjects, *sizes, set);
      if (!subject)
        return subject.takeError();
      sets.push_back(std::move(*subject));
      json::Array outputs;
      if (Error error = check(*sets.back(), exact, outputs, verified))
        return error;
      if (set == 0 && options.tuned)
        about["schedule"] = sets.back()->launch().machineCode().choice.text();
      if (set == 0)
        about["outputs"] = std::move(outputs);
    }
    if (one.timed)
      if (Error error = hold(sets.front()->launch(), *subjects.measured, about, [&] {
            return time(sets, subjects.reference, verified, exact, about);
          }))
        return error;
    if (Error error = trace(subjects, *sizes, about))
      return error;
    about["passed"] = true;
    return Error::success();
  }

  static Error wrong(const Twine &why) {
    return make_error<LaunchError>(LaunchError::WrongResult, why.str());
  }

  /// The reference fails, which is no mistake of the kernel where there is no memory for it.
  static Error referenceFails(StringRef what, StringRef why) {
    if (!why.contains("out of memory") && !why.contains("no memory"))
      return wrong("the reference fails" + what + ": " + why);
    SmallVector<StringRef> lines;
    why.split(lines, '\n');
    StringRef line = *find_if(lines, [](StringRef line) { return line.contains("memory"); });
    return make_error<LaunchError>(LaunchError::OutOfMemory,
                                   ("there is no memory for the reference" + what +
                                    ": take smaller sizes, or a reference that computes its " +
                                    "result in parts where elements have 8 bytes (" + line.trim() +
                                    ")")
                                       .str());
  }

  /// One launch against the reference; an error says what is wrong. The results go to `verified`.
  Error check(Subject &subject, bool exact, json::Array &outputs,
              std::vector<std::vector<Tensor>> &verified) {
    Launch &launch = subject.launch();
    if (Error error = launch.prepare())
      return error;
    std::optional<NotedLaunches> noted;
    if (launch.cudaDevice())
      noted.emplace(send);
    Expected<double> seconds = launch.run(noted ? &*noted : nullptr);
    if (!seconds)
      return seconds.takeError();
    noted.reset();
    Expected<std::vector<Tensor>> results = launch.results();
    if (!results)
      return results.takeError();
    if (Error error = launch.prepare())
      return error;
    std::string why;
    std::optional<std::vector<Tensor>> truth = subject.expected(/*float64=*/true, why);
    if (!truth)
      return referenceFails(" in float64", why);
    std::optional<std::vector<Tensor>> eager = subject.expected(/*float64=*/false, why);
    if (!eager)
      return referenceFails("", why);
    if (results->size() != truth->size())
      return wrong("the kernel has " + Twine(results->size()) + " results, the reference " +
                   Twine(truth->size()));
    const CompiledKernel &kernel = launch.kernel();
    Error failure = Error::success();
    std::optional<std::vector<std::vector<double>>> bounds; // where a result needs them
    for (auto [i, argument] : enumerate(launch.resultArguments())) {
      Comparison comparison = compare((*results)[i], (*eager)[i], (*truth)[i], launch.depth(),
                                      exact, subject.roundings());
      if (comparison.isFar && !bounds)
        bounds = subject.errorBounds().value_or(std::vector<std::vector<double>>());
      if (comparison.isFar && !bounds->empty())
        comparison = compare((*results)[i], (*eager)[i], (*truth)[i], launch.depth(), exact,
                             subject.roundings(), (*bounds)[i]);
      const std::string &name = kernel.arguments[argument].name;
      outputs.push_back(json::Object{{"name", name},
                                     {"dtype", toString((*results)[i].dtype())},
                                     {"shape", shapeText((*results)[i].shape())},
                                     {"passed", comparison.passed},
                                     {"kernel", toJson(comparison.kernel)},
                                     {"libtorch", toJson(comparison.libtorch)},
                                     {"normBound", comparison.normBound},
                                     {"worstBound", comparison.worstBound},
                                     {"bounded", comparison.isBounded},
                                     {"kernelBench", comparison.kernelBench}});
      if (!comparison.passed)
        failure = joinErrors(std::move(failure), wrong("'" + name + "': " + comparison.reason));
    }
    verified.push_back(std::move(*results));
    return failure;
  }

  /// Times the case, and holds the time to what the program expects and to what was recorded. One
  /// that falls short is taken again: a machine may be busy for a while.
  Error hold(const Launch &launch, const ast::Kernel &kernel, json::Object &about,
             function_ref<Error()> time) {
    constexpr unsigned attempts = 3;
    std::string why;
    for (unsigned attempt = 0; attempt < attempts; ++attempt) {
      if (Error error = time())
        return error;
      why = shortfallOf(launch, kernel, about);
      if (options.takesLock)
        addToLock(launch, about);
      else if (why.empty())
        break;
    }
    return why.empty() ? Error::success() : wrong(why);
  }

  /// By what a time is found in the lock file. What changes the code or how it is timed is part of
  /// the case.
  LockedTime lockedAs(const Launch &launch, const json::Object &about) const {
    LockedTime time;
    time.kernel = about.getString("kernel")->str();
    time.text = about.getString("case")->str();
    for (const auto &[name, value] :
         {std::pair<StringRef, StringRef>{"precision", options.precision},
          {"tensor-tile", options.tensorTile}})
      if (!value.empty())
        time.text += (" --" + name + "=" + value).str();
    if (options.graphCalls)
      time.text += " --graph=" + std::to_string(options.graphCalls);
    if (options.tuned)
      time.text += " --tuned";
    if (options.dependentLaunches)
      time.text += " --dependent-launches";
    if (options.checked)
      time.text += " --checked";
    CudaDevice *device = launch.cudaDevice();
    time.device = device ? device->info().name : sys::getHostCPUName().str();
    time.threads = device ? 0 : *about.getInteger("threads");
    return time;
  }

  /// Adds a measurement to those of which the lock keeps the least median, and the noise.
  void addToLock(const Launch &launch, json::Object &about) const {
    constexpr double leastNoise = 0.02;
    double median = *about.getObject("time")->getNumber("median"),
           upper = *about.getObject("time")->getNumber("upper");
    LockedTime time = lockedAs(launch, about);
    time.median = median;
    double longest = upper;
    if (const json::Object *before = about.getObject("lock"))
      if (std::optional<LockedTime> old = lockedTime(*before)) {
        time.median = std::min(median, old->median);
        longest = std::max(upper, old->longest());
      }
    time.noise = std::max(longest / time.median - 1, leastNoise);
    about["lock"] = toJson(time);
  }

  /// What a time falls short of, for people; empty where it does not.
  std::string shortfallOf(const Launch &launch, const ast::Kernel &kernel,
                          const json::Object &about) {
    std::string why;
    raw_string_ostream os(why);
    StringRef machine = machineOf(launch);
    const json::Object *bound = about.getObject(launch.cudaDevice() ? "bound" : "roofline");
    std::optional<double> least = expectedShare(kernel, machine);
    if (least && bound && *bound->getNumber("share") < *least)
      os << "it reaches " << format("%.2f", *bound->getNumber("share"))
         << " of the bound, and 'schedule' expects " << format("%g", *least);
    if (least && !bound)
      os << "'schedule' expects a share of the bound, which is not known on this device";
    LockedTime own = lockedAs(launch, about);
    auto locked = find_if(options.lock, [&](const LockedTime &one) { return one.isOf(own); });
    double median = *about.getObject("time")->getNumber("median");
    if (!options.takesLock && locked != options.lock.end() && median > locked->longest())
      os << (why.empty() ? "" : "; ") << "it takes " << format("%.4g", median * 1e6)
         << " us, and the lock file has " << format("%.4g", locked->median * 1e6)
         << " us with a noise of " << format("%.0f", 100 * locked->noise) << " %";
    return why;
  }

  /// As `expect` names it, and --machine: empty for a device that nobody knows.
  static StringRef machineOf(const Launch &launch) {
    const report::DeviceLimits *card = cardOf(launch);
    return !launch.cudaDevice() ? "cpu" : card ? card->name : "";
  }
  static const report::DeviceLimits *cardOf(const Launch &launch) {
    if (!launch.cudaDevice())
      return nullptr;
    StringRef name = launch.cudaDevice()->info().name;
    ArrayRef<report::DeviceLimits> cards = report::deviceLimits();
    const auto *found = find_if(
        cards, [&](const report::DeviceLimits &card) { return name.starts_with(card.title); });
    return found == cards.end() ? nullptr : found;
  }

  Error time(ArrayRef<std::unique_ptr<Subject>> sets, const Reference &reference,
             const std::vector<std::vector<Tensor>> &verified, bool exact, json::Object &about) {
    Launch &first = sets.front()->launch();
    unsigned threads = options.threads ? options.threads : first.threads();
    api->setThreads(threads);
    if (options.graphCalls) {
      SmallVector<Launch *> launches;
      for (const std::unique_ptr<Subject> &set : sets)
        launches.push_back(&set->launch());
      Expected<TimedPair> replays =
          timeReplays(launches, reference, options.graphCalls, options.limits);
      if (!replays)
        return replays.takeError();
      if (Error error = checkReplay(launches, verified, exact))
        return error;
      return tell(first, *replays, threads, about);
    }
    Error failure = Error::success();
    // On the CPU a timed call follows one of the same kind on other data, as in a program that does
    // one thing after the other: its own side's workers are awake then, and the other side's sleep.
    auto setBefore = [&](unsigned turn) -> Subject & {
      return *sets[(turn + sets.size() - 1) % sets.size()];
    };
    auto kernelCall = [&](unsigned turn) -> std::optional<double> {
      Subject &subject = *sets[turn % sets.size()];
      Launch &before = setBefore(turn).launch(), &launch = subject.launch();
      failure = joinErrors(std::move(failure), joinErrors(before.prepare(), launch.prepare()));
      if (!launch.cudaDevice()) {
        awaitRest();
        failure = joinErrors(std::move(failure), before.run().takeError());
      }
      Expected<double> seconds = launch.run();
      if (!seconds) {
        failure = joinErrors(std::move(failure), seconds.takeError());
        return std::nullopt;
      }
      Expected<std::vector<Tensor>> results = launch.results();
      if (!results) {
        failure = joinErrors(std::move(failure), results.takeError());
        return std::nullopt;
      }
      for (auto [now, before] : zip(*results, verified[turn % sets.size()]))
        if (std::memcmp(now.data(), before.data(), now.bytes())) {
          // Not the same bits: sums whose order is free are judged anew, by the rule.
          json::Array outputs;
          std::vector<std::vector<Tensor>> ignored;
          if (Error error = check(subject, exact, outputs, ignored)) {
            failure = joinErrors(std::move(failure), std::move(error));
            return std::nullopt;
          }
          break;
        }
      return *seconds;
    };
    auto torchCall = [&](unsigned turn) -> std::optional<double> {
      std::string why;
      Subject &before = setBefore(turn), &subject = *sets[turn % sets.size()];
      failure = joinErrors(std::move(failure),
                           joinErrors(before.launch().prepare(), subject.launch().prepare()));
      std::optional<double> seconds = 0;
      if (!subject.launch().cudaDevice()) {
        awaitRest();
        seconds = before.time(why);
      }
      if (seconds)
        seconds = subject.time(why);
      if (!seconds)
        failure = joinErrors(std::move(failure), wrong("the reference fails: " + why));
      return seconds;
    };
    DeviceFlush deviceFlush(first.cudaDevice());
    OtherWork others;
    std::optional<TimedPair> pair = timeInTurns(kernelCall, torchCall, options.limits, [&] {
      if (!first.cudaDevice())
        flush.run();
      else if (Error error = deviceFlush.run())
        failure = joinErrors(std::move(failure), std::move(error));
    });
    if (failure)
      return failure;
    consumeError(std::move(failure));
    if (std::optional<double> processors = others.processors())
      about["otherProcessors"] = *processors;
    return tell(first, *pair, threads, about);
  }

  /// Whether outputs are what they were, after calls in a graph. Inouts have been changed many
  /// times.
  Error checkReplay(ArrayRef<Launch *> sets, ArrayRef<std::vector<Tensor>> verified, bool exact) {
    for (const auto &[launch, before] : zip(sets, verified)) {
      if (any_of(launch->kernel().arguments, [](const KernelArgument &argument) {
            return argument.role == KernelArgument::Inout;
          }))
        return Error::success();
      Expected<std::vector<Tensor>> results = launch->results();
      if (!results)
        return results.takeError();
      for (const auto &[now, then] : zip(*results, before))
        if (std::memcmp(now.data(), then.data(), now.bytes()))
          if (Comparison found = compare(now, then, then, launch->depth(), exact, /*roundings=*/2);
              !found.passed)
            return wrong("after calls in a graph: " + found.reason);
    }
    return Error::success();
  }

  Error tell(const Launch &launch, const TimedPair &pair, unsigned threads, json::Object &about) {
    about["threads"] = threads;
    if (options.graphCalls)
      about["graphCalls"] = int64_t(options.graphCalls);
    about["time"] = toJson(pair.first);
    about["libtorchTime"] = toJson(pair.second);
    about["speedup"] = pair.ratio;
    about["speedupLower"] = pair.ratioLower;
    about["speedupUpper"] = pair.ratioUpper;
    int64_t bytes = launch.bytes();
    about["bytes"] = bytes;
    double operations = launch.operations();
    about["operations"] = operations;
    about["gigaflopsPerSecond"] = operations / pair.first.median * 1e-9;
    about["gigabytesPerSecond"] = bytes / pair.first.median * 1e-9;
    tellBound(launch, pair.first.median, about);
    if (!launch.cudaDevice()) {
      if (!roofline)
        roofline = Roofline::measure(threads);
      about["roofline"] =
          json::Object{{"share", roofline->minSeconds(bytes, operations) / pair.first.median},
                       {"gigaflopsPerSecond", roofline->operationsPerSecond * 1e-9},
                       {"gigabytesPerSecond", roofline->bytesPerSecond * 1e-9}};
    }
    return Error::success();
  }

  /// On a known card, where all sizes are known: the share of the launches' bounds that was
  /// reached, and that the model expected.
  static void tellBound(const Launch &launch, double median, json::Object &about) {
    const report::DeviceLimits *card = cardOf(launch);
    if (!card)
      return;
    double bound = 0, expected = 0;
    for (const LaunchExplanation &one : launch.machineCode().launches) {
      std::optional<report::LaunchTimes> times = report::timesOf(one, *card);
      if (!times || !times->expected)
        return;
      bound += times->bound() * 1e-6;
      expected += *times->expected * 1e-6;
    }
    if (bound > 0 && expected > 0)
      about["bound"] = json::Object{{"seconds", bound},
                                    {"expectedSeconds", expected},
                                    {"share", bound / median},
                                    {"expectedShare", bound / expected}};
  }

  const std::string &path;
  const Module &module;
  Diagnostics &diagnostics;
  const HarnessOptions &options;
  function_ref<void(json::Object)> send;
  const TegulaTorchApi *api = nullptr;
  std::string refPath;
  RefFile ref;
  std::vector<Tested> kernels;
  std::map<const RefFunction *, std::unique_ptr<Reference>> references;
  std::map<std::string, std::unique_ptr<Runner>> runners;
  std::map<std::string, std::unique_ptr<GradientProgram>> gradients;
  CacheFlush flush;
  std::optional<Roofline> roofline;
  bool isTraced = false;
  bool isLost = false; // the device, to this process
};

} // namespace

bool runCases(const std::string &path, const Module &module, Diagnostics &diagnostics,
              const HarnessOptions &options, unsigned firstCase,
              function_ref<void(json::Object)> send) {
  return Harness(path, module, diagnostics, options, send).run(firstCase);
}

} // namespace tegula::bench
