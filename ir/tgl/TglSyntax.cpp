//===- TglSyntax.cpp - Integer expressions in textual IR -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglSyntax.h"
#include "symbolic/IndexExprParser.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;
using llvm::StringRef;

/// While an op is being parsed the number of its operands is not known; its own axes are counted
/// from here.
static constexpr unsigned firstOwnAxis = 1u << 24;

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {
/// Tokens of textual IR, for IndexExprParser. `<=` and `//` mean other things to MLIR's lexer and
/// are `le` and `floordiv`.
struct AsmSource {
  AsmParser &parser;
  OpAsmParser *opParser = nullptr;
  ExprParser *exprs = nullptr;
  bool failed = false;

  bool take(IndexTok tok) {
    switch (tok) {
    case IndexTok::Plus:
      return succeeded(parser.parseOptionalPlus());
    case IndexTok::Minus:
      return succeeded(parser.parseOptionalMinus());
    case IndexTok::Star:
      return succeeded(parser.parseOptionalStar());
    case IndexTok::LParen:
      return succeeded(parser.parseOptionalLParen());
    case IndexTok::RParen:
      return succeeded(parser.parseOptionalRParen());
    case IndexTok::Comma:
      return succeeded(parser.parseOptionalComma());
    case IndexTok::LE:
      return takeWord("le");
    case IndexTok::LT:
      return takeWord("lt");
    case IndexTok::EQ:
      return takeWord("eq");
    case IndexTok::NE:
      return takeWord("ne");
    case IndexTok::SlashSlash:
    case IndexTok::Percent:
      return false;
    }
    return false;
  }
  bool takeWord(StringRef word) { return succeeded(parser.parseOptionalKeyword(word)); }

  std::optional<int64_t> takeInteger() {
    int64_t value;
    OptionalParseResult result = parser.parseOptionalInteger(value);
    if (!result.has_value())
      return std::nullopt;
    if ((failed |= mlir::failed(*result)))
      return 0; // the parser has said what is wrong
    return value;
  }

  std::optional<IndexExpr> takeVariable() {
    if (opParser) {
      OpAsmParser::UnresolvedOperand operand;
      OptionalParseResult result = opParser->parseOptionalOperand(operand);
      if (result.has_value()) {
        if ((failed |= mlir::failed(*result)))
          return IndexExpr();
        return exprs->variable(operand);
      }
    }
    std::string quoted;
    if (succeeded(parser.parseOptionalString(&quoted)) && !quoted.empty())
      return IndexExpr::symbol(quoted);
    StringRef word;
    if (failed || mlir::failed(parser.parseOptionalKeyword(&word)))
      return std::nullopt;
    unsigned position;
    if (!opParser && word.size() > 1 && word[0] == 'd' &&
        !word.drop_front().getAsInteger(10, position))
      return IndexExpr::dim(position);
    return IndexExpr::symbol(word);
  }

  void error(StringRef expected) {
    if (!failed)
      parser.emitError(parser.getCurrentLocation(), "expected ") << expected;
    failed = true;
  }
};
} // namespace

static ParseResult parseWith(AsmSource source, IndexExpr &result) {
  std::optional<IndexExpr> parsed = IndexExprParser<AsmSource>(source).parseSum();
  if (!parsed || source.failed)
    return failure();
  result = *parsed;
  return success();
}

ParseResult tgl::parseIndexExpr(AsmParser &parser, IndexExpr &result) {
  return parseWith(AsmSource{parser}, result);
}

ParseResult tgl::parseIndexExprList(AsmParser &parser,
                                    llvm::SmallVectorImpl<IndexExprAttr> &result) {
  return parser.parseCommaSeparatedList([&] {
    IndexExpr expr;
    if (parseIndexExpr(parser, expr))
      return failure();
    result.push_back(IndexExprAttr::get(parser.getContext(), expr));
    return success();
  });
}

ParseResult ExprParser::parseExpr(IndexExpr &result) {
  return parseWith(AsmSource{parser, &parser, this}, result);
}

ParseResult ExprParser::parseSubscripts(llvm::SmallVectorImpl<IndexExpr> &result) {
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square,
                                        [&] { return parseExpr(result.emplace_back()); });
}

ParseResult ExprParser::parseAxes(llvm::SmallVectorImpl<IndexExpr> &lows,
                                  llvm::SmallVectorImpl<IndexExpr> &highs) {
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&] {
    OpAsmParser::Argument axis;
    axis.type = parser.getBuilder().getIndexType();
    if (parser.parseArgument(axis) || parser.parseEqual() || parseExpr(lows.emplace_back()) ||
        parser.parseKeyword("to") || parseExpr(highs.emplace_back()))
      return failure();
    ownAxes.push_back(axis);
    return success();
  });
}

