//===- Module.h - A parsed file and what it may call -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A user's file, and the standard library behind it. The library's text is part of the compiler; it
// is indexed by the names that it defines, and only what is called gets parsed.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_PARSE_MODULE_H
#define TEGULA_FRONTEND_PARSE_MODULE_H

#include "frontend/ast/AST.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <optional>
#include <vector>

namespace tegula {

/// Belongs to one compilation: looking a library name up may parse it.
class Module {
public:
  /// Parses `file`. Errors are reported without advice, which openModule adds; the module holds
  /// what could be understood.
  Module(SourceManager &sources, uint32_t file, Diagnostics &diagnostics);

  const ast::File &file() const { return *userFile; }
  SourceManager &sourceManager() const { return sources; }

  /// The file's own kernel of that name, its last one for an empty name; null if there is none.
  const ast::Kernel *entry(llvm::StringRef name) const;

  /// What a call of `name` means: the file's own definition, else the library's. Code of the
  /// library sees the library alone, names starting with `_` are private to it. Null: unknown.
  const ast::Kernel *findKernel(llvm::StringRef name, bool fromLibrary = false) const;
  const ast::Fn *findFn(llvm::StringRef name, bool fromLibrary = false) const;

  /// The file's kernels, each after those that it calls; checked in this order, a mistake is found
  /// where it stands before it is found through a call.
  std::vector<const ast::Kernel *> kernelsCalleesFirst() const;

  bool isLibrary(const ast::Kernel &kernel) const { return sources.isLibrary(kernel.span.file); }
  bool isLibrary(const ast::Fn &fn) const { return sources.isLibrary(fn.span.file); }

  /// Everything that user code may call, own and library's, for nearestName.
  std::vector<llvm::StringRef> kernelNames() const;
  std::vector<llvm::StringRef> fnNames() const;

private:
  struct LibraryEntry {
    unsigned stdFile;    // position in stdFiles()
    uint32_t begin, end; // the definition's bytes
    bool parsed = false;
    const ast::Kernel *kernel = nullptr;
    const ast::Fn *fn = nullptr;
  };
  void indexLibrary() const;
  void parseEntry(LibraryEntry &entry) const;

  SourceManager &sources;
  std::unique_ptr<ast::File> userFile;
  // What has been read of the library so far.
  mutable bool indexed = false;
  mutable llvm::StringMap<LibraryEntry> libraryKernels, libraryFns;
  mutable std::vector<std::optional<uint32_t>> stdFileIds;
  mutable std::vector<std::unique_ptr<ast::File>> libraryParts;
};

} // namespace tegula

#endif // TEGULA_FRONTEND_PARSE_MODULE_H
