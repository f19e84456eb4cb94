//===- GenerateMain.cpp - tegula-generate: prints a random program ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Generate.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

using namespace tegula::fuzz;

int main(int argc, char **argv) {
  uint64_t seed;
  llvm::StringRef kind = argc == 3 ? argv[1] : "";
  bool isKind =
      kind == "--tiles" || kind == "--accesses" || kind == "--loops" || kind == "--pieces";
  if (argc != 2 + isKind || llvm::StringRef(argv[argc - 1]).getAsInteger(10, seed)) {
    llvm::errs() << "usage: tegula-generate [--tiles | --accesses | --loops | --pieces] SEED\n";
    return 2;
  }
  GeneratedProgram program = kind == "--tiles"      ? generateTiledProgram(seed)
                             : kind == "--accesses" ? generateAccessProgram(seed)
                             : kind == "--loops"    ? generateLoopProgram(seed)
                             : kind == "--pieces"   ? generateBatchProgram(seed)
                                                    : generateProgram(seed);
  llvm::outs() << "# seed " << seed << ":";
  for (const auto &[name, value] : program.sizes)
    llvm::outs() << " " << name << "=" << value;
  llvm::outs() << "\n";
  auto print = [](const GeneratedTensor &tensor) {
    llvm::outs() << "# " << tensor.name << ": " << tensor.type << "[";
    for (size_t k = 0; k < tensor.shape.size(); ++k)
      llvm::outs() << (k ? ", " : "") << tensor.shape[k];
    llvm::outs() << "]";
  };
  for (const GeneratedTensor &input : program.inputs) {
    print(input);
    llvm::outs() << " in " << input.lo << ".." << input.hi << (input.special ? ", nan, inf" : "")
                 << "\n";
  }
  for (const GeneratedTensor &output : program.outputs) {
    print(output);
    llvm::outs() << " within " << output.tolerance << "\n";
  }
  llvm::outs() << program.text;
  return 0;
}
