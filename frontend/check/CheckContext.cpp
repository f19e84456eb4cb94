//===- CheckContext.cpp - Reports, scopes and what they hold --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckContext.h"
#include "frontend/check/CheckNames.h"

using namespace tegula;
using namespace tegula::checked;

CheckContext::CheckContext(const Module &module, const InstanceOptions &options,
                           Diagnostics &diagnostics, WeakTypes &weakTypes)
    : module(module), options(options), diagnostics(&diagnostics),
      program(std::make_unique<Program>()), prover(std::make_unique<Prover>()),
      weakTypes(weakTypes) {}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

Report CheckContext::report(Code code, Span span, const llvm::Twine &message) {
  // An error inside a called kernel or a library function belongs to the call, with what is wrong
  // inside as a note.
  std::string main = message.str();
  std::vector<std::pair<std::string, Span>> notes;
  bool atCall = false;
  for (const Expansion &expansion : llvm::reverse(expansions)) {
    if (expansion.isKernel || expansion.isLibrary) {
      notes.clear();
      notes.push_back({main, span});
      if (!atCall)
        main = "in '" + expansion.name + "': " + main;
      else
        main = "in '" + expansion.name + "': " + message.str();
      span = expansion.call;
      atCall = true;
    } else {
      notes.push_back({"'" + expansion.name + "' is expanded here", expansion.call});
      span = atCall ? expansion.call : span;
    }
  }
  // The called kernel of the same file was, or will be, checked by itself.
  if (atCall && codeInfo(code).severity == Severity::Error && !dry)
    for (const Diagnostic &one : diagnostics->all())
      if (one.code == code && !notes.empty() && one.span.file == notes.back().second.file &&
          one.span.begin == notes.back().second.begin && one.span.end == notes.back().second.end) {
        ++repeatedErrors;
        if (!repeated)
          repeated = std::make_unique<Diagnostics>(module.sourceManager());
        return Report(repeated->report(code, span, main), atCall);
      }
  // What was said before, of another kernel with the same fn, is still an error of this one.
  unsigned before = diagnostics->numErrors();
  Report result(diagnostics->report(code, span, main), atCall);
  if (!dry && codeInfo(code).severity == Severity::Error && diagnostics->numErrors() == before)
    ++repeatedErrors;
  for (auto &[text, where] : notes)
    result.note(text, where);
  return result;
}

std::string CheckContext::shortText(Span span) const {
  llvm::StringRef all = text(span);
  size_t most = 80;
  if (all.size() <= most)
    return all.str();
  while (most && (static_cast<unsigned char>(all[most]) & 0xC0) == 0x80) // inside a character
    --most;
  return all.take_front(most).str() + "...";
}

//===----------------------------------------------------------------------===//
// Scopes and names
//===----------------------------------------------------------------------===//

Entity *CheckContext::lookup(llvm::StringRef name) {
  for (Scope *at = scope; at; at = at->parent) {
    auto found = at->names.find(name);
    if (found != at->names.end()) {
      found->second.isUsed = true;
      return &found->second;
    }
  }
  return nullptr;
}

Entity *CheckContext::define(Scope &in, const ast::Ident &name, Entity entity) {
  // nan_to_num has PyTorch's options.
  if (isReserved(name.name) && !inLibrary()) {
    report(Code::Redefinition, name.span, "'" + name.name + "' is a constant of the language");
    return nullptr;
  }
  for (Scope *at = &in; at; at = at->parent) {
    auto found = at->names.find(name.name);
    if (found == at->names.end())
      continue;
    Entity &old = found->second;
    if (old.kind != Entity::Poison) {
      report(Code::Redefinition, name.span,
             "'" + name.name + "' is already defined, as " + describe(old))
          .note("first defined here", old.span)
          .note("nothing is redefined or shadowed: take a new name, or a 'state' for what changes "
                "in a loop");
    }
    return nullptr;
  }
  entity.span = name.span;
  Entity &added = in.names[name.name];
  added = std::move(entity);
  return &added;
}

void CheckContext::poison(Scope &in, const ast::Ident &name, bool isIndex) {
  for (Scope *at = &in; at; at = at->parent)
    if (at->names.contains(name.name))
      return;
  Entity entity;
  entity.kind = Entity::Poison;
  entity.span = name.span;
  entity.isIndex = isIndex;
  in.names[name.name] = std::move(entity);
}

bool CheckContext::inLibrary() const {
  if (!expansions.empty() && !expansions.back().isKernel)
    return expansions.back().isLibrary;
  return frame->isLibrary;
}
