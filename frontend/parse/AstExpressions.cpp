//===- AstExpressions.cpp - Expressions of ANTLR's tree to ours --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/parse/AstBuilder.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Error.h"

using namespace llvm;

namespace tegula {

ast::ExprPtr AstBuilder::make(ast::Expr::Kind kind, Span span) {
  auto expr = std::make_unique<ast::Expr>();
  expr->kind = kind;
  expr->span = span;
  return expr;
}

ast::ExprPtr AstBuilder::unary(ast::UnaryOp op, antlr4::Token *sign, ast::ExprPtr operand) {
  ast::ExprPtr expr = make(ast::Expr::Unary, span(sign));
  expr->span.end = operand->span.end;
  expr->unaryOp = op;
  expr->opSpan = span(sign);
  expr->operands.push_back(std::move(operand));
  return expr;
}

ast::ExprPtr AstBuilder::binary(ast::BinaryOp op, antlr4::Token *sign, ast::ExprPtr a,
                                ast::ExprPtr b) {
  ast::ExprPtr expr = make(ast::Expr::Binary, a->span);
  expr->span.end = b->span.end;
  expr->binaryOp = op;
  expr->opSpan = span(sign);
  expr->operands.push_back(std::move(a));
  expr->operands.push_back(std::move(b));
  return expr;
}

static antlr4::Token *tokenOf(antlr4::tree::ParseTree *leaf) {
  return dynamic_cast<antlr4::tree::TerminalNode *>(leaf)->getSymbol();
}

ast::ExprPtr AstBuilder::expression(G::ExpressionContext *context) {
  ast::ExprPtr result = conjunction(context->conjunction(0));
  for (size_t i = 2; i < context->children.size(); i += 2)
    result = binary(ast::BinaryOp::Or, tokenOf(context->children[i - 1]), std::move(result),
                    conjunction(static_cast<G::ConjunctionContext *>(context->children[i])));
  return result;
}

ast::ExprPtr AstBuilder::conjunction(G::ConjunctionContext *context) {
  ast::ExprPtr result = inversion(context->inversion(0));
  for (size_t i = 2; i < context->children.size(); i += 2)
    result = binary(ast::BinaryOp::And, tokenOf(context->children[i - 1]), std::move(result),
                    inversion(static_cast<G::InversionContext *>(context->children[i])));
  return result;
}

ast::ExprPtr AstBuilder::inversion(G::InversionContext *context) {
  if (context->comparison())
    return comparison(context->comparison());
  return unary(ast::UnaryOp::Not, context->getStart(), inversion(context->inversion()));
}

static ast::CompareOp compareOp(size_t type) {
  switch (type) {
  case TegulaParser::LESS:
    return ast::CompareOp::LT;
  case TegulaParser::LESSEQUAL:
    return ast::CompareOp::LE;
  case TegulaParser::GREATER:
    return ast::CompareOp::GT;
  case TegulaParser::GREATEREQUAL:
    return ast::CompareOp::GE;
  case TegulaParser::EQUAL:
    return ast::CompareOp::EQ;
  default:
    return ast::CompareOp::NE;
  }
}

ast::ExprPtr AstBuilder::comparison(G::ComparisonContext *context) {
  if (context->children.size() == 1)
    return bitOr(context->bitOr(0));
  ast::ExprPtr result = make(ast::Expr::Compare, span(context));
  result->opSpan = span(context->comparator(0));
  for (antlr4::tree::ParseTree *child : context->children) {
    if (auto *operand = dynamic_cast<G::BitOrContext *>(child))
      result->operands.push_back(bitOr(operand));
    else
      result->compares.push_back(
          compareOp(static_cast<G::ComparatorContext *>(child)->getStart()->getType()));
  }
  return result;
}

ast::ExprPtr AstBuilder::bitOr(G::BitOrContext *context) {
  ast::ExprPtr result = bitXor(context->bitXor(0));
  for (size_t i = 2; i < context->children.size(); i += 2)
    result = binary(ast::BinaryOp::BitOr, tokenOf(context->children[i - 1]), std::move(result),
                    bitXor(static_cast<G::BitXorContext *>(context->children[i])));
  return result;
}

ast::ExprPtr AstBuilder::bitXor(G::BitXorContext *context) {
  ast::ExprPtr result = bitAnd(context->bitAnd(0));
  for (size_t i = 2; i < context->children.size(); i += 2)
    result = binary(ast::BinaryOp::BitXor, tokenOf(context->children[i - 1]), std::move(result),
                    bitAnd(static_cast<G::BitAndContext *>(context->children[i])));
  return result;
}

ast::ExprPtr AstBuilder::bitAnd(G::BitAndContext *context) {
  ast::ExprPtr result = shift(context->shift(0));
  for (size_t i = 2; i < context->children.size(); i += 2)
    result = binary(ast::BinaryOp::BitAnd, tokenOf(context->children[i - 1]), std::move(result),
                    shift(static_cast<G::ShiftContext *>(context->children[i])));
  return result;
}

ast::ExprPtr AstBuilder::shift(G::ShiftContext *context) {
  ast::ExprPtr result = sum(static_cast<G::SumContext *>(context->children[0]));
  for (size_t i = 2; i < context->children.size(); i += 2) {
    antlr4::Token *sign = tokenOf(context->children[i - 1]);
    result = binary(sign->getType() == G::SHIFTLEFT ? ast::BinaryOp::Shl : ast::BinaryOp::Shr, sign,
                    std::move(result), sum(static_cast<G::SumContext *>(context->children[i])));
  }
  return result;
}

ast::ExprPtr AstBuilder::sum(G::SumContext *context) {
  ast::ExprPtr result = product(static_cast<G::ProductContext *>(context->children[0]));
  for (size_t i = 2; i < context->children.size(); i += 2) {
    antlr4::Token *sign = tokenOf(context->children[i - 1]);
    result =
        binary(sign->getType() == G::PLUS ? ast::BinaryOp::Add : ast::BinaryOp::Sub, sign,
               std::move(result), product(static_cast<G::ProductContext *>(context->children[i])));
  }
  return result;
}

ast::ExprPtr AstBuilder::product(G::ProductContext *context) {
  ast::ExprPtr result = factor(static_cast<G::FactorContext *>(context->children[0]));
  for (size_t i = 2; i < context->children.size(); i += 2) {
    antlr4::Token *sign = tokenOf(context->children[i - 1]);
    ast::BinaryOp op = sign->getType() == G::STAR      ? ast::BinaryOp::Mul
                       : sign->getType() == G::SLASH   ? ast::BinaryOp::Div
                       : sign->getType() == G::PERCENT ? ast::BinaryOp::Mod
                                                       : ast::BinaryOp::FloorDiv;
    result = binary(op, sign, std::move(result),
                    factor(static_cast<G::FactorContext *>(context->children[i])));
  }
  return result;
}

ast::ExprPtr AstBuilder::factor(G::FactorContext *context) {
  if (context->power())
    return power(context->power());
  antlr4::Token *sign = context->getStart();
  ast::UnaryOp op = sign->getType() == G::MINUS    ? ast::UnaryOp::Neg
                    : sign->getType() == G::BITNOT ? ast::UnaryOp::BitNot
                                                   : ast::UnaryOp::Plus;
  return unary(op, sign, factor(context->factor()));
}

ast::ExprPtr AstBuilder::power(G::PowerContext *context) {
  ast::ExprPtr base = atom(context->atom());
  if (!context->factor())
    return base;
  return binary(ast::BinaryOp::Pow, tokenOf(context->children[1]), std::move(base),
                factor(context->factor()));
}

ast::ExprPtr AstBuilder::atom(G::AtomContext *context) {
  Span where = span(context);
  std::string text = reporter.text().slice(where.begin, where.end).str();
  if (dynamic_cast<G::IntegerContext *>(context)) {
    ast::ExprPtr result = make(ast::Expr::Integer, where);
    // One that is too large has been reported.
    result->intValue = static_cast<int64_t>(integerOf(text).value_or(INT64_MAX));
    result->text = std::move(text);
    return result;
  }
  if (dynamic_cast<G::FloatContext *>(context)) {
    ast::ExprPtr result = make(ast::Expr::Float, where);
    APFloat value(APFloat::IEEEdouble());
    consumeError(value.convertFromString(text, APFloat::rmNearestTiesToEven).takeError());
    result->floatValue = value.convertToDouble();
    result->text = std::move(text);
    return result;
  }
  if (dynamic_cast<G::StringContext *>(context)) {
    ast::ExprPtr result = make(ast::Expr::String, where);
    result->text = std::move(text);
    return result;
  }
  if (auto *callAtom = dynamic_cast<G::CallAtomContext *>(context))
    return call(callAtom->call());
  if (auto *read = dynamic_cast<G::ReadContext *>(context)) {
    ast::ExprPtr result = make(ast::Expr::Index, where);
    result->name = ident(read->name());
    result->subscripts = subscripts(read->subscripts(), &result->arguments);
    return result;
  }
  if (auto *plain = dynamic_cast<G::PlainNameContext *>(context)) {
    ast::ExprPtr result = make(ast::Expr::Name, where);
    result->name = ident(plain->name());
    return result;
  }
  return parentheses(static_cast<G::ParenthesesContext *>(context));
}

ast::ExprPtr AstBuilder::parentheses(G::ParenthesesContext *context) {
  for (G::MemberContext *member : context->member())
    if (member->range())
      reporter.report(Code::SyntaxError, span(member->range()),
                      "expected no range here: 'in' stands in subscripts, in their groups and "
                      "after 'for'");
  if (context->member().size() == 1 && context->COMMA().empty()) {
    ast::ExprPtr inner = expression(context->member(0)->expression());
    inner->parenthesized = true;
    inner->span = span(context);
    return inner;
  }
  ast::ExprPtr result = make(ast::Expr::Tuple, span(context));
  for (G::MemberContext *member : context->member())
    result->operands.push_back(expression(member->expression()));
  return result;
}

ast::ExprPtr AstBuilder::call(G::CallContext *context) {
  ast::ExprPtr result = make(ast::Expr::Call, span(context));
  result->name = ident(context->name());
  std::vector<G::ArgumentContext *> arguments = context->argument();
  if (G::ComprehensionContext *comprehension = context->comprehension()) {
    result->isComprehension = true;
    if (arguments[0]->name())
      reporter.report(Code::SyntaxError, span(arguments[0]),
                      "expected a value before 'for', found a keyword argument");
    result->operands.push_back(expression(arguments[0]->expression()));
    for (G::ForItemContext *each : comprehension->forItem())
      result->items.push_back(forItem(each));
    for (size_t i = 0; i != comprehension->name().size(); ++i)
      result->arguments.push_back(
          {ident(comprehension->name(i)), expression(comprehension->expression(i))});
    return result;
  }
  bool keywords = false;
  for (G::ArgumentContext *each : arguments) {
    ast::Argument argument;
    if (each->name())
      argument.keyword = ident(each->name());
    else if (keywords)
      reporter.report(Code::PositionalAfterKeyword, span(each),
                      "expected positional arguments before keywords");
    keywords |= argument.keyword.has_value();
    argument.value = expression(each->expression());
    result->arguments.push_back(std::move(argument));
  }
  return result;
}

} // namespace tegula
