//===- Printer.h - The canonical form of a program ---------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One statement a line, two blanks of indentation, at most 100 columns where a line can be broken.
// Comments stay where they are, blank lines are kept up to one in a row. Printing the printed text
// changes nothing, and it has the same tree.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_PRINT_PRINTER_H
#define TEGULA_FRONTEND_PRINT_PRINTER_H

#include "frontend/ast/AST.h"
#include "llvm/Support/raw_ostream.h"

namespace tegula {

/// The canonical text of a file without errors; `source` is the text that it was parsed from.
std::string print(const ast::File &file, llvm::StringRef source);

/// One expression on one line.
std::string print(const ast::Expr &expr);

/// The tree as S-expressions, one statement a line, without spans and comments.
void dump(const ast::File &file, llvm::raw_ostream &os);

} // namespace tegula

#endif // TEGULA_FRONTEND_PRINT_PRINTER_H
