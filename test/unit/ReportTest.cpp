//===- ReportTest.cpp - What pages on programs reckon and draw --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/report/Disassembly.h"
#include "bench/report/LineDiff.h"
#include "bench/report/Occupancy.h"
#include "bench/report/Page.h"
#include "gtest/gtest.h"
#include <random>

using namespace llvm;
using namespace tegula::report;

//===----------------------------------------------------------------------===//
// Differences
//===----------------------------------------------------------------------===//

static std::vector<std::string> texts(const std::vector<DiffLine> &lines, DiffLine::Kind without) {
  std::vector<std::string> result;
  for (const DiffLine &line : lines)
    if (line.kind != without)
      result.push_back(line.text.str());
  return result;
}

/// The most lines that two texts can have in common, by the textbook's table.
static size_t longestCommon(ArrayRef<std::string> a, ArrayRef<std::string> b) {
  std::vector<std::vector<size_t>> length(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j)
      length[i + 1][j + 1] =
          a[i] == b[j] ? length[i][j] + 1 : std::max(length[i][j + 1], length[i + 1][j]);
  return length[a.size()][b.size()];
}

TEST(LineDiff, IsTheShortestForAnyTexts) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    auto make = [&] {
      std::vector<std::string> lines(1 + random() % 12);
      for (std::string &line : lines)
        line = std::string(1, 'a' + random() % 4);
      return lines;
    };
    std::vector<std::string> before = make(), after = make();
    std::string first = join(before, "\n"), second = join(after, "\n");
    std::vector<DiffLine> found = diffLines(first, second);
    EXPECT_EQ(texts(found, DiffLine::Added), before);
    EXPECT_EQ(texts(found, DiffLine::Removed), after);
    EXPECT_EQ(count_if(found, [](const DiffLine &line) { return line.kind == DiffLine::Same; }),
              static_cast<long>(longestCommon(before, after)));
  }
}

TEST(LineDiff, LeavesNumbersOfValuesAside) {
  std::vector<DiffLine> found = diffLines("%1 = f %0\ncf.br ^bb1\n%2 = g[%d0, 4]\n",
                                          "%7 = f %12\ncf.br ^bb9\n%3 = g[%d1, 5]\n");
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].kind, DiffLine::Same);
  EXPECT_EQ(found[0].text, "%7 = f %12"); // as the second has it
  EXPECT_EQ(found[1].kind, DiffLine::Same);
  EXPECT_EQ(found[2].kind, DiffLine::Removed);
  EXPECT_EQ(found[3].kind, DiffLine::Added);
}

TEST(LineDiff, GivesUpOnTextsThatHaveNothingInCommon) {
  std::string before, after;
  for (int line = 0; line < 4000; ++line) {
    before += "a" + std::to_string(line) + "\n";
    after += "b" + std::to_string(line) + "\n";
  }
  EXPECT_EQ(diffLines(before, after).size(), 8000u);
}

/// The text that hunks make of `before`, as `patch` does, where they say where they stand.
static std::string patched(const std::string &before, ArrayRef<Hunk> hunks) {
  SmallVector<StringRef> old;
  StringRef(before).split(old, '\n');
  std::vector<std::string> result;
  size_t next = 1; // line of `before` that is not copied yet
  for (const Hunk &hunk : hunks) {
    EXPECT_GE(hunk.before, next) << "hunks overlap";
    for (; next < hunk.before; ++next)
      result.push_back(old[next - 1].str());
    EXPECT_EQ(hunk.after, result.size() + 1);
    for (const DiffLine &line : hunk.lines) {
      if (line.kind != DiffLine::Added)
        EXPECT_EQ(line.text, old[next++ - 1]);
      if (line.kind != DiffLine::Removed)
        result.push_back(line.text.str());
    }
  }
  for (; next <= old.size(); ++next)
    result.push_back(old[next - 1].str());
  return join(result, "\n");
}

