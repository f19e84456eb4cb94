//===- Trace.cpp - The time line of one run as a trace ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/report/Trace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <set>

using namespace llvm;
using tegula::async::Timeline;

namespace tegula::report {

namespace {
/// The chunk of one warp.
class Warp {
public:
  explicit Warp(ArrayRef<int64_t> words) : words(words) {}

  size_t function() const { return words[0] - 1; }
  int64_t block() const { return words[1]; }
  int64_t warp() const { return words[2]; }
  int64_t multiprocessor() const { return words[3]; }
  int64_t begin() const { return words[4]; }
  /// A warp that has not come to its end has told none.
  bool hasEnded() const { return words[7] != 0; }
  int64_t end() const { return words[6]; }
  int64_t marks() const { return std::min<int64_t>(words[8], Timeline::maxMarks); }
  int64_t lostMarks() const { return words[8] - marks(); }
  int64_t mark(int64_t number) const { return words[Timeline::headerWords + 2 * number + 1]; }
  /// Nanoseconds, between the two times that both clocks have told.
  double timeOf(int64_t number) const {
    int64_t clocks = words[7] - words[5];
    double share =
        clocks ? double(words[Timeline::headerWords + 2 * number] - words[5]) / clocks : 0;
    return begin() + share * (end() - begin());
  }

private:
  ArrayRef<int64_t> words;
};
} // namespace

/// What a warp is for, by what it does to stages.
static StringRef roleOf(const Timeline &timeline, const Warp &warp) {
  bool fills = false, uses = false;
  for (int64_t number = 0; number < warp.marks(); ++number) {
    StringRef text = timeline.marks[warp.mark(number)].text;
    fills |= text == "stage filled" || text == "wait for an empty stage";
    uses |= text == "stage used" || text == "wait for a full stage";
  }
  return fills && !uses ? " (producer)" : uses && !fills ? " (consumer)" : "";
}

std::string traceText(const Timeline &timeline, ArrayRef<int64_t> words) {
  std::vector<Warp> warps;
  int64_t taken = words.front(), lost = 0;
  for (int64_t at = 1; at + Timeline::chunkWords <= int64_t(words.size()) && at <= taken;
       at += Timeline::chunkWords)
    if (Warp warp(words.slice(at, Timeline::chunkWords)); words[at] && warp.hasEnded())
      warps.push_back(warp);
  int64_t started = taken / Timeline::chunkWords;
  int64_t zero = warps.empty() ? 0 : INT64_MAX;
  for (const Warp &warp : warps)
    zero = std::min(zero, warp.begin());

  json::Array events;
  auto micros = [&](double nanoseconds) { return (nanoseconds - zero) / 1000; };
  std::set<int64_t> multiprocessors;
  for (const Warp &warp : warps) {
    lost += warp.lostMarks();
    // Warps of all blocks of a multiprocessor are told apart.
    int64_t thread = warp.block() * 64 + warp.warp();
    auto event = [&](StringRef phase, const Twine &name, double at) {
      return json::Object{{"ph", phase},
                          {"name", name.str()},
                          {"pid", warp.multiprocessor()},
                          {"tid", thread},
                          {"ts", micros(at)}};
    };
    if (multiprocessors.insert(warp.multiprocessor()).second)
      events.push_back(json::Object{
          {"ph", "M"},
          {"name", "process_name"},
          {"pid", warp.multiprocessor()},
          {"args",
           json::Object{{"name", "multiprocessor " + std::to_string(warp.multiprocessor())}}}});
    events.push_back(
        json::Object{{"ph", "M"},
                     {"name", "thread_name"},
                     {"pid", warp.multiprocessor()},
                     {"tid", thread},
                     {"args", json::Object{{"name", ("block " + Twine(warp.block()) + ", warp " +
                                                     Twine(warp.warp()) + roleOf(timeline, warp))
                                                        .str()}}}});
    json::Object whole = event("X", timeline.functions[warp.function()], warp.begin());
    whole["dur"] = (warp.end() - warp.begin()) / 1000.0;
    events.push_back(std::move(whole));
    std::map<std::string, double> open; // by text, since when
    for (int64_t number = 0; number < warp.marks(); ++number) {
      const Timeline::Mark &mark = timeline.marks[warp.mark(number)];
      double at = warp.timeOf(number);
      if (mark.kind == Timeline::Mark::Begin) {
        open[mark.text] = at;
      } else if (mark.kind == Timeline::Mark::Instant) {
        json::Object instant = event("i", mark.text, at);
        instant["s"] = "t";
        events.push_back(std::move(instant));
      } else if (auto since = open.find(mark.text); since != open.end()) {
        json::Object span = event("X", mark.text, since->second);
        span["dur"] = (at - since->second) / 1000;
        events.push_back(std::move(span));
        open.erase(since);
      }
    }
  }
  json::Object trace{
      {"displayTimeUnit", "ns"},
      {"traceEvents", std::move(events)},
      {"otherData", json::Object{{"warps", int64_t(warps.size())},
                                 {"warps_without_room", started - int64_t(warps.size())},
                                 {"marks_without_room", lost}}}};
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(trace)) << '\n';
  return text;
}

} // namespace tegula::report