IndexExpr ExprParser::variable(const OpAsmParser::UnresolvedOperand &name) {
  auto same = [&](const OpAsmParser::UnresolvedOperand &other) {
    return other.name == name.name && other.number == name.number;
  };
  for (auto [position, axis] : llvm::enumerate(ownAxes))
    if (same(axis.ssaName))
      return IndexExpr::dim(firstOwnAxis + position);
  for (auto [position, operand] : llvm::enumerate(operands))
    if (same(operand))
      return IndexExpr::dim(position);
  operands.push_back(name);
  return IndexExpr::dim(operands.size() - 1);
}

ParseResult ExprParser::resolve(OperationState &result) {
  return parser.resolveOperands(operands, parser.getBuilder().getIndexType(), result.operands);
}

IndexExprAttr ExprParser::attr(const IndexExpr &expr) {
  IndexExpr numbered = expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    if (var.isSymbol() || var.position() < firstOwnAxis)
      return std::nullopt;
    return IndexExpr::dim(var.position() - firstOwnAxis + operands.size());
  });
  return IndexExprAttr::get(parser.getContext(), numbered);
}

ArrayAttr ExprParser::attr(llvm::ArrayRef<IndexExpr> exprs) {
  llvm::SmallVector<Attribute> attrs;
  for (const IndexExpr &expr : exprs)
    attrs.push_back(attr(expr));
  return parser.getBuilder().getArrayAttr(attrs);
}

ParseResult tgl::parseBody(OpAsmParser &parser, OperationState &result,
                           llvm::ArrayRef<OpAsmParser::Argument> arguments) {
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty()) {
    Block &block = body->emplaceBlock();
    for (const OpAsmParser::Argument &argument : arguments)
      block.addArgument(argument.type, result.location);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

void tgl::printIndexExpr(AsmPrinter &printer, const IndexExpr &expr) {
  expr.print(
      printer.getStream(), [](llvm::raw_ostream &os, unsigned position) { os << 'd' << position; },
      IndexExpr::Syntax::IR);
}

void ExprPrinter::print(Attribute expr) {
  cast<IndexExprAttr>(expr).getExpr().print(
      printer.getStream(),
      [&](llvm::raw_ostream &os, unsigned position) {
        if (position < indices.size())
          printer.printOperand(indices[position], os);
        else if (position - indices.size() < axes.size())
          printer.printOperand(axes[position - indices.size()], os);
        else
          os << "<<d" << position << " without operand>>";
      },
      IndexExpr::Syntax::IR);
}

void ExprPrinter::printSubscripts(ArrayAttr exprs) {
  printer << '[';
  llvm::interleaveComma(exprs, printer, [&](Attribute expr) { print(expr); });
  printer << ']';
}

void ExprPrinter::printAxes(ArrayAttr lows, ArrayAttr highs) {
  printer << '(';
  for (unsigned k = 0; k < lows.size(); ++k) {
    if (k)
      printer << ", ";
    printer.printOperand(axes[k]);
    printer << " = ";
    print(lows[k]);
    printer << " to ";
    print(highs[k]);
  }
  printer << ')';
}

/// `%arg3`, `%7`: given by the printer to a value without a name.
static bool isNumbered(StringRef name) {
  name.consume_front("arg");
  return llvm::all_of(name, llvm::isDigit);
}

ArrayAttr tgl::namesFromArguments(Builder &builder,
                                  llvm::ArrayRef<OpAsmParser::Argument> arguments) {
  llvm::SmallVector<StringRef> names;
  bool any = false;
  for (const OpAsmParser::Argument &argument : arguments) {
    StringRef name = argument.ssaName.name.drop_front(); // %
    names.push_back(isNumbered(name) ? StringRef() : name);
    any |= !names.back().empty();
  }
  return any ? builder.getStrArrayAttr(names) : ArrayAttr();
}

bool tgl::mustPrintNames(OpAsmPrinter &printer, ValueRange arguments,
                         std::optional<ArrayAttr> names) {
  if (names && names->size() != arguments.size())
    return true;
  for (auto [position, argument] : llvm::enumerate(arguments)) {
    std::string printed;
    llvm::raw_string_ostream os(printed);
    printer.printOperand(argument, os);
    StringRef spelled = StringRef(printed).drop_front();
    StringRef wanted = names ? cast<StringAttr>((*names)[position]).getValue() : StringRef();
    if (isNumbered(spelled) ? !wanted.empty() : spelled != wanted)
      return true;
  }
  return false;
}
