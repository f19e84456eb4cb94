//===- Study.cpp - One case, compiled in several ways ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Study.h"
#include "bench/report/Disassembly.h"
#include "codegen/ptx/Assemble.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>

using namespace llvm;

namespace tegula::bench {

char NeededError::ID = 0;

static Error wrongCall(const Twine &message) {
  return make_error<LaunchError>(LaunchError::WrongCall, message.str());
}

uint64_t countInstructions(StringRef text) {
  uint64_t count = 0;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    if (!line.consume_front("\t"))
      continue;          // a label, a comment, the head of a function
    line = line.ltrim(); // PTX: predicates and declarations in braces are further in
    count += !line.empty() && (isAlpha(line.front()) || line.front() == '@');
  }
  return count;
}

void readAssemblerLog(StringRef log, CodeFacts &facts) {
  for (const auto &[name, function] : report::readAssemblerLog(log)) {
    facts.registers = std::max(facts.registers.value_or(0), function.registers);
    facts.spillBytes += function.spillStores + function.spillLoads;
  }
}

std::string StudyCase::text() const { return sizes.text(); }

Expected<std::unique_ptr<Study>> Study::make(const std::string &path, const Module &module,
                                             Diagnostics &diagnostics, StudyOptions options) {
  std::unique_ptr<Study> study(new Study(module, diagnostics, std::move(options)));
  if (Error error = study->findCases(path))
    return std::move(error);
  return std::move(study);
}

Error Study::findCases(const std::string &path) {
  SmallString<128> beside(path);
  sys::path::replace_extension(beside, "ref.py");
  bool isGiven = !options.reference.empty();
  std::string place = isGiven ? options.reference : beside.str().str();
  auto buffer = MemoryBuffer::getFile(place);
  if (!buffer && isGiven)
    return wrongCall("cannot read the reference '" + place + "': " + buffer.getError().message());
  if (buffer) {
    std::string error;
    std::optional<RefFile> parsed = parseRefFile((*buffer)->getBuffer(), error);
    if (!parsed)
      return wrongCall("'" + place + "': " + error);
    reference = std::move(*parsed);
  }
  std::vector<std::pair<const ast::Kernel *, const RefFunction *>> kernels;
  if (options.kernel.empty())
    for (const auto &kernel : module.file().kernels)
      for (const RefFunction &function : reference.functions)
        if (function.name == kernel->name.name)
          kernels.push_back({kernel.get(), &function});
  if (kernels.empty()) {
    const ast::Kernel *entry = module.entry(options.kernel);
    if (!entry)
      return wrongCall("there is no kernel" +
                       (options.kernel.empty() ? "" : " '" + options.kernel + "'"));
    kernels.push_back({entry, reference.find(entry->name.name)});
  }
  for (auto [kernel, function] : kernels) {
    Signature names(*kernel);
    // Types and constants alone modify the file's cases, sizes replace them.
    bool hasSizes = any_of(options.settings, [&](const auto &setting) {
      return !names.find(setting.first) && !is_contained(names.genericTypes, setting.first);
    });
    std::vector<Case> cases;
    if (!hasSizes && function)
      copy_if(function->cases, std::back_inserter(cases),
              [&](const Case &one) { return one.timed == options.timedCases; });
    else
      cases.push_back({});
    for (Case &one : cases) {
      for (const auto &setting : options.settings) {
        erase_if(one.values, [&](const auto &value) { return value.first == setting.first; });
        one.values.push_back(setting);
      }
      found.push_back({kernel, function, std::move(one)});
    }
  }
  if (found.empty())
    return wrongCall("'" + place + "' has no case with " +
                     (options.timedCases ? "# bench" : "# check") + "; give sizes with -d");
  return Error::success();
}

/// Whether the reference's function has a parameter of this name: then an optional tensor is
/// passed.
static bool takes(StringRef source, StringRef function, StringRef parameter) {
  size_t at = source.find(("def " + function + "(").str());
  if (at == StringRef::npos)
    return false;
  StringRef head = source.substr(at);
  head = head.substr(head.find('(') + 1);
  head = head.take_until([](char letter) { return letter == ')'; });
  SmallVector<StringRef> parts;
  head.split(parts, ',');
  return any_of(parts, [&](StringRef part) {
    return part.split(':').first.split('=').first.trim() == parameter;
  });
}

CompileOptions Study::compileOptions(std::shared_ptr<PassRuns> runs) const {
  CompileOptions made;
  made.instance = instance.options;
  made.target = options.target;
  made.pipeline.runs = std::move(runs);
  return made;
}

