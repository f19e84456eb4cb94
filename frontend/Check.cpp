//===- Check.cpp - Entry of the checker ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Check.h"

#include "frontend/check/CheckKernel.h"
#include "frontend/check/observations/SettleObservations.h"
#include "frontend/suggest/Rewrite.h"
#include "frontend/verify/TileCheck.h"

using namespace tegula;
using namespace tegula::checked;

std::unique_ptr<Program> tegula::check(const Module &module, const InstanceOptions &options,
                                       Diagnostics &diagnostics) {
  unsigned errorsBefore = diagnostics.numErrors();
  size_t first = diagnostics.all().size();
  std::unique_ptr<Program> program;
  WeakTypes weakTypes;
  while (true) { // types become wider, so it ends
    CheckContext ctx(module, options, diagnostics, weakTypes);
    program = checkKernel(ctx);
    if (!ctx.needsAnotherRun())
      break;
    diagnostics.truncate(first);
  }
  if (program) {
    TileCheckResult tiles = checkTiles(*program, diagnostics);
    if (options.remarks)
      for (Span loop : tiles.untried)
        diagnostics
            .report(Code::TileUntried, loop,
                    "that this loop does not depend on the tile size has not been tried")
            .note("at the smallest sizes that fit it takes too long, or leaves its tensors");
    settleObservations(*program, options.observe);
  }
  if (diagnostics.numErrors() != errorsBefore)
    suggestRewrites(diagnostics, first, module.file().id, module);
  return diagnostics.numErrors() == errorsBefore ? std::move(program) : nullptr;
}

std::vector<std::unique_ptr<Program>> tegula::checkAll(const Module &module, llvm::StringRef only,
                                                       bool remarks, Diagnostics &diagnostics) {
  size_t first = diagnostics.all().size();
  std::vector<std::unique_ptr<Program>> programs;
  for (const ast::Kernel *kernel : module.kernelsCalleesFirst()) {
    if (!only.empty() && kernel->name.name != only)
      continue;
    InstanceOptions options;
    options.kernel = kernel->name.name;
    options.remarks = remarks;
    if (std::unique_ptr<Program> program = check(module, options, diagnostics))
      programs.push_back(std::move(program));
  }
  // Found in the order of calls, told in the order of the text.
  diagnostics.sort(first);
  llvm::sort(programs, [](const auto &one, const auto &other) {
    return one->span.begin < other->span.begin;
  });
  return programs;
}
