//===- Document.h - A text that is being edited, and what is known of it *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_LSP_DOCUMENT_H
#define TEGULA_LSP_DOCUMENT_H

#include "frontend/check/Checked.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "lsp/LineIndex.h"
#include "lsp/NameIndex.h"
#include "llvm/ADT/StringMap.h"

namespace tegula {

/// One text, parsed; checked when that is asked for. Never changes its text or place.
class Analysis {
public:
  Analysis(const std::string &path, std::string text);
  Analysis(const Analysis &) = delete;

  const std::string path, text;
  SourceManager sources;
  Diagnostics diagnostics{sources};
  const uint32_t file;
  const std::unique_ptr<Module> module;
  const LineIndex lines;
  const NameIndex names;
  /// No syntax errors: the text has a canonical form.
  const bool isWellFormed;

  void check();
  bool isChecked() const { return checked; }
  /// The kernels that are right.
  llvm::ArrayRef<std::unique_ptr<checked::Program>> programs() const { return right; }
  const checked::Program *programOf(llvm::StringRef kernel) const;

private:
  bool checked = false;
  std::vector<std::unique_ptr<checked::Program>> right;
};

/// Where the bytes of a text went in another one. All between the first and the last difference
/// counts as changed.
class TextChange {
public:
  TextChange(llvm::StringRef before, llvm::StringRef after);
  /// Nothing for what was changed.
  std::optional<uint32_t> before(uint32_t after) const;
  std::optional<uint32_t> after(uint32_t before) const;

private:
  uint32_t prefix = 0, suffix = 0, beforeSize, afterSize;
};

/// What the checker knows of a kernel: of the text as it is, or as it last was right.
struct KernelFacts {
  const Analysis *analysis = nullptr;
  const checked::Program *program = nullptr;
  std::optional<TextChange> change; // where the text has changed since

  explicit operator bool() const { return program; }
  /// The place in the text that was checked.
  std::optional<uint32_t> place(uint32_t offset) const {
    return change ? change->before(offset) : std::optional(offset);
  }
  const checked::Var *variable(const Symbol &symbol) const;
  const checked::Tensor *tensor(const Symbol &symbol) const;
  const checked::Let *value(const Symbol &symbol) const;
  const checked::StateDef *state(const Symbol &symbol) const;
  const checked::Size *size(const Symbol &symbol) const;

  /// `M` for 0:M, else `lo:hi`.
  std::string rangeText(const checked::Var &variable) const;
  /// `f32[M, N]`.
  std::string typeText(const checked::Tensor &tensor) const;
};

/// A file that is open in the editor.
class Document {
public:
  Document(std::string uri, std::string path, int64_t version, std::string text);

  const std::string uri, path;
  int64_t version;
  bool isTold = false; ///< the diagnostics of this text have been published

  llvm::StringRef text() const { return now->text; }
  void setText(std::string text, int64_t version);
  /// Parsed.
  Analysis &parsed() { return *now; }
  /// Parsed and checked.
  Analysis &checked();
  KernelFacts factsOf(const ast::Kernel *kernel) {
    return kernel ? factsOf(kernel->name.name) : KernelFacts();
  }
  KernelFacts factsOf(llvm::StringRef kernel);
  /// Of all kernels that are right, or were and are still somewhere in the text.
  std::vector<KernelFacts> allFacts();

private:
  std::shared_ptr<Analysis> now;
  /// By kernel, the last text of which it was right.
  llvm::StringMap<std::shared_ptr<Analysis>> lastRight;
};

} // namespace tegula

#endif // TEGULA_LSP_DOCUMENT_H
