//===- Diagnostics.cpp - Collecting, rendering and fixing --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/diagnostics/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <algorithm>
#include <cassert>
#include <utility>

using namespace llvm;

namespace tegula {

//===----------------------------------------------------------------------===//
// Catalogue
//===----------------------------------------------------------------------===//

static const CodeInfo catalogue[] = {
#define TEGULA_ERROR(NAME, CODE, SEVERITY, TITLE, WRONG, RIGHT)                                    \
  {#NAME, CODE, TITLE, WRONG, RIGHT, Severity::SEVERITY},
#include "dsl/Errors.def"
};

const CodeInfo &codeInfo(Code code) { return catalogue[static_cast<unsigned>(code)]; }

ArrayRef<CodeInfo> allCodes() { return catalogue; }

//===----------------------------------------------------------------------===//
// SourceManager
//===----------------------------------------------------------------------===//

uint32_t SourceManager::add(std::string name, std::string text, bool isLibrary) {
  assert(text.size() < UINT32_MAX && "offsets have 32 bits");
  FileInfo info{std::move(name), std::move(text), isLibrary, {0}};
  for (size_t at = info.text.find('\n'); at != std::string::npos; at = info.text.find('\n', at + 1))
    info.lineStarts.push_back(static_cast<uint32_t>(at + 1));
  files.push_back(std::move(info));
  return static_cast<uint32_t>(files.size() - 1);
}

/// Bytes that continue a UTF-8 sequence are no characters of their own.
static bool startsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::pair<unsigned, unsigned> SourceManager::lineAndColumn(uint32_t file, uint32_t offset) const {
  const FileInfo &info = files[file];
  offset = std::min<size_t>(offset, info.text.size());
  auto next = llvm::upper_bound(info.lineStarts, offset);
  unsigned line = static_cast<unsigned>(next - info.lineStarts.begin());
  StringRef before = StringRef(info.text).slice(info.lineStarts[line - 1], offset);
  return {line, 1 + static_cast<unsigned>(llvm::count_if(before, startsCharacter))};
}

StringRef SourceManager::lineText(uint32_t file, uint32_t offset) const {
  unsigned line = lineAndColumn(file, offset).first;
  StringRef rest = StringRef(files[file].text).drop_front(files[file].lineStarts[line - 1]);
  return rest.take_until([](char c) { return c == '\n'; }).rtrim('\r');
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

/// A message quotes the source, which may go over several lines: it is one line.
static std::string oneLine(std::string message) {
  if (message.find('\n') == std::string::npos)
    return message;
  std::string result;
  for (size_t at = 0; at < message.size();) {
    size_t blanks = llvm::StringRef(message).substr(at).take_while(llvm::isSpace).size();
    if (llvm::StringRef(message).substr(at, blanks).contains('\n')) {
      while (!result.empty() && result.back() == ' ')
        result.pop_back();
      result += ' ';
      at += blanks;
    } else {
      result += message[at++];
    }
  }
  return result;
}

Diagnostics::Builder Diagnostics::report(Code code, Span span, std::string message) {
  for (const Diagnostic &old : records)
    if (old.code == code && old.span.file == span.file && old.span.begin == span.begin &&
        old.span.end == span.end)
      return Builder(*this, SIZE_MAX); // what is added to a repeated one goes nowhere
  Severity severity = codeInfo(code).severity;
  if (severity == Severity::Error)
    ++errorCount;
  records.push_back({code, severity, oneLine(std::move(message)), span, {}, {}});
  return Builder(*this, records.size() - 1);
}

void Diagnostics::truncate(size_t size) {
  records.erase(records.begin() + size, records.end());
  errorCount = llvm::count_if(
      records, [](const Diagnostic &one) { return one.severity == Severity::Error; });
}

void Diagnostics::sort(size_t first) {
  // Insertion keeps equal places in order of discovery; there are few records.
  for (size_t i = first + 1; i < records.size(); ++i)
    for (size_t j = i; j > first; --j) {
      const Span &a = records[j - 1].span, &b = records[j].span;
      if (std::pair(a.file, a.begin) <= std::pair(b.file, b.begin))
        break;
      std::swap(records[j - 1], records[j]);
    }
}

Diagnostics::Builder &Diagnostics::Builder::note(std::string message, Span span) {
  if (index != SIZE_MAX)
    owner.records[index].notes.push_back({std::move(message), span});
  return *this;
}

Diagnostics::Builder &Diagnostics::Builder::fix(std::string message, std::vector<Edit> edits,
                                                Applicability applicability) {
  if (index == SIZE_MAX)
    return *this;
  for (const Edit &edit : edits)
    if (owner.sources.isLibrary(edit.span.file))
      return *this;
  owner.records[index].fixes.push_back({std::move(message), std::move(edits), applicability});
  return *this;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static StringRef severityName(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return "error";
  case Severity::Warning:
    return "warning";
  case Severity::Remark:
    return "remark";
  }
  llvm_unreachable("all severities are named");
}

static std::string validUtf8(StringRef text) {
  return json::isUTF8(text) ? text.str() : json::fixUTF8(text);
}

static json::Object spanToJson(const SourceManager &sources, Span span) {
  auto [line, column] = sources.lineAndColumn(span.file, span.begin);
  auto [endLine, endColumn] = sources.lineAndColumn(span.file, span.end);
  return json::Object{{"file", validUtf8(sources.name(span.file))},
                      {"begin", span.begin},
                      {"end", span.end},
                      {"line", line},
                      {"column", column},
                      {"end_line", endLine},
                      {"end_column", endColumn}};
}

void Diagnostics::printJson(raw_ostream &os) const {
  for (const Diagnostic &diagnostic : records) {
    json::Array notes, fixes;
    for (const Note &note : diagnostic.notes) {
      json::Object object{{"message", validUtf8(note.message)}};
      if (note.span.isValid())
        object["span"] = spanToJson(sources, note.span);
      notes.push_back(std::move(object));
    }
    for (const Fix &fix : diagnostic.fixes) {
      json::Array edits;
      for (const Edit &edit : fix.edits)
        edits.push_back(
            json::Object{{"span", spanToJson(sources, edit.span)}, {"text", validUtf8(edit.text)}});
      bool safe = fix.applicability == Applicability::Safe;
      fixes.push_back(json::Object{{"message", validUtf8(fix.message)},
                                   {"applicability", safe ? "safe" : "maybe"},
                                   {"edits", std::move(edits)}});
    }
    const CodeInfo &info = codeInfo(diagnostic.code);
    json::Object object{{"schema", "tegula.diagnostic"},
                        {"version", 1},
                        {"code", info.code},
                        {"name", info.name},
                        {"severity", severityName(diagnostic.severity)},
                        {"message", validUtf8(diagnostic.message)},
                        {"notes", std::move(notes)},
                        {"fixes", std::move(fixes)}};
    if (diagnostic.span.isValid())
      object["span"] = spanToJson(sources, diagnostic.span);
    os << json::Value(std::move(object)) << '\n';
  }
}

//===----------------------------------------------------------------------===//
// Fixes
//===----------------------------------------------------------------------===//

/// Whether two edits of one file cannot both be made.
static bool conflict(const Edit &a, const Edit &b) {
  bool aInserts = !a.span.isValid(), bInserts = !b.span.isValid();
  if (aInserts && bInserts)
    return a.span.begin == b.span.begin;
  if (aInserts)
    return b.span.begin < a.span.begin && a.span.begin < b.span.end;
  if (bInserts)
    return a.span.begin < b.span.begin && b.span.begin < a.span.end;
  return a.span.begin < b.span.end && b.span.begin < a.span.end;
}

std::string applyEdits(StringRef text, std::vector<Edit> edits) {
  llvm::sort(edits, [](const Edit &a, const Edit &b) {
    return std::pair(a.span.begin, a.span.end) < std::pair(b.span.begin, b.span.end);
  });
  std::string result;
  size_t copied = 0;
  for (const Edit &edit : edits) {
    result += text.slice(copied, edit.span.begin);
    result += edit.text;
    copied = edit.span.end;
  }
  result += text.drop_front(copied);
  return result;
}

std::vector<std::pair<const Diagnostic *, const Fix *>>
chooseFixes(const Diagnostics &diagnostics, uint32_t file, bool maybe,
            function_ref<bool(const Diagnostic &)> isRefused) {
  std::vector<std::pair<const Diagnostic *, const Fix *>> chosen;
  std::vector<Edit> accepted;
  for (const Diagnostic &diagnostic : diagnostics.all())
    for (const Fix &fix : diagnostic.fixes) {
      if (isRefused(diagnostic))
        break;
      if (fix.applicability != Applicability::Safe && !maybe)
        continue;
      // A fix is made as a whole or not at all.
      bool fits = llvm::all_of(fix.edits, [&](const Edit &edit) {
        return edit.span.file == file &&
               llvm::none_of(accepted, [&](const Edit &other) { return conflict(edit, other); });
      });
      if (fits) {
        accepted.insert(accepted.end(), fix.edits.begin(), fix.edits.end());
        chosen.push_back({&diagnostic, &fix});
      }
      break; // further fixes of one diagnostic are alternatives
    }
  return chosen;
}

std::string applyFixes(const Diagnostics &diagnostics, uint32_t file, bool maybe) {
  std::vector<Edit> edits;
  for (const auto &[diagnostic, fix] :
       chooseFixes(diagnostics, file, maybe, [](const Diagnostic &) { return false; }))
    edits.insert(edits.end(), fix->edits.begin(), fix->edits.end());
  return applyEdits(diagnostics.sourceManager().text(file), std::move(edits));
}

/// Insertions, deletions, replacements and swaps of neighbours that make one name the other.
static unsigned editDistance(StringRef a, StringRef b) {
  std::vector<unsigned> before, last(b.size() + 1), row(b.size() + 1);
  for (unsigned j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (unsigned i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (unsigned j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

StringRef nearestName(StringRef name, ArrayRef<StringRef> names) {
  constexpr size_t longest = 64; // longer ones are no typos
  StringRef best;
  unsigned bestDistance = static_cast<unsigned>(std::max<size_t>(1, name.size() / 3)) + 1;
  for (StringRef candidate : names) {
    if (candidate == name)
      continue;
    if (candidate.equals_insensitive(name))
      return candidate;
    // One edit turns any short name into any other: that says nothing.
    if (name.size() < 3 || candidate.size() < 2 || name.size() > longest ||
        candidate.size() > longest)
      continue;
    unsigned distance = editDistance(name, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

} // namespace tegula
