//===- Signatures.cpp - What can be called, as an editor shows it ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lsp/Signatures.h"

#include "ir/DTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tegula {

ArrayRef<BuiltinFunction> builtinFunctions() {
  static constexpr BuiltinFunction functions[] = {
#define TEGULA_BUILTIN(NAME, SIGNATURE, CLASS, DOC) {#NAME, SIGNATURE, DOC},
#include "dsl/Builtins.def"
  };
  return functions;
}

std::string onOneLine(StringRef text) {
  std::string result;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    line = line.split('#').first.trim();
    if (!result.empty() && !line.empty() && !StringRef(result).ends_with("(") &&
        !StringRef(result).ends_with("["))
      result += ' ';
    result += line;
    text = rest;
  }
  return result;
}

/// The comment that stands directly above a definition, without its signs.
static std::string commentAbove(StringRef text, uint32_t begin) {
  SmallVector<StringRef> lines;
  StringRef before = text.take_front(begin);
  before = before.take_front(before.rfind('\n') + 1); // npos + 1 is 0
  while (before.consume_back("\n")) {
    StringRef line = before.substr(before.rfind('\n') + 1);
    before = before.drop_back(line.size());
    line = line.trim();
    if (!line.consume_front("#"))
      break;
    lines.push_back(line.trim());
  }
  std::reverse(lines.begin(), lines.end());
  return llvm::join(lines, "\n");
}

static void addParameter(CallSignature &signature, StringRef name, StringRef text, bool isNamed) {
  if (!signature.parameters.empty())
    signature.label += ", ";
  auto begin = static_cast<unsigned>(signature.label.size());
  signature.label += text;
  signature.parameters.push_back(
      {name.str(), begin, static_cast<unsigned>(signature.label.size()), isNamed});
}

CallSignature signatureOf(const Module &module, const ast::Kernel &kernel) {
  const SourceManager &sources = module.sourceManager();
  CallSignature result;
  result.label = kernel.name.name + "(";
  for (const ast::Param &param : kernel.params)
    addParameter(result, param.name.name, onOneLine(sources.text(param.span)), /*isNamed=*/true);
  result.label += ")";
  for (auto [i, output] : enumerate(kernel.outputs))
    result.label += (i ? ", " : " -> (") + onOneLine(sources.text(output.span));
  if (!kernel.outputs.empty())
    result.label += ")";
  result.documentation = commentAbove(sources.text(kernel.span.file), kernel.span.begin);
  return result;
}

CallSignature signatureOf(const Module &module, const ast::Fn &fn) {
  const SourceManager &sources = module.sourceManager();
  CallSignature result;
  result.label = fn.name.name + "(";
  for (auto [i, name] : enumerate(fn.params)) {
    const ast::Expr *value = i < fn.defaults.size() ? fn.defaults[i].get() : nullptr;
    addParameter(result, name.name,
                 name.name + (value ? "=" + onOneLine(sources.text(value->span)) : ""),
                 /*isNamed=*/true);
  }
  result.label += ")";
  result.documentation = commentAbove(sources.text(fn.span.file), fn.span.begin);
  return result;
}

/// Of `clamp(x, min=, max=)`: parts between commas outside of brackets; what is before `=` is a
/// name.
static CallSignature signatureOf(const BuiltinFunction &function) {
  CallSignature result;
  result.documentation = function.documentation.str();
  StringRef inside = function.signature.drop_front(function.name.size() + 1).drop_back();
  result.label = (function.name + "(").str();
  unsigned depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= inside.size(); ++at) {
    char c = at == inside.size() ? ',' : inside[at];
    depth += c == '[' || c == '(';
    depth -= c == ']' || c == ')';
    if (c != ',' || depth)
      continue;
    StringRef part = inside.slice(begin, at).trim();
    begin = at + 1;
    if (part.empty())
      continue;
    bool isNamed = part.contains('=');
    StringRef name = part.take_while([](char one) { return isAlnum(one) || one == '_'; });
    addParameter(result, name, part, isNamed);
  }
  result.label += ")";
  return result;
}

std::optional<CallSignature> signatureOf(const Module &module, StringRef name,
                                         const ast::Kernel *caller) {
  NameIndex::Callee callee = NameIndex::calleeOf(module, name, caller);
  if (callee.kernel)
    return signatureOf(module, *callee.kernel);
  if (callee.fn)
    return signatureOf(module, *callee.fn);
  for (const BuiltinFunction &function : builtinFunctions())
    if (function.name == name)
      return signatureOf(function);
  if (parseDType(name) || name == "int" || name == "float") {
    CallSignature result;
    result.label = (name + "(").str();
    addParameter(result, "v", "v", /*isNamed=*/false);
    result.label += ")";
    result.documentation = ("v as " + name + ": floats to integers truncate").str();
    return result;
  }
  return std::nullopt;
}

} // namespace tegula
