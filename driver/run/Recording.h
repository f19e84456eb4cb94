//===- Recording.h - A run that can be walked through -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run in which each statement notes when it is reached, put into the order of one thread. What an
// expression is at one of these stops is found by another run, in which a `print` of it stands
// before the statement: values are those of the compiled program, and so is what may be written.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_RUN_RECORDING_H
#define TEGULA_DRIVER_RUN_RECORDING_H

#include "driver/Load.h"
#include "driver/run/RunFiles.h"
#include "runtime/observe/Observed.h"

namespace tegula {

/// A statement at one step of the loops around it, before it runs; or an assertion that fails.
struct Stop {
  Moment moment;
  size_t statement; // of Observed
  auto operator<=>(const Stop &) const = default;
};

class Recording {
public:
  /// Runs the program. Null, with the reason on standard error and in `code`, where it cannot be.
  static std::unique_ptr<Recording> make(llvm::StringRef path, std::string text,
                                         const RunCall &call, CompileOptions options,
                                         ExitCode &code);

  /// In the order of the run.
  llvm::ArrayRef<Stop> stops() const { return order; }
  const Seen &seen(const Stop &stop) const { return run.observed->statements()[stop.statement]; }
  bool isFailure(const Stop &stop) const {
    return seen(stop).kind() != checked::Observation::Reach;
  }
  unsigned line(const Stop &stop) const;
  /// The first line of the statement, without blanks around it.
  llvm::StringRef lineText(const Stop &stop) const;
  llvm::StringRef kernelName(const Stop &stop) const;
  /// Up to three lines before and after one, with their numbers.
  std::vector<std::pair<unsigned, std::string>> linesAround(unsigned line) const;
  /// Texts of `print`s between two stops; the end of the run is the null stop.
  std::string printsBetween(const Stop *from, const Stop *to, unsigned points) const;
  /// The first line of a statement at or after `line`; nothing where there is none.
  std::optional<unsigned> statementLine(unsigned line) const;

  using Point = std::map<std::string, int64_t>;
  /// Values of an expression before the statement, a line for each point of the indices that it has
  /// beside those of the stop and of `point`. An error says why it has none there.
  llvm::Expected<std::string> look(const Stop &stop, llvm::StringRef text, const Point &point,
                                   unsigned points) const;
  /// By stop of a line whether a condition holds, and then for the equation's indices that it names
  /// the first point at which it does.
  llvm::Expected<std::map<size_t, Point>> holdsAt(unsigned line, llvm::StringRef condition) const;
  /// The indices of an equation with their ranges; none of other statements.
  struct Index {
    std::string name;
    int64_t lo, hi;
  };
  std::vector<Index> equationIndices(size_t statement) const;

  /// How many entries of the moment's path say which step of the innermost loop or block this is;
  /// with `leave` which loop, block or call. 0: there is none around.
  size_t around(const Stop &stop, bool leave) const;
  unsigned calls(const Stop &stop) const;

  /// Says on standard error what is wrong with the results. The exit code of the run.
  ExitCode tellFailure() const;
  /// Does that, or shows or stores the results.
  ExitCode finish() const;
  const std::string &failure() const { return run.failure; }

private:
  struct Run {
    std::unique_ptr<LoadedFile> loaded;
    std::unique_ptr<bench::Runner> runner;
    SizeValues sizes;
    std::unique_ptr<bench::Launch> launch;
    std::optional<Observed> observed;
    std::string failure; // that ended the run with a wrong result
  };
  Recording(llvm::StringRef path, std::string text, const RunCall &call, CompileOptions options)
      : path(path), text(std::move(text)), call(call), options(std::move(options)) {}
  ExitCode record(std::string program, const CompileOptions &how, Run &run) const;
  void putInOrder();
  uint32_t begin(size_t statement) const {
    return run.observed->statements()[statement].observation().statement.span.begin;
  }
  struct Look {
    Run run;
    std::vector<size_t> prints; // statements of that run
  };
  llvm::Expected<std::unique_ptr<Look>> lookBefore(size_t statement, llvm::StringRef text,
                                                   const Point &point) const;

  std::string path, text;
  const RunCall &call;
  CompileOptions options;
  Run run;
  std::vector<Stop> order, printed;
};

} // namespace tegula

#endif // TEGULA_DRIVER_RUN_RECORDING_H
