//===- PrinterPieces.h - Text between possible line breaks -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal to the printer. A statement is first a list of pieces, then lines.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_PRINT_PRINTERPIECES_H
#define TEGULA_FRONTEND_PRINT_PRINTERPIECES_H

#include "frontend/ast/AST.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace tegula {

constexpr unsigned lineWidth = 100;

/// Text that is never broken, and how it joins the piece before it.
struct TextPiece {
  std::string text;
  bool blankBefore = false;
  int breakLevel =
      -1;             // a line may start with it; lines break at the lowest levels first. -1: never
  unsigned depth = 0; // brackets and lists around it
  bool opensList = false; // lines of this list start below it
  uint32_t offset = 0; // where its source starts: comments that stand before it come out before it
};

/// Turns nodes into pieces.
class PieceBuilder {
public:
  /// Where a line may break, at one depth of brackets, from the best place to the worst.
  enum Rank {
    Clause,
    For,
    Assign,
    Comma,
    Or,
    And,
    Compare,
    BitOr,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    Product,
    ranks
  };

  std::vector<TextPiece> take() { return std::move(pieces); }

  void text(llvm::StringRef text, uint32_t offset = 0);
  void blank() { wantsBlank = true; }
  /// The next piece may start a line.
  void mayBreak(Rank rank) { nextLevel = static_cast<int>(depth * ranks + rank); }
  void open(llvm::StringRef bracket, uint32_t offset = 0);
  void close(llvm::StringRef bracket, uint32_t offset = 0);
  /// Opens a list without a bracket, after `for` and `where`.
  void openList();
  void closeList() { --depth; }

  /// Heads of blocks end with their brace, which stands at `brace`.
  void head(const ast::Kernel &kernel, uint32_t brace);
  void head(const ast::Fn &fn, uint32_t brace);
  void definition(const ast::Fn &fn);                // `fn f(v) = ...`
  void head(const ast::Stmt &block, uint32_t brace); // `parallel ... {`, `for ... {`
  void statement(const ast::Stmt &stmt);
  void let(const ast::Ident &name, const ast::Expr &value, Rank rank = Assign);
  void result(const ast::Expr &value);
  void expr(const ast::Expr &expr, bool tight = false);

private:
  void params(const std::vector<ast::Param> &params);
  void target(const ast::Target &target);
  void targets(const ast::Stmt &stmt);
  void subscripts(const std::vector<ast::Subscript> &subscripts,
                  const std::vector<ast::Argument> &keywords, uint32_t end);
  void subscript(const ast::Subscript &subscript);
  void range(const ast::Range &range);
  void items(const std::vector<ast::ForItem> &items);
  void binary(const ast::Expr &expr, bool tight);
  void call(const ast::Expr &expr);
  void observation(const ast::Stmt &stmt);
  void comma();
  void openBlock(uint32_t brace);
  void signature(const ast::Fn &fn);

  std::vector<TextPiece> pieces;
  bool wantsBlank = false, listOpened = false;
  int nextLevel = -1;
  unsigned depth = 0;
};

} // namespace tegula

#endif // TEGULA_FRONTEND_PRINT_PRINTERPIECES_H