TEST(LineDiff, HunksMakeTheSecondTextOfTheFirst) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> before(1 + random() % 60), after;
    for (std::string &line : before)
      line = std::string(1, 'a' + random() % 6);
    for (const std::string &line : before) {
      if (random() % 12)
        after.push_back(line);
      if (random() % 12 == 0)
        after.push_back("z");
    }
    if (after.empty())
      after.push_back("z");
    std::string first = join(before, "\n"), second = join(after, "\n");
    size_t context = random() % 4;
    std::vector<DiffLine> lines = diffLines(first, second);
    std::vector<Hunk> hunks = hunksOf(lines, context);
    EXPECT_EQ(patched(first, hunks), second);
    EXPECT_EQ(hunks.empty(), first == second);
    for (const Hunk &hunk : hunks) { // no more lines around the changes than asked for
      auto isSame = [](const DiffLine &line) { return line.kind == DiffLine::Same; };
      EXPECT_LE(size_t(find_if_not(hunk.lines, isSame) - hunk.lines.begin()), context);
      EXPECT_LE(size_t(find_if_not(reverse(hunk.lines), isSame) - hunk.lines.rbegin()), context);
    }
  }
}

TEST(Page, FoldsUnifiedDifferencesUnderTheirTitle) {
  Page page("p");
  std::string before = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", after = before;
  after.replace(after.find('7'), 1, "<x>");
  page.unifiedDifference("pass", diffLines(before, after));
  EXPECT_NE(
      page.finish().find("<details><summary>pass: 1 lines added, 1 removed</summary>"
                         "<div class=\"code\"><span class=\"hunk\">@@ -5,6 +5,6 @@</span>"
                         "<span>  4</span><span>  5</span><span>  6</span>"
                         "<span class=\"del\">- 7</span><span class=\"add\">+ &lt;x&gt;</span>"
                         "<span>  8</span><span>  9</span></div></details>"),
      std::string::npos)
      << page.finish();
}

//===----------------------------------------------------------------------===//
// Occupancy
//===----------------------------------------------------------------------===//

// By hand from the limits of compute capability 9.0.
TEST(Occupancy, IsThatOfHopper) {
  const DeviceLimits &h200 = *deviceLimits("h200");
  auto expect = [&](unsigned threads, unsigned registers, unsigned bytes, unsigned blocks,
                    StringRef limit) {
    Occupancy found = occupancyOf(h200, threads, registers, bytes);
    EXPECT_EQ(found.blocks, blocks) << threads << " " << registers << " " << bytes;
    EXPECT_EQ(found.limit, limit) << threads << " " << registers << " " << bytes;
    EXPECT_EQ(found.warps, blocks * ((threads + 31) / 32));
    EXPECT_DOUBLE_EQ(found.share, found.warps / 64.0);
  };
  expect(1024, 16, 0, 2, "warps");          // 2048 threads
  expect(32, 16, 0, 32, "blocks");          // 32 blocks, half of the warps
  expect(256, 33, 0, 6, "registers");       // 40 a thread: 1280 a warp, 12 warps for each scheduler
  expect(256, 128, 0, 2, "registers");      // 4 warps for each scheduler
  expect(512, 128, 133120, 1, "registers"); // and of shared memory one too
  expect(128, 32, 227 << 10, 1, "shared memory"); // with the system's 1 KiB all
  expect(128, 32, 113 << 10, 2, "shared memory"); // 114 KiB each
  expect(128, 32, (113 << 10) + 1, 1, "shared memory");
  expect(128, 32, 228 << 10, 0, "shared memory"); // it does not fit
  expect(1024, 255, 0, 0, "registers");
  EXPECT_EQ(deviceLimits("h300"), nullptr);
}

//===----------------------------------------------------------------------===//
// What tools print
//===----------------------------------------------------------------------===//

TEST(Disassembly, ReadsWhatTheAssemblerSaysOfEachFunction) {
  auto functions = tegula::report::readAssemblerLog(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
      "ptxas info    : Function properties for a\n"
      "    144 bytes stack frame, 252 bytes spill stores, 172 bytes spill loads\n"
      "ptxas info    : Used 128 registers, used 16 barriers, 144 bytes cumulative stack size, 1024 "
      "bytes smem\n"
      "ptxas info    : Compile time = 71.3 ms\n"
      "ptxas info    : Function properties for b\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 0 barriers\n");
  ASSERT_EQ(functions.size(), 2u);
  const AssembledFunction &a = functions["a"], &b = functions["b"];
  EXPECT_EQ(a.registers, 128u);
  EXPECT_EQ(a.sharedBytes, 1024u);
  EXPECT_EQ(a.stackBytes, 144u);
  EXPECT_EQ(a.spillStores, 252u);
  EXPECT_EQ(a.spillLoads, 172u);
  EXPECT_TRUE(a.isFailure());
  EXPECT_EQ(b.registers, 32u);
  EXPECT_FALSE(b.isFailure());
}

