//===- ParserForeignForms.cpp - Forms of other languages --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the grammar failed, the tokens around may be a form of another language: it is reported by
// its name, with what takes its place.
//
//===----------------------------------------------------------------------===//

#include "frontend/parse/ParserForeign.h"

#include "TegulaLexer.h"
#include "frontend/diagnostics/Inventions.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using Lexer = TegulaLexer;

namespace tegula {

namespace {
class ForeignForm {
public:
  ForeignForm(ArrayRef<Token> tokens, const SyntaxPlace &place, SyntaxReporter &reporter)
      : tokens(tokens), place(place), reporter(reporter) {}
  bool report();

private:
  bool lambda();
  bool statementWord();
  bool declarationWord();
  bool conditional();
  bool pythonBlock();
  bool chainedSubscript();
  bool slice();
  bool member();
  bool equality();
  bool updateOperator();
  bool matrixProduct();
  bool tupleTarget();
  bool scheduleSeparator();
  bool loopHead();
  bool parameterOrder();
  bool unnamedOutput();

  size_t type(size_t i) const { return i < tokens.size() ? tokens[i].type : 0; }
  StringRef text(size_t i) const {
    return i < tokens.size() ? reporter.text(tokens[i]) : StringRef();
  }
  /// The edit that takes a statement away with its lines, where nothing else stands there.
  void leaveOut(Diagnostics::Builder &found, size_t first, size_t last) const;
  size_t lastOnLine(size_t i) const {
    while (i + 1 < tokens.size() && !tokens[i + 1].firstOnLine)
      ++i;
    return i;
  }
  std::optional<Diagnostics::Builder> error(Code code, size_t i, const Twine &message) {
    return reporter.report(code, reporter.span(tokens[i]), message.str());
  }

