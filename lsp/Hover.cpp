//===- Hover.cpp - What a name is, where its range comes from, what a launch costs ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/print/ProgramText.h"
#include "lsp/Features.h"
#include "lsp/Signatures.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace tegula {

//===----------------------------------------------------------------------===//
// Where a range comes from
//===----------------------------------------------------------------------===//

static bool isBare(const ast::Subscript &subscript, StringRef name) {
  return subscript.kind == ast::Subscript::Single && subscript.expr &&
         subscript.expr->kind == ast::Expr::Name && subscript.expr->name.name == name;
}

/// "dim 1 of `x`" where the index subscripts a dim bare, "a part of dim 0 of `x`" in a group.
static std::string dimOf(StringRef tensor, ArrayRef<ast::Subscript> subscripts, StringRef index,
                         bool inGroup) {
  for (auto [i, subscript] : enumerate(subscripts)) {
    bool found = inGroup ? llvm::any_of(subscript.members,
                                        [&](const auto &one) { return isBare(one, index); })
                         : isBare(subscript, index);
    if (!found)
      continue;
    bool hasEllipsis = llvm::any_of(subscripts.take_front(i), [](const ast::Subscript &one) {
      return one.kind == ast::Subscript::Ellipsis;
    });
    auto position = static_cast<int64_t>(i);
    if (hasEllipsis) // from the end
      position -= static_cast<int64_t>(subscripts.size());
    return (Twine(inGroup ? "a part of dim " : "dim ") + Twine(position) + " of `" + tensor + "`")
        .str();
  }
  return "";
}

/// The first read, in the order of the text, a dim of which gives the range.
static std::string dimInside(const ast::Expr *e, StringRef index, bool inGroup) {
  if (!e)
    return "";
  if (e->kind == ast::Expr::Index)
    if (std::string found = dimOf(e->name.name, e->subscripts, index, inGroup); !found.empty())
      return found;
  auto visit = [&](auto &&self, const ast::Subscript &subscript) -> std::string {
    for (const ast::Subscript &member : subscript.members)
      if (std::string found = self(self, member); !found.empty())
        return found;
    return dimInside(subscript.expr.get(), index, inGroup);
  };
  for (const ast::Subscript &subscript : e->subscripts)
    if (std::string found = visit(visit, subscript); !found.empty())
      return found;
  for (const ast::ExprPtr &operand : e->operands)
    if (std::string found = dimInside(operand.get(), index, inGroup); !found.empty())
      return found;
  for (const ast::Argument &argument : e->arguments)
    if (std::string found = dimInside(argument.value.get(), index, inGroup); !found.empty())
      return found;
  for (const ast::ForItem &item : e->items)
    if (std::string found = dimInside(item.filter.get(), index, inGroup); !found.empty())
      return found;
  return "";
}

static const Symbol *symbolOf(const NameIndex &names, const ast::Ident &name) {
  for (const Occurrence &one : names.occurrences())
    if (one.span.begin == name.span.begin)
      return &names.symbols()[one.symbol];
  return nullptr;
}

