//===- RunFiles.h - Inputs and results of tegula run --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_RUN_RUNFILES_H
#define TEGULA_DRIVER_RUN_RUNFILES_H

#include "bench/Runner.h"
#include "driver/ExitCode.h"
#include "runtime/Npy.h"

namespace tegula {

using FilesByName = std::map<std::string, std::string>;

/// Says it on standard error.
ExitCode wrongCall(const llvm::Twine &message);
/// Says the error on standard error.
ExitCode exitOf(llvm::Error error);

/// `x=x.npy` in each text. False, with the reason on standard error, where one is malformed.
bool parsePaths(llvm::ArrayRef<std::string> texts, FilesByName &files);

/// Inputs read from files, with the sizes and types that follow from them.
struct Given {
  std::map<std::string, NpyArray> arrays;
  Instance instance;
};
ExitCode readInputs(const ast::Kernel &kernel, const Signature &signature, const FilesByName &files,
                    Given &given);

/// What a kernel is run on.
struct RunCall {
  const Signature &signature;
  const Given &given;
  const FilesByName &inFiles, &outFiles;
  uint64_t seed = 0;
  unsigned threads = 0; // 0: all
};

/// A launch on inputs as given or drawn. What does not fit is said on standard error.
ExitCode makeLaunch(bench::Runner &runner, const RunCall &call, SizeValues &sizes,
                    std::unique_ptr<bench::Launch> &launch);
/// Outputs and inouts; temporaries that --out names have become outputs.
ExitCode findWritten(const bench::Runner &runner, const FilesByName &outFiles,
                     std::vector<unsigned> &written);
/// Writes the results to their files, or shows them where there are none.
ExitCode writeResults(const bench::Runner &runner, llvm::ArrayRef<unsigned> written,
                      const std::vector<bench::Tensor> &results, const FilesByName &outFiles);

} // namespace tegula

#endif // TEGULA_DRIVER_RUN_RUNFILES_H