Error Study::select(const StudyCase &one) {
  current = one;
  instance = Instance();
  signature = std::make_unique<Signature>(*one.kernel);
  std::string error;
  if (!signature->sort(one.sizes.values, instance, error, evaluateConstant))
    return wrongCall(error);
  instance.options.kernel = one.kernel->name.name;
  if (one.function)
    for (const Signature::Parameter &parameter : signature->parameters)
      if (parameter.kind == Signature::Parameter::Tensor && parameter.isOptional &&
          takes(reference.source, one.function->name, parameter.name))
        instance.options.givenOptionals.push_back(parameter.name);
  // What the sizes are, and what the device is called.
  CompileOptions shapes = compileOptions(nullptr);
  Expected<std::unique_ptr<Runner>> runner = Runner::make(module, shapes, diagnostics);
  if (!runner)
    return runner.takeError();
  if (!*runner) {
    std::string text;
    raw_string_ostream stream(text);
    diagnostics.printText(stream, /*colors=*/false);
    return wrongCall("the program is wrong:\n" + text);
  }
  Expected<SizeValues> values = (*runner)->sizes(*signature, instance);
  if (!values)
    return values.takeError();
  sizes.assign(values->begin(), values->end());
  deviceName = (*runner)->kernel().target;
  sizesByName.clear();
  for (auto [spec, value] : zip((*runner)->kernel().checks->sizes(), sizes))
    sizesByName[spec.name] = value;
  return Error::success();
}

Expected<Study::Way> Study::compile(std::shared_ptr<PassRuns> runs, unsigned repeats) const {
  CompileOptions made = compileOptions(runs);
  bool isCpu = options.target == "cpu";
  made.target = deviceName;
  if (!isCpu) { // as Runner does it
    made.sizes = sizesByName;
    made.alignment = 16;
  }
  Way way;
  way.runs = std::move(runs);
  for (unsigned repeat = 0; repeat < (isCpu ? repeats : std::max(1u, repeats)); ++repeat) {
    Expected<std::unique_ptr<CompiledKernel>> kernel = compileKernel(module, made, diagnostics);
    if (!kernel) {
      if (kernel.errorIsA<MissingToolError>())
        return kernel.takeError();
      return make_error<NeededError>(toString(kernel.takeError()));
    }
    double milliseconds = 0;
    for (const PhaseTime &time : (*kernel)->times)
      milliseconds += time.milliseconds;
    way.facts.milliseconds = repeat ? std::min(way.facts.milliseconds, milliseconds) : milliseconds;
    if (!isCpu) {
      way.facts.text = (*kernel)->ptx;
      way.facts.log = (*kernel)->assemblerLog;
      CodeFacts ofLog;
      readAssemblerLog((*kernel)->assemblerLog, ofLog);
      way.facts.registers = ofLog.registers;
      way.facts.spillBytes = ofLog.spillBytes;
    }
  }
  if (isCpu) { // whose text is made apart, so that it does not count in the time
    made.stopAfter = Phase::EmitPtx;
    made.keepStages = {"asm"};
    Expected<std::unique_ptr<CompiledKernel>> kernel = compileKernel(module, made, diagnostics);
    if (!kernel)
      return make_error<NeededError>(toString(kernel.takeError()));
    way.facts.text = (*kernel)->stages["asm"];
  }
  way.facts.instructions = countInstructions(way.facts.text);
  return std::move(way);
}

Error Study::makeRunner(Way &way) const {
  CompileOptions made = compileOptions(way.runs);
  made.choice = way.choice;
  made.listTiles = options.listTiles;
  Expected<std::unique_ptr<Runner>> runner = Runner::make(module, made, diagnostics);
  if (!runner)
    return runner.takeError();
  way.runner = std::move(*runner);
  way.runner->setThreads(options.threads);
  return Error::success();
}

Error Study::makeSets(Way &way, const Way *like) const {
  for (unsigned set = 0; set < options.sets; ++set) {
    Launch::Inputs inputs;
    inputs.specs = current.function ? &current.function->inputs : nullptr;
    inputs.scalars = instance.scalars;
    inputs.seed = options.seed * numSets + set;
    if (like)
      for (auto [index, argument] : enumerate(way.runner->kernel().arguments))
        if (argument.role == KernelArgument::In || argument.role == KernelArgument::Inout) {
          const Tensor &from = like->sets[set]->host(index);
          std::optional<Tensor> copy = Tensor::make(from.dtype(), from.shape());
          if (!copy)
            return make_error<LaunchError>(LaunchError::OutOfMemory,
                                           "there is no memory for '" + argument.name + "'");
          if (from.bytes())
            std::memcpy(copy->data(), from.data(), from.bytes());
          inputs.given.emplace(argument.name, std::move(*copy));
        }
    Expected<std::unique_ptr<Launch>> launch = Launch::make(*way.runner, sizes, std::move(inputs));
    if (!launch)
      return launch.takeError();
    way.sets.push_back(std::move(*launch));
  }
  return Error::success();
}

