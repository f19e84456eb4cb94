//===- Ablate.cpp - tegula bench --ablate -----------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/Ablate.h"
#include "bench/Ablate.h"
#include "driver/CaseStudies.h"
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
  double lower = 0, upper = 0; // of one case's time
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

/// Leaves passes out, one after the other, and prints what that costs.
class Ablation : public CaseStudies {
public:
  Ablation(ArrayRef<StringRef> passes, bool json) : passes(passes), json(json) {}

  Expected<bool> runTrials(Study &study, const StudyCase &one, Send send) override {
    return ablate(study, one, passes, nextPass, send);
  }
  StringRef trialName() const override { return "pass"; }

  void forgetCase() override {
    nextPass = 0;
    base = json::Object();
    one.clear();
    notes.clear();
  }

  void beginCase(StringRef path, StringRef text) override {
    title = (sys::path::stem(path) + "  " + text).str();
    file = path.str();
  }

  void add(json::Object event) override {
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
    nextPass = *event.getInteger("index") + 1;
    std::string pass = event.getString("pass")->str();
    StringRef outcome = *event.getString("outcome");
    bool isAdded = *event.getBoolean("added");
    for (Worth *worth : {&one[pass], &all[pass]}) {
      worth->isAdded = isAdded;
      count(*worth, outcome, event);
    }
    if (outcome == "wrong" || outcome == "failed") {
      exit = worse(exit, ExitWrongResult);
      notes.push_back((isAdded ? "with " : "without ") + pass +
                      (outcome == "wrong" ? " the result is wrong: " : " it does not run: ") +
                      StringRef(*event.getString("reason")).rtrim().str());
    }
  }

  void endCase() override {
    ++cases;
    if (json || base.empty())
      return;
    outs() << title << '\n';
    std::string time;
    raw_string_ostream(time) << format("%.2f us", 1e6 * *base.getNumber("seconds"));
    outs() << "  with all passes: " << time << ", compiled in "
           << format("%.1f ms", *base.getNumber("milliseconds")) << ", "
           << *base.getInteger("instructions") << " instructions";
    if (std::optional<int64_t> registers = base.getInteger("registers"))
      outs() << ", " << *registers << " registers, " << *base.getInteger("spillBytes")
             << " bytes spilled";
    outs() << '\n';
    outs() << "  the same code again: "
           << format("%.2fx to %.2fx", base.getNumber("noiseLower").value_or(1),
                     base.getNumber("noiseUpper").value_or(1))
           << '\n';
    table(one, /*hasSpread=*/true);
    for (const std::string &note : notes)
      outs() << "  " << note << '\n';
    outs() << '\n';
    outs().flush();
  }

  void end() {
    if (json || cases < 2)
      return;
    outs() << "over " << cases << " cases, geometric means\n";
    table(all, /*hasSpread=*/false);
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
    worth.lower = event.getNumber("timeLower").value_or(0);
    worth.upper = event.getNumber("timeUpper").value_or(0);
  }

  /// The interval of a time; of one that holds 1, or reaches into that of the same code against
  /// itself, that it is noise.
  std::string spreadOf(const Worth &worth) const {
    double low = std::min(1.0, base.getNumber("noiseLower").value_or(1));
    double high = std::max(1.0, base.getNumber("noiseUpper").value_or(1));
    std::string text;
    raw_string_ostream os(text);
    os << format("%.2f to %.2f", worth.lower, worth.upper);
    if (worth.lower <= high && worth.upper >= low)
      os << " noise";
    return text;
  }

  void table(const Found &found, bool hasSpread) {
    rows(found, /*isAdded=*/false, hasSpread);
    rows(found, /*isAdded=*/true, hasSpread);
  }

  /// Prints a row for each pass that was left out, or that was added.
  void rows(const Found &found, bool isAdded, bool hasSpread) {
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
      return std::make_pair(-a->second.time.value(), a) <
             std::make_pair(-b->second.time.value(), b);
    });
    StringRef how = isAdded ? "with" : "without";
    if (!rows.empty())
      outs() << "  " << left_justify(how, 34) << right_justify("time", 8)
             << (hasSpread ? "  interval            " : "") << right_justify("compile", 9)
             << right_justify("instr.", 8) << (hasRegisters ? "  registers" : "") << '\n';
    for (auto *row : rows) {
      const Worth &worth = row->second;
      outs() << "  " << left_justify(row->first, 34) << right_justify(quotient(worth.time), 8)
             << left_justify(hasSpread ? "  " + spreadOf(worth) : "", hasSpread ? 22 : 0)
             << right_justify(quotient(worth.compile), 9)
             << right_justify(quotient(worth.instructions), 8);
      if (hasRegisters)
        outs() << right_justify(quotient(worth.registers), 11);
      outs() << '\n';
    }
    if (!same.empty())
      outs() << "  the same code " << how << ' ' << join(same, ", ") << '\n';
    if (!needed.empty())
      outs() << "  no code without " << join(needed, ", ") << '\n';
  }

  ArrayRef<StringRef> passes;
  size_t nextPass = 0;
  bool json;
  std::string title, file;
  json::Object base;
  Found one, all;
  std::vector<std::string> notes;
  unsigned cases = 0;
};

} // namespace

ExitCode runAblation(ArrayRef<std::string> paths, const StudyOptions &options,
                     ArrayRef<StringRef> passes, double deadline, bool json) {
  ::setenv("TEGULA_CACHE_DIR", "", 1); // compile times are those of compiling
  Ablation ablation(passes, json);
  ablation.run(paths, options, deadline);
  ablation.end();
  return ablation.exit;
}

} // namespace tegula
