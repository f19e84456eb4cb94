//===- Checker.cpp - Names, and kernels in the order of calls -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/check/Checker.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>
#include <numbers>

using namespace tegula;
using namespace tegula::checked;

Checker::Checker(const Module &module, const InstanceOptions &options, Diagnostics &diagnostics,
                 WeakTypes &weakTypes)
    : module(module), options(options), diagnostics(&diagnostics),
      program(std::make_unique<Program>()), prover(std::make_unique<Prover>()),
      weakTypes(weakTypes) {}

/// Kernels and fns share one namespace: of two with one name, calls could mean either.
void Checker::requireDistinctNames() {
  llvm::SmallVector<std::pair<const ast::Ident *, llvm::StringRef>> names;
  for (const auto &kernel : module.file().kernels)
    names.emplace_back(&kernel->name, "kernel");
  for (const auto &fn : module.file().fns)
    names.emplace_back(&fn->name, "fn");
  llvm::sort(names, [](const auto &one, const auto &other) {
    return one.first->span.begin < other.first->span.begin;
  });
  llvm::StringMap<std::pair<const ast::Ident *, llvm::StringRef>> first;
  for (const auto &[name, kind] : names) {
    auto [found, isNew] = first.try_emplace(name->name, name, kind);
    if (!isNew)
      report(Code::Redefinition, name->span,
             "'" + name->name + "' is already defined, as a " + found->second.second)
          .note("first defined here", found->second.first->span)
          .note("kernels and fns share one namespace: take a new name");
  }
}

static bool hasUncountableBytes(const checked::Tensor &tensor) {
  IndexExpr bytes(8); // of the largest element
  for (const IndexExpr &dim : tensor.dims)
    bytes = bytes * dim;
  return bytes.isOverflow();
}

