//===- Handles.h - What the handles of the C interface hold ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A handle's contents are constant once it is made. What several handles share is
// reference-counted, so that they may be freed in any order. The few things that do change (a
// device opened late, sizes remembered) have locks of their own.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_CAPI_HANDLES_H
#define TEGULA_RUNTIME_CAPI_HANDLES_H

#include "compiler/Compiler.h"
#include "frontend/check/Signature.h"
#include "runtime/Launch.h"
#include "runtime/capi/BindingCache.h"
#include "tegula/tegula.h"
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tegula::capi {

struct ContextState {
  explicit ContextState(unsigned threads, int ordinal) : pool(threads), ordinal(ordinal) {}
  mutable ThreadPool pool;
  int ordinal;

  /// Opens the device when first asked.
  llvm::Expected<std::shared_ptr<CudaDevice>> device() const;

private:
  mutable std::mutex mutex;
  mutable std::shared_ptr<CudaDevice> opened;
};

/// A program is kept as text: looking up library names changes a Module, so every use parses its
/// own.
struct Parsed {
  SourceManager sources;
  Diagnostics diagnostics{sources};
  std::unique_ptr<Module> module;
};

} // namespace tegula::capi

struct tegula_message {
  std::string json; // lines
  std::string text; // as the command prints them
};

struct tegula_context {
  std::shared_ptr<const tegula::capi::ContextState> state;
};

struct tegula_program {
  struct Parameter {
    std::string name, type;
    tegula_role role;
    std::vector<std::string> dims;
    std::optional<std::string> defaultValue;
  };
  struct Kernel {
    std::string name;
    std::vector<Parameter> parameters;
  };
  std::string fileName, text;
  std::vector<Kernel> kernels;

  /// Parsed without errors before.
  std::unique_ptr<tegula::capi::Parsed> parse() const;
  bool hasKernel(llvm::StringRef name) const;
};

struct tegula_kernel {
  std::shared_ptr<const tegula::capi::ContextState> context;
  std::unique_ptr<tegula::capi::Parsed>
      parsed; // target "cuda": the program, compiled again for sizes
  std::unique_ptr<tegula::CompiledKernel> compiled;
  std::unique_ptr<tegula::DeviceKernel> device; // target "cuda" alone
  std::vector<unsigned> arguments;              // of a launch, of those of the code
  std::vector<std::vector<std::string>> dims;   // by argument of the code
  struct Guard {
    std::string condition, message;
  };
  std::vector<Guard> guards;
  std::string description;
  mutable tegula::capi::BindingCache bindings;

  /// Whether the code has arguments that launches make, for what is observed.
  bool isObserved() const { return arguments.size() != compiled->arguments.size(); }
  bool canLaunch() const { return device || !compiled->isDevice(); }
};

struct tegula_observed {
  std::string json, text;
};

struct tegula_prepared {
  const tegula_kernel &kernel;
  tegula::capi::BindingCache::Entry binding;
  std::unique_ptr<tegula::StreamMemory> memory = {}; // null: nothing is needed, or the CPU
};

#endif // TEGULA_RUNTIME_CAPI_HANDLES_H
