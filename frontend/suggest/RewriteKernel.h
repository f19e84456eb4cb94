//===- RewriteKernel.h - A kernel, read as other languages write -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a kernel statement by statement with what is known of the names in it. It does not matter
// whether the text follows the grammar.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_SUGGEST_REWRITEKERNEL_H
#define TEGULA_FRONTEND_SUGGEST_REWRITEKERNEL_H

#include "frontend/suggest/RewriteValue.h"

namespace tegula::rewrite {

/// A statement's new text, and what else changes with it.
struct Rewriting {
  std::vector<std::string> lines; // empty: the statement goes
  std::vector<Edit> others;
  std::set<std::string> absent; // temporaries that lose their dims of size one
  bool guessed = false;
};

struct Statement {
  size_t begin, end; // tokens
  std::optional<Rewriting> rewriting;
};

/// One kernel, read statement by statement with what is known of its names.
class KernelReader {
public:
  /// The temporaries in `ranked` keep dims of size one.
  KernelReader(llvm::StringRef file, uint32_t id, const Module &module,
               llvm::ArrayRef<Token> tokens, const std::set<std::string> &ranked)
      : file(file), id(id), module(module), tokens(tokens), ranked(ranked) {}

  std::vector<Statement> read();

private:
  llvm::StringRef text(size_t i) const {
    return i < tokens.size() ? file.slice(tokens[i].begin, tokens[i].end) : llvm::StringRef();
  }
  llvm::StringRef text(size_t begin, size_t end) const {
    return begin < end ? file.slice(tokens[begin].begin, tokens[end - 1].end) : llvm::StringRef();
  }
  bool isName(size_t i) const { return i < tokens.size() && tokens[i].kind == Token::Name; }
  Translator makeTranslator() { return Translator(module, environment, names, /*self=*/text(1)); }
  size_t closing(size_t open) const;
  size_t readParameters(size_t open, bool areOutputs);
  size_t readHead();
  void readLoopNames();
  std::optional<Rewriting> statement(size_t begin, size_t end, unsigned depth);
  std::optional<Statement> chosen(size_t begin);
  std::optional<Rewriting> loopHead(size_t begin, size_t end);
  std::optional<Rewriting> returned(size_t begin, size_t end);
  std::optional<Rewriting> assignment(const Node &target, llvm::StringRef op, const Node &value,
                                      unsigned depth);
  std::optional<Rewriting> elements(const Node &target, llvm::StringRef op, const Node &value);
  std::optional<Rewriting> severalElements(llvm::ArrayRef<NodePtr> targets, const Node &value);
  std::optional<Rewriting> scattered(llvm::StringRef name, const CallForm &form);
  std::optional<Rewriting> stacked(Translator &translator, llvm::StringRef name,
                                   const CallForm &form);
  std::optional<Rewriting> several(llvm::ArrayRef<NodePtr> targets, const Node &value);
  bool severalOfTopK(llvm::ArrayRef<NodePtr> targets, const CallForm &form, Translator &translator,
                     Rewriting &result);
  bool severalParts(llvm::ArrayRef<NodePtr> targets, const CallForm &form, Translator &translator,
                    Rewriting &result);
  std::optional<std::string> define(Translator &translator, llvm::StringRef name,
                                    const Value &value);
  std::optional<std::string> defineElements(Translator &translator, const Node &target,
                                            llvm::StringRef op, const Value &value);
  void rename(llvm::StringRef from, llvm::StringRef to, size_t begin, size_t end,
              std::vector<Edit> &edits) const;
  void declare(llvm::StringRef name, llvm::ArrayRef<Dim> dims);
  bool isAbsent(llvm::StringRef name, const Dim &dim) const {
    return dim.one && !is_contained(outputs, name) && !ranked.count(name.str());
  }
  void noteTargets(size_t begin, size_t end);
  std::string extentOf(llvm::StringRef index, const Node &node) const;

  llvm::StringRef file;
  uint32_t id;
  const Module &module;
  llvm::ArrayRef<Token> tokens;
  const std::set<std::string> &ranked;
  std::set<std::string> absent; // what the statement in hand left out
  Environment environment;
  std::vector<std::string> outputs;
  std::vector<std::string> loopNames;
  llvm::StringSet<> names; // all that stand in the kernel
  size_t bodyBegin = 0, current = 0, currentEnd = 0;
};

} // namespace tegula::rewrite

#endif // TEGULA_FRONTEND_SUGGEST_REWRITEKERNEL_H
