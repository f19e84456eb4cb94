//===- Hints.cpp - What the compiler has found out, in the text; and its form ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/print/Printer.h"
#include "lsp/Features.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tegula {

/// Whether the statement's value is the result of a kernel, so that `h: T[d, ...] =` may be
/// written.
static bool isResultOfKernel(const Analysis &analysis, const Symbol &symbol) {
  const ast::Stmt *stmt = symbol.stmt;
  if (!stmt || stmt->kind != ast::Stmt::Assign || !stmt->value ||
      stmt->value->kind != ast::Expr::Call)
    return false;
  for (const ast::Target &target : stmt->targets)
    if (target.name.span.begin == symbol.definition.begin)
      return !target.hasColon && !target.hasSubscripts &&
             NameIndex::calleeOf(*analysis.module, stmt->value->name.name, symbol.kernel).kernel;
  return false;
}

/// What is shown behind a name; empty for most.
static std::string hintOf(const Symbol &symbol, const KernelFacts &facts) {
  if (symbol.kind == Symbol::Index && !symbol.range) {
    if (const checked::Var *variable = facts.variable(symbol))
      return " in " + facts.rangeText(*variable);
  } else if (symbol.kind == Symbol::Temporary && isResultOfKernel(*facts.analysis, symbol)) {
    if (const checked::Tensor *tensor = facts.tensor(symbol))
      return ": " + facts.typeText(*tensor);
  }
  return "";
}

std::vector<lsp::InlayHint> inlayHints(Document &document, uint32_t begin, uint32_t end) {
  std::vector<lsp::InlayHint> hints;
  for (KernelFacts &facts : document.allFacts()) {
    // While a kernel is wrong, what was found out before stays where it was.
    std::optional<TextChange> change;
    std::swap(change, facts.change);
    for (const Symbol &symbol : facts.analysis->names.symbols()) {
      if (!symbol.kernel || symbol.kernel->name.name != facts.program->name)
        continue;
      uint32_t last = symbol.definition.end - 1;
      std::optional<uint32_t> at = change ? change->after(last) : last;
      if (!at || *at + 1 < begin || *at + 1 > end)
        continue;
      std::string label = hintOf(symbol, facts);
      if (label.empty())
        continue;
      lsp::InlayHint &hint =
          hints.emplace_back(lsp::InlayHintKind::Type, document.parsed().lines.position(*at + 1));
      hint.label = std::move(label);
    }
  }
  return hints;
}

std::vector<lsp::TextEdit> format(Document &document) {
  const Analysis &analysis = document.parsed();
  if (!analysis.isWellFormed)
    return {};
  StringRef before = analysis.text;
  std::string after = print(analysis.module->file(), before);
  if (after == before)
    return {};
  // Whole lines that are alike at both ends stay, so that the editor keeps its place.
  size_t most = std::min(before.size(), after.size()), prefix = 0, suffix = 0;
  while (prefix != most && before[prefix] == after[prefix])
    ++prefix;
  prefix = before.take_front(prefix).rfind('\n') + 1;
  while (suffix != most - prefix &&
         before[before.size() - 1 - suffix] == after[after.size() - 1 - suffix])
    ++suffix;
  size_t newline = before.take_back(suffix).find('\n');
  suffix = newline == StringRef::npos ? 0 : suffix - newline - 1;
  lsp::TextEdit edit;
  edit.range = analysis.lines.range(static_cast<uint32_t>(prefix),
                                    static_cast<uint32_t>(before.size() - suffix));
  edit.newText = after.substr(prefix, after.size() - prefix - suffix);
  return {std::move(edit)};
}

} // namespace tegula
