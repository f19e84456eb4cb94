//===- SyntaxTest.cpp - Parser, printer and diagnostics ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/OpenModule.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "frontend/diagnostics/FixUntilStable.h"
#include "frontend/diagnostics/Inventions.h"
#include "frontend/parse/Parser.h"
#include "frontend/print/Printer.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <ctime>
#include <map>
#include <set>

using namespace llvm;
using namespace tegula;

namespace {

/// A text with its tree and what was reported.
struct Parsed {
  explicit Parsed(std::string text) : file(sources.add("test.tgl", std::move(text))) {
    tree = parse(sources, file, diagnostics);
  }
  std::string dumped() const {
    std::string result;
    raw_string_ostream os(result);
    dump(*tree, os);
    return result;
  }
  std::string rendered() const {
    std::string result;
    raw_string_ostream os(result);
    diagnostics.printText(os, /*color=*/false);
    return result;
  }
  std::string printed() const { return print(*tree, sources.text(file)); }
  std::vector<std::string> codes() const {
    std::vector<std::string> result;
    for (const Diagnostic &each : diagnostics.all())
      result.push_back(codeInfo(each.code).code.str());
    return result;
  }

  SourceManager sources;
  Diagnostics diagnostics{sources};
  uint32_t file;
  std::unique_ptr<ast::File> tree;
};

std::string inKernel(StringRef statements) {
  return "kernel k(x: f32[M, N], v: f32[N]) -> (y: f32[M, N]) {\n" + statements.str() + "\n}\n";
}

/// The dump of the only statement of a kernel.
std::string statement(StringRef text) {
  Parsed parsed(inKernel(text));
  EXPECT_FALSE(parsed.diagnostics.hasErrors()) << parsed.rendered();
  std::string dumped = parsed.dumped();
  size_t begin = dumped.rfind("\n  (") + 3;
  return dumped.substr(begin, dumped.size() - begin - 2);
}

std::string repeat(StringRef text, unsigned count) {
  std::string result;
  for (unsigned i = 0; i != count; ++i)
    result += text;
  return result;
}

//===----------------------------------------------------------------------===//
// Grammar
//===----------------------------------------------------------------------===//

TEST(Parser, Precedence) {
  EXPECT_EQ(statement("s = -a ** b ** c"), "(assign (target s) (neg (** a (** b c))))");
  EXPECT_EQ(statement("s = a - b + c * d // e % f"),
            "(assign (target s) (+ (- a b) (% (// (* c d) e) f)))");
  EXPECT_EQ(statement("s = not a < b and c or d"),
            "(assign (target s) (or (and (not (compare a < b)) c) d))");
  EXPECT_EQ(statement("s = 0 <= i < n != m"), "(assign (target s) (compare 0 <= i < n != m))");
  EXPECT_EQ(statement("s = 2 ** -a * b"), "(assign (target s) (* (** 2 (neg a)) b))");
}

TEST(Parser, Targets) {
  EXPECT_EQ(statement("h: bf16[i, j] = v[j]"), "(assign (target h :bf16 [ i j]) (read v j))");
  EXPECT_EQ(statement("h: [N, O] = linear(x, w)"),
            "(assign (target h : [ N O]) (call linear x w))");
  EXPECT_EQ(statement("a, b = k(x)"), "(assign (target a) (target b) (call k x))");
  EXPECT_EQ(statement("y[ids[i], d] += v[d]"),
            "(assign += (target y [ (read ids i) d]) (read v d))");
  EXPECT_EQ(statement("y[b, P + d] = x[b, d] for d in P, e"),
            "(assign (target y [ b (+ P d)]) (read x b d) (for d (in P)) (for e))");
  EXPECT_EQ(
      statement("y[i in M, (g in G, e)] = v[(2, g, e), fill=-1]"),
      "(assign (target y [ i (in M) (group g (in G) e)]) (read v (group 2 g e) fill= (neg 1)))");
  EXPECT_EQ(statement("y[..., (p + 1)] = x[..., (p + 1)/2]"),
            "(assign (target y [ ... (+ p 1)]) (read x ... (/ (+ p 1) 2)))");
}

TEST(Parser, Reductions) {
  EXPECT_EQ(statement("s = var(x[i, j] for i in 0:j+1, j in N if j > 2, unbiased=true)"),
            "(assign (target s) (call var (read x i j) (for i (in 0 (+ j 1)))"
            " (for j (in N) (if (compare j > 2))) unbiased= true))");
  EXPECT_EQ(statement("s = sum(x[..., j] for ..., j)"),
            "(assign (target s) (call sum (read x ... j) ... (for j)))");
  EXPECT_EQ(statement("y[i, j] = softmax(x[i, j], over=(i, j))"),
            "(assign (target y [ i j]) (call softmax (read x i j) over= (tuple i j)))");
}

TEST(Parser, BlocksAndLoops) {
  EXPECT_EQ(statement("state h[b in B] = 0 for j in tiles(lo:hi) { h[b] = h[b] }").substr(0, 50),
            "(tiles j (in lo hi)\n    (assign (target h [ b]) (r");
  EXPECT_EQ(statement("for t in T, reverse { y[t] = 1 }"),
            "(for t (in T) reverse\n    (assign (target y [ t]) 1))");
  EXPECT_EQ(statement("parallel i in M, j in 0:N { y[i, j] = 1 }"),
            "(parallel (i (in M)) (j (in 0 N))\n    (assign (target y [ i j]) 1))");
  EXPECT_EQ(statement("schedule { tile i=128, j=256; stages 4; persistent }"),
            "(schedule (tile i= 128 j= 256) (stages  4) (persistent))");
}

TEST(Parser, WordsAreNamesWhereTheyCanBe) {
  EXPECT_EQ(statement("state = tiles + schedule*precision"),
            "(assign (target state) (+ tiles (* schedule precision)))");
  EXPECT_EQ(statement("parallel[i] = kernel[fn, i] + where(reverse, inout, deterministic)"),
            "(assign (target parallel [ i]) (+ (read kernel fn i)"
            " (call where reverse inout deterministic)))");
}

TEST(Parser, StatementsContinueAcrossLines) {
  EXPECT_EQ(statement("s = a\n  - b\n  + c"), "(assign (target s) (+ (- a b) c))");
  EXPECT_EQ(statement("s = f\n  (a)"), "(assign (target s) (call f a))");
}

// Forms of other languages are looked for only in what the grammar refuses.
TEST(Parser, WhatTheGrammarAcceptsStandsAsItIs) {
  for (StringRef statements :
       {"y[i, j] = x[i // 2, j]; schedule { tile i=128 }", "h = v // 2 g = h y[i, j] = g[i]",
        "y[i, j] = kernel +\nkernel f(x)"}) {
    Parsed parsed(inKernel(statements));
    EXPECT_TRUE(parsed.codes().empty()) << statements.str() << "\n" << parsed.rendered();
  }
  // A number does not touch a name, a word of the language no more than another one.
  for (StringRef value : {"2x", "2state", "1.5tiles(x)", "1.state"}) {
    Parsed parsed(inKernel(("h = " + value + " = 3").str()));
    EXPECT_TRUE(is_contained(parsed.codes(), "E0101")) << value.str();
  }
  EXPECT_TRUE(Parsed(inKernel("y[i, j] = sum(2for d in 3if d < 2)")).codes().empty());
}

TEST(Parser, SpansAreExact) {
  Parsed parsed("# é\nkernel k(x: f32[N]) -> (y: f32[N]) { y[i] = (x[i] + 2) }\n");
  const ast::Kernel &kernel = *parsed.tree->kernels.at(0);
  EXPECT_EQ(parsed.sources.text(kernel.body.at(0)->span), "y[i] = (x[i] + 2)");
  EXPECT_EQ(parsed.sources.text(kernel.body.at(0)->value->span), "(x[i] + 2)");
  EXPECT_EQ(parsed.sources.text(kernel.body.at(0)->value->operands[0]->span), "x[i]");
  EXPECT_EQ(parsed.sources.text(kernel.headSpan), "kernel k(x: f32[N]) -> (y: f32[N])");
  EXPECT_EQ(parsed.sources.text(parsed.tree->comments.at(0).span), "# é");
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(Catalogue, SyntaxErrorsAreWhatTheySay) {
  // These examples are shortened in the catalogue; Limits tests them.
  const std::set<Code> shortened = {Code::FileTooLarge, Code::StatementTooLong};
  for (unsigned i = 0; i != allCodes().size(); ++i) {
    const CodeInfo &info = allCodes()[i];
    if (!info.code.starts_with("E01"))
      continue;
    Parsed right(info.right.str());
    EXPECT_TRUE(right.diagnostics.all().empty()) << info.code.str() << '\n' << right.rendered();
    if (shortened.count(static_cast<Code>(i)))
      continue;
    Parsed wrong(info.wrong.str());
    ASSERT_FALSE(wrong.diagnostics.all().empty()) << info.code.str();
    for (const std::string &code : wrong.codes())
      EXPECT_EQ(code, info.code.str()) << wrong.rendered();
  }
}

TEST(Catalogue, AllProgramsFollowTheGrammarFromE02On) {
  for (const CodeInfo &info : allCodes()) {
    if (info.code.starts_with("E01"))
      continue;
    for (StringRef text : {info.wrong, info.right}) {
      Parsed parsed(text.str());
      for (const std::string &code : parsed.codes())
        EXPECT_EQ(code, info.code.str()) << parsed.rendered();
    }
  }
}

TEST(Catalogue, CodesAreUnique) {
  std::set<StringRef> codes;
  for (const CodeInfo &info : allCodes()) {
    EXPECT_TRUE(codes.insert(info.code).second) << info.code.str();
    EXPECT_EQ(info.code.front(), info.severity == Severity::Error ? 'E' : 'W') << info.code.str();
  }
}

TEST(Errors, IndependentOnesAreReportedTogether) {
  Parsed parsed(inKernel("  a = 2 * * 3\n"
                         "  b = f(1, 2\n"
                         "  c = 1\n"
                         "  for t in 0:3 {\n"
                         "    d = x[0][1]\n"
                         "    e = 4 5\n"
                         "  }\n"
                         "  g = y &&  z") +
                "kernel l(x f32[N]) -> (y: f32[N]) { y[i] = = 3 }\n");
  std::vector<std::string> expected = {"E0101", "E0103", "E0113", "E0101",
                                       "E0111", "E0112", "E0101"};
  EXPECT_EQ(parsed.codes(), expected) << parsed.rendered();
}

TEST(Errors, OneMistakeIsOneError) {
  for (StringRef text :
       {"  y[i, j] = (x[i, j]", "  y[i, j] = x[i, j]]", "  y[i, j] = 3 4 5 6 7",
        "  for t in range(3):\n    y[i, j] = x[i, j]", "  let a = 3", "  a = b ? c : d",
        "  if a > 3 {\n    b = 4\n    c = 5\n  }", "  a = x[1:3]", "  return y",
        "  a = x.sum(dim=1).mean()", "  a = b +", "  a @= b", "  a = lambda q: q"}) {
    Parsed parsed(inKernel(text));
    EXPECT_EQ(parsed.diagnostics.all().size(), 1u) << text.str() << '\n' << parsed.rendered();
  }
}

TEST(Errors, AMissingBraceDoesNotReachTheNextKernel) {
  Parsed parsed("kernel a(x: f32[N]) -> (y: f32[N]) {\n  y[i] = x[i]\n"
                "kernel b(x: f32[N]) -> (y: f32[N]) {\n  y[i] = x[i] +* 2\n}\n");
  EXPECT_EQ(parsed.codes(), (std::vector<std::string>{"E0103", "E0101"})) << parsed.rendered();
}

TEST(Limits, NestingIsBounded) {
  for (StringRef open : {"(", "-", "not ", "f(", "x["}) {
    Parsed fits(inKernel("  a = " + repeat(open, 200) + "1" +
                         repeat(open.contains('(')   ? ")"
                                : open.contains('[') ? "]"
                                                     : "",
                                200)));
    EXPECT_FALSE(fits.diagnostics.hasErrors()) << fits.rendered().substr(0, 500);
    Parsed deep(inKernel("  a = " + repeat(open, 100'000) + "1" +
                         repeat(open.contains('(')   ? ")"
                                : open.contains('[') ? "]"
                                                     : "",
                                100'000)));
    EXPECT_EQ(deep.codes().front(), "E0106") << open.str();
  }
  Parsed power(inKernel("  a = 1" + repeat("**1", 300)));
  EXPECT_EQ(power.codes(), std::vector<std::string>{"E0106"});
  Parsed blocks(inKernel(repeat("for t in 3 {", 300) + repeat("}", 300)));
  EXPECT_EQ(blocks.codes(), std::vector<std::string>{"E0106"});
}

TEST(Limits, StatementsAndFilesAreBounded) {
  Parsed fits(inKernel("  a = 1" + repeat(" + 1", 900)));
  EXPECT_FALSE(fits.diagnostics.hasErrors()) << fits.rendered();
  Parsed longer(inKernel("  a = 1" + repeat("\n + 1", 1'100)));
  EXPECT_EQ(longer.codes(), std::vector<std::string>{"E0107"});
  Parsed large("# " + repeat("x", 1 << 20) + "\n" + inKernel("  a = 1"));
  EXPECT_EQ(large.codes(), std::vector<std::string>{"E0105"});
  Parsed many(inKernel(repeat("  a = * 1\n", 1'000)));
  EXPECT_EQ(many.codes().size(), limits::syntaxErrors);
}

TEST(Limits, UnbalancedBracketsAreQuick) {
  for (StringRef each : {"(", ")", "[", "]", "{", "}", "([{", "}])"}) {
    std::clock_t start = std::clock(); // of this process: the machine may be busy
    Parsed parsed(inKernel(repeat(each, 100'000)));
    EXPECT_TRUE(parsed.diagnostics.hasErrors());
    EXPECT_LT(double(std::clock() - start) / CLOCKS_PER_SEC, 10) << each.str();
  }
}

TEST(Encoding, BytesThatAreNoText) {
  for (StringRef bad :
       {StringRef("\0", 1), StringRef("\xff"), StringRef("\xc3"), StringRef("\xed\xa0\x80"),
        StringRef("\xc0\x80"), StringRef("\xf5\x80\x80\x80")}) {
    Parsed parsed(inKernel(("  # " + bad).str()));
    EXPECT_EQ(parsed.codes(), std::vector<std::string>{"E0104"});
  }
  Parsed wide(std::string("k\0e\0r\0n\0e\0l\0", 12));
  EXPECT_EQ(wide.codes(), std::vector<std::string>{"E0104"});
  EXPECT_NE(wide.rendered().find("UTF-16"), std::string::npos);
  Parsed marked("\xEF\xBB\xBF" + inKernel("  y[i, j] = x[i, j]"));
  EXPECT_TRUE(marked.diagnostics.all().empty()) << marked.rendered();
  EXPECT_EQ(marked.sources.text(marked.tree->kernels.at(0)->name.span), "k");
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

TEST(Rendering, CaretsStandUnderTheirCharacters) {
  SourceManager sources;
  uint32_t file = sources.add("t.tgl", "\tab\t世界 é x\n");
  Diagnostics diagnostics(sources);
  StringRef text = sources.text(file);
  auto at = [&](StringRef what) {
    uint32_t begin = static_cast<uint32_t>(text.find(what));
    return Span{file, begin, begin + static_cast<uint32_t>(what.size())};
  };
  diagnostics.report(Code::UnknownName, at("x"), "message");
  diagnostics.report(Code::UnknownName, at("世界"), "message");
  std::string rendered;
  raw_string_ostream os(rendered);
  diagnostics.printText(os, /*color=*/false);
  EXPECT_EQ(rendered, "t.tgl:1:10: error[E0201]: message\n"
                      "    1 |     ab  世界 é x\n"
                      "      |                ^\n"
                      "t.tgl:1:5: error[E0201]: message\n"
                      "    1 |     ab  世界 é x\n"
                      "      |         ^~~~\n");
}

TEST(Rendering, LongLinesAreCut) {
  SourceManager sources;
  std::string text = repeat("abcdefghi ", 100'000);
  uint32_t file = sources.add("t.tgl", text);
  Diagnostics diagnostics(sources);
  diagnostics.report(Code::UnknownName, {file, 500'000, 500'003}, "message");
  std::string rendered;
  raw_string_ostream os(rendered);
  diagnostics.printText(os, /*color=*/false);
  SmallVector<StringRef> lines;
  StringRef(rendered).split(lines, '\n');
  ASSERT_GE(lines.size(), 3u);
  EXPECT_LT(lines[1].size(), 140u);
  EXPECT_EQ(lines[1].substr(lines[2].find('^'), 3), "abc");
}

TEST(Json, HasTheDocumentedFields) {
  Parsed parsed(inKernel("  a = \"\\ \x01 é\" && b"));
  std::string text;
  raw_string_ostream os(text);
  parsed.diagnostics.printJson(os);
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  ASSERT_EQ(lines.size(), parsed.diagnostics.all().size());
  for (StringRef line : lines) {
    Expected<json::Value> value = json::parse(line);
    ASSERT_TRUE(bool(value)) << toString(value.takeError());
    const json::Object &object = *value->getAsObject();
    EXPECT_EQ(object.getString("schema"), "tegula.diagnostic");
    EXPECT_EQ(object.getInteger("version"), 1);
    EXPECT_TRUE(object.getString("code") && object.getString("message"));
    const json::Object *span = object.getObject("span");
    ASSERT_TRUE(span);
    EXPECT_EQ(span->getInteger("line"), 2);
    EXPECT_LT(*span->getInteger("begin"), *span->getInteger("end"));
    EXPECT_TRUE(object.getArray("notes") && object.getArray("fixes"));
  }
}

TEST(Fixes, SafeOnesRepairTheProgram) {
  std::string text = "// twice\ndef k(x: f32[M, N]) -> (y: f32[M, N]) {\n"
                     "  y[i, j] := where(!(x[i][j] == 0)&&true || false, 1.0f, 2 × x[i][j])\n}\n";
  for (int round = 0; round != 5; ++round) {
    Parsed parsed(text);
    text = applyFixes(parsed.diagnostics, parsed.file);
  }
  EXPECT_EQ(text, "# twice\nkernel k(x: f32[M, N]) -> (y: f32[M, N]) {\n"
                  "  y[i, j] = where(not(x[i, j] == 0) and true or false, 1.0, 2 * x[i, j])\n}\n");
  Parsed fixed(text);
  EXPECT_FALSE(fixed.diagnostics.hasErrors()) << fixed.rendered();
}

TEST(Fixes, OverlappingOnesAreLeftOut) {
  SourceManager sources;
  uint32_t file = sources.add("t.tgl", "abcdef");
  Diagnostics diagnostics(sources);
  diagnostics.report(Code::UnknownName, {file, 0, 3}, "one")
      .fix("one", {{{file, 0, 3}, "X"}}, Applicability::Safe)
      .fix("an alternative", {{{file, 4, 5}, "!"}}, Applicability::Safe);
  diagnostics.report(Code::UnknownName, {file, 2, 4}, "two")
      .fix("two", {{{file, 2, 4}, "Y"}, {{file, 5, 6}, "Z"}}, Applicability::Safe);
  diagnostics.report(Code::UnknownName, {file, 4, 5}, "three")
      .fix("three", {{{file, 4, 5}, "W"}}, Applicability::Maybe);
  diagnostics.report(Code::UnknownName, {file, 5, 6}, "four")
      .fix("four", {{{file, 3, 3}, "+"}}, Applicability::Safe);
  EXPECT_EQ(applyFixes(diagnostics, file), "X+def");
}

/// Fixes a text of letters, each of which may have a fix: a letter becomes a text.
static FixedText fixLetters(StringRef text, std::map<char, std::string> fixes) {
  return fixUntilStable(
      text, /*maybe=*/false,
      [&](StringRef now, function_ref<void(const Diagnostics &, uint32_t)> visit) {
        SourceManager sources;
        uint32_t file = sources.add("t.tgl", now.str());
        Diagnostics diagnostics(sources);
        for (uint32_t i = 0; i != now.size(); ++i)
          if (auto found = fixes.find(now[i]); found != fixes.end())
            diagnostics.report(Code::UnknownName, {file, i, i + 1}, std::string("found ") + now[i])
                .fix("write '" + found->second + "'", {{{file, i, i + 1}, found->second}},
                     Applicability::Safe);
        visit(diagnostics, file);
      });
}

TEST(Fixes, EndAndAreMadeOnce) {
  EXPECT_EQ(fixLetters("ab", {{'a', "b"}, {'b', "c"}}).text, "cc");
  EXPECT_EQ(fixLetters("ab", {{'a', "b"}, {'b', "c"}}).done.size(), 3u);
  EXPECT_EQ(fixLetters("ab", {{'a', "b"}, {'b', "c"}}).done[0], "1:1: fixed E0201: write 'b'");
  EXPECT_EQ(fixLetters("zx", {{'z', "zy"}}).text, "zx") << "it grows without an end";
  EXPECT_EQ(fixLetters("az", {{'a', "b"}, {'z', "zy"}}).text, "bz") << "others are still made";
  EXPECT_EQ(fixLetters("kx", {{'k', "l"}, {'l', "k"}}).text, "kx") << "two that undo each other";
  EXPECT_EQ(fixLetters("akx", {{'a', "b"}, {'k', "l"}, {'l', "k"}}).text, "bkx");
  EXPECT_EQ(fixLetters("xk", {{'k', "k"}}).text, "xk");
  for (StringRef text : {"az", "akx", "klazx"}) {
    std::map<char, std::string> fixes{{'a', "b"}, {'z', "zy"}, {'k', "l"}, {'l', "k"}};
    std::string once = fixLetters(text, fixes).text;
    EXPECT_EQ(fixLetters(once, fixes).text, once) << text.str();
  }
}

TEST(NearestName, FindsTyposOnly) {
  StringRef names[] = {"sigmoid", "softmax", "sum", "silu"};
  EXPECT_EQ(nearestName("sigmod", names), "sigmoid");
  EXPECT_EQ(nearestName("SOFTMAX", names), "softmax");
  EXPECT_EQ(nearestName("somftax", names), "softmax");
  EXPECT_EQ(nearestName("transpose", names), "");
  EXPECT_EQ(nearestName("x", names), "");
}

TEST(Inventions, HaveAdvice) {
  ASSERT_TRUE(findInvention(Invention::Type, "float32"));
  EXPECT_EQ(findInvention(Invention::Type, "float32")->advice(), "write 'f32'");
  EXPECT_FALSE(findInvention(Invention::Type, "f32"));
  SourceManager sources;
  uint32_t file = sources.add("t.tgl", "swish(x)");
  Diagnostics diagnostics(sources);
  EXPECT_TRUE(reportInvention(diagnostics, Invention::Function, "swish", {file, 0, 5}));
  EXPECT_EQ(applyFixes(diagnostics, file), "silu(x)");
}

TEST(Inventions, AreNoNamesOfTheLanguage) {
  SourceManager sources;
  uint32_t file = sources.add("t.tgl", inKernel("  y[i, j] = x[i, j]"));
  Diagnostics diagnostics(sources);
  std::unique_ptr<tegula::Module> module = openModule(sources, file, diagnostics);
  std::set<StringRef> builtins = {
#define TEGULA_BUILTIN(NAME, SIGNATURE, CLASS, DOC) #NAME,
#include "dsl/Builtins.def"
  };
  auto isFunction = [&](StringRef name) {
    return builtins.count(name) || module->findFn(name) || module->findKernel(name);
  };
  std::set<std::pair<int, StringRef>> seen;
  for (const Invention &entry : allInventions()) {
    EXPECT_TRUE(seen.insert({entry.kind, entry.name}).second)
        << entry.name.str() << " stands twice";
    if (entry.kind != Invention::Function)
      continue;
    EXPECT_FALSE(isFunction(entry.name)) << entry.name.str() << " is a function";
    EXPECT_TRUE(entry.replacement.empty() || isFunction(entry.replacement))
        << entry.name.str() << ": there is no " << entry.replacement.str();
  }
}

/// What the advice says to write is text of the language.
TEST(Inventions, AdviseWhatParses) {
  auto parses = [](const std::string &program) { return !Parsed(program).diagnostics.hasErrors(); };
  unsigned checked = 0;
  for (const Invention &entry : allInventions()) {
    std::string advice = entry.advice();
    SmallVector<StringRef> parts; // every second one stands in quotes
    StringRef(advice).split(parts, '\'');
    for (size_t i = 1; i < parts.size(); i += 2) {
      std::string piece = parts[i].str();
      bool isForm = StringRef(piece).contains("...") || StringRef(piece).starts_with("in ") ||
                    StringRef(piece).starts_with("tegula ") ||
                    StringRef(piece).starts_with("fill=") || StringRef(piece).ends_with("=true");
      if (isForm)
        continue;
      ++checked;
      bool fits = parses(inKernel("  " + piece)) || parses(inKernel("  z = " + piece)) ||
                  parses("kernel k(" + piece + ") -> (y: f32) { y = 1 }") ||
                  parses("kernel k(x: " + piece + ") -> (y: f32) { y = 1 }") ||
                  parses(inKernel("  " + piece + " x[i] = 1")) ||
                  parses(inKernel("  x[i] " + piece + " 1"));
      EXPECT_TRUE(fits) << entry.name.str() << ": " << piece;
    }
  }
  EXPECT_GT(checked, 200u);
}

//===----------------------------------------------------------------------===//
// Library
//===----------------------------------------------------------------------===//

TEST(Module, EveryLibraryDefinitionParses) {
  SourceManager sources;
  uint32_t file = sources.add("t.tgl", inKernel("  y[i, j] = x[i, j]"));
  Diagnostics diagnostics(sources);
  std::unique_ptr<tegula::Module> module = openModule(sources, file, diagnostics);
  std::vector<StringRef> kernels = module->kernelNames();
  EXPECT_GT(kernels.size(), 40u);
  for (StringRef name : kernels) {
    const ast::Kernel *kernel = module->findKernel(name);
    ASSERT_TRUE(kernel) << name.str();
    EXPECT_EQ(kernel->name.name, name);
    EXPECT_EQ(module->isLibrary(*kernel), name != "k");
    EXPECT_EQ(sources.text(kernel->name.span), name);
  }
  for (StringRef name : module->fnNames())
    EXPECT_TRUE(module->findFn(name)) << name.str();
}

TEST(Module, OwnDefinitionsHideTheLibrarys) {
  SourceManager sources;
  uint32_t file = sources.add("t.tgl", "kernel linear(a: f32[N]) -> (y: f32[N]) { y[i] = a[i] }\n");
  Diagnostics diagnostics(sources);
  std::unique_ptr<tegula::Module> module = openModule(sources, file, diagnostics);
  EXPECT_FALSE(module->isLibrary(*module->findKernel("linear")));
  EXPECT_TRUE(module->isLibrary(*module->findKernel("linear", /*fromLibrary=*/true)));
  EXPECT_FALSE(module->findKernel("no_such_kernel"));
  EXPECT_FALSE(module->findFn("_conv_size"));
  EXPECT_TRUE(module->findFn("_conv_size", /*fromLibrary=*/true));
}

//===----------------------------------------------------------------------===//
// Printer
//===----------------------------------------------------------------------===//

/// Comments in order; their places may move, none is lost.
std::vector<std::string> comments(const Parsed &parsed) {
  std::vector<std::string> result;
  for (const ast::Comment &each : parsed.tree->comments)
    result.push_back(parsed.sources.text(each.span).rtrim().str());
  return result;
}

void expectCanonical(std::string text, StringRef name) {
  Parsed original(std::move(text));
  if (original.diagnostics.hasErrors())
    return;
  Parsed once(original.printed());
  ASSERT_FALSE(once.diagnostics.hasErrors()) << name.str() << '\n' << once.rendered();
  EXPECT_EQ(original.dumped(), once.dumped()) << name.str();
  EXPECT_EQ(comments(original), comments(once)) << name.str();
  EXPECT_EQ(once.printed(), once.sources.text(once.file).str()) << name.str();
}

TEST(Printer, KeepsTreesAndIsIdempotentOnAllPrograms) {
  unsigned count = 0;
  for (StringRef folder : {"dsl", "test", "bench"}) {
    std::error_code error;
    SmallString<256> root(TEGULA_SOURCE_DIR);
    sys::path::append(root, folder);
    for (sys::fs::recursive_directory_iterator it(root, error), end; it != end && !error;
         it.increment(error)) {
      if (sys::path::extension(it->path()) != ".tgl")
        continue;
      auto buffer = MemoryBuffer::getFile(it->path());
      ASSERT_TRUE(bool(buffer)) << it->path();
      expectCanonical((*buffer)->getBuffer().str(), it->path());
      ++count;
    }
  }
  EXPECT_GT(count, 10u);
  for (const CodeInfo &info : allCodes()) {
    expectCanonical(info.wrong.str(), info.code);
    expectCanonical(info.right.str(), info.code);
  }
}

TEST(Printer, CommentsStandAnywhere) {
  // A comment after every token, on its own line and behind it.
  std::string program =
      "fn f ( a , b = 2 ) { c = a ; return c ; }\n"
      "kernel k ( x : inout f32 [ N , ... ] = 0 , ) -> ( y : f32 [ N ] ) where P = N // 2 {\n"
      "precision tf32 deterministic state h [ b in N ] = ( x [ b , ... , fill = - 1 ] + 2 )\n"
      "parallel i in 0 : N , j in N { y [ i , ( g , e in 2 ) ] += sum ( x [ i ] for i in N if i > "
      "2 , u = 3 ) }\n"
      "for t in tiles ( N ) { a , b = k ( x ) }\n for t in 0 : 3 , reverse { k ( x ) }\n"
      "y : f16 [ i ] = f ( 1 , 2 ) ** 3 for i in N\n"
      "schedule { tile i = 3 , j = 4 ; persistent } }\n";
  expectCanonical(program, "plain");
  SmallVector<StringRef> words;
  StringRef(program).split(words, ' ', -1, /*KeepEmpty=*/false);
  unsigned parsedCount = 0;
  for (bool ownLine : {false, true}) {
    for (size_t at = 0; at != words.size(); ++at) {
      std::string text;
      for (size_t i = 0; i != words.size(); ++i)
        text += (i == at + 1 ? (ownLine ? "\n# note\n" : "# note\n") : " ") + words[i].str();
      Parsed parsed(text);
      EXPECT_FALSE(parsed.diagnostics.hasErrors()) << parsed.rendered();
      parsedCount += !parsed.diagnostics.hasErrors();
      expectCanonical(text, text);
    }
    std::string all;
    for (StringRef word : words)
      all += word.str() + (ownLine ? "\n# note\n" : " # note\n");
    expectCanonical(all, "all");
  }
  EXPECT_EQ(parsedCount, 2 * words.size());
}

TEST(Printer, WrapsAtTheWidth) {
  Parsed parsed(
      inKernel("  y[i, j] = " + repeat("alpha*x[i, j] + ", 20) +
               "sum(x[i, k]*very_long_name[k, j, k, j, k, j] + another_long_name[k, j, k, j] "
               "for k in a_rather_long_size_name, l in another_rather_long_size_name)"));
  std::string printed = parsed.printed();
  SmallVector<StringRef> lines;
  StringRef(printed).split(lines, '\n');
  EXPECT_GT(lines.size(), 5u);
  for (StringRef line : lines)
    EXPECT_LE(line.size(), 100u) << line.str();
}

} // namespace
