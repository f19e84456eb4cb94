//===- Cursor.h - What a half-typed text says of the place where it ends *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The statement that is being typed is in no tree: its words before the cursor say where one is.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_LSP_CURSOR_H
#define TEGULA_LSP_CURSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace tegula {

struct Word {
  llvm::StringRef text;
  uint32_t begin;
  bool isName, firstOnLine;
};

class Cursor {
public:
  Cursor(llvm::StringRef text, uint32_t offset);

  enum Place {
    Nowhere,  // a comment, a string, a number, or a name that is being invented
    TopLevel, // where `kernel` or `fn` may stand
    Head,     // behind a kernel's parameters
    Type,
    DeclaredDim, // in `x: f32[...]` of a head
    Setting,     // in `schedule { ... }`
    PrecisionName,
    Statement, // where a statement may begin
    Expression,
  };
  Place place() const { return where; }
  /// The part before the cursor of the name that is being typed.
  llvm::StringRef prefix() const { return typed; }
  uint32_t prefixBegin() const { return offset - static_cast<uint32_t>(typed.size()); }

  /// A call whose parentheses are open at the cursor.
  struct Call {
    llvm::StringRef function;
    unsigned argument = 0;              // commas before the cursor
    llvm::StringRef keyword;            // of the argument at the cursor
    bool isArgumentStart = false;       // nothing of the argument is there but the name being typed
    std::vector<llvm::StringRef> given; // arguments that have names
  };
  /// The innermost one; null where there is none.
  const Call *call() const { return inCall ? &innermost : nullptr; }

  /// Names before the cursor in the definition around it.
  llvm::ArrayRef<llvm::StringRef> wordsAround() const { return around; }
  /// Where the definition around the cursor begins, and its name.
  uint32_t definitionBegin() const { return definition; }
  llvm::StringRef definitionName() const { return name; }
  bool isInFunction() const { return inFunction; }

private:
  struct Open {
    char bracket;
    size_t word; // position in words
  };
  void scan(llvm::StringRef text);
  void findDefinition();
  void findCall();
  Place findPlace() const;
  Place placeInHead(const Open &list) const;
  bool isHeadList(const Open &open) const;
  bool beginsStatement(size_t word) const;
  llvm::StringRef wordAt(size_t position) const;

  const uint32_t offset;
  llvm::StringRef typed;
  std::vector<Word> words; // before what is being typed
  llvm::SmallVector<Open> open;
  bool atFreshLine = true; // nothing stands before the name that is being typed in its line
  bool inText = false;     // in a comment or a string
  bool inNumber = false;
  Place where = Nowhere;
  bool inCall = false, inFunction = false;
  Call innermost;
  std::vector<llvm::StringRef> around;
  size_t firstWord = 0; // of the definition
  uint32_t definition = 0;
  llvm::StringRef name;
};

} // namespace tegula

#endif // TEGULA_LSP_CURSOR_H