  ArrayRef<Token> tokens;
  const SyntaxPlace &place;
  SyntaxReporter &reporter;
};
} // namespace

void ForeignForm::leaveOut(Diagnostics::Builder &found, size_t first, size_t last) const {
  StringRef file = reporter.text();
  size_t begin = file.rfind('\n', tokens[first].begin) + 1, end = file.find('\n', tokens[last].end);
  end = end == StringRef::npos ? file.size() : end + 1;
  if (!file.slice(begin, tokens[first].begin).trim().empty() ||
      !file.slice(tokens[last].end, end).trim().empty())
    return;
  found.fix("leave it out",
            {{reporter.span(static_cast<uint32_t>(begin), static_cast<uint32_t>(end)), ""}},
            Applicability::Safe);
}

/// `lambda v: v`, of which `v: v` looks like a statement.
bool ForeignForm::lambda() {
  if (place.context != SyntaxPlace::Statement || place.start == 0 ||
      text(place.start - 1) != "lambda")
    return false;
  error(Code::ForeignStatement, place.start - 1,
        "there is no 'lambda': " + findInvention(Invention::Statement, "lambda")->advice());
  return true;
}

/// `if c: ...`, `def f(x): ...`, `return y`.
bool ForeignForm::statementWord() {
  for (size_t i : {place.at, place.start}) {
    const Invention *entry = findInvention(Invention::Statement, text(i));
    // A word that is a name here (`val[i] = ...`) is no statement word.
    bool isName =
        isNameType(type(i)) && (type(i + 1) == Lexer::ASSIGN || type(i + 1) == Lexer::LBRACKET ||
                                type(i + 1) == Lexer::COMMA || type(i + 1) == Lexer::COLON ||
                                type(i + 1) == Lexer::ACCUMULATE);
    bool startsStatement =
        i == place.start || i == 0 || tokens[i].firstOnLine || !endsOperand(type(i - 1));
    if (!entry || isName || !startsStatement)
      continue;
    auto found =
        error(Code::ForeignStatement, i, "there is no '" + text(i) + "': " + entry->advice());
    if (found && !entry->replacement.empty() && isNameType(type(i + 1)))
      found->fix(("write '" + entry->replacement + "'").str(),
                 {{reporter.span(tokens[i]), entry->replacement.str()}}, Applicability::Safe);
    else if (found && entry->isVoid() && i == place.start && tokens[i].firstOnLine)
      leaveOut(*found, i, lastOnLine(i));
    return true;
  }
  return false;
}

/// `float x = 1`: a type in front of the name.
bool ForeignForm::declarationWord() {
  size_t i = place.start;
  if (place.context != SyntaxPlace::Statement || place.at != i + 1 || !isNameType(type(i)) ||
      !isNameType(type(i + 1)) || tokens[i + 1].firstOnLine)
    return false;
  const Invention *word = findInvention(Invention::Statement, text(i));
  if (word ? !word->rewrite.starts_with("a name is defined")
           : !findInvention(Invention::Type, text(i)))
    return false;
  if (auto found = error(Code::ForeignStatement, i,
                         "there is no declaration: a name is defined by its equation"))
    found->fix("leave the type out", {{reporter.span(tokens[i].begin, tokens[i + 1].begin), ""}},
               Applicability::Safe);
  return true;
}

/// `a if c else b`, `c ? a : b`.
bool ForeignForm::conditional() {
  size_t i = place.at;
  bool python = type(i) == Lexer::IF && i > 0 && endsOperand(type(i - 1)) && !tokens[i].firstOnLine;
  if (!python && text(i) != "?")
    return false;
  error(Code::ForeignOperator, i,
        python ? "there is no 'a if c else b': write 'where(c, a, b)'"
               : "there is no 'c ? a : b': write 'where(c, a, b)'");
  return true;
}

/// A line that ends with ':' and opens a block by indentation.
bool ForeignForm::pythonBlock() {
  if (place.start >= tokens.size())
    return false;
  bool head = place.context == SyntaxPlace::Head;
  if (!head && type(place.start) != Lexer::FOR && type(place.start) != Lexer::PARALLEL)
    return false;
  size_t colon = head ? place.at : lastOnLine(place.start);
  if (type(colon) != Lexer::COLON || lastOnLine(colon) != colon)
    return false;
  auto found =
      error(Code::ForeignStatement, colon, "expected '{', found ':': blocks stand in braces");
  if (!found || place.start >= colon)
    return true;
  // The block ends with the last line that is indented more than its head.
  StringRef file = reporter.text();
  auto indentAt = [&](size_t line) {
    size_t end = file.find_first_not_of(" \t", line);
    return std::min(end, file.size()) - line;
  };
  size_t headLine = file.rfind('\n', tokens[place.start].begin) + 1, last = 0;
  size_t indent = indentAt(headLine);
  for (size_t line = file.find('\n', tokens[colon].begin); line != StringRef::npos;) {
    size_t begin = line + 1, end = std::min(file.find('\n', begin), file.size());
    if (begin >= file.size())
      break;
    bool isBlank = file.slice(begin, end).trim().empty();
    if (!isBlank && indentAt(begin) <= indent)
      break;
    if (!isBlank)
      last = end;
    line = end == file.size() ? StringRef::npos : end;
  }
  if (last == 0)
    return true;
  std::string close = "\n" + file.substr(headLine, indent).str() + "}";
  uint32_t at = static_cast<uint32_t>(last);
  bool isSpaced = tokens[colon].begin > 0 && file[tokens[colon].begin - 1] == ' ';
  found->fix(
      "write braces",
      {{reporter.span(tokens[colon]), isSpaced ? "{" : " {"}, {reporter.span(at, at), close}},
      Applicability::Safe);
  return true;
}

/// `x[i][j]`.
bool ForeignForm::chainedSubscript() {
  size_t i = place.at;
  if (type(i) != Lexer::LBRACKET || i == 0 || type(i - 1) != Lexer::RBRACKET)
    return false;
  if (auto found = error(Code::ForeignAccess, i,
                         "expected all subscripts in one pair of brackets: 'x[i, j]'"))
    found->fix("write ','", {{reporter.span(tokens[i - 1].begin, tokens[i].end), ", "}},
               Applicability::Safe);
  return true;
}

/// `x[0:n]`, `x[:, j]`.
bool ForeignForm::slice() {
  size_t i = place.at;
  if (type(i) != Lexer::COLON || tokens[i].brackets == 0)
    return false;
  size_t depth = 0, open = i;
  while (open-- > 0) {
    if (type(open) == Lexer::RBRACKET || type(open) == Lexer::RPAREN)
      ++depth;
    else if (type(open) == Lexer::LBRACKET || type(open) == Lexer::LPAREN)
      if (depth-- == 0)
        break;
  }
  if (open >= tokens.size() || type(open) != Lexer::LBRACKET)
    return false;
  if (auto found = error(Code::ForeignAccess, i, "there are no slices: name the index"))
    found->note("a part of a dim is a range: 'y[i in hi - lo] = x[lo + i]', "
                "'sum(x[k] for k in lo:hi)'");
  return true;
}

/// A function or constant of one element, here as elsewhere.
static bool isBuiltin(StringRef name) {
  enum { Unary, UnaryKeep, UnaryTest, Binary, Reduction, Scan, Special };
#define TEGULA_BUILTIN(NAME, SIGNATURE, CLASS, DOC)                                                \
  if (name == #NAME)                                                                               \
    return CLASS <= Binary;
#include "dsl/Builtins.def"
  return name == "pi" || name == "inf" || name == "nan";
}

/// `x.T`, `tl.load(p)`, `x.sum(1)`.
bool ForeignForm::member() {
  size_t i = place.at;
  if (text(i) != "." || i == 0)
    return false;
  bool ofModule = StringSwitch<bool>(text(i - 1))
                      .Cases({"tl", "torch", "F", "np", "numpy", "math", "triton", "nn"}, true)
                      .Cases({"jnp", "jax", "lax", "scipy", "einops", "libdevice", "cuda"}, true)
                      .Default(false);
  // `torch.nn.functional.relu`: the last name counts.
  size_t last = i + 1;
  while (ofModule && text(last + 1) == "." && isNameType(type(last + 2)))
    last += 2;
  bool called = type(last + 1) == Lexer::LPAREN;
  StringRef name = text(last);
  const Invention *entry = nullptr;
  if (ofModule)
    entry = findInvention(called ? Invention::Function : Invention::Type, name);
  if (ofModule && !entry && !called)
    entry = findInvention(Invention::Value, name);
  if (!entry)
    entry = findInvention(Invention::Member, name);
  if (!entry && called)
    entry = findInvention(Invention::Function, name);
  std::string what = ofModule ? "there are no modules" : ("there is no '." + name + "'").str();
  if (!entry && !ofModule && called)
    what = ("there are no methods: functions take elements, '" + name + "(x[i, j])'").str();
  auto found = reporter.report(Code::ForeignAccess,
                               reporter.span(tokens[ofModule ? i - 1 : i].begin,
                                             tokens[std::min(last, tokens.size() - 1)].end),
                               what + (entry ? ": " + entry->advice() : ""));
  if (!found || !ofModule || !isNameType(type(last)))
    return true;
  // `math.exp(v)` is `exp(v)`; what has another name here is not renamed by dropping the module.
  Span all = reporter.span(tokens[i - 1].begin, tokens[last].end);
  if (!entry)
    found->fix(("write '" + name + "'").str(), {{all, name.str()}},
               isBuiltin(name) ? Applicability::Safe : Applicability::Maybe);
  else if (entry->kind != Invention::Member && !entry->replacement.empty())
    found->fix(entry->advice(), {{all, entry->replacement.str()}}, Applicability::Safe);
  return true;
}

/// `y[i] == x[i]` as a statement, `where(x[i] = 0, ...)`.
bool ForeignForm::equality() {
  size_t i = place.at;
  if (place.context != SyntaxPlace::Statement)
    return false;
  if (type(i) == Lexer::EQUAL && tokens[i].brackets == 0) {
    if (auto found = error(Code::ForeignOperator, i, "expected '=', found '=='"))
      found->fix("write '='", {{reporter.span(tokens[i]), "="}}, Applicability::Safe);
    return true;
  }
  if (type(i) == Lexer::ASSIGN && i > 0 && endsOperand(type(i - 1)) && tokens[i].brackets > 0) {
    if (auto found = error(Code::ForeignOperator, i, "expected '==' to compare, found '='"))
      found->fix("write '=='", {{reporter.span(tokens[i]), "=="}}, Applicability::Safe);
    return true;
  }
  return false;
}

/// `y -= v`, `i++`.
bool ForeignForm::updateOperator() {
  size_t i = place.at;
  StringRef op = text(i);
  if (type(i) == Lexer::FOREIGN && op.size() == 2 && op[1] == '=' &&
      StringRef("-*/%").contains(op[0])) {
    StringRef target = reporter.text().slice(tokens[place.start].begin, tokens[i].begin).trim();
    if (auto found =
            error(Code::ForeignOperator, i, "there is no '" + op + "': only '+=' accumulates"))
      found->note(op == "-="
                      ? "write '" + (target + " += -(...)'").str()
                      : "write '" +
                            (target + " = " + target + " " + op.take_front() + " ...'").str() +
                            " for a state, or a new name");
    return true;
  }
  if ((type(i) == Lexer::PLUS || type(i) == Lexer::MINUS) && type(i + 1) == type(i) &&
      touches(tokens[i], tokens[i + 1])) {
    reporter.report(Code::ForeignOperator, reporter.span(tokens[i].begin, tokens[i + 1].end),
                    ("there is no '" + op + op + "': a loop's range says its steps").str());
    return true;
  }
  return false;
}

/// `a @ b`, `@decorator`.
bool ForeignForm::matrixProduct() {
  size_t i = place.at;
  if (text(i) != "@")
    return false;
  if (place.context == SyntaxPlace::TopLevel || (tokens[i].firstOnLine && tokens[i].braces == 0)) {
    if (auto found = error(Code::ForeignStatement, i, "there are no decorators"))
      leaveOut(*found, i, lastOnLine(i));
  } else
    error(Code::ForeignOperator, i,
          "there is no '@': write 'sum(a[i, k] * b[k, j] for k)', or 'h = matmul(a, b)'");
  return true;
}

/// `(a, b) = k(x)`: a line that starts with '(' continues the one before.
bool ForeignForm::tupleTarget() {
  size_t open = place.at, i = place.at;
  if (type(open) == Lexer::LPAREN || type(open) == Lexer::LBRACKET) {
    for (i = open + 1; i < tokens.size() && tokens[i].brackets > tokens[open].brackets;)
      ++i; // past the partner
  } else {
    while (open > 0 && !tokens[open].firstOnLine)
      --open;
  }
  if ((type(open) != Lexer::LPAREN && type(open) != Lexer::LBRACKET) || !tokens[open].firstOnLine ||
      type(i) != Lexer::ASSIGN || tokens[i].brackets != 0)
    return false;
  if (auto found = error(Code::ForeignStatement, open,
                         "expected several results without brackets: 'a, b = k(x)'"))
    found->fix("leave the brackets out",
               {{reporter.span(tokens[open]), ""}, {reporter.span(tokens[i - 1]), ""}});
  return true;
}

/// `tile i=128 j=64`, `tile i=128, stages 4`.
bool ForeignForm::scheduleSeparator() {
  size_t i = place.at;
  if (place.context != SyntaxPlace::Statement || type(place.start) != Lexer::SCHEDULE || i < 2)
    return false;
  if (type(i) == Lexer::ASSIGN && isNameType(type(i - 1)) && type(i - 2) == Lexer::INTEGER) {
    if (auto found = error(Code::SyntaxError, i - 1,
                           "expected ',' between settings, found '" + text(i - 1) + "'"))
      found->fix("insert ','", {{reporter.span(tokens[i - 2].end, tokens[i - 2].end), ","}},
                 Applicability::Safe);
    return true;
  }
  if (type(i) == Lexer::INTEGER && isNameType(type(i - 1)) && type(i - 2) == Lexer::COMMA) {
    if (auto found = error(Code::SyntaxError, i - 2, "expected ';' between items, found ','"))
      found->fix("write ';'", {{reporter.span(tokens[i - 2]), ";"}}, Applicability::Safe);
    return true;
  }
  return false;
}

/// `for (int i = 0; i < n; i++)`.
bool ForeignForm::loopHead() {
  size_t i = place.at;
  if (type(i) == Lexer::COMMA && i > 1 && isNameType(type(i - 1)) && type(i - 2) == Lexer::FOR &&
      place.context == SyntaxPlace::Statement) {
    if (auto found = error(Code::ForeignStatement, i,
                           "expected 'in' after '" + text(i - 1) + "': a loop has one index"))
      found->note("equations run over their indices by themselves; a block for all points is "
                  "'parallel i in M, j in N { ... }'");
    return true;
  }
  if (type(i) != Lexer::LPAREN || i == 0 || type(i - 1) != Lexer::FOR)
    return false;
  error(Code::ForeignStatement, i, "expected a name after 'for': loops are 'for t in 0:T { ... }'");
  return true;
}

/// `float* x`, `f32 x`, `x f32`; `fn f(v: f32)`.
bool ForeignForm::parameterOrder() {
  size_t i = place.at;
  if (place.context == SyntaxPlace::Head && type(place.start) == Lexer::FN &&
      type(i) == Lexer::COLON) {
    error(Code::ForeignStatement, i,
          "expected ')' or ',', found ':': parameters of a fn are values of any type");
    return true;
  }
  if (place.context != SyntaxPlace::Head || i == 0 || !isNameType(type(i - 1)) ||
      tokens[i].brackets == 0)
    return false;
  if ((type(i) == Lexer::COMMA || type(i) == Lexer::RPAREN || type(i) == Lexer::ASSIGN) &&
      type(place.start) == Lexer::KERNEL) {
    error(Code::SyntaxError, i - 1,
          "expected a type after '" + text(i - 1) + "': '" + text(i - 1) +
              ": f32[M, N]' is a tensor, '" + text(i - 1) + ": f32' a number, '" + text(i - 1) +
              ": int' a constant");
    return true;
  }
  if (type(i) != Lexer::STAR && !isNameType(type(i)))
    return false;
  error(Code::ForeignStatement, i - 1,
        "expected a parameter as 'x: f32[M, N]': name, ':', type, dims");
  return true;
}

/// `-> f32[N]`, `-> y: f32[N] {`.
bool ForeignForm::unnamedOutput() {
  size_t i = place.at;
  if (place.context != SyntaxPlace::Head || i == 0 || type(i - 1) != Lexer::ARROW ||
      !isNameType(type(i)))
    return false;
  size_t end = i;
  if (type(i + 1) == Lexer::LBRACKET)
    for (end = i + 1; end + 1 < tokens.size() && type(end) != Lexer::RBRACKET;)
      ++end;
  bool named = type(i + 1) == Lexer::COLON;
  // The name that the body returns, or one that the parameters leave free.
  std::string name = "y";
  for (size_t j = place.start; j < i; ++j)
    if (text(j) == name && type(j + 1) == Lexer::COLON)
      name = "out";
  for (size_t j = i; j < tokens.size() && text(j) != "kernel" && text(j) != "def"; ++j)
    if (text(j) == "return" && isNameType(type(j + 1)) && lastOnLine(j) == j + 1)
      name = text(j + 1).str();
  auto found = error(Code::SyntaxError, i, "expected '(': outputs have names, '-> (y: f32[M, N])'");
  if (found && named) {
    // All that stands before the block or the sizes.
    for (end = i; end + 1 < tokens.size() && type(end + 1) != Lexer::LBRACE &&
                  type(end + 1) != Lexer::WHERE;)
      ++end;
    bool onOneLine = llvm::none_of(tokens.slice(i, end + 1 - i),
                                   [](const Token &token) { return token.firstOnLine; });
    if (end + 1 < tokens.size() && onOneLine)
      found->fix("write parentheses",
                 {{reporter.span(tokens[i].begin, tokens[i].begin), "("},
                  {reporter.span(tokens[end].end, tokens[end].end), ")"}},
                 Applicability::Safe);
  }
  if (found && !named)
    found->fix("name it", {{reporter.span(tokens[i].begin, tokens[i].begin), "(" + name + ": "},
                           {reporter.span(tokens[end].end, tokens[end].end), ")"}});
  return true;
}

bool ForeignForm::report() {
  if (pythonBlock())
    return true;
  if (place.at >= tokens.size())
    return false;
  return lambda() || chainedSubscript() || slice() || member() || conditional() || equality() ||
         updateOperator() || matrixProduct() || tupleTarget() || scheduleSeparator() ||
         loopHead() || unnamedOutput() || parameterOrder() || declarationWord() || statementWord();
}

bool reportForeignForm(ArrayRef<Token> tokens, const SyntaxPlace &place, SyntaxReporter &reporter) {
  return ForeignForm(tokens, place, reporter).report();
}

} // namespace tegula
