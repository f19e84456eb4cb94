//===- Ablate.cpp - tegula bench --ablate -----------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/Ablate.h"
#include "bench/Ablate.h"
#include "bench/Child.h"
#include "driver/Load.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstdlib>
#include <map>

using namespace llvm;
using namespace tegula::bench;

namespace tegula {
namespace {

/// Quotients of which the geometric mean counts.
struct Mean {
  double logs = 0;
  unsigned count = 0;
  void add(double quotient) {
    if (quotient > 0) {
      logs += std::log(quotient);
      ++count;
    }
  }
  double value() const { return count ? std::exp(logs / count) : 1; }
};

/// What was found of one pass, in all cases.
struct Worth {
  Mean time, compile, instructions, registers;
  unsigned same = 0, needed = 0, worth = 0;
  bool isAdded = false; // not left out
};

/// By pass, in the order in which passes run.
using Found = MapVector<std::string, Worth, std::map<std::string, unsigned>>;

std::string quotient(const Mean &mean) {
  std::string text;
  if (mean.count)
    raw_string_ostream(text) << format("%.2fx", mean.value());
  return text;
}

class Report {
public:
  explicit Report(bool json) : json(json) {}
  ExitCode exit = ExitSuccess;

  void fail(ExitCode code, StringRef path, StringRef message) {
    exit = exit == ExitSuccess || code == ExitInternalError ? code : exit;
    if (!message.empty())
      errs() << "tegula: " << path << ": " << message << (message.ends_with("\n") ? "" : "\n");
  }

  void beginCase(StringRef path, StringRef text) {
    one.clear();
    notes.clear();
    title = (sys::path::stem(path) + "  " + text).str();
    file = path.str();
  }

  void add(json::Object event) {
    if (json) {
      json::Object line = event;
      line["file"] = file;
      line["case"] = title;
      outs() << json::Value(std::move(line)) << '\n';
    }
    StringRef kind = *event.getString("event");
    if (kind == "base") {
      base = std::move(event);
      return;
    }
    std::string pass = event.getString("pass")->str();
    StringRef outcome = *event.getString("outcome");
    bool isAdded = *event.getBoolean("added");
    for (Worth *worth : {&one[pass], &all[pass]}) {
      worth->isAdded = isAdded;
      count(*worth, outcome, event);
    }
    if (outcome == "wrong" || outcome == "failed") {
      if (exit == ExitSuccess)
        exit = ExitWrongResult;
      notes.push_back((isAdded ? "with " : "without ") + pass +
                      (outcome == "wrong" ? " the result is wrong: " : " it does not run: ") +
                      StringRef(*event.getString("reason")).rtrim().str());
    }
  }

  void endCase() {
    ++cases;
    if (json || base.empty())
      return;
    outs() << title << '\n';
    std::string time;
    raw_string_ostream(time) << format("%.2f us", 1e6 * *base.getNumber("seconds"));
    outs() << "  with all passes: " << time << ", compiled in " << format("%.1f ms", *base.getNumber("milliseconds"))
           << ", " << *base.getInteger("instructions") << " instructions";
    if (std::optional<int64_t> registers = base.getInteger("registers"))
      outs() << ", " << *registers << " registers, " << *base.getInteger("spillBytes") << " bytes spilled";
    outs() << '\n';
    table(one);
    for (const std::string &note : notes)
      outs() << "  " << note << '\n';
    outs() << '\n';
    outs().flush();
  }

  void end() {
    if (json || cases < 2)
      return;
    outs() << "over " << cases << " cases, geometric means\n";
    table(all);
  }

private:
  void count(Worth &worth, StringRef outcome, const json::Object &event) {
    worth.same += outcome == "same";
    worth.needed += outcome == "needed";
    auto quotientOf = [&](StringRef what) {
      std::optional<double> without = event.getNumber(what), with = base.getNumber(what);
      return without && with && *with > 0 ? *without / *with : 0;
    };
    if (outcome == "worth" || outcome == "same") { // a case without effect has a share in the mean
      worth.time.add(outcome == "same" ? 1 : *event.getNumber("time"));
      worth.compile.add(quotientOf("milliseconds"));
      worth.instructions.add(quotientOf("instructions"));
      worth.registers.add(quotientOf("registers"));
    }
    worth.worth += outcome == "worth";
  }

  void table(const Found &found) {
    rows(found, /*isAdded=*/false);
    rows(found, /*isAdded=*/true);
  }