std::string originOfRange(const NameIndex &names, const Symbol &index, StringRef text) {
  if (index.range)
    return ("written: `" + onOneLine(text.slice(index.range->span.begin, index.range->span.end)) +
            "`");
  if (index.stmt) // an output, an inout or a state where the index stands bare [4.2]
    for (const ast::Target &target : index.stmt->targets) {
      const Symbol *written = symbolOf(names, target.name);
      bool hasDims = written && (written->kind == Symbol::Output ||
                                 written->kind == Symbol::Tensor || written->kind == Symbol::State);
      if (hasDims)
        if (std::string found = dimOf(target.name.name, target.subscripts, index.name, false);
            !found.empty())
          return found;
    }
  const ast::Expr *body = index.stmt ? index.stmt->value.get() : index.call;
  for (bool inGroup : {false, true})
    if (std::string found = dimInside(body, index.name, inGroup); !found.empty())
      return found;
  return "";
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

static std::string codeBlock(StringRef text) { return ("```tegula\n" + text + "\n```\n").str(); }

/// In the order of what is known: as it was checked, else as it was declared.
static std::string headline(const Symbol &symbol, const KernelFacts &facts,
                            const Analysis &analysis) {
  if (symbol.param)
    return onOneLine(analysis.sources.text(symbol.param->span));
  if (symbol.kind == Symbol::Size)
    for (const ast::SizeDef &size : symbol.kernel->sizes)
      if (size.name.name == symbol.name && size.value)
        return symbol.name + " = " + onOneLine(analysis.sources.text(size.value->span));
  if (facts) {
    if (symbol.kind == Symbol::Index) {
      if (const checked::Var *variable = facts.variable(symbol))
        return symbol.name + " in " + textOf(*facts.program, variable->lo) + ":" +
               textOf(*facts.program, variable->hi);
    } else if (const checked::Tensor *tensor = facts.tensor(symbol)) {
      return symbol.name + ": " + facts.typeText(*tensor);
    } else if (const checked::StateDef *state = facts.state(symbol)) {
      return "state " + symbol.name + ": " + toString(state->storage.value_or(state->type)).str();
    } else if (const checked::Let *value = facts.value(symbol)) {
      return symbol.name + ": " + toString(value->value->type).str();
    } else if (const checked::Size *size = facts.size(symbol); size && !size->boundBy) {
      if (!size->isOpen)
        return symbol.name + " = " + textOf(*facts.program, size->definition);
    }
  }
  return symbol.name;
}

/// The indices that a value or a state varies along.
static std::string axesText(const KernelFacts &facts, ArrayRef<unsigned> axes) {
  std::string result;
  for (unsigned axis : axes)
    result += (result.empty() ? "varies along " : ", ") + facts.program->vars[axis].name;
  return result;
}

static std::string sizeText(const checked::Size &size, const KernelFacts &facts) {
  if (!size.boundBy)
    return "";
  auto [input, dim] = *size.boundBy;
  if (input >= facts.program->inputs.size())
    return "";
  return ("bound by dim " + Twine(dim) + " of `" + facts.program->inputs[input]->name + "`").str();
}

/// The constants at which a kernel was checked: what is told may be otherwise at others.
static std::string constantsText(const KernelFacts &facts) {
  std::string result;
  for (const checked::Constant &constant : facts.program->constants) {
    result += (result.empty() ? "checked at " : ", ") + constant.name + "=";
    if (const auto *integer = std::get_if<int64_t>(&constant.value))
      result += std::to_string(*integer);
    else if (const auto *number = std::get_if<double>(&constant.value))
      result += formatv("{0}", json::Value(*number)).str();
    else if (const auto *truth = std::get_if<bool>(&constant.value))
      result += *truth ? "true" : "false";
    else
      result += "(" +
                llvm::join(llvm::map_range(std::get<std::vector<int64_t>>(constant.value),
                                           [](int64_t one) { return std::to_string(one); }),
                           ", ") +
                ")";
  }
  return result;
}

/// What there is to say of a symbol besides its headline, in sentences' parts.
static std::string details(const Symbol &symbol, const KernelFacts &facts,
                           const Analysis &analysis) {
  std::vector<std::string> parts{symbol.describe().str()};
  if (symbol.param && symbol.param->isInout)
    parts.back() += ", updated in place";
  if (symbol.kind == Symbol::Index) {
    if (std::string origin = originOfRange(analysis.names, symbol, analysis.text); !origin.empty())
      parts.push_back("range: " + origin);
    if (facts)
      if (const checked::Var *variable = facts.variable(symbol)) {
        if (variable->kind == checked::Var::Tile)
          parts.push_back("a tile of the compiler's size");
        if (variable->kind == checked::Var::Loop)
          parts.push_back(variable->reverse ? "in order, downwards" : "in order");
      }
  } else if (facts) {
    std::string more;
    if (const checked::Size *size = symbol.kind == Symbol::Size ? facts.size(symbol) : nullptr)
      more = sizeText(*size, facts);
    else if (const checked::Let *value = facts.value(symbol))
      more = axesText(facts, value->value->axes);
    else if (const checked::StateDef *state = facts.state(symbol))
      more = axesText(facts, state->axes);
    if (!more.empty())
      parts.push_back(std::move(more));
  }
  if (symbol.kind == Symbol::Type)
    parts.push_back("bound by the first argument that shows it; checked as f32 here");
  bool isFound = symbol.kind == Symbol::Index || symbol.kind == Symbol::Temporary ||
                 symbol.kind == Symbol::State;
  if (facts && isFound && !facts.program->constants.empty())
    parts.push_back(constantsText(facts));
  return llvm::join(parts, "; ");
}

/// What every launch checks of the sizes.
static std::string guardsText(const KernelFacts &facts) {
  if (!facts)
    return "";
  if (facts.program->guards.empty())
    return "\nNo size is refused.\n";
  std::string text = "\nA launch is refused unless\n";
  for (const checked::Guard &guard : facts.program->guards)
    text += "- `" + conditionOf(*facts.program, guard) + "`\n";
  return text;
}

static std::string signatureText(const CallSignature &signature) {
  return codeBlock(signature.label) +
         (signature.documentation.empty() ? "" : "\n" + signature.documentation + "\n");
}

static std::string launchesText(const std::string &text) {
  return text.empty() ? "" : "\n```text\n" + text + "```\n";
}

namespace {
struct Told {
  Span span;
  std::string text;
};
} // namespace

/// What there is at a place of a text. `old`: what is known of a kernel of an older text.
static std::optional<Told> tell(Document &document, const Analysis &analysis, uint32_t offset,
                                const KernelFacts *old, const LaunchText &launches) {
  if (const Occurrence *here = analysis.names.at(offset)) {
    const Symbol &symbol = analysis.names.symbols()[here->symbol];
    KernelFacts facts = old ? *old : document.factsOf(symbol.kernel);
    bool isRight = facts && !facts.change && !old;
    if (symbol.kind == Symbol::Kernel)
      return Told{here->span,
                  signatureText(signatureOf(*analysis.module, *symbol.kernel)) + guardsText(facts) +
                      (isRight ? launchesText(launches(document, *symbol.kernel, 0)) : "")};
    if (symbol.kind == Symbol::Function)
      return Told{here->span, signatureText(signatureOf(*analysis.module, *symbol.fn))};
    std::string text = codeBlock(headline(symbol, facts, analysis)) + "\n" +
                       details(symbol, facts, analysis) + "\n";
    if (old || (facts && facts.change))
      text += "\nThe kernel has errors now: this is as it was before.\n";
    // A launch stands at the statement whose result it stores.
    if (isRight && here->role != Occurrence::Read && symbol.kind != Symbol::Index)
      text += launchesText(
          launches(document, *symbol.kernel,
                   analysis.sources.lineAndColumn(here->span.file, here->span.begin).first));
    return Told{here->span, std::move(text)};
  }
  if (const CallSite *site = analysis.names.calleeAt(offset))
    if (auto signature = signatureOf(*analysis.module, site->call->name.name, site->kernel))
      return Told{site->call->name.span, signatureText(*signature)};
  const ast::Argument *argument = nullptr;
  if (const CallSite *site = analysis.names.keywordAt(offset, argument))
    if (auto signature = signatureOf(*analysis.module, site->call->name.name, site->kernel))
      return Told{argument->keyword->span, signatureText(*signature)};
  return std::nullopt;
}

std::optional<lsp::Hover> hover(Document &document, uint32_t offset, const LaunchText &launches) {
  const Analysis &analysis = document.checked();
  std::optional<Told> told = tell(document, analysis, offset, /*old=*/nullptr, launches);
  if (!told && !analysis.isWellFormed)
    // The statement is in no tree now; it was in that of the last right text.
    for (KernelFacts &facts : document.allFacts()) {
      std::optional<uint32_t> place = facts.change ? facts.place(offset) : std::nullopt;
      if (!place)
        continue;
      TextChange change = *facts.change;
      facts.change.reset();
      told = tell(document, *facts.analysis, *place, &facts, launches);
      std::optional<uint32_t> begin = told ? change.after(told->span.begin) : std::nullopt;
      if (!begin) {
        told.reset();
        continue;
      }
      uint32_t length = told->span.end - told->span.begin;
      told->span = {analysis.file, *begin, *begin + length};
      break;
    }
  if (!told)
    return std::nullopt;
  lsp::Hover result(analysis.lines.range(told->span));
  result.contents = {lsp::MarkupKind::Markdown, std::move(told->text)};
  return result;
}

} // namespace tegula
