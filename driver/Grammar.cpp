//===- Grammar.cpp - tegula grammar --------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/grammar/Grammar.h"
#include "driver/Commands.h"
#include "dsl/GrammarText.h"

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("grammar", "Print the grammar for tools that hold texts to one");

namespace {
enum class Notation { Lark, Llguidance, Gbnf };
} // namespace
static cl::opt<Notation> format(
    "format", cl::Required, cl::desc("Whose notation:"),
    cl::values(clEnumValN(Notation::Lark, "lark", "Lark"),
               clEnumValN(Notation::Llguidance, "llguidance", "llguidance, a dialect of Lark's"),
               clEnumValN(Notation::Gbnf, "gbnf", "llama.cpp's, which others read too")),
    cl::cat(outputOptions), cl::sub(sub));

static ExitCode run() {
  grammar::Grammar grammar = grammar::read(grammarText());
  switch (format) {
  case Notation::Lark:
    outs() << grammar::printLark(grammar);
    break;
  case Notation::Llguidance:
    outs() << grammar::printLlguidance(grammar);
    break;
  case Notation::Gbnf:
    outs() << grammar::printGbnf(grammar);
    break;
  }
  return ExitSuccess;
}

const Command grammarCommand = {sub, run};

} // namespace tegula
