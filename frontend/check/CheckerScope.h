//===- CheckerScope.h - Tensors, names and frames of the checker *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the checker: what names stand for, where they are visible, what is being checked, and
// how a mistake there is reported.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKERSCOPE_H
#define TEGULA_FRONTEND_CHECK_CHECKERSCOPE_H

#include "frontend/check/CheckerValue.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "symbolic/Prove.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace tegula {
/// Names of the checker alone: other parts of the compiler have scopes and pieces too.
inline namespace checker {

/// The elements of a tensor that one statement defines.
struct Piece {
  Image image;
  Span span;
  std::string text; // `y[i, C + c]`
  bool inLoop = false;
  bool isPartial = false; // under a condition on data: may leave elements out
};

/// What a statement of a parallel block reads or writes.
struct BlockAccess {
  Image image;
  Span span;
  /// A write has points along these indices of the block, and `isApart` says that no two of them
  /// meet.
  std::vector<unsigned> along;
  bool isApart = false;
  checked::Stmt *write = nullptr; // null: a read
  size_t loopDepth = 0;
};

struct TensorInfo {
  checked::Tensor *tensor = nullptr;
  bool isPoison = false;
  bool isSuspect = false;  // one of its equations was wrong: what follows from that is not said
  bool isComplete = false; // every element has a value
  bool isZeroed = false;   // starts as zeros: an accumulation, or pieces that may not cover it
  bool isRead = false;
  /// A temporary whose size was fixed because it was read.
  bool isClosed = false;
  std::vector<Piece> pieces;
  /// The declared dims as text, for messages; empty for temporaries.
  const ast::Param *param = nullptr;
  /// What the parallel block being checked reads and writes of it.
  std::vector<BlockAccess> blockReads, blockWrites;
  bool isElement = false; // rank 0
  /// An equation that was wrong was to define all of it, here.
  Span claim;
  /// A tensor whose first value is weak (`state h[i in N] = 0`) and whose type nobody wrote: what
  /// CheckContext::weakTypes knows it by.
  std::optional<std::vector<uint32_t>> weakKey;
  /// Where a temporary begins its life.
  std::vector<checked::Stmt *> *home = nullptr;
  checked::Stmt *definition = nullptr;
};

struct StateInfo {
  checked::StateDef *state = nullptr;
  const ast::Stmt *stmt = nullptr;
};

struct Entity {
  enum Kind {
    Tensor, // tensor
    Scalar, // value: sizes, constants, named scalars, values of parallel blocks
    Tuple,  // tuple
    Index,  // var
    State,  // state, in a parallel block
    Poison, // defined wrongly: uses are not reported
  } kind = Poison;
  Span span;
  TensorInfo *tensor = nullptr;
  Value value;
  std::vector<Value> tuple;
  const checked::Var *var = nullptr;
  StateInfo *state = nullptr;
  bool isSize = false;  // a dim or `where` name
  bool isIndex = false; // Poison: of an index, whatever its range
  Span claim;           // Poison: an equation that was to define all of a temporary
  const ast::Param *param = nullptr;
  bool isUsed = false;
};

struct Scope {
  enum Kind { Kernel, Parallel, Tiles, For, Equation, Reduction, Fn } kind = Kernel;
  Scope *parent = nullptr; // null where names outside are not visible
  llvm::StringMap<Entity> names;
  explicit Scope(Kind kind, Scope *parent) : kind(kind), parent(parent) {}
};

/// A dim that is no bare name, of a tensor that is given: it binds the one size that nothing else
/// does.
struct OpenDim {
  const ast::Param *param;
  const ast::Dim *dim;
  unsigned input, position;        // which argument, which of its dims
  std::optional<IndexExpr> extent; // in a called kernel, in its caller's sizes
};

/// One kernel being checked: the entry, or a called one.
struct Frame {
  const ast::Kernel *kernel = nullptr;
  bool isLibrary = false;
  Frame *caller = nullptr;
  llvm::StringMap<checked::DType> types; // generic names
  std::optional<std::vector<IndexExpr>> ellipsis;
  std::vector<OpenDim> openDims;
  std::vector<checked::Stmt *> *body = nullptr; // the kernel's own, outermost
  std::optional<std::string> precision;
  std::vector<std::vector<ast::Ident>> distinct; // what the kernel says is distinct
  std::vector<ast::Ident> invariant;             // the sizes that it names
  Scope scope{Scope::Kernel, nullptr};
  llvm::StringSet<> indexNames; // all that the kernel uses, for schedules
};

/// A call or expansion being checked.
struct Expansion {
  Span call;
  std::string name;
  bool isKernel = false, isLibrary = false;
  const void *definition = nullptr; // the kernel or fn
};

/// A diagnostic being built; inside library code and called kernels it stands at the call and
/// carries no fixes.
class Report {
public:
  Report(Diagnostics::Builder builder, bool atCall) : builder(builder), atCall(atCall) {}
  Report &note(std::string message, Span span = {}) {
    builder.note(std::move(message), span);
    return *this;
  }
  Report &fix(std::string message, std::vector<Edit> edits,
              Applicability applicability = Applicability::Maybe) {
    if (!atCall)
      builder.fix(std::move(message), std::move(edits), applicability);
    return *this;
  }

  /// An edit in the file of the entry, not where the error was found.
  Report &fixAtCall(std::string message, std::vector<Edit> edits) {
    builder.fix(std::move(message), std::move(edits), Applicability::Maybe);
    return *this;
  }

private:
  Diagnostics::Builder builder;
  bool atCall;
};

/// A dim that a read needs larger than it is declared.
struct WantedDim {
  std::string symbol;
  IndexExpr needed;
  size_t guard; // position in program->guards
  std::optional<Report> report;
};

/// What the passes over a parallel block found about its states.
struct StateFact {
  checked::DType type = checked::DType::I32;
  std::vector<unsigned> axes;
};

/// Where something must hold, and how to say so.
struct Obligation {
  Span span;        // of the subscript
  Span access;      // of all of `x[i + 2]`
  std::string what; // `x[i + 2]`
  /// InBounds: the tensor and dim accessed.
  const TensorInfo *tensor = nullptr;
  unsigned dim = 0;
  bool isWrite = false;
  std::string permuted; // the same read with its subscripts in an order that stays inside
};

/// Sets a variable for the length of a block.
template <typename T> class Saved {
public:
  explicit Saved(T &variable) : variable(variable), old(variable) {}
  Saved(T &variable, T value) : variable(variable), old(std::move(variable)) {
    this->variable = std::move(value);
  }
  ~Saved() { variable = std::move(old); }
  Saved(const Saved &) = delete;

private:
  T &variable;
  T old;
};

/// Drops what was pushed on a vector since.
template <typename T> class Trimmed {
public:
  explicit Trimmed(std::vector<T> &vector) : vector(vector), size(vector.size()) {}
  ~Trimmed() { vector.erase(vector.begin() + size, vector.end()); }
  Trimmed(const Trimmed &) = delete;

private:
  std::vector<T> &vector;
  size_t size;
};

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKERSCOPE_H
