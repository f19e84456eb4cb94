//===- Document.cpp - A text that is being edited, and what is known of it ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lsp/Document.h"

#include "frontend/Check.h"
#include "frontend/OpenModule.h"
#include "frontend/print/ProgramText.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tegula {

Analysis::Analysis(const std::string &path, std::string given)
    : path(path), text(std::move(given)), file(sources.add(path, text)),
      module(openModule(sources, file, diagnostics)), lines(text), names(*module),
      // A file of functions alone is no program, and has a form.
      isWellFormed(llvm::all_of(
          diagnostics.all(), [](const Diagnostic &one) { return one.code == Code::EmptyFile; })) {}

void Analysis::check() {
  if (checked)
    return;
  checked = true;
  right = checkAll(*module, /*only=*/"", /*remarks=*/false, diagnostics);
}

const checked::Program *Analysis::programOf(StringRef kernel) const {
  for (const auto &program : right)
    if (program->name == kernel)
      return program.get();
  return nullptr;
}

TextChange::TextChange(StringRef before, StringRef after)
    : beforeSize(before.size()), afterSize(after.size()) {
  size_t most = std::min(before.size(), after.size());
  while (prefix != most && before[prefix] == after[prefix])
    ++prefix;
  while (suffix != most - prefix &&
         before[before.size() - 1 - suffix] == after[after.size() - 1 - suffix])
    ++suffix;
}

std::optional<uint32_t> TextChange::before(uint32_t after) const {
  if (after < prefix)
    return after;
  if (after >= afterSize - suffix)
    return after + beforeSize - afterSize;
  return std::nullopt;
}

std::optional<uint32_t> TextChange::after(uint32_t before) const {
  if (before < prefix)
    return before;
  if (before >= beforeSize - suffix)
    return before + afterSize - beforeSize;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

/// Whether what stands at `span` is what the text defines at `place`.
static bool isAt(Span span, uint32_t file, uint32_t place) {
  return span.file == file && span.begin <= place && place < span.end;
}

const checked::Var *KernelFacts::variable(const Symbol &symbol) const {
  std::optional<uint32_t> at = place(symbol.definition.begin);
  if (at)
    for (const checked::Var &one : program->vars)
      if (one.name == symbol.name && one.span.file == analysis->file && one.span.begin == *at &&
          one.kind != checked::Var::Data)
        return &one;
  return nullptr;
}

const checked::Tensor *KernelFacts::tensor(const Symbol &symbol) const {
  std::optional<uint32_t> at = place(symbol.definition.begin);
  if (at)
    for (const checked::Tensor &one : program->tensors)
      if (one.name == symbol.name && isAt(one.span, analysis->file, *at))
        return &one;
  return nullptr;
}

const checked::Let *KernelFacts::value(const Symbol &symbol) const {
  std::optional<uint32_t> at = place(symbol.definition.begin);
  if (at)
    for (const checked::Let &one : program->lets)
      if (one.name == symbol.name && isAt(one.span, analysis->file, *at))
        return &one;
  return nullptr;
}

const checked::StateDef *KernelFacts::state(const Symbol &symbol) const {
  std::optional<uint32_t> at = place(symbol.definition.begin);
  if (at)
    for (const checked::StateDef &one : program->states)
      if (one.name == symbol.name && isAt(one.span, analysis->file, *at))
        return &one;
  return nullptr;
}

const checked::Size *KernelFacts::size(const Symbol &symbol) const {
  for (const checked::Size &one : program->sizes)
    if (one.name == symbol.name)
      return &one;
  return nullptr;
}

std::string KernelFacts::rangeText(const checked::Var &variable) const {
  std::string hi = textOf(*program, variable.hi);
  if (variable.lo == IndexExpr(0))
    return hi;
  return textOf(*program, variable.lo) + ":" + hi;
}

std::string KernelFacts::typeText(const checked::Tensor &tensor) const {
  std::string result = toString(tensor.type).str();
  if (tensor.dims.empty())
    return result;
  for (auto [i, dim] : enumerate(tensor.dims))
    result += (i ? ", " : "[") + textOf(*program, dim);
  return result + "]";
}

//===----------------------------------------------------------------------===//
// Documents
//===----------------------------------------------------------------------===//

Document::Document(std::string uri, std::string path, int64_t version, std::string text)
    : uri(std::move(uri)), path(std::move(path)), version(version),
      now(std::make_shared<Analysis>(this->path, std::move(text))) {}

void Document::setText(std::string text, int64_t newVersion) {
  version = newVersion;
  isTold = false;
  if (text != now->text)
    now = std::make_shared<Analysis>(path, std::move(text));
}

Analysis &Document::checked() {
  if (!now->isChecked()) {
    now->check();
    for (const auto &program : now->programs())
      lastRight[program->name] = now;
  }
  return *now;
}

KernelFacts Document::factsOf(StringRef kernel) {
  KernelFacts facts;
  Analysis &current = checked();
  facts.analysis = &current;
  facts.program = current.programOf(kernel);
  if (facts.program)
    return facts;
  auto old = lastRight.find(kernel);
  if (old == lastRight.end())
    return facts;
  facts.analysis = old->second.get();
  facts.program = facts.analysis->programOf(kernel);
  facts.change.emplace(facts.analysis->text, current.text);
  return facts;
}

std::vector<KernelFacts> Document::allFacts() {
  checked();
  std::vector<KernelFacts> result;
  for (const auto &entry : lastRight) {
    KernelFacts facts = factsOf(entry.getKey());
    const ast::Kernel *kernel = facts.analysis->module->entry(entry.getKey());
    if (!facts.change || (kernel && facts.change->after(kernel->name.span.begin)))
      result.push_back(std::move(facts));
  }
  llvm::sort(result, [](const KernelFacts &one, const KernelFacts &other) {
    return one.program->span.begin < other.program->span.begin;
  });
  return result;
}

} // namespace tegula
