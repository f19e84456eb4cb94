//===- Recording.cpp - A run that can be walked through ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/run/Recording.h"

#include "bench/observe/Observe.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::bench;

using checked::Observation;

static Error refuse(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// What is wrong with the program is in its diagnostics.
ExitCode Recording::record(std::string program, const CompileOptions &how, Run &run) const {
  run.loaded = loadText(path, std::move(program));
  if (run.loaded->diagnostics.hasErrors())
    return ExitWrongProgram;
  Expected<std::unique_ptr<Runner>> runner =
      Runner::make(*run.loaded->module, how, run.loaded->diagnostics);
  if (!runner)
    return exitOf(runner.takeError());
  if (!*runner)
    return ExitWrongProgram;
  run.runner = std::move(*runner);
  run.runner->setThreads(call.threads);
  if (ExitCode code = makeLaunch(*run.runner, call, run.sizes, run.launch); code != ExitSuccess)
    return code;
  if (Expected<double> taken = run.launch->run(); !taken) {
    // Wrong accesses read 0 and write nothing: there is something to look at.
    Error other =
        handleErrors(taken.takeError(), [&](std::unique_ptr<LaunchError> failed) -> Error {
          if (failed->kind != LaunchError::WrongResult)
            return Error(std::move(failed));
          run.failure = failed->message;
          return Error::success();
        });
    if (other)
      return exitOf(std::move(other));
  }
  Expected<Observed> observed = run.launch->observed();
  if (!observed)
    return exitOf(observed.takeError());
  run.observed = std::move(*observed);
  return ExitSuccess;
}

std::unique_ptr<Recording> Recording::make(StringRef path, std::string text, const RunCall &call,
                                           CompileOptions options, ExitCode &code) {
  options.checked = options.target == "cpu";
  options.instance.observe = options.instance.trace = true;
  auto result =
      std::unique_ptr<Recording>(new Recording(path, std::move(text), call, std::move(options)));
  code = result->record(result->text, result->options, result->run);
  result->run.loaded->print(/*json=*/false);
  std::vector<unsigned> written;
  if (code == ExitSuccess)
    code = findWritten(*result->run.runner, call.outFiles, written);
  if (code != ExitSuccess)
    return nullptr;
  result->putInOrder();
  return result;
}

void Recording::putInOrder() {
  std::optional<Stop> failure;
  for (auto [number, seen] : enumerate(run.observed->statements())) {
    switch (seen.kind()) {
    case Observation::Reach:
    case Observation::Print:
      for (Moment &moment : seen.all())
        (seen.kind() == Observation::Reach ? order : printed)
            .push_back({std::move(moment), number});
      break;
    case Observation::Assert:
    case Observation::Watch:
      for (const Moment &moment : seen.first(1))
        if (Stop stop{moment, number}; !failure || stop < *failure)
          failure = std::move(stop);
      break;
    case Observation::Points:
      break;
    }
  }
  if (failure)
    order.push_back(std::move(*failure));
  llvm::sort(order);
  llvm::sort(printed);
}

ExitCode Recording::tellFailure() const {
  if (std::optional<std::string> failed = run.observed->failure())
    return exitOf(make_error<FailedAssertion>(std::move(*failed)));
  if (!run.failure.empty())
    return exitOf(make_error<LaunchError>(LaunchError::WrongResult, run.failure));
  return ExitSuccess;
}

ExitCode Recording::finish() const {
  if (ExitCode code = tellFailure(); code != ExitSuccess)
    return code;
  std::vector<unsigned> written;
  if (ExitCode code = findWritten(*run.runner, call.outFiles, written); code != ExitSuccess)
    return code;
  Expected<std::vector<bench::Tensor>> results = run.launch->read(written);
  if (!results)
    return exitOf(results.takeError());
  return writeResults(*run.runner, written, *results, call.outFiles);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

unsigned Recording::line(const Stop &stop) const {
  return run.loaded->sources.lineAndColumn(run.loaded->file, begin(stop.statement)).first;
}

StringRef Recording::lineText(const Stop &stop) const {
  return run.loaded->sources.lineText(run.loaded->file, begin(stop.statement)).trim();
}

StringRef Recording::kernelName(const Stop &stop) const {
  for (const auto &kernel : run.loaded->module->file().kernels)
    if (kernel->span.begin <= begin(stop.statement) && begin(stop.statement) < kernel->span.end)
      return kernel->name.name;
  return "";
}

std::vector<std::pair<unsigned, std::string>> Recording::linesAround(unsigned wanted) const {
  std::vector<std::pair<unsigned, std::string>> result;
  StringRef rest = text;
  for (unsigned number = 1; !rest.empty() && number <= wanted + 3; ++number) {
    auto [first, others] = rest.split('\n');
    if (number + 3 >= wanted)
      result.push_back({number, first.str()});
    rest = others;
  }
  return result;
}

std::optional<unsigned> Recording::statementLine(unsigned wanted) const {
  std::optional<unsigned> result;
  for (auto [number, seen] : enumerate(run.observed->statements()))
    if (seen.kind() == Observation::Reach)
      if (unsigned at = line({{}, number}); at >= wanted && (!result || at < *result))
        result = at;
  return result;
}

std::string Recording::printsBetween(const Stop *from, const Stop *to, unsigned points) const {
  std::string result;
  std::map<size_t, unsigned> shown;
  auto isPast = [&](const Stop &one) { return to && one.moment > to->moment; };
  auto at = from ? llvm::lower_bound(
                       printed, *from,
                       [](const Stop &one, const Stop &other) { return one.moment < other.moment; })
                 : printed.begin();
  for (; at != printed.end() && !isPast(*at); ++at)
    if (shown[at->statement]++ < points) {
      std::string where = seen(*at).where(at->moment.element);
      result += seen(*at).observation().place + ": " + where + (where.empty() ? "" : ": ") +
                seen(*at).values(at->moment.element) + '\n';
    }
  for (auto [statement, count] : shown)
    if (count > points)
      result += run.observed->statements()[statement].observation().place + ": ... and " +
                std::to_string(count - points) + " more points\n";
  return result;
}

size_t Recording::around(const Stop &stop, bool leave) const {
  ArrayRef<Observation::Step> steps = seen(stop).observation().statement.path;
  size_t length = 0, result = 0;
  for (auto [number, step] : enumerate(steps.drop_back())) {
    ++length;
    if (leave && !step.isFurtherAxis)
      result = length;
    length += step.axis.has_value();
    if (!leave && step.axis)
      result = length;
  }
  return result;
}

unsigned Recording::calls(const Stop &stop) const {
  ArrayRef<Observation::Step> steps = seen(stop).observation().statement.path;
  return llvm::count_if(steps.drop_back(), [](const Observation::Step &step) {
    return !step.axis && !step.isFurtherAxis; // loops and blocks have an index each
  });
}

std::vector<Recording::Index> Recording::equationIndices(size_t statement) const {
  ArrayRef<Seen> all = run.observed->statements();
  const Observation &own = all[statement].observation().statement;
  std::vector<Index> result;
  // The points of its equation are noted next.
  for (const Seen &points : all.drop_front(statement + 1)) {
    if (points.kind() == Observation::Reach)
      break;
    if (points.kind() != Observation::Points || begin(&points - all.data()) != own.span.begin)
      continue;
    StringMap<unsigned> outer; // a call in a loop may bring the name twice
    for (const Observation::Axis &axis : own.axes)
      ++outer[axis.name];
    for (auto [number, axis] : enumerate(points.observation().statement.axes)) {
      if (unsigned &left = outer[axis.name])
        --left;
      else if (!axis.name.empty())
        result.push_back({axis.name, points.range(number).first, points.range(number).second});
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

/// Whether a word of the language, or of the program, stands in the text.
static bool hasWord(StringRef text, StringRef word) {
  auto isPart = [](char c) { return isAlnum(c) || c == '_'; };
  for (size_t at = text.find(word); at != StringRef::npos; at = text.find(word, at + 1))
    if ((at == 0 || !isPart(text[at - 1])) &&
        (at + word.size() == text.size() || !isPart(text[at + word.size()])))
      return true;
  return false;
}

/// Whether `for` stands in it outside of brackets.
static bool hasRanges(StringRef text) {
  std::string outside;
  int depth = 0;
  for (char c : text) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    outside += depth ? ' ' : c;
  }
  return hasWord(outside, "for");
}

static std::string firstError(const Diagnostics &diagnostics) {
  for (const Diagnostic &one : diagnostics.all()) {
    if (one.severity != Severity::Error)
      continue;
    std::string text = one.message;
    for (const Note &note : one.notes)
      text += "\n  " + note.message;
    return text;
  }
  return "";
}

/// Whether this is what one `print` takes.
static Error checkPrintable(StringRef text) {
  std::unique_ptr<LoadedFile> loaded =
      loadText("<command>", ("kernel step() {\n  print(" + text + ")\n}\n").str());
  if (loaded->diagnostics.hasErrors())
    return refuse(firstError(loaded->diagnostics));
  const auto &kernels = loaded->module->file().kernels;
  if (kernels.size() != 1 || kernels[0]->body.size() != 1 ||
      kernels[0]->body[0]->kind != ast::Stmt::Observe)
    return refuse("'" + text + "' is more than values to show: a, b[i] for i in 4");
  return Error::success();
}

Expected<std::unique_ptr<Recording::Look>> Recording::lookBefore(size_t statement, StringRef text,
                                                                 const Point &point) const {
  if (Error error = checkPrintable(text))
    return std::move(error);
  std::string shown = text.str();
  if (!hasRanges(text)) {
    std::string ranges;
    for (const Index &index : equationIndices(statement)) {
      if (!hasWord(text, index.name))
        continue;
      auto at = point.find(index.name);
      int64_t lo = at == point.end() ? index.lo : at->second;
      int64_t hi = at == point.end() ? index.hi : at->second + 1;
      ranges += (ranges.empty() ? " for " : ", ") + index.name + " in " + std::to_string(lo) + ":" +
                std::to_string(hi);
    }
    shown += ranges;
  }
  // In a kernel that is called twice the statement stands once: it looks in this call alone, whose
  // sizes the ranges are of.
  std::string print = "print(" + shown + "); ", program = this->text;
  uint32_t place = begin(statement);
  program.insert(place, print);
  CompileOptions how = options;
  how.instance.look = {place, run.observed->statements()[statement].observation().statement.calls};
  for (uint32_t &call : how.instance.look->calls)
    call += call >= place ? print.size() : 0;
  auto look = std::make_unique<Look>();
  ExitCode code = record(std::move(program), how, look->run);
  if (code == ExitWrongProgram)
    return refuse(firstError(look->run.loaded->diagnostics));
  if (code != ExitSuccess)
    return refuse("the program does not run with it");
  size_t before = 0;
  std::vector<size_t> group;
  bool isNew = true;
  for (auto [number, seen] : enumerate(look->run.observed->statements())) {
    const Observation &one = seen.observation().statement;
    if (one.kind == Observation::Print && one.span.begin == place) {
      if (isNew)
        group.clear();
      isNew = false;
      group.push_back(number);
      continue;
    }
    // The others are those of the recording.
    isNew = true;
    if (before++ == statement)
      look->prints = group;
  }
  return std::move(look);
}

/// Pairs of axes of the same name: of what is shown, and of where it is shown. Where a loop around
/// a call and one in the kernel have one name, the outer axis comes first in both.
static std::vector<std::pair<size_t, size_t>> commonAxes(const Seen &shown, const Seen &stopped) {
  std::vector<std::pair<size_t, size_t>> result;
  std::set<size_t> paired;
  for (auto [mine, axis] : enumerate(shown.observation().statement.axes))
    for (auto [theirs, other] : enumerate(stopped.observation().statement.axes))
      if (!axis.name.empty() && axis.name == other.name && paired.insert(theirs).second) {
        result.push_back({mine, theirs});
        break;
      }
  return result;
}

Expected<std::string> Recording::look(const Stop &stop, StringRef text, const Point &point,
                                      unsigned points) const {
  Expected<std::unique_ptr<Look>> look = lookBefore(stop.statement, text, point);
  if (!look)
    return look.takeError();
  std::string result;
  std::vector<int64_t> here = seen(stop).indices(stop.moment.element);
  for (size_t number : (*look)->prints) {
    const Seen &shown = (*look)->run.observed->statements()[number];
    auto common = commonAxes(shown, seen(stop));
    unsigned count = 0;
    for (const Moment &moment : shown.all()) {
      std::vector<int64_t> at = shown.indices(moment.element);
      if (any_of(common, [&](auto axes) { return at[axes.first] != here[axes.second]; }) ||
          count++ >= points)
        continue;
      std::string rest;
      for (auto [number, axis] : enumerate(shown.observation().statement.axes))
        if (!axis.name.empty() && !point.contains(axis.name) &&
            none_of(common, [&, number = number](auto axes) { return axes.first == number; }))
          rest += (rest.empty() ? "" : ", ") + axis.name + "=" + std::to_string(at[number]);
      result += rest + (rest.empty() ? "" : ": ") + shown.values(moment.element) + '\n';
    }
    if (count > points)
      result += "... and " + std::to_string(count - points) + " more points\n";
  }
  if (result.empty())
    return refuse("'" + text + "' has no points here");
  return result;
}

Expected<std::map<size_t, Recording::Point>> Recording::holdsAt(unsigned wanted,
                                                                StringRef condition) const {
  // A kernel that is called twice has its statements twice, with the same text. Of several in the
  // line it is the first.
  std::optional<uint32_t> first;
  std::map<size_t, std::vector<size_t>> stopsOf;
  for (auto [number, stop] : enumerate(order))
    if (!isFailure(stop) && line(stop) == wanted)
      if (first = first.value_or(begin(stop.statement)); *first == begin(stop.statement))
        stopsOf[stop.statement].push_back(number);
  std::map<size_t, Point> result;
  for (const auto &[statement, stops] : stopsOf) {
    Expected<std::unique_ptr<Look>> look = lookBefore(statement, condition, {});
    if (!look)
      return look.takeError();
    for (size_t print : (*look)->prints) {
      const Seen &shown = (*look)->run.observed->statements()[print];
      auto common = commonAxes(shown, run.observed->statements()[statement]);
      std::map<std::vector<int64_t>, Point> holds; // by the values of the common axes
      for (const Moment &moment : shown.all()) {
        std::string value = shown.valueList(moment.element).front().value.value_or("");
        if (value != "true" && value != "false")
          return refuse("a breakpoint takes a condition, got '" + condition + "'");
        if (value == "false")
          continue;
        std::vector<int64_t> at = shown.indices(moment.element), key;
        for (auto [mine, theirs] : common)
          key.push_back(at[mine]);
        auto [entry, isFirst] = holds.try_emplace(std::move(key));
        if (!isFirst)
          continue;
        for (const Index &index : equationIndices(statement))
          for (auto [axis, value] : zip(shown.observation().statement.axes, at))
            if (axis.name == index.name)
              entry->second[index.name] = value;
      }
      for (size_t number : stops) {
        std::vector<int64_t> at = seen(order[number]).indices(order[number].moment.element), key;
        for (auto [mine, theirs] : common)
          key.push_back(at[theirs]);
        if (auto found = holds.find(key); found != holds.end())
          result.emplace(number, found->second);
      }
    }
  }
  return result;
}
