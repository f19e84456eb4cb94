//===- Module.cpp - A parsed file and what it may call -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/parse/Module.h"

#include "dsl/StdText.h"
#include "frontend/parse/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tegula {

Module::Module(SourceManager &sources, uint32_t file, Diagnostics &diagnostics)
    : sources(sources), userFile(parse(sources, file, diagnostics)) {}

const ast::Kernel *Module::entry(StringRef name) const {
  if (name.empty())
    return userFile->kernels.empty() ? nullptr : userFile->kernels.back().get();
  for (const auto &kernel : userFile->kernels)
    if (kernel->name.name == name)
      return kernel.get();
  return nullptr;
}

/// Library files are formatted: a definition starts at the start of its line and ends where the
/// next one starts.
void Module::indexLibrary() const {
  if (indexed)
    return;
  indexed = true;
  ArrayRef<StdFile> files = stdFiles();
  stdFileIds.resize(files.size());
  for (unsigned file = 0; file != files.size(); ++file) {
    StringRef text = files[file].text;
    LibraryEntry *previous = nullptr;
    for (size_t at = 0; at < text.size();) {
      StringRef line = text.drop_front(at);
      StringRef rest = line;
      bool isKernel = rest.consume_front("kernel ");
      if (isKernel || rest.consume_front("fn ")) {
        StringRef name = rest.take_while([](char c) { return isAlnum(c) || c == '_'; });
        if (previous)
          previous->end = static_cast<uint32_t>(at);
        LibraryEntry entry{file, static_cast<uint32_t>(at), static_cast<uint32_t>(text.size())};
        auto &table = isKernel ? libraryKernels : libraryFns;
        previous = &table.insert_or_assign(name, entry).first->second;
      }
      size_t next = line.find('\n');
      at = next == StringRef::npos ? text.size() : at + next + 1;
    }
  }
}

void Module::parseEntry(LibraryEntry &entry) const {
  if (entry.parsed)
    return;
  entry.parsed = true;
  const StdFile &file = stdFiles()[entry.stdFile];
  std::optional<uint32_t> &id = stdFileIds[entry.stdFile];
  if (!id)
    id = sources.add(file.name.str(), file.text.str(), /*isLibrary=*/true);
  Diagnostics diagnostics(sources);
  auto part = parseSlice(sources, {*id, entry.begin, entry.end}, diagnostics);
  if (diagnostics.hasErrors()) {
    diagnostics.printText(errs(), /*color=*/false);
    report_fatal_error("the standard library does not parse");
  }
  if (!part->kernels.empty())
    entry.kernel = part->kernels.front().get();
  else if (!part->fns.empty())
    entry.fn = part->fns.front().get();
  libraryParts.push_back(std::move(part));
}

const ast::Kernel *Module::findKernel(StringRef name, bool fromLibrary) const {
  if (!fromLibrary)
    if (const ast::Kernel *own = name.empty() ? nullptr : entry(name))
      return own;
  if (name.starts_with("_") && !fromLibrary)
    return nullptr;
  indexLibrary();
  auto found = libraryKernels.find(name);
  if (found == libraryKernels.end())
    return nullptr;
  parseEntry(found->second);
  return found->second.kernel;
}

const ast::Fn *Module::findFn(StringRef name, bool fromLibrary) const {
  if (!fromLibrary)
    for (const auto &fn : userFile->fns)
      if (fn->name.name == name)
        return fn.get();
  if (name.starts_with("_") && !fromLibrary)
    return nullptr;
  indexLibrary();
  auto found = libraryFns.find(name);
  if (found == libraryFns.end())
    return nullptr;
  parseEntry(found->second);
  return found->second.fn;
}

static void forEachCall(const ast::Expr &e, function_ref<void(StringRef)> visit) {
  if (e.kind == ast::Expr::Call)
    visit(e.name.name);
  for (const ast::ExprPtr &operand : e.operands)
    forEachCall(*operand, visit);
  for (const ast::Argument &argument : e.arguments)
    forEachCall(*argument.value, visit);
}

static void forEachCall(ArrayRef<ast::StmtPtr> body, function_ref<void(StringRef)> visit) {
  for (const ast::StmtPtr &stmt : body) {
    if (stmt->value)
      forEachCall(*stmt->value, visit);
    forEachCall(stmt->body, visit);
  }
}

std::vector<const ast::Kernel *> Module::kernelsCalleesFirst() const {
  std::vector<const ast::Kernel *> order;
  SmallPtrSet<const ast::Kernel *, 8> seen;
  StringMap<const ast::Kernel *> byName;
  for (const auto &kernel : userFile->kernels)
    byName.try_emplace(kernel->name.name, kernel.get());
  constexpr unsigned deepest = 64; // the checker allows no more
  auto add = [&](auto &&add, const ast::Kernel &kernel, unsigned depth) -> void {
    if (!seen.insert(&kernel).second)
      return;
    forEachCall(kernel.body, [&](StringRef name) {
      if (const ast::Kernel *callee = byName.lookup(name); callee && depth != deepest)
        add(add, *callee, depth + 1);
    });
    order.push_back(&kernel);
  };
  for (const auto &kernel : userFile->kernels)
    add(add, *kernel, 0);
  return order;
}

std::vector<StringRef> Module::kernelNames() const {
  indexLibrary();
  std::vector<StringRef> names;
  for (const auto &kernel : userFile->kernels)
    names.push_back(kernel->name.name);
  for (const auto &entry : libraryKernels)
    if (!entry.getKey().starts_with("_"))
      names.push_back(entry.getKey());
  llvm::sort(names); // the table's order is of no meaning
  return names;
}

std::vector<StringRef> Module::fnNames() const {
  indexLibrary();
  std::vector<StringRef> names;
  for (const auto &fn : userFile->fns)
    names.push_back(fn->name.name);
  for (const auto &entry : libraryFns)
    if (!entry.getKey().starts_with("_"))
      names.push_back(entry.getKey());
  llvm::sort(names);
  return names;
}

} // namespace tegula
