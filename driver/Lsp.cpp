//===- Lsp.cpp - tegula lsp ----------------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Serves editors. What the server itself does not know is here: what bounds a launch, which needs
// the compiler.
//
//===----------------------------------------------------------------------===//
#include "bench/reference/RefFile.h"
#include "codegen/ptx/Ptx.h"
#include "compiler/Compiler.h"
#include "driver/Commands.h"
#include "driver/Crash.h"
#include "driver/Why.h"
#include "frontend/check/Signature.h"
#include "lsp/Server.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <unistd.h>

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("lsp", "Serve editors (Language Server Protocol on standard input and "
                                 "output)");
// Editors' clients add it, whatever they are told.
static cl::opt<bool> onStandardStreams("stdio",
                                       cl::desc("Standard input and output, as without it"),
                                       cl::cat(inputOptions), cl::sub(sub));

namespace {
/// What bounds launches, on the device and at the sizes that the editor's settings name.
class LaunchAnswers {
public:
  void configure(const json::Object &settings);
  std::string operator()(Document &document, const ast::Kernel &kernel, unsigned line);

private:
  struct Answer {
    std::vector<LaunchExplanation> launches;
    std::string sizes, problem;
  };
  const Answer &explain(Document &document, const ast::Kernel &kernel);
  Settings settingsOf(const Document &document, const ast::Kernel &kernel) const;

  std::string target = "sm_90a"; // empty: nothing is said
  std::string sizes;
  const report::DeviceLimits *machine = report::deviceLimits("h200");
  // Of one text, by kernel: hovering asks again and again.
  std::string path, text;
  std::map<std::string, Answer> answers;
};
} // namespace

/// `target` (empty: launches are not looked at), `machine`, `sizes` ("M=4096, N=4096").
void LaunchAnswers::configure(const json::Object &settings) {
  answers.clear();
  if (std::optional<StringRef> given = settings.getString("target"))
    if (given->empty() || isDeviceTarget(*given)) {
      target = given->str();
      machine = target == "sm_90a" ? report::deviceLimits("h200") : nullptr;
    }
  if (std::optional<StringRef> given = settings.getString("machine"); given && !given->empty())
    machine = report::deviceLimits(*given);
  if (std::optional<StringRef> given = settings.getString("sizes"))
    sizes = given->str();
}

/// What the editor's settings say, else the first case of the reference beside the program that is
/// timed.
Settings LaunchAnswers::settingsOf(const Document &document, const ast::Kernel &kernel) const {
  Settings result;
  std::string error;
  if (!sizes.empty()) {
    if (!bench::parseSettings(sizes, result, error))
      result.clear();
    return result;
  }
  StringRef stem = document.path;
  if (!stem.consume_back(".tgl"))
    return result;
  ErrorOr<std::unique_ptr<MemoryBuffer>> reference = MemoryBuffer::getFile(stem + ".ref.py");
  if (!reference)
    return result;
  std::optional<bench::RefFile> file = bench::parseRefFile((*reference)->getBuffer(), error);
  const bench::RefFunction *function = file ? file->find(kernel.name.name) : nullptr;
  if (function)
    for (const bench::Case &one : function->cases)
      if (one.timed)
        return one.values;
  return result;
}

const LaunchAnswers::Answer &LaunchAnswers::explain(Document &document, const ast::Kernel &kernel) {
  if (path != document.path || text != document.text()) {
    answers.clear();
    path = document.path;
    text = document.text().str();
  }
  auto [found, isNew] = answers.try_emplace(kernel.name.name);
  Answer &answer = found->second;
  if (!isNew)
    return answer;
  Instance instance;
  std::string error;
  if (!Signature(kernel).sort(settingsOf(document, kernel), instance, error)) {
    answer.problem = error;
    return answer;
  }
  CompileOptions options;
  options.instance = instance.options;
  options.instance.kernel = kernel.name.name;
  options.sizes = instance.sizes;
  options.target = target;
  options.explain = true;
  options.stopAfter = Phase::Schedule;
  for (const auto &[name, size] : instance.sizes)
    answer.sizes += (answer.sizes.empty() ? "" : ", ") + name + "=" + std::to_string(size);
  // The module of the document keeps its own diagnostics.
  SourceManager sources;
  Diagnostics diagnostics(sources);
  uint32_t file = sources.add(sys::path::filename(path).str(), text);
  Module module(sources, file, diagnostics);
  Expected<std::unique_ptr<CompiledKernel>> compiled = compileKernel(module, options, diagnostics);
  if (!compiled)
    answer.problem = toString(compiled.takeError());
  else if (*compiled)
    answer.launches = std::move((*compiled)->launches);
  else if (!diagnostics.all().empty())
    answer.problem = diagnostics.all().front().message;
  return answer;
}

std::string LaunchAnswers::operator()(Document &document, const ast::Kernel &kernel,
                                      unsigned line) {
  if (target.empty())
    return "";
  const Answer &answer = explain(document, kernel);
  if (!answer.problem.empty())
    return line ? "" : target + ": " + answer.problem + "\n";
  std::vector<LaunchExplanation> launches;
  std::string place = ":" + std::to_string(line) + ":";
  for (const LaunchExplanation &launch : answer.launches)
    if (!line || StringRef(launch.place).contains(place)) {
      launches.push_back(launch);
      // Strategies for which there is nothing in the launch fill a window.
      erase_if(launches.back().mismatches, [](const StrategyMismatch &one) { return one.isOther; });
    }
  if (line && launches.empty())
    return "";
  return "on " + target + (answer.sizes.empty() ? "" : " at " + answer.sizes) + ":\n" +
         whyText(launches, machine);
}

static ExitCode run() {
  auto answers = std::make_shared<LaunchAnswers>();
  ServerHooks hooks;
  hooks.version = TEGULA_VERSION;
  hooks.beforeText = setCrashProgram;
  hooks.configure = [=](const json::Object &settings) { answers->configure(settings); };
  hooks.launches = [=](Document &document, const ast::Kernel &kernel, unsigned line) {
    return (*answers)(document, kernel, line);
  };
  return serveEditor(std::move(hooks), STDIN_FILENO, outs()) ? ExitSuccess : ExitWrongCall;
}

const Command lspCommand = {sub, run};

} // namespace tegula
