//===- Diagnostics.h - The one record of everything told to users ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A diagnostic is a record; JSON Lines is its truth and the text with source line and caret is
// rendered from it. Codes, messages and the wrong and right examples live in dsl/Errors.def.
// Messages are lower case without a full stop and say what was expected, then what came.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_DIAGNOSTICS_DIAGNOSTICS_H
#define TEGULA_FRONTEND_DIAGNOSTICS_DIAGNOSTICS_H

#include "frontend/ast/AST.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace tegula {

enum class Severity { Error, Warning, Remark };

/// Whether an edit keeps the program's meaning as its writer certainly meant it.
enum class Applicability {
  Safe,  ///< `tegula fix` applies it
  Maybe, ///< probably meant; shown only
};

struct Edit { // replace the bytes of `span` by `text`; an empty span inserts
  Span span;
  std::string text;
};

struct Fix {
  std::string message;
  std::vector<Edit> edits;
  Applicability applicability = Applicability::Maybe;
};

struct Note {
  std::string message;
  Span span; // invalid: no place
};

/// Codes are `E0101`-like strings fixed for ever; see dsl/Errors.def.
enum class Code : unsigned {
#define TEGULA_ERROR(NAME, CODE, SEVERITY, TITLE, WRONG, RIGHT) NAME,
#include "dsl/Errors.def"
};

struct Diagnostic {
  Code code;
  Severity severity;
  std::string message;
  Span span;
  std::vector<Note> notes;
  std::vector<Fix> fixes;
};

struct CodeInfo {
  llvm::StringRef name, code, title, wrong, right; // wrong, right: whole programs
  Severity severity;
};
const CodeInfo &codeInfo(Code code);
/// All codes in order of Errors.def.
llvm::ArrayRef<CodeInfo> allCodes();

/// Texts by file id, and the mapping from bytes to lines. Files are never removed.
class SourceManager {
public:
  uint32_t add(std::string name, std::string text, bool isLibrary = false);
  llvm::StringRef text(uint32_t file) const { return files[file].text; }
  llvm::StringRef text(Span span) const { return text(span.file).slice(span.begin, span.end); }
  llvm::StringRef name(uint32_t file) const { return files[file].name; }
  /// A file of the standard library: its spans never carry fixes.
  bool isLibrary(uint32_t file) const { return files[file].isLibrary; }
  /// 1-based; the column counts characters (code points), not bytes.
  std::pair<unsigned, unsigned> lineAndColumn(uint32_t file, uint32_t offset) const;
  llvm::StringRef lineText(uint32_t file, uint32_t offset) const;

private:
  struct FileInfo {
    std::string name, text;
    bool isLibrary;
    std::vector<uint32_t> lineStarts;
  };
  std::vector<FileInfo> files;
};

/// Collects diagnostics. Not thread-safe: one per compilation.
class Diagnostics {
public:
  explicit Diagnostics(SourceManager &sources) : sources(sources) {}

  /// Adds a record and returns it, so that notes and fixes can follow:
  ///   diags.report(Code::UnknownName, span, "unknown name 'foo'").note("...", where);
  class Builder {
  public:
    Builder &note(std::string message, Span span = {});
    Builder &fix(std::string message, std::vector<Edit> edits,
                 Applicability applicability = Applicability::Maybe);

  private:
    friend class Diagnostics;
    Builder(Diagnostics &owner, size_t index) : owner(owner), index(index) {}
    Diagnostics &owner;
    size_t index;
  };
  /// Severity comes from the catalogue. A diagnostic with the same code and span is kept once.
  Builder report(Code code, Span span, std::string message);

  /// Gives a record one fix instead of those it has.
  void replaceFixes(size_t index, Fix fix) { records[index].fixes = {std::move(fix)}; }

  /// Takes back all records but the first `size`.
  void truncate(size_t size);

  /// Brings the records from `first` on into the order of the text.
  void sort(size_t first);

  bool hasErrors() const { return errorCount != 0; }
  unsigned numErrors() const { return errorCount; }
  llvm::ArrayRef<Diagnostic> all() const { return records; }
  SourceManager &sourceManager() const { return sources; }

  /// One JSON object a line (docs/diagnostics.md documents the schema and its version).
  void printJson(llvm::raw_ostream &os) const;
  /// `file:line:column: error[E0101]: message`, the source line, a caret, notes and fixes.
  void printText(llvm::raw_ostream &os, bool color) const;

private:
  SourceManager &sources;
  std::vector<Diagnostic> records;
  unsigned errorCount = 0;
};

/// The text with edits made that do not overlap.
std::string applyEdits(llvm::StringRef text, std::vector<Edit> edits);

/// Applies all safe edits of `file`, with `maybe` the others as well; overlapping ones after the
/// first are left out, and of each diagnostic only the first fix is made.
std::string applyFixes(const Diagnostics &diagnostics, uint32_t file, bool maybe = false);

/// The fixes that applyFixes makes, each with its diagnostic; none of a diagnostic for which
/// `isRefused`.
std::vector<std::pair<const Diagnostic *, const Fix *>>
chooseFixes(const Diagnostics &diagnostics, uint32_t file, bool maybe,
            llvm::function_ref<bool(const Diagnostic &)> isRefused);

/// The name in `names` nearest to `name` (edit distance at most a third of its length), or empty.
llvm::StringRef nearestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> names);

} // namespace tegula

#endif // TEGULA_FRONTEND_DIAGNOSTICS_DIAGNOSTICS_H
