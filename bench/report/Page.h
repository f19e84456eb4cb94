//===- Page.h - One self-contained page of HTML *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REPORT_PAGE_H
#define TEGULA_BENCH_REPORT_PAGE_H

#include "bench/report/Disassembly.h"
#include "bench/report/LineDiff.h"
#include "llvm/Support/raw_ostream.h"

namespace tegula::report {

/// Text as HTML.
std::string escape(llvm::StringRef text);

/// Written from top to bottom; nothing in it refers to another file or host.
class Page {
public:
  explicit Page(llvm::StringRef title);

  /// Begins a section, which the table of contents links to.
  void section(llvm::StringRef id, llvm::StringRef title);
  void paragraph(llvm::StringRef text);
  /// A paragraph that stands out: something is wrong.
  void warning(llvm::StringRef text);
  void text(llvm::StringRef preformatted);
  /// The program, whose lines the code of other sections links to.
  void source(llvm::StringRef text);
  /// All lines, folded up under the title.
  void difference(llvm::StringRef title, llvm::ArrayRef<DiffLine> lines);
  /// The lines that differ and those around them as a unified diff, folded up under the title.
  void unifiedDifference(llvm::StringRef title, llvm::ArrayRef<DiffLine> lines);
  /// Code with links to lines of `program`, and marks for those of other `.tgl` files; folded up
  /// unless `open`.
  void code(llvm::StringRef title, llvm::ArrayRef<CodeLine> lines, llvm::StringRef program,
            bool open);
  void table(llvm::ArrayRef<std::string> head, llvm::ArrayRef<std::vector<std::string>> rows);

  std::string finish();

private:
  void beginDifference(llvm::StringRef title, llvm::ArrayRef<DiffLine> lines);
  void diffLine(const DiffLine &line);

  std::string title, contents, body;
  llvm::raw_string_ostream os{body};
};

} // namespace tegula::report

#endif // TEGULA_BENCH_REPORT_PAGE_H