std::unique_ptr<Program> Checker::run() {
  errorsBefore = diagnostics->numErrors();
  const ast::Kernel *kernel = module.entry(options.kernel);
  if (!kernel) {
    if (!options.kernel.empty()) {
      std::vector<llvm::StringRef> own;
      for (const auto &candidate : module.file().kernels)
        own.push_back(candidate->name.name);
      std::string message = "no kernel '" + options.kernel + "' in this file";
      llvm::StringRef near = nearestName(options.kernel, own);
      auto builder = diagnostics->report(Code::UnknownKernel, {module.file().id, 0, 0}, message);
      if (!near.empty())
        builder.note("did you mean '" + near.str() + "'?");
    } else if (!diagnostics->hasErrors()) {
      diagnostics->report(Code::EmptyFile, {module.file().id, 0, 0},
                          "expected a kernel, the file has none");
    }
    return nullptr;
  }
  Frame entry;
  entry.kernel = kernel;
  entry.isLibrary = module.isLibrary(*kernel);
  entry.body = &program->body;
  frame = &entry;
  scope = &entry.scope;
  sink = &program->body;
  program->name = kernel->name.name;
  program->span = kernel->span;
  requireDistinctNames();

  llvm::SmallVector<TensorInfo *> outputs;
  if (bindEntry(entry) && declareOutputs(entry, outputs)) {
    loseNames(entry);
    checkBody(kernel->body);
    finishKernel(entry, outputs);
    suggestDims();
    for (checked::Size &size : program->sizes)
      size.isUnnamed = autoDefinitions.contains(size.name);
  }
  program->precision = entry.precision;
  if (!program->precision && !options.precision.empty())
    program->precision = options.precision;
  // Code has no places for what is beyond any memory unless it is empty.
  for (const Tensor &tensor : program->tensors)
    if (!hasErrors() && !tensor.constantValue && hasUncountableBytes(tensor))
      report(Code::SizeOverflow, tensor.span,
             "'" + tensor.name + "' has more bytes than 64 bits count wherever it has an element");
  if (hasErrors())
    return nullptr;
  return std::move(program);
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

Report Checker::report(Code code, Span span, const llvm::Twine &message) {
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

//===----------------------------------------------------------------------===//
// Scopes and names
//===----------------------------------------------------------------------===//

Entity *Checker::lookup(llvm::StringRef name) {
  for (Scope *at = scope; at; at = at->parent) {
    auto found = at->names.find(name);
    if (found != at->names.end()) {
      found->second.isUsed = true;
      return &found->second;
    }
  }
  return nullptr;
}

bool Checker::isReserved(llvm::StringRef name) {
  return llvm::StringSwitch<bool>(name)
      .Cases({"inf", "nan", "pi", "true", "false"}, true)
      .Default(false);
}

std::string Checker::describe(const Entity &entity) {
  switch (entity.kind) {
  case Entity::Tensor: {
    const TensorInfo &info = *entity.tensor;
    if (info.isElement)
      return "a scalar";
    return "a tensor of " + std::to_string(info.tensor->dims.size()) +
           (info.tensor->dims.size() == 1 ? " dim" : " dims");
  }
  case Entity::Scalar:
    return entity.isSize ? "a size" : "a scalar";
  case Entity::Tuple:
    return "a tuple of " + std::to_string(entity.tuple.size());
  case Entity::Index:
    return entity.var && entity.var->kind == Var::Loop ? "a loop variable" : "an index";
  case Entity::State:
    return "a state";
  case Entity::Poison:
    return "a name";
  }
  return "a name";
}

Entity *Checker::define(Scope &in, const ast::Ident &name, Entity entity) {
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

void Checker::poison(Scope &in, const ast::Ident &name, bool isIndex) {
  for (Scope *at = &in; at; at = at->parent)
    if (at->names.contains(name.name))
      return;
  Entity entity;
  entity.kind = Entity::Poison;
  entity.span = name.span;
  entity.isIndex = isIndex;
  in.names[name.name] = std::move(entity);
}

std::vector<llvm::StringRef> Checker::visibleNames() {
  std::vector<llvm::StringRef> names;
  for (Scope *at = scope; at; at = at->parent)
    for (const auto &entry : at->names)
      names.push_back(entry.first());
  llvm::sort(names);
  return names;
}

void Checker::loseNames(Frame &of) {
  for (const std::string &name : of.kernel->lost) {
    auto found = of.scope.names.find(name);
    if (found == of.scope.names.end())
      poison(of.scope, {name, of.kernel->span});
    else if (found->second.kind == Entity::Tensor)
      found->second.tensor->isSuspect = true;
  }
}

void Checker::unknownName(const ast::Ident &name, bool isCall) {
  if (isLost(name.name))
    return;
  if (reportInvention(name.name, name.span, isCall ? Invention::Function : Invention::Value))
    return;
  if (!isCall) {
    if (reportDefinedLater(name))
      return;
    Report record = report(Code::UnknownName, name.span, "unknown name '" + name.name + "'");
    llvm::StringRef near = nearestName(name.name, visibleNames());
    if (!near.empty())
      record.note("did you mean '" + near.str() + "'?")
          .fix("write '" + near.str() + "'", {{name.span, near.str()}});
    else if (frame && scope && parseDType(name.name))
      record.note("a type converts a value: " + name.name + "(v)");
    return;
  }
  unknownFunction(name, Code::UnknownFunction);
}

std::optional<Span> Checker::definedLater(llvm::StringRef name) {
  std::optional<Span> found;
  auto visit = [&](auto &&visit, llvm::ArrayRef<ast::StmtPtr> body) -> void {
    for (const ast::StmtPtr &stmt : body) {
      for (const ast::Target &target : stmt->targets)
        if (target.name.name == name && !found)
          found = target.span;
      visit(visit, stmt->body);
    }
  };
  visit(visit, frame->kernel->body);
  return found;
}

bool Checker::reportDefinedLater(const ast::Ident &name) {
  // Inside of a fn the kernel's names mean nothing.
  if (!expansions.empty() && !expansions.back().isKernel)
    return false;
  std::optional<Span> later = definedLater(name.name);
  if (!later)
    return false;
  bool before = later->begin < name.span.begin && later->file == name.span.file;
  report(Code::ReadBeforeDefined, name.span,
         before ? "'" + name.name + "' ended with the loop or block that defines it"
                : "'" + name.name + "' is read before it is defined")
      .note(before ? "defined here; what a loop changes and leaves behind is a 'state'"
                   : "defined here; equations run in order",
            *later);
  return true;
}

void Checker::unknownFunction(const ast::Ident &name, Code code) {
  if (isLost(name.name))
    return;
  bool isKernel = code == Code::UnknownKernel;
  Report record = report(code, name.span,
                         (isKernel ? "unknown kernel '" : "unknown function '") + name.name + "'");
  std::vector<llvm::StringRef> names = module.kernelNames();
  llvm::append_range(names, module.fnNames());
  for (llvm::StringRef builtin : {
#define TEGULA_BUILTIN(NAME, SIGNATURE, CLASS, DOC) #NAME,
#include "dsl/Builtins.def"
       })
    names.push_back(builtin);
  // Nothing calls itself.
  for (const Frame *at = frame; at; at = at->caller)
    llvm::erase(names, llvm::StringRef(at->kernel->name.name));
  llvm::sort(names);
  llvm::StringRef near = nearestName(name.name, names);
  if (!near.empty())
    record.note("did you mean '" + near.str() + "'?")
        .fix("write '" + near.str() + "'", {{name.span, near.str()}});
}

bool Checker::reportInvention(llvm::StringRef name, Span span, Invention::Kind kind) {
  const Invention *found = findInvention(kind, name);
  if (!found)
    return false;
  if (expansions.empty())
    return tegula::reportInvention(*diagnostics, kind, name, span);
  report(Code::InventedName, span, "'" + name + "' does not exist here; " + found->advice());
  return true;
}
