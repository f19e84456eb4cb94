//===- Reference.h - A function of PyTorch over exact numbers -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// python/tegula_eval/proofs/trace.py, run by a Python that has torch, takes a function apart at
// given shapes: into gathers, maps of elements, reductions, products, scans and sorts, which are
// evaluated here.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_REFERENCE_H
#define TEGULA_PROVE_REFERENCE_H

#include "prove/Equal.h"
#include "prove/ReferenceProgram.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace tegula::prove {

/// A Python process that traces: one line asks, one line answers.
class TraceProcess {
public:
  /// Null, with the reason in `error`, where it does not start.
  static std::unique_ptr<TraceProcess> start(const std::string &python, std::string &error);
  /// A tracer that somebody else runs: questions are written to `in`, and answers read from `out`.
  static std::unique_ptr<TraceProcess> attach(int in, int out);
  ~TraceProcess();
  TraceProcess(const TraceProcess &) = delete;

  llvm::Expected<llvm::json::Value> ask(const llvm::json::Value &question);

private:
  TraceProcess(int pid, int in, int out) : pid(pid), in(in), out(out) {}
  int pid, in, out; // no `pid` where it is somebody else's
  std::string rest;
};

/// An argument that is no tensor: a compile-time constant.
using FixedArguments = std::vector<std::pair<std::string, llvm::json::Value>>;

class ReferenceSubject final : public Subject {
public:
  ReferenceSubject(TraceProcess &process, std::string path, tgl::KernelOp kernel,
                   FixedArguments constants)
      : process(process), path(std::move(path)), kernel(kernel), constants(std::move(constants)) {}

  Evaluation run(const Point &point, Algebra &algebra, const EvaluateOptions &options) override;
  Evaluation outline(const Point &point, Algebra &algebra, EvaluateOptions options) override;
  void settle(Coverage::Kind kind) override;
  std::vector<std::string> oneSided() const override;
  /// A network of some hundred layers is traced in about a second.
  bool isSlowToPrepare() const override { return longest > 1000; }

private:
  /// What was answered at some shapes.
  struct Traced {
    bool isAsked = false;
    std::unique_ptr<ReferenceProgram> program; // null where there is none, as `problem` says
    Evaluation::Problem problem = Evaluation::Unknown;
    std::string message;

    void read(const llvm::json::Value &answer);
  };

  /// The program for the shapes of a point; null, with a problem and a message in `result`, where
  /// there is none.
  const ReferenceProgram *programFor(const Point &point, const EvaluateOptions &options,
                                     Evaluation &result);

  TraceProcess &process;
  std::string path;
  tgl::KernelOp kernel;
  FixedArguments constants;
  std::map<std::string, Traced> programs;            // by question
  size_t longest = 0;                                // of them, in instructions
  std::vector<std::pair<std::string, uint8_t>> ways; // of conditions, in order, since `settle`
  std::vector<std::pair<std::string, uint8_t>> sureWays;
};

} // namespace tegula::prove

#endif // TEGULA_PROVE_REFERENCE_H
