//===- CaseStudies.cpp - Trials with each case of a file --------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/CaseStudies.h"
#include "bench/Child.h"
#include "driver/CheckKernels.h"
#include "driver/Load.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tegula::bench;

namespace tegula {

void CaseStudies::fail(ExitCode code, StringRef path, StringRef message) {
  exit = worse(exit, code);
  if (!message.empty())
    errs() << "tegula: " << path << ": " << message << (message.ends_with("\n") ? "" : "\n");
}

/// A child's work: the case number `index`.
void CaseStudies::work(const std::string &path, const StudyOptions &options, size_t index,
                       Send send) {
  auto stop = [&](int code, const Twine &message) {
    send(json::Object{{"event", "error"}, {"exit", code}, {"message", message.str()}});
  };
  std::unique_ptr<LoadedFile> loaded = load(path);
  if (!loaded)
    return stop(ExitWrongCall, "");
  if (tellSyntaxErrors(*loaded))
    return stop(ExitWrongProgram, "");
  auto stopAt = [&](Error error) {
    int code = isMissingResource(error)          ? ExitMissingResource
               : error.isA<LaunchError>()        ? ExitWrongCall
               : loaded->diagnostics.hasErrors() ? ExitWrongProgram
                                                 : ExitInternalError;
    stop(code, toString(std::move(error)));
  };
  Expected<std::unique_ptr<Study>> study =
      Study::make(path, *loaded->module, loaded->diagnostics, options);
  if (!study)
    return stopAt(study.takeError());
  if (index >= (*study)->cases().size())
    return send(json::Object{{"event", "done"}});
  const StudyCase &one = (*study)->cases()[index];
  send(json::Object{{"event", "case"}, {"text", one.kernel->name.name + " " + one.text()}});
  Expected<bool> whole = runTrials(**study, one, send);
  if (!whole)
    return stopAt(whole.takeError());
  if (*whole)
    send(json::Object{{"event", "end"}});
}

/// False where the file can go no further.
bool CaseStudies::runCase(const std::string &path, const StudyOptions &options, size_t index,
                          double deadline) {
  bool goesOn = false, ended = false, hasBegun = false;
  forgetCase();
  while (!ended) {
    json::Object begun;
    bool tried = false;
    auto receive = [&](StringRef line) {
      Expected<json::Value> event = json::parse(line);
      if (!event)
        return consumeError(event.takeError()); // a broken line is the child's death
      json::Object &object = *event->getAsObject();
      StringRef kind = *object.getString("event");
      if (kind == "case") {
        goesOn = true;
        if (!std::exchange(hasBegun, true))
          beginCase(path, *object.getString("text"));
      } else if (kind == "error") {
        ended = true;
        goesOn = false;
        fail(static_cast<ExitCode>(*object.getInteger("exit")), path, *object.getString("message"));
      } else if (kind == "begin") {
        begun = object;
      } else if (kind == "done" || kind == "end") {
        ended = true;
      } else {
        tried |= kind == trialName();
        begun = json::Object();
        add(std::move(object));
      }
    };
    ChildEnd end = runInChild(
        [&](function_ref<void(StringRef)> send) -> int {
          work(path, options, index, [&](json::Object event) {
            std::string text;
            raw_string_ostream(text) << json::Value(std::move(event));
            send(text);
          });
          return 0;
        },
        receive, deadline);
    if (ended)
      break;
    if (!begun.empty()) { // the child died of this trial
      begun["event"] = trialName();
      begun["outcome"] = "failed";
      begun["reason"] = "the process " + end.text;
      add(std::move(begun));
    } else if (!tried) {
      fail(ExitInternalError, path, "the process for its cases " + end.text);
      return false;
    }
  }
  if (goesOn)
    endCase();
  return goesOn;
}

void CaseStudies::run(ArrayRef<std::string> paths, const StudyOptions &options, double deadline) {
  for (const std::string &path : paths)
    for (size_t index = 0; runCase(path, options, index, deadline); ++index) {
    }
}

} // namespace tegula
