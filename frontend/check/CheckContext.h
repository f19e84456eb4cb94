//===- CheckContext.h - What the checks of one kernel share -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the checker. One walk over the entry kernel's statements builds the Program; a called
// kernel is a Frame in which the same code runs again, in its caller's sizes. Each construct of the
// language has a file of free functions, Check<Construct>.cpp, which take this context; those that
// other constructs call stand in Check<Construct>.h.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKCONTEXT_H
#define TEGULA_FRONTEND_CHECK_CHECKCONTEXT_H

#include "frontend/check/CheckerScope.h"
#include "frontend/check/InstanceOptions.h"
#include "frontend/parse/Module.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <map>
#include <set>

namespace tegula {
inline namespace checker {

using checked::DType;
using checked::Expr;
using checked::Stmt;
using checked::Tensor;
using checked::Var;
using Interval = checked::IntegerRange;

/// Where a tensor begins: the file and offset of its name, then those of the calls around it.
using TensorKey = std::vector<uint32_t>;
/// The widest type that is stored in each tensor whose first value is weak.
using WeakTypes = std::map<TensorKey, DType>;

/// Names that the checker gives to sizes.
struct SizeNames {
  llvm::StringSet<> symbols;                  // taken
  std::map<IndexExpr, IndexExpr> atomNames;   // divisions, ... of sizes, over derived symbols
  bool keepAtoms = false;                     // in a `where` size, which may get a name
  llvm::StringMap<IndexExpr> autoDefinitions; // unnamed derived sizes
  llvm::StringMap<IndexExpr>
      calleeDefinitions; // sizes of called kernels: names that nobody can write
};

/// What is known of integers, and the vars of data by the values' keys.
struct ValueFacts {
  llvm::DenseMap<unsigned, const Var *> dataVars;
  llvm::StringMap<unsigned> keyNumbers;
  llvm::DenseMap<const Expr *, unsigned> exprKeys;
  llvm::DenseMap<const Expr *, Interval> exprIntervals;
  llvm::DenseMap<const Expr *, bool> exprWraps;
  llvm::StringMap<Interval> symbolIntervals;
  llvm::DenseMap<unsigned, Interval> varIntervals; // of axes and loops
  std::vector<IndexExpr> boundedMagnitudes;        // that a guard keeps within 64 bits
  llvm::DenseMap<const Expr *, const Expr *> wideExprs;
  llvm::DenseMap<const Expr *, std::optional<IndexExpr>> exprIndices;
  llvm::DenseMap<const Expr *, std::optional<std::pair<IndexExpr, IndexExpr>>> exprRanges;
};

/// The parallel block around the statement being checked.
struct ParallelBlock {
  bool isActive = false;
  size_t loops = 0; // sequential loops around it
  std::vector<const Var *> vars;
  std::vector<TensorInfo *> tensors; // written by it
  std::vector<const Var *> data;     // in its subscripts, one for those that are the same
};

class CheckContext {
public:
  CheckContext(const Module &module, const InstanceOptions &options, Diagnostics &diagnostics,
               WeakTypes &weakTypes);
  /// Whether this run found a wider type: what it made and reported is of no use, another run
  /// knows.
  bool needsAnotherRun() const { return weakTypesChanged; }

  //===-- Reports ---------------------------------------------------------===//
  Report report(Code code, Span span, const llvm::Twine &message);
  /// Errors found by this check; those that repeat one found before are not printed again.
  unsigned numErrors() const { return diagnostics->numErrors() + repeatedErrors; }
  /// What a file with syntax errors means is not known.
  bool hasErrors() const { return module.file().isPartial || numErrors() != errorsBefore; }
  /// Guards and warnings are not told, here.
  bool isSilent() const { return dead || dry; }
  llvm::StringRef text(Span span) const { return module.sourceManager().text(span); }
  /// As a message names it.
  std::string shortText(Span span) const;

  //===-- Scopes and names ------------------------------------------------===//
  Entity *lookup(llvm::StringRef name);
  /// Defines a name in `scope`; reports and returns null where it is taken.
  Entity *define(Scope &scope, const ast::Ident &name, Entity entity);
  /// What is wrong with the name was reported. Uses as an index, whose range alone may be unknown,
  /// are held against that where `isIndex`.
  void poison(Scope &scope, const ast::Ident &name, bool isIndex = false);
  /// Whether names mean those of the library alone, here.
  bool inLibrary() const;
  /// Whether a statement with syntax errors may have defined the word.
  bool isLost(llvm::StringRef word) const { return module.file().lostWords.contains(word); }

  //===-- State -----------------------------------------------------------===//
  const Module &module;
  const InstanceOptions &options;
  Diagnostics *diagnostics;
  unsigned errorsBefore = 0, repeatedErrors = 0;
  std::unique_ptr<Diagnostics> repeated; // takes those
  std::set<std::string> reportedGuards;

  std::unique_ptr<checked::Program> program;
  std::unique_ptr<Prover> prover;
  std::vector<Condition> assumed;
  SizeNames sizeNames;
  ValueFacts facts;

  // Where the walk stands.
  std::vector<Expansion> expansions;
  unsigned expandedWeight = 0; // of all calls expanded so far
  const ast::Stmt *currentStmt = nullptr;
  Frame *frame = nullptr;
  Scope *scope = nullptr;
  std::vector<Stmt *> *sink = nullptr;
  std::vector<const Var *> activeVars; // visible ones, outermost first
  std::vector<PathCondition> path;
  std::vector<std::pair<unsigned, const Var *>> renames; // scans: old var by new
  std::vector<unsigned> loops;                           // sequential loop vars around
  /// Vars whose ranges are written, with the text.
  llvm::DenseMap<const Var *, const ast::Range *> writtenRanges;
  unsigned dead = 0; // inside what a compile-time constant excludes
  unsigned dry = 0;  // first passes over a parallel block
  ParallelBlock block;
  std::vector<const Var *> tileVars;
  bool hasDouble = false;   // the entry has f64 tensors
  bool isObserving = false; // in what `print` or `assert` looks at
  /// Who checks what is required of sizes here.
  llvm::StringRef checkedBy() const { return isObserving ? "every observed run" : "every launch"; }

  std::deque<TensorInfo> tensorInfos;
  std::deque<StateInfo> stateInfos;
  std::deque<WantedDim> wantedDims;

  WeakTypes &weakTypes;
  bool weakTypesChanged = false;
  std::map<const ast::Stmt *, StateFact> stateFacts;
  bool stateFactsChanged = false;
};

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKCONTEXT_H
