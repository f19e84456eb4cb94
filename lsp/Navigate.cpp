//===- Navigate.cpp - From a name to its other places ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lsp/Features.h"
#include "lsp/Signatures.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tegula {

std::optional<Span> definition(Document &document, uint32_t offset) {
  const Analysis &analysis = document.parsed();
  if (const Occurrence *here = analysis.names.at(offset))
    return analysis.names.symbols()[here->symbol].definition;
  const ast::Argument *argument = nullptr;
  const CallSite *site = analysis.names.calleeAt(offset);
  if (!site)
    site = analysis.names.keywordAt(offset, argument);
  if (!site)
    return std::nullopt;
  NameIndex::Callee callee =
      NameIndex::calleeOf(*analysis.module, site->call->name.name, site->kernel);
  if (callee.kernel && argument)
    for (const ast::Param &param : callee.kernel->params)
      if (param.name.name == argument->keyword->name)
        return param.name.span;
  if (callee.kernel)
    return callee.kernel->name.span;
  if (callee.fn && argument)
    for (const ast::Ident &param : callee.fn->params)
      if (param.name == argument->keyword->name)
        return param.span;
  if (callee.fn)
    return callee.fn->name.span;
  return std::nullopt;
}

std::vector<Occurrence> references(Document &document, uint32_t offset) {
  const NameIndex &names = document.parsed().names;
  const Occurrence *here = names.at(offset);
  return here ? names.occurrencesOf(here->symbol) : std::vector<Occurrence>();
}

//===----------------------------------------------------------------------===//
// Renaming
//===----------------------------------------------------------------------===//

std::optional<Span> renamed(Document &document, uint32_t offset) {
  const Occurrence *here = document.parsed().names.at(offset);
  return here ? std::optional(here->span) : std::nullopt;
}

static bool isName(StringRef text) {
  // Words that are names nowhere (Tegula.g4's first group), and numbers with names.
  static constexpr StringLiteral words[] = {"for",    "in",  "if",  "and",  "or",    "not",
                                            "return", "inf", "nan", "true", "false", "pi"};
  return !text.empty() && !isDigit(text[0]) &&
         llvm::all_of(text, [](char c) { return isAlnum(c) || c == '_'; }) &&
         !is_contained(words, text);
}

/// For each name, in order of the text, the number of the first place of what it means.
static std::vector<unsigned> structureOf(const NameIndex &names) {
  std::vector<unsigned> result;
  DenseMap<unsigned, unsigned> first;
  for (auto [i, one] : enumerate(names.occurrences()))
    result.push_back(first.try_emplace(one.symbol, static_cast<unsigned>(i)).first->second);
  return result;
}

static unsigned numErrors(Analysis &analysis) {
  analysis.check();
  return analysis.diagnostics.numErrors();
}

Expected<std::vector<lsp::TextEdit>> rename(Document &document, uint32_t offset,
                                            StringRef newName) {
  auto refuse = [](const Twine &why) {
    return make_error<lsp::LSPError>(why.str(), lsp::ErrorCode::RequestFailed);
  };
  Analysis &analysis = document.checked();
  std::vector<Occurrence> places = references(document, offset);
  if (places.empty())
    return refuse("there is no name of this file here");
  if (!isName(newName))
    return refuse("'" + newName + "' is not a name");
  std::vector<Edit> edits;
  std::vector<lsp::TextEdit> result;
  for (const Occurrence &place : places) {
    edits.push_back({place.span, newName.str()});
    lsp::TextEdit &edit = result.emplace_back();
    edit.range = analysis.lines.range(place.span);
    edit.newText = newName.str();
  }
  // That nothing else is called so, or is meant where it stands, the result itself shows.
  Analysis after(document.path, applyEdits(analysis.text, std::move(edits)));
  if (structureOf(after.names) != structureOf(analysis.names))
    return refuse("'" + newName + "' means something else here");
  if (numErrors(after) > numErrors(analysis))
    return refuse("with '" + newName +
                  "' the program is wrong: " + after.diagnostics.all().front().message);
  return result;
}

//===----------------------------------------------------------------------===//
// Outline
//===----------------------------------------------------------------------===//

static lsp::SymbolKind kindOf(Symbol::Kind kind) {
  switch (kind) {
  case Symbol::Kernel:
  case Symbol::Function:
    return lsp::SymbolKind::Function;
  case Symbol::Output:
    return lsp::SymbolKind::Field;
  case Symbol::Constant:
    return lsp::SymbolKind::Constant;
  case Symbol::Type:
    return lsp::SymbolKind::TypeParameter;
  default:
    return lsp::SymbolKind::Variable;
  }
}

static lsp::DocumentSymbol outlineOf(const Analysis &analysis, const Symbol &symbol, Span all) {
  // The name lies within what is told of it.
  all.begin = std::min(all.begin, symbol.definition.begin);
  all.end = std::max(all.end, symbol.definition.end);
  lsp::DocumentSymbol result(symbol.name, kindOf(symbol.kind), analysis.lines.range(all),
                             analysis.lines.range(symbol.definition));
  result.detail =
      symbol.param ? onOneLine(analysis.sources.text(symbol.param->span)) : symbol.describe().str();
  return result;
}

std::vector<lsp::DocumentSymbol> documentSymbols(Document &document) {
  const Analysis &analysis = document.parsed();
  SmallVector<const Symbol *> tops;
  for (const Symbol &symbol : analysis.names.symbols())
    if (symbol.kind == Symbol::Kernel || symbol.kind == Symbol::Function)
      tops.push_back(&symbol);
  llvm::sort(tops, [](const Symbol *one, const Symbol *other) {
    return one->definition.begin < other->definition.begin;
  });
  std::vector<lsp::DocumentSymbol> result;
  for (const Symbol *one : tops) {
    const Symbol &top = *one;
    Span all = top.kernel ? top.kernel->span : top.fn->span;
    lsp::DocumentSymbol outline = outlineOf(analysis, top, all);
    outline.detail = top.kernel ? "kernel" : "fn";
    for (const Symbol &symbol : analysis.names.symbols()) {
      bool isPart = top.kernel ? symbol.kernel == top.kernel : symbol.fn == top.fn;
      if (!isPart || &symbol == &top || symbol.kind == Symbol::Index ||
          symbol.kind == Symbol::Type || symbol.kind == Symbol::Argument)
        continue;
      Span span = symbol.param  ? symbol.param->span
                  : symbol.stmt ? symbol.stmt->span
                                : symbol.definition;
      outline.children.push_back(outlineOf(analysis, symbol, span));
    }
    result.push_back(std::move(outline));
  }
  return result;
}

} // namespace tegula