TEST(Disassembly, LinksPtxToLines) {
  std::vector<CodeLine> lines =
      linesOfPtx(".visible .entry f(\n{\n\t.reg .b32 \t%r<2>;\n\t.loc\t1 3 13\n"
                 "\tmov.u32 \t%r1, 0;\n$L_1:\n"
                 "\t.loc\t2 7 1, function_name $L, inlined_at 1 3 1\n"
                 "\tret;\n\t.loc\t1 0 13\n\tret;\n}\n\t.file\t1 \"a.tgl\"\n"
                 "\t.file\t2 \"std/b.tgl\"\n");
  std::vector<std::string> code;
  for (const CodeLine &line : lines)
    code.push_back(line.file + ":" + std::to_string(line.line) + " " +
                   StringRef(line.text).trim().str());
  EXPECT_EQ(code,
            (std::vector<std::string>{":0 .visible .entry f(", ":0 {", ":0 .reg .b32 \t%r<2>;",
                                      "a.tgl:3 mov.u32 \t%r1, 0;", ":0 $L_1:", "std/b.tgl:7 ret;",
                                      "a.tgl:0 ret;", ":0 }"}));
}

TEST(Disassembly, LinksMachineCodeToLines) {
  // As nvdisasm prints it, then as cuobjdump does, which has no lines but encodings.
  std::vector<CodeLine> lines =
      linesOfDisassembly("\t.headerflags\t@\"EF_CUDA\"\n.text.f:\n"
                         "\t//## File \"a.tgl\", line 3\n"
                         "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
                         ".L_x_1:\n"
                         "\t//## File \"a.tgl\", line 4 inlined at \"a.tgl\", line 9\n"
                         "        /*a010*/              @!P0 BRA `(.L_x_1) ;\n");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].text, "f:");
  EXPECT_EQ(lines[1].line, 3u);
  EXPECT_EQ(lines[1].file, "a.tgl");
  EXPECT_EQ(lines[2].text, ".L_x_1:");
  EXPECT_EQ(lines[3].line, 4u);
  lines = linesOfDisassembly(
      "\tcode for sm_90a\n\t\tFunction : g\n"
      "        /*0000*/                   EXIT ;           /* 0x00000a00ff017b82 */\n"
      "                                                    /* 0x000e220000000800 */\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text, "g:");
  EXPECT_EQ(StringRef(lines[1].text).trim(), "/*0000*/                   EXIT ;");
  EXPECT_EQ(lines[1].line, 0u);
}

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

TEST(Page, IsWellFormedWhateverTheTexts) {
  Page page("<a> & \"b\"");
  page.section("s", "A < B");
  page.source("x < y\n\"&\"");
  page.difference("phase", diffLines("%1 = a<b>\n", "c & d\n"));
  page.code("PTX", {{"ld [<x>];", "p.tgl", 2}, {"ret;", "std/q.tgl", 9}, {"nop;", "kernel", 1}},
            "p.tgl", true);
  page.table({"<h>"}, {{"<c>"}});
  std::string text = page.finish();
  EXPECT_EQ(StringRef(text).count("<x>") + StringRef(text).count("<h>") +
                StringRef(text).count("<c>"),
            0u);
  EXPECT_NE(text.find("<span id=\"L2\" data-line=\"2\">"), std::string::npos);
  EXPECT_NE(text.find("href=\"#L2\""), std::string::npos);
  EXPECT_EQ(text.find("href=\"#L9\""), std::string::npos); // of another file
  EXPECT_NE(text.find("title=\"std/q.tgl:9\""), std::string::npos);
  EXPECT_EQ(text.find("title=\"kernel:1\""), std::string::npos); // no file of a program
  for (StringRef tag :
       {"div", "details", "table", "span", "p", "nav", "body", "html", "script", "style"})
    EXPECT_EQ(StringRef(text).count(("<" + tag + ">").str()) +
                  StringRef(text).count(("<" + tag + " ").str()),
              StringRef(text).count(("</" + tag + ">").str()))
        << tag.str();
}