/// Runs each set once.
static Error runSets(Study::Way &way) {
  for (std::unique_ptr<Launch> &launch : way.sets) {
    if (Error error = launch->prepare())
      return error;
    if (Expected<double> seconds = launch->run(); !seconds)
      return seconds.takeError();
    Expected<std::vector<Tensor>> results = launch->results();
    if (!results)
      return results.takeError();
    way.results.push_back(std::move(*results));
  }
  return Error::success();
}

Error Study::prepare(Way &way, const Way *like) const {
  if (Error error = makeRunner(way))
    return error;
  if (Error error = makeSets(way, like))
    return error;
  return runSets(way);
}

Expected<Study::Way> Study::tryChoice(const ScheduleChoice &choice, const Way *like) const {
  Way way;
  way.choice = choice;
  Error error = Error::success();
  if (like)
    way.runner = like->runner->withChoice(choice);
  else
    error = joinErrors(std::move(error), makeRunner(way));
  if (!error)
    error = makeSets(way, like);
  // What the device or the machine says is said of them; what is left is the compiler's refusal of
  // this schedule.
  error = handleErrors(std::move(error), [](std::unique_ptr<ErrorInfoBase> failed) -> Error {
    bool isOwn =
        failed->isA<CudaError>() || failed->isA<LaunchError>() || isMissingResource(*failed);
    return isOwn ? Error(std::move(failed)) : make_error<NeededError>(failed->message());
  });
  if (error)
    return std::move(error);
  const CompiledKernel &code = way.sets.front()->machineCode();
  way.facts.text = code.ptx;
  way.facts.log = code.assemblerLog;
  readAssemblerLog(code.assemblerLog, way.facts);
  if (Error failed = runSets(way))
    return std::move(failed);
  return std::move(way);
}

/// Where two results of one shape are not the same, and how often.
static std::string firstDifference(const Tensor &ours, const Tensor &theirs) {
  std::vector<double> mine = ours.doubles(), other = theirs.doubles();
  uint64_t count = 0;
  std::optional<size_t> first;
  for (size_t index = 0; index < mine.size(); ++index) {
    if (mine[index] == other[index] || (std::isnan(mine[index]) && std::isnan(other[index])))
      continue;
    ++count;
    if (!first)
      first = index;
  }
  if (!first)
    return "the bits of zeros or NaNs differ";
  std::vector<int64_t> place(ours.shape().size());
  size_t rest = *first;
  for (size_t dim = place.size(); dim-- > 0;) {
    place[dim] = rest % ours.shape()[dim];
    rest /= ours.shape()[dim];
  }
  std::string text;
  raw_string_ostream(text) << count << " of " << mine.size() << " elements differ, first at "
                           << shapeText(place) << ": " << format("%.9g", mine[*first])
                           << ", expected " << format("%.9g", other[*first]);
  return text;
}

std::string Study::differ(Way &way, Way &other, bool exact) const {
  for (unsigned set = 0; set < options.sets; ++set) {
    const Launch &launch = *way.sets[set];
    for (auto [index, argument] : enumerate(launch.resultArguments())) {
      const Tensor &ours = way.results[set][index], &theirs = other.results[set][index];
      if (!std::memcmp(ours.data(), theirs.data(), ours.bytes()))
        continue;
      if (exact ||
          !compare(ours, theirs, theirs, launch.depth(), /*bitExact=*/false, /*roundings=*/2)
               .passed)
        return "'" + launch.kernel().arguments[argument].name +
               "': " + firstDifference(ours, theirs);
    }
  }
  return "";
}

Expected<TimedPair> Study::time(Way &one, Way &other) const {
  Error failure = Error::success();
  auto callOf = [&](Way &way) {
    return [&](unsigned turn) -> std::optional<double> {
      // As Harness does it: after a call of the same code, while the other's workers sleep.
      size_t count = way.sets.size();
      Launch &last = *way.sets[(turn + count - 1) % count], &launch = *way.sets[turn % count];
      Error prepared = joinErrors(last.prepare(), launch.prepare());
      if (!launch.cudaDevice()) {
        awaitRest();
        prepared = joinErrors(std::move(prepared), last.run().takeError());
      }
      Expected<double> seconds = prepared ? std::move(prepared) : launch.run();
      if (!seconds) {
        failure = joinErrors(std::move(failure), seconds.takeError());
        return std::nullopt;
      }
      return *seconds;
    };
  };
  CacheFlush hostFlush;
  DeviceFlush deviceFlush(one.runner->cudaDevice());
  std::optional<TimedPair> pair = timeInTurns(callOf(one), callOf(other), options.limits, [&] {
    if (!one.runner->cudaDevice())
      hostFlush.run();
    else if (Error error = deviceFlush.run())
      failure = joinErrors(std::move(failure), std::move(error));
  });
  if (failure)
    return std::move(failure);
  consumeError(std::move(failure));
  return *pair;
}

} // namespace tegula::bench
