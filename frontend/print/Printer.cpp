//===- Printer.cpp - The canonical form of a program -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/print/Printer.h"

#include "frontend/print/PrinterPieces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <climits>

using namespace llvm;

namespace tegula {

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

static unsigned displayWidth(StringRef text) {
  return static_cast<unsigned>(
      llvm::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

static void trimEnd(std::string &text) { text.resize(StringRef(text).rtrim(' ').size()); }

namespace {
/// Breaks the pieces of one statement into lines.
class LineBreaker {
public:
  LineBreaker(std::string &out, unsigned indent) : out(out), indent(indent) {}
  void startLine(unsigned depth, bool continued);
  void emit(ArrayRef<TextPiece> pieces);

private:
  static unsigned width(ArrayRef<TextPiece> pieces) {
    unsigned sum = 0;
    for (const TextPiece &piece : pieces)
      sum += displayWidth(piece.text) + (&piece != pieces.begin() && piece.blankBefore);
    return sum;
  }
  bool fits(ArrayRef<TextPiece> pieces, unsigned from) const {
    return from + width(pieces) <= lineWidth;
  }
  void append(ArrayRef<TextPiece> pieces);

  std::string &out;
  unsigned indent;
  SmallVector<unsigned> listColumns; // of the lists that are open, by depth
  unsigned column = 0;
  bool atStart = false;
};
} // namespace

void LineBreaker::startLine(unsigned depth, bool continued) {
  if (continued) {
    trimEnd(out);
    out += '\n';
  }
  column = indent;
  // Below the list's first element, if that leaves room to write.
  if (continued)
    column = depth < listColumns.size() && depth > 0 && listColumns[depth] <= lineWidth * 6 / 10
                 ? listColumns[depth]
                 : indent + 2 + 2 * std::min(depth, 8u);
  out.append(column, ' ');
  atStart = true;
}

void LineBreaker::append(ArrayRef<TextPiece> pieces) {
  for (const TextPiece &piece : pieces) {
    if (piece.blankBefore && !atStart) {
      out += ' ';
      ++column;
    }
    if (piece.opensList) {
      listColumns.resize(std::max<size_t>(listColumns.size(), piece.depth + 1));
      listColumns[piece.depth] = column;
    }
    out += piece.text;
    column += displayWidth(piece.text);
    atStart = false;
  }
}

void LineBreaker::emit(ArrayRef<TextPiece> pieces) {
  int best = INT_MAX;
  for (const TextPiece &piece : pieces.drop_front())
    if (piece.breakLevel >= 0)
      best = std::min(best, piece.breakLevel);
  bool blank = pieces[0].blankBefore && !atStart;
  if (best == INT_MAX || fits(pieces, column + blank)) {
    append(pieces);
    return;
  }
  // Parts between the best places to break: each goes on this line if it fits, else on a line of
  // its own, broken further if that is still too narrow.
  for (size_t begin = 0; begin != pieces.size();) {
    size_t end = begin + 1;
    while (end != pieces.size() && pieces[end].breakLevel != best)
      ++end;
    ArrayRef<TextPiece> part = pieces.slice(begin, end - begin);
    bool partBlank = part[0].blankBefore && !atStart;
    if (begin != 0 && !fits(part, column + partBlank))
      startLine(part[0].depth, /*continued=*/true);
    emit(part);
    begin = end;
  }
}

//===----------------------------------------------------------------------===//
// File
//===----------------------------------------------------------------------===//

namespace {
class FilePrinter {
public:
  FilePrinter(const ast::File &file, StringRef source) : file(file), source(source) {}
  std::string run();

private:
  void kernel(const ast::Kernel &kernel);
  void function(const ast::Fn &fn);
  void body(const std::vector<ast::StmtPtr> &body, uint32_t end, unsigned indent);
  void line(PieceBuilder builder, uint32_t end, unsigned indent);
  void closeBlock(uint32_t end, unsigned indent);

  /// Own-line comments that begin before `offset`, and a blank line where the source has one.
  void leading(uint32_t offset, unsigned indent);
  void trailingComment(uint32_t end);
  void comment(const ast::Comment &comment);
  bool blankLineBetween(uint32_t begin, uint32_t end) const;
  /// Where the next `word` ends that stands in no comment.
  uint32_t endOf(StringRef word, uint32_t from) const;
  bool hasComment(uint32_t before) const {
    return nextComment != file.comments.size() && file.comments[nextComment].span.begin < before;
  }

  const ast::File &file;
  StringRef source;
  std::string out;
  size_t nextComment = 0;
  uint32_t done = 0;       // source up to here is printed
  bool blockStarts = true; // nothing of the block is printed yet
};
} // namespace

bool FilePrinter::blankLineBetween(uint32_t begin, uint32_t end) const {
  unsigned newlines = 0;
  for (char c : source.slice(begin, end)) {
    newlines = c == '\n' ? newlines + 1 : isspace(static_cast<unsigned char>(c)) ? newlines : 0;
    if (newlines > 1)
      return true;
  }
  return false;
}

uint32_t FilePrinter::endOf(StringRef word, uint32_t from) const {
  for (;;) {
    size_t at = source.find(word, from);
    assert(at != StringRef::npos && "the tree comes from this source");
    auto inside = llvm::find_if(file.comments, [&](const ast::Comment &comment) {
      return comment.span.begin <= at && at < comment.span.end;
    });
    if (inside == file.comments.end())
      return static_cast<uint32_t>(at + word.size());
    from = inside->span.end;
  }
}

void FilePrinter::comment(const ast::Comment &comment) {
  out += source.slice(comment.span.begin, comment.span.end).rtrim();
  done = comment.span.end;
  ++nextComment;
}

void FilePrinter::leading(uint32_t offset, unsigned indent) {
  auto separate = [&](uint32_t before) {
    if (!blockStarts && blankLineBetween(done, before))
      out += '\n';
    blockStarts = false;
  };
  while (hasComment(offset)) {
    separate(file.comments[nextComment].span.begin);
    out.append(indent, ' ');
    comment(file.comments[nextComment]);
    out += '\n';
  }
  separate(offset);
}

/// A comment on the line that ends at `end`, if only `;` stands between.
void FilePrinter::trailingComment(uint32_t end) {
  done = std::max(done, end);
  if (nextComment == file.comments.size() || file.comments[nextComment].ownLine)
    return;
  const ast::Comment &next = file.comments[nextComment];
  StringRef between = source.slice(end, next.span.begin);
  if (next.span.begin < end || between.find_first_not_of(" \t;") != StringRef::npos)
    return;
  out += "  ";
  comment(next);
}

/// A statement or the head of a block; comments inside of it force line breaks.
void FilePrinter::line(PieceBuilder builder, uint32_t end, unsigned indent) {
  std::vector<TextPiece> pieces = builder.take();
  size_t start = out.size();
  LineBreaker breaker(out, indent);
  breaker.startLine(0, /*continued=*/false);
  size_t begin = 0;
  for (size_t i = 1; i <= pieces.size(); ++i) {
    if (i != pieces.size() && !hasComment(pieces[i].offset))
      continue;
    breaker.emit(ArrayRef(pieces).slice(begin, i - begin));
    begin = i;
    if (i == pieces.size())
      break;
    bool commented = false;
    while (hasComment(pieces[i].offset)) {
      if (file.comments[nextComment].ownLine || commented)
        breaker.startLine(pieces[i].depth, /*continued=*/true);
      else {
        trimEnd(out);
        out += "  ";
      }
      commented = true;
      comment(file.comments[nextComment]);
    }
    breaker.startLine(pieces[i].depth, /*continued=*/true);
  }
  // A head of several lines has its brace on a line of its own.
  if (pieces.back().text == "{" && StringRef(out).drop_front(start).contains('\n')) {
    out.erase(StringRef(out).rtrim(" {").size());
    out += '\n';
    out.append(indent, ' ');
    out += '{';
  }
  assert(!hasComment(end) && "the last piece of a statement stands at its end");
  trailingComment(end);
  out += '\n';
}

void FilePrinter::closeBlock(uint32_t end, unsigned indent) {
  while (hasComment(end)) {
    if (!blockStarts && blankLineBetween(done, file.comments[nextComment].span.begin))
      out += '\n';
    blockStarts = false;
    out.append(indent + 2, ' ');
    comment(file.comments[nextComment]);
    out += '\n';
  }
  out.append(indent, ' ');
  out += '}';
  trailingComment(end);
  out += '\n';
  blockStarts = false;
}

void FilePrinter::body(const std::vector<ast::StmtPtr> &body, uint32_t end, unsigned indent) {
  blockStarts = true;
  for (const ast::StmtPtr &stmt : body) {
    leading(stmt->span.begin, indent + 2);
    PieceBuilder builder;
    bool isBlock = stmt->kind == ast::Stmt::Parallel || stmt->kind == ast::Stmt::For ||
                   stmt->kind == ast::Stmt::ForTiles;
    if (!isBlock) {
      builder.statement(*stmt);
      line(std::move(builder), stmt->span.end, indent + 2);
      continue;
    }
    uint32_t headEnd =
        stmt->binders.empty() ? stmt->range->span.end : stmt->binders.back().range.span.end;
    uint32_t inside = endOf("{", headEnd);
    builder.head(*stmt, inside - 1);
    line(std::move(builder), inside, indent + 2);
    this->body(stmt->body, stmt->span.end, indent + 2);
  }
  closeBlock(end, indent);
}

void FilePrinter::kernel(const ast::Kernel &kernel) {
  PieceBuilder builder;
  uint32_t inside = endOf("{", kernel.headSpan.end);
  builder.head(kernel, inside - 1);
  line(std::move(builder), inside, 0);
  body(kernel.body, kernel.span.end, 0);
}

void FilePrinter::function(const ast::Fn &fn) {
  bool isBlock = fn.span.end > 0 && source[fn.span.end - 1] == '}';
  PieceBuilder builder;
  if (!isBlock) {
    builder.definition(fn);
    line(std::move(builder), fn.span.end, 0);
    return;
  }
  uint32_t inside = endOf("{", fn.name.span.end);
  builder.head(fn, inside - 1);
  line(std::move(builder), inside, 0);
  blockStarts = true;
  for (const auto &[name, value] : fn.lets) {
    leading(name.span.begin, 2);
    PieceBuilder let;
    let.let(name, *value);
    line(std::move(let), value->span.end, 2);
    inside = value->span.end;
  }
  StringRef keyword = "return";
  leading(endOf(keyword, inside) - keyword.size(), 2);
  PieceBuilder result;
  result.result(*fn.result);
  line(std::move(result), fn.result->span.end, 2);
  closeBlock(fn.span.end, 0);
}

std::string FilePrinter::run() {
  // In order of the text.
  struct Definition {
    uint32_t begin;
    const ast::Kernel *kernel;
    const ast::Fn *fn;
  };
  SmallVector<Definition> definitions;
  for (const auto &kernel : file.kernels)
    definitions.push_back({kernel->span.begin, kernel.get(), nullptr});
  for (const auto &fn : file.fns)
    definitions.push_back({fn->span.begin, nullptr, fn.get()});
  llvm::sort(definitions, [](const auto &a, const auto &b) { return a.begin < b.begin; });

  const Definition *previous = nullptr;
  for (const Definition &each : definitions) {
    // One blank line between definitions; short functions may stand together.
    bool together = previous && previous->fn && each.fn;
    uint32_t next = hasComment(each.begin) ? file.comments[nextComment].span.begin : each.begin;
    if (previous && !blankLineBetween(done, next) && !together)
      out += '\n';
    leading(each.begin, 0);
    if (each.kernel)
      kernel(*each.kernel);
    else
      function(*each.fn);
    previous = &each;
  }
  leading(static_cast<uint32_t>(source.size()), 0);
  while (StringRef(out).ends_with("\n\n"))
    out.pop_back();
  return std::move(out);
}

std::string print(const ast::File &file, StringRef source) {
  return FilePrinter(file, source).run();
}

std::string print(const ast::Expr &expr) {
  PieceBuilder builder;
  builder.expr(expr);
  std::string text;
  for (const TextPiece &piece : builder.take()) {
    if (piece.blankBefore)
      text += ' ';
    text += piece.text;
  }
  return text;
}

} // namespace tegula
