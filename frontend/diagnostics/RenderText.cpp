//===- RenderText.cpp - Diagnostics as text with source and caret ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Source lines are shown as a terminal can show them: tabs widened, control characters and bytes
// that are no UTF-8 replaced, long lines cut to a window around the span. The caret line counts
// display columns, so wide characters keep it in place.
//
//===----------------------------------------------------------------------===//
#include "frontend/diagnostics/Diagnostics.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Unicode.h"
#include <algorithm>

using namespace llvm;

namespace tegula {

namespace {
constexpr unsigned tabWidth = 4;
constexpr unsigned windowWidth = 110;

/// One character of a source line as it is shown.
struct Cell {
  std::string text;
  unsigned width;
  uint32_t offset; // of its first byte, from the line's start
};
} // namespace

static unsigned sequenceLength(unsigned char first) {
  if (first < 0x80)
    return 1;
  if (first >= 0xC2 && first < 0xE0)
    return 2;
  if (first >= 0xE0 && first < 0xF0)
    return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 1;
}

static SmallVector<Cell, 0> toCells(StringRef line) {
  SmallVector<Cell, 0> cells;
  unsigned column = 0;
  for (uint32_t at = 0; at < line.size();) {
    unsigned length = std::min<size_t>(sequenceLength(line[at]), line.size() - at);
    StringRef bytes = line.substr(at, length);
    Cell cell{bytes.str(), 1, at};
    int width = sys::unicode::columnWidthUTF8(bytes);
    if (line[at] == '\t')
      cell = {"", tabWidth - column % tabWidth, at};
    else if (width == sys::unicode::ErrorInvalidUTF8) {
      cell = {"?", 1, at};
      length = 1;
    } else if (width == sys::unicode::ErrorNonPrintableCharacter)
      cell.text = "?";
    else
      cell.width = static_cast<unsigned>(width);
    if (cell.text.empty())
      cell.text.assign(cell.width, ' ');
    column += cell.width;
    at += length;
    cells.push_back(std::move(cell));
  }
  return cells;
}

/// The line around [begin, end) (offsets in it), and below it `^~~~`.
static void printSnippet(raw_ostream &os, StringRef line, unsigned lineNumber, uint32_t begin,
                         uint32_t end, bool color) {
  // A line may be a megabyte long: only what can be shown is looked at.
  uint32_t cut = begin > 4 * windowWidth ? begin - 4 * windowWidth : 0;
  while (cut < begin && (static_cast<unsigned char>(line[cut]) & 0xC0) == 0x80)
    ++cut;
  StringRef part = line.substr(cut, 8 * windowWidth);
  SmallVector<Cell, 0> cells = toCells(part);
  begin -= cut;
  end = std::max(begin + 1, end - cut);

  unsigned caretColumn = 0, total = 0;
  for (const Cell &cell : cells) {
    caretColumn += cell.offset < begin ? cell.width : 0;
    total += cell.width;
  }
  unsigned from = 0, to = total;
  if (total > windowWidth) {
    from = caretColumn > windowWidth / 2 ? caretColumn - windowWidth / 2 : 0;
    to = from + windowWidth;
  }
  bool cutLeft = cut != 0 || from != 0;
  bool cutRight = to < total || cut + part.size() < line.size();

  std::string shown = cutLeft ? "..." : "", marks = cutLeft ? "   " : "";
  unsigned column = 0;
  bool first = true;
  for (const Cell &cell : cells) {
    if (column >= from && column + cell.width <= to) {
      shown += cell.text;
      bool marked = cell.offset >= begin && cell.offset < end;
      for (unsigned i = 0; i != cell.width; ++i) {
        marks += marked ? (first ? '^' : '~') : ' ';
        first &= !marked;
      }
    }
    column += cell.width;
  }
  if (first) // at the end of the line
    marks += '^';
  if (cutRight)
    shown += "...";
  os << formatv("{0,5} | ", lineNumber) << StringRef(shown).rtrim() << "\n      | ";
  if (color)
    os.changeColor(raw_ostream::GREEN, /*Bold=*/true);
  os << StringRef(marks).rtrim();
  if (color)
    os.resetColor();
  os << '\n';
}

static void printPlace(raw_ostream &os, const SourceManager &sources, Span span, bool color) {
  auto [line, column] = sources.lineAndColumn(span.file, span.begin);
  StringRef text = sources.lineText(span.file, span.begin);
  uint32_t begin = span.begin - (text.data() - sources.text(span.file).data());
  uint32_t length =
      std::min<uint32_t>(span.end - span.begin, text.size() > begin ? text.size() - begin : 0);
  printSnippet(os, text, line, begin, begin + length, color);
}

/// The lines that a fix changes, as they become.
static void printFix(raw_ostream &os, const SourceManager &sources, const Fix &fix) {
  os << "  fix: " << fix.message << '\n';
  std::vector<Edit> edits = fix.edits;
  if (edits.empty() ||
      llvm::any_of(edits, [&](const Edit &edit) { return edit.span.file != edits[0].span.file; }))
    return;
  uint32_t file = edits[0].span.file;
  llvm::stable_sort(edits, [](const Edit &a, const Edit &b) {
    return std::pair(a.span.begin, a.span.end) < std::pair(b.span.begin, b.span.end);
  });
  StringRef text = sources.text(file);
  auto lineOf = [&](uint32_t offset) { return sources.lineAndColumn(file, offset).first; };
  std::string shown;
  raw_string_ostream stream(shown);
  int moved = 0; // lines that edits before have added
  for (size_t first = 0; first != edits.size();) {
    // Edits in lines side by side are shown together.
    size_t last = first + 1;
    uint32_t end = edits[first].span.end;
    while (last != edits.size() && lineOf(edits[last].span.begin) <= lineOf(end) + 1)
      end = std::max(end, edits[last++].span.end);
    uint32_t from = sources.lineText(file, edits[first].span.begin).data() - text.data();
    StringRef lastLine = sources.lineText(file, end);
    uint32_t to = lastLine.data() + lastLine.size() - text.data();
    std::string changed;
    for (size_t i = first; i != last; ++i) {
      changed += text.slice(from, edits[i].span.begin);
      changed += edits[i].text;
      from = edits[i].span.end;
    }
    changed += text.slice(from, to);
    unsigned line = lineOf(edits[first].span.begin);
    SmallVector<StringRef> lines;
    StringRef(changed).split(lines, '\n');
    for (auto [i, each] : enumerate(lines)) {
      stream << formatv("{0,5} + ", line + moved + i);
      for (const Cell &cell : toCells(each.rtrim()))
        stream << cell.text;
      stream << '\n';
    }
    moved += int(lines.size()) - int(lineOf(end) - line + 1);
    first = last;
  }
  constexpr size_t longest = 1500;
  if (shown.size() <= longest)
    os << shown; // else the message alone says it
}

void Diagnostics::printText(raw_ostream &os, bool color) const {
  auto heading = [&](raw_ostream::Colors hue, const Twine &word) {
    if (color)
      os.changeColor(hue, /*Bold=*/true);
    os << word;
    if (color)
      os.resetColor();
  };
  auto place = [&](Span span) {
    auto [line, column] = sources.lineAndColumn(span.file, span.begin);
    os << sources.name(span.file) << ':' << line << ':' << column << ": ";
  };
  for (const Diagnostic &diagnostic : records) {
    if (diagnostic.span.isValid())
      place(diagnostic.span);
    StringRef code = codeInfo(diagnostic.code).code;
    switch (diagnostic.severity) {
    case Severity::Error:
      heading(raw_ostream::RED, "error[" + code + "]");
      break;
    case Severity::Warning:
      heading(raw_ostream::MAGENTA, "warning[" + code + "]");
      break;
    case Severity::Remark:
      heading(raw_ostream::CYAN, "remark[" + code + "]");
      break;
    }
    os << ": " << diagnostic.message << '\n';
    if (diagnostic.span.isValid())
      printPlace(os, sources, diagnostic.span, color);
    for (const Note &note : diagnostic.notes) {
      os << "  ";
      if (note.span.isValid())
        place(note.span);
      os << "note: " << note.message << '\n';
      if (note.span.isValid())
        printPlace(os, sources, note.span, color);
    }
    for (const Fix &fix : diagnostic.fixes)
      printFix(os, sources, fix);
  }
}

} // namespace tegula
