//===- Step.cpp - Walking through a run --------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/run/Step.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <iostream>
#include <unistd.h>

using namespace llvm;

namespace tegula {

namespace {
class Walk {
public:
  Walk(const Recording &recording, unsigned points)
      : recording(recording), stops(recording.stops()), points(points) {}
  ExitCode run();

private:
  struct Breakpoint {
    unsigned number, line;
    std::string condition;
    std::map<size_t, Recording::Point> holds; // by stop, where there is a condition
  };
  struct Command {
    StringRef name, shortName, arguments, what;
    void (Walk::*obey)(StringRef argument);
  };
  static ArrayRef<Command> commands();
  void obey(StringRef line);

  void step(StringRef count);
  void next(StringRef count);
  void iterate(StringRef);
  void finish(StringRef);
  void resume(StringRef);
  void back(StringRef count);
  void setBreakpoint(StringRef argument);
  void removeBreakpoint(StringRef number);
  void listBreakpoints(StringRef);
  void print(StringRef expression);
  void setPoint(StringRef indices);
  void where(StringRef);
  void list(StringRef);
  void help(StringRef);
  void quit(StringRef) { isOver = true; }

  void complain(const Twine &message) {
    outs().flush();
    errs() << message << '\n';
    failed = ExitWrongCall;
  }
  std::optional<unsigned> countOf(StringRef text);
  /// Goes on to the first later stop that is `wanted`, or at which there is reason to stop.
  void goUntil(function_ref<bool(size_t)> wanted);
  const Breakpoint *breakpointAt(size_t stop, Recording::Point &point) const;
  void show(StringRef why = "");
  std::string frameText(const Stop &stop) const;
  bool isEnded() const { return at == stops.size(); }
  void end();

