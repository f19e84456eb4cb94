//===- FlattenImpl.h - The state of flattening ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal to Flatten.cpp (statements), FlattenSteps.cpp (what changes: loops, states, tensors that
// are written again) and FlattenValue.cpp (values).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_GRAD_FLATTENIMPL_H
#define TEGULA_GRAD_FLATTENIMPL_H

#include "grad/Flatten.h"
#include "llvm/ADT/Twine.h"

namespace tegula::grad {

class Flattener {
public:
  Flattener(Builder &builder, Refusal &refusal) : builder(builder), refusal(refusal) {}
  std::optional<std::vector<Equation>> run();

private:
  bool refuse(Span span, const llvm::Twine &reason) {
    refusal = {reason.str(), span};
    return false;
  }

  // Flatten.cpp.
  bool walk(llvm::ArrayRef<checked::Stmt *> body);
  bool equation(const checked::Stmt &stmt);
  bool define(Equation made, const Expr *whole);
  bool call(const checked::Stmt &stmt);
  bool parallel(const checked::Stmt &stmt);
  bool tiles(const checked::Stmt &stmt);
  bool isReplacing(const Equation &made, const checked::Stmt &stmt) const;
  bool isApart(const Equation &made) const;
  void notePiece(const Equation &made);
  void findGroups(Equation &made) const;
  void shareParts(Equation &equation);

  // FlattenValue.cpp.
  /// Names of values, states, parameters and arguments of calls replaced by what they stand for.
  const Expr *resolve(const Expr *value);
  IndexExpr resolve(const IndexExpr &index);
  /// The tensor that a name of the program stands for, and the one that holds its value here.
  const Tensor *baseOf(const Tensor *tensor) const {
    auto found = tensors.find(tensor);
    return found == tensors.end() ? tensor : found->second;
  }
  const Tensor *resolve(const Tensor *tensor) const {
    const Tensor *base = baseOf(tensor);
    auto version = versions.find(base);
    return version == versions.end() ? base : version->second;
  }
  /// Reductions and scans inside of the value as reads of temporaries. `isRoot`: the node itself
  /// stays. Null, refused, where a temporary would not be a box.
  const Expr *hoist(const Expr *value, bool isRoot);
  const Expr *toTemporary(const Expr *value);
  void dropUnitVars(Equation &equation);
  bool readsData(const Expr *condition) const {
    llvm::DenseSet<const Tensor *> found;
    builder.tensorsOf(condition, found);
    return !found.empty();
  }

  // FlattenSteps.cpp.
  /// The steps of a loop that is being gone through.
  struct Level {
    const Var *step;
    llvm::DenseSet<const Tensor *> fresh; // tensors that begin their lives in each step
  };
  bool loop(const checked::Stmt &stmt);
  bool findChanging(llvm::ArrayRef<checked::Stmt *> body);
  bool update(const Tensor *base, Equation made, const checked::Stmt &stmt);
  bool scatter(const Tensor *next, const Tensor *old, Equation made);
  void setVersion(const Tensor *base, const Tensor *version) {
    versions[base] = version;
    resolved.clear();
  }
  unsigned levelOf(const Tensor *tensor) const;
  const Tensor *newTemporary(llvm::StringRef name, checked::DType type,
                             std::vector<IndexExpr> dims);
  void add(Equation made) {
    made.level = levelOf(made.target);
    equations.push_back(std::move(made));
  }
  bool isOwnElement(llvm::ArrayRef<IndexExpr> subscripts, const Var &step) const;
  const Tensor *materialize(const checked::StateDef &state, const Expr *value);
  const Expr *readState(const checked::StateDef &state, const Tensor *tensor);
  void setState(const checked::StateDef &state, const Expr *value);
  void finishVersions();
  void dropUnchanged(Loop &loop);

  /// What an equation writes of a tensor, and in the steps of which loop.
  struct Piece {
    std::vector<IndexExpr> subscripts;
    const Var *step = nullptr;
  };

  Builder &builder;
  Refusal &refusal;
  std::vector<Equation> equations;
  std::vector<const Var *> blockVars; // and those of the tile loops around
  llvm::DenseSet<unsigned> tileVars;
  llvm::DenseMap<const Tensor *, const Tensor *> tensors; // parameters of calls
  /// The tensor that holds the value that each has here, of those that change, in the order of the
  /// text: states, inouts, and what is written after it was read.
  llvm::MapVector<const Tensor *, const Tensor *> versions;
  llvm::MapVector<const checked::StateDef *, const Expr *> states; // of a block, by their values
  llvm::DenseMap<const checked::Let *, const Expr *> lets; // with the values where they are defined
  std::vector<Level> levels;                               // the outermost loop first
  llvm::DenseMap<const checked::ScalarParam *, const Expr *> scalars;
  llvm::DenseMap<const Expr *, const Expr *> resolved, hoisted;
  llvm::DenseMap<const Tensor *, llvm::SmallVector<Piece, 2>> pieces;
  llvm::DenseSet<const Tensor *> read;   // by equations so far
  llvm::DenseSet<const Tensor *> zeroed; // filled with 0 before their pieces
  enum Contents { zeros = 1, values = 2 };
  llvm::DenseMap<const Tensor *, Contents> defined;
  llvm::DenseSet<const Tensor *> replaced; // where a condition on data held
};

} // namespace tegula::grad

#endif // TEGULA_GRAD_FLATTENIMPL_H
