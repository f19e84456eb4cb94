//===- Prompt.cpp - tegula prompt --------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a model is told: the page, examples that have much in common with the task, the task; and
// once it has written a program that is refused, the messages with a wrong and a right example for
// each.
//
//===----------------------------------------------------------------------===//
#include "driver/Commands.h"
#include "driver/FileIO.h"
#include "dsl/prompt/PromptText.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("prompt",
                          "Print what a model needs to know to write or repair a program");
static cl::opt<std::string> task("task", cl::desc("The PyTorch module, or a description in words"),
                                 cl::value_desc("FILE"), cl::cat(inputOptions), cl::sub(sub));
static cl::opt<unsigned> exampleCount("examples", cl::init(3), cl::cat(outputOptions), cl::sub(sub),
                                      cl::desc("How many examples (3), those nearest to the task"));
static cl::opt<std::string> program("program", cl::desc("The program that was refused"),
                                    cl::value_desc("FILE"), cl::cat(inputOptions), cl::sub(sub));
static cl::opt<std::string>
    repair("repair", cl::value_desc("FILE"), cl::cat(inputOptions), cl::sub(sub),
           cl::desc("What 'tegula check' said of it, as text or JSON Lines"));

constexpr size_t textBytes = 1 << 20;

/// The words of a text's identifiers, in lower case: `ConvTranspose2d` and `conv_transpose2d` share
/// three. Of code, what is called or is a member of something tells what it does; of other texts,
/// every word.
static StringSet<> wordsOf(StringRef text, bool isCode) {
  StringSet<> words;
  auto isPart = [](char c) { return isAlnum(c) || c == '_'; };
  char before = 0;
  while (!text.empty()) {
    StringRef name = text.take_while(isPart);
    if (name.empty()) {
      before = text.front();
      text = text.drop_front();
      continue;
    }
    bool isMember = std::exchange(before, 'a') == '.';
    text = text.drop_front(name.size());
    if (isCode && !text.starts_with("(") && !isMember)
      continue;
    std::string word;
    for (size_t i = 0; i != name.size(); ++i) {
      bool starts = i && ((isUpper(name[i]) && !isUpper(name[i - 1])) ||
                          (isDigit(name[i]) && !isDigit(name[i - 1])));
      if (starts || name[i] == '_')
        words.insert(std::exchange(word, ""));
      if (name[i] != '_')
        word += toLower(name[i]);
    }
    words.insert(word);
  }
  words.erase("");
  return words;
}

/// The examples that have most in common with the task, best first: the cosine of their words,
/// weighed by how few examples have them. What an example that is taken has already shown counts a
/// quarter.
static SmallVector<const PromptExample *> chooseExamples(StringRef text, bool isCode,
                                                         size_t count) {
  StringSet<> wanted = wordsOf(text, isCode);
  SmallVector<std::pair<const PromptExample *, StringSet<>>> rest;
  StringMap<double> weights; // of a word, squared
  for (const PromptExample &example : promptExamples()) {
    rest.emplace_back(&example, wordsOf(example.task, /*isCode=*/true));
    for (const auto &word : rest.back().second)
      weights[word.getKey()] += 1;
  }
  for (auto &weight : weights)
    weight.second = std::pow(std::log(static_cast<double>(rest.size()) / weight.second), 2);
  StringMap<double> worth;
  for (const auto &word : wanted)
    worth[word.getKey()] = weights.lookup(word.getKey());
  auto score = [&](const StringSet<> &words) {
    double common = 0, all = 1; // so that very little is not everything
    for (const auto &word : words) {
      common += worth.lookup(word.getKey());
      all += weights.lookup(word.getKey());
    }
    return common / std::sqrt(all);
  };
  SmallVector<const PromptExample *> chosen;
  while (chosen.size() < count && !rest.empty()) {
    auto best = llvm::max_element(rest, [&](const auto &one, const auto &other) {
      return score(one.second) < score(other.second);
    });
    chosen.push_back(best->first);
    for (const auto &word : best->second)
      if (auto found = worth.find(word.getKey()); found != worth.end())
        found->second /= 4;
    rest.erase(best);
  }
  return chosen;
}

static void printFenced(StringRef text, StringRef language = "") {
  outs() << "```" << language << '\n' << text.trim('\n') << "\n```\n";
}

