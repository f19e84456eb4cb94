//===- DebianAntlr.cpp - Making ANTLR's static library fit libtegula -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Debian compiles its static ANTLR runtime for executables. Two things in it cannot be linked into
// a shared library; definitions of ours take their place.
//
//===----------------------------------------------------------------------===//
#include <cstdlib>

extern "C" {

// libstdc++ asks glibc whether reference counts may do without atomic instructions, and the runtime
// reads glibc's variable directly, which only an executable can. Ours says no.
char __libc_single_threaded = 0;

// antlr4::Parser::compileParseTreePattern, which nobody calls, makes a ParseTreePatternMatcher,
// that an ANTLRInputStream, and that has thread-local variables of an executable.
// (frontend/parse/CharacterStream.h is what the lexer reads from.)
#define TEGULA_NEVER_CALLED(NAME, SYMBOL)                                                          \
  [[noreturn]] void NAME() __asm__(SYMBOL);                                                        \
  void NAME() { std::abort(); }
TEGULA_NEVER_CALLED(makeMatcher,
                    "_ZN6antlr44tree7pattern23ParseTreePatternMatcherC1EPNS_5LexerEPNS_6ParserE")
TEGULA_NEVER_CALLED(endMatcher, "_ZN6antlr44tree7pattern23ParseTreePatternMatcherD1Ev")
TEGULA_NEVER_CALLED(compilePattern, "_ZN6antlr44tree7pattern23ParseTreePatternMatcher7compileERKNSt"
                                    "7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEi")
}
