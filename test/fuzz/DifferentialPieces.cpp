//===- DifferentialPieces.cpp - Random programs, run in pieces of their batch ---------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DifferentialPieces.h"

#include "Generate.h"
#include "bench/Pieces.h"
#include "frontend/OpenModule.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tegula;
using namespace tegula::bench;

std::string fuzz::comparePieces(const GeneratedProgram &program, const CompileOptions &options,
                                uint64_t seed, bool &didCompare) {
  SourceManager sources;
  Diagnostics diagnostics(sources);
  std::unique_ptr<Module> module =
      openModule(sources, sources.add("random.tgl", program.text), diagnostics);
  auto runner = Runner::make(*module, options, diagnostics);
  if (!runner)
    return "compiling: " + llvm::toString(runner.takeError());
  if (!*runner)
    return "the checker says: " + diagnostics.all().front().message;
  (*runner)->setThreads(1 + seed % 3);
  Signature signature(*module->entry(""));
  Instance instance;
  for (const auto &[name, value] : program.sizes)
    instance.sizes[name] = value;
  int64_t extent = instance.sizes.at("M");
  auto sizesAt = [&](int64_t rows) {
    instance.sizes["M"] = rows;
    return (*runner)->sizes(signature, instance);
  };
  auto run = [&]() -> llvm::Expected<PieceComparison> {
    auto sizes = sizesAt(extent);
    if (!sizes)
      return sizes.takeError();
    Launch::Inputs inputs;
    inputs.seed = seed;
    auto launch = Launch::make(**runner, *sizes, std::move(inputs));
    if (!launch)
      return launch.takeError();
    if (auto taken = (*launch)->run(); !taken)
      return taken.takeError();
    std::vector<unsigned> written = (*launch)->resultArguments();
    auto results = (*launch)->read(written);
    if (!results)
      return results.takeError();
    std::map<std::string, ScalarSetting> scalars;
    PieceRequest request{"M", extent, /*rounds=*/1, seed, scalars, sizesAt};
    return bench::comparePieces(**runner, **launch, written, *results, request, nullptr);
  };
  auto compared = run();
  if (!compared)
    return "running: " + llvm::toString(compared.takeError());
  didCompare = compared->elements != 0;
  if (!compared->other)
    return "";
  const OtherPiece &other = *compared->other;
  return llvm::formatv("M from {0} to {1} of {2} gives other bits in '{3}', first at {4}",
                       other.begin, other.end, extent,
                       (*runner)->kernel().arguments[other.argument].name, shapeText(other.place));
}