  const Recording &recording;
  ArrayRef<Stop> stops;
  unsigned points;
  size_t at = 0;
  Recording::Point point; // of the equation
  std::vector<Breakpoint> breakpoints;
  unsigned nextNumber = 1;
  bool isOver = false, hasEnded = false;
  ExitCode failed = ExitSuccess, ended = ExitSuccess;
};
} // namespace

ArrayRef<Walk::Command> Walk::commands() {
  static const Command all[] = {
      {"step", "s", "[N]", "to the next statement, into kernels that are called", &Walk::step},
      {"next", "n", "[N]", "to the next statement, over kernels that are called", &Walk::next},
      {"iterate", "i", "", "to the next step of the innermost loop or block", &Walk::iterate},
      {"finish", "f", "", "out of the innermost loop, block or called kernel", &Walk::finish},
      {"continue", "c", "", "to the next breakpoint, failed assertion or the end", &Walk::resume},
      {"back", "", "[N]", "to the statement before", &Walk::back},
      {"break", "b", "LINE [if CONDITION]", "stops there; `break 7 if t == 2 and i == 3`",
       &Walk::setBreakpoint},
      {"delete", "d", "NUMBER", "removes a breakpoint", &Walk::removeBreakpoint},
      {"breakpoints", "", "", "lists them", &Walk::listBreakpoints},
      {"print", "p", "VALUES", "tensors, elements, expressions: what the statement print takes",
       &Walk::print},
      {"point", "", "[i=1, j=2]", "the point of the equation that print shows; none: all",
       &Walk::setPoint},
      {"where", "w", "", "the statement, the indices of loops, and the calls around it",
       &Walk::where},
      {"list", "l", "", "the text around the statement", &Walk::list},
      {"help", "h", "", "this list", &Walk::help},
      {"quit", "q", "", "ends", &Walk::quit},
  };
  return all;
}

//===----------------------------------------------------------------------===//
// Going on
//===----------------------------------------------------------------------===//

static std::string pointText(const Recording::Point &point) {
  std::string result;
  for (const auto &[name, index] : point)
    result += (result.empty() ? "" : ", ") + name + "=" + std::to_string(index);
  return result;
}

std::string Walk::frameText(const Stop &stop) const {
  std::string where = recording.seen(stop).where(stop.moment.element);
  return recording.kernelName(stop).str() + ":" + std::to_string(recording.line(stop)) + ": " +
         where + (where.empty() ? "" : ": ") + recording.lineText(stop).str();
}

void Walk::show(StringRef why) {
  const Stop &stop = stops[at];
  if (recording.isFailure(stop))
    outs() << recording.seen(stop).verdict(stop.moment.element) << '\n';
  if (!why.empty())
    outs() << why << '\n';
  outs() << frameText(stop) << '\n';
}

void Walk::end() {
  outs() << "the end\n";
  outs().flush();
  hasEnded = true;
  ended = recording.finish();
  outs().flush();
}

const Walk::Breakpoint *Walk::breakpointAt(size_t stop, Recording::Point &where) const {
  for (const Breakpoint &one : breakpoints) {
    if (recording.isFailure(stops[stop]) || recording.line(stops[stop]) != one.line)
      continue;
    if (one.condition.empty())
      return &one;
    if (auto holds = one.holds.find(stop); holds != one.holds.end()) {
      where = holds->second;
      return &one;
    }
  }
  return nullptr;
}

void Walk::goUntil(function_ref<bool(size_t)> wanted) {
  if (isEnded())
    return complain("the run has ended");
  const Stop *from = &stops[at];
  point.clear();
  const Breakpoint *breakpoint = nullptr;
  for (++at; !isEnded() && !recording.isFailure(stops[at]); ++at)
    if ((breakpoint = breakpointAt(at, point)) || wanted(at))
      break;
  outs() << recording.printsBetween(from, isEnded() ? nullptr : &stops[at], points);
  if (isEnded())
    return end();
  std::string why;
  if (breakpoint)
    why = "breakpoint " + std::to_string(breakpoint->number) +
          (point.empty() ? "" : " at " + pointText(point));
  show(why);
}

std::optional<unsigned> Walk::countOf(StringRef text) {
  unsigned count = 1;
  if (!text.empty() && (text.getAsInteger(10, count) || !count)) {
    complain("expected a number of statements, got '" + text + "'");
    return std::nullopt;
  }
  return count;
}

void Walk::step(StringRef text) {
  std::optional<unsigned> count = countOf(text);
  if (count)
    goUntil([&](size_t) { return --*count == 0; });
}

void Walk::next(StringRef text) {
  std::optional<unsigned> count = countOf(text);
  if (!count || isEnded())
    return count ? complain("the run has ended") : void();
  unsigned calls = recording.calls(stops[at]);
  goUntil([&](size_t stop) { return recording.calls(stops[stop]) <= calls && --*count == 0; });
}

/// Whether two stops have the first entries of their paths in common.
static bool sharesPath(const Stop &one, const Stop &other, size_t length) {
  return other.moment.path.size() >= length &&
         std::equal(one.moment.path.begin(), one.moment.path.begin() + length,
                    other.moment.path.begin());
}

void Walk::iterate(StringRef) {
  if (isEnded())
    return complain("the run has ended");
  const Stop &here = stops[at];
  size_t around = recording.around(here, /*leave=*/false);
  if (!around)
    return complain("no loop and no block is around this statement");
  goUntil([&](size_t stop) { return !sharesPath(here, stops[stop], around); });
}

void Walk::finish(StringRef) {
  if (isEnded())
    return complain("the run has ended");
  const Stop &here = stops[at];
  size_t around = recording.around(here, /*leave=*/true);
  if (!around)
    return complain("no loop, block or called kernel is around this statement");
  goUntil([&](size_t stop) { return !sharesPath(here, stops[stop], around); });
}

void Walk::resume(StringRef) {
  goUntil([](size_t) { return false; });
}

void Walk::back(StringRef text) {
  std::optional<unsigned> count = countOf(text);
  if (!count)
    return;
  if (at == 0)
    return complain("this is the first statement");
  at -= std::min<size_t>(*count, at);
  point.clear();
  show();
}

//===----------------------------------------------------------------------===//
// Breakpoints
//===----------------------------------------------------------------------===//

void Walk::setBreakpoint(StringRef argument) {
  auto [number, rest] = argument.split(' ');
  unsigned line = 0;
  if (number.getAsInteger(10, line))
    return complain("expected a line: break 7, break 7 if t == 2; got '" + argument + "'");
  rest = rest.trim();
  if (!rest.empty() && !rest.consume_front("if "))
    return complain("expected 'if CONDITION' after the line, got '" + rest + "'");
  std::optional<unsigned> found = recording.statementLine(line);
  if (!found)
    return complain("no statement stands at line " + Twine(line) + " or after it");
  Breakpoint made{nextNumber, *found, rest.trim().str(), {}};
  if (!made.condition.empty()) {
    Expected<std::map<size_t, Recording::Point>> holds = recording.holdsAt(*found, rest.trim());
    if (!holds)
      return complain(toString(holds.takeError()));
    made.holds = std::move(*holds);
  }
  ++nextNumber;
  outs() << "breakpoint " << made.number << " at line " << made.line;
  if (!made.condition.empty())
    outs() << " if " << made.condition << ": " << made.holds.size() << " times in this run";
  outs() << '\n';
  breakpoints.push_back(std::move(made));
}

void Walk::removeBreakpoint(StringRef text) {
  unsigned number = 0;
  auto found = breakpoints.end();
  if (!text.getAsInteger(10, number))
    found = find_if(breakpoints, [&](const Breakpoint &one) { return one.number == number; });
  if (found == breakpoints.end())
    return complain("there is no breakpoint '" + text + "'");
  breakpoints.erase(found);
}

void Walk::listBreakpoints(StringRef) {
  for (const Breakpoint &one : breakpoints)
    outs() << one.number << ": line " << one.line
           << (one.condition.empty() ? "" : " if " + one.condition) << '\n';
}

//===----------------------------------------------------------------------===//
// Looking
//===----------------------------------------------------------------------===//

void Walk::print(StringRef expression) {
  if (isEnded())
    return complain("the run has ended");
  if (expression.empty())
    return complain("expected what to show: print x[i, j], 2*h[i]");
  Expected<std::string> text = recording.look(stops[at], expression, point, points);
  if (!text)
    return complain(toString(text.takeError()));
  outs() << *text;
}

void Walk::setPoint(StringRef indices) {
  if (isEnded())
    return complain("the run has ended");
  Recording::Point made;
  std::vector<Recording::Index> known = recording.equationIndices(stops[at].statement);
  SmallVector<StringRef> parts;
  indices.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [name, text] = part.split('=');
    int64_t value = 0;
    if (text.trim().getAsInteger(10, value))
      return complain("expected indices: point i=1, j=2; got '" + part.trim() + "'");
    auto index =
        find_if(known, [&](const Recording::Index &one) { return one.name == name.trim(); });
    if (index == known.end())
      return complain("'" + name.trim() + "' is no index of this statement");
    if (value < index->lo || value >= index->hi)
      return complain(name.trim() + " runs from " + Twine(index->lo) + " to " +
                      Twine(index->hi - 1) + ", got " + Twine(value));
    made[name.trim().str()] = value;
  }
  point = std::move(made);
}

