//===- Passes.cpp - tegula passes ----------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/Commands.h"
#include "passes/Phases.h"
#include "passes/Pipeline.h"
#include "passes/tile/TilePipeline.h"
#include "support/Switches.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("passes", "List passes, strategies and switches: what --disable takes");
static cl::opt<bool> asJson("json",
                            cl::desc("As JSON: a list of {name, kind, phase, does, targets}"),
                            cl::cat(outputOptions), cl::sub(sub));

namespace {
struct Row {
  std::string name;
  StringRef kind;
  Phase phase;
  std::string sentence;
  StringRef targets;
};
} // namespace

static std::vector<Row> rows() {
  std::vector<Row> all;
  std::vector<PipelinePass> passes = pipelinePasses();
  append_range(passes, tilePipelinePasses());
  all.reserve(passes.size());
  for (const PipelinePass &pass : passes)
    all.push_back({pass.name, "pass", pass.phase, pass.sentence,
                   !pass.onGpu   ? "cpu"
                   : !pass.onCpu ? "device"
                                 : "cpu, device"});
  for (const Switch &one : switches())
    all.push_back({one.name.str(), one.isStrategy ? "strategy" : "switch",
                   one.isStrategy ? Phase::Schedule : Phase::Lower, one.sentence.str(), "device"});
  return all;
}

static ExitCode run() {
  std::vector<Row> all = rows();
  if (asJson) {
    json::Array list;
    for (const Row &row : all)
      list.push_back(json::Object{{"name", row.name},
                                  {"kind", row.kind},
                                  {"phase", toString(row.phase)},
                                  {"does", row.sentence},
                                  {"targets", row.targets}});
    outs() << formatv("{0:2}\n", json::Value(std::move(list)));
    return ExitSuccess;
  }
  size_t width = 0;
  for (const Row &row : all)
    width = std::max(width, row.name.size() + 2);
  for (const Row &row : all)
    outs() << left_justify(row.name, width) << left_justify(row.kind, 10)
           << left_justify(toString(row.phase), 10) << left_justify(row.targets, 13) << row.sentence
           << '\n';
  outs() << "\nPasses of LLVM are left out by the names that opt --print-passes lists: "
            "--disable=licm.\n";
  return ExitSuccess;
}

const Command passesCommand = {sub, run};

} // namespace tegula
