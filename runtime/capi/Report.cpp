//===- Report.cpp - Messages of the C interface ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/capi/Report.h"

#include "codegen/ptx/Assemble.h"
#include "runtime/Launch.h"
#include "runtime/capi/Handles.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tegula::capi {

void Report::append(StringRef lines, StringRef rendered) {
  if (!target || lines.empty())
    return;
  if (!*target)
    *target = new tegula_message();
  (*target)->json += lines;
  (*target)->text += rendered;
}

void Report::add(const Diagnostics &diagnostics) {
  if (!target)
    return;
  std::string lines, rendered;
  raw_string_ostream linesStream(lines), renderedStream(rendered);
  diagnostics.printJson(linesStream);
  diagnostics.printText(renderedStream, /*color=*/false);
  append(lines, rendered);
}

/// The code and name of what no program is to blame for (docs/diagnostics.md).
static std::pair<StringRef, StringRef> codeOf(tegula_status status) {
  switch (status) {
  case TEGULA_WRONG_CALL:
    return {"C0002", "WrongCall"};
  case TEGULA_MISSING:
    return {"C0003", "Missing"};
  case TEGULA_WRONG_RESULT:
    return {"C0004", "WrongResult"};
  case TEGULA_STOPPED:
    return {"C0005", "Stopped"};
  default:
    return {"C0070", "Internal"};
  }
}

tegula_status Report::fail(tegula_status status, const Twine &message) {
  if (!target)
    return status;
  auto [code, name] = codeOf(status);
  std::string words = json::fixUTF8(message.str());
  json::Object object{{"schema", "tegula.diagnostic"},
                      {"version", 1},
                      {"code", code},
                      {"name", name},
                      {"severity", "error"},
                      {"message", words},
                      {"notes", json::Array()},
                      {"fixes", json::Array()}};
  std::string text;
  raw_string_ostream stream(text);
  stream << json::Value(std::move(object)) << '\n';
  append(text, ("error[" + code + "]: " + words + "\n").str());
  return status;
}

tegula_status Report::fail(Error error) {
  tegula_status status = TEGULA_INTERNAL;
  handleAllErrors(
      std::move(error),
      [&](const LaunchError &failure) {
        status = failure.kind == LaunchError::WrongCall     ? TEGULA_WRONG_CALL
                 : failure.kind == LaunchError::OutOfMemory ? TEGULA_MISSING
                 : failure.kind == LaunchError::Stopped     ? TEGULA_STOPPED
                                                            : TEGULA_WRONG_RESULT;
        fail(status, failure.message);
      },
      [&](const ErrorInfoBase &other) {
        if (isMissingResource(other))
          status = TEGULA_MISSING;
        fail(status, other.message());
      });
  return status;
}

} // namespace tegula::capi

using namespace tegula::capi;

const char *tegula_message_json(const tegula_message *message) {
  return message ? message->json.c_str() : "";
}

const char *tegula_message_text(const tegula_message *message) {
  return message ? message->text.c_str() : "";
}

void tegula_message_free(tegula_message *message) { delete message; }
