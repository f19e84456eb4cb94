//===- Grad.cpp - tegula grad ------------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/CheckKernels.h"
#include "driver/Commands.h"
#include "driver/FileIO.h"
#include "driver/InstanceArgs.h"
#include "driver/Load.h"
#include "grad/Gradient.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("grad", "Write the program that computes a kernel's gradients");
static cl::opt<std::string> path(cl::Positional, cl::Required, cl::desc("FILE"), cl::sub(sub));
static cl::opt<std::string> kernelName("kernel", cl::value_desc("NAME"),
                                       cl::desc("The kernel (default: the file's last)"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> wrt("wrt", cl::value_desc("x,w"), cl::CommaSeparated,
                                 cl::desc("The tensors to differentiate with respect to (default: "
                                          "all of floats)"),
                                 cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> constants("p", cl::value_desc("eps=1e-3"),
                                       cl::desc("Values of constants (default: as declared)"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::opt<unsigned> rank("rank", cl::value_desc("N"),
                              cl::desc("How many dims '...' stands for (default: any number, where "
                                       "the gradient allows it)"),
                              cl::cat(inputOptions), cl::sub(sub));
static cl::opt<bool> save("save",
                          cl::desc("Take all outputs of the kernel that the gradient needs as "
                                   "parameters (default: those that are reductions)"),
                          cl::cat(outputOptions), cl::sub(sub));
static cl::opt<bool> recompute("recompute", cl::desc("Compute all values of the kernel again"),
                               cl::cat(outputOptions), cl::sub(sub));
static cl::opt<std::string> outputPath("o", cl::value_desc("FILE"), cl::init("-"),
                                       cl::desc("Where the program goes (default: standard "
                                                "output)"),
                                       cl::cat(outputOptions), cl::sub(sub));
static cl::opt<bool> json("json", cl::desc("Print diagnostics as JSON Lines (docs/diagnostics.md)"),
                          cl::cat(outputOptions), cl::sub(sub));

static ExitCode run() {
  grad::GradientOptions options;
  options.instance.kernel = kernelName;
  options.wrt.assign(wrt.begin(), wrt.end());
  options.saved = save        ? grad::SavedOutputs::All
                  : recompute ? grad::SavedOutputs::None
                              : grad::SavedOutputs::ByCost;
  if (save && recompute) {
    errs() << "tegula: --save and --recompute exclude each other\n";
    return ExitWrongCall;
  }
  if (rank.getNumOccurrences())
    options.instance.ellipsisRank = rank;
  if (!parseConstants(constants, options.instance.constants))
    return ExitWrongCall;
  std::unique_ptr<LoadedFile> loaded = load(path);
  if (!loaded)
    return ExitWrongCall;
  if (tellSyntaxErrors(*loaded))
    return ExitWrongProgram;
  if (!loaded->module->entry(kernelName)) {
    errs() << "tegula: '" << path << "' has no kernel '" << kernelName << "'\n";
    return ExitWrongCall;
  }
  std::optional<std::string> text = grad::gradientOf(*loaded->module, options, loaded->diagnostics);
  if (!text) {
    loaded->print(json);
    return ExitWrongProgram;
  }
  if (Error error = writeFile(outputPath, *text)) {
    errs() << "tegula: " << toString(std::move(error)) << '\n';
    return ExitMissingResource;
  }
  return ExitSuccess;
}

const Command gradCommand = {sub, run};

} // namespace tegula
