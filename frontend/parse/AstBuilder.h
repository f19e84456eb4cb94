//===- AstBuilder.h - From ANTLR's tree to ours ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_PARSE_ASTBUILDER_H
#define TEGULA_FRONTEND_PARSE_ASTBUILDER_H

#include "TegulaParser.h"
#include "frontend/ast/AST.h"
#include "frontend/parse/ParserTokens.h"
#include "llvm/ADT/ArrayRef.h"

namespace tegula {

/// Builds what was parsed without an error, and reports what the grammar allows and the language
/// does not: statements in the wrong place, ranges outside of subscripts. Where there were errors,
/// statements and heads that hold one are left out, and the names that they define are lost ones of
/// their kernel.
class AstBuilder {
public:
  /// `written`: the tokens before any were taken out.
  AstBuilder(llvm::ArrayRef<Token> tokens, llvm::ArrayRef<Token> written, SyntaxReporter &reporter)
      : tokens(tokens), written(written), reporter(reporter), isPartial(reporter.anyReported()) {}
  void build(TegulaParser::FileContext *context, ast::File &file);

private:
  using G = TegulaParser;
  /// Whether something of [begin, end) cannot be built.
  bool isWrong(uint32_t begin, uint32_t end) const {
    return isPartial && reporter.isWrong(begin, end);
  }
  bool isWrong(antlr4::ParserRuleContext *context, uint32_t begin, uint32_t end) const;
  void lose(uint32_t begin, uint32_t end, bool isStatement);
  uint32_t beginOf(antlr4::ParserRuleContext *context) const;
  std::unique_ptr<ast::Kernel> kernel(G::KernelContext *context);
  std::unique_ptr<ast::Fn> function(G::FunctionContext *context);
  ast::Param parameter(G::ParameterContext *context);
  void block(G::BlockContext *context, std::vector<ast::StmtPtr> &body);
  ast::StmtPtr statement(G::StatementContext *context);
  void loopHead(G::LoopHeadContext *context, ast::Stmt &stmt);
  void observation(G::ObservationContext *context, ast::Stmt &stmt);
  ast::ScheduleItem scheduleItem(G::ScheduleItemContext *context);
  void checkPlaces(std::vector<ast::StmtPtr> &body, bool ofKernel);
  ast::Target target(G::TargetContext *context);
  ast::Range range(G::RangeContext *context);
  ast::ForItem forItem(G::ForItemContext *context);
  std::vector<ast::ForItem> trailing(G::TrailingContext *context);

  /// Subscripts of either side; `keywords` is null on the left, where none may stand.
  std::vector<ast::Subscript> subscripts(G::SubscriptsContext *context,
                                         std::vector<ast::Argument> *keywords);
  ast::Subscript subscript(G::ExpressionContext *expr, G::RangeContext *range, Span span);

  ast::ExprPtr expression(G::ExpressionContext *context);
  ast::ExprPtr conjunction(G::ConjunctionContext *context);
  ast::ExprPtr inversion(G::InversionContext *context);
  ast::ExprPtr comparison(G::ComparisonContext *context);
  ast::ExprPtr bitOr(G::BitOrContext *context);
  ast::ExprPtr bitXor(G::BitXorContext *context);
  ast::ExprPtr bitAnd(G::BitAndContext *context);
  ast::ExprPtr shift(G::ShiftContext *context);
  ast::ExprPtr sum(G::SumContext *context);
  ast::ExprPtr product(G::ProductContext *context);
  ast::ExprPtr factor(G::FactorContext *context);
  ast::ExprPtr power(G::PowerContext *context);
  ast::ExprPtr atom(G::AtomContext *context);
  ast::ExprPtr parentheses(G::ParenthesesContext *context);
  ast::ExprPtr call(G::CallContext *context);

  ast::ExprPtr make(ast::Expr::Kind kind, Span span);
  ast::ExprPtr unary(ast::UnaryOp op, antlr4::Token *sign, ast::ExprPtr operand);
  ast::ExprPtr binary(ast::BinaryOp op, antlr4::Token *sign, ast::ExprPtr a, ast::ExprPtr b);
  ast::Ident ident(G::NameContext *context);
  Span span(antlr4::ParserRuleContext *context) const;
  Span span(antlr4::Token *token) const;

  llvm::ArrayRef<Token> tokens, written;
  SyntaxReporter &reporter;
  bool isPartial;
  ast::File *file = nullptr;
  std::vector<std::string> *lost = nullptr; // of the kernel being built
};

} // namespace tegula

#endif // TEGULA_FRONTEND_PARSE_ASTBUILDER_H
