//===- Rewrite.cpp - What a wrong statement says in this language ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/suggest/Rewrite.h"

#include "frontend/parse/Parser.h"
#include "frontend/suggest/RewriteKernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tegula::rewrite;

namespace tegula {

//===----------------------------------------------------------------------===//
// Where the rewritten statements go
//===----------------------------------------------------------------------===//

static std::string withoutBlanks(StringRef text) {
  std::string result;
  for (char c : text)
    if (!isSpace(c))
      result += c;
  return result;
}

namespace {
/// The statements of one kernel that change, with their edits.
class KernelRewriter {
public:
  KernelRewriter(StringRef text, uint32_t file, const Module &module, ArrayRef<Token> tokens)
      : text(text), file(file), tokens(tokens) {
    // A temporary loses its dims of size one where all that read it are rewritten with it.
    std::set<std::string> ranked;
    constexpr unsigned rounds = 8;
    for (unsigned round = 0; round != rounds; ++round) {
      statements = KernelReader(text, file, module, tokens, ranked).read();
      size_t before = ranked.size();
      for (size_t i = 0; i != statements.size(); ++i)
        if (isChanged(i) && !linkEdits(i))
          ranked.insert(statements[i].rewriting->absent.begin(),
                        statements[i].rewriting->absent.end());
      if (ranked.size() == before)
        return;
    }
    statements.clear();
  }

  size_t size() const { return statements.size(); }
  uint32_t begin(size_t i) const { return tokens[statements[i].begin].begin; }
  uint32_t end(size_t i) const { return tokens[statements[i].end - 1].end; }
  const Rewriting &rewriting(size_t i) const { return *statements[i].rewriting; }

  bool isChanged(size_t i) const {
    if (!statements[i].rewriting)
      return false;
    const Rewriting &found = *statements[i].rewriting;
    StringRef old = text.slice(begin(i), end(i));
    // Comments inside of a statement have no place in its new text.
    return !old.contains('#') &&
           (!found.others.empty() || withoutBlanks(written(i)) != withoutBlanks(old));
  }

  /// All edits that belong to a statement's; the statement's own is the first. Nothing: they do not
  /// go together.
  std::optional<std::vector<Edit>> linkEdits(size_t i) const {
    // With those that read what loses dims, and those that define what these read.
    std::set<size_t> linked{i};
    for (size_t before = 0; before != linked.size();) {
      before = linked.size();
      for (size_t j : std::vector<size_t>(linked.begin(), linked.end())) {
        if (!isChanged(j))
          return std::nullopt;
        for (size_t k = 0; k != statements.size(); ++k) {
          bool reads = k > j && mentions(k, rewriting(j).absent);
          bool isRead = k < j && statements[k].rewriting && mentions(j, rewriting(k).absent);
          if (reads || isRead)
            linked.insert(k);
        }
      }
    }
    std::vector<Edit> edits{ownEdit(i)};
    for (size_t j : linked) {
      if (j != i)
        edits.push_back(ownEdit(j));
      llvm::append_range(edits, rewriting(j).others);
    }
    std::vector<Edit> sorted = edits;
    llvm::sort(sorted, [](const Edit &a, const Edit &b) { return a.span.begin < b.span.begin; });
    for (size_t k = 1; k < sorted.size(); ++k)
      if (sorted[k].span.begin < sorted[k - 1].span.end)
        return std::nullopt;
    return edits;
  }

private:
  std::string written(size_t i) const {
    StringRef indent = text.slice(text.rfind('\n', begin(i)) + 1, begin(i));
    return join(rewriting(i).lines, indent.trim().empty() ? ("\n" + indent).str() : "; ");
  }
  Edit ownEdit(size_t i) const {
    Edit edit{{file, begin(i), end(i)}, written(i)};
    if (!rewriting(i).lines.empty())
      return edit;
    // What is left out goes with its line.
    size_t lineStart = text.rfind('\n', begin(i)) + 1, next = text.find('\n', end(i));
    if (next != StringRef::npos && text.slice(lineStart, begin(i)).trim().empty() &&
        text.slice(end(i), next).trim().empty())
      edit.span = {file, static_cast<uint32_t>(lineStart), static_cast<uint32_t>(next + 1)};
    return edit;
  }
  bool mentions(size_t i, const std::set<std::string> &names) const {
    for (size_t t = statements[i].begin; t != statements[i].end; ++t)
      if (tokens[t].kind == Token::Name &&
          names.count(text.slice(tokens[t].begin, tokens[t].end).str()))
        return true;
    return false;
  }

