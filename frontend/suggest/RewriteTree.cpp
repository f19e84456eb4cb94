//===- RewriteTree.cpp - Statements as other languages write them ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/suggest/RewriteTree.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tegula::rewrite {

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

static size_t numberLength(StringRef text) {
  size_t at = 0;
  auto digits = [&] {
    while (at < text.size() && isDigit(text[at]))
      ++at;
  };
  digits();
  if (at < text.size() && text[at] == '.' && !text.substr(at).starts_with("..")) {
    ++at;
    digits();
  }
  if (at < text.size() && toLower(text[at]) == 'e') {
    size_t mark = at++;
    if (at < text.size() && (text[at] == '+' || text[at] == '-'))
      ++at;
    if (at == text.size() || !isDigit(text[at]))
      at = mark;
    else
      digits();
  }
  return at;
}

std::vector<Token> lex(StringRef file, uint32_t begin, uint32_t end) {
  static const StringRef operators[] = {
      "...", "===", "**=", "//=", "&&", "||", ":=", "->", "==", "!=", "<=",
      ">=",  "+=",  "-=",  "*=",  "/=", "%=", "**", "//", "<<", ">>"};
  std::vector<Token> tokens;
  bool firstOnLine = true;
  unsigned braces = 0;
  std::vector<unsigned> brackets{0};
  for (uint32_t at = begin; at < end;) {
    StringRef rest = file.slice(at, end);
    char c = rest[0];
    if (c == '\n') {
      firstOnLine = true;
      ++at;
      continue;
    }
    if (isSpace(c)) {
      ++at;
      continue;
    }
    if (c == '#') {
      at += static_cast<uint32_t>(std::min(rest.find('\n'), rest.size()));
      continue;
    }
    size_t length = 1;
    Token::Kind kind = Token::Op;
    if (isAlpha(c) || c == '_') {
      kind = Token::Name;
      length = rest.find_if_not([](char d) { return isAlnum(d) || d == '_'; });
    } else if (isDigit(c) || (c == '.' && rest.size() > 1 && isDigit(rest[1]))) {
      kind = Token::Number;
      length = numberLength(rest);
    } else if (c == '"' || c == '\'') {
      kind = Token::String;
      length = rest.find_first_of(c == '"' ? "\"\n" : "'\n", 1);
      length = length == StringRef::npos ? length : length + 1;
    } else {
      for (StringRef op : operators)
        if (rest.starts_with(op)) {
          length = op.size();
          break;
        }
    }
    length = std::min(length, rest.size());
    if (c == '}' && braces) {
      --braces;
      if (brackets.size() > 1)
        brackets.pop_back();
    } else if ((c == ')' || c == ']') && brackets.back()) {
      --brackets.back();
    }
    tokens.push_back(
        {kind, at, at + static_cast<uint32_t>(length), firstOnLine, braces, brackets.back()});
    if (c == '{') {
      ++braces;
      brackets.push_back(0);
    } else if (c == '(' || c == '[') {
      ++brackets.back();
    }
    firstOnLine = false;
    at += static_cast<uint32_t>(length);
  }
  return tokens;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

namespace {
class Reader {
public:
  Reader(StringRef file, ArrayRef<Token> tokens) : file(file), tokens(tokens) {}

  NodePtr all() {
    NodePtr result = tuple();
    return at == tokens.size() ? std::move(result) : nullptr;
  }
  std::vector<NodePtr> targets() {
    std::vector<NodePtr> result;
    do {
      NodePtr one = postfix();
      if (!one)
        return {};
      result.push_back(std::move(one));
    } while (take(","));
    return at == tokens.size() ? std::move(result) : std::vector<NodePtr>();
  }

private:
  static constexpr unsigned deepest = 200;

  StringRef peek() const {
    return at < tokens.size() ? file.slice(tokens[at].begin, tokens[at].end) : StringRef();
  }
  bool take(StringRef text) {
    if (peek() != text || tokens[at].kind == Token::String)
      return false;
    ++at;
    return true;
  }
  bool isName() const {
    static const StringRef words[] = {"for", "in", "if", "else", "and", "or", "not", "lambda"};
    return at < tokens.size() && tokens[at].kind == Token::Name && !is_contained(words, peek());
  }
  static NodePtr make(Node::Kind kind, StringRef text = "") {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->text = text.str();
    return node;
  }
  static NodePtr binary(StringRef op, NodePtr a, NodePtr b) {
    if (!a || !b)
      return nullptr;
    NodePtr node = make(Node::Binary, op);
    node->parts.push_back(std::move(a));
    node->parts.push_back(std::move(b));
    return node;
  }

  NodePtr tuple() {
    NodePtr first = expression();
    if (!first || peek() != ",")
      return first;
    NodePtr result = make(Node::Sequence);
    result->parts.push_back(std::move(first));
    while (take(",")) {
      if (at == tokens.size())
        break;
      result->parts.push_back(expression());
      if (!result->parts.back())
        return nullptr;
    }
    return result;
  }

  NodePtr expression() {
    if (++depth > deepest)
      return nullptr;
    NodePtr value = disjunction();
    if (value && take("if")) { // a if c else b
      NodePtr condition = disjunction();
      if (!condition || !take("else"))
        return nullptr;
      value = ternary(std::move(condition), std::move(value), expression());
    } else if (value && take("?")) { // c ? a : b
      NodePtr yes = expression();
      if (!yes || !take(":"))
        return nullptr;
      value = ternary(std::move(value), std::move(yes), expression());
    }
    --depth;
    return value;
  }
  static NodePtr ternary(NodePtr condition, NodePtr yes, NodePtr no) {
    if (!condition || !yes || !no)
      return nullptr;
    NodePtr node = make(Node::Ternary);
    node->parts.push_back(std::move(condition));
    node->parts.push_back(std::move(yes));
    node->parts.push_back(std::move(no));
    return node;
  }

  NodePtr disjunction() {
    NodePtr value = conjunction();
    while (value && (take("or") || take("||")))
      value = binary("or", std::move(value), conjunction());
    return value;
  }
  NodePtr conjunction() {
    NodePtr value = inversion();
    while (value && (take("and") || take("&&")))
      value = binary("and", std::move(value), inversion());
    return value;
  }
  NodePtr inversion() {
    if (take("not") || take("!")) {
      NodePtr operand = ++depth > deepest ? nullptr : inversion();
      if (!operand)
        return nullptr;
      --depth;
      NodePtr node = make(Node::Unary, "not");
      node->parts.push_back(std::move(operand));
      return node;
    }
    return comparison();
  }
  NodePtr comparison() {
    NodePtr value = bits();
    while (value) {
      StringRef op = peek();
      if (op != "<" && op != "<=" && op != ">" && op != ">=" && op != "==" && op != "!=")
        break;
      ++at;
      value = binary(op, std::move(value), bits());
    }
    return value;
  }
  NodePtr bits() {
    return chainOf({"|"}, [&] { return bitXor(); });
  }
  NodePtr bitXor() {
    return chainOf({"^"}, [&] { return bitAnd(); });
  }
  NodePtr bitAnd() {
    return chainOf({"&"}, [&] { return shift(); });
  }
  NodePtr shift() {
    return chainOf({"<<", ">>"}, [&] { return sum(); });
  }
  /// `a op b op c` of operators that bind alike, from the left.
  NodePtr chainOf(ArrayRef<StringRef> ops, function_ref<NodePtr()> operand) {
    NodePtr value = operand();
    while (value && is_contained(ops, peek())) {
      StringRef op = peek();
      ++at;
      value = binary(op, std::move(value), operand());
    }
    return value;
  }
  NodePtr sum() {
    NodePtr value = product();
    while (value && (peek() == "+" || peek() == "-")) {
      StringRef op = peek();
      ++at;
      value = binary(op, std::move(value), product());
    }
    return value;
  }
  NodePtr product() {
    NodePtr value = factor();
    while (value) {
      StringRef op = peek();
      if (op != "*" && op != "/" && op != "//" && op != "%" && op != "@")
        break;
      ++at;
      value = binary(op, std::move(value), factor());
    }
    return value;
  }
  NodePtr factor() {
    StringRef op = peek();
    if (op == "-" || op == "+" || op == "~") {
      ++at;
      NodePtr operand = ++depth > deepest ? nullptr : factor();
      if (!operand)
        return nullptr;
      --depth;
      NodePtr node = make(Node::Unary, op);
      node->parts.push_back(std::move(operand));
      return node;
    }
    NodePtr base = postfix();
    if (base && peek() == "**") {
      ++at;
      if (++depth > deepest)
        return nullptr;
      base = binary("**", std::move(base), factor());
      --depth;
    }
    return base;
  }

  NodePtr postfix() {
    NodePtr value = atom();
    while (value) {
      if (take(".")) {
        if (at == tokens.size() || tokens[at].kind != Token::Name)
          return nullptr;
        NodePtr member = make(Node::Member, peek());
        ++at;
        member->parts.push_back(std::move(value));
        value = std::move(member);
      } else if (peek() == "(" && (value->kind == Node::Name || value->kind == Node::Member ||
                                   value->kind == Node::Subscript)) {
        value = call(std::move(value));
      } else if (take("[")) {
        value = subscript(std::move(value));
      } else {
        break;
      }
    }
    return value;
  }

  NodePtr atom() {
    if (at == tokens.size())
      return nullptr;
    if (tokens[at].kind == Token::Number) {
      NodePtr node = make(Node::Number, peek());
      ++at;
      return node;
    }
    if (tokens[at].kind == Token::String) {
      NodePtr node = make(Node::String, peek().size() > 1 ? peek().drop_front().drop_back() : "");
      ++at;
      return node;
    }
    if (isName()) {
      NodePtr node = make(Node::Name, peek());
      ++at;
      return node;
    }
    if (take("..."))
      return make(Node::Ellipsis);
    if (peek() != "(" && peek() != "[")
      return nullptr;
    bool round = peek() == "(";
    StringRef close = round ? ")" : "]";
    ++at;
    if (take(close))
      return make(Node::Sequence);
    NodePtr first = expression();
    if (!first)
      return nullptr;
    if (peek() == "for") {
      NodePtr node = make(Node::Comprehension);
      node->parts.push_back(std::move(first));
      return items(*node) && take(close) ? std::move(node) : nullptr;
    }
    if (round && take(close)) {
      first->parenthesized = true;
      return first;
    }
    NodePtr node = make(Node::Sequence);
    node->parts.push_back(std::move(first));
    while (!take(close)) {
      if (!take(","))
        return nullptr;
      if (take(close))
        break;
      node->parts.push_back(expression());
      if (!node->parts.back())
        return nullptr;
    }
    return node;
  }

  /// `for k in lo:hi if c, l`, also as Python writes it.
  bool items(Node &node) {
    while (take("for") || (!node.items.empty() && peek() == "," && nextIsItem() && take(","))) {
      do {
        if (!isName())
          return false;
        Item item;
        item.index = peek().str();
        ++at;
        if (take("in")) {
          NodePtr range = disjunction();
          if (!range)
            return false;
          if (take(":")) {
            item.lo = std::move(range);
            item.hi = disjunction();
          } else if (range->kind == Node::Call && range->parts[0]->text == "range" &&
                     range->parts.size() > 1 && range->parts.size() < 4) {
            if (range->parts.size() == 3 &&
                !(range->parts[1]->kind == Node::Number && range->parts[1]->text == "0"))
              item.lo = std::move(range->parts[1]);
            item.hi = std::move(range->parts.back());
          } else {
            item.hi = std::move(range);
          }
          if (!item.hi)
            return false;
        }
        if (take("if")) {
          item.filter = disjunction();
          if (!item.filter)
            return false;
        }
        node.items.push_back(std::move(item));
      } while (nextIsItem() && take(","));
    }
    return true;
  }
  /// `, l` and not `, unbiased=true`.
  bool nextIsItem() const {
    auto text = [&](size_t i) {
      return i < tokens.size() ? file.slice(tokens[i].begin, tokens[i].end) : StringRef();
    };
    return text(at) == "," && at + 1 < tokens.size() && tokens[at + 1].kind == Token::Name &&
           text(at + 2) != "=";
  }

  /// `name=`, before a value.
  bool isKeyword() const {
    return isName() && at + 1 < tokens.size() &&
           file.slice(tokens[at + 1].begin, tokens[at + 1].end) == "=";
  }
  bool keyword(Node &node) {
    std::string name = peek().str();
    at += 2;
    NodePtr value = expression();
    if (!value)
      return false;
    node.keywords.emplace_back(std::move(name), std::move(value));
    return true;
  }

  NodePtr call(NodePtr callee) {
    ++at;
    NodePtr node = make(Node::Call);
    node->parts.push_back(std::move(callee));
    while (!take(")")) {
      if (node->parts.size() + node->keywords.size() > 1 && !take(","))
        return nullptr;
      if (take(")"))
        break;
      if (isKeyword()) {
        if (!keyword(*node))
          return nullptr;
        continue;
      }
      NodePtr argument = expression();
      if (!argument || !node->keywords.empty())
        return nullptr; // whose place is it?
      node->parts.push_back(std::move(argument));
      if (peek() == "for" && (node->parts.size() != 2 || !items(*node)))
        return nullptr;
    }
    return node;
  }

  NodePtr subscript(NodePtr what) {
    NodePtr node = make(Node::Subscript);
    node->parts.push_back(std::move(what));
    while (!take("]")) {
      if (node->parts.size() + node->keywords.size() > 1 && !take(","))
        return nullptr;
      if (take("]"))
        break;
      if (isKeyword()) {
        if (!keyword(*node))
          return nullptr;
        continue;
      }
      NodePtr lo = peek() == ":" ? nullptr : expression();
      if (lo && take("in")) {
        size_t begin = at;
        if (!expression() || (take(":") && !expression()))
          return nullptr;
        lo->range = file.slice(tokens[begin].begin, tokens[at - 1].end).str();
      }
      if (take(":")) {
        NodePtr slice = make(Node::Slice);
        NodePtr hi = peek() == "]" || peek() == "," ? nullptr : expression();
        slice->parts.push_back(std::move(lo));
        slice->parts.push_back(std::move(hi));
        node->parts.push_back(std::move(slice));
        continue;
      }
      if (!lo)
        return nullptr;
      node->parts.push_back(std::move(lo));
    }
    return node;
  }

  StringRef file;
  ArrayRef<Token> tokens;
  size_t at = 0;
  unsigned depth = 0;
};
} // namespace

NodePtr parseExpression(StringRef file, ArrayRef<Token> tokens) {
  return tokens.empty() ? nullptr : Reader(file, tokens).all();
}

std::vector<NodePtr> parseTargets(StringRef file, ArrayRef<Token> tokens) {
  return tokens.empty() ? std::vector<NodePtr>() : Reader(file, tokens).targets();
}

} // namespace tegula::rewrite
