//===- Features.h - What the server answers ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function answers one kind of request about one document; offsets are bytes of its text.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_LSP_FEATURES_H
#define TEGULA_LSP_FEATURES_H

#include "lsp/Document.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LSP/Protocol.h"
#include <functional>

namespace tegula {

/// The edits that a diagnostic carries, and all that are safe at once.
llvm::json::Array codeActions(Document &document, uint32_t begin, uint32_t end);

llvm::json::Array diagnosticsOf(Document &document);

/// What bounds the launches of a kernel that is right, as text; empty where that is not known. The
/// line is that of a statement, 1-based, or 0 for all launches.
using LaunchText = std::function<std::string(Document &, const ast::Kernel &, unsigned line)>;
std::optional<llvm::lsp::Hover> hover(Document &document, uint32_t offset,
                                      const LaunchText &launches);

llvm::lsp::CompletionList complete(Document &document, uint32_t offset);
std::optional<llvm::lsp::SignatureHelp> signatureHelp(Document &document, uint32_t offset);

/// Where the name is defined: in the document, or in the library, whose bytes they then are.
std::optional<Span> definition(Document &document, uint32_t offset);
/// All places of the name; empty where there is none.
std::vector<Occurrence> references(Document &document, uint32_t offset);
/// What may be renamed at the place: the file's own names.
std::optional<Span> renamed(Document &document, uint32_t offset);
/// Edits after which the same names mean the same things; an error, for the user, where there are
/// none.
llvm::Expected<std::vector<llvm::lsp::TextEdit>> rename(Document &document, uint32_t offset,
                                                        llvm::StringRef newName);

std::vector<llvm::lsp::DocumentSymbol> documentSymbols(Document &document);
std::vector<llvm::lsp::InlayHint> inlayHints(Document &document, uint32_t begin, uint32_t end);
/// Empty where the text is in its form already, or has errors.
std::vector<llvm::lsp::TextEdit> format(Document &document);

/// Where an index takes its range from: "dim 1 of `x`".
std::string originOfRange(const NameIndex &names, const Symbol &index, llvm::StringRef text);

} // namespace tegula

#endif // TEGULA_LSP_FEATURES_H
