//===- Complete.cpp - Names that fit where one is typing ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/DTypes.h"
#include "lsp/Cursor.h"
#include "lsp/Features.h"
#include "lsp/Signatures.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using Kind = lsp::CompletionItemKind;

namespace tegula {

namespace {
/// What fits best comes first; editors sort by text.
enum class Rank { Argument, Name, Own, Word, Builtin, Library, Type, Keyword };

class Completer {
public:
  Completer(Document &document, uint32_t offset)
      : analysis(document.parsed()), offset(offset), cursor(analysis.text, offset) {}
  lsp::CompletionList run();

private:
  void add(StringRef label, Kind kind, Rank rank, std::string detail = "",
           std::string documentation = "", StringRef insert = "");
  void addAll(std::initializer_list<StringRef> words, Kind kind, Rank rank) {
    for (StringRef word : words)
      add(word, kind, rank);
  }
  void addTypes();
  void addArguments();
  void addNames();
  void addWords();
  void addFunctions();
  void addCallable(StringRef name, Rank rank, bool isKernel);
  const ast::Kernel *kernelAround() const;

  const Analysis &analysis;
  const uint32_t offset;
  const Cursor cursor;
  lsp::CompletionList list;
  StringSet<> seen;
};
} // namespace

void Completer::add(StringRef label, Kind kind, Rank rank, std::string detail,
                    std::string documentation, StringRef insert) {
  if (!label.starts_with_insensitive(cursor.prefix()) || !seen.insert(label).second)
    return;
  lsp::CompletionItem item(label, kind,
                           (Twine(static_cast<char>('0' + static_cast<int>(rank))) + label).str());
  item.detail = std::move(detail);
  if (!documentation.empty())
    item.documentation = lsp::MarkupContent{lsp::MarkupKind::Markdown, std::move(documentation)};
  lsp::TextEdit edit;
  edit.range = analysis.lines.range(cursor.prefixBegin(), offset);
  edit.newText = (insert.empty() ? label : insert).str();
  item.textEdit = std::move(edit);
  list.items.push_back(std::move(item));
}

const ast::Kernel *Completer::kernelAround() const {
  for (const auto &kernel : analysis.module->file().kernels)
    if (kernel->span.begin == cursor.definitionBegin())
      return kernel.get();
  return nullptr;
}

void Completer::addTypes() {
  for (unsigned type = 0; type != numDTypes; ++type)
    add(toString(static_cast<DType>(type)), Kind::TypeParameter, Rank::Type, "element type");
}

/// `stride=` of the call around the cursor.
void Completer::addArguments() {
  const Cursor::Call *call = cursor.call();
  if (!call || !call->isArgumentStart)
    return;
  std::optional<CallSignature> signature =
      signatureOf(*analysis.module, call->function, kernelAround());
  if (!signature)
    return;
  for (const auto &[i, parameter] : enumerate(signature->parameters)) {
    if (!parameter.isNamed || parameter.name.empty() || i < call->argument - call->given.size() ||
        is_contained(call->given, parameter.name))
      continue;
    add(parameter.name + "=", Kind::Property, Rank::Argument,
        signature->label.substr(parameter.begin, parameter.end - parameter.begin));
  }
}

static Kind kindOf(Symbol::Kind kind) {
  switch (kind) {
  case Symbol::Kernel:
  case Symbol::Function:
    return Kind::Function;
  case Symbol::Type:
    return Kind::TypeParameter;
  case Symbol::Size:
  case Symbol::Constant:
    return Kind::Constant;
  case Symbol::Output:
    return Kind::Field;
  default:
    return Kind::Variable;
  }
}

/// What the definition around the cursor has a name for.
void Completer::addNames() {
  for (const Symbol &symbol : analysis.names.symbols()) {
    bool isDefinition = symbol.kind == Symbol::Kernel || symbol.kind == Symbol::Function;
    uint32_t begin = symbol.kernel ? symbol.kernel->span.begin
                     : symbol.fn   ? symbol.fn->span.begin
                                   : 0;
    if (isDefinition || begin != cursor.definitionBegin() || offset < symbol.scopeBegin)
      continue;
    // The block that is being typed may end too early in the tree, but an index has its statement.
    if (symbol.kind == Symbol::Index && offset > symbol.scopeEnd)
      continue;
    std::string detail = symbol.describe().str();
    if (symbol.param)
      detail = onOneLine(analysis.sources.text(symbol.param->span));
    add(symbol.name, kindOf(symbol.kind), Rank::Name, std::move(detail));
  }
}

/// The statement that is being typed is in no tree; its words are.
void Completer::addWords() {
  static constexpr StringLiteral notNames[] = {
      "kernel",        "fn",       "for",       "in",       "if",
      "and",           "or",       "not",       "return",   "state",
      "parallel",      "tiles",    "precision", "schedule", "reverse",
      "deterministic", "distinct", "invariant", "inout",    "where",
      "max",           "min",      "print",     "assert"};
  for (StringRef word : cursor.wordsAround())
    if (!is_contained(notNames, word))
      add(word, Kind::Text, Rank::Word);
}

void Completer::addCallable(StringRef name, Rank rank, bool isKernel) {
  NameIndex::Callee callee;
  if (isKernel)
    callee.kernel = analysis.module->findKernel(name);
  else
    callee.fn = analysis.module->findFn(name);
  CallSignature signature;
  if (callee.kernel)
    signature = signatureOf(*analysis.module, *callee.kernel);
  else if (callee.fn)
    signature = signatureOf(*analysis.module, *callee.fn);
  add(name, Kind::Function, rank, signature.label, signature.documentation);
}

void Completer::addFunctions() {
  for (const BuiltinFunction &function : builtinFunctions())
    add(function.name, Kind::Function, Rank::Builtin, function.signature.str(),
        function.documentation.str());
  const Module &module = *analysis.module;
  llvm::StringSet<> own;
  for (const auto &kernel : module.file().kernels)
    own.insert(kernel->name.name);
  for (const auto &fn : module.file().fns)
    own.insert(fn->name.name);
  auto addOf = [&](ArrayRef<StringRef> names, bool isKernel) {
    for (StringRef name : names)
      // Looking one up parses it: those that do not fit are left alone.
      if (name.starts_with_insensitive(cursor.prefix()) && name != cursor.definitionName())
        addCallable(name, own.contains(name) ? Rank::Own : Rank::Library, isKernel);
  };
  addOf(module.fnNames(), /*isKernel=*/false);
  if (!cursor.isInFunction())
    addOf(module.kernelNames(), /*isKernel=*/true);
}

lsp::CompletionList Completer::run() {
  switch (cursor.place()) {
  case Cursor::Nowhere:
    return std::move(list);
  case Cursor::TopLevel:
    addAll({"kernel", "fn"}, Kind::Keyword, Rank::Keyword);
    return std::move(list);
  case Cursor::Head:
    addAll({"where"}, Kind::Keyword, Rank::Keyword);
    addNames();
    addWords();
    return std::move(list);
  case Cursor::Type:
    addTypes();
    addAll({"int", "float", "inout"}, Kind::Keyword, Rank::Type);
    for (const Symbol &symbol : analysis.names.symbols())
      if (symbol.kind == Symbol::Type && symbol.kernel &&
          symbol.kernel->span.begin == cursor.definitionBegin())
        add(symbol.name, Kind::TypeParameter, Rank::Name, "generic type");
    return std::move(list);
  case Cursor::DeclaredDim:
    addNames();
    addWords();
    return std::move(list);
  case Cursor::Setting:
    addAll({"tile", "split", "stages", "warps", "cluster", "raster", "persistent"}, Kind::Keyword,
           Rank::Argument);
    for (const Symbol &symbol : analysis.names.symbols())
      if (symbol.kind == Symbol::Index && symbol.kernel &&
          symbol.kernel->span.begin == cursor.definitionBegin())
        add(symbol.name, Kind::Variable, Rank::Name, "index");
    return std::move(list);
  case Cursor::PrecisionName:
    addAll({"f32", "tf32", "conv_tf32", "bf16"}, Kind::Keyword, Rank::Name);
    return std::move(list);
  case Cursor::Statement:
    if (cursor.isInFunction())
      addAll({"return"}, Kind::Keyword, Rank::Keyword);
    else
      addAll({"parallel", "for", "state", "precision", "deterministic", "distinct", "invariant",
              "schedule", "print", "assert"},
             Kind::Keyword, Rank::Keyword);
    break;
  case Cursor::Expression:
    addArguments();
    addTypes();
    addAll({"for", "in", "if", "and", "or", "not", "tiles"}, Kind::Keyword, Rank::Keyword);
    addAll({"inf", "nan", "pi", "true", "false"}, Kind::Constant, Rank::Keyword);
    break;
  }
  addNames();
  addFunctions();
  addWords();
  return std::move(list);
}

lsp::CompletionList complete(Document &document, uint32_t offset) {
  return Completer(document, offset).run();
}

std::optional<lsp::SignatureHelp> signatureHelp(Document &document, uint32_t offset) {
  const Analysis &analysis = document.parsed();
  Cursor cursor(analysis.text, offset);
  const Cursor::Call *call = cursor.call();
  if (!call)
    return std::nullopt;
  const ast::Kernel *around = nullptr;
  for (const auto &kernel : analysis.module->file().kernels)
    if (kernel->span.begin == cursor.definitionBegin())
      around = kernel.get();
  std::optional<CallSignature> signature = signatureOf(*analysis.module, call->function, around);
  if (!signature)
    return std::nullopt;
  lsp::SignatureHelp help;
  lsp::SignatureInformation &information = help.signatures.emplace_back();
  information.label = signature->label;
  information.documentation = signature->documentation;
  size_t active = call->argument;
  for (const auto &[i, parameter] : enumerate(signature->parameters)) {
    lsp::ParameterInformation &one = information.parameters.emplace_back();
    one.labelOffsets = {parameter.begin, parameter.end}; // labels of programs are ASCII
    if (!call->keyword.empty() && parameter.name == call->keyword)
      active = i;
  }
  // `rand(seed, ...)` takes any number.
  if (!signature->parameters.empty() && active >= signature->parameters.size() &&
      signature->parameters.back().name.empty())
    active = signature->parameters.size() - 1;
  help.activeParameter = static_cast<int>(active);
  return help;
}

} // namespace tegula