  StringRef text;
  uint32_t file;
  ArrayRef<Token> tokens;
  std::vector<Statement> statements;
};
} // namespace

/// Whether the text, with the edits made, has no syntax error in what the first of them writes.
static bool parses(StringRef text, ArrayRef<Edit> edits) {
  uint32_t begin = edits.front().span.begin;
  for (const Edit &other : edits.drop_front()) // what stands before it may grow
    if (other.span.begin < edits.front().span.begin)
      begin += static_cast<uint32_t>(other.text.size()) - (other.span.end - other.span.begin);
  uint32_t end = begin + static_cast<uint32_t>(edits.front().text.size());
  SourceManager sources;
  Diagnostics diagnostics(sources);
  uint32_t file = sources.add("rewritten", applyEdits(text, edits));
  parse(sources, file, diagnostics);
  return none_of(diagnostics.all(), [&](const Diagnostic &one) {
    return one.span.begin < end && one.span.end > begin;
  });
}

/// The text of [begin, end) with the safe fixes made that lie in it.
static std::string withSmallFixes(StringRef text, ArrayRef<Diagnostic> found, uint32_t begin,
                                  uint32_t end) {
  std::vector<Edit> edits;
  for (const Diagnostic &one : found)
    for (const Fix &fix : one.fixes) {
      if (fix.applicability != Applicability::Safe)
        continue;
      bool inside = all_of(fix.edits, [&](const Edit &edit) {
        return edit.span.file == one.span.file && edit.span.begin >= begin && edit.span.end <= end;
      });
      for (const Edit &edit : fix.edits)
        if (inside)
          edits.push_back(
              {{edit.span.file, edit.span.begin - begin, edit.span.end - begin}, edit.text});
      break;
    }
  llvm::sort(edits, [](const Edit &a, const Edit &b) { return a.span.begin < b.span.begin; });
  for (size_t i = 1; i < edits.size(); ++i)
    if (edits[i].span.begin < edits[i - 1].span.end)
      return "";
  return applyEdits(text.slice(begin, end), std::move(edits));
}

void suggestRewrites(Diagnostics &diagnostics, size_t first, uint32_t file, const Module &module) {
  constexpr unsigned most = 20; // statements; for each the file is parsed once more
  StringRef text = diagnostics.sourceManager().text(file);
  auto isError = [&](const Diagnostic &one) {
    return one.severity == Severity::Error && one.span.file == file;
  };
  ArrayRef<Diagnostic> found = diagnostics.all().drop_front(first);
  if (none_of(found, isError) || any_of(found, [](const Diagnostic &one) {
        return one.code == Code::FileTooLarge || one.code == Code::InvalidEncoding;
      }))
    return;
  std::vector<Token> tokens = lex(text, 0, static_cast<uint32_t>(text.size()));
  auto word = [&](size_t i) { return text.slice(tokens[i].begin, tokens[i].end); };
  auto startsDefinition = [&](size_t i) {
    return tokens[i].firstOnLine && tokens[i].brackets == 0 &&
           (word(i) == "kernel" || word(i) == "def" || word(i) == "fn") && i + 1 < tokens.size() &&
           tokens[i + 1].kind == Token::Name;
  };
  unsigned done = 0;
  for (size_t at = 0; at < tokens.size();) {
    size_t end = at + 1;
    while (end < tokens.size() && !startsDefinition(end))
      ++end;
    ArrayRef<Token> own = ArrayRef(tokens).slice(at, end - at);
    bool isKernel = startsDefinition(at) && word(at) != "fn";
    at = end;
    auto isInside = [&](const Diagnostic &one) {
      return isError(one) && one.span.begin >= own.front().begin && one.span.begin < own.back().end;
    };
    // Nobody wrote a longer one by hand, and names are followed through all of it.
    constexpr size_t longest = 10000; // tokens
    if (!isKernel || own.size() > longest || none_of(found, isInside))
      continue;
    KernelRewriter kernel(text, file, module, own);
    for (size_t i = 0; i != kernel.size() && done != most; ++i) {
      // The first diagnostic that lies in the statement takes the edit.
      size_t index = found.size();
      for (auto [k, one] : enumerate(found))
        if (isError(one) && one.span.begin >= kernel.begin(i) && one.span.begin < kernel.end(i) &&
            (index == found.size() || one.span.begin < found[index].span.begin))
          index = k;
      if (index == found.size() || !kernel.isChanged(i))
        continue;
      std::optional<std::vector<Edit>> edits = kernel.linkEdits(i);
      // Where small edits say the same, they say it better.
      if (edits && edits->size() == 1 &&
          withoutBlanks(edits->front().text) ==
              withoutBlanks(withSmallFixes(text, found, kernel.begin(i), kernel.end(i))))
        continue;
      ++done;
      if (!edits || !parses(text, *edits))
        continue;
      const Rewriting &rewriting = kernel.rewriting(i);
      diagnostics.replaceFixes(
          first + index,
          {rewriting.lines.empty() ? "leave it out" : "write " + rewriting.lines.back(),
           std::move(*edits), rewriting.guessed ? Applicability::Maybe : Applicability::Safe});
    }
  }
}

} // namespace tegula
