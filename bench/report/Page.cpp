//===- Page.cpp - One self-contained page of HTML --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/report/Page.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tegula::report {

static constexpr StringRef style = R"css(
body { font: 15px/1.45 sans-serif; max-width: 110em; margin: 2em auto; padding: 0 1em; color: #222; }
pre, .code, td.n { font-family: monospace; font-size: 13px; }
pre, .code { background: #f7f7f5; padding: .6em; overflow-x: auto; white-space: pre; line-height: 1.35; }
.code > span { display: block; }
.code .no { display: inline-block; width: 4em; color: #999; text-align: right; padding-right: 1em; }
.code a { color: #999; text-decoration: none; }
.code span.on, .code span:target { background: #ffe9a8; }
.add { background: #dff5df; } .del { background: #fbe3e3; color: #777; }
.hunk { color: #57a; }
.warning { background: #fbe3e3; border-left: 4px solid #c33; padding: .5em 1em; }
table { border-collapse: collapse; } td, th { border: 1px solid #ccc; padding: .2em .6em; text-align: right; }
td:first-child, th:first-child { text-align: left; }
summary { cursor: pointer; font-weight: bold; margin: .4em 0; }
nav a { margin-right: 1.2em; }
)css";

/// Whoever points at a line of the program or at what became of it sees both.
static constexpr StringRef script = R"js(
document.addEventListener('mouseover', event => {
  const at = event.target.closest('[data-line]');
  document.querySelectorAll('.on').forEach(each => each.classList.remove('on'));
  if (at) document.querySelectorAll('[data-line="' + at.dataset.line + '"]').forEach(each => each.classList.add('on'));
});
)js";

std::string escape(StringRef text) {
  std::string result;
  for (char letter : text)
    switch (letter) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += letter;
    }
  return result;
}

Page::Page(StringRef title) : title(escape(title)) {}

void Page::section(StringRef id, StringRef name) {
  contents += ("<a href=\"#" + id + "\">" + escape(name) + "</a>\n").str();
  os << "<h2 id=\"" << id << "\">" << escape(name) << "</h2>\n";
}

void Page::paragraph(StringRef text) { os << "<p>" << escape(text) << "</p>\n"; }

void Page::warning(StringRef text) { os << "<p class=\"warning\">" << escape(text) << "</p>\n"; }

void Page::text(StringRef preformatted) { os << "<pre>" << escape(preformatted) << "</pre>\n"; }

void Page::source(StringRef text) {
  SmallVector<StringRef> lines;
  text.rtrim('\n').split(lines, '\n');
  os << "<div class=\"code\">";
  for (auto [index, line] : enumerate(lines))
    os << "<span id=\"L" << index + 1 << "\" data-line=\"" << index + 1 << "\"><span class=\"no\">"
       << index + 1 << "</span>" << escape(line) << "</span>";
  os << "</div>\n";
}

void Page::beginDifference(StringRef name, ArrayRef<DiffLine> lines) {
  size_t added = count_if(lines, [](const DiffLine &line) { return line.kind == DiffLine::Added; });
  size_t removed =
      count_if(lines, [](const DiffLine &line) { return line.kind == DiffLine::Removed; });
  os << "<details><summary>" << escape(name) << ": ";
  if (added || removed)
    os << added << " lines added, " << removed << " removed";
  else
    os << "as before";
  os << "</summary><div class=\"code\">";
}

void Page::diffLine(const DiffLine &line) {
  os << (line.kind == DiffLine::Added     ? "<span class=\"add\">+ "
         : line.kind == DiffLine::Removed ? "<span class=\"del\">- "
                                          : "<span>  ")
     << escape(line.text) << "</span>";
}

void Page::difference(StringRef name, ArrayRef<DiffLine> lines) {
  beginDifference(name, lines);
  for (const DiffLine &line : lines)
    diffLine(line);
  os << "</div></details>\n";
}

void Page::unifiedDifference(StringRef name, ArrayRef<DiffLine> lines) {
  beginDifference(name, lines);
  for (const Hunk &hunk : hunksOf(lines)) {
    auto range = [&](size_t first, DiffLine::Kind other) {
      size_t number =
          count_if(hunk.lines, [&](const DiffLine &line) { return line.kind != other; });
      return std::to_string(first) + "," + std::to_string(number);
    };
    os << "<span class=\"hunk\">@@ -" << range(hunk.before, DiffLine::Added) << " +"
       << range(hunk.after, DiffLine::Removed) << " @@</span>";
    for (const DiffLine &line : hunk.lines)
      diffLine(line);
  }
  os << "</div></details>\n";
}

void Page::code(StringRef name, ArrayRef<CodeLine> lines, StringRef program, bool open) {
  os << "<details" << (open ? " open" : "") << "><summary>" << escape(name)
     << "</summary><div class=\"code\">";
  for (const CodeLine &line : lines) {
    if (!line.line || (line.file != program && !StringRef(line.file).ends_with(".tgl")))
      os << "<span><span class=\"no\"></span>";
    else if (line.file == program)
      os << "<span data-line=\"" << line.line << "\"><a class=\"no\" href=\"#L" << line.line
         << "\">" << line.line << "</a>";
    else // of the library
      os << "<span title=\"" << escape(line.file) << ":" << line.line
         << "\"><span class=\"no\">lib</span>";
    os << escape(line.text) << "</span>";
  }
  os << "</div></details>\n";
}

void Page::table(ArrayRef<std::string> head, ArrayRef<std::vector<std::string>> rows) {
  os << "<table><tr>";
  for (const std::string &cell : head)
    os << "<th>" << escape(cell) << "</th>";
  os << "</tr>\n";
  for (const std::vector<std::string> &row : rows) {
    os << "<tr>";
    for (const std::string &cell : row)
      os << "<td>" << escape(cell) << "</td>";
    os << "</tr>\n";
  }
  os << "</table>\n";
}

std::string Page::finish() {
  return ("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + title +
          "</title>\n<style>" + style + "</style></head><body>\n<h1>" + title + "</h1>\n<nav>" +
          contents + "</nav>\n" + body + "<script>" + script + "</script>\n</body></html>\n")
      .str();
}

} // namespace tegula::report
