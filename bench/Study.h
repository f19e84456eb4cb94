//===- Study.h - One case, compiled in several ways ------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `tegula bench --ablate` and `tegula bisect` share: the cases of a program, compilations of
// one of them with passes left out, and what sets these apart: code, results, times. Nothing here
// needs libtorch.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_STUDY_H
#define TEGULA_BENCH_STUDY_H

#include "bench/Compare.h"
#include "bench/Runner.h"
#include "bench/Timing.h"
#include "frontend/parse/Module.h"

namespace tegula::bench {

struct StudyOptions {
  std::string kernel; // empty: those that the reference has cases for, or the file's last
  std::string
      reference; // path of a file with cases; empty: the one beside the program, if there is one
  Settings settings; // from the command line; with sizes in it, the one case
  std::string target = "cpu";
  unsigned threads = 0; // 0: as many as the process may use
  uint64_t seed = 0;
  unsigned sets = numSets; // of inputs
  bool listTiles = false;  // see CompileOptions
  bool timedCases = true;  // cases that are timed, or those for correctness
  TimingLimits limits;
};

/// What of the code can be counted.
struct CodeFacts {
  std::string text;                  // assembly, or PTX
  std::string log;                   // the assembler's (devices)
  uint64_t instructions = 0;         // in it
  std::optional<unsigned> registers; // of a thread, the most of all kernels (devices)
  uint64_t spillBytes = 0;           // stored and loaded again (devices)
  double milliseconds = 0;           // to compile it, nothing cached, on one thread
};

/// Counts the instructions of assembly or PTX.
uint64_t countInstructions(llvm::StringRef text);
/// Registers and spills as ptxas and nvJitLink report them.
void readAssemblerLog(llvm::StringRef log, CodeFacts &facts);

struct StudyCase {
  const ast::Kernel *kernel = nullptr;
  const RefFunction *function = nullptr; // null: none
  Case sizes;
  std::string text() const;
};

/// A compilation that the verifiers of the phases or LLVM refuse: what was left out is needed.
class NeededError : public llvm::ErrorInfo<NeededError> {
public:
  static char ID;
  explicit NeededError(std::string message) : message(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string message;
};

class Study {
public:
  /// `module` is the program at `path`; both must outlive the study. Errors are LaunchErrors of the
  /// kind WrongCall.
  static llvm::Expected<std::unique_ptr<Study>> make(const std::string &path, const Module &module,
                                                     Diagnostics &diagnostics,
                                                     StudyOptions options);

  llvm::ArrayRef<StudyCase> cases() const { return found; }
  /// Begins with another case.
  llvm::Error select(const StudyCase &one);

  /// One way to compile the case that was selected last.
  struct Way {
    Way() = default;
    Way(Way &&) = default;
    Way &operator=(Way &&) = delete; // would end the runner before the launches that use it

    std::shared_ptr<PassRuns> runs;
    ScheduleChoice choice;
    CodeFacts facts;
    std::unique_ptr<Runner> runner; // null before prepare
    std::vector<std::unique_ptr<Launch>> sets;
    std::vector<std::vector<Tensor>> results; // of each set
  };
  /// Compiles, `repeats` times for its time, which 0 leaves out. NeededError where it does not
  /// compile.
  llvm::Expected<Way> compile(std::shared_ptr<PassRuns> runs, unsigned repeats = 0) const;
  /// Makes inputs and runs each set once. All ways get the same inputs; those of `like` are copied
  /// where it is given.
  llvm::Error prepare(Way &way, const Way *like = nullptr) const;
  /// A way that differs in its schedule: compiled once and prepared. NeededError where it does not
  /// compile.
  llvm::Expected<Way> tryChoice(const ScheduleChoice &choice, const Way *like) const;
  /// Of the selected case.
  const std::map<std::string, int64_t> &sizeValues() const { return sizesByName; }
  /// Nothing where the results of `way` are as good as those of `other`, by the rule of `tegula
  /// bench`; or, with `exact`, the same bits. Otherwise what is wrong first.
  std::string differ(Way &way, Way &other, bool exact) const;
  /// In turns.
  llvm::Expected<TimedPair> time(Way &one, Way &other) const;

private:
  Study(const Module &module, Diagnostics &diagnostics, StudyOptions options)
      : module(module), diagnostics(diagnostics), options(std::move(options)) {}
  llvm::Error findCases(const std::string &path);
  CompileOptions compileOptions(std::shared_ptr<PassRuns> runs) const;
  llvm::Error makeRunner(Way &way) const;
  llvm::Error makeSets(Way &way, const Way *like) const;

  const Module &module;
  Diagnostics &diagnostics;
  StudyOptions options;
  RefFile reference;
  std::vector<StudyCase> found;
  // of the selected case
  std::unique_ptr<Signature> signature;
  StudyCase current;
  Instance instance;
  std::vector<int64_t> sizes; // their values, where code is made for them
  std::map<std::string, int64_t> sizesByName;
  std::string deviceName; // the target as the compiler knows it
};

} // namespace tegula::bench

#endif // TEGULA_BENCH_STUDY_H