  /// Of the passes that were left out, or of those that were added.
  void rows(const Found &found, bool isAdded) {
    std::vector<const std::pair<std::string, Worth> *> rows;
    SmallVector<StringRef> same, needed;
    bool hasRegisters = false;
    for (const auto &entry : found) {
      const Worth &worth = entry.second;
      if (worth.isAdded != isAdded)
        continue;
      hasRegisters |= worth.registers.count > 0;
      if (worth.worth)
        rows.push_back(&entry);
      else if (worth.same)
        same.push_back(entry.first);
      if (worth.needed)
        needed.push_back(entry.first);
    }
    llvm::sort(rows, [](auto *a, auto *b) { // of equal ones, the first of the pipeline
      return std::make_pair(-a->second.time.value(), a) < std::make_pair(-b->second.time.value(), b);
    });
    StringRef how = isAdded ? "with" : "without";
    if (!rows.empty())
      outs() << "  " << left_justify(how, 34) << right_justify("time", 8) << right_justify("compile", 9)
             << right_justify("instr.", 8) << (hasRegisters ? "  registers" : "") << '\n';
    for (auto *row : rows) {
      const Worth &worth = row->second;
      outs() << "  " << left_justify(row->first, 34) << right_justify(quotient(worth.time), 8)
             << right_justify(quotient(worth.compile), 9) << right_justify(quotient(worth.instructions), 8);
      if (hasRegisters)
        outs() << right_justify(quotient(worth.registers), 11);
      outs() << '\n';
    }
    if (!same.empty())
      outs() << "  the same code " << how << ' ' << join(same, ", ") << '\n';
    if (!needed.empty())
      outs() << "  no code without " << join(needed, ", ") << '\n';
  }

  bool json;
  std::string title, file;
  json::Object base;
  Found one, all;
  std::vector<std::string> notes;
  unsigned cases = 0;
};

/// One child's work: the case number `index` from pass `firstPass` on.
void work(const std::string &path, const StudyOptions &options, ArrayRef<StringRef> passes, size_t index,
          size_t firstPass, function_ref<void(json::Object)> send) {
  auto stop = [&](int code, const Twine &message) {
    send(json::Object{{"event", "error"}, {"exit", code}, {"message", message.str()}});
  };
  ::setenv("TEGULA_CACHE_DIR", "", 1); // compile times are those of compiling
  std::unique_ptr<LoadedFile> loaded = load(path);
  if (!loaded)
    return stop(ExitWrongCall, "");
  if (loaded->diagnostics.hasErrors()) {
    loaded->print(/*json=*/false);
    return stop(ExitWrongProgram, "");
  }
  auto stopAt = [&](Error error) {
    int code = isMissingResource(error)          ? ExitMissingResource
               : error.isA<LaunchError>()        ? ExitWrongCall
               : loaded->diagnostics.hasErrors() ? ExitWrongProgram
                                                 : ExitInternalError;
    stop(code, toString(std::move(error)));
  };
  Expected<std::unique_ptr<Study>> study = Study::make(path, *loaded->module, loaded->diagnostics, options);
  if (!study)
    return stopAt(study.takeError());
  if (index >= (*study)->cases().size())
    return send(json::Object{{"event", "done"}});
  const StudyCase &one = (*study)->cases()[index];
  send(json::Object{{"event", "case"}, {"text", one.kernel->name.name + " " + one.text()}});
  Expected<bool> whole = ablate(**study, one, passes, firstPass, send);
  if (!whole)
    return stopAt(whole.takeError());
  if (*whole)
    send(json::Object{{"event", "end"}});
}

/// False where the file can go no further.
bool ablateCase(const std::string &path, const StudyOptions &options, ArrayRef<StringRef> passes, size_t index,
                double deadline, Report &report) {
  bool goesOn = false, ended = false, hasBegun = false;
  for (size_t firstPass = 0; !ended;) {
    json::Object begun;
    size_t before = firstPass;
    auto receive = [&](StringRef line) {
      Expected<json::Value> event = json::parse(line);
      if (!event)
        return consumeError(event.takeError()); // a broken line is the child's death
      json::Object &object = *event->getAsObject();
      StringRef kind = *object.getString("event");
      if (kind == "case") {
        goesOn = true;
        if (!std::exchange(hasBegun, true))
          report.beginCase(path, *object.getString("text"));
      } else if (kind == "error") {
        ended = true;
        goesOn = false;
        report.fail(static_cast<ExitCode>(*object.getInteger("exit")), path, *object.getString("message"));
      } else if (kind == "begin") {
        begun = object;
      } else if (kind == "done" || kind == "end") {
        ended = true;
      } else {
        if (kind == "pass")
          firstPass = *object.getInteger("index") + 1;
        begun = json::Object();
        report.add(std::move(object));
      }
    };
    ChildEnd end = runInChild(
        [&](function_ref<void(StringRef)> send) -> int {
          work(path, options, passes, index, firstPass, [&](json::Object event) {
            std::string text;
            raw_string_ostream(text) << json::Value(std::move(event));
            send(text);
          });
          return 0;
        },
        receive, deadline);
    if (ended)
      break;
    if (!begun.empty()) { // the child died with a pass left out
      firstPass = *begun.getInteger("index") + 1;
      begun["event"] = "pass";
      begun["outcome"] = "failed";
      begun["reason"] = "the process " + end.text;
      report.add(std::move(begun));
    } else if (firstPass == before) {
      report.fail(ExitInternalError, path, "the process for its cases " + end.text);
      return false;
    }
  }
  if (goesOn)
    report.endCase();
  return goesOn;
}

} // namespace

ExitCode runAblation(ArrayRef<std::string> paths, const StudyOptions &options, ArrayRef<StringRef> passes,
                     double deadline, bool json) {
  Report report(json);
  for (const std::string &path : paths)
    for (size_t index = 0; ablateCase(path, options, passes, index, deadline, report); ++index) {
    }
  report.end();
  return report.exit;
}

} // namespace tegula
