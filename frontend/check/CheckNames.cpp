//===- CheckNames.cpp - Names that mean nothing, or too much --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckNames.h"
#include "frontend/diagnostics/Inventions.h"
#include "llvm/ADT/StringSwitch.h"

using namespace tegula;
using namespace tegula::checked;

/// Kernels and fns share one namespace: of two with one name, calls could mean either.
void tegula::requireDistinctNames(CheckContext &ctx) {
  llvm::SmallVector<std::pair<const ast::Ident *, llvm::StringRef>> names;
  for (const auto &kernel : ctx.module.file().kernels)
    names.emplace_back(&kernel->name, "kernel");
  for (const auto &fn : ctx.module.file().fns)
    names.emplace_back(&fn->name, "fn");
  llvm::sort(names, [](const auto &one, const auto &other) {
    return one.first->span.begin < other.first->span.begin;
  });
  llvm::StringMap<std::pair<const ast::Ident *, llvm::StringRef>> first;
  for (const auto &[name, kind] : names) {
    auto [found, isNew] = first.try_emplace(name->name, name, kind);
    if (!isNew)
      ctx.report(Code::Redefinition, name->span,
                 "'" + name->name + "' is already defined, as a " + found->second.second)
          .note("first defined here", found->second.first->span)
          .note("kernels and fns share one namespace: take a new name");
  }
}

bool tegula::isReserved(llvm::StringRef name) {
  return llvm::StringSwitch<bool>(name)
      .Cases({"inf", "nan", "pi", "true", "false"}, true)
      .Default(false);
}

std::string tegula::describe(const Entity &entity) {
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

std::vector<llvm::StringRef> tegula::visibleNames(CheckContext &ctx) {
  std::vector<llvm::StringRef> names;
  for (Scope *at = ctx.scope; at; at = at->parent)
    for (const auto &entry : at->names)
      names.push_back(entry.first());
  llvm::sort(names);
  return names;
}

void tegula::loseNames(CheckContext &ctx, Frame &of) {
  for (const std::string &name : of.kernel->lost) {
    auto found = of.scope.names.find(name);
    if (found == of.scope.names.end())
      ctx.poison(of.scope, {name, of.kernel->span});
    else if (found->second.kind == Entity::Tensor)
      found->second.tensor->isSuspect = true;
  }
}

void tegula::unknownName(CheckContext &ctx, const ast::Ident &name, bool isCall) {
  if (ctx.isLost(name.name))
    return;
  if (reportInvention(ctx, name.name, name.span, isCall ? Invention::Function : Invention::Value))
    return;
  if (!isCall) {
    if (reportDefinedLater(ctx, name))
      return;
    Report record = ctx.report(Code::UnknownName, name.span, "unknown name '" + name.name + "'");
    llvm::StringRef near = nearestName(name.name, visibleNames(ctx));
    if (!near.empty())
      record.note("did you mean '" + near.str() + "'?")
          .fix("write '" + near.str() + "'", {{name.span, near.str()}});
    else if (ctx.frame && ctx.scope && parseDType(name.name))
      record.note("a type converts a value: " + name.name + "(v)");
    return;
  }
  unknownFunction(ctx, name, Code::UnknownFunction);
}

std::optional<Span> tegula::definedLater(CheckContext &ctx, llvm::StringRef name) {
  std::optional<Span> found;
  auto visit = [&](auto &&visit, llvm::ArrayRef<ast::StmtPtr> body) -> void {
    for (const ast::StmtPtr &stmt : body) {
      for (const ast::Target &target : stmt->targets)
        if (target.name.name == name && !found)
          found = target.span;
      visit(visit, stmt->body);
    }
  };
  visit(visit, ctx.frame->kernel->body);
  return found;
}

bool tegula::reportDefinedLater(CheckContext &ctx, const ast::Ident &name) {
  // Inside of a fn the kernel's names mean nothing.
  if (!ctx.expansions.empty() && !ctx.expansions.back().isKernel)
    return false;
  std::optional<Span> later = definedLater(ctx, name.name);
  if (!later)
    return false;
  bool before = later->begin < name.span.begin && later->file == name.span.file;
  ctx.report(Code::ReadBeforeDefined, name.span,
             before ? "'" + name.name + "' ended with the loop or block that defines it"
                    : "'" + name.name + "' is read before it is defined")
      .note(before ? "defined here; what a loop changes and leaves behind is a 'state'"
                   : "defined here; equations run in order",
            *later);
  return true;
}

void tegula::unknownFunction(CheckContext &ctx, const ast::Ident &name, Code code) {
  if (ctx.isLost(name.name))
    return;
  bool isKernel = code == Code::UnknownKernel;
  Report record = ctx.report(
      code, name.span, (isKernel ? "unknown kernel '" : "unknown function '") + name.name + "'");
  std::vector<llvm::StringRef> names = ctx.module.kernelNames();
  llvm::append_range(names, ctx.module.fnNames());
  for (llvm::StringRef builtin : {
#define TEGULA_BUILTIN(NAME, SIGNATURE, CLASS, DOC) #NAME,
#include "dsl/Builtins.def"
       })
    names.push_back(builtin);
  // Nothing calls itself.
  for (const Frame *at = ctx.frame; at; at = at->caller)
    llvm::erase(names, llvm::StringRef(at->kernel->name.name));
  llvm::sort(names);
  llvm::StringRef near = nearestName(name.name, names);
  if (!near.empty())
    record.note("did you mean '" + near.str() + "'?")
        .fix("write '" + near.str() + "'", {{name.span, near.str()}});
}

bool tegula::reportInvention(CheckContext &ctx, llvm::StringRef name, Span span,
                             Invention::Kind kind) {
  const Invention *found = findInvention(kind, name);
  if (!found)
    return false;
  if (ctx.expansions.empty())
    return tegula::reportInvention(*ctx.diagnostics, kind, name, span);
  ctx.report(Code::InventedName, span, "'" + name + "' does not exist here; " + found->advice());
  return true;
}
