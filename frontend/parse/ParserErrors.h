//===- ParserErrors.h - Messages and recovery of the parser ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal to the parser. One statement has one syntax error: after it the parser goes on with the
// next statement of the same block, the next parameter, or the next definition.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_PARSE_PARSERERRORS_H
#define TEGULA_FRONTEND_PARSE_PARSERERRORS_H

#include "antlr4-runtime.h"
#include "frontend/parse/ParserForeign.h"

namespace tegula {

class ErrorStrategy : public antlr4::DefaultErrorStrategy {
public:
  ErrorStrategy(llvm::ArrayRef<Token> tokens, SyntaxReporter &reporter)
      : tokens(tokens), reporter(reporter) {}

  void reportError(antlr4::Parser *parser, const antlr4::RecognitionException &e) override;
  void recover(antlr4::Parser *parser, std::exception_ptr e) override;
  antlr4::Token *recoverInline(antlr4::Parser *parser) override;
  void sync(antlr4::Parser *parser) override;

private:
  SyntaxPlace findPlace(antlr4::Parser *parser, size_t at) const;
  void reportAfterOperand(size_t at);
  bool reportMissingOperator(const SyntaxPlace &place, const antlr4::misc::IntervalSet &expected);
  void reportAt(antlr4::Parser *parser, size_t at, const antlr4::misc::IntervalSet &expected);
  size_t nextStatement(size_t start, size_t at, unsigned braces) const;
  size_t nextDefinition(size_t at) const;
  size_t nextTopLevel(size_t at) const;
  size_t endOfParameter(size_t at, unsigned brackets) const;
  size_t blockOfHead(size_t at, unsigned braces) const;

  llvm::ArrayRef<Token> tokens; // without end of file
  SyntaxReporter &reporter;
  // The first place where the token at `pendingAt` did not fit; what was possible there is what
  // was expected, before optional parts were given up.
  size_t pendingAt = SIZE_MAX, pendingState = 0;
  antlr4::RuleContext *pendingContext = nullptr;
};

} // namespace tegula

#endif // TEGULA_FRONTEND_PARSE_PARSERERRORS_H
