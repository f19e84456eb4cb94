//===- Parser.h - Text to syntax tree ----------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only user of ANTLR: its exceptions and its types stop here. Before ANTLR sees a text, its
// size, encoding, brackets, nesting and literals are checked, so that no input exhausts the stack.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_PARSE_PARSER_H
#define TEGULA_FRONTEND_PARSE_PARSER_H

#include "frontend/ast/AST.h"
#include "frontend/diagnostics/Diagnostics.h"

namespace tegula {

namespace limits {
constexpr size_t fileBytes = 1 << 20;
constexpr unsigned nesting = 256;          // brackets, unary operators, `**`
constexpr unsigned statementTokens = 2000; // of a statement, or of a parameter
constexpr unsigned syntaxErrors = 50;      // reported in one run
} // namespace limits

/// Parses the whole file. Where a syntax error was reported, the tree holds comments alone.
std::unique_ptr<ast::File> parse(SourceManager &sources, uint32_t file, Diagnostics &diagnostics);

/// Parses the definitions in bytes [begin, end) of a file; spans are those of the whole file.
std::unique_ptr<ast::File> parseSlice(SourceManager &sources, Span slice, Diagnostics &diagnostics);

} // namespace tegula

#endif // TEGULA_FRONTEND_PARSE_PARSER_H
