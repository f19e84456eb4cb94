//===- Diagnose.cpp - Diagnostics, and their edits as code actions --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/Check.h"
#include "frontend/OpenModule.h"
#include "frontend/diagnostics/FixUntilStable.h"
#include "lsp/Features.h"

using namespace llvm;

namespace tegula {

static lsp::DiagnosticSeverity severityOf(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return lsp::DiagnosticSeverity::Error;
  case Severity::Warning:
    return lsp::DiagnosticSeverity::Warning;
  case Severity::Remark:
    return lsp::DiagnosticSeverity::Information;
  }
  llvm_unreachable("all severities are listed");
}

/// Where it stands in the document; what is in the library, at the start.
static lsp::Range rangeOf(const Analysis &analysis, Span span) {
  return span.file == analysis.file ? analysis.lines.range(span) : lsp::Range();
}

/// LLVM's record of a diagnostic has no code.
static json::Object toJson(const Document &document, const Analysis &analysis,
                           const Diagnostic &diagnostic) {
  std::string message = diagnostic.message;
  json::Array related;
  for (const Note &note : diagnostic.notes) {
    if (note.span.isValid() && note.span.file == analysis.file)
      related.push_back(
          json::Object{{"location", json::Object{{"uri", document.uri},
                                                 {"range", analysis.lines.range(note.span)}}},
                       {"message", note.message}});
    else
      message += "\n" + note.message;
  }
  json::Object result{{"range", rangeOf(analysis, diagnostic.span)},
                      {"severity", static_cast<int>(severityOf(diagnostic.severity))},
                      {"code", codeInfo(diagnostic.code).code},
                      {"source", "tegula"},
                      {"message", std::move(message)}};
  if (!related.empty())
    result["relatedInformation"] = std::move(related);
  return result;
}

json::Array diagnosticsOf(Document &document) {
  const Analysis &analysis = document.checked();
  json::Array result;
  for (const Diagnostic &diagnostic : analysis.diagnostics.all())
    result.push_back(toJson(document, analysis, diagnostic));
  return result;
}

static json::Object editOf(const Document &document, const Analysis &analysis,
                           ArrayRef<Edit> edits) {
  json::Array changes;
  for (const Edit &edit : edits)
    changes.push_back(
        json::Object{{"range", analysis.lines.range(edit.span)}, {"newText", edit.text}});
  return json::Object{{"changes", json::Object{{document.uri, std::move(changes)}}}};
}

/// All safe fixes, again and again until none is left, as `tegula fix` does.
static std::optional<json::Object> fixAll(Document &document) {
  const Analysis &analysis = document.checked();
  // Editors ask whenever the cursor moves.
  bool isAnySafe = llvm::any_of(analysis.diagnostics.all(), [](const Diagnostic &one) {
    return llvm::any_of(one.fixes,
                        [](const Fix &fix) { return fix.applicability == Applicability::Safe; });
  });
  if (!isAnySafe)
    return std::nullopt;
  FixedText fixed = fixUntilStable(analysis.text, /*maybe=*/false, [&](StringRef text, auto visit) {
    Analysis one(document.path, text.str());
    one.check();
    visit(one.diagnostics, one.file);
  });
  if (fixed.done.empty() || fixed.text == analysis.text)
    return std::nullopt;
  Span all{analysis.file, 0, static_cast<uint32_t>(analysis.text.size())};
  return json::Object{{"title", "Apply all safe fixes"},
                      {"kind", "source.fixAll"},
                      {"edit", editOf(document, analysis, Edit{all, fixed.text})}};
}

json::Array codeActions(Document &document, uint32_t begin, uint32_t end) {
  const Analysis &analysis = document.checked();
  json::Array result;
  for (const Diagnostic &diagnostic : analysis.diagnostics.all()) {
    Span span = diagnostic.span;
    if (span.file != analysis.file || span.begin > end || span.end < begin)
      continue;
    for (const Fix &fix : diagnostic.fixes) {
      bool isHere = llvm::all_of(fix.edits,
                                 [&](const Edit &edit) { return edit.span.file == analysis.file; });
      if (!isHere || fix.edits.empty())
        continue;
      json::Object action{{"title", fix.message},
                          {"kind", "quickfix"},
                          {"diagnostics", json::Array{toJson(document, analysis, diagnostic)}},
                          {"edit", editOf(document, analysis, fix.edits)}};
      if (fix.applicability == Applicability::Safe)
        action["isPreferred"] = true;
      result.push_back(std::move(action));
    }
  }
  if (std::optional<json::Object> all = fixAll(document))
    result.push_back(std::move(*all));
  return result;
}

} // namespace tegula