void Walk::where(StringRef) {
  if (isEnded())
    return complain("the run has ended");
  unsigned calls = recording.calls(stops[at]);
  outs() << frameText(stops[at]) << (point.empty() ? "" : " at " + pointText(point)) << '\n';
  // A call is the last statement before its kernel's.
  for (size_t outer = at; calls && outer--;)
    if (recording.calls(stops[outer]) < calls) {
      outs() << "  called by " << frameText(stops[outer]) << '\n';
      calls = recording.calls(stops[outer]);
    }
}

void Walk::list(StringRef) {
  if (isEnded())
    return complain("the run has ended");
  unsigned here = recording.line(stops[at]);
  for (const auto &[line, text] : recording.linesAround(here))
    outs() << (line == here ? "> " : "  ") << line << "  " << text << '\n';
}

void Walk::help(StringRef) {
  for (const Command &one : commands()) {
    std::string form = one.name.str() + (one.arguments.empty() ? "" : " " + one.arguments.str());
    outs() << left_justify(form, 30) << one.what
           << (one.shortName.empty() ? "" : " (" + one.shortName.str() + ")") << '\n';
  }
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

void Walk::obey(StringRef line) {
  auto [name, argument] = line.split(' ');
  const Command *found = find_if(commands(), [&, name = name](const Command &one) {
    return name == one.name || (!one.shortName.empty() && name == one.shortName);
  });
  if (found == commands().end())
    return complain("unknown command '" + name + "': help lists them");
  argument = argument.trim();
  if (found->arguments.empty() && !argument.empty())
    return complain("'" + found->name + "' stands alone, got '" + argument + "'");
  (this->*found->obey)(argument);
}

ExitCode Walk::run() {
  bool isTerminal = isatty(STDIN_FILENO);
  if (!recording.failure().empty())
    errs() << "the run fails, as is told at its end: " << recording.failure() << '\n';
  if (isEnded()) {
    end();
    return ended;
  }
  outs() << recording.printsBetween(nullptr, &stops[at], points);
  show();
  std::string line;
  while (!isOver) {
    if (isTerminal)
      outs() << "(tegula) ";
    outs().flush();
    if (!std::getline(std::cin, line))
      break;
    StringRef command = StringRef(line).trim();
    if (!command.empty() && !command.starts_with("#"))
      obey(command);
  }
  outs().flush();
  if (!hasEnded)
    ended = recording.tellFailure();
  return ended != ExitSuccess ? ended : failed;
}

ExitCode stepThrough(const Recording &recording, unsigned points) {
  return Walk(recording, points).run();
}

} // namespace tegula
