//===- RewriteValue.h - Whole-tensor expressions as elements -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An expression on whole tensors, with PyTorch's meaning, becomes the text of one element: a Value
// knows its dims and, given a text for the index of each, writes itself. `x.mean(-1, keepdim=True)`
// has dims [M, 1] and writes `mean(x[i, k] for k)` at (i, j).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_SUGGEST_REWRITEVALUE_H
#define TEGULA_FRONTEND_SUGGEST_REWRITEVALUE_H

#include "frontend/parse/Module.h"
#include "frontend/suggest/RewriteTree.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <functional>
#include <set>

namespace tegula::rewrite {

/// A dim of a value.
struct Dim {
  std::string extent; // its size as text; empty: unknown
  bool one = false;   // broadcasts: the index given for it is not used
  /// Whether the index stands bare in a subscript of a dim of this extent, so that its range
  /// follows; a range is written where it does not.
  bool bare = true;
  std::vector<std::string> parts; // extents of the dims that `flatten` joined here
  std::string hint;               // the index name that its definition used
  bool absent = false; // of size one, and not among the tensor's subscripts: `keepdim=True`
};

/// Text and how tightly it binds.
struct Text {
  std::string text;
  int level;
};
namespace level {
enum { Or = 1, And, Not, Compare, BitOr, BitXor, BitAnd, Shift, Sum, Product, Unary, Power, Atom };
}

/// Names in order of appearance.
using Names = llvm::SetVector<std::string, std::vector<std::string>, std::set<std::string>>;

struct Value {
  std::vector<Dim> dims;
  std::function<Text(llvm::ArrayRef<std::string>)> emit;
  std::string tensor; // the tensor that it is, whole; empty: an expression
  Names loose;        // subscripts that nothing binds yet

  size_t rank() const { return dims.size(); }
};
using Result = std::optional<Value>;

struct Entity {
  enum Kind { Tensor, Scalar, Index } kind = Scalar;
  std::vector<Dim> dims;
  bool isDefined = true; // an output is declared first and defined later
  bool isOutput = false;
  bool isSize = false; // a dim of the head
};
using Environment = llvm::StringMap<Entity>;

/// A call's callee and arguments.
struct CallForm {
  std::string name;
  std::string module;                  // `torch`, `F`, `np`; empty: none
  std::vector<const Node *> arguments; // a method's receiver first
  const Node *call;
  const Node *keyword(llvm::StringRef name) const;
  /// By position or by one of the names.
  const Node *argument(size_t position, llvm::ArrayRef<llvm::StringRef> names) const;
};

/// What a call of a builtin takes.
enum class Builtin { None, Values1, Values2, Values3, Clamp, Reduction, Scan, Other };
Builtin builtinOf(llvm::StringRef name);
bool isNone(const Node *node);

class Translator {
public:
  /// `reserved`: all names of the kernel, which new temporaries do not take; `self`: the kernel's
  /// own, which in its body is a function's or the library's.
  Translator(const Module &module, Environment &environment, const llvm::StringSet<> &reserved,
             llvm::StringRef self)
      : module(module), environment(environment), reserved(reserved), self(self) {}

  Result eval(const Node &node);
  std::optional<CallForm> callForm(const Node &node);

  /// One index name for each dim, (p, q) for joined ones.
  std::vector<std::string> leftIndices(llvm::ArrayRef<Dim> dims);
  /// An index that stands on the left side: it is bound.
  void bind(llvm::StringRef index) { active.insert(index.str()); }
  bool isBound(llvm::StringRef index) const { return active.count(index.str()) != 0; }
  std::string freshName(llvm::StringRef wish);

  std::optional<int64_t> integer(const Node &node);
  std::optional<std::vector<int64_t>> integers(const Node &node);
  /// A size or number as text.
  std::optional<Text> scalar(const Node &node);

  std::vector<std::string> before; // statements that must stand in front
  bool guessed = false;            // the text leaves it open what was meant
  bool failed = false;             // while writing

  using Emit = std::function<Text(llvm::ArrayRef<std::string>)>;
  Result make(std::vector<Dim> dims, Emit emit, Names loose = {});
  Result text(std::string text, int level = level::Atom);
  Value tensorValue(llvm::StringRef name, llvm::ArrayRef<Dim> dims);
  Result hoist(const Value &value);
  std::string index(std::set<std::string> &taken, bool isLeft);

  static std::string wrapped(const Text &text, int level);
  std::vector<Dim> broadcast(llvm::ArrayRef<const Value *> values);
  Text emitAt(const Value &value, llvm::ArrayRef<std::string> indices);
  Text emitExactly(const Value &value, llvm::ArrayRef<std::string> indices);

  Result evalName(const Node &node);
  Result evalBinary(llvm::StringRef op, const Value &a, const Value &b);
  Result evalUnary(const Node &node);
  Result evalMember(const Node &node);
  Result evalCall(const Node &node);
  Result evalComprehension(llvm::StringRef name, const Node &body, llvm::ArrayRef<Item> items,
                           const Node &call);
  Result elementwise(llvm::StringRef name, const CallForm &form, size_t values);
  Result apply(llvm::StringRef name, std::vector<Value> values, llvm::StringRef rest = "");

  std::optional<std::vector<int64_t>> dimsArgument(const CallForm &form, size_t position,
                                                   size_t rank, bool &isGiven);
  bool flag(const CallForm &form, llvm::ArrayRef<llvm::StringRef> names, bool fallback);
  /// Whether the file itself defines it.
  bool isOwn(llvm::StringRef name) const;
  /// This language's name of a function: `swish` is `silu`.
  llvm::StringRef ownName(llvm::StringRef name) const;
  std::optional<std::string> constantArgument(const Node &node);

  const Module &module;
  Environment &environment;
  const llvm::StringSet<> &reserved;
  llvm::StringRef self;
  std::set<std::string> active; // index names in use
};

} // namespace tegula::rewrite

#endif // TEGULA_FRONTEND_SUGGEST_REWRITEVALUE_H
