//===- ParserErrors.cpp - Messages and recovery of the parser ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/parse/ParserErrors.h"

#include "TegulaParser.h"
#include "frontend/diagnostics/Inventions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using Grammar = TegulaParser;

namespace tegula {

//===----------------------------------------------------------------------===//
// What was expected, in words
//===----------------------------------------------------------------------===//

static bool isWordOfLanguage(size_t type) {
  return type >= Grammar::FOR && type <= Grammar::RETURN;
}

static const size_t operators[] = {
    Grammar::PLUS,         Grammar::MINUS,     Grammar::STAR,      Grammar::SLASH,
    Grammar::FLOORDIV,     Grammar::AND,       Grammar::OR,        Grammar::PERCENT,
    Grammar::POWER,        Grammar::LESS,      Grammar::EQUAL,     Grammar::GREATER,
    Grammar::GREATEREQUAL, Grammar::LESSEQUAL, Grammar::NOTEQUAL,  Grammar::BITAND,
    Grammar::BITOR,        Grammar::BITXOR,    Grammar::SHIFTLEFT, Grammar::SHIFTRIGHT};

static std::string describe(const antlr4::misc::IntervalSet &expected,
                            const antlr4::dfa::Vocabulary &vocabulary) {
  std::vector<std::string> words;
  auto has = [&](size_t type) { return expected.contains(type); };
  bool expression = has(Grammar::INTEGER) && has(Grammar::LPAREN);
  bool name = has(Grammar::IDENTIFIER);
  bool binary = has(Grammar::STAR) && has(Grammar::LESS);
  if (expression)
    words.push_back("an expression");
  else if (name)
    words.push_back("a name");
  if (binary)
    words.push_back("an operator");
  for (ssize_t each : expected.toList()) {
    size_t type = static_cast<size_t>(each);
    if (type == antlr4::Token::EOF || type == Grammar::SEMICOLON)
      continue; // optional everywhere: says nothing
    if (isNameType(type) && (name || expression))
      continue;
    if (expression &&
        (type == Grammar::INTEGER || type == Grammar::FLOAT || type == Grammar::STRING ||
         type == Grammar::LPAREN || type == Grammar::PLUS || type == Grammar::MINUS ||
         type == Grammar::NOT || type == Grammar::BITNOT))
      continue;
    if (binary && is_contained(operators, type))
      continue;
    if (type == Grammar::INTEGER)
      words.push_back("an integer");
    else if (type == Grammar::ACCUMULATE && has(Grammar::ASSIGN))
      continue; // `=` stands for both
    else
      words.push_back(vocabulary.getLiteralName(type));
  }
  if (words.size() > 5)
    words.resize(5);
  std::string text;
  for (size_t i = 0; i != words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

//===----------------------------------------------------------------------===//
// Reporting
//===----------------------------------------------------------------------===//

SyntaxPlace ErrorStrategy::findPlace(antlr4::Parser *parser, size_t at) const {
  for (auto *context = dynamic_cast<antlr4::ParserRuleContext *>(parser->getContext()); context;
       context = dynamic_cast<antlr4::ParserRuleContext *>(context->parent)) {
    size_t start = context->getStart() ? context->getStart()->getTokenIndex() : at;
    switch (context->getRuleIndex()) {
    case Grammar::RuleStatement:
      return {SyntaxPlace::Statement, start, at};
    case Grammar::RuleLet:
      return {SyntaxPlace::Statement, start, at};
    case Grammar::RuleBlock:
    case Grammar::RuleFunctionBlock:
      if (start == at)
        break; // its '{' is missing: that is the head's matter
      return {context->getRuleIndex() == Grammar::RuleBlock ? SyntaxPlace::Block
                                                            : SyntaxPlace::FunctionBlock,
              at, at};
    case Grammar::RuleFunction:
    case Grammar::RuleKernel:
      return {SyntaxPlace::Head, start, at};
    default:
      break;
    }
  }
  return {SyntaxPlace::TopLevel, at, at};
}

void ErrorStrategy::reportAfterOperand(size_t at) {
  StringRef before = reporter.text(tokens[at - 1]);
  auto error = reporter.report(Code::SyntaxError, reporter.span(tokens[at]),
                               ("expected an operator or a new statement after '" + before +
                                "', found '" + reporter.text(tokens[at]) + "'")
                                   .str());
  static const StringRef reductions[] = {"sum",  "prod", "max",    "min",
                                         "mean", "var",  "argmax", "argmin"};
  if (error && is_contained(reductions, before)) // `sum over j x[i, j]`
    error->note(("a reduction is written " + before + "(x[i, j] for j)").str());
}

/// `2 x[i]`: a statement that starts in the middle of a line is the rest of the one before.
/// `x[i] +` and a new line `u[i] = ...`: the operator has taken the next statement's left side.
bool ErrorStrategy::reportMissingOperator(const SyntaxPlace &place,
                                          const antlr4::misc::IntervalSet &expected) {
  size_t at = place.at, start = place.start;
  if (place.context == SyntaxPlace::Statement && start > 0 && start < tokens.size() &&
      !tokens[start].firstOnLine && endsOperand(tokens[start - 1].type) && at > start &&
      expected.contains(size_t(Grammar::ASSIGN)) &&
      (at == tokens.size() || tokens[at].brackets == 0)) {
    reportAfterOperand(start);
    return true;
  }
  if (place.context == SyntaxPlace::Block && at > 0 && at < tokens.size() &&
      !tokens[at].firstOnLine && endsOperand(tokens[at - 1].type) && endsOperand(tokens[at].type)) {
    reportAfterOperand(at);
    return true;
  }
  if (at >= tokens.size() || tokens[at].brackets != 0 ||
      (tokens[at].type != Grammar::ASSIGN && tokens[at].type != Grammar::ACCUMULATE))
    return false;
  size_t left = at;
  while (left > 0 && !tokens[left].firstOnLine)
    --left;
  if (left == at || left == 0 || !isNameType(tokens[left].type) || tokens[left].brackets != 0 ||
      endsOperand(tokens[left - 1].type))
    return false;
  const Token &before = tokens[left - 1];
  if (before.type == Grammar::LBRACE || before.type == Grammar::RBRACE ||
      before.type == Grammar::SEMICOLON)
    return false;
  reporter.report(
      Code::SyntaxError, reporter.span(before),
      ("expected an expression after '" + reporter.text(before) + "', found a new statement")
          .str());
  return true;
}

void ErrorStrategy::reportAt(antlr4::Parser *parser, size_t at,
                             const antlr4::misc::IntervalSet &expected) {
  SyntaxPlace place = findPlace(parser, at);
  size_t begin = std::min(place.start, tokens.size());
  uint32_t from = begin < tokens.size() ? tokens[begin].begin : reporter.text().size();
  uint32_t to = at < tokens.size() ? tokens[at].end : reporter.text().size();
  if (reporter.isSpoilt(from, to))
    return;
  if (reportForeignForm(tokens, place, reporter))
    return;

  if (reportMissingOperator(place, expected))
    return;

  std::string wanted = describe(expected, parser->getVocabulary());
  if (place.context == SyntaxPlace::TopLevel)
    wanted = "'kernel' or 'fn'";
  else if (place.context == SyntaxPlace::Block)
    wanted = "a statement or '}'";
  bool atEnd = at >= tokens.size();
  StringRef found = atEnd ? StringRef() : reporter.text(tokens[at]).take_front(40);
  bool virtualToken = !atEnd && found.empty();
  Span where =
      atEnd || virtualToken
          ? (tokens.empty() ? Span{}
                            : reporter.span(tokens[std::min(at, tokens.size()) - (at != 0)]))
          : reporter.span(tokens[at]);
  std::string foundText =
      atEnd || virtualToken ? std::string("the end of the file") : ("'" + found + "'").str();
  std::string message = wanted.empty() ? "expected no " + foundText + " here"
                                       : "expected " + wanted + ", found " + foundText;

  bool reserved = !atEnd && isWordOfLanguage(tokens[at].type) &&
                  expected.contains(size_t(Grammar::IDENTIFIER)) &&
                  (!expected.contains(size_t(Grammar::INTEGER)) ||
                   (at + 1 < tokens.size() && tokens[at + 1].type == Grammar::LBRACKET));
  auto error = reporter.report(reserved ? Code::ReservedWord : Code::SyntaxError, where, message);
  if (!error)
    return;
  if (reserved)
    error->note(("'" + found + "' is a word of the language; choose another name").str());
  else if (!atEnd && at > 0 && tokens[at].firstOnLine && !virtualToken)
    error->note(("after '" + reporter.text(tokens[at - 1]) + "'").str(),
                reporter.span(tokens[at - 1]));
}

void ErrorStrategy::reportError(antlr4::Parser *parser, const antlr4::RecognitionException &e) {
  if (inErrorRecoveryMode(parser))
    return;
  beginErrorCondition(parser);
  size_t at = e.getOffendingToken()->getTokenIndex();
  antlr4::misc::IntervalSet expected = e.getExpectedTokens();
  if (pendingAt == at && pendingContext)
    expected = parser->getATN().getExpectedTokens(pendingState, pendingContext);
  else if (auto *failed = dynamic_cast<const antlr4::NoViableAltException *>(&e))
    if (failed->getStartToken()->getTokenIndex() != at) {
      // The decision needed several tokens; only a statement's start and `for` do.
      expected = {};
      size_t start = failed->getStartToken()->getTokenIndex();
      if (at == start + 1 && isNameType(tokens[start].type)) {
        expected.add(ssize_t(Grammar::ASSIGN));
        expected.add(ssize_t(Grammar::LBRACKET));
        expected.add(ssize_t(Grammar::LPAREN));
      }
    }
  reportAt(parser, at, expected);
}

//===----------------------------------------------------------------------===//
// Recovery
//===----------------------------------------------------------------------===//

size_t ErrorStrategy::nextStatement(size_t start, size_t at, unsigned braces) const {
  for (size_t i = std::max(at, start + 1); i < tokens.size(); ++i) {
    const Token &token = tokens[i];
    if (token.braces < braces)
      return i; // never met: the block's own `}` comes first
    if (token.braces != braces || token.brackets != 0)
      continue;
    if (token.type == Grammar::RBRACE || token.type == Grammar::SEMICOLON)
      return i;
    bool word = isNameType(token.type) || isWordOfLanguage(token.type);
    size_t last = tokens[i - 1].type;
    bool continues = !endsOperand(last) && last != Grammar::RBRACE && last != Grammar::SEMICOLON &&
                     last != Grammar::LBRACE && last != Grammar::COLON && i != at;
    if (token.firstOnLine && word && !continues && token.type != Grammar::AND &&
        token.type != Grammar::OR && token.type != Grammar::IN)
      return i;
  }
  return tokens.size();
}

size_t ErrorStrategy::nextDefinition(size_t at) const {
  for (size_t i = at; i < tokens.size(); ++i)
    if (tokens[i].braces == 0 && tokens[i].brackets == 0 &&
        (tokens[i].type == Grammar::KERNEL || tokens[i].type == Grammar::FN) &&
        i + 2 < tokens.size() && isNameType(tokens[i + 1].type) &&
        (tokens[i].firstOnLine || tokens[i + 2].type == Grammar::LPAREN))
      return i;
  return tokens.size();
}

/// The next definition, or the next line that starts with a foreign one.
size_t ErrorStrategy::nextTopLevel(size_t at) const {
  size_t end = nextDefinition(at);
  for (size_t i = at + 1; i < end; ++i)
    if (tokens[i].firstOnLine && tokens[i].braces == 0 && tokens[i].brackets == 0 &&
        (reporter.text(tokens[i]) == "@" ||
         findInvention(Invention::Statement, reporter.text(tokens[i]))))
      return i;
  return end;
}

size_t ErrorStrategy::endOfParameter(size_t at, unsigned brackets) const {
  for (size_t i = at; i < tokens.size() && tokens[i].braces == 0; ++i)
    if (tokens[i].brackets == brackets &&
        (tokens[i].type == Grammar::COMMA || tokens[i].type == Grammar::RPAREN))
      return i;
  return tokens.size();
}

size_t ErrorStrategy::blockOfHead(size_t at, unsigned braces) const {
  for (size_t i = at; i < tokens.size() && tokens[i].braces >= braces; ++i) {
    if (tokens[i].braces != braces)
      continue;
    if (tokens[i].type == Grammar::LBRACE)
      return i;
    if (tokens[i].type == Grammar::RBRACE || tokens[i].type == Grammar::SEMICOLON ||
        (i > at && nextDefinition(i) == i))
      break;
  }
  return SIZE_MAX;
}

void ErrorStrategy::recover(antlr4::Parser *parser, std::exception_ptr e) {
  auto *context = dynamic_cast<antlr4::ParserRuleContext *>(parser->getContext());
  size_t at = parser->getTokenStream()->index();
  size_t start = context->getStart() ? context->getStart()->getTokenIndex() : at;
  unsigned braces = start < tokens.size() ? tokens[start].braces : 0;
  size_t target = SIZE_MAX;
  switch (context->getRuleIndex()) {
  case Grammar::RuleStatement:
  case Grammar::RuleLet:
    target = nextStatement(start, at, braces);
    break;
  case Grammar::RuleParallelHead:
  case Grammar::RuleLoopHead:
    // The body is parsed all the same, if the head is one line with its brace.
    target = blockOfHead(at, braces);
    if (target != SIZE_MAX && nextStatement(start, at, braces) < target)
      target = SIZE_MAX;
    break;
  case Grammar::RuleParameter:
    target = endOfParameter(at, 1);
    break;
  case Grammar::RuleParameters:
  case Grammar::RuleOutputs:
  case Grammar::RuleSizes:
    target = blockOfHead(at, 0);
    if (target == SIZE_MAX || context->getRuleIndex() == Grammar::RuleParameters)
      target = SIZE_MAX;
    break;
  case Grammar::RuleDefinition:
    target = nextDefinition(std::max(at, start + 1));
    break;
  default:
    break;
  }
  if (target == SIZE_MAX)
    std::rethrow_exception(e);
  parser->getTokenStream()->seek(target);
  endErrorCondition(parser); // what comes now is independent
}

antlr4::Token *ErrorStrategy::recoverInline(antlr4::Parser *parser) {
  // No token is made up and none is left out: what is wrong is reported where it stands.
  throw antlr4::InputMismatchException(parser);
}

void ErrorStrategy::sync(antlr4::Parser *parser) {
  auto *interpreter = parser->getInterpreter<antlr4::atn::ParserATNSimulator>();
  antlr4::atn::ATNState *state = interpreter->atn.states[parser->getState()];
  antlr4::TokenStream *stream = parser->getTokenStream();
  size_t la = stream->LA(1), at = stream->index();
  antlr4::misc::IntervalSet next = parser->getATN().nextTokens(state);
  if (next.contains(la))
    return;
  auto *context = parser->getContext();
  size_t rule = dynamic_cast<antlr4::ParserRuleContext *>(context)->getRuleIndex();
  if (pendingAt != at) {
    pendingAt = at;
    pendingState = parser->getState();
    pendingContext = context;
  }
  auto report = [&] {
    reportAt(parser, at, parser->getATN().getExpectedTokens(pendingState, pendingContext));
  };
  // In the lists of definitions, statements and parameters what does not belong is passed over.
  switch (rule) {
  case Grammar::RuleFile:
    while (at = stream->index(), !next.contains(stream->LA(1)) && at < tokens.size()) {
      reportAt(parser, at, {});
      stream->seek(nextTopLevel(at));
    }
    endErrorCondition(parser);
    return;
  case Grammar::RuleBlock: {
    report();
    unsigned braces = at < tokens.size() ? tokens[at].braces : 1;
    for (size_t to = at; !next.contains(stream->LA(1)) && to < tokens.size();) {
      to = nextStatement(to, to, braces);
      stream->seek(to);
    }
    endErrorCondition(parser);
    return;
  }
  case Grammar::RuleParameters:
    if (la == Grammar::RPAREN)
      return;
    report();
    stream->seek(endOfParameter(at, 1));
    endErrorCondition(parser);
    return;
  case Grammar::RuleKernel:
  case Grammar::RuleOutputs:
    // The first parameter: the optional list of them is not entered.
    if (at > 0 && at < tokens.size() && tokens[at - 1].type == Grammar::LPAREN) {
      report();
      size_t to = endOfParameter(at, 1);
      stream->seek(to < tokens.size() && tokens[to].type == Grammar::COMMA ? to + 1 : to);
      endErrorCondition(parser);
      return;
    }
    [[fallthrough]];
  default:
    if (!next.contains(antlr4::Token::EPSILON))
      throw antlr4::InputMismatchException(parser);
  }
}

} // namespace tegula