/// One line of `tegula check --json` as text; none for what is no record.
static std::optional<std::string> recordText(StringRef line) {
  Expected<json::Value> value = json::parse(line);
  if (!value) {
    consumeError(value.takeError());
    return std::nullopt;
  }
  const json::Object *record = value->getAsObject();
  if (!record || !record->getString("code") || !record->getString("message"))
    return std::nullopt;
  std::string text;
  raw_string_ostream os(text);
  if (const json::Object *span = record->getObject("span"))
    os << "line " << span->getInteger("line").value_or(0) << ", column "
       << span->getInteger("column").value_or(0) << ": ";
  os << record->getString("severity").value_or("error") << '[' << *record->getString("code")
     << "]: " << *record->getString("message") << '\n';
  for (StringRef key : {"notes", "fixes"})
    if (const json::Array *list = record->getArray(key))
      for (const json::Value &one : *list)
        if (const json::Object *object = one.getAsObject())
          os << "  " << key.drop_back(key == "fixes" ? 2 : 1) << ": "
             << object->getString("message").value_or("") << '\n';
  return text;
}

static std::string diagnosticsText(StringRef text) {
  std::string result;
  for (StringRef line : split(text, '\n')) {
    std::optional<std::string> record = line.starts_with("{") ? recordText(line) : std::nullopt;
    result += record ? *record : (line + "\n").str();
  }
  return result;
}

static void printRepair(StringRef written, StringRef said) {
  if (!written.empty()) {
    outs() << "This program is refused:\n\n";
    printFenced(written);
    outs() << '\n';
  }
  outs() << "The compiler says:\n\n";
  printFenced(diagnosticsText(said));
  for (const CodeInfo &code : allCodes())
    if (said.contains(code.code)) {
      outs() << '\n' << code.code << ", " << code.title << ". Wrong:\n\n";
      printFenced(code.wrong);
      outs() << "\nRight:\n\n";
      printFenced(code.right);
    }
  outs() << "\nWrite the whole program again, in one code block.\n";
}

static ExitCode run() {
  std::string texts[3];
  const cl::opt<std::string> *options[] = {&task, &program, &repair};
  for (auto [option, text] : llvm::zip_equal(options, texts)) {
    if (option->getNumOccurrences() == 0)
      continue;
    Expected<std::string> read = readFile(*option, textBytes + 1);
    if (!read) {
      errs() << "tegula: " << toString(read.takeError()) << '\n';
      return ExitWrongCall;
    }
    text = std::move(*read);
    if (text.size() > textBytes || !json::isUTF8(text)) {
      errs() << "tegula: '" << *option << "' is no text of at most 1 MiB\n";
      return ExitWrongCall;
    }
  }
  const auto &[taskText, written, said] = texts;
  if (program.getNumOccurrences() && !repair.getNumOccurrences()) {
    errs() << "tegula: --program goes with --repair, what 'tegula check' said of it\n";
    return ExitWrongCall;
  }
  bool isPython = StringRef(task).ends_with(".py");
  bool isRepairAlone = repair.getNumOccurrences() && !task.getNumOccurrences();
  if (!isRepairAlone) { // else the next message of a conversation that has had the page
    outs() << promptPage();
    bool first = true;
    size_t count = task.getNumOccurrences() ? exampleCount : 0;
    for (const PromptExample *example : chooseExamples(taskText, isPython, count)) {
      outs() << (std::exchange(first, false) ? "\n# Examples\n" : "") << "\nThis module\n\n";
      printFenced(example->task, "python");
      outs() << "\nis this program:\n\n";
      printFenced(example->program);
    }
  }
  if (task.getNumOccurrences()) {
    outs() << "\n# Your task\n\n"
           << (isPython ? "Write the Tegula program for this PyTorch module."
                        : "Write a Tegula program for this.")
           << " Answer with the whole program in one code block.\n\n";
    printFenced(taskText, isPython ? "python" : "");
  }
  if (repair.getNumOccurrences()) {
    outs() << (isRepairAlone ? "" : "\n# What you wrote\n\n");
    printRepair(written, said);
  }
  return ExitSuccess;
}

const Command promptCommand = {sub, run};

} // namespace tegula
