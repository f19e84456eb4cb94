//===- NameIndex.h - Which names of a file mean the same thing --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The checker resolves names kernel by kernel and keeps what they mean; an editor asks where a name
// stands, in texts with mistakes too. This index is made from the tree alone, by the rules of scope
// of dsl/SPEC.md [1.5, 4.1].
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_LSP_NAMEINDEX_H
#define TEGULA_LSP_NAMEINDEX_H

#include "frontend/parse/Module.h"
#include "llvm/ADT/ArrayRef.h"

namespace tegula {

struct Symbol {
  enum Kind {
    Kernel,
    Function,
    Tensor,   // a parameter
    Scalar,   // a parameter
    Constant, // a parameter that is known when compiling
    Output,
    Type, // a generic one
    Size,
    Temporary, // a tensor or a value that an equation defines
    State,
    Index,
    Argument, // of a fn
    Local,    // of a fn
  } kind = Temporary;
  std::string name;
  Span definition; // the name where it first stands
  const ast::Kernel *kernel = nullptr;
  const ast::Fn *fn = nullptr;
  const ast::Param *param = nullptr;     // Tensor, Scalar, Constant, Output
  const ast::Stmt *stmt = nullptr;       // that defines it; null for what a head defines
  const ast::Expr *call = nullptr;       // Index: the reduction that binds it
  const ast::Range *range = nullptr;     // Index: the written one
  uint32_t scopeBegin = 0, scopeEnd = 0; // bytes in which the name may be used

  llvm::StringRef describe() const;
};

struct Occurrence {
  enum Role { Definition, Write, Read } role = Read;
  Span span;
  unsigned symbol = 0;
};

/// A call, and what stands around it.
struct CallSite {
  const ast::Expr *call = nullptr;
  const ast::Kernel *kernel = nullptr;
  const ast::Fn *fn = nullptr;
};

class NameIndex {
public:
  explicit NameIndex(const Module &module);

  llvm::ArrayRef<Symbol> symbols() const { return all; }
  /// In order of the text.
  llvm::ArrayRef<Occurrence> occurrences() const { return found; }
  llvm::ArrayRef<CallSite> calls() const { return callSites; }

  /// The name that the byte is in or that ends there; null where there is none.
  const Occurrence *at(uint32_t offset) const;
  std::vector<Occurrence> occurrencesOf(unsigned symbol) const;
  /// The call whose function's name the byte is in.
  const CallSite *calleeAt(uint32_t offset) const;
  /// The call an argument of which is named at the byte.
  const CallSite *keywordAt(uint32_t offset, const ast::Argument *&argument) const;

  /// What a call means: the file's own definitions, else the library's. In the kernel of that name
  /// its own name is the library's [1.5].
  struct Callee {
    const ast::Kernel *kernel = nullptr;
    const ast::Fn *fn = nullptr;
  };
  static Callee calleeOf(const Module &module, llvm::StringRef name, const ast::Kernel *caller);

private:
  friend class NameIndexBuilder;
  std::vector<Symbol> all;
  std::vector<Occurrence> found;
  std::vector<CallSite> callSites;
};

} // namespace tegula

#endif // TEGULA_LSP_NAMEINDEX_H
